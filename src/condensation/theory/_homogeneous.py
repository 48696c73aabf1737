r"""Directions of neurons with relu or leaky relu: extremal vectors of early alignment.

With $\sigma(z) = \max(z, \alpha z)$ a small neuron moves by $\dot w = a\, g(u)$,
$g(u) = \frac1n \sum_i r_i \sigma'(u \cdot x_i) x_i$: constant in each sector of directions that activate the same
samples. With $F(u) = \frac1n \sum_i r_i \sigma(u \cdot x_i) = u \cdot g(u)$ and s = sign(a), $s F$ has its local maxima
of positive value

- inside a sector, at $u = s g / |g|$ where that lies in the sector itself, or
- at a kink, $u \cdot x_i = 0$ for samples with $s r_i < 0$, where the fields on both sides push onto it: the neuron
  then grows with its kink on the sample.

Of several outputs, a = |a| v, neurons go to local maxima of $|G(u)|$, $G_k(u) = \frac1n \sum_i r_{ik} \sigma(u \cdot
x_i)$, with v = G/|G|. In a sector G = A u with a constant matrix A, whose top singular pair takes the place of s and g.
"""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from .._threads import narrow_products
from ..errors import InputError, check_whole
from ._climb import INSIDE, alternate, kinks_at, search
from ._directions import Directions
from ._tensor import as_samples, span, unit

VANISHES = 1e-12  # a field this much smaller than its terms is zero
STARTS = 100


@narrow_products
def extremal_directions(
    x: ArrayLike, residual: ArrayLike, negative_slope: float = 0.0, *, starts: int = STARTS
) -> Directions:
    r"""Orientations that attract neurons with $\sigma(z) = \max(z, \alpha z)$, $\alpha$ = ``negative_slope``.

    In two dimensions (one input and the bias) all sectors are swept and the result is complete; above, a convex
    problem is solved in turn with the pattern of active samples, from many starts, without a certificate. Of several
    outputs v is solved for in turn too.

    Args:
        x, residual: as for ``stationary_directions``.
        negative_slope: $\alpha$ < 1; 0 for relu.
        starts: number of starts above two dimensions, of a single output for each sign.

    Returns:
        Orientations with ``p`` = 1; eigenvalues are -F in a sector (several outputs: $-|G| \pm s$ with the other
        singular values s of A) and infinite across a kink. Of several outputs the values are |G| and ``outputs`` the v.

    >>> lines = extremal_directions(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([6.0, 8.0]))
    >>> lines.directions, lines.values, lines.attracts_positive  # (3, 4)/5 is inside its own sector
    (array([[0.6, 0.8]]), array([5.]), array([ True]))
    >>> pairs = extremal_directions(np.eye(2), np.array([[6.0, 0.0], [8.0, 1.0]]))
    >>> pairs.directions.round(3), pairs.outputs.round(3)
    (array([[0.596, 0.803]]), array([[0.997, 0.08 ]]))
    """
    points, residuals = as_samples(x, residual)
    if not (isinstance(negative_slope, numbers.Real) and -np.inf < negative_slope < 1):
        raise InputError(f"the negative slope must be a number below 1 (0 is relu), not {negative_slope!r}")
    check_whole("starts", starts)
    slope, counted = float(negative_slope), residuals.any(axis=1) & points.any(axis=1)
    if not counted.any():
        raise InputError("every sample has a zero residual or a zero input: there is no field and no direction")
    size_x, size_r = np.abs(points).max(), np.abs(residuals).max()
    points, terms = points[counted] / size_x, residuals[counted] / size_r / len(points)
    basis = span(points)
    inside, several = points @ basis, terms.shape[1] > 1
    dead, flat, hits = "", "", None
    if basis.shape[1] == 1:
        u, kinks = np.array([[1.0], [-1.0]]), np.zeros(2, int)
    elif basis.shape[1] == 2:
        u, kinks, dead, flat = _sweep(inside, terms, slope)
    elif several:
        u, kinks, hits = alternate(inside, terms, slope, starts)
    else:
        u, kinks, hits = search(inside, terms[:, 0], slope, starts)
    growth = np.einsum("lkd,ld->lk", _jacobian(inside, terms, slope, u), u)
    value = np.linalg.norm(growth, axis=1) if several else growth[:, 0]
    kept = np.flatnonzero(np.abs(value) > VANISHES * np.abs(terms).sum())
    order = kept[np.argsort(-np.abs(value[kept]), kind="stable")]
    u, value, kinks, growth = u[order], value[order], kinks[order], growth[order]
    tangents = np.arange(points.shape[1] + terms.shape[1] - 2)
    eigenvalues = np.where(tangents < kinks[:, None], -np.sign(value)[:, None] * np.inf, -value[:, None])
    for row, count in enumerate(kinks):
        others = np.linalg.svd(_on_face(inside, terms, slope, u[row]), compute_uv=False)[1:]  # none of one output
        eigenvalues[row, count : count + 2 * len(others)] += np.concatenate([others, -others])
    exact = basis.shape[1] <= 2
    return Directions(
        p=1,
        directions=u @ basis.T,
        values=value * size_x * size_r,
        eigenvalues=np.sort(eigenvalues * size_x * size_r, axis=1),
        attracts_positive=value > 0,
        attracts_negative=value > 0 if several else value < 0,
        method="sectors" if exact else "fixed points",
        certified=exact and not flat,
        outside=points.shape[1] - basis.shape[1],
        complex_directions=np.zeros((0, points.shape[1]), complex),
        outputs=unit(growth) if several else None,
        starts=0 if exact else starts if several else 2 * starts,
        hits=None if hits is None else hits[order],
        note="; ".join(filter(None, [dead, flat])),
        oriented=True,
    )


