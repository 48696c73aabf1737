r"""How many lines a layer has condensed on, once or against time.

A *line* is a pair {u, -u}; an *orientation* is u alone. Units are weighted by their share of the norm, the *mass*.
Average linkage on the angle $\arccos|\cos|$ is cut at $\arccos(c)$ with $c = \max(0.95, c_{chance}(D))$; a group
with at least two units and 5% of the mass is a line, and the layer is *condensed* when its lines cover 90% of the
mass. In two dimensions modes of a density take the place of the clustering (``_circle``).

$k_{eff} = 1 / \sum_{ij} w_i w_j [\,|\cos_{ij}| \ge c\,]$ needs no clustering: k equal lines give k, random weights
in many dimensions about as many as there are units (at most $1/P(|\cos| \ge c)$: 5 in the plane, 100 at D = 3 and 4).
"""

import numbers
import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from ..errors import InputError
from . import _circle as circle
from ._similarity import as_weights, chance_cosine, norms

LEAST_COSINE = 0.95  # from which on a unit is on a line, unless chance alone reaches it
LEAST_SHARE = 0.05
LEAST_UNITS = 2
LEAST_COVER = 0.9
SAMPLE = 1000  # larger layers are clustered by a sample of this many units, drawn by mass


@dataclass(frozen=True)
class Lines:
    """The lines found in a layer, the heaviest first.

    Attributes:
        directions: unit vector of each line, pointing to its heavier orientation.
        shares: share of the norm of each line.
        labels: the line of each unit, or -1.
        signs: +1 or -1 for a unit along or against its line's direction, 0 for a unit on no line.
        orientations: number of orientations: the sides of the lines with two units and 5% of the mass.
        cover: share of the norm on all lines.
        k_eff: effective number of lines, without clustering.
        threshold: the cosine that decides.
        condensed: whether the lines cover at least 90% of the norm, and more than chance does.
    """

    directions: Float[np.ndarray, "lines inputs"]
    shares: Float[np.ndarray, " lines"]
    labels: Int[np.ndarray, " units"]
    signs: Int[np.ndarray, " units"]
    orientations: int
    cover: float
    k_eff: float
    threshold: float
    condensed: bool

    @property
    def count(self) -> int:
        """Number of lines {u, -u}."""
        return len(self.shares)


def find_lines(weights: ArrayLike, *, threshold: float | None = None) -> Lines:
    """The lines on which the units of a layer lie.

    Args:
        weights: units x inputs, bias included; from any framework.
        threshold: the cosine c that decides; by default 0.95, or more where chance alone would reach it.

    Returns:
        The lines. A unit of norm zero has no direction: it is on no line, and a warning says so.

    >>> lines = find_lines(np.array([[1.0, 2, 3], [2, 4, 6], [-1, -2, -3]]))
    >>> lines.count, lines.labels, lines.signs
    (1, array([0, 0, 0]), array([ 1,  1, -1]))
    """
    array = as_weights(weights)
    if array.shape[1] < 2:
        raise InputError(f"directions need at least 2 inputs (the bias counts as one), not {array.shape[1]}")
    r = norms(array)
    mass = r.sum()
    if not mass > 0:
        raise InputError(f"all {len(r)} units have norm zero: there is no direction")
    if not (r > 0).all():
        warnings.warn(f"{(r == 0).sum()} of {len(r)} units have norm zero and are on no line", stacklevel=2)
    shares = r / mass
    if threshold is not None and not (isinstance(threshold, numbers.Real) and 0 < threshold < 1):
        raise InputError(f"the threshold is a cosine between 0 and 1, not {threshold!r}")
    in_plane = array.shape[1] == 2 and threshold is None
    least = LEAST_COSINE if in_plane else max(LEAST_COSINE, chance_cosine(array.shape[1]))
    c = least if threshold is None else float(threshold)
    angles = np.arctan2(array[:, 1], array[:, 0])
    sample = _Sample.of(array, r, shares)
    labels = circle.modes(angles, shares, np.arccos(c)) if in_plane else _linkage_labels(array, r, sample, c)
    labels = _keep_lines(np.where(shares > 0, labels, -1), shares)
    axes, along = _turn_axes(array, labels, shares)
    signs = np.where(labels >= 0, np.where(along >= 0, 1, -1), 0)
    line_shares = np.bincount(labels[labels >= 0], shares[labels >= 0], len(axes)).astype(float)
    cover = float(line_shares.sum())
    sides = [(labels == k) & (signs == sign) for k in range(len(axes)) for sign in (1, -1)]
    condensed = cover >= LEAST_COVER and (not in_plane or circle.is_condensed(angles, shares))
    return Lines(
        directions=axes,
        shares=line_shares,
        labels=labels,
        signs=signs,
        orientations=len([side for side in sides if side.sum() >= LEAST_UNITS and shares[side].sum() >= LEAST_SHARE]),
        cover=cover,
        k_eff=sample.effective_count(c),
        threshold=float(c),
        condensed=condensed,
    )


