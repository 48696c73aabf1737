"""PyTorch's own files and plain pickles: state dicts, checkpoints, whole modules and TorchScript, without PyTorch.

What the pickle would have imported or called is never imported or called; tensors are rebuilt from their bytes.
"""

import re
import struct
import sys
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE
from ..._memory import require
from ..._phrases import printable
from ...errors import InputError
from .opened import Opened, check_growth
from .pickles import CONTAINERS, PERSISTENT, StandIn, Unreadable, read_pickle
from .state import named_values, weights_of
from .tensors import Storages, dtype_of, storage_type

_MAGIC = 0x1950A86A20F9469CFC6C  # the number that old files begin with
_OLD = b"\x80\x02\x8a\x0a" + _MAGIC.to_bytes(10, "little")
_OF_PYTHON = {"__builtin__", *sys.stdlib_module_names}
_INSTEAD = "save model.state_dict() with torch.save, or the weights as .safetensors"
_SHOWN, _LONG = 3, 100  # names that a note has, and characters of each
_KNOWN = re.compile(  # names of what is rebuilt here, beside containers; a program's own names are no imports
    r"torch\.(\w+Storage|device|Tensor|strided|sparse_\w+|((b?float|q?u?int|complex)\d+\w*|bool)|per_\w+_affine\w*)"
    r"|torch\.(_utils|_tensor)\._rebuild_\w+|torch\.storage\._load_from_bytes|torch\.serialization\._get_layout"
    r"|torch\.(jit\._pickle|_C)\.\w+|__torch__\..*|(builtins|__builtin__)\.(int|long|float|bool|complex|str|bytes|bytearray)"
    r"|numpy\.(ndarray|dtype|dtypes\.\w+)|numpy\._?core\.(multiarray|numeric)\.(_reconstruct|scalar|_frombuffer)"
    r"|_codecs\.encode"
)