def _jacobian(points: np.ndarray, terms: np.ndarray, slope: float, u: np.ndarray) -> np.ndarray:
    """The matrix A of each direction, outputs x inputs; on a kink as if the sample were inactive, which A u ignores."""
    slopes = np.where(u @ points.T > 0, 1, slope)
    return np.stack([(slopes * column) @ points for column in terms.T], axis=1)


def _on_face(points: np.ndarray, terms: np.ndarray, slope: float, u: np.ndarray) -> np.ndarray:
    """A at u on the directions that keep the kinks of u, outputs x these."""
    kinks = kinks_at(points, u[None])[0]
    return _jacobian(points, terms, slope, u[None])[0] @ (null_space(points[kinks]) if kinks.any() else np.eye(len(u)))


def _sweep(points: np.ndarray, terms: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, str, str]:
    """All extremal directions in the plane, whether each is a kink, and sentences on dead and on isotropic sectors."""
    angle = np.arctan2(points[:, 1], points[:, 0])
    edges = np.mod(np.concatenate([angle - np.pi / 2, angle + np.pi / 2]), 2 * np.pi)
    order = np.argsort(edges)
    edges = edges[order]
    jumps = (1 - slope) * np.concatenate([terms, -terms])[:, :, None] * np.concatenate([points, points])[:, None]
    field = np.cumsum(jumps[order], axis=0)  # behind each edge, but for what is common to all
    widths = np.diff(edges, append=edges[0] + 2 * np.pi)
    widest = widths.argmax()
    field += _jacobian(points, terms, slope, _circle((edges + widths / 2)[[widest]])) - field[widest]
    edges, field, widths = (part[widths > 1e-12] for part in (edges, field, widths))
    size = np.linalg.norm(terms, axis=1) @ np.linalg.norm(points, axis=1)
    alive = np.linalg.norm(field, axis=(1, 2)) > VANISHES * size
    _, strength, top = np.linalg.svd(field, full_matrices=False)
    isotropic = alive & (strength[:, 1:].max(axis=1, initial=0) > (1 - INSIDE) * strength[:, 0])

    directions, kinks = [], []
    for sign in (1, -1):
        at = np.arctan2(sign * top[:, 0, 1], sign * top[:, 0, 0])
        ahead = np.mod(at - edges, 2 * np.pi)
        inside = alive & ~isotropic & (ahead > INSIDE) & (ahead < widths - INSIDE)
        directions.append(_circle(at[inside]))
        kinks.append(np.zeros(inside.sum(), int))
    # at an edge: |G| rises up to it and falls behind it
    u, along = _circle(edges), _circle(edges + np.pi / 2)
    growth = np.einsum("lkd,ld->lk", field, u)
    slopes = (np.einsum("lk,lkd,ld->l", unit(growth), g, along) / size for g in (np.roll(field, 1, axis=0), field))
    before, behind = slopes
    peak = (before > -INSIDE) & (behind < INSIDE) & (before - behind > INSIDE)
    peak &= np.linalg.norm(growth, axis=1) > INSIDE * size
    directions.append(u[peak])
    kinks.append(np.ones(peak.sum(), int))
    dead = f"{(~alive).sum()} of {len(alive)} sectors have no field: every direction in them is stationary"
    flat = (
        f"{isotropic.sum()} of {len(alive)} sectors have two equal singular values: all directions in them grow alike"
    )
    return np.concatenate(directions), np.concatenate(kinks), dead * (not alive.all()), flat * bool(isotropic.any())


def _circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)
