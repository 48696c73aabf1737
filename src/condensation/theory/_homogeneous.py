r"""Directions of neurons with relu or leaky relu: extremal vectors of early alignment.

With $\sigma(z) = \max(z, \alpha z)$ a small neuron moves by $\dot w = a\, g(u)$,
$g(u) = \frac1n \sum_i r_i \sigma'(u \cdot x_i) x_i$: constant in each sector of directions that activate the same
samples. With $F(u) = \frac1n \sum_i r_i \sigma(u \cdot x_i) = u \cdot g(u)$ and s = sign(a), $s F$ has its local maxima
of positive value

- inside a sector, at $u = s g / |g|$ where that lies in the sector itself, or
- at a kink, $u \cdot x_i = 0$ for samples with $s r_i < 0$, where the fields on both sides push onto it: the neuron
  then grows with its kink on the sample.
"""

import numbers

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import lsq_linear

from ..errors import InputError, check_whole
from ._directions import Directions
from ._leading import as_single_output
from ._tensor import span, unit

INSIDE = 1e-9  # how far, in radians, from a kink a direction counts as inside a sector
VANISHES = 1e-12  # a field this much smaller than its terms is zero
STARTS = 100
STEPS = 100


def extremal_directions(
    x: ArrayLike, residual: ArrayLike, negative_slope: float = 0.0, *, starts: int = STARTS
) -> Directions:
    r"""Orientations that attract neurons with $\sigma(z) = \max(z, \alpha z)$, $\alpha$ = ``negative_slope``.

    In two dimensions (one input and the bias) all sectors are swept and the result is complete; above, a convex
    problem is solved in turn with the pattern of active samples, from many starts, without a certificate.

    Args:
        x, residual: as for ``stationary_directions``, of one output.
        negative_slope: $\alpha$ < 1; 0 for relu.
        starts: number of starts for each sign, above two dimensions.

    Returns:
        Orientations with ``p`` = 1; eigenvalues are -F in a sector and infinite across a kink.

    >>> lines = extremal_directions(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([6.0, 8.0]))
    >>> lines.directions, lines.values, lines.attracts_positive  # (3, 4)/5 is inside its own sector
    (array([[0.6, 0.8]]), array([5.]), array([ True]))
    """
    points, residuals = as_single_output(x, residual)
    if not (isinstance(negative_slope, numbers.Real) and -np.inf < negative_slope < 1):
        raise InputError(f"the negative slope must be a number below 1 (0 is relu), not {negative_slope!r}")
    check_whole("starts", starts)
    slope, counted = float(negative_slope), (residuals != 0) & points.any(axis=1)
    if not counted.any():
        raise InputError("every sample has a zero residual or a zero input: there is no field and no direction")
    size_x, size_r = np.abs(points).max(), np.abs(residuals).max()
    points, terms = points[counted] / size_x, residuals[counted] / size_r / len(points)
    basis = span(points)
    inside = points @ basis
    dead, hits = "", None
    if basis.shape[1] == 1:
        u, kinks = np.array([[1.0], [-1.0]]), np.zeros(2, int)
    elif basis.shape[1] == 2:
        u, kinks, dead = _sweep(inside, terms, slope)
    else:
        u, kinks, hits = _search(inside, terms, slope, starts)
    value = np.einsum("ld,ld->l", u, _field(inside, terms, slope, u))
    kept = np.flatnonzero(np.abs(value) > VANISHES * np.abs(terms).sum())
    order = kept[np.argsort(-np.abs(value[kept]), kind="stable")]
    u, value, kinks = u[order], value[order], kinks[order]
    tangents = np.arange(points.shape[1] - 1)
    eigenvalues = np.where(tangents < kinks[:, None], -np.sign(value)[:, None] * np.inf, -value[:, None])
    exact = basis.shape[1] <= 2
    return Directions(
        p=1,
        directions=u @ basis.T,
        values=value * size_x * size_r,
        eigenvalues=np.sort(eigenvalues * size_x * size_r, axis=1),
        attracts_positive=value > 0,
        attracts_negative=value < 0,
        method="sectors" if exact else "fixed points",
        certified=exact,
        outside=points.shape[1] - basis.shape[1],
        complex_directions=np.zeros((0, points.shape[1]), complex),
        starts=0 if exact else 2 * starts,
        hits=None if hits is None else hits[order],
        note=dead,
        oriented=True,
    )


def _field(points: np.ndarray, terms: np.ndarray, slope: float, u: np.ndarray) -> np.ndarray:
    """The field g(u) of each direction; on a kink as if the sample were inactive, which F = u.g does not notice."""
    return (np.where(u @ points.T > 0, 1, slope) * terms) @ points


