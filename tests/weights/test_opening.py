"""Files of weights that need no PyTorch: what is read, what is dequantised, and what is said of the rest."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from fuzzing import told
from safetensors.numpy import save, save_file

from condensation import InputError
from condensation._files import Stored
from condensation.weights import ModelFile, measure_arrays, measure_listed, measure_path, open_model_file
from condensation.weights._files import natural


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def reasons(rows):
    return {row.layer: row.reason for row in rows if row.reason}


def rows_of(path, **options):
    return {row.layer: row for row in measure_path(path, **options).rows}


def arrays():
    line = np.outer(normal(40, seed=1), normal(12, seed=2))
    return {
        "h.2.fc.weight": line.astype(np.float32),
        "h.2.fc.bias": line[:, 0].astype(np.float32),
        "h.10.fc.weight": normal(40, 12),
        "h.10.norm.weight": np.ones(40, np.float32),
        "steps": np.arange(3),
    }


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_a_file_gives_the_rows_of_its_arrays(tmp_path, suffix):
    path = tmp_path / f"model.{suffix}"
    save_file(arrays(), path) if suffix == "safetensors" else np.savez(path, **arrays())
    found = measure_path(path)
    assert repr(sorted(found.rows, key=lambda row: row.layer)) == repr(
        sorted(measure_arrays(arrays()), key=lambda row: row.layer)
    )
    assert found.rows[0].layer == "h.2.fc.weight"
    assert [row.layer for row in found.steps[0] if not row.reason] == ["h.2.fc.weight", "h.10.fc.weight"]


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    save_file(arrays(), tmp_path / "model.safetensors")
    checkpoint = open_model_file(tmp_path / "model.safetensors")
    mapped = checkpoint.arrays["h.10.fc.weight"].load()
    assert not mapped.flags.owndata
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, normal(40, 12))
    assert checkpoint.parameters == 40 * 12 * 2 + 40 * 2
    assert checkpoint.size == (tmp_path / "model.safetensors").stat().st_size


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_are_measured_as_their_values(tmp_path, kind):
    weights = normal(30, 9).astype(getattr(ml_dtypes, kind, kind))
    write_tensors(tmp_path / "w.safetensors", {"a.weight": weights})
    stored = open_model_file(tmp_path / "w.safetensors").arrays["a.weight"]
    assert (stored.dtype, stored.read().dtype) == (kind, np.float32)
    np.testing.assert_array_equal(stored.read(), weights.astype(np.float32))
    assert rows_of(tmp_path / "w.safetensors")["a.weight"].units == 30


def write_tensors(path, tensors):
    """A safetensors file with types that its NumPy writer does not know."""
    names = {"float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}
    names |= {"float32": "F32", "int8": "I8"}
    header, content = {}, b""
    for name, array in tensors.items():
        ends = [len(content), len(content) + array.nbytes]
        header[name] = {"dtype": names[str(array.dtype)], "shape": array.shape, "data_offsets": ends}
        content += array.tobytes()
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + content)


@pytest.mark.parametrize("shape", [(), (1,), (256,), (256, 1), (256, 4), (2, 2), (2, 3)])
@pytest.mark.parametrize("kind", ["int8", "float8_e4m3fn"])
def test_weights_with_a_scale_are_dequantised(tmp_path, shape, kind):
    inputs = 300 if shape == (2, 3) else 256
    weights = (40 * normal(256, inputs)).clip(-127, 127).astype(getattr(ml_dtypes, kind, kind))
    scale = np.abs(normal(*shape, seed=3)) + 0.1
    scale = np.asarray(scale, np.float32)
    write_tensors(tmp_path / "w.safetensors", {"a.weight": weights, "a.weight_scale": scale})
    [units, about] = open_model_file(tmp_path / "w.safetensors").units()
    assert about.reason == "belongs to a.weight"
    wide = scale.reshape(-1, 1) if scale.ndim < 2 else scale
    rows = -(-256 // len(wide)) if len(wide) > 1 else 256
    columns = 128 if shape == (2, 3) else inputs // wide.shape[1]
    expected = [
        [float(weights[i, j]) * wide[i // rows, j // columns] for j in range(0, inputs, 37)] for i in range(0, 256, 31)
    ]
    np.testing.assert_allclose(units.weights()[::31, ::37], expected, rtol=1e-6)


def test_scales_of_bitsandbytes_and_zero_points():
    weight = np.array([[127, -127, 0], [10, 20, 30]], np.int8)
    rows = {"a.weight": weight, "a.SCB": np.array([2.0, 3.0], np.float32), "a.weight_format": np.zeros(1, np.uint8)}
    read = {units.name: units for units in units_of(rows)}
    np.testing.assert_allclose(read["a.weight"].weights(), weight * np.array([[2.0], [3.0]]) / 127, rtol=1e-6)
    zero = {"b.weight": weight, "b.weight_scale": np.float32(0.5), "b.weight_zero_point": np.array([1], np.int8)}
    read = {units.name: units for units in units_of(zero)}
    np.testing.assert_allclose(read["b.weight"].weights(), (weight.astype(float) - 1) * 0.5)


def units_of(found):
    from condensation.weights import units_of_arrays

    return units_of_arrays({name: np.asarray(array) for name, array in found.items()})


def test_packed_weights_are_listed_with_the_reason():
    packed = {
        "g.qweight": np.zeros((4, 8), np.int32),
        "g.qzeros": np.zeros((1, 1), np.int32),
        "g.scales": normal(4, 8),
        "g.g_idx": np.zeros(4, np.int32),
        "c.weight_packed": np.zeros((4, 8), np.int32),
        "c.weight_scale": normal(4, 8),
        "n.weight": np.zeros((32, 1), np.uint8),
        "n.weight.absmax": normal(4),
        "n.weight.quant_map": normal(16),
        "n.weight.quant_state.bitsandbytes__nf4": np.zeros(9, np.uint8),
        "m.gate_blocks": np.zeros((2, 4, 8), np.uint8),
        "i.weight": np.zeros((4, 8), np.int8),
        "f.weight": np.zeros((4, 8), np.int8),
        "f.weight_scale": normal(3),
        "x.weight": np.zeros((4, 8), complex),
        "good.weight": normal(9, 8),
    }
    rows = measure_arrays(packed)
    told = reasons(rows)
    assert [row.layer for row in rows if not row.reason] == ["good.weight"]
    assert "GPTQ or AWQ" in told["g.qweight"]
    assert told["g.scales"] == told["g.g_idx"] == "belongs to g.qweight"
    assert "compressed-tensors" in told["c.weight_packed"]
    assert told["c.weight_scale"] == "belongs to c.weight_packed"
    assert "two weights a byte" in told["n.weight"]
    assert told["n.weight.absmax"] == "belongs to n.weight"
    assert "several weights a byte" in told["m.gate_blocks"]
    assert "of type int8, not floating-point" in told["i.weight"]
    assert "f.weight_scale does not fit: a scale of shape (3,) for weights of shape (4, 8)" in told["f.weight"]
    assert "complex" in told["x.weight"]


def test_equal_weights_are_tied_and_equal_constants_are_not(tmp_path):
    embedding = normal(50, 8)
    almost = embedding.copy()
    almost[49, 7] += 1
    found = {"lm_head.weight": embedding, "wte.weight": embedding.copy(), "near.weight": almost}
    found |= {f"lora.{k}.weight": np.zeros((50, 8), np.float32) for k in "ab"}
    save_file(found, tmp_path / "m.safetensors")
    rows = rows_of(tmp_path / "m.safetensors")
    assert rows["lm_head.weight"].reason == "tied: it is wte.weight"
    assert rows["wte.weight"].kind == "embedding"
    assert not rows["near.weight"].reason
    assert "norm zero" in rows["lora.a.weight"].reason
    assert "norm zero" in rows["lora.b.weight"].reason
    assert open_model_file(tmp_path / "m.safetensors").parameters == 50 * 8 * 4


def test_equal_weights_that_are_no_embedding_are_measured(tmp_path):
    copied = normal(50, 8)
    found = {
        f"layers.{k}.fc.{own}": array
        for k in range(2)
        for own, array in (("weight", copied), ("bias", normal(50, seed=k)))
    }
    found |= {f"skip.{k}.weight": np.eye(8, dtype=np.float32) for k in range(2)}
    save_file(found, tmp_path / "m.safetensors")
    checkpoint = open_model_file(tmp_path / "m.safetensors")
    assert not reasons(measure_path(tmp_path / "m.safetensors").rows)
    assert checkpoint.parameters == sum(array.size for array in found.values())


def test_arrays_are_compared_once():
    loads = []
    stored = {
        name: Stored((50, 8), "float32", lambda name=name: loads.append(name) or normal(50, 8))
        for name in ("wte.weight", "head.weight", "other.weight")
    }
    checkpoint = ModelFile(Path("m"), {"fc.weight": replace(stored["wte.weight"], shape=(8, 50))} | stored)
    assert [units.name for units in checkpoint.units() if units.reason] == ["head.weight", "other.weight"]
    once = len(loads)
    assert checkpoint.parameters == 2 * 50 * 8
    checkpoint.units(heads=True)
    assert len(loads) == once


def test_names_of_any_length_are_sorted_by_size(tmp_path):
    numbers = ["a0", "a09", "a10", f"a{'1' * 5000}", f"a{'2' * 5000}"]
    assert sorted((numbers[k] for k in (3, 0, 4, 2, 1)), key=natural) == numbers
    found = {f"h.{'9' * 5000}.weight": normal(9, 4), "h.2.weight": normal(9, 4)}
    save_file(found, tmp_path / "m.safetensors")
    assert list(open_model_file(tmp_path / "m.safetensors").arrays) == list(found)[::-1]


def test_bad_layers_do_not_spoil_the_others():
    found = {
        "nan.weight": np.full((5, 4), np.nan),
        "one.weight": normal(1, 4),
        "lost.bias": normal(4),
        "flat.weight": normal(5, 1),
        "good.weight": normal(9, 8),
    }
    rows = measure_arrays(found)
    told = reasons(rows)
    assert [row.layer for row in rows if not row.reason] == ["good.weight"]
    assert "5 of 5 units hold NaN" in told["nan.weight"]
    assert "a single unit" in told["one.weight"]
    assert told["lost.bias"] == "a bias whose lost.weight is missing"
    assert "at least 2 inputs" in told["flat.weight"]


@pytest.mark.parametrize("shape", [(20, 30), (200, 300)])
def test_a_broken_member_of_an_archive_is_one_reason(tmp_path, shape):
    np.savez(tmp_path / "w.npz", a=normal(*shape), b=normal(20, 40))
    content = bytearray((tmp_path / "w.npz").read_bytes())
    place = content.index(normal(*shape).tobytes()[:64])
    content[place + 100 : place + 160] = b"x" * 60
    (tmp_path / "w.npz").write_bytes(content)
    rows = rows_of(tmp_path / "w.npz")
    assert "a is broken: BadZipFile" in rows["a"].reason
    assert rows["b"].units == 20


def shards(folder, files=2):
    """A Hugging Face folder whose model is in several files."""
    folder.mkdir(exist_ok=True)
    places = {name: f"model-{k % files + 1:05}-of-{files:05}.safetensors" for k, name in enumerate(arrays())}
    for file in set(places.values()):
        save_file({name: array for name, array in arrays().items() if places[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    (folder / "config.json").write_text(json.dumps({"model_type": "toy"}))
    return places


def test_shards_are_one_model(tmp_path):
    shards(tmp_path / "hf")
    found = measure_path(tmp_path / "hf")
    assert repr(sorted(found.rows, key=lambda row: row.layer)) == repr(
        sorted(measure_arrays(arrays()), key=lambda row: row.layer)
    )
    assert found.facts["model"] == "toy"


def test_a_missing_or_broken_shard_is_told_and_the_rest_measured(tmp_path):
    places = shards(tmp_path / "hf")
    lost = tmp_path / "hf" / places["h.10.fc.weight"]
    index = tmp_path / "hf" / "model.safetensors.index.json"
    about = json.loads(index.read_text())
    about["weight_map"]["ghost.weight"] = places["h.2.fc.bias"]
    index.write_text(json.dumps(about))
    content = lost.read_bytes()
    for broken in (None, b"", content[: len(content) // 2]):
        lost.unlink() if broken is None else lost.write_bytes(broken)
        found = measure_path(tmp_path / "hf")
        told = reasons(found.rows)
        assert told["h.10.fc.weight"] == f"in a shard that is missing or broken ({lost.name})"
        assert told["ghost.weight"] == f"missing: the index says it is in {places['h.2.fc.bias']}"
        assert lost.name in found.notes[0]
    for file in (tmp_path / "hf").glob("*.safetensors"):
        file.unlink()
    with pytest.raises(InputError, match="names no shard that can be read; there is no file"):
        measure_path(tmp_path / "hf")
    about["weight_map"] = {"a": "../secret.safetensors"}
    index.write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"names \.\./secret\.safetensors, which is not in its own folder"):
        measure_path(tmp_path / "hf")
    index.write_text("[]")
    with pytest.raises(InputError, match="must hold a JSON object, not a list"):
        measure_path(tmp_path / "hf")


@pytest.mark.parametrize("name", ["..", ".", "", "../secret.safetensors", "inner", "link.safetensors", "INDEX"])
def test_an_index_names_plain_files_beside_it(tmp_path, name):
    """A model outside the folder, which the name would reach, is not read; an index that names itself ends."""
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True)
    for place in (tmp_path / "secret", tmp_path / "model", folder / "inner" / "model"):
        save_file({"secret.weight": normal(8, 24)}, f"{place}.safetensors")
    (folder / "link.safetensors").symlink_to(tmp_path / "secret.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"secret.weight": name.replace("INDEX", index.name)}}))
    with pytest.raises(InputError, match="which is not in its own folder"):
        measure_path(index)


def test_a_snapshot_of_a_cache_links_to_its_store(tmp_path):
    """Hugging Face's cache: models--x/snapshots/REVISION/model.safetensors is a link to models--x/blobs/HASH."""
    folder, store = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    folder.mkdir(parents=True)
    store.mkdir()
    save_file({"fc.weight": normal(8, 24)}, store / "1234")
    (folder / "model-1.safetensors").symlink_to(store / "1234")
    (store / "5678").write_text(json.dumps({"weight_map": {"fc.weight": "model-1.safetensors"}}))
    (folder / "model.safetensors.index.json").symlink_to(store / "5678")
    assert set(rows_of(folder)) == {"fc.weight"}


