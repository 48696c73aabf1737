"""Reduction of real models: exact where units were planted, through every kind of layer, and judged honestly."""

import io
import itertools
import warnings

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import condensation
from condensation import Dense, InputError, Model
from condensation.pytorch import reduce_model
from condensation.pytorch._reduction.recall import Recall
from condensation.pytorch._reduction.shrink import borrowed
from condensation.reduction._reduce import centred_error

pytestmark = pytest.mark.pytorch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def randomised(model, seed=0):
    """Random weights of a trained network's size, biases, statistics and factors of batch norm included."""
    torch.manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.copy_(torch.randn_like(module.running_mean))
            module.running_var.copy_(torch.rand_like(module.running_var) + 0.5)
            if module.affine:
                nn.init.normal_(module.weight)
                nn.init.normal_(module.bias)
        elif getattr(module, "bias", None) is not None:
            nn.init.normal_(module.bias)
    return model.eval()


def copy_row(layer, source, target, scale):
    """Unit ``target`` of a layer as a multiple of ``source``."""
    transposed = getattr(layer, "transposed", False)
    with torch.no_grad():
        if transposed and layer.groups == 1:
            layer.weight[:, target] = scale * layer.weight[:, source]
        else:
            layer.weight[target] = scale * layer.weight[source]
        if layer.bias is not None:
            layer.bias[target] = scale * layer.bias[source]


def copy_norm(norm, source, target, before, after):
    """Channel ``target`` of a batch norm so that an input times ``before`` gives the output times ``after``."""
    with torch.no_grad():
        for name in ("running_mean", "running_var"):
            getattr(norm, name)[target] = getattr(norm, name)[source]
        factor = norm.weight[source] / (norm.running_var[source] + norm.eps).sqrt()
        shift = norm.bias[source] - factor * norm.running_mean[source]
        norm.weight[target] = norm.weight[source] * after / before
        norm.bias[target] = after * shift + factor * after / before * norm.running_mean[source]


def plant(layer, norm, source, target, scale):
    """A unit behind batch norm as a multiple of another; the raw rows differ by another factor."""
    copy_row(layer, source, target, 0.5)
    copy_norm(norm, source, target, 0.5, scale)


class Mlp(nn.Module):
    def __init__(self, activation=F.relu, widths=(6, 12, 10, 3)):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))
        self.activation = activation

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + x)


class ResNet(nn.Module):
    """A stem, two residual blocks of one stream, a flatten, two dense layers."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 10, 3, padding=1), nn.BatchNorm2d(10)
        self.blocks = nn.Sequential(Block(10), Block(10))
        self.dense, self.head = nn.Linear(10 * 16, 7), nn.Linear(7, 5)

    def forward(self, x):
        x = self.blocks(F.relu(self.norm(self.stem(x))))
        x = F.max_pool2d(x, 2).flatten(1)
        return self.head(torch.relu(self.dense(x)))


class MobileNet(nn.Module):
    """conv-bn-relu, then depthwise-bn-relu, pointwise-bn-relu, pooled."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 9, 3, padding=1, bias=False), nn.BatchNorm2d(9), nn.ReLU(inplace=True))
        self.depth = nn.Sequential(
            nn.Conv2d(9, 9, 3, padding=1, groups=9, bias=False), nn.BatchNorm2d(9), nn.ReLU(inplace=True)
        )
        self.point = nn.Sequential(nn.Conv2d(9, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.point(self.depth(self.stem(x))), 1).flatten(1))


class Grouped(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 12, 3, padding=1)
        self.second = nn.Conv2d(12, 8, 3, padding=1, groups=2)
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x):
        return self.last(F.relu(self.second(F.relu(self.first(x))))).mean((2, 3))


