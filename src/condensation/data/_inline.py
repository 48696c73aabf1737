"""Data that stand in text: a target as a formula, or the samples themselves. An experiment file holds them whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._formula import Formula
from .._phrases import counted
from .._serialization import Count
from ..errors import InputError
from ..seeds import Seed
from ._sampling import InCube, Spacing, Vectors, check_turn, describe_turn, turn


@dataclass(frozen=True)
class Expression(InCube, kind="expression"):
    """A target function given as a formula, and the points it is sampled at.

    Args:
        formula: in ``x``, summed over the coordinates (``3.5*sin(5*x+1)`` is FC's target), or in ``x1``, ``x2``, ... up
            to dim, the coordinates; without a variable it is a constant. See ``condensation._formula``.
        dim: number of coordinates.
        n: number of samples.
        low, high: range of every coordinate.
        spacing: ``"random"`` (uniform, by the data seed) or ``"even"`` (equally spaced; a grid in more than
            one dimension, where n must be a whole number to the power dim).
        turned: degrees by which the points are turned, after the targets are computed; for dim = 2.
    """

    formula: str
    dim: Count
    n: Count
    low: float
    high: float
    spacing: Spacing = "random"
    turned: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_turn(self.turned, self.dim)
        names = Formula(self.formula).names
        if "x" in names and len(names) > 1:
            others = ", ".join(sorted(names - {"x"}))
            raise InputError(
                f"the formula {self.formula!r} mixes x with {others}: write x alone, which is summed over the "
                f"coordinates, or the coordinates {self._coordinates}"
            )
        unknown = sorted(name for name in names if name != "x" and not self._is_coordinate(name))
        if unknown:
            raise InputError(
                f"the formula {self.formula!r} uses {', '.join(unknown)}, but with dim = {self.dim} it may use "
                f"{self._coordinates}, or x, which is summed over the coordinates"
            )

    @property
    def _coordinates(self) -> str:
        return {1: "x1", 2: "x1 and x2"}.get(self.dim, f"x1 to x{self.dim}")

    def _is_coordinate(self, name: str) -> bool:
        return bool(re.fullmatch("x[1-9][0-9]{0,8}", name)) and int(name[1:]) <= self.dim

    def target(self, x: Float[np.ndarray, "samples dim"]) -> Float[np.ndarray, "samples 1"]:
        """The target function, at points that are not turned; inf or NaN where the formula has no finite value.

        >>> Expression("x1 * x2", dim=2, n=9, low=0, high=1).target(np.array([[2.0, 3.0], [1.0, 0.5]]))
        array([[6. ],
               [0.5]])
        """
        formula = Formula(self.formula)
        with np.errstate(all="ignore"):
            if "x" in formula.names:
                return np.asarray(formula(x=x)).sum(axis=1, keepdims=True)
            value = formula(**{name: x[:, int(name[1:]) - 1] for name in formula.names})
        return np.array(np.broadcast_to(value, len(x)))[:, None]

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples dim"], Float[np.ndarray, "samples 1"]]:
        """Samples and their targets, which must be finite."""
        x = self.points(seed)
        y = self.target(x)
        bad = ~np.isfinite(y[:, 0])
        if bad.any():
            first = int(bad.argmax())
            place = ", ".join(f"{c:.6g}" for c in x[first, :9]) + (", ..." if self.dim > 9 else "")
            raise InputError(
                f"the formula {self.formula!r} is {y[first, 0]} at ({place}), sample {first}, and not finite at "
                f"{bad.sum()} of {self.n} samples: one that is finite from {self.low:g} to {self.high:g} is needed"
            )
        return turn(x, self.turned), y

    def describe(self) -> str:
        """Points and target in words.

        >>> Expression("x1 * x2", dim=2, n=9, low=0, high=1, spacing="even").describe()
        '9 points of x1 * x2, x1 and x2 evenly spaced on [0, 1]'
        """
        target, variable = " ".join(self.formula.split()), self._coordinates
        if "x" in Formula(self.formula).names:
            variable = "x" if self.dim == 1 else "x_k"
            summed = re.sub(r"\bx\b", variable, target)
            target = target if self.dim == 1 else f"sum ({summed})"
        return self.describe_points(target, variable) + describe_turn(self.turned)


@dataclass(frozen=True)
class Points(Vectors, kind="points"):
    """Samples written out, the same for every seed.

    >>> Points(((0.0, 1.0), (0.5, -1.0))).draw(Seed(0, 0))
    (array([[0. ],
           [0.5]]), array([[ 1.],
           [-1.]]))

    Args:
        rows: one a sample: its coordinates x1, ..., xd, then its target y.
        turned: degrees by which the points are turned in the plane; for two coordinates.
    """

    rows: tuple[tuple[float, ...], ...]
    turned: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rows:
            raise InputError("at least one row x1, ..., xd, y is needed, not none")
        length = len(self.rows[0])
        if length < 2:
            raise InputError(f"a row is x1, ..., xd, y, two numbers or more, not {self.rows[0]}")
        for number, row in enumerate(self.rows):
            if len(row) != length:
                raise InputError(f"all rows must be as long as the first, {length} numbers, but row {number} is {row}")
            if not np.isfinite(row).all():
                raise InputError(f"all numbers of the rows must be finite, but row {number} is {row}")
        check_turn(self.turned, self.dim)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.rows[0]) - 1

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.rows)

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples dim"], Float[np.ndarray, "samples 1"]]:
        """The samples and their targets, whatever the seed."""
        table = np.array(self.rows)
        return turn(table[:, :-1], self.turned), table[:, -1:]

    def describe(self) -> str:
        """The number of points in words.

        >>> Points(((0.0, 1.0), (0.5, -1.0))).describe()
        '2 given points of one coordinate'
        """
        return f"{counted(self.n, 'given point')} of {counted(self.dim, 'coordinate')}{describe_turn(self.turned)}"
