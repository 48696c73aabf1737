"""Hostile files of single formats: small ones that would take hours or the memory, and files under other names."""

import io
import os
import struct
import warnings
import zipfile

import foreign
import h5py
import joblib
import numpy as np
import pytest
import torch
from fuzzing import check_told, refused, told, within_time
from onnx import helper, numpy_helper

from condensation import InputError
from condensation._memory import VARIABLE
from condensation.weights import measure_listed, open_model_file
from condensation.weights._formats.opened import free_name


def constant(shape: tuple[int, ...], values: int) -> bytes:
    """A graph of TensorFlow with one constant, whose values stand one by one."""
    numbers = (bytes([5 << 3 | 5]) + struct.pack("<f", 1 + k) for k in range(values))
    tensor = foreign.field(1, 1) + foreign.field(2, foreign.shape_message(shape)) + b"".join(numbers)
    attribute = foreign.field(1, b"value") + foreign.field(2, foreign.field(8, tensor))
    return foreign.field(1, foreign.field(1, b"w") + foreign.field(2, b"Const") + foreign.field(5, attribute))


def matrix(shape: list[int] | None = None, again: int = 0) -> bytes:
    """A model of ONNX with one weight, said to be of another shape, or there again and again under its name."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = foreign.as_onnx(nodes, {"w": foreign.DENSE.T.copy()}, 7)
    model.graph.initializer.extend([numpy_helper.from_array(np.ones((2, 2), np.float32), "w")] * again)
    if shape is not None:
        del model.graph.initializer[0].dims[:]
        model.graph.initializer[0].dims.extend(shape)
    return model.SerializeToString()


def grown(*members: tuple[str, int]) -> bytes:
    """A zip archive of members that are so many MiB of zeros."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in members:
            archive.writestr(name, bytes(size * 2**20) if size else b"{}")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("m.keras", lambda: grown(("config.json", 0), ("model.weights.h5", 70)), "model.weights.h5 would grow"),
        ("m.pt", lambda: grown(("m/byteorder", 70), ("m/data.pkl", 0)), "m/byteorder would grow to 70 MiB"),
        ("m.onnx", lambda: matrix([2**40] * 20_000), "said to have 20,000 axes"),
        ("m.onnx", lambda: matrix([2**40, 2**40]), "sizes that no array has"),
        ("m.pb", lambda: constant((2**40,) * 2000, 1), "sizes that no array has"),
        ("m.pb", lambda: constant((2**20, 2**9), 1), "one number in all places"),
    ],
)
def test_what_no_array_is_gets_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content())
    with within_time():
        code, _, errors = told("measure", tmp_path / name)
    assert code == 2
    assert said in " ".join(errors.split())
    check_told("measure", tmp_path / name)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "m.onnx cannot be read as ONNX"),
        (b"BZh91AY&SY" + bytes(50), "m.onnx is packed with bzip2"),
        (b"\xfd7zXZ\0" + bytes(50), "m.onnx is packed with xz"),
        (b"c" + b"a" * 100_000 + b"\nb\n.", "m.onnx "),
    ],
)
def test_a_sentence_says_what_a_file_is_not_and_is_short(tmp_path, content, said):
    for name in ("m.onnx", "m.pkl") if content[:1] == b"c" else ("m.onnx",):
        (tmp_path / name).write_bytes(content)
        code, _, errors = told("measure", tmp_path / name)
        assert (code, said.replace("m.onnx", name) in errors, len(errors) < 1000) == (2, True, True), errors[:500]


def test_a_list_of_tensorflow_js_with_many_axes(tmp_path):
    for name, content in foreign.tfjs_files().items():
        (tmp_path / name).write_bytes(content.replace(b'"shape": [', b'"shape": [' + b"1," * 70, 1))
    with pytest.raises(InputError, match="axes, more than an array may have"):
        open_model_file(tmp_path / "model.json")


def test_constants_of_many_single_numbers_are_read(tmp_path):
    """In a time that grows with their number, not with its square."""
    (tmp_path / "m.pb").write_bytes(constant((300, 200), 60_000))
    with within_time():
        found = open_model_file(tmp_path / "m.pb").arrays["w"].read()
    np.testing.assert_array_equal(found.T.ravel(), np.arange(1, 60_001))  # units first


def test_many_constants_of_one_name_are_told_apart(tmp_path):
    (tmp_path / "m.onnx").write_bytes(matrix(again=200))
    assert len(open_model_file(tmp_path / "m.onnx").arrays) == 201
    taken: dict[str, int] = {}
    with within_time():
        times: dict[str, int] = {}
        for k in range(50_000):
            taken[free_name("w", taken, times)] = k
    assert len(taken) == 50_000


