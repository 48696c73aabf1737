"""A table of measures: one row for each layer of units."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ._change import relative_change
from ._errors import LEAST_FOR_ERRORS, bootstrap_errors
from ._lines import LEAST_COVER, find_lines
from ._null import null_count
from ._rank import ranks
from ._similarity import as_weights, norms

NAN = float("nan")
ALIKE = 0.8  # k_eff over its null below which units are said to be alike


@dataclass(frozen=True)
class Row:
    """The measures of one layer; ``reason`` tells why there are none.

    Attributes:
        layer: its name.
        kind: what a unit is: neuron, filter, query, ...
        units: how many there are.
        inputs: of each unit, its bias included.
        lines: on which units lie.
        orientations: sides of these lines.
        cover: share of the norm on lines.
        k_eff: effective number of lines, without clustering.
        chance_k_eff: k_eff of as many random units.
        effective_rank, stable_rank: of the weights, from their singular values.
        condensed: whether the lines cover at least 90% of the norm, and more than chance does.
        change: |w - w_0| / |w_0| against the initial weights.
        mean: share of the squared norm that the units have in common, their mean weight.
        centred_lines: lines with the mean removed.
        centred_cover: their cover.
        centred_k_eff: k_eff with the mean removed.
        null_k_eff: k_eff of permuted entries, the mean removed: what chance leaves.
        k_eff_error, effective_rank_error, stable_rank_error: standard errors by a bootstrap over units.
        zeros: units of norm zero, which are on no line.
        reason: why nothing was measured.
    """

    layer: str
    kind: str = ""
    units: int = 0
    inputs: int = 0
    lines: int = 0
    orientations: int = 0
    cover: float = NAN
    k_eff: float = NAN
    chance_k_eff: float = NAN
    effective_rank: float = NAN
    stable_rank: float = NAN
    condensed: bool = False
    change: float = NAN
    mean: float = NAN
    centred_lines: int = 0
    centred_cover: float = NAN
    centred_k_eff: float = NAN
    null_k_eff: float = NAN
    k_eff_error: float = NAN
    effective_rank_error: float = NAN
    stable_rank_error: float = NAN
    zeros: int = 0
    reason: str = ""

    @property
    def ratio(self) -> float:
        """k_eff over its null, both with the mean removed: 1 for units as unlike each other as chance makes them."""
        return self.centred_k_eff / self.null_k_eff

    @property
    def reading(self) -> str:
        """What the row says, in words: how far the layer is condensed, or why it was not measured."""
        if self.reason:
            return self.reason
        return self._words() + (f"; {self.zeros} units are zero" if self.zeros else "")

    def _words(self) -> str:
        alike = self.ratio < ALIKE  # beyond a common mean, and beyond chance
        if self.condensed:
            common = self.mean > 0.5 and not alike
            return f"condensed on {_lines(self.lines)}" + (": the common mean of its units" if common else "")
        partly = f"partly: {_lines(self.lines)} with {self.cover:.0%} of the norm"
        if np.isnan(self.mean):
            return partly if self.lines else "not condensed"
        if alike and self.lines and self.mean <= 0.5:
            return partly
        if alike and self.centred_lines:
            beyond = f"{_lines(self.centred_lines)} with {self.centred_cover:.0%} of the norm, the mean removed"
            return ("condensed on " if self.centred_cover >= LEAST_COVER else "partly: ") + beyond
        if alike:
            return f"some alike: {self.centred_k_eff:.3g} kinds where chance leaves {self.null_k_eff:.3g}"
        return "a common mean, else as chance" if self.mean > 0.5 else "as chance"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def measure_units(
    layer: str,
    weights: ArrayLike,
    kind: str = "",
    *,
    threshold: float | None = None,
    start: ArrayLike | None = None,
    with_null: bool = False,
    with_errors: bool = False,
) -> Row:
    """Measure one layer of units x inputs; where that cannot be done, the row's reason says why.

    Args:
        layer: its name.
        weights: of its units, the bias as the last input.
        kind: what a unit is.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        start: the initial weights, for the relative change.
        with_null: also subtract the mean weight of the units, a direction that pretrained models share, measure what is
            left, and compare it with a null: the same weights with the entries of each input permuted among the units.
        with_errors: also give standard errors of k_eff and of the ranks, by a bootstrap over units (50 draws).

    >>> row = measure_units("a", np.ones((20, 3)))
    >>> row.lines, row.reading
    (1, 'condensed on 1 line')
    """
    try:
        array = as_weights(weights)
    except InputError as error:
        shape = np.shape(weights)
        return Row(layer, kind, *(shape if len(shape) == 2 else (0, 0)), reason=str(error))
    row = Row(layer, kind, *array.shape)
    if len(array) < 2:
        return replace(row, reason="a single unit: lines are of two and more")
    try:
        with warnings.catch_warnings(action="ignore"):  # units of norm zero: the row counts them
            measured = find_lines(array, threshold=threshold)
        effective, stable = ranks(array)
        row = replace(
            row,
            zeros=int((norms(array) == 0).sum()),
            lines=measured.count,
            orientations=measured.orientations,
            cover=measured.cover,
            k_eff=measured.k_eff,
            chance_k_eff=measured.chance_k_eff,
            effective_rank=effective,
            stable_rank=stable,
            condensed=measured.condensed,
            change=NAN if start is None else relative_change(weights, start),
            reason=measured.reason,
        )
    except InputError as error:
        return replace(row, reason=str(error))
    if with_errors and len(array) - row.zeros >= LEAST_FOR_ERRORS:
        errors = bootstrap_errors(array, threshold=threshold)
        row = replace(row, **{f"{name}_error": error for name, error in vars(errors).items()})
    return _beside_null(row, array, threshold) if with_null and not row.reason else row


def _beside_null(row: Row, array: np.ndarray, threshold: float | None) -> Row:
    """The row with the measures of the weights less their mean, and with the k_eff of permuted entries."""
    total = float(np.einsum("ij,ij->", array, array, dtype=float))
    mean = array.mean(axis=0, dtype=float)
    row = replace(row, mean=len(array) * float(mean @ mean) / total)
    if 1 - row.mean < 1e-12:
        return row  # all units are the same: nothing is left
    centred = array - mean.astype(array.dtype)
    with warnings.catch_warnings(action="ignore"):
        left = find_lines(centred, threshold=threshold)
    return replace(
        row,
        centred_lines=left.count,
        centred_cover=left.cover,
        centred_k_eff=left.k_eff,
        null_k_eff=NAN if left.reason else null_count(centred, left.threshold),
    )


def most_condensed_first(rows: Iterable[Row]) -> list[Row]:
    """Rows in order: condensed layers by k_eff over units, the others by k_eff over its null, then what has no units.

    >>> rows = [Row("none", reason="a vector"), measure_units("a", np.ones((9, 4)))]
    >>> [row.layer for row in most_condensed_first(rows)]
    ['a', 'none']
    """

    def place(row: Row) -> tuple[int, float]:
        if row.reason:
            return 2, 0.0
        if row.condensed:
            return 0, row.k_eff / row.units
        return 1, round(row.ratio if np.isfinite(row.ratio) else row.k_eff / row.units, 2)  # what is less is noise

    return sorted(rows, key=place)
