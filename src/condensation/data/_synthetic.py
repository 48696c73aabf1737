r"""Synthetic targets: sums of waves or of hinges over the coordinates, on random or equally spaced points.

$y(x) = \sum_{c=1}^{d} \sum_{(A, k, b)} A\, g(k x_c + b)$ with $g$ = sin or relu. ``Expression`` (``_inline.py``)
takes any formula; this kind stays beside it because its amplitudes, frequencies and phases are numbers that a sweep can
change, and because the fingerprints of the papers' experiments hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float

from .._serialization import Count
from ..errors import InputError, one_of
from ..seeds import Seed
from ._sampling import InCube, Spacing, rotation

FUNCTIONS = {"sin": np.sin, "relu": lambda z: np.maximum(z, 0.0)}


@dataclass(frozen=True)
class Synthetic(InCube, kind="synthetic"):
    """A target function and the points it is sampled at.

    Args:
        terms: (A, k, b) of each term A g(k x + b), summed over the coordinates.
        function: g, ``"sin"`` or ``"relu"``.
        dim: number of coordinates.
        n: number of samples.
        low, high: range of every coordinate.
        spacing: ``"random"`` (uniform, by the data seed) or ``"even"`` (equally spaced; a grid in more than
            one dimension, where n must be a whole number to the power dim).
        rotated: turn the points by a random rotation of their own for each data seed, after the targets are computed.
    """

    terms: tuple[tuple[float, float, float], ...]
    dim: Count
    n: Count
    low: float
    high: float
    function: Annotated[str, one_of("target function", FUNCTIONS)] = "sin"
    spacing: Spacing = "random"
    rotated: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.terms or not np.isfinite(self.terms).all():
            raise InputError(f"terms must be finite triples (A, k, b) of A g(k x + b), not {self.terms}")

    def target(self, x: Float[np.ndarray, "samples dim"]) -> Float[np.ndarray, "samples 1"]:
        """The target function.

        >>> Synthetic(terms=((2, 1, 0),), dim=1, n=3, low=0, high=1).target(np.array([[np.pi / 2]]))
        array([[2.]])
        """
        g = FUNCTIONS[self.function]
        return sum(A * g(k * x + b) for A, k, b in self.terms).sum(axis=1, keepdims=True)  # type: ignore[union-attr]

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples dim"], Float[np.ndarray, "samples 1"]]:
        """Samples and their targets."""
        x = self.points(seed)
        y = self.target(x)
        return (x @ rotation(self.dim, seed.task).T if self.rotated else x), y

    def describe(self) -> str:
        """Points and target in words.

        >>> sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2).describe()
        '80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]'
        """
        variable, gap = ("x", "") if self.dim == 1 else ("x_k", " ")
        terms = [
            f"{_factor(A, ' ')}{self.function}({_factor(k, gap)}{variable}{f' + {b:g}' if b else ''})"
            for A, k, b in self.terms
        ]
        target = " + ".join(terms).replace("+ -", "- ")
        if self.dim > 1:
            target = f"sum ({target})" if len(terms) > 1 else f"sum {target}"
        rotated = ", rotated at random by the data seed" if self.rotated else ""
        return self.describe_points(target, variable) + rotated


def _factor(value: float, gap: str) -> str:
    """A factor and the gap behind it; a factor of 1 is left out."""
    return {1.0: "", -1.0: "-"}.get(value, f"{value:g}{gap}")


def sine_sum(
    amplitude: float, frequency: float, phase: float, *, dim: int, n: int, low: float, high: float
) -> Synthetic:
    """FC's targets: sum over k of A sin(frequency x_k + phase), at random points."""
    return Synthetic(((amplitude, frequency, phase),), dim=dim, n=n, low=low, high=high)


def two_waves(n: int = 40, low: float = -1.0, high: float = 1.5, spacing: str = "random") -> Synthetic:
    """FC Fig. 5: sin(3x) + sin(6x)/2 on [-1, 1.5]."""
    return Synthetic(((1, 3, 0), (0.5, 6, 0)), dim=1, n=n, low=low, high=high, spacing=spacing)


def hinges(n: int = 40, low: float = -1.5, high: float = 1.5, spacing: str = "even") -> Synthetic:
    """A piecewise linear function of four hinges: -g(x) + g(2x + .6) - g(1.5x - .6) + g(.5x - .4), g = relu."""
    terms = ((-1, 1, 0), (1, 2, 0.6), (-1, 1.5, -0.6), (1, 0.5, -0.4))
    return Synthetic(terms, dim=1, n=n, low=low, high=high, function="relu", spacing=spacing)
