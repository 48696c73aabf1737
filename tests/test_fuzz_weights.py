"""Strange weight files: mutated files of all kinds are measured, or refused in one sentence."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import foreign
import numpy as np
import pytest
import torch
from fuzzing import Stream, Tally, check_told, mutated, mutated_bytes, stream_of, written
from safetensors.numpy import save

STREAM = np.random.default_rng(0)
ARRAYS = {
    "layers.0.attn.q_proj.weight": STREAM.normal(size=(8, 6)).astype(np.float32),
    "layers.0.mlp.weight": STREAM.normal(size=(5, 6)),
    "layers.0.mlp.bias": STREAM.normal(size=5),
    "conv.weight": STREAM.normal(size=(4, 2, 3, 3)).astype(np.float16),
    "count": np.arange(3),
}
CONFIG = {"model_type": "tiny", "hidden_size": 6, "num_attention_heads": 2, "text_config": {"head_dim": 3}}
INDEX = {"metadata": {}, "weight_map": {name: f"part-{k % 2}.safetensors" for k, name in enumerate(ARRAYS)}}
pytestmark = pytest.mark.usefixtures("unchecked")


def as_npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def as_npz(arrays: dict[str, np.ndarray], compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def as_pt(content: object, zipped: bool = True) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer, _use_new_zipfile_serialization=zipped)
    return buffer.getvalue()


TENSORS = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
FILES = {
    "a.npy": as_npy(ARRAYS["layers.0.mlp.weight"]),
    "a.npz": as_npz(ARRAYS),
    "b.npz": as_npz(ARRAYS, compressed=True),
    "a.safetensors": save(ARRAYS),
    "a.pt": as_pt({"state_dict": TENSORS, "optimizer": {"lr": 0.1}}),
    "b.pt": as_pt(TENSORS, zipped=False),
}


def packed(header: object, content: bytes) -> bytes:
    """A safetensors file of a header and a content."""
    text = json.dumps(header, default=str).encode()
    return len(text).to_bytes(8, "little") + text + content


def with_other_header(content: bytes, stream: Stream) -> bytes:
    """A safetensors file whose header is mutated as data, or one of another length."""
    length = int.from_bytes(content[:8], "little")
    header, values = json.loads(content[8 : 8 + length]), content[8 + length :]
    if stream.integers(8) == 0:
        return int(stream.choice([0, 1, length - 1, length + 1, 2**40, 2**62])).to_bytes(8, "little") + content[8:]
    return packed(mutated(header, stream), values)


def with_other_npy_header(content: bytes, stream: Stream) -> bytes:
    """An .npy file whose header is a mutated text of the same length."""
    words = [b"'<f8'", b"(5, 6)", b"False", b"'shape'", b"(", b"}", b"5"]
    others = [
        b"'>f8'",
        b"'|O'",
        b"'<c8'",
        b"'<f16'",
        b"'|V8'",
        b"'<M8[s]'",
        b"(6,-5)",
        b"(2**9)",
        b"True",
        b"((((((",
        b"'a'",
    ]
    word, other = words[stream.integers(len(words))], others[stream.integers(len(others))]
    return content[:10] + content[10:].replace(word, other, 1)


def with_other_members(content: bytes, stream: Stream) -> bytes:
    """A zip archive some of whose members are mutated, renamed, twice there or gone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for member in old.namelist():
            inside = old.read(member)
            match stream.integers(8):
                case 0:
                    continue
                case 1:
                    inside = mutated_bytes(inside, stream)
                case 2:
                    member = str(stream.choice(["../x.npy", "/x", "x", "中文.npy", "x\n.npy", "\x1b[2J.npy", "d/"]))
                case 3:
                    inside = with_other_npy_header(inside, stream)
            new.writestr(member, inside)
    return buffer.getvalue()


def mutations(name: str) -> list[Callable[[bytes, Stream], bytes]]:
    """What can be done to a file of a kind."""
    own = {".npy": with_other_npy_header, ".npz": with_other_members, ".pt": with_other_members}
    own |= {".safetensors": with_other_header}
    zipped = not name.endswith(".pt") or name == "a.pt"
    return [mutated_bytes, own[Path(name).suffix]] if zipped else [mutated_bytes]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("count", [120, pytest.param(1500, marks=pytest.mark.trials)])
def test_mutated_weight_files(count, tmp_path):
    stream, tally = stream_of(count), Tally()
    for k in range(count):
        name = list(FILES)[k % len(FILES)]
        known = mutations(name)
        content = known[stream.integers(len(known))](FILES[name], stream)
        path = written(tmp_path / name, content)
        options = ["--json", "--heads", "--errors", "--view=kernel"][stream.integers(4) :][: stream.integers(2)]
        with tally.case((name, content)):
            tally.ends[check_told("measure", path, *options)] += 1
    tally.check()
    assert min(tally.ends[0], tally.ends[2]) > count / 10, tally.ends