class Concat(nn.Module):
    """Two branches side by side, as in a dense block; batch norm stands behind the concatenation."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 5, 3, padding=1)
        self.norm, self.last = nn.BatchNorm2d(11), nn.Conv2d(11, 4, 3)

    def forward(self, x):
        one = F.relu(self.one(x))
        two = F.relu(self.two(one))
        return self.last(F.relu(self.norm(torch.cat([one, two], 1)))).mean((2, 3))


class Upward(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(6, 8, 2, stride=2)
        self.last = nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x):
        return self.last(F.leaky_relu(self.up(F.relu(self.down(x))), 0.1))


class Sound(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv1d(2, 8, 5, padding=2), nn.Conv1d(8, 6, 3)
        self.head = nn.Linear(6 * 7, 3)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.two(F.relu(self.one(x)))), 2)
        return self.head(x.flatten(1))


def planted_mlp():
    model = randomised(Mlp())
    for target, scale in ((3, 2.0), (7, 0.3), (9, 1.0)):
        copy_row(model.layers[0], 1, target, scale)
    copy_row(model.layers[1], 4, 8, 5.0)
    return model, torch.randn(64, 6), {"layers.0": (12, 9), "layers.1": (10, 9)}


def planted_resnet():
    model = randomised(ResNet())
    for target, scale in ((6, 2.0), (2, 0.7)):  # the stream: the same factor in all that is added up
        plant(model.stem, model.norm, 4, target, scale)
        for block in model.blocks:
            plant(block.conv2, block.norm2, 4, target, scale)
    plant(model.blocks[0].conv1, model.blocks[0].norm1, 0, 5, 3.0)
    copy_row(model.dense, 2, 6, 0.1)
    sizes = {"stem": (10, 8), "blocks.0.conv1": (8, 7), "blocks.1.conv1": (8, 8), "dense": (7, 6)}
    return model, torch.randn(16, 3, 8, 8), sizes


def planted_mobilenet():
    model = randomised(MobileNet())
    with torch.no_grad():
        model.depth[1].weight.abs_()
    for target, scale, after in ((5, 2.0, 3.0), (8, 0.5, 0.2)):
        plant(model.stem[0], model.stem[1], 3, target, scale)
        copy_row(model.depth[0], 3, target, 1.0)
        copy_norm(model.depth[1], 3, target, scale, after)
    plant(model.point[0], model.point[1], 1, 7, 2.0)
    return model, torch.randn(16, 3, 8, 8), {"stem.0": (9, 7), "point.0": (8, 7)}


def planted_grouped():
    model = randomised(Grouped())
    copy_row(model.first, 0, 3, 2.0)  # read by the first group, and one by the second
    copy_row(model.first, 7, 6, 0.5)
    copy_row(model.second, 1, 2, 3.0)
    copy_row(model.second, 4, 5, 2.0)
    copy_row(model.second, 4, 6, 2.0)  # a third of one group stays: both groups keep as many
    return model, torch.randn(16, 3, 6, 6), {"first": (12, 10), "second": (8, 6)}


def planted_concat():
    model = randomised(Concat())
    copy_row(model.one, 2, 5, 2.0)
    copy_norm(model.norm, 2, 5, 2.0, 0.5)
    copy_row(model.two, 0, 3, 3.0)
    copy_norm(model.norm, 6, 9, 3.0, 4.0)
    return model, torch.randn(16, 3, 6, 6), {"one": (6, 5), "two": (5, 4)}


def planted_upward():
    model = randomised(Upward())
    copy_row(model.down, 1, 4, 2.0)
    copy_row(model.up, 0, 7, 0.4)
    return model, torch.randn(16, 3, 8, 8), {"down": (6, 5), "up": (8, 7)}


def planted_sound():
    model = randomised(Sound())
    copy_row(model.one, 3, 0, 2.0)
    copy_row(model.two, 5, 1, 2.0)
    copy_row(model.two, 5, 2, 0.1)
    return model, torch.randn(16, 2, 16), {"one": (8, 7), "two": (6, 4)}


PLANTED = {
    "mlp": planted_mlp,
    "resnet": planted_resnet,
    "mobilenet": planted_mobilenet,
    "grouped": planted_grouped,
    "concat": planted_concat,
    "transposed": planted_upward,
    "conv1d": planted_sound,
}


def distance(one, other):
    return float((one - other).abs().max() / one.abs().max())


@pytest.mark.parametrize("name", PLANTED)
def test_planted_units_are_found_and_merged_exactly(name):
    model, x, sizes = PLANTED[name]()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with torch.no_grad():
        outputs = model(x)
    reduced = reduce_model(model, inputs=x[:2], threshold=0.999)
    assert reduced.sizes == sizes
    with torch.no_grad():
        assert distance(outputs, reduced.model(x)) < 1e-5
        assert torch.equal(model(x), outputs)  # the given model is what it was, bit for bit
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert reduced.parameters[1] < reduced.parameters[0]


@pytest.mark.parametrize("name", PLANTED)
def test_reduced_models_are_saved_loaded_and_exported(name, tmp_path):
    model, x, _ = PLANTED[name]()
    small = reduce_model(model, inputs=x[:2], threshold=0.999).model
    with torch.no_grad():
        outputs = small(x)
    torch.save(small, tmp_path / "whole.pt")
    loaded = torch.load(tmp_path / "whole.pt", weights_only=False)
    again = reduce_model(PLANTED[name]()[0], inputs=x[:2], threshold=0.999).model
    with torch.no_grad():
        for value in again.parameters():
            value.zero_()
    torch.save(small.state_dict(), tmp_path / "state.pt")
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    with torch.no_grad():
        assert torch.equal(loaded(x), outputs)
        assert torch.equal(again(x), outputs)
    onnx = io.BytesIO()
    with warnings.catch_warnings():  # the exporter's own
        warnings.simplefilter("ignore")
        torch.onnx.export(small, (x,), onnx, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(onnx.getvalue())
    (exported,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert distance(outputs, torch.as_tensor(exported)) < 1e-5


WIDE = {
    "mlp": lambda: (Mlp(widths=(20, 64, 64, 3)), torch.randn(4, 20)),
    "resnet": lambda: (ResNet(), torch.randn(4, 3, 8, 8)),
    "mobilenet": lambda: (MobileNet(), torch.randn(4, 3, 8, 8)),
    "grouped": lambda: (Grouped(), torch.randn(4, 3, 6, 6)),
    "concat": lambda: (Concat(), torch.randn(4, 3, 6, 6)),
    "transposed": lambda: (Upward(), torch.randn(4, 3, 8, 8)),
    "conv1d": lambda: (Sound(), torch.randn(4, 2, 16)),
}


@pytest.mark.parametrize("name", WIDE)
def test_random_networks_are_not_reduced(name):
    torch.manual_seed(1)
    model, x = WIDE[name]()
    reduced = reduce_model(model, inputs=x)
    assert reduced.sizes
    assert all(before == after for before, after in reduced.sizes.values())
    assert reduced.model.training
    with torch.no_grad():
        assert torch.equal(reduced.model.eval()(x), model.eval()(x))


def test_the_same_as_the_reduction_of_our_own_networks():
    rng = np.random.default_rng(3)
    for activation in ("relu", "tanh"):
        network = Dense((5, 12, 9, 2), activation, output_bias=True)
        own = {layer.name: layer for layer in network.layers}
        parameters = {f"{name}.weight": rng.normal(size=layer.weight) for name, layer in own.items()}
        parameters |= {f"{name}.bias": rng.normal(size=layer.weight[0]) for name, layer in own.items()}
        for name, rows in (("dense1", [(0, 4), (0, 7), (2, 3)]), ("dense2", [(1, 8)])):
            for source, target in rows:
                factor = rng.uniform(0.5, 2) * (1 if activation == "relu" else rng.choice([-1, 1]))
                noise = 0.05 * rng.normal(size=parameters[f"{name}.weight"].shape[1])
                parameters[f"{name}.weight"][target] = factor * (parameters[f"{name}.weight"][source] + noise)
                parameters[f"{name}.bias"][target] = factor * parameters[f"{name}.bias"][source]
        torched = Mlp(getattr(torch, activation), (5, 12, 9, 2)).double()
        for layer, name in zip(torched.layers, own, strict=True):
            layer.weight.data = torch.as_tensor(parameters[f"{name}.weight"])
            layer.bias.data = torch.as_tensor(parameters[f"{name}.bias"])
        x = rng.normal(size=(50, 5))
        for how in ({"threshold": 0.95}, {"threshold": 0.9}, {"units": 6}):
            mine = condensation.reduce(Model(network, parameters), x, **how)
            theirs = reduce_model(torched, x, **how, method="merge")
            for layer, name in (("layers.0", "dense1"), ("layers.1", "dense2")):
                np.testing.assert_array_equal(theirs.groups[layer], mine.groups[name])
            with torch.no_grad():
                outputs = theirs.model(torch.as_tensor(x)).numpy()
            np.testing.assert_allclose(outputs, mine.model(x), rtol=1e-10, atol=1e-10)


class PreActivation(nn.Module):
    """Batch norm and relu before each convolution; the stream is read through norms of its own."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(3))
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        for norm, conv in zip(self.norms, self.convs, strict=False):
            x = x + 0.5 * conv(F.relu(norm(x)))
        return self.head(F.relu(self.norms[2](x)).mean((2, 3)))


