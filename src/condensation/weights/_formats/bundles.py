"""Checkpoints of TensorFlow (.index and .data-…): a sorted table of names, and the bytes of the variables beside it.

No light library reads them; the table and its messages are walked here. Values are mapped, not copied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ...errors import InputError
from . import wire
from .opened import Opened, check_shape, without_values
from .orders import beside_weights, units_first
from .tensors import dtype_of

TYPES = {  # of TensorFlow
    **{1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64"},
    **{10: "bool", 14: "bfloat16", 17: "uint16", 19: "float16", 22: "uint32", 23: "uint64"},
}
_TEXT = 7
_FOOTER, _MAGIC = 48, bytes.fromhex("57fb808b247547db")
_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
_MOST = 1_000_000  # entries


@dataclass(frozen=True)
class _Entry:
    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    sliced: bool


def open_bundle(path: Path) -> Opened:
    """The variables of a checkpoint, by its index."""
    require(20 * path.stat().st_size, f"reading {path}", ADVICE)
    try:
        entries = {key: _entry(value) for key, value in _table(memoryview(path.read_bytes())) if key}
        shards = max((entry.shard for entry in entries.values()), default=0) + 1
        files = _shards(path, shards)
        names = _full_names(entries.get(_GRAPH), files)
    except (wire.Broken, ValueError, IndexError, OSError) as error:
        raise InputError(f"{path} cannot be read as a TensorFlow checkpoint: {error}") from error
    arrays: dict[str, Stored] = {}
    for key, entry in entries.items():
        name = names.get(key, key.removesuffix(_SUFFIX)).replace("/", ".")
        if entry.dtype != _TEXT and not beside_weights(key) and not beside_weights(name):
            arrays[name if name not in arrays else key] = _stored(entry, files)
    if not arrays:
        raise InputError(f"{path} holds no variables")
    found = units_first(arrays)
    return Opened(found.arrays, found.layouts, files=(path, *(file for file in files.values() if file.is_file())))


def open_saved_model(path: Path) -> Opened:
    """The variables of a SavedModel, which lie in a folder beside its graph."""
    index = path.parent / "variables" / "variables.index"
    if not index.is_file():
        raise InputError(f"{path} is the graph of a SavedModel, and its variables are missing: there is no {index}")
    return open_bundle(index)


def _table(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Keys and values of a sorted table."""
    if len(content) < _FOOTER or bytes(content[-8:]) != _MAGIC:
        raise wire.Broken("its end is missing: it is truncated or broken")
    footer = content[-_FOOTER:]
    _, place = _handle(footer, 0)
    index, _ = _handle(footer, place)
    count = 0
    for _, value in _block(content, *index):
        where, _ = _handle(value, 0)
        for key, inner in _block(content, *where):
            count += 1
            if count > _MOST:
                raise wire.Broken(f"it has more than {_MOST:,} entries")
            yield str(key, "utf-8", "replace"), inner


def _handle(message: memoryview, place: int) -> tuple[tuple[int, int], int]:
    offset, place = wire.varint(message, place)
    size, place = wire.varint(message, place)
    return (offset, size), place


def _block(content: memoryview, offset: int, size: int) -> Iterator[tuple[bytes, memoryview]]:
    """Keys and values of a block; a key repeats the beginning of the one before."""
    if offset + size + 5 > len(content) or size < 4:
        raise wire.Broken("a block reaches beyond its end")
    if content[offset + size]:
        raise wire.Broken("its table is packed (by Snappy), as TensorFlow does not write checkpoints")
    block = content[offset : offset + size]
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")
    key, place = b"", 0
    while place < end:
        shared, place = wire.varint(block, place)
        own, place = wire.varint(block, place)
        length, place = wire.varint(block, place)
        if place + own + length > end or shared > len(key) or shared + own > 2**14:
            raise wire.Broken("an entry reaches beyond its block")
        key = key[:shared] + bytes(block[place : place + own])
        yield key, block[place + own : place + own + length]
        place += own + length


