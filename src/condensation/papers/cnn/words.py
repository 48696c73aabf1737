"""Settings typed a second time, for figures of the old form only: TO BE DELETED with the last of them."""

from .experiments import FIG3_EPOCH, FIG3_RATE, FIG3_STEPS, GD_RATE, GD_STEPS

PRECISION = {"precision": "float32, products in TF32 on a GPU"}
GD_SETTINGS = {
    "optimizer": f"gradient descent, full batch, learning rate {GD_RATE:g} on the sum over the samples "
    f"({500 * GD_RATE:g} on the mean); in Fig. 2 {GD_STEPS['cifar10']} steps",
    "loss": "half the squared error after softmax, summed over the samples: with the mean the captioned steps do not "
    "condense",
    **PRECISION,
}
SETTINGS = {
    "network": "three convolution layers of 32 channels with 5 x 5 kernels (tanh), a dense layer of 1024 (relu), "
    "10 outputs",
    "data": "500 images of CIFAR-10 drawn at random, pixels in [-1, 1]",
    "optimizer": f"Adam, learning rate {FIG3_RATE:g}, full batch, eps 1e-8, epoch {FIG3_EPOCH} and {FIG3_STEPS}",
    **PRECISION,
}
REDUCED = "a smaller network, fewer images and steps"
