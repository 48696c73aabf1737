"""What a reader gives: the arrays of a file, none of them read yet, and what the file tells of their units."""

import importlib
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from ..._files import Stored
from ..._memory import in_words
from ..._phrases import printable
from ...errors import InputError
from .._layout import UnitLayout

MOST_TIMES = 200  # that a member may be larger than its packed bytes, where it is large: weights hardly shrink
LARGE = 2**26
V = TypeVar("V", int, str)  # how a value of a graph is called
_AXES = 64  # that an array of NumPy may have


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


def check_shape(shape: Iterable[int]) -> tuple[int, ...]:
    """The sizes of an array, where there can be such an array.

    >>> check_shape([2, 3])
    (2, 3)
    """
    sizes = tuple(int(size) for size in shape)
    if len(sizes) > _AXES:
        raise InputError(f"said to have {len(sizes):,} axes, more than an array may have")
    if any(size < 0 for size in sizes) or prod(sizes) >= 2**63:
        raise InputError("said to have sizes that no array has")
    return sizes


def check_growth(path: Path, members: Iterable[tuple[str, int, int]]) -> None:
    """Refuse an archive one of whose members, of a name, a size and a packed size, would grow without measure."""
    for name, size, packed in members:
        if size > LARGE and size > MOST_TIMES * max(packed, 1):
            raise InputError(
                f"{path} is not unpacked: {printable(name)} would grow to {in_words(size)}, more than {MOST_TIMES} "
                "times its packed size"
            )


def free_name(name: str, taken: Container[str], times: dict[str, int]) -> str:
    """A name that is not taken: the given one with a sign, and then a number; ``times`` counts how often it came.

    >>> times = {}
    >>> free_name("w", {"w"}, times), free_name("w", {"w", "w'"}, times), free_name("b", {"w"}, times)
    ("w'", "w'3", 'b')
    """
    other = name
    while other in taken:
        times[name] = times.get(name, 1) + 1
        other = f"{name}'{times[name] if times[name] > 2 else ''}"
    return other


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


def final_values(nodes: Sequence[tuple[bool, Sequence[V], Sequence[V]]], outputs: Collection[V]) -> set[V]:
    """The values of a graph that reach its outputs, and no other layer's weights.

    Args:
        nodes: in their order, each with whether it may have weights, what it reads and what it gives.
        outputs: of the graph.

    >>> sorted(final_values([(True, "a", "b"), (False, "b", "c"), (True, "c", "d"), (False, "d", "e")], "e"))
    ['d', 'e']
    """
    final, read_on = set(outputs), set[V]()
    for weighted, inputs, given in reversed(nodes):
        ends = not weighted and all(value in final and value not in read_on for value in given)
        (final if ends else read_on).update(inputs)
    return final - read_on
