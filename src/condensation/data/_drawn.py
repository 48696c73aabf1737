"""Data that a function of the user draws."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from .._functions import called, described, name_of
from .._serialization import Part
from ..errors import InputError
from ..seeds import Seed
from ._arrays import Arrays

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Drawn(Part, kind="drawn", of_function=True):
    """Samples and targets from a function of yours, drawn anew for each data seed; ``data=function`` makes it.

    Args:
        function: ``function(rng)`` gives x and y as ``Arrays`` takes them, drawn by NumPy's generator ``rng`` alone,
            and of the same shapes each time.

    >>> def ring(rng):
    ...     x = rng.normal(size=(20, 2))
    ...     return x, np.hypot(*x.T)
    >>> Drawn(ring).describe()
    '20 samples of 2 inputs and one target, drawn by own function ring'
    """

    function: Draw

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample, known from one draw."""
        return _once(self.function).input_shape

    @property
    def outputs(self) -> int:
        """Number of targets of a sample."""
        return _once(self.function).outputs

    @property
    def most_samples(self) -> int:
        """Number of samples."""
        return _once(self.function).n

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples ..."], Float[np.ndarray, "samples outputs"]]:
        """Samples and their targets."""
        arrays, known = _drawn(self.function, seed), _once(self.function)
        if (arrays.x.shape, arrays.y.shape) != (known.x.shape, known.y.shape):
            raise InputError(
                f"the data function {name_of(self.function)} must draw the same shapes for each seed, not x and y of "
                f"{known.x.shape} and {known.y.shape} for one, {arrays.x.shape} and {arrays.y.shape} for another"
            )
        return arrays.x, arrays.y

    def describe(self) -> str:
        """The shapes in words, and the function by its name."""
        shapes, _, _ = _once(self.function).describe().rpartition(",")
        return f"{shapes}, drawn by {described('own function', self.function)}"


def _drawn(function: Draw, seed: Seed) -> Arrays:
    what = f"the data function {name_of(function)}"
    pair = called(what, function, seed.data_stream())
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputError(f"{what} must give a pair, samples x and targets y, not a value of type {type(pair).__name__}")
    try:
        return Arrays(*pair)
    except InputError as error:
        raise InputError(f"{what} cannot be used: {error}") from error


@lru_cache(maxsize=64)
def _once(function: Draw) -> Arrays:
    """One draw; refused where the same seed gives another one."""
    first, second = (_drawn(function, Seed(0, 0)) for _ in range(2))
    if first != second:
        raise InputError(
            f"the data function {name_of(function)} gives other samples each time: it must draw from the generator "
            "that it is given, function(rng)"
        )
    return first
