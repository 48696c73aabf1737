"""Models as PyTorch modules and back: the same outputs and gradients, also after training there."""

import copy
import io
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

from condensation import Conv, Dense, Experiment, Init, InputError, Model, Normal, ResNet
from condensation.activations import ACTIVATIONS
from condensation.derivatives import gradient
from condensation.pytorch import from_torch, to_torch, units
from condensation.pytorch._activations import MODULES

pytestmark = pytest.mark.pytorch

NETWORKS = {
    "plain": Dense((3, 7, 2)),
    "layers differ": Dense((3, 7, 5, 1), ("x_tanh", "sigmoid"), output_bias=True),
    "residual": Dense((3, 6, 6, 6, 2), "x2_tanh", residual=True, bias=False),
    "concatenated": Dense((3, 4, 6, 5, 2), ("gelu", "softplus", "silu"), concatenated=True, output_bias=True),
    "dropout": Dense((3, 8, 8, 1), "relu", dropout=0.5),
    "convolutions": Conv((2, 6, 5), (3, 4), 3, 2, activation=("tanh", "x_tanh"), padding=1),
    "strides": Conv((2, 9, 8), (3, 2), (3, 2), 2, stride=(2, 1), padding=("same", 1), activation="gelu"),
    "even kernels": Conv((1, 6, 6), (2, 3), (4, 2), 1, padding="same"),
    "max": Conv((1, 9, 8), (3, 2), 2, 2, pooling="max", pool_size=(2, 1)),
    "average": Conv((1, 11, 13), (3, 2), 2, 2, pooling=("average", "sum"), pool_size=(3, 2)),
    "one dimension": Conv((2, 9), (3, 2), (3, 2), 2, pooling="sum", pool_size=("all", 1), padding="same"),
    "vectors": Conv((7,), (4,), 4, 1, stride=2, padding="same", pooling="sum", pool_size="all"),
    "convolutions, dense": Conv((1, 7, 7), (3,), 3, 2, hidden=(5, 4), dropout=0.2, output_bias=True),
    "resnet": ResNet((2, 9, 9), 3, hidden=(6,), channels=(3, 4), depth=1),
    "small stem": ResNet((1, 6, 6), 2, hidden=(5, 5), channels=(3, 4), stem="small", dropout=0.1, output_bias=True),
    "no batch norm": ResNet((1, 8, 8), 2, hidden=(), channels=(2,), depth=2, batch_norm=False),
}


def drawn(network, dtype="float64", seed=0) -> Model:
    """A model whose every number is drawn, statistics of batch norms too."""
    generator = np.random.default_rng(seed)
    shapes = {name: shape for layer in network.layers for name, shape in layer.parameters.items()}
    shapes |= {name: v.shape for norm in network.norms for name, v in (norm.parameters | norm.statistics).items()}
    values = {name: generator.normal(size=shape) for name, shape in shapes.items()}
    values |= {name: np.abs(value) + 0.5 for name, value in values.items() if name.endswith("variance")}
    return Model(network, {name: value.astype(dtype) for name, value in values.items()})


def samples(network, n=5, seed=1):
    return np.random.default_rng(seed).normal(size=(n, *network.input_shape))


