"""What a reader gives: the arrays of a file, none of them read yet, and what the file tells of their units."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..._files import Stored
from ...errors import InputError
from .._layout import UnitLayout


@dataclass(frozen=True)
class Opened:
    """The content of a model file.

    Attributes:
        arrays: by name; those with units have them as their first axis, whatever the order in the file.
        layouts: what the file itself tells of some arrays' units, beyond names and shapes.
        config: the model's configuration, as far as the file has one.
        files: beside the opened one that hold arrays.
        notes: what a reader should know of how they were read.
    """

    arrays: Mapping[str, Stored]
    layouts: Mapping[str, UnitLayout | str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def library(name: str, path: Path) -> ModuleType:
    """The library that reads a format; where it is missing, a sentence that names the extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{path.name} needs {name}: pip install 'condensation[files]'") from error


def turned(stored: Stored, axes: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Stored:
    """An array with its axes in another order, and then in another shape; a view of the values.

    >>> turned(Stored((2, 3), "float32", lambda: np.ones((2, 3))), (1, 0)).read().shape
    (3, 2)
    """
    moved = tuple(stored.shape[axis] for axis in axes)
    new = moved if shape is None else shape

    def load() -> np.ndarray:
        return stored.load().transpose(axes).reshape(new)

    return replace(stored, shape=new, load=load)


def without_values(shape: tuple[int, ...], dtype: str, reason: str) -> Stored:
    """An array that cannot be read, and why."""
    return Stored(shape, dtype, lambda: np.empty(0), reason=reason)
