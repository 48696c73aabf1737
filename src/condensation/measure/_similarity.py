"""Cosine similarity: of units and of whole networks, the order in which its blocks show, and what chance gives."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv

from .._memory import require
from ..errors import InputError


def as_floats(what: str, values: ArrayLike) -> np.ndarray:
    """Values as an array of float32 or float64; refused when they are no real numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} must be an array of numbers: {error}") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} must be an array of real numbers, not of {array.dtype}")
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else float)


def as_weights(weights: ArrayLike) -> Float[np.ndarray, "units inputs"]:
    """Weights as an array of units x inputs whose squares neither overflow nor vanish; refused if they are no weights.

    Very large or small weights are scaled as a whole: no measure here depends on that.
    """
    array = as_floats("weights", weights)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"weights must be units x inputs, both at least 1, not of shape {array.shape}")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise InputError(f"{(~finite).sum()} of {len(array)} units hold NaN or Inf, first unit {(~finite).argmax()}")
    scale = scale_of(array)
    return array if scale == 1 else array / scale


def scale_of(array: Float[np.ndarray, "..."], axis: tuple[int, ...] | None = None) -> Float[np.ndarray, "..."]:
    """What weights are divided by lest their squares overflow or vanish: 1, but for very large or small ones.

    >>> scale_of(np.array([[0.5, -2.0], [0.0, 1e-20]]), axis=(1,))
    array([[1.e+00],
           [1.e-20]])
    """
    size = np.maximum(array.max(axis, keepdims=axis is not None), -array.min(axis, keepdims=axis is not None))
    return np.where(((size > 1e-9) & (size < 1e9)) | (size == 0), 1, size).astype(array.dtype)


def norms(weights: Float[np.ndarray, "units inputs"]) -> Float[np.ndarray, " units"]:
    """Euclidean norm (amplitude) of each unit, exact also where the squares of a small unit vanish."""
    r = np.sqrt(np.einsum("ij,ij->i", weights, weights).astype(float))
    small = np.flatnonzero(r < 1e-15)
    if len(small):
        part = weights[small].astype(float)
        largest = np.abs(part).max(axis=1)
        r[small] = largest * np.linalg.norm(part / np.where(largest > 0, largest, 1)[:, None], axis=1)
    return r


def directions(weights: ArrayLike) -> Float[np.ndarray, "units inputs"]:
    """Orientation w/|w| of each unit; refused where a unit has norm zero.

    >>> directions(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    array = as_weights(weights)
    r = norms(array)
    zero = np.flatnonzero(r == 0)
    if len(zero):
        raise InputError(f"{len(zero)} of {len(r)} units have norm zero and so no direction, first unit {zero[0]}")
    return (array / r[:, None]).astype(array.dtype)


def cosine_similarity(weights: ArrayLike, others: ArrayLike | None = None) -> Float[np.ndarray, "units others"]:
    r"""$D(u, v) = u \cdot v / (|u| |v|)$ of all pairs of units, or of units and others.

    >>> cosine_similarity(np.array([[1.0, 0.0], [-2.0, 0.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    u = directions(weights)
    v = u if others is None else directions(others)
    if u.shape[1] != v.shape[1]:
        raise InputError(f"the two sets of weights have {u.shape[1]} and {v.shape[1]} inputs")
    require(2 * 8 * len(u) * len(v), f"the cosines of {len(u):,} with {len(v):,} units", "fewer units would fit")
    return np.clip(u @ v.T, -1, 1)


def block_order(weights: ArrayLike) -> Int[np.ndarray, " units"]:
    """An order of the units in which condensed groups stand together: the leaves of a clustering by cosine.

    The tree is that of average linkage on 1 - cos, with leaves ordered so that neighbours are near.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    u = directions(weights)
    if len(u) < 3:
        return np.arange(len(u))
    require(4 * 8 * len(u) ** 2, f"the distances of {len(u):,} units", "fewer units would fit")
    distance = np.maximum(1 - u @ u.T, 0)
    condensed_form = squareform((distance + distance.T) / 2, checks=False)
    tree = linkage(condensed_form, "average")
    # optimal ordering takes cubic time: for large layers the plain order of the leaves must do
    return leaves_list(optimal_leaf_ordering(tree, condensed_form) if len(u) <= 200 else tree)


def nearest_lines(
    weights: ArrayLike, lines: Float[np.ndarray, "lines inputs"]
) -> tuple[Int[np.ndarray, " units"], Float[np.ndarray, " units"]]:
    """For each unit the line nearest to it, and the size of the cosine between them.

    >>> nearest_lines(np.array([[0.0, -2.0]]), np.array([[1.0, 0.0], [0.0, 3.0]]))
    (array([1]), array([1.]))
    """
    cosines = np.abs(directions(weights) @ directions(lines).T)
    return cosines.argmax(axis=1), cosines.max(axis=1)


def similarity_to_others(similarity: ArrayLike) -> Float[np.ndarray, " networks"]:
    """For each of several networks the median of its similarities to all others.

    Args:
        similarity: of each network of one set (a row) to each of another set, or of the same (a column), networks x
            networks. The row and the column at one position belong together: their common entry is left out.

    >>> similarity_to_others(np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]]))
    array([0.3, 0.4, 0.5])
    """
    matrix = as_floats("similarities", similarity)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InputError(f"similarities must be of two networks or more to as many, not of shape {matrix.shape}")
    others = ~np.eye(len(matrix), dtype=bool)
    return np.array([np.median([*matrix[k, others[k]], *matrix[others[k], k]]) for k in range(len(matrix))])


def chance_cosine(dim: int, probability: float = 0.01) -> float:
    r"""The |cos| that two random directions exceed with the given probability.

    For independent uniform directions in $R^D$: $P(|\cos| > c) = I_{1-c^2}\left(\frac{D-1}2, \frac12\right)$, the
    regularised incomplete beta function.

    >>> round(chance_cosine(3, probability=0.5), 12)  # in three dimensions |cos| is uniform
    0.5
    """
    if dim < 2:
        raise InputError(f"directions need at least 2 dimensions, not {dim}")
    return float(np.sqrt(1 - betaincinv((dim - 1) / 2, 0.5, probability)))


def chance_probability(dim: float, cosine: float) -> float:
    r"""The probability that two random directions have at least this |cos|: the inverse of ``chance_cosine``.

    >>> round(chance_probability(3, 0.95), 12), round(chance_probability(2, 0.5), 12)
    (0.05, 0.666666666667)
    """
    if dim < 2:
        raise InputError(f"directions need at least 2 dimensions, not {dim}")
    return float(betainc((dim - 1) / 2, 0.5, 1 - cosine**2))
