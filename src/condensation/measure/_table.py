"""A table of measures: one row for each layer of units."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .._display import Shown, short_number
from .._phrases import plural
from ..errors import InputError, check_threshold
from ._change import relative_change
from ._copies import copies
from ._errors import LEAST_FOR_ERRORS, bootstrap_errors
from ._held import held, spare
from ._lines import Lines, find_lines
from ._null import null_counts, permuted_orientations
from ._rank import dimensions_kept, ranks, ranks_of
from ._reading import Action, Reading, read
from ._similarity import as_weights, norms
from ._spectrum import spectrum

NAN = float("nan")
NEGLIGIBLE = 1e-9  # of the largest norm: a unit up to here computes nothing
TOO_SMALL = "its weights are too small to be squared"
NO_WEIGHTS = "all weights are zero, and only the biases are left: its units are constants; look at this layer"


@dataclass(frozen=True)
class Row(Shown):
    """The measures of one layer; ``reason`` tells why there are none.

    Attributes:
        layer: its name.
        kind: what a unit is: neuron, filter, query, ...
        units: how many there are.
        inputs: of each unit, its bias included.
        lines: on which units lie; where the bias is known, those that hold with and without it.
        orientations: sides of these lines.
        cover: share of the norm on lines.
        k_eff: effective number of lines, without clustering.
        chance_k_eff: k_eff of as many random units.
        effective_rank, stable_rank: of the weights, from their singular values; where the bias is known, without it.
        condensed: whether the lines cover at least 90% of the norm, and more than chance does.
        change: |w - w_0| / |w_0| against the initial weights.
        mean: share of the squared norm that the units have in common, their mean weight.
        centred_lines: lines with the mean removed, and the bias where it is known.
        centred_cover: their cover.
        centred_k_eff: k_eff with the mean removed.
        null_k_eff: k_eff of units of the same norms with permuted entries, the mean removed: what chance leaves.
        null_low: the lowest of the null's draws.
        null_rank: effective rank of units of the same norms with permuted entries.
        kept_rank: singular values that hold 99% of the squared norm.
        bias: share of the squared norm that is the bias's; NaN where it is not known which input is the bias.
        copies: units that repeat others, with a cosine of at least 0.999.
        opposites: units that are others turned round, beyond the copies.
        chance_copies: how many random units would repeat others.
        spare: units on lines beyond the first on each side of each: merging would take so many away.
        quantised: whether the weights were stored as few levels.
        k_eff_error, effective_rank_error, stable_rank_error: standard errors by a bootstrap over units.
        zeros: units of norm zero, or of less than 1e-9 of the largest one.
        zero_inputs: inputs without weights, the bias left out where it is known; told beside a null.
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
    null_low: float = NAN
    null_rank: float = NAN
    kept_rank: int = 0
    bias: float = NAN
    copies: int = 0
    opposites: int = 0
    chance_copies: float = 0.0
    spare: int = 0
    quantised: bool = False
    k_eff_error: float = NAN
    effective_rank_error: float = NAN
    stable_rank_error: float = NAN
    zeros: int = 0
    zero_inputs: int = 0
    reason: str = ""

    @property
    def ratio(self) -> float:
        """k_eff over its null, both with the mean removed: 1 for units as unlike each other as chance makes them."""
        return self.centred_k_eff / self.null_k_eff

    @property
    def read(self) -> Reading:
        """What the row says, in parts: finding, evidence, what one could do, and what that would save."""
        return read(self)

    @property
    def reading(self) -> str:
        """What the row says, in one sentence, or why the layer was not measured."""
        return str(self.read)

    def _title(self) -> str:
        return f"{self.layer}: {self.units} x {self.inputs} ({self.kind or 'unit'})" if self.units else self.layer

    def _facts(self) -> Mapping[str, str]:
        if self.reason:
            return {"not measured": self.reason}
        chance = f", chance {short_number(self.null_rank)}" if np.isfinite(self.null_rank) else ""
        return {
            "found": self.read.finding,
            "what to do": self.read.advice,
            "k_eff": f"{short_number(self.k_eff)}, chance {short_number(self.chance_k_eff)}",
            "lines": f"{self.lines} with {self.cover:.0%} of the norm",
            "effective rank": f"{short_number(self.effective_rank)}{chance}",
        }


class Rows(Shown, list[Row]):
    """Rows of a model: a list that prints a line a layer."""

    def _title(self) -> str:
        return plural(len(self), "layer")

    def _facts(self) -> Mapping[str, str]:
        return {row.layer: row.reading for row in self}


