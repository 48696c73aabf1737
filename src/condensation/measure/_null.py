r"""The null of pretrained models: weights whose units are as independent as their entries allow.

The entries of each input are permuted among the units. That keeps what an input's weights are like (scale, sign,
outliers, a common mean) and destroys what makes two units alike.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._k_eff import SAMPLE
from ._similarity import as_weights, norms


def permuted(weights: ArrayLike, seed: int = 0, units: int | None = None) -> Float[np.ndarray, "units inputs"]:
    """Weights with each column's entries permuted; of many units, only as many rows as are wanted.

    >>> permuted(np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])).sum(axis=0)
    array([ 6., 60.])
    """
    array, rng = as_weights(weights), np.random.default_rng(seed)
    if units is None or units >= len(array):
        return rng.permuted(array, axis=0)
    rows = rng.integers(len(array), size=(units, array.shape[1]))
    return np.take_along_axis(array, rows, axis=0)


def null_count(weights: ArrayLike, threshold: float) -> float:
    """k_eff of the null, at a threshold: the mean over as many permutations as make some hundred units.

    >>> round(null_count(np.random.default_rng(0).normal(size=(50, 100)), 0.95) / 50, 1)
    1.0
    """
    array = as_weights(weights)
    seeds = range(min(20, -(-SAMPLE // (2 * len(array)))))
    return float(np.mean([_count(permuted(array, seed, SAMPLE), len(array), threshold) for seed in seeds]))


def _count(rows: np.ndarray, units: int, threshold: float) -> float:
    """k_eff of a layer of so many units, estimated from some of them."""
    r = norms(rows)
    if not r.max() > 0:
        raise InputError("all weights are zero: there is no direction")
    u = rows / np.where(r > 0, r, 1)[:, None].astype(rows.dtype)
    near = np.abs(u @ u.T) >= threshold
    np.fill_diagonal(near, False)
    pairs = float(r @ near @ r) / max(r.sum() ** 2 - (r**2).sum(), np.finfo(float).tiny)
    alone = float((r**2).mean() / r.mean() ** 2 / units)
    return 1 / (alone + (1 - alone) * pairs)
