"""The settings of the papers' experiments and of the examples, in words."""

from pathlib import Path

import pytest

from condensation import Experiment
from condensation.losses import Loss
from condensation.papers.cnn import experiments as cnn
from condensation.papers.fc import experiments as fc

EXAMPLES = Path(__file__).parents[2] / "examples"
FIG3 = {
    "network": "5-50-1, tanh, no output bias",
    "initialization": "N(0, 0.005²)",
    "data": "80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]",
    "optimizer": "Adam, learning rate 0.001, eps 1e-08",
    "batch": "full batch",
    "steps": "600",
    "loss": "1/(2n) sum of squares",
    "precision": "float64",
}
SIX = "3-18-18-18-18-18-1, activations by layer (x² tanh x, x tanh x, sigmoid, tanh, softplus)"
RESNET18 = "the convolution part of ResNet18 (relu, batch norm)"
SMALL_RESNET = "one stage of one residual block, 16 channels, 7 x 7 stem of stride 2 (relu, batch norm)"
FIG2 = {
    "network": f"{RESNET18}; dense 1024-1024 (tanh); 10 outputs, no output bias",
    "initialization": "convolutions Glorot normal; dense layers N(0, 1/m_out³)",
    "data": "all 50,000 images of CIFAR-10, pixels in [-1, 1], one-hot classes",
    "optimizer": "Adam, learning rate 3e-08, eps 1e-08",
    "batch": "batches of 128",
    "steps": "7800",
    "loss": "cross-entropy, mean over the samples",
    "precision": "float32, products in TF32 on a GPU",
}
ALL_TESTS = "all 10,000 test images of CIFAR-10, pixels in [-1, 1], one-hot classes"
DESCENT = {
    "network": "one convolution layer of 32 channels, 3 x 3 kernels, tanh; 10 outputs, no output bias",
    "initialization": "convolution N(0, σ²) with σ = ((c_in + c_out)/2 · m²)^-4; output layer N(0, 0.0001²)",
    "data": "500 random images of CIFAR-10, pixels in [-1, 1], one-hot classes",
    "optimizer": "gradient descent, learning rate 5e-06",
    "batch": "full batch",
    "steps": "4500",
    "loss": "half the squared error after softmax, summed over the samples",
    "precision": "float32, products in TF32 on a GPU",
}
DEEP = {
    "network": "3 convolution layers of 32 channels, 5 x 5 kernels, tanh; dense 1024 (relu); "
    "10 outputs, no output bias",
    "initialization": "convolutions N(0, σ²) with σ = ((c_in + c_out)/2 · m²)^-2; dense layers N(0, 0.0001²)",
    "data": "500 random images of CIFAR-10, pixels in [-1, 1], one-hot classes",
    "optimizer": "Adam, learning rate 2e-06, eps 1e-08",
    "batch": "full batch",
    "steps": "300",
    "loss": "cross-entropy, mean over the samples",
    "precision": "float32, products in TF32 on a GPU",
}
QUICK_DEEP = DEEP | {
    "network": "3 convolution layers of 8 channels, 5 x 5 kernels, tanh; dense 128 (relu); 10 outputs, no output bias",
    "data": "80 random images of CIFAR-10, pixels in [-1, 1], one-hot classes",
    "optimizer": "Adam, learning rate 0.0003, eps 1e-08",
    "steps": "20",
}


