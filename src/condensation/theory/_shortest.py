r"""Shortest vectors of many shifted zonotopes at once, by Wolfe's method.

A zonotope $Z = \{\sum_i \eta_i w_i x_i : \alpha \le \eta_i \le 1\}$ has its farthest vertex in a direction u where
$\eta_i = 1$ for all $u \cdot x_i > 0$: one matrix product gives it for many directions. Wolfe's method holds a few
vertices of $b - Z$ (at most D + 1, its *corral*), goes to the shortest vector of their affine hull, drops a vertex
where that leaves their convex hull, and adds the farthest vertex against it until there is none beyond. All rows, each
with a b and a Z of its own, take their steps together; a row that has arrived may go on with another b and Z.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

BEYOND = 1e-12  # a vertex that is not farther out than this, relative to the largest, is not beyond
NOTHING = 1e-11  # a vector this much shorter than the vertices is zero
POSITIVE = 1e-14  # a share of a vertex below this is none
DISTINCT = 1e-15  # added to the corral's matrix, which rounding may make singular
NARROW = 1e-2  # a gap this much smaller than the squared length may be small enough
MOST_STEPS = 100_000

Rows = Int[np.ndarray, " rows"]
Vectors = Float[np.ndarray, "rows inputs"]
Chosen = Bool[np.ndarray, " rows"]
Farthest = Callable[[Rows, Vectors], Vectors]
Decided = Callable[[Vectors, Float[np.ndarray, " rows"]], Chosen]
Arrived = Callable[[Rows, Vectors], tuple[Chosen, Vectors]]


def follow_shortest(
    shift: Vectors, begin: Vectors, farthest: Farthest, arrived: Arrived, decided: Decided | None = None
) -> None:
    """Find the shortest vector of b - Z of each row, and go on with those rows that are given another b.

    Args:
        shift: the first b of each row.
        begin: a direction of each row from which to look for its first vertex.
        farthest: the point of Z that is farthest in a direction, for some rows and their directions.
        arrived: told which rows have arrived and at which vectors, says which of them go on, and the b of these. The
            rows' Z may have become others, too.
        decided: told vectors and how far, at most, the shortest ones are from them, says for which that is near
            enough.
    """
    count, dim = shift.shape
    rows, b, slots = np.arange(count), shift.copy(), np.eye(dim + 1)
    corral, share = np.zeros((count, dim + 1, dim)), np.zeros((count, dim + 1))
    held, matrix, size, x = np.zeros((count, dim + 1), bool), np.zeros((count, dim + 1, dim + 1)), np.ones(count), begin

    def restart(at: Rows) -> None:
        """Begin with the vertex against x, the unit of length its own."""
        vertex = b[at] - farthest(rows[at], x[at])
        size[at] = np.maximum(np.linalg.norm(vertex, axis=1), 1e-300)
        corral[at, 0] = x[at] = vertex / size[at, None]
        share[at], held[at], matrix[at] = slots[0], slots[0] > 0, slots
        matrix[at, 0, 0] = 2

    x = x.copy()
    restart(rows)
    inside = np.ones(count, bool)
    for _ in range(MOST_STEPS):
        at = np.flatnonzero(inside)
        if len(at):
            near = x[at]
            far = (b[at] - farthest(rows[at], near)) / size[at, None]
            length, widest = np.einsum("rd,rd->r", near, near), np.einsum("rd,rd->r", far, far)
            gap, root = length - np.einsum("rd,rd->r", near, far), np.sqrt(length)
            done = (gap <= BEYOND * np.sqrt(np.maximum(widest, 1)) * root) | (root <= NOTHING) | held[at].all(axis=1)
            if decided is not None:
                close = np.flatnonzero(~done & (gap < NARROW * length))
                done[close] = decided(near[close], np.sqrt(gap[close]))
            more, vertex = at[~done], far[~done]
            slot = held[more].argmin(axis=1)
            products = np.where(held[more], (corral[more] @ vertex[:, :, None])[:, :, 0] + 1, 0)
            matrix[more, slot] = matrix[more, :, slot] = products
            matrix[more, slot, slot] = widest[~done] + 1 + DISTINCT
            corral[more, slot], share[more, slot], held[more, slot] = vertex, 0, True
            if done.any():
                ended = at[done]
                going, anew = arrived(rows[ended], near[done] * size[ended, None])
                b[ended[going]] = anew
                restart(ended[going])
                keep = np.ones(len(rows), bool)
                keep[ended[~going]] = False
                parts = (rows, b, corral, share, held, matrix, size, x)
                rows, b, corral, share, held, matrix, size, x = (part[keep] for part in parts)
                if not len(rows):
                    return
        best = np.linalg.solve(matrix, held[:, :, None].astype(float))[:, :, 0]
        best /= best.sum(axis=1, keepdims=True)
        outside = held & (best <= POSITIVE)
        inside = ~outside.any(axis=1)
        out = np.flatnonzero(~inside)
        if len(out):
            old, new = share[out], best[out]
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(outside[out], old / (old - new), np.inf)
            lost, step = reach.argmin(axis=1), reach.min(axis=1)
            best[out] = old + step[:, None] * (new - old)
            best[out, lost], held[out, lost] = 0, False
            matrix[out, lost] = matrix[out, :, lost] = slots[lost]
        share = best
        x = (share[:, None, :] @ corral)[:, 0]