def open_archive(path: Path) -> Opened:
    """The weights of a zip archive of PyTorch (also of TorchScript)."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            root = min((name[: -len("data.pkl")] for name in members if name.endswith("data.pkl")), key=len)
            packed = sum(m.file_size for m in members.values() if m.compress_type != zipfile.ZIP_STORED)
            require(packed, f"unpacking {path}", ADVICE)  # PyTorch packs none
            check_growth(path, ((m.filename, m.file_size, m.compress_size) for m in members.values()))
            big = f"{root}byteorder" in members and archive.read(f"{root}byteorder").strip() == b"big"
            contents, names = {}, []
            for part, folder in (("data", "data"), ("constants", "constants")):
                if (file := f"{root}{part}.pkl") not in members:
                    continue
                with archive.open(file) as opened:
                    value, named = read_pickle(opened)
                names += named
                storages = Storages(_members(path, members, f"{root}{folder}/"), f"{path}/{folder}", big)
                contents[part] = named_values(value, storages)
    except InputError:
        raise
    except Unreadable as error:
        raise _broken(path, str(error)) from error
    except Exception as error:  # a foreign archive fails in many ways
        raise _broken(path) from error
    content = contents["data"]
    program = any(name.startswith(f"{root}code/") for name in members)
    notes = ("a TorchScript archive: its program is not run",) if program else ()
    if program and _matrices(contents.get("constants")):  # a frozen program has its weights there
        constants = {f"constants.{k}": value for k, value in enumerate(contents["constants"])}
        content = (content if isinstance(content, dict) else {}) | constants
    return found(path, content, names, notes)


def _matrices(values: Any) -> bool:
    return isinstance(values, tuple) and any(len(getattr(value, "shape", ())) > 1 for value in values)


def _members(path: Path, members: dict[str, zipfile.ZipInfo], folder: str) -> Callable[[str], np.ndarray]:
    """What gives the bytes of a storage: mapped where the archive has them unpacked."""

    def content(key: str) -> np.ndarray:
        member = members.get(folder + key)
        if member is None:
            raise InputError(f"its values are missing: the archive has no {printable(folder + key)}")
        try:
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                with zipfile.ZipFile(path) as archive:
                    return np.frombuffer(archive.read(member), np.uint8)
            with path.open("rb") as file:
                file.seek(member.header_offset)
                header = file.read(30)
                if header[:4] != b"PK\3\4":
                    raise InputError("its values are missing: the archive is broken")
                begin = member.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
                size = path.stat().st_size
                if begin + member.file_size > size:
                    raise InputError("its values are missing: the archive is truncated")
                return np.memmap(file, np.uint8, "r", begin, member.file_size) if member.file_size else _EMPTY
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"its values cannot be read: {type(error).__name__}: {error}") from error

    return content


_EMPTY = np.empty(0, np.uint8)


def open_pickle(path: Path) -> Opened:
    """The weights of an old file of PyTorch, which is several pickles and then the storages, or of a plain pickle."""
    try:
        with path.open("rb") as file:
            if file.read(len(_OLD)) != _OLD:  # arrays stand in the pickle itself, which is read as a whole
                require(2 * path.stat().st_size, f"reading {path}", ADVICE)
            file.seek(0)
            first, names = read_pickle(file)
            if first != _MAGIC:
                return found(path, named_values(first, Storages(_no_storages, str(path))), names)
            for _ in ("version", "machine"):
                read_pickle(file)
            value, names = read_pickle(file)
            keys, _ = read_pickle(file)
            places = _old_storages(file, path, value, keys)
    except InputError:
        raise
    except Unreadable as error:
        raise _broken(path, str(error)) from error
    except Exception as error:
        raise _broken(path) from error

    def content(key: str) -> np.ndarray:
        if key not in places:
            raise InputError("its values are missing: the file has no such storage")
        begin, size = places[key]
        return np.memmap(path, np.uint8, "r", begin, size) if size else _EMPTY

    return found(path, named_values(value, Storages(content, str(path))), names)


def _no_storages(key: str) -> np.ndarray:
    raise InputError("its values are missing: a plain pickle has no storages")


def _old_storages(file: Any, path: Path, value: Any, keys: Any) -> dict[str, tuple[int, int]]:
    """Where the storages of an old file begin, and how many bytes each has."""
    widths = _widths(value)
    places: dict[str, tuple[int, int]] = {}
    position, end = file.tell(), path.stat().st_size
    for key in keys if isinstance(keys, list) else ():
        file.seek(position)
        (count,) = struct.unpack("<q", file.read(8))
        size = count * widths.get(str(key), 1)
        if count < 0 or position + 8 + size > end:
            raise Unreadable("it is truncated: its end is missing, copy or save it again")
        places[str(key)] = (position + 8, size)
        position += 8 + size
    return places


def _widths(value: Any) -> dict[str, int]:
    """Bytes of an entry of each storage that a value names."""
    widths: dict[str, int] = {}
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, StandIn):
            if value.name == PERSISTENT and value.args and isinstance(value.args[0], tuple):
                told = value.args[0]
                kind = storage_type(told)
                if kind is not None:
                    widths[str(told[2])] = dtype_of(kind).itemsize
                waiting += told
                continue
            waiting += [value.args, value.state, value.items, value.pairs]
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
    return widths


def _broken(path: Path, why: str = "it is broken, or of another kind") -> InputError:
    return InputError(f"{path} cannot be read as a PyTorch file: {why}")


def found(path: Path, content: Any, names: list[str], notes: tuple[str, ...] = ()) -> Opened:
    """The weights of a value that was read, with what was left out of it."""
    arrays, told, left = weights_of(content, path.name.partition(".")[0] or path.name)
    named = foreign_names(names)
    if not arrays:
        beside = f" ({', '.join(map(_shown, left[:_SHOWN]))} not being called as weights are)" if left else ""
        kind = "dict" if isinstance(content, dict) else "list" if isinstance(content, tuple) else type(content).__name__
        raise InputError(f"{path} holds no tensors by name but a {kind}{beside}{'; '.join(('', *named))}: {_INSTEAD}")
    return Opened(arrays, notes=(*told, *notes, *named))


def foreign_names(names: Iterable[str]) -> tuple[str, ...]:
    """A sentence with the names that a pickle would have imported, but for those of what is rebuilt here.

    Those of Python itself, which attacks need, come first.
    """
    foreign = [name for name in dict.fromkeys(names) if name not in CONTAINERS and not _KNOWN.fullmatch(name)]
    foreign.sort(key=lambda name: name.partition(".")[0] not in _OF_PYTHON)
    if not foreign:
        return ()
    shown = ", ".join(map(_shown, foreign[:_SHOWN])) + (f", {len(foreign) - _SHOWN} more" if foreign[_SHOWN:] else "")
    return (f"it names {shown}, of which nothing was imported or called",)


def _shown(name: str) -> str:
    """A name as a sentence shows it: printable, and the middle of a long one left out."""
    return printable(name if len(name) <= _LONG else f"{name[: _LONG // 2]}…{name[-_LONG // 2 :]}")
