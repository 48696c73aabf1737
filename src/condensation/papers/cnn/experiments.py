"""The convolutional paper's experiments, with its captions' hyperparameters and with those of the quick scale.

Images are drawn at random, not balanced, as in the paper: the small imbalance of the classes drives the deep networks.
"""

from dataclasses import replace

from ...data import Images
from ...experiment import Experiment
from ...initialization import ChannelPower, Init, Normal
from ...losses import Loss
from ...networks import Conv
from ...optimizers import GD, Adam
from ...saving import At, Evenly, Geometric

SAMPLES = 500
OUTPUT_STD = 1e-4
# choices where the text is silent, in words
SUMMED = (
    "the loss is summed over the samples, where eq. (1) has the mean: with the mean as printed, the captioned rate and "
    "steps do not condense (the claim cnn-fig2-as-printed)"
)
NO_CAPTION = "the caption is not in the text: all settings are those of"

# one convolution layer by gradient descent: Figs. 2, 10, 11
GD_KERNEL, GD_GAMMA, GD_RATE = 3, 4, 5e-6
GD_STEPS = {"cifar10": 4500, "mnist": 3400}  # on MNIST Z is larger, and no step is known
GD_LOSS = Loss("softmax_mse", "sum")
QUICK_GD_SAMPLES, QUICK_GD_RATE, QUICK_GD_STEPS = 120, 1.25e-3, {"cifar10": 54, "mnist": 42}
# kernels of Fig. 11, its images at the quick scale, and its share of the steps
MANY, MANY_SAMPLES, MANY_SHARE = 320, 80, 0.8

# convolution layers and a dense one by Adam: Figs. 3, 4, 6 to 9
KERNEL, GAMMA, HIDDEN, CHANNELS = 5, 2, 1024, 32
FIG3_RATE, FIG3_EPOCH, FIG3_STEPS = 2e-6, 300, 10_000
FIG4_RATE, FIG4_EPOCHS = 5e-7, {"relu": 1000, "sigmoid": 5000, "tanh": 300}
FIG8_RELU_STEPS = 6000  # relu on MNIST needs more: past the end of the initial stage
CROSS_ENTROPY = Loss("cross_entropy")

QUICK_FIG3_RATE, QUICK_FIG3_EPOCH, QUICK_FIG3_STEPS = 3e-4, 20, 230
QUICK_FIG3_SAMPLES, QUICK_FIG3_CHANNELS, QUICK_HIDDEN = 80, 8, 128
QUICK_FIG4_RATES = {"relu": 2.5e-5, "sigmoid": 4e-5, "tanh": 2.5e-5}
QUICK_FIG8_RELU_RATE, QUICK_FIG8_RELU_STEPS = 1.5e-4, 120
QUICK_FIG4_STEPS, QUICK_FIG4_SAMPLES, QUICK_FIG4_CHANNELS = 40, 120, 16


def layers_of(count: int) -> tuple[str, ...]:
    """Names of the convolution layers.

    >>> layers_of(2)
    ('conv1', 'conv2')
    """
    return tuple(f"conv{k + 1}" for k in range(count))


def descent(scale: str, data: str = "cifar10", channels: int = CHANNELS) -> Experiment:
    """Figs. 2, 10 and 11: one convolution layer and the output layer, tanh, gradient descent on a summed loss.

    With 320 kernels the loss falls sooner, and the quick scale has fewer images.
    """
    paper, many = scale == "paper", channels >= MANY
    steps = int((GD_STEPS if paper else QUICK_GD_STEPS)[data] * (MANY_SHARE if many else 1))
    images = Images(data, n=SAMPLES if paper else MANY_SAMPLES if many else QUICK_GD_SAMPLES)
    rate = GD_RATE if paper else QUICK_GD_RATE * QUICK_GD_SAMPLES / (images.n or 1)
    network = Conv(images.shape, (channels,), GD_KERNEL, images.outputs)
    init = Init(Normal(OUTPUT_STD), convolution=ChannelPower(GD_GAMMA))
    return Experiment(
        network, init, images, GD(rate), steps, GD_LOSS, save=Evenly(31 if paper else 17),
        record=Evenly(91 if paper else 17), dtype="tf32", kept_layers=("conv1",),
    )  # fmt: skip


