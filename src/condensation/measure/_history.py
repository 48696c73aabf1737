"""The number of lines against time: the headline curve of condensation."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from ..errors import InputError
from ._lines import find_lines


@dataclass(frozen=True)
class LineHistory:
    """For each seed and saved step: lines, orientations, k_eff, cover, and whether the layer is condensed.

    Where the weights are not finite (a seed that diverged) lines and orientations are -1, the others NaN or False.
    """

    lines: Int[np.ndarray, "seeds steps"]
    orientations: Int[np.ndarray, "seeds steps"]
    k_eff: Float[np.ndarray, "seeds steps"]
    cover: Float[np.ndarray, "seeds steps"]
    condensed: Bool[np.ndarray, "seeds steps"]


def count_lines(weights: Float[np.ndarray, "seeds steps units inputs"], threshold: float | None = None) -> LineHistory:
    """Count the lines of one layer at every step of every seed (``trajectory.history(layer)``).

    >>> one_line = np.ones((1, 2, 20, 3))
    >>> count_lines(one_line).lines
    array([[1, 1]])
    """
    weights = np.asarray(weights)
    if weights.ndim != 4:
        raise InputError(f"weights must be seeds x steps x units x inputs, not of shape {weights.shape}")
    shape = weights.shape[:2]
    lines, orientations = np.full(shape, -1), np.full(shape, -1)
    k_eff, cover, condensed = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, bool)
    now = None
    for index in np.ndindex(*shape):
        if np.isfinite(weights[index]).all():
            seed, step = index
            if now is None or step == 0 or not np.array_equal(weights[index], weights[seed, step - 1]):
                now = find_lines(weights[index], threshold=threshold)  # a flow that has stopped repeats itself
            lines[index], orientations[index] = now.count, now.orientations
            k_eff[index], cover[index], condensed[index] = now.k_eff, now.cover, now.condensed
    return LineHistory(lines, orientations, k_eff, cover, condensed)
