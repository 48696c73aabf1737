"""How many lines each of many layers has condensed on: seeds, steps of a training, cells of a sweep.

The numbers are those of ``find_lines``, found for many small layers of one shape at once. Layers in two dimensions,
with units of norm zero or with many units are looked at one by one.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from .._display import Shown, spread
from .._sketch import curves
from ..errors import InputError
from ._dimensions import has_all_inputs
from ._lines import LEAST_COVER, LEAST_SHARE, LEAST_UNITS, deciding_cosine, find_lines
from ._linkage import linked_groups
from ._similarity import as_floats, norms, scale_of

SMALL = 200  # units up to which many layers are faster together than one by one
AT_ONCE = 1 << 20  # pairs of units that are looked at together
NO_NORM = "all units have norm zero: there is no direction"
QUANTITIES = ("lines", "orientations", "k_eff", "cover", "condensed")

Layers = Float[np.ndarray, "networks units inputs"]
Counts = Float[np.ndarray, "networks 5"]  # the quantities of each


@dataclass(frozen=True)
class LineHistory(Shown):
    """For each layer, of each seed and saved step: lines, orientations, k_eff, cover, and whether it is condensed.

    Where the weights are not finite (a seed that diverged) or all zero there is nothing to count: NaN, and not
    condensed. ``reason`` says why a layer has no directions to condense to, where that was so.
    """

    lines: Float[np.ndarray, "..."]
    orientations: Float[np.ndarray, "..."]
    k_eff: Float[np.ndarray, "..."]
    cover: Float[np.ndarray, "..."]
    condensed: Bool[np.ndarray, "..."]
    reason: str = ""

    def _title(self) -> str:
        return f"LineHistory of {' x '.join(map(str, self.lines.shape))} networks"

    def _facts(self) -> dict[str, str]:
        facts = {"reason": self.reason}
        for name in ("lines", "orientations", "k_eff", "cover"):
            values = getattr(self, name).reshape(-1)
            known = values[np.isfinite(values)]
            if len(known):
                facts[name] = spread(known)
        unknown = int(np.isnan(self.lines).sum())
        facts["condensed"] = f"{int(self.condensed.sum())} of {self.condensed.size}"
        return facts | ({"not counted": str(unknown)} if unknown else {})

    def _picture(self) -> str:
        steps = self.k_eff.shape[-1] if self.k_eff.ndim else 0
        return curves(range(steps), self.k_eff.reshape(-1, steps), label="k_eff", log=True) if steps else ""


def count_lines(weights: Float[np.ndarray, "... units inputs"], threshold: float | None = None) -> LineHistory:
    """Count the lines of many layers: of all seeds and steps of a run (``trajectory.history(layer)``), for instance.

    >>> one_line = np.ones((1, 2, 20, 3))
    >>> count_lines(one_line).lines
    array([[1., 1.]])
    """
    array = as_floats("weights", weights)
    if array.ndim < 3 or 0 in array.shape[-2:]:
        raise InputError(f"weights must be networks (or seeds x steps) x units x inputs, not of shape {array.shape}")
    shape, layers = array.shape[:-2], array.reshape(-1, *array.shape[-2:])
    counts, reasons = np.full((len(layers), len(QUANTITIES)), np.nan), [""]
    together = max(1, AT_ONCE // array.shape[-2] ** 2)
    for first in range(0, len(layers), together):
        part = layers[first : first + together]
        usable = np.isfinite(part).all(axis=(1, 2)) & part.any(axis=(1, 2))
        if not usable.all() and (part[~usable] == 0).all(axis=(1, 2)).any():
            reasons.append(NO_NORM)
        counts[first : first + together][usable] = _count(part[usable], threshold, reasons)
    lines, orientations, k_eff, cover, condensed = counts.T.reshape(-1, *shape)
    return LineHistory(lines, orientations, k_eff, cover, condensed == 1, reasons[-1])


def _count(layers: Layers, threshold: float | None, reasons: list[str]) -> Counts:
    """What is counted in layers that are finite and not zero; reasons why there is nothing to count are added."""
    counts = np.full((len(layers), len(QUANTITIES)), np.nan)
    units, inputs = layers.shape[1:]
    half = units // 2
    alike = np.arange(len(layers)) < 0  # none
    if units == 2 * half > 2:  # exact pairs: the antisymmetric initial weights
        alike = (layers[:, :half] == layers[:, half:]).all(axis=(1, 2))
    together = np.zeros_like(alike)
    for chosen, own in ((~alike, units), (alike, half)):
        if chosen.any() and own <= SMALL and inputs > 1 and (inputs > 2 or threshold is not None):
            array = layers[chosen, :own]
            array = array / scale_of(array, axis=(1, 2))
            r = norms(array.reshape(-1, inputs)).reshape(-1, own)
            plain = (r > 0).all(axis=1) & has_all_inputs(array, r)
            together[np.flatnonzero(chosen)[plain]] = True
            if plain.any():
                counts[chosen & together] = _count_together(array[plain], r[plain], deciding_cosine(inputs, threshold))
    for k in np.flatnonzero(~together):
        if k and not together[k - 1] and np.array_equal(layers[k], layers[k - 1]):
            counts[k] = counts[k - 1]  # a flow that has stopped repeats itself
            continue
        found = find_lines(layers[k], threshold=threshold)
        counts[k] = found.count, found.orientations, found.k_eff, found.cover, found.condensed
        if found.reason:
            reasons.append(found.reason)
    return counts


def _count_together(array: Layers, r: Float[np.ndarray, "networks units"], c: float) -> Counts:
    """What is counted in layers whose units all have a direction, in more than two dimensions."""
    shares = r / r.sum(axis=1, keepdims=True)
    u = array / r[:, :, None].astype(array.dtype)
    cosines = np.abs(u @ u.swapaxes(1, 2))
    near = (cosines >= c).astype(float)
    near[:, np.arange(array.shape[1]), np.arange(array.shape[1])] = 1
    k_eff = 1 / (shares[:, None] @ near @ shares[:, :, None])[:, 0, 0]
    lines, cover, orientations = _weigh(array, shares, linked_groups(cosines, c))
    return np.stack([lines, orientations, k_eff, cover, cover >= LEAST_COVER], axis=1)


def _weigh(
    array: Layers, shares: Float[np.ndarray, "networks units"], groups: Int[np.ndarray, "networks units"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of groups called by one of their units: how many are lines, their share of the norm, and their orientations."""
    mass, is_line = _heavy(shares, groups)
    lines = is_line.sum(axis=1)
    most = lines.max(initial=0)
    order = np.argsort(np.where(is_line, -mass, 0), axis=1, kind="stable")[:, :most]  # the heaviest first
    line_mass = np.take_along_axis(np.where(is_line, mass, 0), order, axis=1)
    cover = line_mass.cumsum(axis=1)[:, -1] if most else np.zeros(len(array))
    on_line = np.take_along_axis(is_line, groups, axis=1)
    members = (groups[:, None] == order[:, :, None]) & on_line[:, None]
    rank = np.zeros_like(groups)
    np.put_along_axis(rank, order, np.arange(most)[None], axis=1)
    own = np.take_along_axis(rank, groups, axis=1)[:, :, None]
    along = np.zeros(groups.shape)
    if most:
        axes = np.take_along_axis(array, (members * shares[:, None]).argmax(axis=2)[:, :, None], axis=1)
        for _ in range(2):  # each unit is turned to its line's side, at first to the side of the heaviest unit
            along = np.einsum("kui,kui->ku", array, np.take_along_axis(axes, own, axis=1))
            axes = (members * np.where(along >= 0, 1, -1)[:, None]).astype(array.dtype) @ array
    sides = [_heavy(np.where(side & on_line, shares, 0), groups, side & on_line)[1] for side in (along >= 0, along < 0)]
    return lines, cover, (sides[0] & is_line).sum(axis=1) + (sides[1] & is_line).sum(axis=1)


def _heavy(
    shares: Float[np.ndarray, "networks units"],
    groups: Int[np.ndarray, "networks units"],
    counted: Bool[np.ndarray, "networks units"] | None = None,
) -> tuple[Float[np.ndarray, "networks units"], Bool[np.ndarray, "networks units"]]:
    """The mass of each group, and whether mass and number of units make it a line; some units alone may count."""
    places = (groups + groups.shape[1] * np.arange(len(groups))[:, None]).ravel()
    mass = np.bincount(places, shares.ravel(), groups.size).reshape(groups.shape)
    size = np.bincount(places, None if counted is None else counted.ravel(), groups.size).reshape(groups.shape)
    return mass, (size >= LEAST_UNITS) & (mass >= LEAST_SHARE)
