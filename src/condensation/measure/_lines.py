r"""How many lines a layer has condensed on.

A *line* is a pair {u, -u}; an *orientation* is u alone. Units are weighted by their share of the norm, the *mass*.
Average linkage on the angle $\arccos|\cos|$ is cut at $\arccos(c)$ with $c = \max(0.95, c_{chance}(D))$; a group
with at least two units and 5% of the mass is a line, and the layer is *condensed* when its lines cover 90% of the
mass. In two dimensions modes of a density take the place of the clustering (``_circle``). k_eff needs no clustering
(``_k_eff``).

Inputs without weights, and inputs whose weights depend linearly on others, are no dimensions (``_dimensions``). Where
a single input carries all weights there is no direction to condense to, and ``reason`` says so. Units in exact pairs,
the antisymmetric initial weights, count as one each: a unit and its copy are no line.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from .._display import Shown, entries, short_number, short_numbers
from .._phrases import plural
from .._sketch import bars
from ..errors import InputError, check_threshold
from . import _circle as circle
from ._dimensions import effective_inputs
from ._k_eff import Pairs
from ._similarity import as_weights, chance_cosine, chance_probability, norms

NAN = float("nan")
LEAST_COSINE = 0.95  # from which on a unit is on a line, unless chance alone reaches it
LEAST_SHARE = 0.05
LEAST_UNITS = 2
LEAST_COVER = 0.9
ONE_INPUT = "a single input carries all weights: there are no directions to condense to"


@dataclass(frozen=True)
class Lines(Shown):
    """The lines found in a layer, the heaviest first.

    Attributes:
        directions: unit vector of each line, pointing to its heavier orientation.
        shares: share of the norm of each line.
        labels: the line of each unit, or -1.
        signs: +1 or -1 for a unit along or against its line's direction, 0 for a unit on no line.
        orientations: number of orientations: the sides of the lines with two units and 5% of the mass.
        cover: share of the norm on all lines.
        k_eff: effective number of lines, without clustering: 1 over the share of pairs of units, weighted by their
            norms, whose |cos| is at least the threshold.
        chance_k_eff: k_eff of as many random units, at most one over the probability that two of them reach the
            threshold.
        threshold: the cosine from which on two units are on one line; in two dimensions that of the angle from which
            on two lines are told apart, 13.3 degrees.
        condensed: whether the lines cover at least 90% of the norm, and more than chance does.
        dimensions: of the weights: inputs without weights or with those of others do not count.
        reason: why there are no lines to look for, where a single input carries all weights; k_eff is NaN then.
    """

    directions: Float[np.ndarray, "lines inputs"]
    shares: Float[np.ndarray, " lines"]
    labels: Int[np.ndarray, " units"]
    signs: Int[np.ndarray, " units"]
    orientations: int
    cover: float
    k_eff: float
    chance_k_eff: float
    threshold: float
    condensed: bool
    dimensions: int
    reason: str = ""

    @property
    def count(self) -> int:
        """Number of lines {u, -u}."""
        return len(self.shares)

    def _title(self) -> str:
        return f"Lines: {plural(len(self.labels), 'unit')} on {plural(self.count, 'line')}"

    def _facts(self) -> dict[str, str]:
        if self.reason:
            return {"reason": self.reason}
        first = {} if not self.count else {"first direction": entries(self.directions[0])}
        return {
            "condensed": "yes" if self.condensed else "no",
            "k_eff": f"{short_number(self.k_eff)} (of random units {short_number(self.chance_k_eff)})",
            "cover": f"{self.cover:.1%} of the norm" + (f": {short_numbers(self.shares)}" if self.count > 1 else ""),
            "orientations": str(self.orientations),
            **first,
            "dimensions": str(self.dimensions),
            "threshold": f"|cos| of at least {short_number(self.threshold)}",
        }

    def _picture(self) -> str:
        return bars(self.shares, label="share of the norm by line")


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
    layer = Layer.of(array, threshold)
    if layer.zeros:
        warnings.warn(f"{layer.zeros} of {len(array)} units have norm zero and are on no line", stacklevel=2)
    if layer.dimensions == 1:
        none = np.zeros(len(array), int)
        return Lines(
            np.zeros((0, array.shape[1])), np.zeros(0), none - 1, none, 0, 0.0, NAN, NAN, NAN, False, 1, ONE_INPUT
        )
    shares, c = layer.pairs.shares, layer.threshold
    angles = np.arctan2(layer.weights[:, 1], layer.weights[:, 0])
    labels = circle.modes(angles, shares, np.arccos(LEAST_COSINE)) if layer.in_plane else _linkage_labels(layer)
    labels = keep_lines(np.where(shares > 0, labels, -1), shares)
    axes, along = _turn_axes(layer.weights, labels, shares)
    signs = np.where(labels >= 0, np.where(along >= 0, 1, -1), 0)
    line_shares = np.bincount(labels[labels >= 0], shares[labels >= 0], len(axes)).astype(float)
    cover = float(line_shares.sum())
    sides = [(labels == k) & (signs == sign) for k in range(len(axes)) for sign in (1, -1)]
    return Lines(
        directions=axes if layer.basis is None else axes @ layer.basis,
        shares=line_shares,
        labels=np.tile(labels, layer.copies),
        signs=np.tile(signs, layer.copies),
        orientations=len([side for side in sides if side.sum() >= LEAST_UNITS and shares[side].sum() >= LEAST_SHARE]),
        cover=cover,
        k_eff=layer.pairs.effective_count(c),
        chance_k_eff=layer.pairs.chance_count(chance_probability(layer.dimensions, c)),
        threshold=c,
        condensed=cover >= LEAST_COVER and (not layer.in_plane or circle.is_condensed(angles, shares)),
        dimensions=layer.dimensions,
    )


@dataclass(frozen=True)
class Layer:
    """The units of a layer, one of each exact pair, in the dimensions that they have, and the cosine that decides."""

    weights: np.ndarray  # units x dimensions
    basis: np.ndarray | None  # the dimensions, where they are not the inputs
    norms: np.ndarray  # of the units
    zeros: int  # units of norm zero, of all
    copies: int  # how often these units are there: 2 where they are the first of exact pairs
    pairs: Pairs
    threshold: float
    in_plane: bool  # two dimensions and no threshold given: modes of a density are counted

    @staticmethod
    def of(array: np.ndarray, threshold: float | None) -> Layer:
        """The units of weights that ``as_weights`` gave; refused where they have no directions."""
        if array.shape[1] < 2:
            raise InputError(f"directions need at least 2 inputs (the bias counts as one), not {array.shape[1]}")
        r = norms(array)
        zeros = int(np.count_nonzero(r == 0))
        if zeros == len(r):
            raise InputError(f"all {len(array)} units have norm zero: there is no direction")
        half, odd = divmod(len(array), 2)
        paired = (
            not odd
            and half > 1
            and np.array_equal(array[0], array[half])
            and np.array_equal(array[:half], array[half:])
        )
        weights, basis = effective_inputs(array[:half] if paired else array)
        dimensions, r = weights.shape[1], r[: len(weights)] if basis is None else norms(weights)
        in_plane = dimensions == 2 and threshold is None
        c = deciding_cosine(dimensions, threshold)
        return Layer(weights, basis, r, zeros, 1 + paired, Pairs.of(weights, r, r / r.sum()), c, in_plane)

    @property
    def dimensions(self) -> int:
        """Of the weights."""
        return self.weights.shape[1]


def deciding_cosine(dimensions: int, threshold: float | None) -> float:
    """The cosine from which on two units are on one line: the given one, or 0.95 and more where chance reaches it."""
    check_threshold(threshold)
    if threshold is not None:
        return float(threshold)
    return max(LEAST_COSINE, chance_cosine(dimensions)) if dimensions > 2 else float(np.cos(circle.RESOLUTION))


def _linkage_labels(layer: Layer) -> np.ndarray:
    """Groups by average linkage; of a large layer only a sample is clustered, and all units join its groups."""
    array, r, c = layer.weights, layer.norms, layer.threshold
    chosen, counts = layer.pairs.chosen, layer.pairs.counts
    labels = np.full(len(array), -1)
    groups = _groups(layer.pairs.cosines, c)
    if counts is None:
        labels[chosen] = groups
        return labels
    drawn = counts / counts.sum()
    groups = keep_lines(groups, drawn, least_share=LEAST_SHARE / 2)
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


def keep_lines(labels: np.ndarray, shares: np.ndarray, least_share: float = LEAST_SHARE) -> np.ndarray:
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
