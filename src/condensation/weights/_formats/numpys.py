"""Files of NumPy and of safetensors; arrays of Python objects are read as data, nothing in them is built or called."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE, Stored, open_arrays
from ..._memory import require
from ...errors import InputError
from .opened import Opened
from .pickles import Unreadable, read_pickle
from .pytorch import foreign_names, found
from .state import named_values, weights_of
from .tensors import Storages


def open_safetensors(path: Path) -> Opened:
    """The tensors of a safetensors file."""
    return Opened(open_arrays(path, ".safetensors"))


def open_npy(path: Path) -> Opened:
    """The array of an .npy file; of one of Python objects, the arrays in them."""
    if not _holds_objects(path):
        return Opened(open_arrays(path, ".npy"))
    require(3 * path.stat().st_size, f"reading {path}", ADVICE)
    try:
        content, names = _objects(path.read_bytes(), str(path))
    except Unreadable as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return found(path, content, names)


def open_npz(path: Path) -> Opened:
    """The arrays of an .npz archive, those in its Python objects too."""
    arrays: dict[str, Stored] = {}
    names: list[str] = []
    for name, stored in open_arrays(path, ".npz").items():
        inside = _inside(path, name, names) if stored.dtype == "object" else {}
        arrays |= {f"{name}.{own}" if own != name else name: array for own, array in inside.items()} or {name: stored}
    return Opened(arrays, notes=foreign_names(names))


def _inside(path: Path, name: str, names: list[str]) -> dict[str, Stored]:
    """The arrays in an archive's array of objects; none where that is broken, which its reason tells.

    The names that its pickle has join ``names``.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo(f"{name}.npy")
            require(3 * member.file_size, f"reading {name} of {path}", ADVICE)
            content, own = _objects(archive.read(member), f"{path}/{name}")
        names += own
        return weights_of(content, name)[0]
    except (InputError, Unreadable, KeyError, OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return {}


def _holds_objects(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _header(file).hasobject
    except Exception:  # whoever opens it says what is wrong
        return False


def _header(file: Any) -> np.dtype:
    first = np.lib.format.read_magic(file) == (1, 0)
    return (np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0)(file)[2]


def _objects(content: bytes, place: str) -> tuple[object, list[str]]:
    """The value of an array of objects, and the names that its pickle has."""
    file = io.BytesIO(content)
    _header(file)
    value, names = read_pickle(file)

    def none(key: str) -> np.ndarray:
        raise InputError("an array of NumPy has no storages")

    return named_values(value, Storages(none, place)), names
