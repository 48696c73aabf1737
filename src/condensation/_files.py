"""Arrays in files (.npy, .npz, .safetensors; read without pickle, one at a time), and JSON; see also ``_writing``."""

import math
import mmap
import os
import re
import zipfile
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ._memory import in_words, require
from ._plain import parse_json
from ._regular import check_regular
from ._seals import check_seal
from .errors import InputError, brief, unknown_name

SEAL = "seal"  # the field of a file that holds its checksum
ADVICE = "a smaller file would fit, or --memory lets it take more"
MOST_HEADER = 100_000_000  # bytes, as the safetensors library has it
_ENTRY = 1500  # bytes of an array's name, shape and place in Python
LARGE_MAP = 2**26  # bytes of a mapped file from which on its memory is given back
SHORT_LIST = 2**16  # bytes of an archive's list of members
SUFFIXES = (".npy", ".npz", ".safetensors")
TENSOR_TYPES = {  # types of safetensors, as NumPy and ml_dtypes call them
    **{"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool", "C64": "complex64"},
    **{"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"},
    **{f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Stored:
    """An array of a file that is not read yet.

    Attributes:
        shape: of the array.
        dtype: name of the type that it is stored as.
        load: gives the values as they are stored, without a copy of the file's bytes where that is possible.
        place: where the values lie in memory: two arrays of one place are tied.
        reason: why it cannot be read.
    """

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], np.ndarray]
    place: Hashable = None
    reason: str = ""

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes its values take in memory, floating-point numbers at least four each."""
        bits = re.search(r"\d+$", self.dtype)
        return self.size * max(4 if self.floating else 1, int(bits[0]) // 8 if bits else 1)

    @property
    def floating(self) -> bool:
        """Whether it holds floating-point numbers, or quantised ones that are read as such."""
        return self.dtype.startswith(("float", "bfloat", "q"))

    def read(self) -> np.ndarray:
        """The values; floating-point numbers of half and less precision as float32."""
        if self.reason:
            raise InputError(self.reason)
        require(self.bytes, f"reading {' x '.join(map(str, self.shape)) or 'one'} numbers", ADVICE)
        return self._as_floats(self.load())

    def read_part(self, place: int) -> np.ndarray:
        """The values at one place of the first axis, as ``read`` gives them; the others are not converted."""
        if self.reason:
            raise InputError(self.reason)
        require(self.bytes // max(1, self.shape[0]), f"reading {' x '.join(map(str, self.shape[1:]))} numbers", ADVICE)
        return self._as_floats(self.load()[place])

    def _as_floats(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float32) if self.floating and values.dtype.itemsize < 4 else values


def open_arrays(path: str | Path, kind: str = "") -> dict[str, Stored]:
    """The arrays of a file by name (an .npy file has one, named by the file), each read when it is asked for.

    ``kind`` is the suffix of the kind of file that it is, whatever it is called.
    """
    path = Path(path)
    kind = kind or path.suffix
    if kind not in SUFFIXES:
        raise unknown_name("kind of file", path.suffix or path.name, SUFFIXES)
    check_regular(path)
    if kind == ".safetensors":
        about, arrays = map_tensors(path)
        if SEAL in about:
            check_seal(path)
        if "condensation" in about:
            raise InputError(f"{path} holds seeds of a run; its folder {path.parent} is what can be read")
    else:
        try:
            arrays = _open_npz(path) if kind == ".npz" else {path.stem: _open_npy(path)}
        except FileNotFoundError:
            raise InputError(f"there is no file {path}") from None
        except InputError as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        except Exception as error:  # a broken archive fails in many ways
            raise InputError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    if not arrays:
        raise InputError(f"{path} holds no arrays")
    return arrays


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of a file by name, in memory; floating-point numbers that NumPy has no type for as float32."""
    return _in_memory(path, open_arrays(path))


def _in_memory(path: str | Path, arrays: dict[str, Stored]) -> dict[str, np.ndarray]:
    try:
        total = sum(stored.bytes for stored in arrays.values())
        require(total, f"reading the {len(arrays):,} arrays", ADVICE)
        return {name: np.array((s.load if s.dtype == "float16" else s.read)()) for name, s in arrays.items()}
    except InputError as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _open_npy(path: Path) -> Stored:
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    return Stored(values.shape, values.dtype.name, lambda: _native(values))


def _native(values: np.ndarray) -> np.ndarray:
    """Values in the order of bytes that this machine has."""
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _open_npz(path: Path) -> dict[str, Stored]:
    arrays = {}
    check_directory(path)
    archive = zipfile.ZipFile(path)  # open as long as its arrays are: to open it for each would read all names again
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        try:
            shape, dtype = _header(archive, member)
        except Exception as error:  # as above, and the other arrays may be whole
            arrays[name] = Stored((), "", lambda: np.empty(0), reason=_broken(name, error))
            continue
        reason = f"{name} holds Python objects, which only pickle could read" if dtype.hasobject else ""
        load = partial(_member, archive, member, name)
        arrays[name] = Stored(shape, dtype.name, load, reason=reason)
    return arrays


