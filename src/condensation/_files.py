"""Arrays in files: .npy, .npz and .safetensors, read without pickle, one at a time where they are many."""

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
from safetensors import safe_open

from .errors import InputError, unknown_name

SUFFIXES = (".npy", ".npz", ".safetensors")
_DTYPES = {  # of safetensors, as NumPy and ml_dtypes call them
    **{
        f"{letter}{bits}": f"{kind}{bits}" for letter, kind in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)
    },
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"},
    **{"BOOL": "bool", "C64": "complex64"},
}


@dataclass(frozen=True)
class Stored:
    """An array of a file that is not read yet.

    Attributes:
        shape: of the array.
        dtype: name of the type that it is stored as.
        load: gives the values as they are stored, where it can without a copy of the file's bytes.
        place: where the values lie, for telling arrays that are the same one.
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
    arrays = open_arrays(path)
    try:
        return _in_memory(arrays)
    except InputError as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _in_memory(arrays: dict[str, Stored]) -> dict[str, np.ndarray]:
    return {name: np.array((s.load if s.dtype == "float16" else s.read)()) for name, s in arrays.items()}


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
    """Metadata of a safetensors file, and its arrays, which are views of the file mapped into memory."""
    try:
        with safe_open(path, "np") as file:  # checks that the file is whole
            about = file.metadata() or {}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a foreign file fails in many ways
        raise InputError(f"{path} cannot be read as safetensors: {error}") from error
    with path.open("rb") as raw:
        length = int.from_bytes(raw.read(8), "little")
        entries = json.loads(raw.read(length))
    entries.pop("__metadata__", None)
    content = (
        np.memmap(path, np.uint8, "r", offset=8 + length) if path.stat().st_size > 8 + length else np.empty(0, "u1")
    )
    return about, {name: _mapped(content, **entry) for name, entry in entries.items()}


def _mapped(content: np.ndarray, dtype: str, shape: list[int], data_offsets: list[int]) -> Stored:
    name = _DTYPES.get(dtype)
    if name is None:
        return Stored(tuple(shape), dtype, lambda: content, reason=f"of type {dtype}, which is not known here")

    def load() -> np.ndarray:
        import ml_dtypes  # adds the small floats to NumPy

        known = np.dtype(getattr(ml_dtypes, name)) if name.startswith(("bfloat", "float8")) else np.dtype(name)
        return np.asarray(content[slice(*data_offsets)]).view(known).reshape(shape)

    return Stored(tuple(shape), name, load)


def read_tensors(path: Path, arrays: bool = True) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata of a safetensors file, and its arrays if they are wanted; bfloat16 is read as float32."""
    about, stored = map_tensors(path)
    try:
        return about, _in_memory(stored) if arrays else {}
    except InputError as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(plain, dict):
        raise InputError(f"{path} must hold a JSON object, not a {type(plain).__name__}")
    return plain


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
