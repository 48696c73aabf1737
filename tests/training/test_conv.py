"""Convolutional networks against PyTorch, and their units."""

import jax
import numpy as np
import pytest
import torch

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    ChannelPower,
    Conv,
    Evenly,
    Experiment,
    Glorot,
    Init,
    InputError,
    Loss,
    Normal,
    train,
)
from condensation import _device as device
from condensation.networks import _arrangement
from condensation.training._need import need_of

FUNCTIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "x_tanh": lambda z: z * torch.tanh(z)}


class Network(torch.nn.Module):
    def __init__(self, network: Conv) -> None:
        super().__init__()
        ins = (network.image[0], *network.channels)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv2d(ins[k], ins[k + 1], network.kernel, padding=network.padding, dtype=torch.float64)
            for k in range(len(network.channels))
        )
        dense = [layer for layer in network.layers if not layer.is_convolution]
        self.dense = torch.nn.ModuleList(
            torch.nn.Linear(layer.weight[1], layer.weight[0], bias=layer.has_bias, dtype=torch.float64)
            for layer in dense
        )
        self.functions = [FUNCTIONS[name] for name in network.activations]

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        functions = iter(self.functions)
        for layer in self.convolutions:
            h = next(functions)(layer(h))
        h = h.flatten(1)
        for layer in self.dense[:-1]:
            h = next(functions)(layer(h))
        return self.dense[-1](h)

    def layers(self):
        return [*self.convolutions, *self.dense]


def images(n: int = 12, channels: int = 2, side: int = 8) -> Arrays:
    stream = np.random.default_rng(3)
    return Arrays(stream.normal(size=(n, channels, side, side)), np.eye(3)[stream.integers(3, size=n)])


@pytest.mark.parametrize("hidden", [(), (20,)])  # 12 images: with 3 outputs the weights are turned, with 20 the images
@pytest.mark.parametrize("channels", [(4,), (4, 5)])
@pytest.mark.parametrize("padding", [0, 1])
def test_patches_are_images_to_a_network(hidden, channels, padding):
    network = Conv((2, 8, 8), channels, 3, 3, hidden, padding=padding)
    x = images().x
    parameters = Init(Glorot()).draw(network, np.random.default_rng(0))
    arranged = network.arrange(x)
    assert arranged.values.shape == (12, *network.sides()[1], 2 * 9 + 1)
    with jax.enable_x64(True):
        model = network.assemble(parameters)
        expected = model(x)
        np.testing.assert_allclose(model(arranged), expected, rtol=1e-12, atol=1e-14)
    theirs = Network(network)
    theirs.load_state_dict(
        {
            f"{kind}.{k}.{part}": torch.tensor(parameters[f"{layer.name}.{part}"])
            for kind, convolution in (("convolutions", True), ("dense", False))
            for k, layer in enumerate(one for one in network.layers if one.is_convolution == convolution)
            for part in ("weight", "bias")[: 1 + layer.has_bias]
        }
    )
    np.testing.assert_allclose(theirs(torch.tensor(x)).detach().numpy(), expected, rtol=1e-9, atol=1e-12)


def test_large_sets_of_images_are_not_made_patches(monkeypatch):
    network = Conv((2, 8, 8), (4,), 3, 3)
    chosen = Experiment(network, Init(Glorot()), images(), Adam(1e-2), 20, save=Evenly(2), dtype="float64")
    small, need = train(chosen, 1), need_of(chosen)
    monkeypatch.setattr(_arrangement, "PATCH_BYTES", 12 * 36 * 19 * 8 - 1)
    assert network.arrange(chosen.data.x) is chosen.data.x
    assert need.working - need_of(chosen).working == 12 * 36 * 19 * 8
    large = train(chosen, 1)
    for name, value in small.parameters_at(20, 0).items():
        np.testing.assert_allclose(large.parameters_at(20, 0)[name], value, rtol=1e-9, atol=1e-12)


def compare(experiment: Experiment, tolerance: float) -> None:
    ours = train(experiment, 1)
    network = Network(experiment.network)
    for shape, layer in zip(experiment.network.layers, network.layers(), strict=True):
        layer.weight.data = torch.tensor(ours.parameters_at(0, 0)[f"{shape.name}.weight"])
        if shape.has_bias:
            layer.bias.data = torch.tensor(ours.parameters_at(0, 0)[f"{shape.name}.bias"])
    rate = experiment.optimizer.learning_rate
    make = torch.optim.Adam if isinstance(experiment.optimizer, Adam) else torch.optim.SGD
    optimizer = make(network.parameters(), rate)
    x, y = (torch.tensor(value) for value in ours.data(0))
    for _ in range(experiment.steps):
        optimizer.zero_grad()
        f = network(x)
        if experiment.loss.name == "cross_entropy":
            loss = torch.nn.functional.cross_entropy(f, y, reduction=experiment.loss.reduction)
        else:
            f = f.softmax(1) if experiment.loss.name == "softmax_mse" else f
            loss = (f - y).square().sum() / 2 / (len(y) if experiment.loss.reduction == "mean" else 1)
        loss.backward()
        optimizer.step()
    moved = 0.0
    for shape, layer in zip(experiment.network.layers, network.layers(), strict=True):
        found, start = (ours.parameters_at(step, 0)[f"{shape.name}.weight"] for step in (experiment.steps, 0))
        moved = max(moved, np.abs(found - start).max())
        np.testing.assert_allclose(found, layer.weight.detach().numpy(), rtol=0, atol=tolerance, err_msg=shape.name)
    assert moved > 1e3 * tolerance