def _sweep(points: np.ndarray, terms: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, str]:
    """All extremal directions in the plane, whether each is a kink, and a sentence if there is a dead sector."""
    angle = np.arctan2(points[:, 1], points[:, 0])
    edges = np.mod(np.concatenate([angle - np.pi / 2, angle + np.pi / 2]), 2 * np.pi)
    order = np.argsort(edges)
    edges = edges[order]
    jumps = (1 - slope) * np.concatenate([terms, -terms])[:, None] * np.concatenate([points, points])
    field = np.cumsum(jumps[order], axis=0)  # behind each edge, but for what is common to all
    widths = np.diff(edges, append=edges[0] + 2 * np.pi)
    widest = widths.argmax()
    field += _field(points, terms, slope, _circle((edges + widths / 2)[[widest]])) - field[widest]
    edges, field, widths = (part[widths > 1e-12] for part in (edges, field, widths))
    size = np.abs(terms) @ np.linalg.norm(points, axis=1)
    alive = np.linalg.norm(field, axis=1) > VANISHES * size

    directions, kinks = [], []
    for sign in (1, -1):
        at = np.arctan2(sign * field[:, 1], sign * field[:, 0])
        ahead = np.mod(at - edges, 2 * np.pi)
        inside = alive & (ahead > INSIDE) & (ahead < widths - INSIDE)
        directions.append(_circle(at[inside]))
        kinks.append(np.zeros(inside.sum(), int))
        # at an edge: s F rises up to it and falls behind it
        u, along = _circle(edges), _circle(edges + np.pi / 2)
        before, behind = (sign * np.einsum("ld,ld->l", along, g) / size for g in (np.roll(field, 1, axis=0), field))
        value = sign * np.einsum("ld,ld->l", u, field) / size
        peak = (before > -INSIDE) & (behind < INSIDE) & (before - behind > INSIDE) & (value > INSIDE)
        directions.append(u[peak])
        kinks.append(np.ones(peak.sum(), int))
    dead = f"{(~alive).sum()} of {len(alive)} sectors have no field: every direction in them is stationary"
    return np.concatenate(directions), np.concatenate(kinks), "" if alive.all() else dead


def _circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _search(points: np.ndarray, terms: np.ndarray, slope: float, starts: int) -> tuple[np.ndarray, ...]:
    """Attracting directions above two dimensions, how many tangents of each cross a kink, and its hits."""
    stream = np.random.default_rng(0)
    chosen = points[stream.permutation(len(points))[: starts // 2]]
    begin = unit(np.concatenate([chosen, stream.normal(size=(starts - len(chosen), points.shape[1]))]))
    ends = [end for sign in (1, -1) for end in _climb(points, sign * terms, slope, begin)]
    u = np.array([end for end, _ in ends]).reshape(len(ends), points.shape[1])
    on_kink = np.abs(u @ points.T) < INSIDE * np.linalg.norm(points, axis=1)
    kinks = [np.linalg.matrix_rank(points[row]) if row.any() else 0 for row in on_kink]
    return u, np.array(kinks, int), np.array([hits for _, hits in ends], int)


def _climb(points: np.ndarray, terms: np.ndarray, slope: float, begin: np.ndarray) -> list[tuple[np.ndarray, int]]:
    r"""Local maxima of positive value of F, each with the number of starts that end there.

    The samples with $r_i > 0$ are given the slopes they have at u; what remains is concave, and its maximum over the
    ball is dual to a bounded least-squares problem:
    $\max_{|u| \le 1} b \cdot u - \sum_{r_i < 0} |r_i| \sigma(u \cdot x_i)
    = \min_{\alpha \le \eta_i \le 1} |b - \sum |r_i| \eta_i x_i|$, attained along that shortest vector. This is
    repeated until the slopes stay as they are; F never falls.
    """
    rising, pulls = points[terms > 0], points[terms < 0] * -terms[terms < 0, None]
    shortest: dict[bytes, np.ndarray] = {}
    hits: dict[bytes, int] = {}
    for u in begin:
        before: bytes | None = None
        for _ in range(STEPS):
            active = rising @ u > 0
            key = active.tobytes()
            if key == before:
                hits[key] = hits.get(key, 0) + 1
                break
            if key not in shortest:
                shortest[key] = _shortest((np.where(active, 1, slope) * terms[terms > 0]) @ rising, pulls, slope)
            before, u = key, shortest[key]
            if not u.any():
                break
    return [(shortest[key], count) for key, count in hits.items()]


def _shortest(pushed: np.ndarray, pulls: np.ndarray, slope: float) -> np.ndarray:
    r"""Unit vector along the shortest $b - \sum \eta_i x_i$, each eta between the slope and 1; zero if it vanishes."""
    rest = pushed
    if len(pulls):
        rest = pushed - pulls.T @ lsq_linear(pulls.T, pushed, bounds=(slope, 1), method="bvls", tol=1e-14).x
    size = np.linalg.norm(pushed) + np.linalg.norm(pulls, axis=1).sum()
    return unit(rest) if np.linalg.norm(rest) > 1e-10 * size else np.zeros_like(rest)
