r"""The singular values of weights: all of them, or of a large matrix how many there are of which size.

Up to ``EXACT`` on the smaller side they are the roots of the eigenvalues of the smaller product. Beyond, a block Krylov
space of $W W^T$ gives the largest ones with their vectors; those that have converged are taken out. Of the rest,
$\mathrm{tr} f(W W^T)$ is a mean over random directions $z$ (Hutchinson), each a Gauss quadrature from a few steps of
Golub-Kahan bidiagonalisation begun at $z$. So nodes and weights stand for the values that are not computed. 4096 x 4096
weights take a second of one core where an SVD takes a minute; the directions are the same in every call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

EXACT = 2048  # on the smaller side
BLOCK, BLOCKS = 32, 12  # columns of the Krylov space
CONVERGED = 0.1  # residual over singular value: its square is the error
PROBES, STEPS = 16, 40  # random directions, and steps of the bidiagonalisation of each
TINY = 1e-30


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
    wide, rng = wide.astype(np.float32, copy=False), np.random.default_rng(0)
    left, largest, right = _largest(wide, rng)
    nodes, shares = _density(wide, left, right, rng)
    counts = (len(wide) - len(largest)) * shares
    total, found = float(np.einsum("ij,ij->", wide, wide, dtype=float)), float(counts @ nodes**2)
    rest = total - float(largest @ largest)
    if found > 1e-5 * total and rest > 0:  # less is rounding
        counts = counts * rest / found  # all squares together are known
    values, counts = np.concatenate([largest, nodes]), np.concatenate([np.ones(len(largest)), counts])
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    return Spectrum(values[order], counts[order])


def _largest(wide: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest singular values that have converged, with their left (columns) and right vectors (rows)."""
    space = np.zeros((len(wide), 0), np.float32)
    block = rng.standard_normal((len(wide), BLOCK), dtype=np.float32)
    for _ in range(BLOCKS):
        size = np.linalg.norm(block, axis=0)
        block = block - space @ (space.T @ block)
        block = block[:, np.linalg.norm(block, axis=0) > 1e-3 * size]  # what is in the space already is rounding
        if not block.shape[1] or space.shape[1] + block.shape[1] > len(wide):
            break
        block = np.linalg.qr(block)[0]
        block = np.linalg.qr(block - space @ (space.T @ block))[0]
        space = np.concatenate([space, block], axis=1)
        block = wide @ (wide.T @ block)
    turn, values, right = np.linalg.svd((wide.T @ space).T, full_matrices=False)
    left = space @ turn
    residual = np.linalg.norm(wide @ right.T - left * values, axis=0)
    good = residual < CONVERGED * values
    return left[:, good], values[good].astype(float), right[good]


def _density(
    wide: np.ndarray, left: np.ndarray, right: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights, with the sum one, for the singular values without these vectors."""

    def unit(columns: np.ndarray, without: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        columns = columns - without @ (without.T @ columns)
        size = np.sqrt(np.einsum("ij,ij->j", columns, columns, dtype=float))
        return columns / np.maximum(size, TINY).astype(np.float32), size

    u, _ = unit(rng.standard_normal((len(wide), PROBES), dtype=np.float32), left)
    v, beta = np.zeros((wide.shape[1], PROBES), np.float32), np.zeros(PROBES)
    bidiagonal = np.zeros((PROBES, STEPS, STEPS))
    for k in range(STEPS):
        v, alpha = unit(wide.T @ u - v * beta.astype(np.float32), right.T)
        bidiagonal[:, k, k] = alpha
        if k + 1 < STEPS:
            u, beta = unit(wide @ v - u * alpha.astype(np.float32), left)
            bidiagonal[:, k + 1, k] = beta
    vectors, nodes, _ = np.linalg.svd(bidiagonal)
    return nodes.ravel(), (vectors[:, 0, :] ** 2 / PROBES).ravel()