def check_directory(path: Path) -> None:
    """Refuse an archive whose list of members does not fit into memory; a short one does in any case."""
    size = _directory(path)
    if size > SHORT_LIST:
        require(_ENTRY * size // 50, "the list of its arrays", ADVICE)


def _directory(path: Path) -> int:
    """Bytes of an archive's list of members, of which each takes at least 50; 0 where its end is not that of one."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2**17))
        end = file.read()
    place, large = end.rfind(b"PK\5\6"), end.rfind(b"PK\6\6")
    size = int.from_bytes(end[place + 12 : place + 16], "little") if place >= 0 else 0
    return int.from_bytes(end[large + 40 : large + 48], "little") if size == 2**32 - 1 and large >= 0 else size


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype]:
    with archive.open(member) as file:
        first = np.lib.format.read_magic(file) == (1, 0)
        shape, _, dtype = (np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0)(file)
        said, there = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
    if said != there and not dtype.hasobject:
        raise ValueError(f"its header speaks of {in_words(said)}, and it has {in_words(there)}")
    return shape, dtype


def _broken(name: str, error: Exception) -> str:
    return f"{name} is broken: {type(error).__name__}: {error}"


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> np.ndarray:
    try:
        with archive.open(member) as file:
            return _native(np.lib.format.read_array(file, allow_pickle=False))
    except Exception as error:  # a broken archive fails in many ways
        raise InputError(_broken(name, error)) from error


def map_tensors(path: Path) -> tuple[dict[str, str], dict[str, Stored]]:
    """Metadata of a safetensors file, and its arrays as views of the file mapped into memory.

    The header is read here, not by the safetensors library: that gives NumPy no views, and no bfloat16 or float8.
    """
    check_regular(path)
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = os.fstat(file.fileno()).st_size - 8 - length  # of this file: another may take its place just now
            if length > MOST_HEADER:
                raise ValueError(f"its header has {in_words(length)}, and safetensors allows {in_words(MOST_HEADER)}")
            require(_ENTRY * length // 50, "the list of its arrays", ADVICE)  # an entry has at least 50 bytes
            header = parse_json(file.read(length)) if size >= 0 else None
            content = np.memmap(file, np.uint8, "r", offset=8 + length) if size > 0 else np.empty(0, np.uint8)
        if not isinstance(header, dict):
            raise ValueError("it has no header: it is truncated or broken")
        about = header.pop("__metadata__", None) or {}
        if not _is_named(about, str) or not _is_named(header, dict):
            raise ValueError("its header holds other things than entries of arrays")
        for name, entry in header.items():
            _check_entry(name, entry)
        spans = sorted(entry["data_offsets"] for entry in header.values())
        if [*(begin for begin, _ in spans), size] != [0, *(end for _, end in spans)]:
            raise ValueError("its header does not fit its data: it is truncated or broken")
        return about, {name: _mapped(content, **entry) for name, entry in header.items()}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a foreign file fails in many ways
        raise InputError(f"{path} cannot be read as safetensors: {error}") from error


def _is_named(value: Any, kind: type) -> bool:
    """Whether a value is a dictionary of values of one kind."""
    return isinstance(value, dict) and all(isinstance(inner, kind) for inner in value.values())


def _check_entry(name: str, entry: dict[str, Any]) -> None:
    """Refuse what does not say the type, the shape and the place of an array, and nothing else."""
    sizes = [entry.get(field) for field in ("shape", "data_offsets")]
    whole = all(isinstance(each, list) and all(type(size) is int and size >= 0 for size in each) for each in sizes)
    if entry.keys() != {"dtype", "shape", "data_offsets"} or not whole or not isinstance(entry["dtype"], str):
        raise ValueError(f"its entry {brief(name)} is not dtype, shape and data_offsets: {brief(entry)}")
    if len(entry["data_offsets"]) != 2:
        raise ValueError(f"its entry {brief(name)} has not two data_offsets but {len(entry['data_offsets'])}")


def _mapped(content: np.ndarray, dtype: str, shape: list[int], data_offsets: list[int]) -> Stored:
    import ml_dtypes  # adds the small floats to NumPy

    name = TENSOR_TYPES.get(dtype)
    if name is None:
        return Stored(tuple(shape), dtype, lambda: content, reason=f"of type {brief(dtype)}, which is not known here")
    known = np.dtype(getattr(ml_dtypes, name, name))
    values = np.asarray(content[slice(*data_offsets)]).view(known).reshape(shape)

    def load() -> np.ndarray:
        _forget(content)
        return values

    return Stored(tuple(shape), name, load)


def _forget(content: np.ndarray) -> None:
    """Give back the memory of what was read of a mapped file before; what is still in use is read again."""
    mapped = getattr(content, "_mmap", None)
    if mapped is not None and content.nbytes > LARGE_MAP and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def read_tensors(
    path: Path, arrays: bool = True, checked: bool = False
) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata of a safetensors file, and its arrays, if they are wanted, as ``read_arrays`` gives them.

    A file that is sealed is checked when its arrays are read, unless it is ``checked`` already.
    """
    about, stored = map_tensors(path)
    if arrays and SEAL in about and not checked:
        check_seal(path)
    return about, _in_memory(path, {name: stored[name] for name in sorted(stored)}) if arrays else {}


def read_sealed_json(path: Path) -> dict[str, Any]:
    """A JSON object from a sealed file, without its seal; one that was changed is refused."""
    check_seal(path)
    return {name: value for name, value in read_json(path).items() if name != SEAL}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    check_regular(path)
    try:
        require(10 * path.stat().st_size, f"reading {path}", ADVICE)
        content = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except InputError as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a JSON object, not a {type(content).__name__}")
    return content