def test_a_stream_that_is_normed_before_it_is_read():
    model = randomised(PreActivation())
    for layer in (model.stem, *model.convs):
        copy_row(layer, 5, 1, 2.0)
    for norm, after in zip(model.norms, (3.0, 0.5, 1.5), strict=True):  # each reader has a factor of its own
        copy_norm(norm, 5, 1, 2.0, after)
    x = torch.randn(8, 3, 6, 6)
    reduced = reduce_model(model, inputs=x[:1], threshold=0.999)
    assert reduced.sizes == {"stem": (8, 7)}
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5


class Squeezed(nn.Module):
    """Squeeze and excitation: a gate computed from the channels is multiplied with them; and a gated dense layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.down, self.up = nn.Conv2d(3, 8, 3), nn.Linear(8, 6), nn.Linear(6, 8)
        self.value, self.gate, self.head = nn.Linear(8, 10), nn.Linear(8, 10), nn.Linear(10, 3)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = x * torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3))))))[:, :, None, None]
        x = x.mean((2, 3))
        return self.head(F.silu(self.gate(x)) * self.value(x))


def test_products_merge_equal_units_only():
    model, x = randomised(Squeezed()), torch.randn(8, 3, 6, 6)
    copy_row(model.conv, 2, 4, 1.0)
    copy_row(model.up, 2, 4, 1.0)
    copy_row(model.conv, 0, 7, 8.0)  # of one orientation, but another amplitude
    copy_row(model.up, 0, 7, 8.0)
    copy_row(model.gate, 1, 5, 1.0)
    copy_row(model.value, 1, 5, 1.0)
    reduced = reduce_model(model, inputs=x[:1], threshold=0.999)
    assert reduced.sizes == {"conv": (8, 7), "down": (6, 6), "value": (10, 9)} or reduced.sizes == {
        "conv": (8, 7),
        "down": (6, 6),
        "gate": (10, 9),
    }
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5


class Shifted(nn.Module):
    """Batch norm behind the activation, read with and without padding."""

    def __init__(self, activation, padding):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 8, 3), nn.BatchNorm2d(8)
        self.last, self.activation = nn.Conv2d(8, 3, 3, padding=padding, bias=False), activation

    def forward(self, x):
        return self.last(self.norm(self.activation(self.conv(x))))


@pytest.mark.parametrize("activation", [F.relu, torch.tanh, torch.sigmoid, F.gelu, F.elu, F.softplus, F.relu6, abs])
def test_norms_behind_activations(activation):
    """Whatever the norm does to a unit, a reader without padding takes it in by its bias."""
    x = torch.randn(8, 2, 8, 8)
    scale = 3.0 if activation in (F.relu, abs) else 1.0
    scale = -1.0 if activation in (torch.tanh, torch.sigmoid) else scale
    model = randomised(Shifted(activation, 0))
    copy_row(model.conv, 3, 6, scale)
    reduced = reduce_model(model, inputs=x[:2], threshold=0.9999)
    assert reduced.sizes == {"conv": (8, 7)}
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5
    padded = randomised(Shifted(activation, 1))
    copy_row(padded.conv, 3, 6, scale)
    assert reduce_model(padded, inputs=x[:2], threshold=0.9999).sizes == {"conv": (8, 8)}  # at the border no bias can


def test_slopes_of_their_own_must_be_equal():
    """PReLU with a slope a channel: units of one orientation merge where their slopes are equal."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv3d(2, 7, 2), nn.PReLU(7), nn.Conv3d(7, 3, 2)).eval()
    for target in (2, 5):
        copy_row(model[0], 0, target, 2.0)
    model[1].weight.data = torch.tensor([0.5, 0.1, 0.5, 0.2, 0.3, -0.5, 0.4])
    x = torch.randn(4, 2, 5, 5, 5)
    reduced = reduce_model(model, inputs=x, threshold=0.9999)
    assert reduced.sizes == {"0": (7, 6)}
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5


