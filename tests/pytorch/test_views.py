"""Views follow the layers that become smaller, also where the model's code asks for a number of sizes."""

import inspect
import io
import json
import pickle
import warnings
from copy import deepcopy

import onnxruntime
import pytest
import torch
from safetensors import safe_open
from torch import nn
from torch.nn import functional as F

from condensation import InputError
from condensation._writing import write_tensors
from condensation.pytorch import load_reduced, reduce_model
from condensation.pytorch._reduction.flexible import Flexible

pytestmark = pytest.mark.pytorch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def planted(model):
    """Random weights, of which each convolution and layer 0 has two of one unit."""
    with torch.no_grad():
        for module in model.eval().modules():
            for value in module.parameters(recurse=False):
                value.copy_(0.4 * torch.randn_like(value))
                if isinstance(module, nn.Conv1d | nn.Conv2d):
                    value[1] = value[4]
    return model


def images(batch=4):
    return torch.randn(batch, 1, 6, 6)


def check(model, reduced, x, near=1e-6):
    """The outputs of the reduced model are those of the given one, and something really is smaller."""
    assert reduced.parameters[1] < reduced.parameters[0]
    assert reduced.operations[1] < reduced.operations[0]
    with torch.no_grad():
        given, small = model(x), reduced.model(x)
        assert given.shape == small.shape
        assert float((given - small).abs().max()) <= near * float(given.abs().max())


class Viewed(nn.Module):
    def __init__(self, view):
        super().__init__()
        self.conv, self.head, self.view = nn.Conv2d(1, 16, 3), nn.Linear(256, 3), view

    def forward(self, x):
        return self.head(self.view(F.relu(self.conv(x))))


