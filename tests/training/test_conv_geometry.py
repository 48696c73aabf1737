"""Stride, padding, pooling, kernels by layer and one dimension: against PyTorch's own functions, and their theory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    At,
    Conv,
    Every,
    Experiment,
    Expression,
    GradientFlow,
    Init,
    InputError,
    Loss,
    Model,
    Normal,
    find_lines,
    reduce,
    train,
)
from condensation.derivatives import hessian, jacobian, ntk
from condensation.prediction import predict
from condensation.theory import KernelDynamics, patch_matrix
from condensation.training._need import need_of

FUNCTIONS = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}
SAMPLES = 7

NETWORKS = {
    "stride": Conv((2, 9, 8), (3,), 3, 2, stride=2),
    "stride and padding": Conv((2, 9, 8), (3, 4), (3, 2), 2, stride=(2, 1), padding=1),
    "same": Conv((2, 7, 7), (3, 2), (4, 3), 2, padding="same", activation=("sigmoid", "tanh")),
    "same with stride": Conv((1, 8, 8), (3,), 3, 2, padding="same", stride=2),
    "max": Conv((2, 11, 10), (3, 4), 3, 2, (20,), "relu", pooling="max"),
    "max of all": Conv((1, 6, 6), (3,), 3, 2, pooling="max", pool_size="all"),
    "average": Conv((2, 8, 8), (3,), 2, 2, pooling="average", pool_size=3),
    "both": Conv((1, 9, 9), (3, 4), (3, 2), 2, padding=("same", 0), pooling=("max", "average"), pool_size=(2, "all")),
    "length": Conv((2, 9), (3, 4), (3, 2), 2, (20,), stride=(2, 1), padding=1, pooling="max", pool_size=(1, 2)),
    "vectors": Conv((5,), (4,), 3, 1, pooling="sum", pool_size="all", output_bias=True),
}


def of_layer(value: object, k: int) -> object:
    return value[k] if isinstance(value, tuple) else value


def torch_outputs(network: Conv, given: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The network by PyTorch's functions alone."""
    flat = len(network.image) < 3
    h = x[:, None] if len(network.image) == 1 else x
    for k in range(len(network.channels)):
        m, s, around = (of_layer(v, k) for v in (network.kernel, network.stride or 1, network.padding))
        before, behind = ((m - 1) // 2, m // 2) if around == "same" else (around, around)
        h = F.pad(h, (before, behind) if flat else (before, behind) * 2)
        h = (F.conv1d if flat else F.conv2d)(h, given[f"conv{k + 1}.weight"], given[f"conv{k + 1}.bias"], stride=s)
        h = FUNCTIONS[of_layer(network.activation, k)](h)
        pooling, size = (of_layer(v, k) for v in (network.pooling, network.pool_size))
        if pooling is None or size == 1:
            continue
        size = tuple(h.shape[2:]) if size == "all" else (size or 2,) * (h.ndim - 2)
        largest, mean = (F.max_pool1d, F.avg_pool1d) if flat else (F.max_pool2d, F.avg_pool2d)
        h = (largest if pooling == "max" else mean)(h, size) * (np.prod(size) if pooling == "sum" else 1)
    h = h.flatten(1)
    for k in range(len(network.hidden)):
        h = torch.relu(F.linear(h, given[f"dense{k + 1}.weight"], given[f"dense{k + 1}.bias"]))
    return F.linear(h, given["output.weight"], given.get("output.bias"))


def samples(network: Conv, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng(seed)
    return stream.normal(size=(SAMPLES, *network.image)), stream.normal(size=(SAMPLES, network.outputs))


def leaves(parameters: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=True) for name, value in parameters.items()}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_and_gradients_are_pytorchs(name):
    network = NETWORKS[name]
    x, y = samples(network)
    parameters = Init(Normal(0.5)).draw(network, np.random.default_rng(0))
    theirs = leaves(parameters)
    outputs = torch_outputs(network, theirs, torch.tensor(x))
    (outputs - torch.tensor(y)).square().sum().backward()
    with jax.enable_x64(True):

        def ours(values):
            found = network.assemble(values)(x)
            return jnp.sum((found - y) ** 2), found

        (_, found), slope = jax.jit(jax.value_and_grad(ours, has_aux=True))(parameters)
        arranged = network.assemble(parameters)(network.arrange(x))
    np.testing.assert_allclose(found, outputs.detach().numpy(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(arranged, found, rtol=0, atol=1e-12)
    for part, value in theirs.items():
        np.testing.assert_allclose(slope[part], value.grad.numpy(), rtol=0, atol=1e-11, err_msg=part)
    assert (
        network.sides()[-1][0] * network.sides()[-1][1] * network.channels[-1]
        == (network.layers[len(network.channels)].weight[1])
    )


@pytest.mark.parametrize(
    ("name", "optimizer", "batch"),
    [("both", Adam(1e-2), None), ("length", GD(0.1), None), ("stride and padding", GD(0.1), 7)],
)
def test_three_steps_are_pytorchs(name, optimizer, batch):
    """A batch of all samples in another order is the same step."""
    network = NETWORKS[name]
    x, y = samples(network)
    experiment = Experiment(network, Init(Normal(0.5)), Arrays(x, y), optimizer, 3, save=At((0, 3)), batch_size=batch)
    ours = train(experiment, 1)
    theirs = leaves(ours.parameters_at(0, 0))
    make = torch.optim.Adam if isinstance(optimizer, Adam) else torch.optim.SGD
    steps = make(theirs.values(), optimizer.learning_rate)
    for _ in range(3):
        steps.zero_grad()
        ((torch_outputs(network, theirs, torch.tensor(x)) - torch.tensor(y)).square().sum() / 2 / SAMPLES).backward()
        steps.step()
    for part, value in theirs.items():
        assert np.abs(value.detach().numpy() - ours.parameters_at(0, 0)[part]).max() > 1e-4
        np.testing.assert_allclose(ours.parameters_at(3, 0)[part], value.detach().numpy(), rtol=0, atol=1e-12)


def test_second_derivatives_go_through_the_largest_value():
    network = NETWORKS["max of all"]
    x, y = samples(network)
    model = Model(network, Init(Normal(0.5)).draw(network, np.random.default_rng(0)))
    matrix = hessian(model, x, y)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    theirs = leaves(model.parameters)
    loss = (torch_outputs(network, theirs, torch.tensor(x)) - torch.tensor(y)).square().sum() / 2 / SAMPLES
    first = torch.autograd.grad(loss, [theirs["conv1.bias"]], create_graph=True)[0]
    second = torch.autograd.grad(first[0], [theirs["conv1.bias"]])[0].numpy()
    place = model.parameters["conv1.weight"].size
    np.testing.assert_allclose(matrix[place, place : place + 3], second, atol=1e-12)
    flat = np.concatenate([part.reshape(SAMPLES * 2, -1) for part in jacobian(model, x).values()], axis=1)
    np.testing.assert_allclose(ntk(model, x).reshape(SAMPLES * 2, -1), flat @ flat.T, atol=1e-11)


LINEAR = [  # networks whose filters have a matrix Z
    Conv((2, 7, 6), (4,), 3, 2, stride=2, padding=1),
    Conv((2, 7, 6), (4,), 2, 2, padding="same", pooling="average", pool_size=2),
    Conv((2, 8), (4,), 3, 2, stride=2, pooling="sum", pool_size=2),
    Conv((6,), (4,), 3, 1, pooling="sum", pool_size="all"),
]


@pytest.mark.parametrize("network", LINEAR, ids=lambda network: network.describe())
def test_z_is_the_velocity_at_small_weights(network):
    x, y = samples(network)
    start = Init(Normal(1e-7)).draw(network, np.random.default_rng(1))
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(lambda p: Loss()(network.assemble(p)(x), jnp.asarray(y))))(start)
    laid = {"padding": network.padding, "stride": network.stride or 1}
    pooled = {"pooling": network.pooling, "pool_size": network.pool_size}
    theory = KernelDynamics.of(x, y, network.kernel, **laid, **pooled)
    filters = np.c_[start["conv1.weight"].reshape(4, -1), start["conv1.bias"]]
    moving = -np.c_[np.asarray(slope["conv1.weight"]).reshape(4, -1), slope["conv1.bias"]]
    by_filter = [
        np.asarray(a).reshape(network.outputs, 4, -1).transpose(1, 0, 2).reshape(4, -1)
        for a in (start["output.weight"], slope["output.weight"])
    ]
    np.testing.assert_allclose(by_filter[0] @ theory.z, moving, atol=1e-6 * np.abs(moving).max())
    np.testing.assert_allclose(filters @ theory.z.T, -by_filter[1], atol=1e-6 * np.abs(by_filter[1]).max())
    experiment = Experiment(network, Init(Normal(1e-7)), Arrays(x, y), GD(0.1), 1)
    prediction = predict(experiment)["conv1"]
    found = prediction.directions.directions[prediction.directions.attracts][0]
    assert abs(found @ theory.v1) == pytest.approx(1, abs=1e-6)


def shared() -> Experiment:
    """One kernel over five coordinates, the same at its three places, which are summed."""
    terms = (f"tanh(0.6*x{s} + 0.8*x{s + 1} + x{s + 2})" for s in (1, 2, 3))
    data = Expression(" + ".join(terms), dim=5, n=60, low=-1, high=1)
    network = Conv((5,), (20,), 3, 1, pooling="sum", pool_size="all")
    return Experiment(network, Init(Normal(1e-4)), data, GradientFlow(0.1), 100, save=Every(10))


def test_shared_kernels_condense_on_the_predicted_line():
    experiment = shared()
    trajectory = train(experiment, 1)
    step = int(trajectory.saved[trajectory.loss[0][trajectory.saved.tolist()] > 0.9 * trajectory.loss[0, 0]][-1])
    filters = trajectory.weights("conv1", step, 0, view="filter")
    lines = find_lines(filters)
    assert (lines.count, find_lines(trajectory.weights("conv1", 0, 0, view="filter")).condensed) == (1, False)
    v1 = KernelDynamics.of(*trajectory.data(0), 3, pooling="sum", pool_size="all").v1
    assert np.median(np.abs(filters @ v1) / np.linalg.norm(filters, axis=1)) > 0.99
    np.testing.assert_allclose(trajectory.weights("conv1", step, 0), filters[:, :-1])  # kernels: one input channel


def test_it_comes_back_from_toml_with_its_fingerprint():
    for experiment in (shared(), shared().replace(**{"network": NETWORKS["both"], "data.dim": 5})):
        again = Experiment.from_toml(experiment.to_toml())
        assert again == experiment
        assert again.fingerprint() == experiment.fingerprint()
    prints = {Experiment.fingerprint(shared().replace(**{"network.pooling": how})) for how in ("max", "sum", "average")}
    assert len(prints) == 3


def test_a_network_as_before_keeps_its_fingerprint():
    """No field that was added is in it."""
    data = Arrays(np.ones((2, 1, 5, 5)), np.ones(2))
    experiment = Experiment(Conv((1, 5, 5), (2,), 3, 1), Init(Normal(0.1)), data, GD(0.1), 5)
    assert experiment.fingerprint() == "abea9a7133cab5f1414c821204197e4ebd57f64156f8ea58ebc194a18e0fd6d0"


@pytest.mark.parametrize(("pooling", "activation"), [("sum", "sigmoid"), ("max", "tanh"), ("max", "x_tanh")])
def test_units_are_merged_exactly_behind_pooling(pooling, activation):
    """Pairs of opposite filters: behind a maximum two odd units of opposite sign are not one."""
    network = Conv((1, 6, 6), (4,), 3, 2, activation=activation, pooling=pooling)
    parameters = Init(Normal(0.5)).draw(network, np.random.default_rng(2))
    signs = np.ones(4) if activation == "sigmoid" else np.array([1, 1, -1, -1])
    for name in ("conv1.weight", "conv1.bias"):
        parameters[name][:] = np.stack([sign * parameters[name][0] for sign in signs])
    model = Model(network, parameters)
    x, _ = samples(network)
    reduced = reduce(model, x)
    left = {"sigmoid": 1, "tanh": 2, "x_tanh": 1}[activation]
    assert reduced.model.network.channels == (left,)
    np.testing.assert_allclose(reduced.model(x), model(x), atol=1e-12)


def test_the_memory_that_pooled_layers_take_is_counted():
    plain, pooled = (Conv((1, 8, 8), (4,), 3, 1, pooling=pooling) for pooling in (None, "max"))
    assert (plain.passed_on, pooled.passed_on) == (4 * 36 + 1, 4 * (36 + 9) + 1)
    needs = [
        need_of(Experiment(network, Init(Normal(1.0)), Arrays(np.ones((5, 1, 8, 8)), np.ones(5)), GD(1), 1))
        for network in (plain, pooled)
    ]
    assert needs[0].weights - needs[1].weights == 8 * 4 * (36 - 9)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kernel": 9}, "one layer of kernels of length 9 leaves nothing of a sample of length 5"),
        ({"pooling": "max", "pool_size": 4}, "kernels of length 3, max pooling of 4 leaves nothing of a sample"),
        ({"kernel": 9, "pooling": "max", "pool_size": "all"}, "leaves nothing"),
        ({"kernel": (3, 2)}, "2 kernels were given for one convolution layer: give one for all, or one for each"),
        ({"stride": (1, 1)}, "2 strides were given for one convolution layer"),
        ({"padding": (1, 1)}, "2 values of padding were given for one convolution layer"),
        ({"stride": 0}, "stride must be a whole number of at least 1, not 0"),
        ({"padding": "full"}, "unknown padding 'full'; known: same, valid"),
        ({"padding": -1}, "padding must be a whole number of at least 0, not -1"),
        ({"pooling": "mean"}, "unknown pooling 'mean'"),
        ({"pool_size": 2}, "pool_size = 2 needs a pooling, one of max, average, sum"),
        ({"pooling": "max", "pool_size": "whole"}, "unknown pool size 'whole'; known: all"),
        ({"image": (1, 1, 5, 5)}, "image is channels, height and width, or channels and length, or a length"),
        ({"image": ()}, "image is channels, height and width"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(given, said):
    with pytest.raises(InputError, match=said):
        Conv(**{"image": (5,), "channels": (2,), "kernel": 3, "outputs": 1} | given)


def test_where_there_is_no_theory_a_sentence_says_so():
    x, y = samples(NETWORKS["max of all"])
    with pytest.raises(InputError, match="no matrix Z behind max pooling, which is not linear: average or sum has one"):
        patch_matrix(x, y, 3, pooling="max")
    experiment = Experiment(NETWORKS["max of all"], Init(Normal(0.1)), Arrays(x, y), GD(0.1), 1)
    with pytest.raises(InputError, match="no matrix Z behind max pooling"):
        predict(experiment)
    with pytest.raises(InputError, match="a window of 9 is larger than what the kernels give"):
        patch_matrix(x, y, 3, pooling="sum", pool_size=9)
    with pytest.raises(InputError, match="an image of 6 x 6 is smaller than a kernel of side 7"):
        patch_matrix(x, y, 7)