def test_graphs_of_tflite_that_are_one_graph_again_and_again(tmp_path, monkeypatch):
    import tflite

    (tmp_path / "m.tflite").write_bytes(foreign.tflite_file())
    monkeypatch.setattr(tflite.Model, "SubgraphsLength", lambda self: 200)  # offsets to the first one
    first = tflite.Model.Subgraphs
    monkeypatch.setattr(tflite.Model, "Subgraphs", lambda self, k: first(self, 0))
    with pytest.raises(InputError, match="its lists are longer than the file"):
        open_model_file(tmp_path / "m.tflite")


def test_no_name_of_hdf5_is_looked_up_through_a_link(tmp_path):
    """A link named as Keras names its weights leads to a pipe, on which whoever opens it waits for ever."""
    os.mkfifo(tmp_path / "pipe")
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["w"] = foreign.normal(8, 4)
        file["model_weights"] = h5py.ExternalLink(str(tmp_path / "pipe"), "w")
    rows = {own.name: own.reason for own in open_model_file(tmp_path / "m.h5").units()}
    assert "not followed" in rows["model_weights"]


def test_texts_of_gguf_count_for_the_memory(tmp_path, monkeypatch):
    import gguf

    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "tiny")
    writer.add_array("tokenizer.ggml.tokens", ["a"] * 20_000)
    writer.add_tensor("blk.0.ffn_up.weight", foreign.GGUF_UP)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setenv(VARIABLE, str(2**25))
    with pytest.raises(InputError, match="the list of its tensors and texts"):
        open_model_file(tmp_path / "m.gguf")


@pytest.fixture(scope="module")
def every(tmp_path_factory):
    """A small file of each kind, and the name of its format."""
    folder = tmp_path_factory.mktemp("kinds")
    found = {name: own for name, own in foreign.all_files(folder).items() if name not in ("c.index", "model.json")}
    weight = torch.from_numpy(foreign.DENSE.copy())
    torch.save({"w": weight}, folder / "m.pt")
    torch.save({"w": weight}, folder / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.nn.Linear(7, 5), folder / "module.pt")
    with warnings.catch_warnings(action="ignore"):  # TorchScript is not made any more
        torch.jit.script(torch.nn.Linear(7, 5)).save(folder / "m.jit")
    joblib.dump({"w": foreign.DENSE}, folder / "m.joblib")
    np.save(folder / "m.npy", foreign.DENSE)
    np.savez(folder / "m.npz", w=foreign.DENSE)
    with zipfile.ZipFile(folder / "m.zip", "w") as archive:
        archive.writestr("inside/m.onnx", found["m.onnx"])
    own = ("m.pt", "old.pt", "module.pt", "m.jit", "m.joblib", "m.npy", "m.npz", "m.zip")
    return found | {name: (folder / name).read_bytes() for name in own}


def test_the_content_tells_the_format_whatever_the_name(tmp_path, every):
    for name, content in every.items():
        for suffix in (".pt", ".pkl", ".onnx", ".h5", ".npz", ".json", ".gguf", ".txt", ""):
            path = tmp_path / f"other{suffix}"
            path.write_bytes(content)
            assert any(not own.reason for own in open_model_file(path).units()), (name, suffix)
            path.unlink()


@pytest.mark.parametrize("name", ["m.pt", "old.pt", "module.pt", "m.jit", "m.joblib", "m.npy", "m.npz", "m.zip"])
def test_pickles_and_archives_that_are_cut_short(tmp_path, every, name):
    content = every[name]
    ends = {1, 2, 3, 5, 9, 17, 40, 80, *(k * len(content) // 20 for k in range(1, 20)), len(content) - 1}
    for end in ends - {0}:
        (tmp_path / name).write_bytes(content[:end])
        refused(lambda: measure_listed(open_model_file(tmp_path / name).units()))
    assert check_told("measure", tmp_path / name) in (0, 2)
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    assert check_told("measure", tmp_path / name) == 2


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["m.pt", "old.pt", "module.pt", "m.jit", "m.joblib", "m.npy", "m.npz", "m.zip"])
@pytest.mark.usefixtures("unchecked")
def test_pickles_and_archives_with_flipped_bytes(tmp_path, every, name):
    content, stream = every[name], np.random.default_rng(len(name))
    for place in stream.integers(len(content), size=40):
        changed = bytearray(content)
        changed[place] ^= 1 << int(stream.integers(8))
        (tmp_path / name).write_bytes(changed)
        refused(lambda: measure_listed(open_model_file(tmp_path / name).units()))
