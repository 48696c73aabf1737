"""Axes: the values that a field, or a variable of formulas, takes in a sweep."""

import math
import numbers
from collections.abc import Iterable, Mapping, Set
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from .._functions import function_path
from .._memory import in_digits, require
from .._serialization import fingerprint
from ..errors import InputError, check_positive, check_whole, unknown_name

Label = float | int | str | bool | None
COLUMNS = (  # that every table has: no axis and no measure can have such a name
    *("seed", "seed_data", "seed_init", "step", "stage_ended", "diverged", "learning_rate", "backoffs", "rising"),
    *("time", "loss", "loss_first", "accuracy", "test_loss", "test_accuracy", "measured", "fingerprint", "experiment"),
    *("version", "jax", "device", "host", "process", "finished", "seconds"),
)
CURVES = ("loss", "accuracy", "test_loss", "test_accuracy", "time")  # those of them that can be drawn
_BYTES, _CELL, _PAIR = 200, 2500, 400  # of a value, a cell, a cell and seed in the lists they go through
DIGITS = 12  # of values between the ends of an axis: 0.3 and not 0.30000000000000004, so that grids share cells


def linspace(first: float, last: float, count: int) -> tuple[float, ...]:
    """Numbers of equal distance, both ends among them.

    >>> linspace(0, 1, 3)
    (0.0, 0.5, 1.0)
    """
    first, last, between = _check_ends("linspace", first, last, count)
    digits = DIGITS - math.ceil(math.log10(max(abs(first), abs(last))))
    return first, *(round(first * (1 - t) + last * t, digits) for t in between), last


def logspace(first: float, last: float, count: int) -> tuple[float, ...]:
    """Numbers of equal ratio, both ends (not their exponents) among them.

    >>> logspace(1e-4, 1, 3)
    (0.0001, 0.01, 1.0)
    """
    first, last, between = _check_ends("logspace", first, last, count)
    for end in (first, last):
        check_positive("an end of logspace", end)
    low, high = math.log10(first), math.log10(last)
    return first, *(float(f"{10 ** (low * (1 - t) + high * t):.{DIGITS}g}") for t in between), last


SPACINGS = {"linspace": linspace, "logspace": logspace}


def _check_ends(spacing: str, first: float, last: float, count: int) -> tuple[float, float, list[float]]:
    """Both ends, and where the values between them stand, as parts of the way from the first to the last."""
    check_whole(f"the count of {spacing}", count, least=2)
    require(_BYTES * count, f"an axis of {in_digits(count)} values", "fewer would fit")
    numeric = all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in (first, last))
    if not numeric or not math.isfinite(first) or not math.isfinite(last) or first == last:
        raise InputError(f"{spacing} goes from one finite number to another, not from {first!r} to {last!r}")
    return float(first), float(last), [k / (count - 1) for k in range(1, count - 1)]


def read_axis(name: str, axis: Any) -> tuple[Any, ...]:
    """The values of an axis from a list, or from a table such as ``{"logspace": [1e-5, 1, 9]}``."""
    if isinstance(axis, Mapping):
        if len(axis) != 1 or next(iter(axis)) not in SPACINGS:
            raise unknown_name(f"spacing of the axis {name}", ", ".join(map(str, axis)), SPACINGS)
        spacing, ends = next(iter(axis.items()))
        if not isinstance(ends, list | tuple) or len(ends) != 3:
            raise InputError(f"the axis {name} needs {spacing} = [first, last, count], not {ends!r}")
        return SPACINGS[spacing](*ends)
    if not isinstance(axis, Iterable) or isinstance(axis, str | Set):  # a set has no order
        raise InputError(f"the axis {name} needs a list of values, linspace or logspace, not {axis!r}")
    values = tuple(value.item() if isinstance(value, np.generic) else value for value in axis)
    if not values:
        raise InputError(f"the axis {name} has no values")
    return values


def check_grid(shape: tuple[int, ...], seeds: int) -> None:
    """Refuse a grid whose lists of cells, and of pairs of cell and seed, take more memory than there is."""
    cells = math.prod(shape)
    grid = f"{in_digits(cells)} cells ({' x '.join(map(str, shape))}) with {in_digits(seeds)} seeds each"
    advice = "fewer values of the axes, or fewer seeds, would fit"
    require(_CELL * cells + _PAIR * cells * seeds, f"the list of {grid}", advice)


def label(value: Any) -> Label:
    """A value as tables show it: itself, or for a part (an optimizer, say) its fields in short.

    >>> from condensation.optimizers import GD
    >>> label(GD(0.1)), label(0.5), label(("relu", "tanh"))
    ('gd(learning_rate=0.1)', 0.5, '(relu, tanh)')
    """
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return f"({', '.join(str(label(part)) for part in value)})"
    if callable(value):
        return function_path(value)
    if not is_dataclass(value):
        raise InputError(f"a value of an axis is a number, a text, a part or a function, not {value!r}")
    kind = getattr(value, "kind", type(value).__name__)
    if hasattr(value, "__plain__"):  # arrays
        return f"{kind}({fingerprint(value)[:8]})"
    values = [(field, getattr(value, field.name)) for field in fields(value)]
    inner = ", ".join(f"{f.name}={label(own)}" for f, own in values if f.default is MISSING or f.default != own)
    return f"{kind}({inner})" if inner else kind