def test_the_larger_of_two_has_no_opposite():
    """tanh is odd, but its maximum over a window is not: opposite units merge without pooling only."""
    x = torch.randn(4, 2, 8, 8)
    for pool, after in ((nn.MaxPool2d(2), 6), (nn.AvgPool2d(2), 5)):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(2, 6, 3), nn.Tanh(), pool, nn.Flatten(), nn.Linear(54, 3)).eval()
        copy_row(model[0], 1, 4, -1.0)
        reduced = reduce_model(model, inputs=x, threshold=0.999)
        assert reduced.sizes == {"0": (6, after)}
        with torch.no_grad():
            assert distance(model(x), reduced.model(x)) < 1e-5


@pytest.mark.parametrize("groups", [2, 3])
def test_grouped_and_transposed_at_once(groups):
    model = nn.Sequential(nn.ConvTranspose1d(4, 12, 3, groups=2), nn.ReLU(), nn.Conv1d(12, 6, 3, groups=groups)).eval()
    with torch.no_grad():  # in both groups an output is twice the one before
        for group in (0, 1):
            inputs = slice(2 * group, 2 * group + 2)
            model[0].weight[inputs, 5] = 2 * model[0].weight[inputs, 4]
            model[0].bias[6 * group + 5] = 2 * model[0].bias[6 * group + 4]
    x = torch.randn(4, 4, 10)
    reduced = reduce_model(model, inputs=x, threshold=0.999)
    if groups == 2:
        assert reduced.sizes == {"0": (12, 10)}
    else:
        assert "parts of different size" in reduced.skipped["0"]
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5


def test_any_size_runs_and_a_fit_does_better():
    """Of networks that nothing has condensed, to half their units: the fit is better on the whole."""
    errors = []
    for make in PLANTED.values():
        model, x, sizes = make()
        x, new = torch.randn(2, 256, *x.shape[1:])
        half = {layer: before // 4 * 2 for layer, (before, _) in sizes.items()}
        row = []
        for fit in (False, True):
            reduced = reduce_model(model, inputs=x[:1], units=half, data=x, method="merge_fit" if fit else "merge")
            assert {layer: after for layer, (_, after) in reduced.sizes.items()} == half
            assert all(int(labels.max()) + 1 == half[layer] for layer, labels in reduced.groups.items())
            with torch.no_grad():
                both = [value.flatten(1).double().numpy() for value in (model(new), reduced.model(new))]
            row.append(centred_error(*both))
        errors.append(row)
    plain, fit = np.array(errors).T
    assert (fit < plain).sum() >= 5
    assert np.median(fit / plain) < 0.9


class Odd(nn.Module):
    """Layers that must be left alone, each for its reason."""

    def __init__(self):
        super().__init__()
        self.fine, self.normed, self.twice = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.norm, self.idle, self.one = nn.LayerNorm(8), nn.Linear(3, 3), nn.Linear(8, 1)
        self.split, self.scale = nn.Linear(1, 8), nn.Parameter(torch.ones(8))
        self.scaled, self.fixed = nn.Linear(4, 8), nn.Linear(8, 6)
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        x = self.norm(self.normed(F.relu(self.fine(x))))
        x = F.relu(self.twice(F.relu(self.twice(x))))
        one, two = self.split(self.one(x)).chunk(2, 1)
        x = F.relu(self.fixed(self.scaled(F.relu(one) + two) * self.scale))
        return self.head(x.view(len(x), 2, 3).flatten(1).reshape(-1, 6))


def test_what_is_not_reduced_is_named():
    model, x = randomised(Odd()), torch.randn(7, 6)
    for name in ("normed", "twice", "split", "scaled", "fixed"):
        copy_row(getattr(model, name), 0, 3, 1.0)
    copy_row(model.fine, 0, 3, 2.0)
    reduced = reduce_model(model, inputs=x, threshold=0.999)
    assert reduced.sizes == {"fine": (8, 7)}
    expected = {
        "normed": "LayerNorm mixes",
        "twice": "runs 2 times",
        "idle": "did not run",
        "one": "one unit",
        "split": "split",
        "scaled": "parameter",
        "fixed": "as a number, view(7, 2, 3)",
        "head": "output",
    }
    assert reduced.skipped.keys() == expected.keys()
    for name, words in expected.items():
        assert words in reduced.skipped[name], (name, reduced.skipped[name])
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5


def test_a_transformer_is_reduced_in_its_feed_forward_layers():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True).eval()
    copy_row(model.linear1, 5, 9, 1.0)
    x = torch.randn(3, 7, 16)
    reduced = reduce_model(model, inputs=x, threshold=0.999)
    assert reduced.sizes == {"self_attn": (4, 4), "linear1": (32, 31)}
    assert {"self_attn.out_proj", "linear2"} <= reduced.skipped.keys()
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-5


def digits():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x, y = torch.as_tensor(x, dtype=torch.float32) / 16, torch.as_tensor(y)
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    (x, y), test = digits()
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, (x, y), test


def test_a_fit_is_better_on_held_out_data(trained):
    model, (x, y), (new, labels) = trained
    scores = {}
    for fit in (False, True):
        reduced = reduce_model(
            model, inputs=x[:2], units={"0": 32, "2": 16}, data=(x, y), method="merge_fit" if fit else "merge"
        )
        small = reduced.model.eval()
        with torch.no_grad():
            scores[fit] = float((small(new).argmax(1) == model(new).argmax(1)).double().mean())
            held_out = float((small(new).argmax(1) == labels).double().mean())
        assert reduced.accuracy is not None
        assert reduced.accuracy[0] > 0.97
    assert scores[True] > scores[False]
    assert scores[True] > 0.9
    assert held_out > 0.85
    best = reduce_model(model, (x, y), units={"0": 32, "2": 16})
    assert best.agreement > best.tried["prune"].agreement + 0.2
    assert best.relative_error < best.tried["prune"].error