def _entry(message: memoryview) -> _Entry:
    numbers: dict[int, int] = {}
    shape: tuple[int, ...] = ()
    sliced = False
    for number, value in wire.fields(message):
        if isinstance(value, int):
            numbers[number] = wire.signed(value)
        elif number == 2:
            shape = shape_of(value)
        sliced |= number == 7
    dtype, shard, offset, size = (numbers.get(k, 0) for k in (1, 3, 4, 5))
    if min(shard, offset, size) < 0 or shard > 99_999:
        raise wire.Broken("an entry has a place below zero")
    return _Entry(dtype, shape, shard, offset, size, sliced)


def shape_of(message: memoryview) -> tuple[int, ...]:
    """The sizes in a message of a shape."""
    sizes = []
    for number, value in wire.fields(message):
        if number == 2 and not isinstance(value, int):
            size = wire.last(value, 1) or 0
            if not isinstance(size, int) or not 0 <= wire.signed(size) < 2**48:
                raise wire.Broken("an array has a size below zero")
            sizes.append(size)
            if len(sizes) % 64 == 0:
                check_shape(sizes)
    return check_shape(sizes)


def _shards(path: Path, count: int) -> dict[int, Path]:
    """The files of values by number: those of the checkpoint's own name, in its folder."""
    prefix = path.name.removesuffix(".index")
    own = sorted(path.parent.glob(f"{glob_escaped(prefix)}.data-?????-of-?????"))
    total = int(own[0].name[-5:]) if own and own[0].name[-5:].isdecimal() else count
    return {k: path.with_name(f"{prefix}.data-{k:05d}-of-{total:05d}") for k in range(min(count, 100_000))}


def glob_escaped(name: str) -> str:
    """A name as it stands in a pattern.

    >>> glob_escaped("a[1]")
    'a[[]1]'
    """
    return "".join(f"[{sign}]" if sign in "[*?" else sign for sign in name)


def _stored(entry: _Entry, files: dict[int, Path]) -> Stored:
    dtype, shape, file = TYPES.get(entry.dtype, ""), entry.shape, files[entry.shard]
    if not dtype:
        return without_values(shape, "", f"of TensorFlow's type {entry.dtype}, which is not known here")
    if entry.sliced:
        return without_values(shape, dtype, "kept in slices: save the variable whole")
    known = dtype_of(dtype)
    if entry.size != int(np.prod(shape, dtype=object)) * known.itemsize:
        return without_values(shape, dtype, "broken: its values do not fit its shape")

    def load() -> np.ndarray:
        if not file.is_file():
            raise InputError(f"its values are missing: there is no {file.name} beside the index")
        if entry.offset + entry.size > file.stat().st_size:
            raise InputError(f"its values are missing: {file.name} is truncated")
        if not entry.size:
            return np.empty(shape, known)
        return np.memmap(file, np.uint8, "r", entry.offset, entry.size).view(known).reshape(shape)

    return Stored(shape, dtype, load)


def _full_names(entry: _Entry | None, files: dict[int, Path]) -> dict[str, str]:
    """The variables' own names by their keys, told by the graph of objects where the checkpoint has one."""
    if entry is None or not files[entry.shard].is_file() or entry.size > 2**28:
        return {}
    with files[entry.shard].open("rb") as file:
        file.seek(entry.offset)
        content = memoryview(file.read(entry.size))
    names: dict[str, str] = {}
    known: set[str] = set()
    try:
        _, place = wire.varint(content, 0)  # its length; behind it a checksum
        for number, node in wire.fields(content[place + 4 :]):
            for inner, attribute in wire.fields(node) if number == 1 and not isinstance(node, int) else ():
                if inner == 2 and not isinstance(attribute, int):
                    name, key = (wire.text(wire.last(attribute, k)) for k in (2, 3))
                    if name and key and name not in known:
                        names[key] = name
                        known.add(name)
    except wire.Broken:
        return {}
    return names