@dataclass(frozen=True)
class LineHistory:
    """For each seed and saved step: lines, orientations, k_eff, cover, and whether the layer is condensed.

    Where the weights are not finite (a seed that diverged) there is nothing to count: NaN, and not condensed.
    """

    lines: Float[np.ndarray, "seeds steps"]
    orientations: Float[np.ndarray, "seeds steps"]
    k_eff: Float[np.ndarray, "seeds steps"]
    cover: Float[np.ndarray, "seeds steps"]
    condensed: Bool[np.ndarray, "seeds steps"]


def count_lines(weights: Float[np.ndarray, "seeds steps units inputs"], threshold: float | None = None) -> LineHistory:
    """Count the lines of one layer at every step of every seed (``trajectory.history(layer)``).

    >>> one_line = np.ones((1, 2, 20, 3))
    >>> count_lines(one_line).lines
    array([[1., 1.]])
    """
    weights = np.asarray(weights)
    if weights.ndim != 4:
        raise InputError(f"weights must be seeds x steps x units x inputs, not of shape {weights.shape}")
    shape = weights.shape[:2]
    lines, orientations, k_eff, cover = np.full((4, *shape), np.nan)
    condensed = np.zeros(shape, bool)
    now = None
    for index in np.ndindex(*shape):
        if np.isfinite(weights[index]).all():
            seed, step = index
            if now is None or step == 0 or not np.array_equal(weights[index], weights[seed, step - 1]):
                now = find_lines(weights[index], threshold=threshold)  # a flow that has stopped repeats itself
            lines[index], orientations[index] = now.count, now.orientations
            k_eff[index], cover[index], condensed[index] = now.k_eff, now.cover, now.condensed
    return LineHistory(lines, orientations, k_eff, cover, condensed)


@dataclass(frozen=True)
class _Sample:
    """The units with a direction and their |cos|; of a large layer a fixed sample drawn by mass."""

    shares: np.ndarray  # of the norm, of all units
    chosen: np.ndarray  # numbers of the units in the sample
    counts: np.ndarray | None  # how often each was drawn; None where all units are there
    cosines: np.ndarray  # |cos| of each pair

    @staticmethod
    def of(array: np.ndarray, r: np.ndarray, shares: np.ndarray) -> "_Sample":
        chosen, counts = np.flatnonzero(shares), None
        if len(chosen) > SAMPLE:
            drawn = np.random.default_rng(0).choice(len(shares), SAMPLE, p=shares)
            chosen, counts = np.unique(drawn, return_counts=True)
        u = array[chosen] / r[chosen, None].astype(array.dtype)
        return _Sample(shares, chosen, counts, np.abs(u @ u.T))

    def effective_count(self, c: float) -> float:
        """k_eff; of a large layer a unit's pair with itself is counted exactly, pairs of others by the sample."""
        near = self.cosines >= c
        np.fill_diagonal(near, self.counts is None)
        if self.counts is None:
            w = self.shares[self.chosen]
            return float(1 / (w @ near @ w))
        w = self.counts.astype(float)
        alone = float((self.shares**2).sum())
        return float(1 / (alone + (1 - alone) * (w @ near @ w) / (w.sum() ** 2 - (w**2).sum())))