def test_exact_duplicates_stay_exact_in_a_fit():
    for name in PLANTED:
        model, x, sizes = PLANTED[name]()
        reduced = reduce_model(model, inputs=x[:2], threshold=0.999, data=[x[:8], x[8:]], method="merge_fit")
        assert reduced.sizes == sizes
        with torch.no_grad():
            assert distance(model(x), reduced.model(x)) < 1e-5


def test_the_smallest_model_within_an_agreement_or_an_error(trained):
    model, (x, y), _ = trained
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 128, shuffle=True)
    state = torch.random.get_rng_state()
    reduced = reduce_model(model, inputs=x[:2], agreement=0.98, data=loader, method="merge_fit")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert reduced.agreement >= 0.97  # on samples that did not choose
    assert reduced.parameters[1] < 0.8 * reduced.parameters[0]
    within = reduce_model(model, inputs=x[:2], error=0.2, data=(x, y), method="merge")
    assert within.relative_error <= 0.2
    assert within.parameters[1] < within.parameters[0]
    assert model.training
    assert reduced.model.training


def test_the_given_model_is_untouched():
    model, x, _ = planted_resnet()
    model.train()
    model.blocks[0].eval()
    model.stem.weight.requires_grad_(False)
    model(x).sum().backward()
    grads = {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}
    values = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    small = reduce_model(model, inputs=x[:2], threshold=0.999, data=x, method="merge").model
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(value, values[name]) for name, value in model.state_dict().items())
    for name, p in model.named_parameters():
        assert p.grad is None if grads[name] is None else torch.equal(p.grad, grads[name])
    assert [m.training for m in small.modules()] == [m.training for m in model.modules()]
    assert [p.requires_grad for p in small.parameters()] == [p.requires_grad for p in model.parameters()]
    assert all(p.grad is None for p in small.parameters())


def test_half_precision_is_given_back():
    for dtype in (torch.float16, torch.bfloat16):
        model, x, sizes = planted_mlp()
        reduced = reduce_model(model.to(dtype), inputs=x.to(dtype), threshold=0.999)
        assert reduced.sizes == sizes
        assert {p.dtype for p in reduced.model.parameters()} == {dtype}


def test_layers_with_nan_are_skipped():
    model, x, _ = planted_mlp()
    model.layers[1].weight.data[0, 0] = float("nan")
    model.layers.append(nn.Linear(3, 3))
    reduced = reduce_model(model, inputs=x, threshold=0.999)
    assert "NaN" in reduced.skipped["layers.1"]
    assert "NaN" in reduced.skipped["layers.0"]
    assert reduced.sizes == {"layers.2": (3, 3)}


class Blind(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        with torch.no_grad():
            return self.layer(x)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"threshold": 0.9, "units": 3}, "one of"),
        ({"threshold": 1.5}, "threshold"),
        ({"agreement": 0.9}, "agreement is measured on samples"),
        ({"method": "prune"}, "'prune' needs samples"),
        ({"method": "fold"}, "unknown method 'fold'"),
        ({"ratio": 0.5}, "ratio is measured on samples"),
        ({"ratio": 1.0, "data": torch.zeros(4, 6)}, "share of units that is left out"),
        ({"layers": ["layer.0"]}, "did you mean 'layers.0'"),
        ({"units": {"layers.2": 1}}, "model's output"),
        ({"units": 0}, "whole number"),
        ({"data": torch.zeros(4, 5)}, r"refuses a batch of data of shape \[\(1, 5\)\]"),
        ({"data": 3}, "an iterable of batches"),
        ({"data": []}, "no batch"),
        ({"data": (torch.zeros(4, 6), torch.zeros(3))}, "as many samples, not 4 and 3"),
        ({"data": 1e-30 * torch.arange(60.0).view(10, 6), "error": 0.1}, "constant"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(how, words, unchecked):
    model, x, _ = planted_mlp()
    with pytest.raises(InputError, match=words):
        reduce_model(model, inputs=x, **how)


def test_models_that_cannot_be_traced_are_refused(unchecked):
    x = torch.randn(2, 6)
    with pytest.raises(InputError, match="RuntimeError: mat1"):
        reduce_model(Mlp(), inputs=torch.randn(2, 5))
    with pytest.raises(InputError, match="no_grad"):
        reduce_model(Blind(), inputs=x)
    with torch.device("meta"), pytest.raises(InputError, match="meta device"):
        reduce_model(Mlp(), inputs=x)
    with pytest.raises(InputError, match=r"torch\.nn\.Module, not a function"):
        reduce_model(lambda x: x, inputs=x)
    with pytest.raises(InputError, match="one: use error"):
        reduce_model(Mlp(widths=(6, 5, 1)), inputs=x, data=x, agreement=0.9, method="merge")


def test_chosen_layers_only():
    model, x, _ = planted_mlp()
    reduced = reduce_model(model, inputs={"x": x}, layers=["layers.1"], threshold=0.999)
    assert reduced.sizes == {"layers.1": (10, 9)}
    assert "not among" in reduced.skipped["layers.0"]


def test_a_wide_layer_is_reduced():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10))
    assert reduce_model(model, inputs=torch.randn(1, 784), units=100).sizes == {"0": (1024, 100)}