VIEWS = {
    "open": lambda x: x.view(len(x), -1),
    "flat": lambda x: x.flatten(1),
    "told": lambda x: x.view(-1, x.size(1) * x.size(2) * x.size(3)),
    "view": lambda x: x.view(-1, 256),
    "reshape": lambda x: x.reshape(-1, 256),
    "function": lambda x: torch.reshape(x, (-1, 256)),
    "named": lambda x: torch.reshape(shape=[-1, 256], input=x),
    "size": lambda x: x.view(size=(-1, 256)),
    "samples": lambda x: x.view(x.size(0), 256),
    "fixed": lambda x: x.view(4, 256),
    "two": lambda x: x.view(-1, 16, 16).flatten(1),
    "both": lambda x: x.view(-1, 16, 16).view(x.size(0), 256),
    "turned": lambda x: x.permute(0, 2, 3, 1).reshape(-1, 256),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("batch", [1, 4, 16])
def test_views_follow_the_channels(name, batch, tmp_path):
    model = planted(Viewed(VIEWS[name])).double()
    x = images(4 if name == "fixed" else batch).double()
    reduced = reduce_model(model, inputs=x)
    assert reduced.sizes == {"conv": (16, 15)}
    assert reduced.model.head.in_features == 240
    assert isinstance(reduced.model, Flexible) == (name not in ("open", "flat", "told"))
    assert type(model) is Viewed
    new = images().double()
    check(model, reduced, new, 1e-12)
    reduced.save(tmp_path / "small.safetensors")
    for source in (tmp_path / "small.safetensors", reduced.model.state_dict()):
        with torch.no_grad():
            assert torch.equal(load_reduced(Viewed(VIEWS[name]), source).eval()(new), reduced.model(new))


@pytest.mark.parametrize("cut", [(4, 64), (4, 4, 16), (2, 8, 4, 4)])
def test_a_number_that_cuts_the_channels_stays(cut):
    model = Viewed(lambda x: x.view(-1, *cut).flatten(1))
    reduced = reduce_model(planted(model), inputs=images())
    assert reduced.sizes == {}
    assert "the model's code has its size as a number, view(-1" in reduced.skipped["conv"]
    assert type(reduced.model) is Viewed


def test_a_number_of_samples_stays_what_it_is():
    model = planted(Viewed(VIEWS["fixed"]))
    reduced = reduce_model(model, inputs=images())
    check(model, reduced, images())
    for other in (model, reduced.model):
        with pytest.raises(RuntimeError, match="invalid for input of size"):
            other(images(3))


class Flat(nn.Module):
    def __init__(self, size=256):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x.view(-1, self.size)


class Branches(nn.Module):
    """A module that is called of several places, one of which stays as it is; keyword arguments, a branch, a loop."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Sequential(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU()) for _ in range(2))
        self.flat, self.hidden = Flat(), nn.Linear(256, 256)
        self.heads = nn.ModuleList(nn.Linear(256, 3) for _ in range(2))

    def forward(self, x, *, times=1.0):
        found = [head(self.flat(conv(x))) for conv, head in zip(self.convs, self.heads, strict=True)]
        if x.sum() > 1e9:
            return found[0]
        return times * sum(found) + self.flat(self.hidden(self.flat(x[..., :4, :4].repeat(1, 16, 1, 1)))).sum()


def test_a_module_that_is_called_of_several_places():
    model = planted(Branches())
    for conv in model.convs:
        for value in (*conv[1].parameters(), conv[1].running_mean, conv[1].running_var):
            value.data[1] = value.data[4]
    model.train()
    reduced = reduce_model(model, inputs={"x": images(), "times": 2.0})
    assert reduced.sizes == {"convs.0.0": (16, 15), "convs.1.0": (16, 15)}
    assert reduced.model.training
    assert [name for name, part in reduced.model.named_modules() if isinstance(part, Flexible)] == ["flat"]
    reduced.model.train()(images()).sum().backward()
    assert reduced.model.heads[0].weight.grad.shape == (3, 240)
    model.eval()
    small = load_reduced(Branches(), reduce_model(model, inputs=images()).model.state_dict()).eval()
    x = images(7)
    assert torch.allclose(model(x, times=3.0), small(x, times=3.0), rtol=1e-5)


class Framed(nn.Module):
    """Frames through convolutions, and what they make through an LSTM, as detectors of speech have it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(1, 8, 3, padding=1), nn.Conv1d(8, 16, 9)
        self.rnn, self.head = nn.LSTM(16, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, x):
        found = F.relu(self.second(F.relu(self.first(x.flatten(0, 1)[:, None]))))
        return self.head(self.rnn(found.reshape(x.shape[0], x.shape[1], 16))[0])


def test_a_recurrent_layer_behind_a_view():
    model, x = planted(Framed()), torch.randn(300, 5, 9)
    reduced = reduce_model(model, inputs=x[:3])
    assert reduced.sizes == {"first": (8, 7), "second": (16, 15), "rnn": (6, 6)}
    assert reduced.model.rnn.input_size == 15
    check(model, reduced, x)
    again = reduce_model(reduced.model, x, units={"second": 9})
    assert again.sizes["second"] == (15, 9)
    loaded = load_reduced(Framed(), again.model.state_dict()).eval()
    with torch.no_grad():
        assert torch.equal(loaded(x[:2, :3]), again.model(x[:2, :3]))


def test_reduced_models_whose_views_follow_are_ordinary_modules():
    model = planted(Viewed(Flat())).bfloat16()
    reduced = reduce_model(model, inputs=images().bfloat16())
    assert reduced.sizes == {"conv": (16, 15)}
    small, x = reduced.model.float(), images(5)
    file = io.BytesIO()
    torch.save(small.state_dict(), file)
    file.seek(0)
    loaded = load_reduced(Viewed(Flat()), torch.load(file, weights_only=True)).eval()
    for other in (deepcopy(small), pickle.loads(pickle.dumps(small)), loaded):
        assert str(other) == str(small)
        assert type(other.view) is type(small.view)
        assert torch.equal(other(x), small(x))
    assert type(small) is Viewed
    assert isinstance(small.view, Flat)
    assert inspect.signature(small.view.forward) == inspect.signature(Flat().forward)


def test_reduced_models_whose_views_follow_are_exported(tmp_path):
    model, x = planted(Viewed(VIEWS["samples"])), images()
    small = reduce_model(model, inputs=x).model
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(small, (x,), dynamic_shapes=shapes)
    new = images(7)
    assert torch.equal(program.module()(new), small(new))
    with warnings.catch_warnings(action="ignore"):  # the exporter's own
        torch.onnx.export(program, (x,), tmp_path / "small.onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "small.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: new.numpy()})
    assert torch.allclose(torch.from_numpy(found), model(new), atol=1e-5)


