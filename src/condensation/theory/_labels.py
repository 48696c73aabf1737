r"""Labels that make prescribed lines attract.

A homogeneous F of degree p is $F(u) = \tau \cdot \phi(u)$ with the scaled monomials
$\phi_\alpha(u) = \sqrt{p!/\alpha!}\, u^\alpha$, for which $\phi(u) \cdot \phi(x) = (u \cdot x)^p$; labels y give
$\tau = \frac1n \sum_i y_i \phi(x_i)$. That lines $l_k$ are stationary is linear in $\tau$; that they attract is
$A_k(\tau) = (p-1)\, P\, T l_k^{p-2} P - F(l_k) \prec 0$ on the tangent spaces with $F(l_k) > 0$, a convex condition.
With 1 as the mean of the $F(l_k)$, the largest eigenvalue of all is lowered, at a price for the size of T that falls
until there is a good margin; labels exist if it comes below zero.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import factorial, logsumexp, softmax

from ..errors import InputError, check_whole
from ..measure._similarity import as_floats
from ._tensor import tangents, unit

SOFTNESS = 0.02  # of the maximum of eigenvalues, relative to the mean value 1
PRICES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 0.0)  # of the tensor's square norm, in turn
GOOD_MARGIN, LEAST_MARGIN = 0.2, 1e-3  # how far below zero the eigenvalues are, relative to the mean value

Blocks = list[tuple[np.ndarray, np.ndarray]]


def labels_for(lines: ArrayLike, x: ArrayLike, p: int) -> Float[np.ndarray, " samples"]:
    r"""Labels y for which the lines attract neurons with a c > 0: strict local maxima of positive value of F.

    Of all labels with the same $T = \frac1n \sum_i y_i x_i^{\otimes p}$ those of least norm, scaled so that the mean
    value $F(l_k)$ is 1. Other lines may attract besides.

    Args:
        lines: the directions, lines x inputs; for odd p their signs count.
        x: inputs, samples x inputs, as many samples at least as there are monomials of degree p.
        p: multiplicity.

    >>> y = labels_for(np.eye(2), np.array([[1.0, 0], [0, 1], [1, 1], [1, -1]]), 3)
    >>> (y / 4).round(6) + 0.0  # F(u) = u_1^3 + u_2^3
    array([1., 1., 0., 0.])
    """
    check_whole("the multiplicity p", p)
    targets, points = _check(lines, x)
    factors = np.array(list(combinations_with_replacement(range(points.shape[1]), p)))  # of each monomial
    exponents = (factors[:, :, None] == np.arange(points.shape[1])).sum(axis=1)  # monomials x inputs
    if len(points) < len(exponents):
        raise InputError(
            f"{len(points)} samples are too few: F has {len(exponents)} monomials of degree {p} in {points.shape[1]} "
            f"inputs, and that many samples are needed"
        )
    target = _target(unit(targets), exponents, p)
    size = np.linalg.norm(points, axis=1).max()
    features = _monomials(points / size, exponents, p).T / len(points)
    strength = np.linalg.svd(features, compute_uv=False)
    if not strength[-1] > 1e-10 * strength[0]:
        raise InputError(
            f"the {len(points)} samples cannot make every polynomial of degree {p} in {points.shape[1]} inputs: their "
            f"monomials are linearly dependent; samples in general position are needed"
        )
    return np.linalg.lstsq(features, target, rcond=None)[0] / size**p


def _check(lines: ArrayLike, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    targets, points = as_floats("lines", lines).astype(float), as_floats("inputs", x).astype(float)
    for what, array in (("lines", targets), ("samples", points)):
        if array.ndim != 2 or 0 in array.shape:
            raise InputError(f"{what} must be rows of a {what} x inputs array, not of shape {array.shape}")
        if not np.isfinite(array).all():
            raise InputError(f"the {what} hold NaN or Inf")
    if targets.shape[1] != points.shape[1]:
        raise InputError(f"the lines have {targets.shape[1]} inputs and the samples {points.shape[1]}")
    if not targets.any(axis=1).all():
        raise InputError(f"line {(~targets.any(axis=1)).argmax()} is zero and so has no direction")
    return targets, points


def _target(u: np.ndarray, exponents: np.ndarray, p: int) -> np.ndarray:
    """The tensor, as coefficients of scaled monomials, that the lines attract in with the widest margin."""
    along = tangents(u)
    values = _monomials(u, exponents, p)
    slopes = np.einsum("ldt,lmd->ltm", along, _monomials(u, exponents, p, 1)).reshape(-1, len(exponents)) / p
    free = null_space(slopes) if slopes.size else np.eye(len(exponents))
    mean = values.mean(axis=0) @ free
    impossible = InputError(
        f"the {len(u)} lines cannot all attract at p = {p} in {u.shape[1]} inputs: fewer lines, wider apart, or a "
        f"higher p are needed"
    )
    if not np.linalg.norm(mean) > 1e-9:
        raise impossible
    start, steps = free @ mean / (mean @ mean), free @ null_space(mean[None])
    curve = np.einsum("ldt,lmde,les->ltsm", along, _monomials(u, exponents, p, 2), along) / p
    curve = curve - np.einsum("ts,lm->ltsm", np.eye(along.shape[2]), values)
    blocks = [(curve @ start, curve @ steps)] if along.shape[2] else []
    blocks.append((-(values @ start)[:, None, None], -(values @ steps)[:, None, None, :]))
    z = np.zeros(steps.shape[1])
    for price in PRICES if len(z) else ():
        if _largest(z, blocks) < -GOOD_MARGIN:
            break
        z = minimize(_cost, z, (blocks, price), "BFGS", jac=True, options={"maxiter": 500}).x
    if not _largest(z, blocks) < -LEAST_MARGIN:
        raise impossible
    return start + steps @ z


def _largest(z: np.ndarray, blocks: Blocks) -> float:
    r"""Largest eigenvalue of all matrices $B + \sum_j z_j C_j$."""
    return max(float(np.linalg.eigvalsh(base + change @ z).max()) for base, change in blocks)


def _cost(z: np.ndarray, blocks: Blocks, price: float) -> tuple[float, np.ndarray]:
    """The largest eigenvalue, softened so that it has a gradient, plus the price of z; and its gradient."""
    spectra = [np.linalg.eigh(base + change @ z) for base, change in blocks]
    every = np.concatenate([values.ravel() for values, _ in spectra]) / SOFTNESS
    shares = np.split(softmax(every), np.cumsum([values.size for values, _ in spectra])[:-1])
    gradient = sum(
        np.einsum("lt,lat,lbt,labj->j", share.reshape(values.shape), vectors, vectors, change)
        for share, (values, vectors), (_, change) in zip(shares, spectra, blocks, strict=True)
    )
    return SOFTNESS * float(logsumexp(every)) + price / 2 * float(z @ z), gradient + price * z


def _monomials(u: np.ndarray, exponents: np.ndarray, p: int, order: int = 0) -> np.ndarray:
    """The scaled monomials at each u, points x monomials; their derivatives have one axis of inputs more per order."""
    scale = np.sqrt(factorial(p) / factorial(exponents).prod(axis=1))
    times, lowered = np.ones(len(exponents), int), exponents
    for _ in range(order):
        times = times[..., None] * lowered
        lowered = np.maximum(lowered[..., None, :] - np.eye(u.shape[1], dtype=int), 0)
    powers = u.reshape(len(u), *(1,) * (order + 1), -1) ** lowered
    return scale.reshape(-1, *(1,) * order) * times * np.prod(powers, axis=-1)
