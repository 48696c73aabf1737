"""Axes: the values that a field, or a variable of formulas, takes in a sweep."""

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError, check_positive, check_whole, unknown_name

SPACINGS = ("linspace", "logspace")


def linspace(first: float, last: float, count: int) -> tuple[float, ...]:
    """Numbers of equal distance, both ends among them.

    >>> linspace(0, 1, 3)
    (0.0, 0.5, 1.0)
    """
    check_whole("the count of linspace", count)
    if not np.isfinite([first, last]).all():
        raise InputError(f"linspace goes from one finite number to another, not from {first!r} to {last!r}")
    return tuple(_short(np.linspace(first, last, count)))


def logspace(first: float, last: float, count: int) -> tuple[float, ...]:
    """Numbers of equal ratio, both ends (not their exponents) among them.

    >>> logspace(1e-4, 1, 3)
    (0.0001, 0.01, 1.0)
    """
    check_whole("the count of logspace", count)
    for end in (first, last):
        check_positive("an end of logspace", end)
    return tuple(_short(np.geomspace(first, last, count)))


def _short(values: np.ndarray) -> list[float]:
    """The values with twelve digits: 0.3 and not 0.30000000000000004, so that grids share cells."""
    return [float(f"{value:.12g}") for value in values]


def read_axis(name: str, given: Any) -> tuple[Any, ...]:
    """An axis from a list, or from a table such as ``{"logspace": [1e-5, 1, 9]}``."""
    if isinstance(given, Mapping):
        if len(given) != 1 or next(iter(given)) not in SPACINGS:
            raise unknown_name(f"spacing of the axis {name}", ", ".join(map(str, given)), SPACINGS)
        spacing, ends = next(iter(given.items()))
        if not isinstance(ends, Iterable) or isinstance(ends, str) or len(ends := list(ends)) != 3:
            raise InputError(f"the axis {name} needs {spacing} = [first, last, count], not {ends!r}")
        if not all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in ends):
            raise InputError(f"the axis {name} needs numbers in {spacing} = [first, last, count], not {ends!r}")
        return (linspace if spacing == "linspace" else logspace)(ends[0], ends[1], ends[2])
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"the axis {name} needs a list of values, linspace or logspace, not {given!r}")
    values = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
    if not values:
        raise InputError(f"the axis {name} has no values")
    labels = [label(value) for value in values]
    if len(set(map(repr, labels))) < len(labels):
        raise InputError(f"each value of the axis {name} may stand once, not {labels}")
    return values


def label(value: Any) -> float | int | str | bool:
    """What stands for a value in the table: itself, or for a part (an optimizer, say) its fields in short.

    >>> from condensation.training.optimizers import GD
    >>> label(GD(0.1)), label({"kind": "adam", "learning_rate": 0.001}), label(0.5)
    ('gd(learning_rate=0.1)', 'adam(learning_rate=0.001)', 0.5)
    """
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name}={label(part)}" for name, part in value.items() if name != "kind")
        return f"{value.get('kind', '')}({inner})"
    if isinstance(value, list | tuple):
        return f"({', '.join(str(label(part)) for part in value)})"
    from dataclasses import MISSING, fields, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        told = {f.name: getattr(value, f.name) for f in fields(value)}
        own = {f.name: told[f.name] for f in fields(value) if f.default is MISSING or f.default != told[f.name]}
        return label({"kind": getattr(value, "kind", type(value).__name__)} | own)
    return getattr(value, "__name__", str(value))
