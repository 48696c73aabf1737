"""TensorFlow.js: a list of weights in JSON (model.json, weights_manifest.json), and their bytes in shards beside it."""

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ..._plain import parse_json
from ...errors import InputError, brief
from .graphs import Node, as_read
from .keras import layer_kinds
from .opened import Opened, check_shape, without_values
from .orders import units_first

_TYPES = ("float32", "float16", "int32", "bool", "uint8", "uint16", "complex64")


def open_manifest(path: Path) -> Opened:
    """The weights that a list of TensorFlow.js names."""
    require(10 * path.stat().st_size, f"reading {path}", ADVICE)
    try:
        content = parse_json(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    groups = content.get("weightsManifest") if isinstance(content, dict) else content
    if not isinstance(groups, list) or not groups or not all(_is_group(group) for group in groups):
        raise InputError(f"{path} is no list of TensorFlow.js (without paths and weights), and no other JSON is read")
    arrays: dict[str, Stored] = {}
    files: dict[Path, None] = {path: None}
    for group in groups:
        shards = [_shard(path, name) for name in group["paths"]]
        files |= dict.fromkeys(shards)
        offset = 0
        for weight in group["weights"]:
            stored, size = _stored(weight, shards, offset)
            offset += size
            arrays[str(weight["name"]).replace("/", ".")] = stored
    topology = content.get("modelTopology") if isinstance(content, dict) else None
    nodes = topology.get("node") if isinstance(topology, dict) else None
    if isinstance(nodes, list):
        found = as_read(arrays, [_node(node) for node in nodes if isinstance(node, dict)])
    else:
        found = units_first(arrays, layer_kinds(arrays, topology))
    return Opened(found.arrays, found.layouts, files=tuple(files))


def _is_group(group: Any) -> bool:
    return (
        isinstance(group, dict)
        and isinstance(group.get("paths"), list)
        and all(isinstance(name, str) for name in group["paths"])
        and isinstance(group.get("weights"), list)
        and all(isinstance(own, dict) and isinstance(own.get("name"), str) for own in group["weights"])
    )


def _shard(path: Path, name: str) -> Path:
    """A file of values, which lies in the list's folder."""
    folder = path.parent.resolve()
    file = folder / name
    if not name or not file.resolve().is_relative_to(folder):
        raise InputError(f"{path} names {brief(name)}, which is not in its own folder")
    return file


def _stored(weight: dict[str, Any], shards: list[Path], offset: int) -> tuple[Stored, int]:
    """A weight, and how many bytes it has."""
    shape, dtype, packed = weight.get("shape"), weight.get("dtype"), weight.get("quantization")
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
        raise InputError(f"its weight {brief(weight['name'])} has no shape")
    check_shape(shape)
    kind = packed.get("dtype") if isinstance(packed, dict) else dtype
    if kind not in _TYPES or dtype not in _TYPES:
        raise InputError(f"its weight {brief(weight['name'])} is of type {brief(kind)}, which is not known here")
    sizes, known = tuple(shape), np.dtype(kind)
    size = prod(sizes) * known.itemsize
    scale, least = 1.0, 0.0
    if isinstance(packed, dict) and known.kind == "u":
        scale, least = packed.get("scale"), packed.get("min")
        if not isinstance(scale, int | float) or not isinstance(least, int | float):
            return without_values(sizes, kind, "quantised, and its scale is missing"), size

    def load() -> np.ndarray:
        values = np.frombuffer(_bytes(shards, offset, size), known).reshape(sizes)
        return values if known.kind != "u" else values.astype(np.float32) * np.float32(scale) + np.float32(least)

    return Stored(sizes, kind if known.kind != "u" else f"float32 from {kind}", load), size


def _bytes(shards: list[Path], offset: int, size: int) -> bytes:
    """Bytes of the shards as if they were one file."""
    found = b""
    for shard in shards:
        try:
            own = shard.stat().st_size
            if offset < own and len(found) < size:
                with shard.open("rb") as file:
                    file.seek(offset)
                    found += file.read(size - len(found))
            offset = max(0, offset - own)
        except OSError:
            raise InputError(f"its values are missing: there is no {shard.name} beside the list") from None
    if len(found) != size:
        raise InputError("its values are missing: the shards are truncated")
    return found


def _node(node: dict[str, Any]) -> Node:
    attributes = node.get("attr") if isinstance(node.get("attr"), dict) else {}
    turns = attributes.get("transpose_b") if isinstance(attributes, dict) else None
    inputs = node.get("input") if isinstance(node.get("input"), list) else []
    names = tuple(str(name).partition(":")[0] for name in inputs or ())
    return Node(str(node.get("name")), str(node.get("op")), names, isinstance(turns, dict) and turns.get("b") is True)
