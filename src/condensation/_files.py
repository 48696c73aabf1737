"""Arrays in files (.npy, .npz, .safetensors; read without pickle, one at a time), JSON, folders, atomic writes."""

import json
import math
import os
import secrets
import zipfile
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError, unknown_name

SUFFIXES = (".npy", ".npz", ".safetensors")
_DTYPES = {  # types of safetensors, as NumPy and ml_dtypes call them
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
    def floating(self) -> bool:
        """Whether it holds floating-point numbers, or quantised ones that are read as such."""
        return self.dtype.startswith(("float", "bfloat", "q"))

    def read(self) -> np.ndarray:
        """The values; floating-point numbers of half and less precision as float32."""
        if self.reason:
            raise InputError(self.reason)
        values = self.load()
        return values.astype(np.float32) if self.floating and values.dtype.itemsize < 4 else values


def open_arrays(path: str | Path) -> dict[str, Stored]:
    """The arrays of a file by name (an .npy file has one, named by the file), each read when it is asked for."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise unknown_name("kind of file", path.suffix or path.name, SUFFIXES)
    if path.suffix == ".safetensors":
        about, arrays = map_tensors(path)
        if "condensation" in about:
            raise InputError(f"{path} is one seed of a run; its folder {path.parent} is what can be read")
    else:
        try:
            arrays = _open_npz(path) if path.suffix == ".npz" else {path.stem: _open_npy(path)}
        except FileNotFoundError:
            raise InputError(f"there is no file {path}") from None
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
        return {name: np.array((s.load if s.dtype == "float16" else s.read)()) for name, s in arrays.items()}
    except InputError as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _open_npy(path: Path) -> Stored:
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    return Stored(values.shape, str(values.dtype), lambda: values)


def _open_npz(path: Path) -> dict[str, Stored]:
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            try:
                shape, dtype = _header(archive, member)
            except Exception as error:  # as above, and the other arrays may be whole
                arrays[name] = Stored((), "", lambda: np.empty(0), reason=_broken(name, error))
                continue
            reason = f"{name} holds Python objects, which only pickle could read" if dtype.hasobject else ""
            arrays[name] = Stored(shape, str(dtype), lambda name=name: _member(path, name), reason=reason)
    return arrays


def _header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype]:
    with archive.open(member) as file:
        first = np.lib.format.read_magic(file) == (1, 0)
        shape, _, dtype = (np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0)(file)
    return shape, dtype


def _broken(name: str, error: Exception) -> str:
    return f"{name} is broken: {type(error).__name__}: {error}"


def _member(path: Path, name: str) -> np.ndarray:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return archive[name]
    except Exception as error:  # a broken archive fails in many ways
        raise InputError(_broken(name, error)) from error


def map_tensors(path: Path) -> tuple[dict[str, str], dict[str, Stored]]:
    """Metadata of a safetensors file, and its arrays as views of the file mapped into memory.

    The header is read here, not by the safetensors library: that gives NumPy no views, and no bfloat16 or float8.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = path.stat().st_size - 8 - length
            header = json.loads(file.read(length) if size >= 0 else b"")
        about = header.pop("__metadata__", {})
        spans = sorted(entry["data_offsets"] for entry in header.values())
        if [*(begin for begin, _ in spans), size] != [0, *(end for _, end in spans)]:
            raise ValueError("its header does not fit its data: it is truncated or broken")
        content = np.memmap(path, np.uint8, "r", offset=8 + length) if size else np.empty(0, np.uint8)
        return about, {name: _mapped(content, **entry) for name, entry in header.items()}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a foreign file fails in many ways
        raise InputError(f"{path} cannot be read as safetensors: {error}") from error


def _mapped(content: np.ndarray, dtype: str, shape: list[int], data_offsets: list[int]) -> Stored:
    import ml_dtypes  # adds the small floats to NumPy

    name = _DTYPES.get(dtype)
    if name is None:
        return Stored(tuple(shape), dtype, lambda: content, reason=f"of type {dtype}, which is not known here")
    known = np.dtype(getattr(ml_dtypes, name, name))
    values = np.asarray(content[slice(*data_offsets)]).view(known).reshape(shape)
    return Stored(tuple(shape), name, lambda: values)


def read_tensors(path: Path, arrays: bool = True) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata of a safetensors file, and its arrays, if they are wanted, as ``read_arrays`` gives them."""
    about, stored = map_tensors(path)
    return about, _in_memory(path, {name: stored[name] for name in sorted(stored)}) if arrays else {}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a JSON object, not a {type(content).__name__}")
    return content


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {path} cannot be made: {error.strerror}") from error


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")  # pods may share process numbers
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}; what was saved before stays") from error