def deep(scale: str, data: str = "cifar10", loss: Loss = CROSS_ENTROPY) -> Experiment:
    """Figs. 3, 6, 7 and 9 to the captioned epoch: three convolution layers with tanh, a dense one with relu, Adam.

    With MSE after softmax (no epoch is known) it takes twice as long: its gradients are ten times as small.
    """
    paper = scale == "paper"
    images = Images(data, n=SAMPLES if paper else QUICK_FIG3_SAMPLES)
    channels = (CHANNELS if paper else QUICK_FIG3_CHANNELS,) * 3
    steps = (FIG3_EPOCH if paper else QUICK_FIG3_EPOCH) * (2 if loss.name == "softmax_mse" else 1)
    return _by_adam(scale, images, "tanh", channels, FIG3_RATE if paper else QUICK_FIG3_RATE, steps, loss)


def deep_to_the_end(scale: str) -> Experiment:
    """Fig. 3's network trained until it fits its images, with the test images of CIFAR-10 beside."""
    paper = scale == "paper"
    steps = FIG3_STEPS if paper else QUICK_FIG3_STEPS
    few = [step for step in Geometric(3 if paper else 6).steps(steps) if step >= (40 if paper else 3)]
    saved = At((*few, FIG3_EPOCH if paper else QUICK_FIG3_EPOCH))
    test = Images("cifar10", split="test") if paper else Images("cifar10", n=300, split="test")
    return deep(scale).replace(steps=steps, save=saved, record=Evenly(61 if paper else 16), test=test)


def shallow(scale: str, activation: str, data: str = "cifar10") -> Experiment:
    """Figs. 4 and 8: one convolution layer, a dense one with relu, Adam."""
    paper = scale == "paper"
    images = Images(data, n=SAMPLES if paper else QUICK_FIG4_SAMPLES)
    channels = (CHANNELS if paper else QUICK_FIG4_CHANNELS,)
    rate, steps = (FIG4_RATE, FIG4_EPOCHS[activation]) if paper else (QUICK_FIG4_RATES[activation], QUICK_FIG4_STEPS)
    return _by_adam(scale, images, activation, channels, rate, steps)


def relu_on_mnist(scale: str) -> Experiment:
    """Fig. 8's network with relu, trained on until the initial stage has ended."""
    paper = scale == "paper"
    rate, steps = (FIG4_RATE, FIG8_RELU_STEPS) if paper else (QUICK_FIG8_RELU_RATE, QUICK_FIG8_RELU_STEPS)
    many = Evenly(31 if paper else 13)
    return shallow(scale, "relu", "mnist").replace(optimizer=Adam(rate), steps=steps, save=many, record=many)


def _by_adam(
    scale: str, images: Images, activation: str, channels: tuple[int, ...], rate: float, steps: int,
    loss: Loss = CROSS_ENTROPY,
) -> Experiment:  # fmt: skip
    hidden = (HIDDEN if scale == "paper" else QUICK_HIDDEN,)
    network = Conv(images.shape, channels, KERNEL, images.outputs, hidden, activation)
    init = Init(Normal(OUTPUT_STD), convolution=ChannelPower(GAMMA))
    return Experiment(
        network, init, images, Adam(rate), steps, loss, save=Evenly(11), record=Evenly(31 if steps > 100 else 11),
        dtype="tf32", kept_layers=layers_of(len(channels)),
    )  # fmt: skip


def balanced(experiment: Experiment) -> Experiment:
    """The same with as many images of each class."""
    assert isinstance(experiment.data, Images)
    return experiment.replace(data=replace(experiment.data, balanced=True))