def outputs(module: nn.Module, x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return module(torch.tensor(x, dtype=next(module.parameters()).dtype)).numpy()


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_the_module_has_the_same_outputs_and_comes_back_bit_for_bit(network):
    model = drawn(network)
    module, x = to_torch(model), samples(network)
    expected = model(x)
    np.testing.assert_allclose(outputs(module, x), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    back = from_torch(module)
    assert back.network == network
    assert {name: value.dtype for name, value in back.parameters.items()} == dict.fromkeys(model.parameters, np.float64)
    for name, value in model.parameters.items():
        assert np.array_equal(back.parameters[name], value), name


@pytest.mark.parametrize("name", ["layers differ", "concatenated", "convolutions", "resnet"])
def test_gradients_are_those_of_derivatives(name):
    model = drawn(NETWORKS[name])
    module, x = to_torch(model), samples(model.network)
    y = np.random.default_rng(2).normal(size=(len(x), model.network.outputs))
    (((module(torch.tensor(x)) - torch.tensor(y)) ** 2).sum() / (2 * len(x))).backward()
    expected, named = gradient(model, x, y), dict(module.named_parameters())
    assert {module.names()[name] for name in expected} == named.keys()  # statistics are no parameters
    for name, value in expected.items():
        found = named[module.names()[name]].grad.numpy()
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-10 * max(1, np.abs(value).max()), err_msg=name)


def test_every_named_activation_has_the_same_values_in_pytorch():
    assert MODULES.keys() == ACTIVATIONS.keys()
    z = np.linspace(-40, 40, 201)[:, None]
    for name in ACTIVATIONS:
        weights = {"dense1.weight": np.ones((1, 1)), "output.weight": np.ones((1, 1))}
        model = Model(Dense((1, 1, 1), name, bias=False), weights)
        np.testing.assert_allclose(outputs(to_torch(model), z), model(z), rtol=1e-14, atol=1e-15, err_msg=name)
    by_function = Model(Dense((1, 1, 1), jnp.tanh, bias=False), weights)  # a named function, given as such
    assert isinstance(to_torch(by_function).activations[0], nn.Tanh)


def test_single_precision_stays_single_and_half_comes_back_as_single():
    model = drawn(NETWORKS["plain"], "float32")
    module, x = to_torch(model), samples(model.network).astype("float32")
    assert {p.dtype for p in module.parameters()} == {torch.float32}
    np.testing.assert_allclose(outputs(module, x), model(x), rtol=0, atol=1e-5)
    assert from_torch(module)(x).dtype == np.float32
    assert from_torch(module.half()).parameters["dense1.weight"].dtype == np.float32


def test_a_module_that_was_trained_in_pytorch_comes_back():
    """Batch norms in training mode, weight and statistics moved; through deepcopy, a file and torch's wrappers."""
    model = drawn(NETWORKS["resnet"])
    module, x = to_torch(model).train(), samples(model.network, 8)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        module(torch.tensor(x)).square().mean().backward()
        optimizer.step()
    back = from_torch(module)
    assert not np.array_equal(back.parameters["stem.norm.mean"], model.parameters["stem.norm.mean"])
    expected = outputs(module.eval(), x)
    np.testing.assert_allclose(back(x), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for other in (copy.deepcopy(module), torch.load(file, weights_only=False), nn.DataParallel(module)):
        assert np.array_equal(from_torch(other).parameters["stem.weight"], back.parameters["stem.weight"])


def test_batch_norms_and_dropout_train_as_here():
    """A training step's outputs and the statistics after it, and dropout's mean, are those of our own networks."""
    model = drawn(NETWORKS["resnet"])
    x = samples(model.network, 6)
    module = to_torch(model).train()
    import jax

    with jax.enable_x64(True):
        expected, after = model.network.assemble(model.parameters).learn(x)
    np.testing.assert_allclose(outputs(module, x), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    moved = from_torch(module).parameters
    for name, value in after.items():
        np.testing.assert_allclose(moved[name], value, rtol=0, atol=1e-12 * (1 + np.abs(value).max()))
    dropped = to_torch(drawn(NETWORKS["dropout"])).train()
    torch.manual_seed(0)
    zeros = (dropped.drop(torch.ones(10000)) == 0).double().mean()
    assert abs(float(zeros) - 0.5) < 0.03


def own(x):
    return jnp.sin(x) * x


def other(x):
    return jnp.cos(x)


def test_an_own_activation_needs_its_function_of_tensors():
    model = drawn(Dense((3, 4, 4, 1), (own, "tanh")))
    with pytest.raises(InputError, match=r"no counterpart of the activation own, .* to_torch\(model, activation=...\)"):
        to_torch(model)
    with pytest.raises(InputError, match="another function than own: at"):
        to_torch(model, activation=torch.cos)
    with pytest.raises(InputError, match="has no parameters, and PReLU has some"):
        to_torch(model, activation=nn.PReLU())
    with pytest.raises(InputError, match="must be a function of a tensor"):
        to_torch(model, activation=lambda: None)
    x = samples(model.network)
    module = to_torch(model, activation=lambda z: torch.sin(z) * z)
    np.testing.assert_allclose(outputs(module, x), model(x), rtol=0, atol=1e-12)
    assert from_torch(module).network == model.network
    both = drawn(Dense((3, 4, 4, 1), (own, other)))
    module = to_torch(both, activation={own: lambda z: torch.sin(z) * z, other: torch.cos})
    np.testing.assert_allclose(outputs(module, x), both(x), rtol=0, atol=1e-12)


def test_a_field_that_is_not_known_is_refused_unless_it_is_left_out():
    @dataclass(frozen=True)
    class Later(Dense, kind="later"):
        pruned: int | None = None

    from condensation.pytorch import _convert

    _convert._MODULES[Later] = _convert._MODULES[Dense]
    try:
        assert to_torch(drawn(Later((3, 4, 1)))).network == Later((3, 4, 1))
        with pytest.raises(InputError, match="does not know Later's pruned = 2"):
            to_torch(drawn(Later((3, 4, 1), pruned=2)))
    finally:
        del _convert._MODULES[Later]


def test_a_run_gives_modules_unless_layers_were_left_out():
    from condensation import GD, train, two_waves

    experiment = Experiment(Dense((1, 5, 1)), Init(Normal(0.1)), two_waves(), GD(0.1), 4, dtype="float32")
    module = to_torch(train(experiment).model(4, seed=0))
    assert next(layer.name for layer in units(module)) == "dense1.weight"
    partial = train(experiment.replace(kept_layers=("dense1",)))
    with pytest.raises(InputError, match="only the layers dense1 were kept"):
        to_torch(partial.model(4, seed=0))


SEQUENTIALS = {
    "dense": (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False)), Dense((3, 4, 2))),
    "nested, differing": (
        nn.Sequential(
            nn.Flatten(), nn.Sequential(nn.Linear(3, 4), nn.GELU()), nn.Linear(4, 5), nn.SiLU(), nn.Linear(5, 1)
        ),
        Dense((3, 4, 5, 1), ("gelu", "silu"), output_bias=True),
    ),
    "linear": (
        nn.Sequential(nn.Linear(3, 4, bias=False), nn.Linear(4, 1, bias=False)),
        Dense((3, 4, 1), "linear", bias=False),
    ),
    "dropout": (
        nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.3), nn.Linear(4, 1)),
        Dense((3, 4, 1), "relu", output_bias=True, dropout=0.3),
    ),
    "padded": (
        nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(32, 1)),
        Conv((1, 4, 4), (2,), 3, 1, activation="relu", padding="same", output_bias=True),
    ),
    "one dimension": (
        nn.Sequential(nn.Conv1d(2, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(15, 1)),
        Conv((2, 7), (3,), 3, 1, output_bias=True),
    ),
    "convolutions": (
        nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.Conv2d(3, 4, 3, padding=1), nn.Tanh(), nn.Flatten(),
            nn.Linear(4 * 25, 6), nn.ReLU(), nn.Linear(6, 2),
        ),
        Conv((2, 5, 5), (3, 4), 3, 2, hidden=(6,), padding=1, output_bias=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("module", "network"), SEQUENTIALS.values(), ids=SEQUENTIALS)
def test_a_plain_sequential_is_the_network_that_it_is(module, network):
    module = copy.deepcopy(module).double().eval()
    model, x = from_torch(module), samples(network)
    assert model.network == network
    np.testing.assert_allclose(model(x), outputs(module, x), rtol=0, atol=1e-12)
    assert from_torch(module, network).network == network
    np.testing.assert_allclose(outputs(to_torch(model), x), outputs(module, x), rtol=0, atol=1e-12)


def test_a_sequential_with_the_network_given():
    wide = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Linear(2 * 2 * 5, 1, bias=False)).double()
    with pytest.raises(InputError, match="the images cannot be told from the 20 inputs of the first Linear layer"):
        from_torch(wide)
    network = Conv((1, 4, 7), (2,), 3, 1)
    x = samples(network)
    np.testing.assert_allclose(from_torch(wide, network)(x), outputs(wide, x), rtol=0, atol=1e-12)
    with pytest.raises(InputError, match=r"the module is the network .* kernels, tanh; .*, not .*relu"):
        from_torch(wide, Conv((1, 4, 7), (2,), 3, 1, activation="relu"))

    pooled = nn.Sequential(
        nn.Conv2d(1, 2, 3, stride=2), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(2, 3, 2), nn.Tanh(), nn.Flatten(),
        nn.Linear(12, 1, bias=False),
    ).double()  # fmt: skip
    with pytest.raises(InputError, match="the images cannot be told from the 12 inputs"):
        from_torch(pooled)
    network = Conv((1, 13, 14), (2, 3), (3, 2), 1, stride=(2, 1), pooling="max", pool_size=(2, 1))
    assert from_torch(pooled, network).network == network
    x = samples(network)
    np.testing.assert_allclose(from_torch(pooled, network)(x), outputs(pooled, x), rtol=0, atol=1e-12)

    class Sine(nn.Module):
        def forward(self, x):
            return torch.sin(x) * x

    sine = nn.Sequential(nn.Linear(3, 4), Sine(), nn.Linear(4, 1, bias=False)).double()
    with pytest.raises(InputError, match=r"activation Sine\(\) has no name here"):
        from_torch(sine)
    x = samples(Dense((3, 4, 1)))
    np.testing.assert_allclose(from_torch(sine, Dense((3, 4, 1), own))(x), outputs(sine, x), rtol=0, atol=1e-12)


