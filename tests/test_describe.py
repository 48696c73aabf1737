"""Each part of an experiment in words, unusual ones too; the papers' experiments are in papers/."""

import jax.numpy as jnp
import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    Conv,
    Dense,
    Experiment,
    GradientFlow,
    Images,
    Init,
    InputError,
    Normal,
    sine_sum,
    two_waves,
)
from condensation.data import Expression, Points, Synthetic, hinges
from condensation.initialization import ChannelPower, FanOutPower, Glorot, WidthPower, Zeros
from condensation.losses import Loss
from condensation.networks import ResNet
from condensation.optimizers import Momentum, Muon, NormalisedGD, RMSprop, SignGD
from condensation.schedules import Cosine, Product, StepDecay, Warmup


def sin_plus(x):
    return jnp.sin(x) + x


class Unnamed:
    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    ("network", "phrase"),
    [
        (Dense((2, 3, 4, 1), "relu", bias=False), "2-3-4-1, relu, no bias"),
        (Dense((2, 3, 1), "relu", output_bias=True), "2-3-1, relu"),
        (Dense((2, 3, 1), "relu", bias=False, output_bias=True), "2-3-1, relu, no hidden bias"),
        (Dense((2, 3, 1), sin_plus, dropout=0.5), "2-3-1, own function sin_plus, dropout 0.5, no output bias"),
        (Dense((2, 3, 1), lambda x: x), "2-3-1, own function, no output bias"),
        (Dense((2, 3, 1), Unnamed()), "2-3-1, own function, no output bias"),
        (Dense((2, 3, 4, 1), concatenated=True), "2-3-4-1, tanh, concatenated hidden layers, no output bias"),
        (Dense((2, 3, 3, 1), ("tanh", "tanh")), "2-3-3-1, tanh, no output bias"),
        (
            Conv((1, 9, 9), (4, 8, 2), 3, 1, (7, 5), ("tanh", "relu", sin_plus), padding=1, dropout=0.1),
            "3 convolution layers of 4, 8 and 2 channels, 3 x 3 kernels, padding 1, "
            "activations by layer (tanh, relu, own function sin_plus); dense 7-5 (relu, dropout 0.1); "
            "one output, no output bias",
        ),
        (
            Conv((1, 9, 9), (1,), 3, 2, output_bias=True),
            "one convolution layer of one channel, 3 x 3 kernels, tanh; 2 outputs",
        ),
        (
            ResNet((3, 32, 32), 10, hidden=(), channels=(8, 16), stem="small"),
            "2 stages of 2 residual blocks, 8 and 16 channels, 3 x 3 stem of stride 1 (relu, batch norm); "
            "10 outputs, no output bias",
        ),
    ],
)
def test_networks(network, phrase):
    assert network.describe() == phrase


DENSE, DEEPER = Dense((5, 50, 1)), Dense((5, 8, 8, 8, 1))
CONV, CONV_DENSE = Conv((1, 9, 9), (4, 4), 3, 1), Conv((1, 9, 9), (4, 4), 3, 1, hidden=(6, 6))


