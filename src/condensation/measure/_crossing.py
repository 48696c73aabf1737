"""Where a quantity passes a level between the cells of a map, and how far that is from where it should."""

import numpy as np
from jaxtyping import Float


def crossing(
    x: Float[np.ndarray, " cells"], y: Float[np.ndarray, "*rest cells"], level: float, *, falling: bool = False
) -> Float[np.ndarray, "*rest"]:
    """The x at which y first rises (or falls) to a level, by straight lines between the cells.

    NaN where it never does, is there in the first cell already, or is no number beside the crossing.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([[5.0, 3.0, 1.0], [1.0, 1.0, 0.0]]), 2.0, falling=True)
    array([1.5, nan])
    """
    beyond = (level - y) if falling else (y - level)
    before = beyond < 0
    last = np.argmin(before, axis=-1) - 1  # the last cell before it; -1 where the first is there, or none
    sides = [np.take_along_axis(beyond, np.maximum(last + k, k)[..., None], -1)[..., 0] for k in (0, 1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = sides[0] / (sides[0] - sides[1])
        passes = x[np.maximum(last, 0)] + part * np.diff(x)[np.maximum(last, 0)]
    return np.where(last >= 0, passes, np.nan)


def factor(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """How many times one is the other, whichever is larger; NaN where one is none.

    >>> factor(np.array([1.0, 4.0]), np.array([2.0, 2.0]))
    array([2., 2.])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp(np.abs(np.log(measured / predicted)))


def zeros(gamma: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """For each column of slopes (rows gamma) the gamma at which it changes from negative to positive.

    NaN where it does not, or more than once.

    >>> zeros(np.array([0.0, 1.0, 2.0]), np.array([[-1.0, 1.0], [1.0, 1.0], [2.0, 1.0]]))
    array([0.5, nan])
    """
    rising = (slope[:-1] < 0) & (slope[1:] >= 0)
    k = rising.argmax(axis=0)[None]
    before, after = (np.take_along_axis(slope, k + step, 0)[0] for step in (0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = gamma[k[0]] - before * (gamma[k[0] + 1] - gamma[k[0]]) / (after - before)
    return np.where(rising.sum(axis=0) == 1, crossing, np.nan)
