"""Parts that hold arrays. In plain data they stand as the name of a file and digests of what it holds.

The fingerprint of such a part is that of its numbers, wherever they lie. Whoever writes plain data says which files the
arrays are in: a run and a sweep keep them beside their results, an experiment file names those of the user.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._functions import may_import
from ._serialization import Part
from ._writing import write_tensors
from .errors import InputError


class StoredArrays(Part):
    """A part whose arrays are kept in a file. Two are equal when all their numbers are."""

    @property
    def origin(self) -> dict[str, Any]:
        """Where the arrays came from, as plain data has it; empty for arrays that are in memory only."""
        raise NotImplementedError

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        raise NotImplementedError

    def at(self, file: str) -> "StoredArrays":
        """The same arrays, as loaded from a file."""
        raise NotImplementedError

    def about(self) -> dict[str, str]:
        """What their file says besides."""
        return {}

    def __plain__(self) -> dict[str, Any]:
        raise NotImplementedError

    def keep(self, path: Path) -> None:
        """Write the arrays to a file."""
        write_tensors(path, self.tensors(), self.about())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__plain__() == other.__plain__()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(str(self.__plain__()))


def stored_parts(part: Any, path: str = "") -> dict[str, StoredArrays]:
    """The parts with arrays inside a part, by dotted path."""
    if isinstance(part, StoredArrays):
        return {path: part}
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return {}
    inner = ((field.name, getattr(part, field.name)) for field in dataclasses.fields(part))
    found = {}
    for name, value in inner:
        found |= stored_parts(value, f"{path}.{name}" if path else name)
    return found


def digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of arrays with their names and shapes, in the order of the names.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros((2, 1))})
    False
    """
    hashed = hashlib.sha256()
    for name in sorted(arrays):
        hashed.update(f"{name} {arrays[name].dtype} {arrays[name].shape}\0".encode())
        hashed.update(np.ascontiguousarray(arrays[name]).tobytes())
    return hashed.hexdigest()


def check_beside(place: str, file: str, folder: Path) -> None:
    """Refuse a file outside of the folder that is opened, unless the user trusts what is opened."""
    if not may_import() and folder.resolve() not in (folder / file).resolve().parents:
        raise InputError(f"{place} is in {file}, which is not in the folder that is opened: trust=True")