@pytest.mark.parametrize(
    ("start", "network", "phrase"),
    [
        (Init(Normal(0.1), output=Normal(0.1)), DENSE, "N(0, 0.1²)"),
        (Init(Normal(1e-7), output=Normal(0.1)), DENSE, "hidden layer N(0, (1e-07)²); output layer N(0, 0.1²)"),
        (Init(Normal(0.1), output=Zeros()), DEEPER, "hidden layers N(0, 0.1²); output layer zero"),
        (
            Init((Normal(0.1), Normal(0.2), Normal(0.1))),
            DEEPER,
            "dense1, dense3, output N(0, 0.1²); dense2 N(0, 0.2²)",
        ),
        (
            Init(WidthPower(0.5), antisymmetric=True),
            DENSE,
            "N(0, σ²) with σ = m^-0.5, m the width; units in antisymmetric pairs, so that the output is zero at step 0",
        ),
        (Init(WidthPower(-0.5)), DENSE, "N(0, σ²) with σ = m^0.5, m the width"),
        (Init(WidthPower(0)), DENSE, "N(0, σ²) with σ = m^0, m the width"),
        (Init(FanOutPower(1.5), output=Glorot()), DENSE, "hidden layer N(0, 1/m_out³); output layer Glorot normal"),
        (Init(Glorot()), DENSE, "Glorot normal, zero biases"),
        (
            Init(Normal(0.1), convolution=(Normal(0.2), ChannelPower(1.5))),
            CONV,
            "conv1 N(0, 0.2²); conv2 N(0, σ²) with σ = ((c_in + c_out)/2 · m²)^-1.5; output layer N(0, 0.1²)",
        ),
        (
            Init(Normal(0.1), output=Zeros(), convolution=Glorot()),
            CONV_DENSE,
            "convolutions Glorot normal, zero biases; dense hidden layers N(0, 0.1²); output layer zero",
        ),
        (Init(Normal(0.1), output=Zeros()), CONV_DENSE, "hidden layers N(0, 0.1²); output layer zero"),
        (Init(Normal(0.1), output=Zeros()), CONV, "convolutions N(0, 0.1²); output layer zero"),
    ],
)
def test_initializations(start, network, phrase):
    assert start.describe(network) == phrase


def test_a_start_is_described_for_networks_that_it_fits_only():
    with pytest.raises(InputError, match="laws for 2 hidden layers, the network has 1"):
        Init((Normal(0.1), Normal(0.2))).describe(DENSE)


DIGITS = "scikit-learn's digits (8 x 8)"


@pytest.mark.parametrize(
    ("data", "phrase"),
    [
        (
            hinges(),
            "40 points of -relu(x) + relu(2x + 0.6) - relu(1.5x - 0.6) + relu(0.5x - 0.4), "
            "x evenly spaced on [-1.5, 1.5]",
        ),
        (
            Synthetic(((1, 3, 0), (-0.5, -1, -2)), dim=2, n=9, low=0, high=1, spacing="even", rotated=True),
            "9 points of sum (sin(3 x_k) - 0.5 sin(-x_k - 2)), x_k evenly spaced on [0, 1], "
            "rotated at random by the data seed",
        ),
        (Expression("sin(x)", dim=1, n=5, low=-1, high=1), "5 points of sin(x), x uniform on [-1, 1]"),
        (
            Expression("exp(x) + x", dim=2, n=5, low=-1, high=1, turned=30),
            "5 points of sum (exp(x_k) + x_k), x_k uniform on [-1, 1], turned by 30 degrees",
        ),
        (
            Expression("x1 *\n x3", dim=3, n=8, low=-1, high=1, spacing="even"),
            "8 points of x1 * x3, x1 to x3 evenly spaced on [-1, 1]",
        ),
        (Expression("2", dim=1, n=1, low=0, high=1), "one point of 2, x1 uniform on [0, 1]"),
        (Points(((0, 0, 1), (1, 0, 2)), turned=-45), "2 given points of 2 coordinates, turned by -45 degrees"),
        (Arrays(np.zeros((7, 1)), np.zeros((7, 2))), "7 samples of one input and 2 targets, own arrays"),
        (
            Arrays(np.zeros((2000, 3, 8, 8)), np.zeros(2000)),
            "2000 samples of 3 x 8 x 8 inputs and one target, own arrays",
        ),
        (
            Images("digits", n=20, classes=(3, 8), target="sign", scale="unit"),
            f"20 random images of {DIGITS} (classes 3 and 8), pixels in [0, 1], classes as -1 and +1",
        ),
        (
            Images("mnist", target="sign", scale="standardised"),
            "all 60,000 images of MNIST, pixels of mean 0 and standard deviation 1 in each channel, "
            "+1 for the own class and -1 for the others",
        ),
        (
            Images("fashion-mnist", split="test", classes=(0, 1, 2), target="index"),
            "all test images of Fashion-MNIST (classes 0, 1 and 2), pixels in [-1, 1], class numbers",
        ),
        (
            Images("cifar10", n=5000, balanced=True, drawn_by=7),
            "5,000 random balanced images of CIFAR-10, drawn by data seed 7 for all seeds, pixels in [-1, 1], "
            "one-hot classes",
        ),
    ],
)
def test_data(data, phrase):
    assert data.describe() == phrase