NETWORKS = [
    Conv((2, 8, 8), channels=(4,), kernel=3, outputs=3),
    Conv((2, 8, 8), (4, 5), 3, 3, hidden=(7, 6), activation=("tanh", "x_tanh"), output_bias=True),
    Conv((2, 8, 8), (4,), 5, 3, hidden=(9,), activation="sigmoid", dense_activation="tanh", padding=2),
]


@pytest.mark.parametrize("network", NETWORKS, ids=["plain", "deep", "padded"])
@pytest.mark.parametrize("optimizer", [GD(0.1), Adam(0.01)], ids=["gd", "adam"])
def test_every_convolutional_network_after_one_step(network, optimizer):
    compare(Experiment(network, Init(Normal(0.3)), images(), optimizer, 1), 1e-12)


@pytest.mark.parametrize("name", ["mse", "softmax_mse", "cross_entropy"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_every_loss_after_one_step(name, reduction):
    compare(Experiment(NETWORKS[0], Init(Glorot()), images(), GD(0.1), 1, Loss(name, reduction)), 1e-12)


@pytest.mark.parametrize("optimizer", [GD(0.1), Adam(1e-3)], ids=["gd", "adam"])
def test_the_two_layer_network_after_50_steps(optimizer):
    start = Init(Normal(0.1), convolution=ChannelPower(0.5))
    compare(Experiment(NETWORKS[0], start, images(), optimizer, 50, Loss("cross_entropy"), save=Evenly(2)), 1e-11)


def test_a_compiler_that_does_not_know_the_options_compiles_without_them(monkeypatch):
    """Options come and go with the versions of XLA."""
    monkeypatch.setattr(device, "CPU_OPTIONS", {"xla_cpu_option_of_another_version": ""})
    device._known_options.cache_clear()
    try:
        assert device.convolution_options() is None
        compare(Experiment(Conv((2, 8, 8), (3,), 3, 3), Init(Normal(0.3)), images(), GD(0.1), 1), 1e-12)
    finally:
        device._known_options.cache_clear()


def test_the_start_of_convolutions_has_its_own_law():
    network = Conv((3, 32, 32), channels=(32, 64), kernel=5, outputs=10, hidden=(64,))
    drawn = Init(Normal(1e-4), convolution=ChannelPower(2)).draw(network, np.random.default_rng(0))
    stds = {name: np.std(value) for name, value in drawn.items()}
    assert stds["conv1.weight"] == pytest.approx((17.5 * 25) ** -2, rel=0.05)
    assert stds["conv2.weight"] == pytest.approx((48 * 25) ** -2, rel=0.05)
    assert stds["dense1.weight"] == pytest.approx(1e-4, rel=0.05)
    assert stds["output.weight"] == pytest.approx(1e-4, rel=0.1)
    glorot = Init(Glorot()).draw(network, np.random.default_rng(0))
    assert np.std(glorot["conv2.weight"]) == pytest.approx((2 / (96 * 25)) ** 0.5, rel=0.02)


def test_kernels_and_filters_are_two_views():
    experiment = Experiment(NETWORKS[1], Init(Normal(0.3)), images(), GD(0.1), 1)
    trajectory = train(experiment, 2)
    kernels, filters = (trajectory.weights("conv1", 0, 1, view=view) for view in ("kernel", "filter"))
    assert kernels.shape == (4 * 2, 9)
    assert filters.shape == (4, 2 * 9 + 1)
    weight = trajectory.parameters_at(0, 1)["conv1.weight"]
    np.testing.assert_array_equal(kernels[2 * 3 + 1], weight[3, 1].ravel())
    np.testing.assert_array_equal(filters[3, :-1], weight[3].ravel())
    assert filters[3, -1] == trajectory.parameters_at(0, 1)["conv1.bias"][3]
    assert trajectory.history("conv2").shape == (2, 2, 5 * 4, 9)


def test_accuracy_is_the_share_of_right_classes():
    experiment = Experiment(NETWORKS[0], Init(Normal(0.3)), images(40), Adam(0.01), 60, Loss("cross_entropy"))
    trajectory = train(experiment, 1)
    x, y = trajectory.data(0)
    for step in (0, 60):
        right = trajectory.output(x, step, 0).argmax(1) == y.argmax(1)
        assert trajectory.accuracy[0, trajectory.recorded == step][0] == pytest.approx(right.mean())
    assert trajectory.accuracy[0, -1] > trajectory.accuracy[0, 0]


def test_what_is_recorded_does_not_change_a_convolutional_run():
    experiment = Experiment(NETWORKS[0], Init(Normal(0.3)), images(), Adam(0.01), 30, save=Evenly(2), record=Evenly(2))
    plain, dense = train(experiment, 2), train(experiment.replace(record=Evenly(31), save=Evenly(11)), 2)
    np.testing.assert_array_equal(plain.weights("conv1", 30), dense.weights("conv1", 30))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Conv((3, 4, 4), channels=(2, 2), kernel=3, outputs=1), "leave nothing of an image of 4 x 4"),
        (lambda: Conv((3, 8, 8), channels=(), kernel=3, outputs=1), "at least one convolution layer"),
        (lambda: Conv((3, 8, 8), channels=(2,), kernel=3, outputs=1, dropout=1.0), "dropout is a share"),
        (lambda: Init(ChannelPower(2)).draw(NETWORKS[0], np.random.default_rng(0)), "not for output"),
        (lambda: train(Experiment(NETWORKS[0], Init(Normal(1.0)), images(side=9), GD(1.0), 1), 1), r"\(2, 9, 9\)"),
    ],
)
def test_a_convolutional_network_that_cannot_be_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()
