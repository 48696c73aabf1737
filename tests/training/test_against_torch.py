"""The same start and data must give the same weights as an independent PyTorch loop."""

import numpy as np
import pytest
import torch

from condensation import (  # fmt: skip
    GD,
    Adam,
    AdamW,
    Arrays,
    At,
    Dense,
    Experiment,
    FanOutPower,
    Glorot,
    Init,
    Loss,
    Momentum,
    Normal,
    RMSprop,
    sine_sum,
    train,
)

ACTIVATIONS = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "softplus": torch.nn.functional.softplus, "relu": torch.relu,
    "leaky_relu": torch.nn.functional.leaky_relu, "gelu": torch.nn.functional.gelu, "swish": torch.nn.functional.silu,
    "silu": torch.nn.functional.silu, "linear": lambda z: z, "quadratic": torch.square,
    "x_tanh": lambda z: z * torch.tanh(z), "x2_tanh": lambda z: z**2 * torch.tanh(z),
}  # fmt: skip


class Network(torch.nn.Module):
    def __init__(self, network: Dense) -> None:
        super().__init__()
        self.activations, self.residual = network.activations, network.residual
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(layer.weight[1], layer.weight[0], bias=layer.has_bias, dtype=torch.float64)
            for layer in network.layers
        )

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        for k, (layer, name) in enumerate(zip(self.layers[:-1], self.activations, strict=True)):
            new = ACTIVATIONS[name](layer(h))
            h = new + h if self.residual and k else new
        return self.layers[-1](h)


def loss_of(loss: Loss, f: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if loss.name == "cross_entropy":
        return torch.nn.functional.cross_entropy(f, y, reduction=loss.reduction)
    difference = (f.softmax(1) if loss.name == "softmax_mse" else f) - y
    total = difference.square().sum() / 2
    return total / len(y) if loss.reduction == "mean" else total


def torch_run(experiment: Experiment, start: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray, steps: int):
    network = Network(experiment.network)
    names = [layer.name for layer in experiment.network.layers]
    for name, layer in zip(names, network.layers, strict=True):
        layer.weight.data = torch.tensor(start[f"{name}.weight"])
        if layer.bias is not None:
            layer.bias.data = torch.tensor(start[f"{name}.bias"])
    given = experiment.optimizer
    parameters, rate = network.parameters(), given.learning_rate
    match given:
        case GD():
            optimizer = torch.optim.SGD(parameters, rate)
        case Momentum():
            optimizer = torch.optim.SGD(parameters, rate, given.momentum, nesterov=given.nesterov)
        case RMSprop():
            optimizer = torch.optim.RMSprop(parameters, rate, given.decay, given.eps)
        case AdamW():
            kept = {} if given == AdamW(rate) else {"weight_decay": given.weight_decay, "eps": given.eps}
            optimizer = torch.optim.AdamW(parameters, rate, **kept)  # its own defaults
        case _:
            optimizer = torch.optim.Adam(parameters, rate, betas=(given.b1, given.b2), eps=given.eps)
    inputs, targets = torch.tensor(x), torch.tensor(y)
    loss = torch.tensor(0.0)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(experiment.loss, network(inputs), targets)
        loss.backward()
        optimizer.step()
    parameters = {}
    for name, layer in zip(names, network.layers, strict=True):
        parameters[f"{name}.weight"] = layer.weight.detach().numpy()
        if layer.bias is not None:
            parameters[f"{name}.bias"] = layer.bias.detach().numpy()
    return parameters, loss.item()


def compare(experiment: Experiment, steps: int, tolerance: float) -> None:
    ours = train(experiment, 1)
    theirs, last_loss = torch_run(experiment, ours.parameters_at(0, 0), *ours.data(0), steps)
    moved = max(np.abs(value - ours.parameters_at(0, 0)[name]).max() for name, value in theirs.items())
    assert moved > 1e3 * tolerance, "the comparison must see training"
    for name, value in theirs.items():
        np.testing.assert_allclose(ours.parameters_at(steps, 0)[name], value, rtol=0, atol=tolerance, err_msg=name)
    if steps == 1:
        assert ours.loss[0, 0] == pytest.approx(last_loss, rel=1e-12)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "optimizer",
    [
        *(GD(1e-2), Adam(1e-3), Adam(1e-3, b1=0.8, b2=0.99, eps=1e-4), RMSprop(1e-4, 0.9, 1e-4)),
        *(Momentum(1e-3), Momentum(1e-3, 0.5, nesterov=True), AdamW(1e-3), AdamW(1e-3, eps=1e-4, weight_decay=0.5)),
    ],
)
def test_the_two_layer_network_after_1000_steps(optimizer):
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    compare(Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), data, optimizer, 1000, save=At(())), 1000, 1e-9)


def test_rmsprop_with_its_own_eps():
    """Over longer times rounding grows: where gradients change signs each step is of full length."""
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    compare(Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), data, RMSprop(1e-4), 30, save=At(())), 30, 1e-11)


NETWORKS = [
    *(Dense((4, 9, 3), name) for name in ACTIVATIONS),
    Dense((4, 9, 3), "tanh", output_bias=True),
    Dense((4, 9, 3), "tanh", bias=False),
    Dense((4, 9, 8, 7, 3), ("x2_tanh", "x_tanh", "sigmoid")),
    Dense((4, 9, 9, 9, 9, 9, 3), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True),
]


def classes() -> Arrays:
    stream = np.random.default_rng(1)
    return Arrays(stream.normal(size=(20, 4)), np.eye(3)[stream.integers(3, size=20)])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: f"{n.widths}-{n.activation}")
@pytest.mark.parametrize("optimizer", [GD(0.1), Adam(1e-1)], ids=["gd", "adam"])
def test_every_network_after_one_step(network, optimizer):
    compare(Experiment(network, Init(Normal(0.5)), classes(), optimizer, 1), 1, 1e-12)


@pytest.mark.parametrize("name", ["mse", "softmax_mse", "cross_entropy"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("start", [Init(Glorot()), Init(FanOutPower(1.5), output=Normal(1.0))])
def test_every_loss_and_start_after_one_step(name, reduction, start):
    experiment = Experiment(Dense((4, 9, 3)), start, classes(), GD(1.0), 1, loss=Loss(name, reduction))
    compare(experiment, 1, 1e-12)


def test_the_six_layer_network_stays_near_for_300_steps():
    network = Dense((3, *[18] * 5, 1), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True)
    data = sine_sum(4, 12, 1, dim=3, n=80, low=-4, high=2)
    experiment = Experiment(network, Init(Normal(0.01)), data, Adam(4e-5, eps=1e-30), 300, save=At(()))
    compare(experiment, 300, 1e-10)