def test_arrays_of_a_file_name_it(tmp_path):
    np.savez(tmp_path / "wine.npz", x=np.zeros((4, 2)), y=np.zeros(4))
    assert Arrays.load("wine.npz", tmp_path).describe() == "4 samples of 2 inputs and one target, from wine.npz"


@pytest.mark.parametrize(
    ("optimizer", "phrase"),
    [
        (GD(0.1, weight_decay=0.01), "gradient descent, learning rate 0.1, weight decay 0.01"),
        (
            GD(0.1, schedule=Cosine(1000)),
            "gradient descent, learning rate 0.1 (down to 0 of it along half a cosine within 1000 steps)",
        ),
        (
            Adam(1e-3, b1=0.8, eps=1e-30, weight_decay=0.1, schedule=Warmup(10)),
            "Adam, learning rate 0.001 (linear warm-up within 10 steps), eps 1e-30, b1 0.8, b2 0.999, weight decay 0.1",
        ),
        (
            SignGD(1e-5, schedule=StepDecay((10, 20, 30))),
            "sign descent, learning rate 1e-05 (times 0.1 at each of the steps 10, 20 and 30)",
        ),
        (SignGD(1e-5, schedule=StepDecay((10,), 0.5)), "sign descent, learning rate 1e-05 (times 0.5 at step 10)"),
        (SignGD(1e-5, schedule=StepDecay(())), "sign descent, learning rate 1e-05"),
        (
            Momentum(0.1, 0.8, nesterov=True, schedule=Product((Warmup(5), Cosine(9)))),
            "gradient descent, learning rate 0.1 (linear warm-up within 5 steps; down to 0 of it along half a cosine "
            "within 9 steps), Nesterov momentum 0.8",
        ),
        (RMSprop(1e-3, weight_decay=0.1), "RMSprop, learning rate 0.001, decay 0.99, eps 1e-08, weight decay 0.1"),
        (GD(0.1, clip=1.0), "gradient descent, learning rate 0.1, gradients clipped to norm 1"),
        (NormalisedGD(1e-5), "neuron-normalised gradient descent, learning rate 1e-05"),
        (Muon(0.02, momentum=0.9, nesterov=False), "Muon, learning rate 0.02, momentum 0.9, eps 1e-08"),
        (GradientFlow(2), "gradient flow, time 2 a step, rtol 1e-08"),
        (
            GradientFlow(0.1, 0.5, rtol=1e-4, atol=1e-12, most_steps=500),
            "gradient flow to L/L0 = 0.5, time 0.1 a step, rtol 0.0001, atol 1e-12, "
            "at most 500 integrator steps between records",
        ),
    ],
)
def test_optimizers(optimizer, phrase):
    assert optimizer.describe() == phrase


@pytest.mark.parametrize(
    ("loss", "phrase"),
    [
        (Loss("mse", "sum"), "half the squared error, summed over the samples"),
        (Loss("cross_entropy", "sum"), "cross-entropy, summed over the samples"),
    ],
)
def test_losses(loss, phrase):
    assert loss.describe() == phrase


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_plain_precisions_are_called_by_their_names(dtype):
    experiment = Experiment(Dense((1, 4, 1)), Init(Normal(0.1)), two_waves(), GD(0.1), 9, dtype=dtype)
    assert experiment.describe()["precision"] == dtype


def test_an_experiment_that_has_no_fingerprint_is_described():
    data = sine_sum(1, 2, 0, dim=2, n=9, low=0, high=1)
    experiment = Experiment(Dense((2, 4, 1), lambda x: x), Init(Normal(0.1)), data, GD(0.1), 9)
    assert experiment.describe()["network"] == "2-4-1, own function, no output bias"