class Fn(nn.Module):
    """Two layers that make channels, two that read them, and what is done with them."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 3)
        self.c, self.d = nn.Conv2d(8, 4, 3), nn.Conv2d(8, 4, 3)
        self.norm, self.function = nn.BatchNorm2d(8), function

    def forward(self, x):
        return self.function(self, x)


class LinearRelu(nn.Linear):
    def forward(self, x):
        return F.relu(super().forward(x))


class Standardised(nn.Conv2d):
    def forward(self, x):
        w = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return F.conv2d(x, w / w.std((1, 2, 3), keepdim=True), self.bias)


class NormRelu(nn.BatchNorm2d):
    def forward(self, x):
        return F.relu(super().forward(x))


def two_readers(function):
    """One reader sees a function of what the other sees."""

    def forward(m, x):
        h = m.a(x)
        return m.c(function(h)) + m.d(h)

    return forward


def _centred(m, x):
    a = m.a(x)
    return m.c(F.relu(a - a.mean((2, 3), keepdim=True) + m.b(x)))


def _pooled_norm(m, x):
    h = m.a(x)
    return m.c(F.relu(m.norm(F.avg_pool2d(h, 3, 1, 1, count_include_pad=False)) + h))


def _twice(m, x):
    h = m.a(x)
    return m.c(F.relu(h + 2 * h + m.b(x)))


def _by_largest(m, x):
    h = F.relu(m.a(x))
    return m.c(h / h.detach().max())


# what is computed, the factor of a planted unit, whether such units can be merged exactly
TRICKY = {
    "square and raw": (two_readers(lambda h: h**2), -1.0, False),
    "square and raw, positive": (two_readers(lambda h: h**2), 2.0, True),
    "sigmoid and raw": (two_readers(torch.sigmoid), -1.0, False),
    "sigmoid and raw, equal": (two_readers(torch.sigmoid), 1.0, True),
    "relu and raw": (two_readers(F.relu), 2.0, True),
    "less its mean": (_centred, None, False),
    "norm of what is pooled": (_pooled_norm, 3.0, False),
    "twice in a sum": (_twice, 2.0, False),
    "padded by one": (lambda m, x: m.c(F.pad(F.relu(m.a(x)), (1, 1, 1, 1), value=1.0)), 2.0, False),
    "padded by one, equal": (lambda m, x: m.c(F.pad(F.relu(m.a(x)), (1, 1, 1, 1), value=1.0)), 1.0, True),
    "another divisor": (lambda m, x: m.c(F.avg_pool2d(torch.sigmoid(m.a(x)), 2, 1, divisor_override=1)), -1.0, False),
    "a sum": (lambda m, x: m.c(torch.sigmoid(m.a(x)).sum((2, 3), keepdim=True).expand(-1, -1, 4, 4)), -1.0, False),
    "by its largest": (_by_largest, 4.0, False),
}


@pytest.mark.parametrize("name", TRICKY)
def test_no_rule_is_believed_before_it_is_tried(name):
    function, scale, merges = TRICKY[name]
    model = randomised(Fn(function))
    if scale is None:  # equal in one of two that are added up
        copy_row(model.b, 0, 3, 1.0)
    else:
        copy_row(model.a, 0, 3, scale)
    if name == "twice in a sum":
        copy_row(model.b, 0, 3, scale)
        merges = True
    x = torch.randn(8, 3, 9, 9)
    reduced = reduce_model(model, inputs=x[:2], threshold=0.99999)
    assert (reduced.sizes["a"] == (8, 7)) is merges
    new = 1.7 * x + 0.3
    with torch.no_grad():
        assert distance(model(new), reduced.model(new)) < 1e-5


@pytest.mark.parametrize(
    ("first", "norm"), [(LinearRelu(6, 8), None), (Standardised(3, 8, 3), None), (nn.Conv2d(3, 8, 3), NormRelu(8))]
)
def test_layers_with_a_forward_of_their_own_are_named(first, norm):
    dense = isinstance(first, nn.Linear)
    last = nn.Linear(8, 3) if dense else nn.Conv2d(8, 3, 3)
    model = nn.Sequential(first, norm or nn.Identity(), last).eval()
    copy_row(first, 0, 3, -1.0)
    reduced = reduce_model(model, inputs=torch.randn(4, 6) if dense else torch.randn(4, 3, 8, 8), threshold=0.999)
    assert not reduced.sizes
    assert "forward of its own" in reduced.skipped["0"]


def test_hooks_that_compute_are_refused_and_others_left_out(unchecked):
    model, x, sizes = planted_mlp()
    seen = []
    model.layers[0].register_forward_hook(lambda *_: seen.append(1))
    reduced = reduce_model(model, inputs=x, threshold=0.999)
    assert reduced.sizes == sizes
    assert len(seen) == 1
    assert not reduced.model.layers[0]._forward_hooks
    model.layers[0].register_forward_hook(lambda _, __, y: F.relu(y) + 1)
    with pytest.raises(InputError, match="hooks change"):
        reduce_model(model, inputs=x)


def test_a_wrong_constant_is_an_error():
    from condensation.pytorch._reduction.judge import relative_error

    y = np.random.default_rng(0).normal(size=(50, 3))
    assert relative_error(y, y + 5) == pytest.approx(5 * np.sqrt(150) / np.linalg.norm(y - y.mean(0)))
    assert np.isnan(relative_error(np.ones((4, 2)), np.ones((4, 2))))
    assert np.isinf(relative_error(np.ones((4, 2)), np.zeros((4, 2))))


@pytest.mark.parametrize("amplitude", [1.0, 1.8, -0.5])
def test_the_least_alike_of_several_stages_counts(amplitude):
    """A gated layer, relu6 and slopes of their own: equal means equal, amplitudes included."""
    for middle in (nn.ReLU6(), nn.SiLU()):
        model = nn.Sequential(nn.Linear(6, 8), middle, nn.Mish(), nn.Linear(8, 3)).eval()
        copy_row(model[0], 0, 3, amplitude)
        assert reduce_model(model, inputs=torch.randn(4, 6), threshold=0.95, layers=["0"]).sizes == {
            "0": (8, 7 + (amplitude != 1))
        }
    model = nn.Sequential(nn.Linear(6, 8), nn.PReLU(8), nn.Linear(8, 3)).eval()
    copy_row(model[0], 0, 3, 2.0)
    model[1].weight.data[3] *= amplitude
    assert reduce_model(model, inputs=torch.randn(4, 6), threshold=0.95).sizes == {"0": (8, 7 + (amplitude != 1))}


def test_one_stage_of_many_that_differs_keeps_units_apart():
    model = randomised(ResNet())
    for layer, norm in ((model.stem, model.norm), *((block.conv2, block.norm2) for block in model.blocks)):
        plant(layer, norm, 4, 6, 1.0)
    x = torch.randn(2, 3, 8, 8)
    assert reduce_model(model, inputs=x, threshold=0.9, layers=["stem"]).sizes["stem"][1] < 10
    nn.init.normal_(model.blocks[1].conv2.weight.data[6])
    assert reduce_model(model, inputs=x, threshold=0.9, layers=["stem"]).sizes["stem"] == (10, 10)


def test_batch_norm_keeps_its_statistics():
    """Duplicates behind batch norm, five times as large: the reduced model also learns as the given one would."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(8, momentum=None)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), norm, nn.ReLU(), nn.Conv2d(8, 4, 3))
    with torch.no_grad():
        nn.init.uniform_(norm.weight, 0.5, 1)
        nn.init.normal_(norm.bias)
        model[0].weight[3] = model[0].weight[0]
        norm.weight[3], norm.bias[3] = 5 * norm.weight[0], 5 * norm.bias[0]
        model(torch.randn(64, 3, 8, 8))
        reduced = reduce_model(model, inputs=torch.randn(2, 3, 8, 8), threshold=0.99999)
        assert reduced.sizes == {"0": (8, 7)}
        assert any(torch.allclose(norm.running_var[0], value) for value in reduced.model[1].running_var)
        x = torch.randn(32, 3, 8, 8)
        assert distance(model(x), reduced.model(x)) < 1e-5  # both in training mode


