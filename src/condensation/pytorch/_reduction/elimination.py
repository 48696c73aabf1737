r"""Backward elimination: which units go, one after the other, so that what reads the others, refitted, errs least.

A reader sees the units' activations h and computes B h. With the Gram matrix $H = \sum h h^T$ over samples (less its
mean, where a bias takes in a constant) the error of B' is $\mathrm{tr} (B - B') H (B - B')^T$. The best B' without unit
j costs $|B_j|^2 / (H^{-1})_{jj}$ more, where B is the matrix refitted without all those that went before; that is the
step of the optimal brain surgeon. $H^{-1}$ and $M = B^T B$ are brought up to date, so that a step is quadratic in the
units. Several readers count by their relative errors. Of a convolution B has the entries of its kernel one above the
other, and positions are samples, as if neighbours were independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

RIDGE = 1e-6  # relative to the mean square of the activations
SINGLE = 256  # units of a block: with twice as many or more, several go at a time


@dataclass(frozen=True)
class Reader:
    """What a layer makes of some units.

    Attributes:
        gram: H.
        squares: M.
        rows: number of samples that H is a sum over.
    """

    gram: Float[np.ndarray, "units units"]
    squares: Float[np.ndarray, "units units"]
    rows: int

    @property
    def ridge(self) -> float:
        """What is added to H's diagonal: more where there are few samples."""
        size = float(np.trace(self.gram)) / len(self.gram)
        return size * (RIDGE + 0.01 * len(self.gram) / max(self.rows, 1))


@dataclass(frozen=True)
class Elimination:
    """The order in which units go, a unit of each block at a time, and by how much each step adds to the error.

    The error is the square of the relative one, a mean over readers.
    """

    order: Int[np.ndarray, "steps blocks"]
    costs: Float[np.ndarray, " steps"]

    def kept(self, count: int) -> Int[np.ndarray, " new"]:
        """The units that are left when there are so many of each block."""
        return np.sort(self.order[len(self.order) - count :].reshape(-1))


def eliminate(readers: Sequence[Reader], blocks: Sequence[Int[np.ndarray, " members"]]) -> Elimination:
    """Leave out all units, a unit of each block at a time.

    >>> h = np.array([[1.0, 0, 1], [0, 1, 1], [2, 0, 2]])  # the third is the sum of the others
    >>> b = np.array([[1.0, 0.1, 1]])
    >>> found = eliminate([Reader(h.T @ h, b.T @ b, 3)], [np.arange(3)])
    >>> sorted(found.order[:, 0].tolist()), bool(found.costs[0] < 1e-2 < found.costs[2])
    ([0, 1, 2], True)
    """
    alive = np.sort(np.concatenate(blocks))
    block_of = np.zeros(len(alive), int)
    for k, block in enumerate(blocks):
        block_of[block] = k
    states = []
    for reader in readers:
        energy = float(np.sum(reader.gram * reader.squares))
        if energy > 0 and reader.ridge > 0:
            inverse = np.linalg.inv(reader.gram + reader.ridge * np.eye(len(alive)))
            own = np.diag(reader.gram).clip(0)
            states.append((inverse, reader.squares / (energy * len(readers)), reader.ridge, own))
    steps, costs = [], []
    while len(alive):
        cost = np.zeros(len(alive))
        for inverse, squares, ridge, own in states:
            new = 1 / np.maximum(np.diag(inverse), np.finfo(float).tiny) - ridge  # the square that no other explains
            cost += np.maximum(np.diag(squares), 0) * np.clip(new, 0, own[alive])  # rounding may say more than all
        many = max(1, len(alive) // len(blocks) // SINGLE)
        rising = np.argsort(cost, kind="stable")
        gone = np.stack([rising[block_of[alive[rising]] == k][:many] for k in range(len(blocks))], axis=1)
        steps += alive[gone].tolist()
        costs += cost[gone].sum(axis=1).tolist()
        left = np.ones(len(alive), bool)
        left[gone] = False
        states = [(*_without(inverse, squares, gone.reshape(-1), left), *fixed) for inverse, squares, *fixed in states]
        alive = alive[left]
    return Elimination(np.array(steps), np.array(costs))


def _without(
    inverse: np.ndarray, squares: np.ndarray, gone: np.ndarray, left: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """H^-1 and M of the units that are left, refitted."""
    kept = np.flatnonzero(left)
    to_left = inverse[np.ix_(gone, kept)]
    share = np.linalg.solve(inverse[np.ix_(gone, gone)], to_left)
    half = squares[np.ix_(gone, kept)] - squares[np.ix_(gone, gone)] @ share / 2
    inverse, squares = (whole[kept].take(kept, axis=1) for whole in (inverse, squares))
    inverse -= share.T @ to_left
    squares -= np.concatenate([share, half]).T @ np.concatenate([half, share])  # both halves of what is symmetric
    return inverse, squares


def regression(reader: Reader, kept: Int[np.ndarray, " new"]) -> Float[np.ndarray, "units new"]:
    """C of h = C h', h' the units that are kept: by least squares for the others."""
    gram = reader.gram[np.ix_(kept, kept)] + reader.ridge * np.eye(len(kept))
    combine = (
        np.linalg.solve(gram, reader.gram[kept]).T if reader.ridge > 0 else np.zeros((len(reader.gram), len(kept)))
    )
    combine[kept] = np.eye(len(kept))
    return combine