REFUSED = {
    "is neither what to_torch made nor an nn.Sequential": nn.LSTM(3, 4),
    "at least one hidden layer": nn.Sequential(nn.Linear(3, 1)),
    "without an activation behind it": nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid()),
    "part 1 of the Sequential, BatchNorm1d, has no counterpart": nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)),
    "part 0 of the Sequential, LayerNorm, has no counterpart": nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 4)),
    "GELU\\(approximate='tanh'\\) has no name": nn.Sequential(nn.Linear(3, 4), nn.GELU("tanh"), nn.Linear(4, 1)),
    "second activation of a layer": nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.ReLU(), nn.Linear(4, 1)),
    "same bias": nn.Sequential(
        nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4, bias=False), nn.Tanh(), nn.Linear(4, 1)
    ),
    "with groups = 2": nn.Sequential(nn.Conv2d(2, 2, 3, groups=2), nn.Tanh(), nn.Flatten(), nn.Linear(2, 1)),
    "with dilation": nn.Sequential(nn.Conv2d(2, 2, 3, dilation=2), nn.Tanh(), nn.Flatten(), nn.Linear(2, 1)),
    "have a bias, and one": nn.Sequential(nn.Conv2d(2, 2, 3, bias=False), nn.Tanh(), nn.Flatten(), nn.Linear(2, 1)),
    "kernels are square": nn.Sequential(nn.Conv2d(2, 2, (3, 1)), nn.Tanh(), nn.Flatten(), nn.Linear(2, 1)),
    "do not overlap": nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(2, 1)),
    "pooling stands once": nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 1)),
    "Flatten stands between": nn.Sequential(nn.Conv2d(2, 2, 3), nn.Tanh(), nn.Linear(2, 1)),
    "behind a Linear layer": nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Conv2d(2, 2, 3), nn.Linear(4, 1)),
    "dropout stands behind": nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)),
}  # fmt: skip


@pytest.mark.parametrize(("sentence", "module"), REFUSED.items(), ids=REFUSED)
def test_what_corresponds_to_no_network_is_refused_in_a_sentence(sentence, module):
    with pytest.raises(InputError, match=sentence) as error:
        from_torch(module)
    assert "\n" not in str(error.value)


def test_a_module_that_was_changed_is_refused():
    module = to_torch(drawn(NETWORKS["plain"]))
    with pytest.raises(InputError, match=r"the module is the network 3-7-2, tanh, .*, not 3-7-3"):
        from_torch(module, Dense((3, 7, 3)))
    changed = copy.deepcopy(module)
    changed.activations[0] = nn.ReLU()
    with pytest.raises(InputError, match="has the activation tanh, and the module now ReLU"):
        from_torch(changed)
    changed = copy.deepcopy(module)
    changed.dense1 = nn.Linear(3, 2)
    with pytest.raises(InputError, match=r"dense1.weight must have the shape \(7, 3\), not \(2, 3\)"):
        from_torch(changed)