def _linkage_labels(array: np.ndarray, r: np.ndarray, sample: _Sample, c: float) -> np.ndarray:
    """Groups by average linkage; of a large layer only a sample is clustered, and all units join its groups."""
    chosen, counts = sample.chosen, sample.counts
    labels = np.full(len(array), -1)
    groups = _groups(sample.cosines, c)
    if counts is None:
        labels[chosen] = groups
        return labels
    drawn = counts / counts.sum()
    groups = _keep_lines(groups, drawn, least_share=LEAST_SHARE / 2)
    axes, _ = _turn_axes(array[chosen] * (drawn / r[chosen])[:, None].astype(array.dtype), groups, drawn)
    if len(axes):
        cosines = np.abs(array @ axes.T.astype(array.dtype)) / np.where(r > 0, r, 1)[:, None]
        labels = np.where(cosines.max(axis=1) >= c, cosines.argmax(axis=1), -1)
    return labels


def _groups(cosines: np.ndarray, c: float) -> np.ndarray:
    """Groups of average linkage on the angle, cut at c. Units that are near no other one are groups of their own."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    near = cosines >= c
    np.fill_diagonal(near, False)
    social = np.flatnonzero(near.any(axis=1))
    groups = np.zeros(len(cosines), int)
    if len(social):
        angle = np.arccos(np.clip(cosines[np.ix_(social, social)], 0, 1))
        np.fill_diagonal(angle, 0)
        tree = linkage(squareform((angle + angle.T) / 2, checks=False), "average")
        groups[social] = fcluster(tree, np.arccos(c), "distance")
    alone = np.flatnonzero(groups == 0)
    groups[alone] = groups.max(initial=0) + 1 + np.arange(len(alone))
    return groups - 1


def _keep_lines(labels: np.ndarray, shares: np.ndarray, least_share: float = LEAST_SHARE) -> np.ndarray:
    """Labels of the groups that are lines, renamed so that the heaviest is 0; all other units get -1."""
    count = labels.max(initial=-1) + 1
    placed = labels >= 0
    mass = np.bincount(labels[placed], shares[placed], count)
    size = np.bincount(labels[placed], minlength=count)
    order = [k for k in np.argsort(-mass, kind="stable") if size[k] >= LEAST_UNITS and mass[k] >= least_share]
    renamed = np.full(count + 1, -1)  # the last entry is for the label -1
    renamed[order] = np.arange(len(order))
    return renamed[labels]


def _turn_axes(array: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vector of each line, towards its heavier side, and each unit's product with its own line's vector.

    The vector is the sum of the line's weights, each turned to the side that the heaviest of them points to.
    """
    lines, own = np.arange(labels.max(initial=-1) + 1), np.maximum(labels, 0)
    if not len(lines):
        return np.zeros((0, array.shape[1])), np.zeros(len(array))
    members = labels == lines[:, None]
    axes, along = array[(members * shares).argmax(axis=1)], np.zeros(len(array))
    for _ in range(2):
        along = np.where(labels >= 0, (array @ axes.T)[np.arange(len(array)), own], 0)
        axes = (members * np.where(along >= 0, 1, -1)).astype(array.dtype) @ array
        axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    balance = members @ (shares * np.where(along >= 0, 1, -1))
    axes, turned = axes * np.where(balance < 0, -1, 1)[:, None], np.where(balance < 0, -1, 1)[own]
    return axes.astype(float), along * turned