@pytest.mark.filterwarnings("ignore")  # of libraries, about what they read
@pytest.mark.parametrize("count", [80, pytest.param(1600, marks=pytest.mark.trials)])
def test_mutated_files_of_other_frameworks(count, tmp_path):
    stream, tally = stream_of(count), Tally()
    files = foreign.all_files(tmp_path)
    for k in range(count):
        name = list(files)[k % len(files)]
        zipped = name == "m.keras" and stream.integers(2)
        content = (with_other_members if zipped else mutated_bytes)(files[name], stream)
        path = written(tmp_path / name, content)
        with tally.case((name, content)):
            tally.ends[check_told("measure", path)] += 1
    tally.check()
    assert min(tally.ends[0], tally.ends[2]) > count / 10, tally.ends


@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.trials)])
def test_mutated_model_folders(count, tmp_path):
    stream, tally = stream_of(count), Tally()
    names = list(ARRAYS)
    for shard in (0, 1):
        written(tmp_path / f"part-{shard}.safetensors", save({name: ARRAYS[name] for name in names[shard::2]}))
    index, config = tmp_path / "model.safetensors.index.json", tmp_path / "config.json"
    for _ in range(count):
        mutate = stream.integers(3)
        texts = [json.dumps(plain, default=str).encode() for plain in (
            mutated(INDEX, stream) if mutate != 0 else INDEX, mutated(CONFIG, stream) if mutate != 1 else CONFIG
        )]  # fmt: skip
        if stream.integers(6) == 0:
            texts = [mutated_bytes(text, stream) for text in texts]
        written(index, texts[0])
        written(config, texts[1])
        with tally.case(texts):
            tally.ends[check_told("measure", tmp_path, *["--heads"][: stream.integers(2)])] += 1
    tally.check()
    assert min(tally.ends[0], tally.ends[2]) > count / 20, tally.ends


ENTRY = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
DEEP = b'{"a":' * 10_000 + b"1" + b"}" * 10_000


@pytest.mark.parametrize(
    "header",
    [
        {"a": ENTRY | {"more": 1}},
        {"a": {"dtype": "F32", "shape": [2, 2]}},
        {"a": ENTRY | {"shape": "22"}},
        {"a": ENTRY | {"shape": [-2, -2]}},
        {"a": ENTRY | {"shape": [2.0, 2]}},
        {"a": ENTRY | {"shape": [2**62, 2**62]}},
        {"a": ENTRY | {"dtype": 3}},
        {"a": ENTRY | {"dtype": "NEW", "shape": ["a"]}},
        {"a": ENTRY | {"data_offsets": [-16, 0]}},
        {"a": ENTRY | {"data_offsets": [0, 8, 16]}},
        {"a": ENTRY | {"data_offsets": [0, True]}},
        {"a": ENTRY, "b": ENTRY},
        {"a": [ENTRY]},
        {"a": ENTRY, "__metadata__": [1]},
        [ENTRY],
        None,
    ],
)
def test_headers_that_are_none_are_named(header, tmp_path):
    path = written(tmp_path / "a.safetensors", packed(header, bytes(16)))
    assert check_told("measure", path) == 2


def test_headers_and_indices_nested_without_end_are_named(tmp_path):
    deep = written(tmp_path / "a.safetensors", len(DEEP).to_bytes(8, "little") + DEEP)
    assert check_told("measure", deep) == 2
    assert check_told("measure", written(tmp_path / "model.safetensors.index.json", DEEP)) == 2


@pytest.mark.parametrize("kind", [">f4", ">f8", ">f2", "<f8"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_arrays_of_either_order_of_bytes_give_the_same_numbers(kind, suffix, tmp_path):
    from condensation.weights import measure_path

    lines = np.outer(STREAM.normal(size=12), STREAM.normal(size=4)) + 0.1 * STREAM.normal(size=(12, 4))
    found = []
    for place, dtype in (("swapped", np.dtype(kind)), ("native", np.dtype(kind).newbyteorder("="))):
        (tmp_path / place).mkdir()
        path = tmp_path / place / f"w.{suffix}"
        written(path, as_npy(lines.astype(dtype)) if suffix == "npy" else as_npz({"w": lines.astype(dtype)}))
        (record,) = measure_path(path).records
        found.append(record)
    assert not found[0]["reason"]
    assert found[0] == found[1]
