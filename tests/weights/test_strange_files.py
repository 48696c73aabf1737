"""Files of PyTorch that look like something else, and layers whose names say little."""

import io
import pickle
import tarfile

import h5py
import numpy as np
import pytest
import torch
from torch import nn

from condensation.weights import open_model_file, units_of_arrays


@pytest.mark.parametrize("padding", [0, 100])
def test_a_tar_archive_that_ends_as_a_zip_archive_is_a_tar_archive(tmp_path, padding):
    """torch.save writes zip archives, and the one inside ends near the end of the other."""
    content, weight = io.BytesIO(), torch.randn(6, 5)
    torch.save({"fc.weight": weight}, content)
    members = {"data/notes.txt": b"n" * padding, "data/m.pth": content.getvalue()}
    with tarfile.open(tmp_path / "m.pth.tar", "w") as archive:
        for name, own in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(own)
            archive.addfile(about, io.BytesIO(own))
    for path in (tmp_path / "m.pth.tar", tmp_path / "m.pth.tar" / "data" / "m.pth"):
        assert (open_model_file(path).arrays["fc.weight"].load() == weight.numpy()).all()


@pytest.mark.parametrize("sizes", [{}, {"kdim": 8, "vdim": 12}])
@pytest.mark.parametrize("name", ["", "mix."])
def test_an_attention_is_known_by_its_own_weights_whatever_it_is_called(name, sizes):
    state = nn.MultiheadAttention(16, 4, **sizes).state_dict()
    found = units_of_arrays({f"{name}{own}": value.numpy() for own, value in state.items()})
    kinds = [own.kind for own in found if not own.reason]
    assert kinds == ["query", "key", "value", "attention output"]
    assert {own.kind for own in units_of_arrays({"mix.out_proj.weight": torch.randn(16, 16).numpy()})} == {"neuron"}


def test_a_pickled_module_is_read_with_the_storages_inside_it(tmp_path):
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))
    model[2].weight.data = model[0].weight.data[:3, :]  # a part of the same storage
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    arrays = open_model_file(tmp_path / "m.pkl").arrays
    assert list(arrays) == list(model.state_dict())
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(arrays[name].load(), value.numpy())


def matrices(**shapes):
    return {name.replace("__", "."): np.zeros(shape, np.float32) for name, shape in shapes.items()}


UP, DOWN, CHOICE = (64, 32), (32, 64), (4, 32)
EXPERT = {"m__experts__0__w1__weight": UP, "m__experts__0__w3__weight": UP}
STACKS = {"b__0__ffn_gate_exps__weight": (4, 64, 32), "b__0__ffn_up_exps__weight": (4, 64, 32)}
GATED = "gated neuron"


@pytest.mark.parametrize(
    ("shapes", "kinds"),
    [
        (matrices(a__w1__weight=UP, a__w2__weight=DOWN, a__w3__weight=UP), [GATED, "neuron", GATED]),
        (matrices(mlp__up_proj__weight=UP, mlp__down_proj__weight=DOWN), ["neuron", "neuron"]),
        (matrices(m__gate__weight=CHOICE, **EXPERT), ["router", GATED, GATED]),
        (matrices(w1=UP, w2=DOWN, w3=UP), ["neuron", "neuron", "neuron"]),
        (matrices(b__0__ffn_gate_inp__weight=CHOICE, **STACKS), ["router", *8 * [GATED]]),
        (matrices(m__router__classifier__weight=CHOICE, m__experts__expert_0__wi__weight=UP), ["router", "neuron"]),
        (matrices(fc1__weight=(64, 20), fc2__weight=(10, 64)), ["neuron", "output"]),
        (
            matrices(c1__weight=(16, 3, 3, 3), c2__weight=(32, 16, 3, 3), fc__weight=(4, 32)),
            ["filter", "filter", "output"],
        ),
    ],
)
def test_gates_routers_and_outputs_are_told_by_what_stands_beside_them(shapes, kinds):
    assert [own.kind for own in units_of_arrays(shapes)][: len(kinds)] == kinds


class Named:
    """An object whose pickle calls a function of Python itself."""

    def __init__(self, function):
        self.function = function

    def __reduce__(self):
        return self.function, ("1",)


@pytest.mark.parametrize("function", [eval, exec, getattr, __import__, torch.load, torch.hub.load, np.load])
@pytest.mark.parametrize("name", ["m.pt", "m.npz"])
def test_names_of_python_numpy_and_pytorch_that_rebuild_nothing_are_told(tmp_path, function, name):
    content = {"fc.weight": np.eye(4), "x": Named(function)}
    if name == "m.pt":
        torch.save(content, tmp_path / name)
    else:
        np.savez(tmp_path / name, model=np.array(content, dtype=object))
    found = open_model_file(tmp_path / name)
    (note,) = [own for own in found.notes if "of which nothing was imported or called" in own]
    assert f".{function.__name__}, of which" in note
    assert len([own for own in found.units() if not own.reason]) == 1


@pytest.mark.parametrize("names", [("query_dense", "key_dense", "output_dense"), ("query", "key", "attention_output")])
@pytest.mark.parametrize("above", ["multi_head_attention/", "grouped_query_attention/"])
def test_the_heads_of_keras_are_queries_and_keys_with_their_biases(tmp_path, names, above):
    """As Keras 3 names them in its files, and as it did before: (inputs, heads, size), no filters."""
    rng, hidden = np.random.default_rng(0), "_" if "grouped" in above and "dense" in names[0] else ""
    kernels = {
        names[0]: rng.normal(size=(6, 2, 4)),
        names[1]: rng.normal(size=(6, 1, 4)),
        names[2]: rng.normal(size=(2, 4, 6)),
    }
    with h5py.File(tmp_path / "m.weights.h5", "w") as file:
        for name, kernel in kernels.items():
            file[f"layers/{above}{hidden}{name}/vars/0"] = kernel
            file[f"layers/{above}{hidden}{name}/vars/1"] = rng.normal(size=kernel.shape[1:] if "put" not in name else 6)
    found = open_model_file(tmp_path / "m.weights.h5").units()
    told = {(own.kind, own.units, own.inputs) for own in found}
    assert told == {("query", 8, 7), ("key", 4, 6), ("attention output", 6, 9)}
    by_head = [own.kind for own in open_model_file(tmp_path / "m.weights.h5").units(heads=True)]
    assert (by_head.count("query"), by_head.count("key"), by_head.count("attention output")) == (2, 1, 2)
    query = next(own for own in found if own.kind == "query")
    np.testing.assert_array_equal(query.weights()[:, :-1], kernels[names[0]].reshape(6, 8).T)
