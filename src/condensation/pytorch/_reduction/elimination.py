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
SINGLE = 512  # units of a block beyond which several go at a time


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
    >>> found.order[:, 0].tolist(), found.costs[0] < 1e-2
    ([2, 1, 0], True)
    """
    units = sum(map(len, blocks))
    states = []
    for reader in readers:
        energy = float(np.sum(reader.gram * reader.squares))
        if energy > 0 and reader.ridge > 0:
            inverse = np.linalg.inv(reader.gram + reader.ridge * np.eye(units))
            states.append((inverse, reader.squares / (energy * len(readers))))
    left = [list(block) for block in blocks]
    steps, costs = [], []
    while left[0]:
        many = min(max(1, len(left[0]) // SINGLE), len(left[0]))
        cost = np.zeros(units)
        for inverse, squares in states:
            cost += np.maximum(np.diag(squares), 0) / np.maximum(np.diag(inverse), np.finfo(float).tiny)
        gone = [sorted(members, key=lambda unit: cost[unit])[:many] for members in left]
        for k in range(many):
            steps.append([members[k] for members in gone])
            costs.append(float(cost[steps[-1]].sum()))
        places = np.concatenate([np.array(members) for members in gone])
        states = [_without(inverse, squares, places) for inverse, squares in states]
        left = [[unit for unit in members if unit not in out] for members, out in zip(left, gone, strict=True)]
    return Elimination(np.array(steps), np.array(costs))


def _without(inverse: np.ndarray, squares: np.ndarray, gone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H^-1 and M without some units, the others refitted; what is left of the units that are gone is zero."""
    share = np.linalg.solve(inverse[np.ix_(gone, gone)], inverse[gone]).T
    cross = share @ squares[gone]
    squares = squares - cross - cross.T + share @ squares[np.ix_(gone, gone)] @ share.T
    inverse = inverse - share @ inverse[gone]
    for matrix in (squares, inverse):
        matrix[gone], matrix[:, gone] = 0, 0
    return inverse, squares


def regression(reader: Reader, kept: Int[np.ndarray, " new"]) -> Float[np.ndarray, "units new"]:
    """C of h = C h', h' the units that are kept: by least squares for the others."""
    gram = reader.gram[np.ix_(kept, kept)] + reader.ridge * np.eye(len(kept))
    combine = (
        np.linalg.solve(gram, reader.gram[kept]).T if reader.ridge > 0 else np.zeros((len(reader.gram), len(kept)))
    )
    combine[kept] = np.eye(len(kept))
    return combine