@pytest.mark.parametrize("method", ["merge", "merge_fit", "prune", "prune_fit"])
def test_layers_before_and_behind_a_view_are_fitted(method):
    model, x = planted(Viewed(VIEWS["turned"])), images(400)
    reduced = reduce_model(model, x, ratio=0.25, method=method)
    assert reduced.sizes == {"conv": (16, 12)}
    assert reduced.model.head.weight.shape == (3, 192)
    same = reduce_model(planted(Viewed(VIEWS["turned"])), x, ratio=1 / 16, method=method)
    assert same.sizes == {"conv": (16, 15)}
    assert same.relative_error < (1e-3 if method.endswith("fit") or method == "merge" else 1)


@pytest.mark.parametrize("batch", [1, 4])
def test_entries_in_another_order_behind_a_norm(batch):
    """Batch norm with factors of both signs, of which relu lets those through that are moved up or down."""
    model = planted(Viewed(lambda x: F.max_pool2d(x, 2).permute(0, 3, 2, 1).reshape(-1, 64)))
    model.conv, model.head = nn.Sequential(model.conv, nn.BatchNorm2d(16)), nn.Linear(64, 3)
    norm = model.eval().conv[1]
    for value in (norm.weight, norm.bias, norm.running_mean):
        value.data.copy_(torch.randn(16))
        value.data[1] = value.data[4]
    reduced = reduce_model(model, inputs=images(batch))
    assert reduced.sizes == {"conv.0": (16, 15)}
    assert reduced.model.head.in_features == 60
    check(model, reduced, images())


class Copying(Viewed):
    """Its copies are made by its own class, whatever is changed on it."""

    def __deepcopy__(self, memo):
        copy = Copying(self.view)
        copy.load_state_dict(self.state_dict())
        return copy.eval()


class Closed(Viewed):
    def __init_subclass__(cls, *, name):
        raise TypeError


@pytest.mark.parametrize("make", [Copying, Closed, lambda view: torch.fx.symbolic_trace(Viewed(view))])
def test_models_that_cannot_be_changed_are_named_with_what_would_work(make):
    model = planted(make(VIEWS["view"]))
    reduced = reduce_model(model, inputs=images())
    assert reduced.sizes == {}
    assert "view(-1, 256): flatten(1)" in reduced.skipped["conv"]


def test_files_that_tell_of_other_views_are_refused(tmp_path):
    path = tmp_path / "small.safetensors"
    reduce_model(planted(Viewed(VIEWS["view"])), inputs=images()).save(path)
    with safe_open(path, "numpy") as file:
        about = json.loads(file.metadata()["reduced"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    row = [4, 2, 1, 256, 1, 4]
    assert about["views"] == {"": [row]}
    for views in (
        [],
        {"other": [row]},
        {"": [[4, 2, 2, *row[3:]]]},
        {"": [row, row]},
        {"": []},
        {"": [[True]]},
        {"": 3},
    ):
        write_tensors(path, arrays, {"reduced": json.dumps(about | {"views": views})})
        with pytest.raises(InputError, match="views"):
            load_reduced(Viewed(VIEWS["view"]), path)
