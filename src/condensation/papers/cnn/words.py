"""Words that several of the convolutional paper's figures share."""

from .experiments import (
    FIG3_RATE,
    GD_RATE,
    GD_STEPS,
    QUICK_FIG3_CHANNELS,
    QUICK_FIG3_RATE,
    QUICK_FIG3_SAMPLES,
    QUICK_GD_RATE,
    QUICK_GD_SAMPLES,
    QUICK_HIDDEN,
)

SETS = {"cifar10": "CIFAR-10", "mnist": "MNIST"}
PRECISION = {"precision": "float32, products in TF32 on a GPU"}
ADAM_SETTINGS = {
    "start": "convolutions N(0, σ₁²) with σ₁ = ((c_in + c_out)/2 · m²)^-2, dense layers N(0, 0.0001²)",
    "loss": "cross-entropy",
    **PRECISION,
}
GD_SETTINGS = {
    "optimizer": f"gradient descent, full batch, learning rate {GD_RATE:g} on the sum over the samples "
    f"({500 * GD_RATE:g} on the mean); in Fig. 2 {GD_STEPS['cifar10']} steps",
    "start": "convolutions N(0, σ₁²) with σ₁ = ((c_in + c_out)/2 · m²)^-4, output layer N(0, 0.0001²)",
    "loss": "half the squared error after softmax, summed over the samples: with the mean the captioned steps do not "
    "condense",
    **PRECISION,
}
NO_CAPTION = "the caption is not in the text: all settings are those of"
QUICK_DEEP = (
    f"{QUICK_FIG3_SAMPLES} images instead of 500, {QUICK_FIG3_CHANNELS} channels a layer instead of 32, "
    f"{QUICK_HIDDEN} hidden neurons instead of 1024, learning rate {QUICK_FIG3_RATE:g} instead of {FIG3_RATE:g}, step "
    f"{{epoch}} in the captioned epoch's place"
)
QUICK_DESCENT = (
    f"{{samples}} images instead of 500, {{steps}} steps of {QUICK_GD_SAMPLES * QUICK_GD_RATE:g} on the mean loss "
    f"instead of {{all_steps}} of {500 * GD_RATE:g}"
)