@pytest.mark.parametrize(
    ("experiment", "settings"),
    [
        (fc.fig3("tanh"), FIG3),
        (
            fc.fig3("softplus"),
            FIG3
            | {
                "network": "5-50-1, softplus, no output bias",
                "optimizer": "Adam, learning rate 0.00025, eps 1e-08",
            },
        ),
        (
            fc.low_frequency("tanh"),
            FIG3 | {"data": "80 points of sum 3.5 sin(2 x_k + 1), x_k uniform on [-4, 2]"},
        ),
        (
            fc.six_layers(residual=True),
            FIG3
            | {
                "network": f"{SIX}, residual connections, no output bias",
                "initialization": "N(0, 0.01²)",
                "data": "80 points of sum 4 sin(12 x_k + 1), x_k uniform on [-4, 2]",
                "optimizer": "Adam, learning rate 4e-05, eps 1e-08",
                "steps": "1400",
            },
        ),
        (
            fc.one_input("x2_tanh"),
            FIG3
            | {
                "network": "1-100-1, x² tanh x, no output bias",
                "data": "40 points of sin(3x) + 0.5 sin(6x), x uniform on [-1, 1.5]",
                "optimizer": "Adam, learning rate 0.0005, eps 1e-08",
                "steps": "1000",
            },
        ),
        (fc.resnet("tanh", "paper"), FIG2),
        (
            fc.resnet("x_tanh", "quick", "cifar100"),
            FIG2
            | {
                "network": f"{SMALL_RESNET}; dense 128-128 (x tanh x); 100 outputs, no output bias",
                "data": "1,000 random balanced images of CIFAR-100, pixels in [-1, 1], one-hot classes",
                "optimizer": "Adam, learning rate 0.001, eps 1e-08",
                "batch": "batches of 64",
                "steps": "64",
            },
        ),
        (
            fc.resnet_from("common", "paper"),
            FIG2
            | {
                "initialization": "Glorot normal, zero biases",
                "test data": ALL_TESTS,
                "optimizer": "Adam, learning rate 0.001, eps 1e-08",
            },
        ),
        (
            fc.resnet_from("small", "quick"),
            FIG2
            | {
                "network": f"{SMALL_RESNET}; dense 128-128 (tanh); 10 outputs, no output bias",
                "data": "2,000 random balanced images of CIFAR-10, pixels in [-1, 1], one-hot classes",
                "test data": "1,000 random balanced test images of CIFAR-10, pixels in [-1, 1], one-hot classes",
                "optimizer": "Adam, learning rate 0.003, eps 1e-08",
                "batch": "batches of 64",
                "steps": "200",
            },
        ),
        (cnn.descent("paper"), DESCENT),
        (
            cnn.descent("quick", "mnist", 320),
            DESCENT
            | {
                "network": "one convolution layer of 320 channels, 3 x 3 kernels, tanh; 10 outputs, no output bias",
                "data": "80 random images of MNIST, pixels in [-1, 1], one-hot classes",
                "optimizer": "gradient descent, learning rate 0.001875",
                "steps": "33",
            },
        ),
        (cnn.deep("paper"), DEEP),
        (cnn.deep("quick"), QUICK_DEEP),
        (
            cnn.deep("paper", loss=Loss("softmax_mse")),
            DEEP | {"steps": "600", "loss": "half the squared error after softmax, mean over the samples"},
        ),
        (cnn.deep_to_the_end("paper"), DEEP | {"test data": ALL_TESTS, "steps": "10000"}),
        (
            cnn.deep_to_the_end("quick"),
            QUICK_DEEP
            | {
                "test data": "300 random test images of CIFAR-10, pixels in [-1, 1], one-hot classes",
                "steps": "230",
            },
        ),
        (
            cnn.shallow("paper", "sigmoid"),
            DEEP
            | {
                "network": "one convolution layer of 32 channels, 5 x 5 kernels, sigmoid; dense 1024 (relu); "
                "10 outputs, no output bias",
                "initialization": DEEP["initialization"].replace("convolutions", "convolution"),
                "optimizer": "Adam, learning rate 5e-07, eps 1e-08",
                "steps": "5000",
            },
        ),
        (
            cnn.shallow("quick", "tanh", "mnist"),
            DEEP
            | {
                "network": "one convolution layer of 16 channels, 5 x 5 kernels, tanh; dense 128 (relu); "
                "10 outputs, no output bias",
                "initialization": DEEP["initialization"].replace("convolutions", "convolution"),
                "data": "120 random images of MNIST, pixels in [-1, 1], one-hot classes",
                "optimizer": "Adam, learning rate 2.5e-05, eps 1e-08",
                "steps": "40",
            },
        ),
        (
            cnn.balanced(cnn.deep("paper")),
            DEEP | {"data": "500 random balanced images of CIFAR-10, pixels in [-1, 1], one-hot classes"},
        ),
        (Experiment.load(EXAMPLES / "tanh.toml"), FIG3 | {"steps": "500"}),
        (
            Experiment.load(EXAMPLES / "flow.toml"),
            FIG3
            | {
                "initialization": "N(0, (5e-05)²)",
                "optimizer": "gradient flow to L/L0 = 0.99, time 0.05 a step, rtol 1e-08",
                "steps": "200",
            },
        ),
        (Experiment.load(EXAMPLES / "fc-fig2.toml"), FIG2 | {"test data": ALL_TESTS}),
    ],
)
def test_experiments(experiment, settings):
    assert experiment.describe() == settings


def test_the_settings_come_in_a_fixed_order():
    names = ["network", "initialization", "data", "test data", "optimizer", "batch", "steps", "loss", "precision"]
    assert list(fc.resnet_from("common", "paper").describe()) == names