def test_units_that_sleep_are_tried_awake_or_left_alone():
    model, x, _ = planted_mlp()
    model.layers[0].bias.data.fill_(-50.0)
    for target, scale in ((3, 2.0), (7, 0.3), (9, 1.0)):
        copy_row(model.layers[0], 1, target, scale)
    assert reduce_model(model, inputs=x, threshold=0.9999, layers=["layers.0"]).sizes["layers.0"][1] <= 9
    with torch.no_grad():
        model.layers[0].weight[4:7] = 0
        model.layers[0].bias[4:7] = 0
    labels = reduce_model(model, inputs=x, threshold=0.9999).groups["layers.0"]
    assert len(set(labels[4:7])) == 1  # zeros are one


class Many(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.a, self.b, self.c, self.d = nn.Linear(6, 16), nn.Linear(6, 16), nn.Linear(16, 3), nn.Linear(16, 3)
        self.kind = kind

    def forward(self, x):
        one, two = self.c(input=F.relu(self.a(x))), self.d(F.relu(self.b(x)))
        return (one, two) if self.kind == "tuple" else {"loss": one.square().mean(), "logits": one, "more": two}


def test_all_outputs_are_judged_or_the_logits():
    """Of many samples a part has about the errors that a loop over all of them has."""
    x = torch.randn(4000, 6)
    model = Many("tuple")
    reduced = reduce_model(model, x, units=8, method="merge")
    with torch.no_grad():
        errors = [
            float((one - two).norm() / (one - one.mean(0)).norm())
            for one, two in zip(model(x), reduced.model(x), strict=True)
        ]
    assert reduced.relative_error == pytest.approx(max(errors), rel=0.1)
    model = Many("dict")
    reduced = reduce_model(model, [x[:1500], x[1500:]], units={"a": 4}, method="merge")
    with torch.no_grad():
        one, two = model(x)["logits"], reduced.model(x)["logits"]
    assert reduced.relative_error == pytest.approx(float((one - two).norm() / (one - one.mean(0)).norm()), rel=0.1)
    assert reduced.agreement == pytest.approx(float((one.argmax(1) == two.argmax(1)).double().mean()), abs=0.1)


def test_labels_that_are_no_class_do_not_count():
    model, x, _ = planted_mlp()
    with torch.no_grad():
        y = model(x).argmax(1)
    y[:20], y[20:30] = -100, 7
    for labels in (y, y.numpy()):
        assert reduce_model(model, inputs=x[:2], threshold=0.999, data=(x, labels), method="merge").accuracy == (
            1.0,
            1.0,
        )
    assert reduce_model(model, inputs=x[:2], threshold=0.999, data=(x, y - 500), method="merge").accuracy is None


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.a, self.b = nn.Embedding(20, 8), nn.Linear(8, 16), nn.Linear(16, 20)

    def forward(self, input_ids, labels=None):
        return self.b(F.relu(self.a(self.words(input_ids))))


def test_language_models_have_no_accuracy_here_and_lengths_must_agree(unchecked):
    ids = torch.randint(0, 20, (4, 5))
    reduced = reduce_model(Words(), inputs={"input_ids": ids}, data=[{"input_ids": ids, "labels": ids}], method="merge")
    assert reduced.accuracy is None
    assert reduced.agreement == 1
    other = torch.randint(0, 20, (4, 5))
    assert (
        reduce_model(
            Words(), inputs={"input_ids": ids}, data=[{"input_ids": ids, "labels": other}], method="merge"
        ).accuracy
        is not None
    )
    lengths = [torch.randint(0, 20, (4, 5 - k % 2)) for k in range(20)]
    with pytest.raises(InputError, match="batches of one length"):
        reduce_model(Words(), inputs=ids, data=lengths, method="merge")


def test_a_fit_on_few_samples_is_no_worse(unchecked):
    model, _, _ = planted_mlp()
    x, new = torch.randn(2, 500, 6)
    with pytest.raises(InputError, match="NaN or Inf, and nothing can be fitted"):
        reduce_model(model, inputs=x[:2], units=6, data=torch.full((50, 6), float("nan")), method="merge_fit")
    for samples in (15, 40, 500):
        errors = []
        for fit in (False, True):
            small = reduce_model(
                model, inputs=x[:2], units=6, data=x[:samples], method="merge_fit" if fit else "merge"
            ).model
            with torch.no_grad():
                errors.append(float((small(new) - model(new)).norm()))
        assert errors[1] < 1.25 * errors[0]


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (lambda h: h[:, :, 1:] - h[:, :, :-1], "slice"),
        (lambda h: F.pixel_shuffle(h[..., None].expand(-1, -1, -1, 4), 2).flatten(2), ""),
    ],
)
def test_nothing_hangs_or_breaks(layers, words):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.circle = nn.Conv1d(3, 8, 3), nn.Conv1d(8, 8, 3, padding=1, padding_mode="circular")
            self.c = nn.LazyConv1d(4, 3)

        def forward(self, x):
            return self.c(layers(F.relu(self.circle(self.a(x)))))

    model, x = Net().eval(), torch.randn(2, 3, 12)
    model(x)
    reduced = reduce_model(model, inputs=x, units={})
    assert {*reduced.sizes, *reduced.skipped} == {"a", "circle", "c"}
    assert words in reduced.skipped["circle"]


