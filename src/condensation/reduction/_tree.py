r"""In which order the units of a layer are merged: a tree, built by weighted Ward clustering of their directions.

Units i with mass $m_i$ (the norm) and direction $u_i$ are points: $u_i u_i^T$ for lines, $u_i$ for orientations. In
each step the two groups are merged whose union adds least to the sum of $m_i$ times the squared distance from the
group's mean, $\frac{m_A m_B}{m_A + m_B} |c_A - c_B|^2$; light units so never keep heavy ones apart.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from .._memory import require
from ..measure._similarity import norms

SLACK = 1e-6  # radians by which an angle may miss a threshold through rounding


@dataclass(frozen=True)
class Tree:
    """The merges of a layer's units, in their order; each names a unit of either group and what it costs."""

    weights: Float[np.ndarray, "units inputs"]
    oriented: bool
    merges: Int[np.ndarray, "merges 2"]
    costs: Float[np.ndarray, " merges"]

    @property
    def relative_costs(self) -> Float[np.ndarray, " merges"]:
        """The costs as shares of the layer's norm, comparable between layers."""
        return self.costs / max(norms(self.weights).sum(), np.finfo(float).tiny)

    def groups(self, count: int) -> Int[np.ndarray, " units"]:
        """The group of each unit if ``count`` groups are left; groups are numbered by their first unit."""
        labels = np.arange(len(self.weights))
        for first, second in self.merges[: len(labels) - count]:
            labels[labels == labels[second]] = labels[first]
        return renumber(labels)

    def groups_within(self, threshold: float) -> Int[np.ndarray, " units"]:
        """The group of each unit as lines are found: average linkage on the angle, cut at that cosine.

        Ward's order is not used here: a light unit of another direction would come first and spoil a heavy group.
        """
        return groups_by_cosine(_cosines(self.weights, self.oriented), threshold)


def groups_by_cosine(cosines: Float[np.ndarray, "units units"], threshold: float) -> Int[np.ndarray, " units"]:
    """Groups of units by average linkage on the angle, cut at a cosine.

    >>> groups_by_cosine(np.array([[1.0, 0.99, 0], [0.99, 1, 0], [0, 0, 1]]), 0.95)
    array([0, 0, 1])
    """
    if len(cosines) == 1:
        return np.zeros(1, int)
    angles = np.arccos(np.clip(cosines, -1, 1))
    np.fill_diagonal(angles, 0)
    tree = linkage(squareform(angles, checks=False), "average")
    return renumber(fcluster(tree, float(np.arccos(threshold)) + SLACK, "distance"))


def _cosines(weights: np.ndarray, oriented: bool) -> np.ndarray:
    """Cosines of all pairs, of lines without their sign; zero for a unit of norm zero."""
    mass = norms(weights)
    unit = weights / np.where(mass > 0, mass, 1)[:, None]
    cosine = np.clip(unit @ unit.T, -1, 1)
    return cosine if oriented else np.abs(cosine)


def merging_tree(weights: Float[np.ndarray, "units inputs"], oriented: bool) -> Tree:
    """The tree of a layer's units, by lines, or by orientations.

    >>> tree = merging_tree(np.array([[1.0, 0], [0, 1], [-2, 0.1]]), oriented=False)
    >>> tree.groups(2)
    array([0, 1, 0])
    """
    require(5 * 8 * len(weights) ** 2, f"merging {len(weights):,} units", "reducing smaller layers alone would fit")
    mass, cosine = norms(weights), _cosines(weights, oriented)
    squared = 2 * (1 - cosine if oriented else 1 - cosine**2)
    tiny = np.finfo(float).tiny
    cost = np.outer(mass, mass) / np.maximum(np.add.outer(mass, mass), tiny) * squared
    np.fill_diagonal(cost, np.inf)
    nearest, least = cost.argmin(axis=1), cost.min(axis=1)
    merges, costs = [], []
    for _ in range(len(weights) - 1):
        i = int(least.argmin())
        j = int(nearest[i])
        merges.append((i, j))
        costs.append(max(least[i], 0.0))
        others = np.flatnonzero(np.isfinite(cost[i]) & (np.arange(len(cost)) != j))
        first, second, both, third = mass[i] + mass[others], mass[j] + mass[others], mass[i] + mass[j], mass[others]
        merged = first * cost[i, others] + second * cost[j, others] - third * cost[i, j]  # Lance and Williams
        merged /= np.maximum(both + third, tiny)
        cost[j] = cost[:, j] = np.inf
        cost[i, others] = cost[others, i] = merged
        mass[i] += mass[j]
        stale = np.union1d(np.flatnonzero((nearest == i) | (nearest == j)), [i, j])
        closer = cost[:, i] < least
        nearest[closer], least[closer] = i, cost[closer, i]
        nearest[stale], least[stale] = cost[stale].argmin(axis=1), cost[stale].min(axis=1)
    return Tree(weights, oriented, np.array(merges, int).reshape(-1, 2), np.array(costs))


def renumber(labels: Int[np.ndarray, " units"]) -> Int[np.ndarray, " units"]:
    """Groups numbered 0, 1, ... in the order of their first units.

    >>> renumber(np.array([7, 2, 7, 5]))
    array([0, 1, 0, 2])
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def common_direction(
    weights: Float[np.ndarray, "units inputs"], oriented: bool
) -> tuple[Float[np.ndarray, " inputs"], Float[np.ndarray, " units"]]:
    """The mean direction of some units by norm, and each unit's sign along it (+1 for orientations)."""
    signs = np.ones(len(weights))
    total = weights.sum(axis=0)
    if not oriented:
        reference = weights[norms(weights).argmax()]
        for _ in range(2):  # aligned with the heaviest unit, then with the mean
            signs = np.where(weights @ reference < 0, -1.0, 1.0)
            reference = total = signs @ weights
    length = np.linalg.norm(total)
    return (total / length if length > 0 else total), signs
