"""The fully connected paper's experiments, with its captions' hyperparameters and with those of the quick scale."""

import numpy as np

from ...data import Images, sine_sum, two_waves
from ...data._catalog import known
from ...experiment import Experiment
from ...initialization import FanOutPower, Glorot, Init, Normal, WidthPower
from ...losses import Loss
from ...networks import Dense, ResNet
from ...optimizers import Adam
from ...runs import Trajectory
from ...saving import At, Evenly, Geometric
from ...seeds import Seed

FIG3_EPOCH, FIG3_LAST = 100, 600  # the last step is beyond the caption, to show that condensation is transient
FIG3_RATES = {"tanh": 1e-3, "x_tanh": 1e-3, "x2_tanh": 1e-3, "sigmoid": 8e-4, "softplus": 2.5e-4}
LINES = {"tanh": 1, "x_tanh": 2, "x2_tanh": 3, "sigmoid": 1, "softplus": 1}  # that the paper shows

FIG4_LAYERS = ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus")
FIG4_EPOCHS = (1000, 900, 900, 1400, 1400)

FIG5_EPOCH, FIG6_EPOCH = 1000, 200
FIG5_ACTIVATIONS = ("tanh", "x_tanh", "x2_tanh")
HIGHER = FIG5_ACTIVATIONS[1:]  # of multiplicities above 1
EVEN = "-even"  # ends the name of a network whose "40 points uniformly sampled" are read as equally spaced
ONE_INPUT = {
    f"{name}{end}": (name, spacing) for end, spacing in (("", "random"), (EVEN, "even")) for name in FIG5_ACTIVATIONS
}
READING = (
    "the 40 points are drawn at random, as Fig. 3's are; equally spaced points, the other reading of \"uniformly "
    'sampled", are measured and drawn beside them (their seeds differ in the initial weights alone)'
)

BATCH = 128
FIG2_RATES = {"tanh": 3e-8, "sigmoid": 1e-8, "softplus": 1e-8, "x_tanh": 5e-6}
FIG2_EPOCHS = {"tanh": 20, "sigmoid": 30, "softplus": 30, "x_tanh": 61}
MNIST_EPOCHS = 10  # by then its loss is far below 70%
QUICK_BATCH, QUICK_STEPS = 64, 64
QUICK_RATES = {"tanh": 2e-4, "sigmoid": 4e-4, "softplus": 4e-4, "x_tanh": 1e-3}  # chosen on other seeds


def fig3(activation: str, frequency: float = 5.0) -> Experiment:
    """Fig. 3: a 5-50-1 network on 80 points of sum 3.5 sin(5 x_k + 1); the appendix has the frequency 2 too."""
    return Experiment(
        Dense((5, 50, 1), activation), Init(Normal(std=0.005)),
        sine_sum(3.5, frequency, 1, dim=5, n=80, low=-4, high=2), Adam(FIG3_RATES[activation]), FIG3_LAST,
        save=At((*Geometric(12).steps(FIG3_LAST), 20, 50, FIG3_EPOCH)),
    )  # fmt: skip


def six_layers(residual: bool) -> Experiment:
    """Fig. 4 (with residual connections) and App. A.5 (without): 3-18-18-18-18-18-1, an activation a layer."""
    last = max(FIG4_EPOCHS)
    return Experiment(
        Dense((3, *[18] * 5, 1), FIG4_LAYERS, residual=residual), Init(Normal(std=0.01)),
        sine_sum(4, 12, 1, dim=3, n=80, low=-4, high=2), Adam(4e-5), last,
        save=At((*Geometric(8).steps(last), 200, 400, 600, *FIG4_EPOCHS)),
    )  # fmt: skip


def one_input(activation: str, spacing: str = "random") -> Experiment:
    """Figs. 5 and 6: a 1-100-1 network on 40 points of sin(3x) + sin(6x)/2, random or equally spaced."""
    return Experiment(
        Dense((1, 100, 1), activation), Init(Normal(std=0.005)), two_waves(n=40, low=-1, high=1.5, spacing=spacing),
        Adam(5e-4), FIG5_EPOCH, save=At((*Geometric(8).steps(FIG5_EPOCH), 50, FIG6_EPOCH, 400)),
    )  # fmt: skip


def synthetic() -> dict[str, Experiment]:
    """The networks of Figs. 3 to 5 and of App. A.5."""
    return {
        **{f"fig3-{name}": fig3(name) for name in FIG3_RATES},
        "fig4": six_layers(residual=True),
        "a5": six_layers(residual=False),
        **{f"fig5-{name}": one_input(name) for name in FIG5_ACTIVATIONS},
    }


def resnet(activation: str, scale: str, data: str = "cifar10") -> Experiment:
    """Fig. 2: the convolution part of ResNet18 with dense layers 1024-1024-10 on CIFAR-10."""
    if scale == "paper":
        epochs = MNIST_EPOCHS if data == "mnist" else FIG2_EPOCHS[activation]
        return _resnet(Images(data), activation, Adam(FIG2_RATES[activation]), epochs * _batches(data), Evenly(41))
    images = Images(data, n=1000 if data == "cifar100" else 640, balanced=True)
    return _small_resnet(images, activation, Adam(QUICK_RATES[activation]), QUICK_STEPS)


def resnet_of_width(activation: str, scale: str) -> Experiment:
    """Fig. 2 with m_out read as the width of the dense layers, in the output layer too: all of them start as small."""
    return resnet(activation, scale).replace(init=Init(WidthPower(1.5), convolution=Glorot()))


def _batches(data: str) -> int:
    return known(data).counts[0] // BATCH


def _resnet(images: Images, activation: str, optimizer: Adam, steps: int, saved: Evenly) -> Experiment:
    return Experiment(
        ResNet(images.shape, images.outputs, activation=activation), Init(FanOutPower(1.5), convolution=Glorot()),
        images, optimizer, steps, loss=Loss("cross_entropy"), save=saved, record=saved, dtype="tf32", batch_size=BATCH,
        kept_layers=("dense1",),
    )  # fmt: skip


def _small_resnet(images: Images, activation: str, optimizer: Adam, steps: int) -> Experiment:
    """What two cores train in seconds."""
    small = ResNet(images.shape, images.outputs, hidden=(128, 128), activation=activation, channels=(16,), depth=1)
    return _resnet(images, activation, optimizer, steps, Evenly(11)).replace(network=small, batch_size=QUICK_BATCH)


def resnet_from(initialization: str, scale: str) -> Experiment:
    """App. A.4: the network of Fig. 2 with tanh, trained on from its small initialization or from a common one."""
    if scale == "paper":
        small = _resnet(Images("cifar10"), "tanh", Adam(1e-3), 20 * _batches("cifar10"), Evenly(11))
        test = Images("cifar10", split="test")
    else:
        small = _small_resnet(Images("cifar10", n=2000, balanced=True), "tanh", Adam(3e-3), 200)
        test = Images("cifar10", n=1000, balanced=True, split="test")
    init = Init(Glorot(), convolution=Glorot()) if initialization == "common" else small.init
    return small.replace(init=init, test=test, save=Evenly(6), record=Evenly(6 if scale == "quick" else 21))


def low_frequency(activation: str) -> Experiment:
    """App. A.7: Fig. 3 with the target sum 3.5 sin(2 x_k + 1)."""
    return fig3(activation, frequency=2.0)


def data_with_bias(run: Trajectory, seed: Seed) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with a last column of ones, which the bias multiplies, and targets."""
    x, y = run.data(seed)
    return np.c_[x, np.ones(len(x))], y