def test_wrapped_models_and_named_tuples():
    import collections

    pair = collections.namedtuple("pair", "one two")

    class Named(Mlp):
        def forward(self, given):
            return super().forward(given.one + given.two)

    _, x, sizes = planted_mlp()
    model = randomised(Named())
    model.load_state_dict(planted_mlp()[0].state_dict())
    assert reduce_model(model, inputs=(pair(x, x),), threshold=0.999).sizes == sizes
    wrapped = reduce_model(torch.compile(planted_mlp()[0], backend="eager"), inputs=x, threshold=0.999)
    assert wrapped.sizes == sizes
    assert type(wrapped.model) is Mlp


def test_reasons_of_instance_norm_and_of_a_shared_bias():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3), nn.Flatten()
    )
    model[2].bias = model[3].bias
    skipped = reduce_model(model.eval(), inputs=torch.randn(2, 3, 9, 9)).skipped
    assert "statistics from the sample" in skipped["0"]
    assert "bias is shared" in skipped["2"]


def test_what_is_borrowed_is_given_back():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    before = [dict(part.named_parameters()) | dict(part.named_buffers()) for part in model]
    with borrowed(model, ["1"]) as held:
        assert held[0].weight is before[0]["weight"]
        assert held[1].weight is not before[1]["weight"]
        held[1].running_mean += 1
        held[1].num_features, held[1].seen = 3, 1
        held[2].weight = nn.Parameter(torch.ones(2, 3))
    after = [dict(part.named_parameters()) | dict(part.named_buffers()) for part in model]
    assert all(one[key] is other[key] for one, other in zip(before, after, strict=True) for key in one)
    assert not bool(model[1].running_mean.any())
    assert model[1].num_features == 4
    assert not hasattr(model[1], "seen")


def test_what_a_layer_answered_is_recalled_for_its_own_weights_and_input_only():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)).requires_grad_(False)
    recall, x = Recall(), torch.randn(5, 3)

    def answer(asked, given):
        with recall.of(asked):
            return asked(given)

    plain = model(x)
    assert torch.equal(answer(model, x), plain)
    assert torch.equal(answer(model, x), plain)  # relu wrote into what was remembered, or into a copy of it
    with borrowed(model, ["2"]):
        model[2].weight += 1
        assert torch.equal(answer(model, x), model(x))
        assert torch.equal(answer(model, 2 * x), model(2 * x))
        before = model(x)
        model[0].weight += 1  # behind its back: what it remembers is used
        assert torch.equal(answer(model, x), before)
        assert not torch.equal(model(x), before)
    assert all("forward" not in vars(layer) for layer in model)


class Combined(nn.Module):
    """Channels of two layers side by side and multiplied, or under a root: neither is followed."""

    def __init__(self, how):
        super().__init__()
        self.how, self.a, self.b = how, nn.Linear(6, 5), nn.Linear(6, 4)
        self.out = nn.Linear(20 if how == "outer" else 5, 3)

    def forward(self, x):
        a, b = torch.tanh(self.a(x)), torch.tanh(self.b(x))
        h = (a[:, :, None] * b[:, None]).flatten(1) if self.how == "outer" else (1 + a.square()) ** 0.75
        return self.out(h)


def test_what_combines_channels_of_two_layers_or_has_no_rule_is_told():
    torch.manual_seed(0)
    model = Combined("outer")
    reduced = reduce_model(model, inputs=torch.randn(8, 6))
    assert "combined with more or fewer of another layer" in reduced.skipped["a"]
    assert not reduced.sizes
    model = Combined("root")
    with torch.no_grad():
        for value in model.a.parameters():
            value[1] = value[0]
    assert reduce_model(model, inputs=torch.randn(8, 6)).sizes == {"a": (5, 4)}
