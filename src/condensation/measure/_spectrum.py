r"""The singular values of weights: all of them, or of a large matrix how many there are of which size.

Up to ``EXACT`` on the smaller side they are the roots of the eigenvalues of the smaller product. Beyond, a randomised
range finder takes the largest ones out, and Lanczos quadrature tells how the others are spread: each of some random
vectors gives nodes and weights that integrate polynomials of the remaining product exactly to a high degree. The
squares of all values together are known, and the spread is scaled to that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

EXACT = 2048  # on the smaller side
LARGEST = 128  # singular values that are taken out of a larger matrix
PROBES = 8  # random vectors
STEPS = 64  # of Lanczos with each


class Spectrum(NamedTuple):
    """Sizes of singular values, the largest first, and how many there are of each: 1, or an estimate."""

    values: Float[np.ndarray, " sizes"]
    counts: Float[np.ndarray, " sizes"]


def spectrum(array: Float[np.ndarray, "units inputs"]) -> Spectrum:
    """The singular values of an array that ``as_weights`` gave, without zeros.

    >>> spectrum(np.diag([3.0, 0.0, 4.0])).values
    array([4., 3.])
    """
    wide = array if array.shape[0] <= array.shape[1] else array.T
    if len(wide) > EXACT:
        return _estimated(wide)
    if array.dtype == np.float32:  # its squares in float64 are exact: the smaller product has all there is to know
        values = _roots(np.linalg.eigvalsh(_product(wide)))
    else:
        values = np.linalg.svd(wide, compute_uv=False)
        values = values[values > 0]
    return Spectrum(values, np.ones(len(values)))


def _product(wide: np.ndarray) -> np.ndarray:
    """The products of all rows in float64; the copy is free again then."""
    wide = wide.astype(float)
    return wide @ wide.T


def _roots(squares: np.ndarray) -> np.ndarray:
    """Singular values from ascending squares, without what rounding alone leaves."""
    floor = len(squares) * np.finfo(float).eps * squares.max(initial=0)
    return np.sqrt(squares[squares > floor])[::-1]


def _estimated(wide: np.ndarray) -> Spectrum:
    rng = np.random.default_rng(0)
    total = float(np.einsum("ij,ij->", wide, wide, dtype=float))
    basis = np.linalg.qr(wide @ rng.normal(size=(wide.shape[1], LARGEST)).astype(wide.dtype))[0]
    for _ in range(2):  # each pass sharpens what the range finder has found
        basis = np.linalg.qr(wide @ (wide.T @ basis))[0]
    top = _roots(np.linalg.eigvalsh(_product(basis.T @ wide)))
    left = _outside(wide, basis)
    if left <= 1e-10 * total:
        return Spectrum(top, np.ones(len(top)))
    top[0] = max(top[0], _largest(wide))
    values, counts = _quadrature(wide, basis, rng)
    values *= np.sqrt(left / float(counts @ values**2))
    values, counts = np.concatenate([top, values]), np.concatenate([np.ones(len(top)), counts])
    order = np.argsort(-values, kind="stable")
    return Spectrum(values[order], counts[order])


def _outside(wide: np.ndarray, basis: np.ndarray) -> float:
    """The squared norm of what an orthonormal basis of rows does not hold, in blocks of columns."""
    blocks = (wide[:, first : first + 512] for first in range(0, wide.shape[1], 512))
    return sum(float(((block - basis @ (basis.T @ block)) ** 2).sum(dtype=float)) for block in blocks)


def _largest(wide: np.ndarray) -> float:
    """The largest singular value: where many are nearly as large, no range finder has it."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    options: dict[str, Any] = {"matvec": lambda vector: wide @ (wide.T @ vector.astype(wide.dtype)), "dtype": float}
    product = LinearOperator((len(wide), len(wide)), **options)
    start = np.random.default_rng(1).normal(size=len(wide))
    accuracy: dict[str, Any] = {"tol": 1e-3}
    return float(np.sqrt(eigsh(product, 1, v0=start, return_eigenvectors=False, **accuracy)[0]))


def _quadrature(wide: np.ndarray, basis: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and numbers of the singular values across from an orthonormal basis of rows."""

    def across(block: np.ndarray) -> np.ndarray:
        return block - basis @ (basis.T @ block)

    rows, last = len(wide), np.zeros((len(wide), PROBES), wide.dtype)
    now = across(rng.normal(size=last.shape).astype(wide.dtype))
    now /= np.linalg.norm(now, axis=0)
    before = np.zeros((STEPS, PROBES, rows), wide.dtype)
    diagonal, beside = np.zeros((STEPS, PROBES)), np.zeros((STEPS, PROBES))
    for step in range(STEPS):
        before[step] = now.T
        ahead = across(wide @ (wide.T @ now))
        diagonal[step] = np.einsum("ij,ij->j", now, ahead, dtype=float)
        for _ in range(2):  # across from all earlier vectors, twice: once leaves rounding
            along = np.einsum("spr,rp->sp", before[: step + 1], ahead, optimize=True)
            ahead = ahead - np.einsum("spr,sp->rp", before[: step + 1], along, optimize=True)
        beside[step] = np.linalg.norm(ahead.astype(float), axis=0)
        now = (ahead / np.maximum(beside[step], np.finfo(wide.dtype).tiny)).astype(wide.dtype)
    found = [_nodes(own, others) for own, others in zip(diagonal.T, beside.T, strict=True)]
    squares, weights = (np.concatenate(part) for part in zip(*found, strict=True))
    kept = squares > rows * np.finfo(float).eps * squares.max()
    return np.sqrt(squares[kept]), weights[kept] * (rows - basis.shape[1]) / PROBES


def _nodes(diagonal: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of one vector's quadrature, from its tridiagonal matrix up to where it came to an end."""
    from scipy.linalg import eigh_tridiagonal

    ended = np.flatnonzero(beside <= 1e-6 * np.abs(diagonal).max())
    size = ended[0] + 1 if len(ended) else len(diagonal)
    values, vectors = eigh_tridiagonal(diagonal[:size], beside[: size - 1])
    return values, vectors[0] ** 2