def measure_units(
    layer: str,
    weights: ArrayLike,
    kind: str = "",
    *,
    threshold: float | None = None,
    start: ArrayLike | None = None,
    with_null: bool = False,
    with_errors: bool = False,
    bias: bool = False,
    quantised: bool = False,
) -> Row:
    """Measure one layer of units x inputs; where that cannot be done, the row's reason says why.

    Args:
        layer: its name.
        weights: of its units, the bias as the last input.
        kind: what a unit is.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        start: the initial weights, for the relative change.
        with_null: also subtract the mean weight of the units, a direction that pretrained models share, measure what is
            left, and compare it with a null: units of the same norms with the entries of each input permuted among
            them. The effective rank gets its null, too, and units that repeat others are counted.
        with_errors: also give standard errors of k_eff and of the ranks, by a bootstrap over units (50 draws).
        bias: the last input is the bias of a layer whose inputs are of unknown size: beside a null, lines and copies
            are then such as hold without it as well, and mean and ranks are without it. As an input of size one it
            would decide the orientations of units that read small inputs.
        quantised: the weights were stored as few levels.

    >>> row = measure_units("a", np.ones((20, 3)))
    >>> row.lines, row.reading
    (1, 'condensed on 1 line: k_eff 1 where random units have 9.17; reduce')
    """
    check_threshold(threshold)
    try:
        array = as_weights(weights)
    except InputError as error:
        shape = np.shape(weights)
        return Row(layer, kind, *(shape if len(shape) == 2 else (0, 0)), reason=str(error))
    row = Row(layer, kind, *array.shape, quantised=quantised)
    if len(array) < 2:
        return replace(row, reason="a single unit: lines are of two and more")
    plain = array[:, :-1] if bias and with_null and array.shape[1] > 2 else array
    if not plain.any() and array.any():
        return replace(row, bias=1.0, reason=NO_WEIGHTS)
    try:
        measured = _lines(array, threshold)
        row = _with_lines(row, measured)
        known = spectrum(plain)
        effective, stable = ranks_of(known)
        row = replace(
            row,
            zeros=int((~_with_weights(plain)).sum()),
            effective_rank=effective,
            stable_rank=stable,
            change=NAN if start is None else relative_change(weights, start),
            reason=measured.reason,
        )
        if with_errors and len(array) - row.zeros >= LEAST_FOR_ERRORS:
            errors = bootstrap_errors(plain, threshold=threshold)
            row = replace(row, **{f"{name}_error": error for name, error in vars(errors).items()})
        if not with_null or row.reason:
            return row
        row = replace(row, kept_rank=dimensions_kept(known), zero_inputs=int((~plain.any(axis=0)).sum()))
        return _beside_null(row, array, plain, measured, threshold)
    except InputError as error:
        return replace(row, reason=str(error))


def _lines(array: np.ndarray, threshold: float | None) -> Lines:
    with warnings.catch_warnings(action="ignore"):  # units of norm zero: the row counts them
        return find_lines(array, threshold=threshold)


def _with_lines(row: Row, found: Lines) -> Row:
    return replace(
        row,
        lines=found.count,
        orientations=found.orientations,
        cover=found.cover,
        k_eff=found.k_eff,
        chance_k_eff=found.chance_k_eff,
        condensed=found.condensed,
    )


def _with_weights(array: np.ndarray) -> np.ndarray:
    """Which units have weights, beside the largest one."""
    r = norms(array)
    return r > NEGLIGIBLE * r.max()


def _beside_null(row: Row, array: np.ndarray, plain: np.ndarray, found: Lines, threshold: float | None) -> Row:
    """The row with what holds without bias and mean, and with the k_eff and the rank of the null."""
    if plain is not array:
        size = float(np.einsum("ij,ij->", plain, plain, dtype=float))
        row = replace(row, bias=1 - size / (size + float(np.einsum("i,i->", array[:, -1], array[:, -1], dtype=float))))
        without = _lines(plain, threshold)
        if without.reason:
            plain = array  # along a single input there are directions with the bias only
        else:
            found = held(found, without, norms(array))
            row = _with_lines(row, found)
    found_copies = copies(array, without_bias=plain is not array)
    row = replace(row, **found_copies._asdict(), null_rank=ranks(permuted_orientations(plain))[0], spare=spare(found))
    plain = plain[_with_weights(plain)]  # units without weights would become alike where the mean is taken from them
    mean = plain.mean(axis=0, dtype=float)
    total = float(np.einsum("ij,ij->", plain, plain, dtype=float))
    if not total > 0:
        return replace(row, reason=TOO_SMALL)
    share = len(plain) * float(mean @ mean) / total
    row = replace(row, mean=min(share, 1.0))
    if 1 - share < 1e-12:
        return row  # all units are the same: nothing is left
    centred = plain - mean.astype(plain.dtype)
    left = _lines(centred, threshold)
    draws = np.array([NAN]) if left.reason else null_counts(plain, left.threshold, centred=True)
    return replace(
        row,
        centred_lines=left.count,
        centred_cover=left.cover,
        centred_k_eff=left.k_eff,
        null_k_eff=float(draws.mean()),
        null_low=float(draws.min()),
    )


def most_condensed_first(rows: Iterable[Row]) -> Rows:
    """Rows in order: layers that can be reduced by k_eff over units, the others by k_eff over its null, then the rest.

    >>> rows = [Row("none", reason="a vector"), measure_units("a", np.ones((9, 4)))]
    >>> [row.layer for row in most_condensed_first(rows)]
    ['a', 'none']
    """

    def place(row: Row) -> tuple[int, float]:
        if row.reason:
            return 2, 0.0
        if row.condensed and row.read.action is Action.REDUCE:
            return 0, row.k_eff / row.units
        return 1, round(row.ratio if np.isfinite(row.ratio) else row.k_eff / row.units, 2)  # what is less is noise

    return Rows(sorted(rows, key=place))