def test_a_configuration_tells_the_heads(tmp_path):
    save_file(
        {"h.0.attn.c_attn.weight": normal(8, 24), "h.0.attn.c_attn.bias": normal(24)}, tmp_path / "model.safetensors"
    )
    (tmp_path / "config.json").write_text(json.dumps({"n_embd": 8, "n_head": 2}))
    rows = rows_of(tmp_path, heads=True)
    assert len(rows) == 6
    row = rows["h.0.attn.c_attn.weight[k, head 1]"]
    assert (row.kind, row.units, row.inputs) == ("key", 4, 8)  # its bias cancels in the softmax
    assert set(rows_of(tmp_path / "model.safetensors", heads=True)) == set(rows)
    assert set(rows_of(tmp_path)) == {f"h.0.attn.c_attn.weight[{part}]" for part in "qkv"}


def test_a_broken_configuration_is_a_note(tmp_path):
    save_file({"a.weight": normal(8, 24)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{")
    found = measure_path(tmp_path / "model.safetensors")
    assert found.rows[0].units == 8
    assert "the sizes of attention heads are not told" in found.notes[0]


@pytest.mark.parametrize(
    ("library", "name", "content", "said"),
    [
        ("h5py", "m.h5", b"\x89HDF\r\n\x1a\n", "m.h5 needs h5py: pip install 'condensation[files]'"),
        ("onnx", "m.onnx", b"\x08\x07\x3a\x00", "m.onnx needs onnx: pip install 'condensation[files]'"),
        ("gguf", "m.gguf", b"GGUF", "m.gguf needs gguf: pip install 'condensation[files]'"),
        ("tflite", "m.tflite", b"....TFL3", "m.tflite needs tflite: pip install 'condensation[files]'"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, library, name, content, said):
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        open_model_file(tmp_path / name)
    assert str(refused.value) == said


def test_kernels_are_another_view(tmp_path):
    save_file({"conv.weight": normal(6, 4, 3, 3)}, tmp_path / "m.safetensors")
    assert rows_of(tmp_path / "m.safetensors")["conv.weight"].units == 6
    assert rows_of(tmp_path / "m.safetensors", view="kernel")["conv.weight"].units == 24


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("w.safetensors", b"", "cannot be read as safetensors"),
        ("w.safetensors", save({"a": normal(9, 9)})[:-50], "cannot be read as safetensors"),
        ("w.npz", b"", "cannot be read"),
        ("w.npy", b"\x93NUMPY", "cannot be read"),
        ("w.txt", b"", "w.txt cannot be read: it is empty"),
        ("w.txt", b"hello", r"unknown kind of file '\.txt'"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said) as refused:
        open_model_file(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_objects_in_archives_are_not_read(tmp_path):
    np.savez(tmp_path / "o.npz", a=np.array([{}], dtype=object), b=normal(9, 8))
    rows = rows_of(tmp_path / "o.npz")
    assert rows["a"].reason == "a holds Python objects, which only pickle could read"
    assert rows["b"].units == 9


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(20))
def test_planted_lines_are_found_and_random_weights_are_not(seed):
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(2, 64))
    planted = axes[rng.integers(2, size=100)] * rng.normal(size=(100, 1)) + 0.05 * rng.normal(size=(100, 64))
    mean = rng.normal(size=64) + rng.normal(size=(100, 64)) * 0.5  # cosines of about 0.8
    scales = rng.normal(size=(100, 64)) * rng.lognormal(size=64)  # outlying inputs are no condensation
    rows = measure_arrays({"random.weight": rng.normal(size=(100, 64)), "mean.weight": mean, "planted.weight": planted})
    assert rows[0].layer == "planted.weight"
    at = {row.layer: row for row in rows}
    assert at["planted.weight"].condensed
    assert at["planted.weight"].lines == 2
    assert at["planted.weight"].ratio < 0.1
    assert at["random.weight"].reading.startswith(("as chance: k_eff 9", "as random weights: k_eff 9"))
    assert "common mean" in at["mean.weight"].reading
    assert at["mean.weight"].centred_lines == 0
    assert at["mean.weight"].ratio > 0.9
    [row] = measure_arrays({"strong.weight": 20 * mean.mean(axis=0) + mean})
    assert row.reading.startswith("condensed on 1 line: the common mean of its units has")
    assert "; look at this layer" in row.reading
    assert row.centred_lines == 0
    assert row.ratio > 0.9
    [row] = measure_arrays({"scales.weight": scales})
    assert row.ratio > 0.8


def test_a_broken_read_is_a_reason():
    from condensation.weights import Units

    def broken():
        raise InputError("the disk is gone")

    [row] = measure_listed([Units("a", "a", "neuron", 5, 4, read=broken)])
    assert (row.reason, row.units) == ("the disk is gone", 5)


@pytest.mark.parametrize("name", ["\x1b[2J\x1b]0;owned\x07.weight", "fc\u202eevil.weight", "fc\r\nfc2.weight"])
def test_names_that_steer_a_terminal_are_neutralised(tmp_path, name):
    """In the table, the JSON, the report and an error: the escape sequence stands as text."""
    save_file({name: normal(8, 24), "[bold]x[/bold].weight": normal(8, 24)}, tmp_path / "model.safetensors")
    report = tmp_path / "page.html"
    for words in ([], ["--json"], ["--report", report]):
        code, out, errors = told("measure", tmp_path / "model.safetensors", *words)
        assert code == 0
        shown = out + errors + (report.read_text(encoding="utf-8") if report.exists() else "")
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert "[bold]x[/bold].weight" in shown
        if "fc\r" not in name:
            assert (r"\x1b" in shown) == ("\x1b" in name)
    with pytest.raises(InputError) as error:
        measure_path(tmp_path / "\x1b[31m.bin")
    code, _, errors = told("measure", tmp_path / "\x1b[31m.bin")
    assert code == 2
    assert "\x1b" not in errors
    assert "\x1b" in str(error.value)
