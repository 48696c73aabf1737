r"""The null of pretrained models: weights whose units are as independent as their entries allow, and as large.

The entries of each input are permuted among the units. That keeps what an input's weights are like (scale, sign,
outliers, a common mean) and destroys what makes two units alike. It would even out the units' norms, too, and k_eff
counts units by their norms: so orientations are permuted, and each unit keeps its norm.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._k_eff import SAMPLE
from ._similarity import as_weights, norms

MOST_DRAWS = 99  # a layer that is below all of them is so by chance in one of a hundred cases
LEAST_DRAWS = 3
ENTRIES = 4_000_000  # of large layers fewer draws are made, so that together they have as many entries


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


def permuted_orientations(weights: ArrayLike, seed: int = 0) -> Float[np.ndarray, "units inputs"]:
    """Units of the same norms, whose orientations have their entries permuted.

    >>> norms(permuted_orientations(np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])))
    array([5., 1., 0.])
    """
    array = as_weights(weights)
    r = norms(array)
    null = np.zeros_like(array)
    null[r > 0] = _unit_rows(permuted(array[r > 0] / r[r > 0, None].astype(array.dtype), seed))
    null *= r[:, None].astype(array.dtype)
    return null


def null_counts(weights: ArrayLike, threshold: float, *, centred: bool = False) -> Float[np.ndarray, " draws"]:
    """k_eff of each draw of the null, at a threshold: 99 draws, or at least 3 of a large layer.

    ``centred``: the mean is removed from each draw, as it is from the weights that it is compared with. Among units of
    very unequal norms that alone makes the small ones alike: they are left with the mean of the large ones. Where a few
    inputs have large weights, heavy units are those that they make alike; then entries that are permuted with the norms
    they make leave less, and that is the null.
    """
    array = as_weights(weights)
    r = norms(array)
    if not r.max() > 0:
        raise InputError("all weights are zero: there is no direction")
    u = array[r > 0] / r[r > 0, None].astype(array.dtype)
    shares = r[r > 0] / r.sum()
    draws = int(np.clip(ENTRIES // (min(len(u), SAMPLE) * u.shape[1]), LEAST_DRAWS, MOST_DRAWS))
    found = np.array([_draw(u, shares, threshold, seed, centred) for seed in range(draws)])
    if not centred:
        return found
    others = np.array([_draw_entries(array, threshold, seed) for seed in range(draws)])
    return min(found, others, key=np.mean)


def null_count(weights: ArrayLike, threshold: float) -> float:
    """k_eff of the null, at a threshold: the mean over its draws.

    >>> round(null_count(np.random.default_rng(0).normal(size=(50, 100)), 0.95) / 50, 1)
    1.0
    """
    return float(null_counts(weights, threshold).mean())


def _draw(u: np.ndarray, shares: np.ndarray, threshold: float, seed: int, centred: bool) -> float:
    rows = _unit_rows(permuted(u, seed, SAMPLE))
    if centred:
        few = len(rows) < len(u)
        size = np.random.default_rng(seed).choice(shares, len(rows), replace=False) if few else shares
        rows = rows * size[:, None].astype(rows.dtype)
        rows -= rows.mean(axis=0)
        size, rows = norms(rows), _unit_rows(rows)
        shares = shares if few or not size.any() else size / size.sum()
    return _count(rows, shares, threshold)


def _draw_entries(array: np.ndarray, threshold: float, seed: int) -> float:
    """k_eff of weights whose entries are permuted among the units, norms and all, without their mean."""
    rows = permuted(array, seed, SAMPLE)
    rows = rows - rows.mean(axis=0)
    r = norms(rows).astype(float)
    if not r.any():
        return float(len(array))
    near = np.abs(_unit_rows(rows) @ _unit_rows(rows).T) >= threshold
    np.fill_diagonal(near, False)
    pairs = float(r @ near @ r) / max(r.sum() ** 2 - (r**2).sum(), np.finfo(float).tiny)
    alone = float((r**2).mean() / r.mean() ** 2 / len(array))
    return 1 / (alone + (1 - alone) * pairs)


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    r = norms(rows)
    return rows / np.where(r > 0, r, 1)[:, None].astype(rows.dtype)


def _count(u: np.ndarray, shares: np.ndarray, threshold: float) -> float:
    """k_eff of units with given shares of the norm, whose orientations, or some of them, are these."""
    near = np.abs(u @ u.T) >= threshold
    np.fill_diagonal(near, False)
    alone = float((shares**2).sum())
    if len(u) == len(shares):
        return 1 / (alone + float(shares @ near @ shares))
    return 1 / (alone + (1 - alone) * float(near.mean()) * len(u) / (len(u) - 1))
