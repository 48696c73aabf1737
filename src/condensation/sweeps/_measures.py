"""Measures of a cell: columns of numbers from the trajectory of one seed at one saved step."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._functions import function_at, function_fingerprint, function_path, may_import, name_of
from .._serialization import fingerprint, to_plain
from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..measure import (
    cosine_similarity,
    count_lines,
    effective_rank,
    participation_ratio,
    share_along,
    stable_rank,
)
from ..measure._change import relative_changes
from ..networks import Dense, Network
from ..optimizers import GradientFlow
from ..runs import Trajectory
from ._axes import COLUMNS

AT_ONCE = 1 << 22  # weights that are looked at together
Columns = dict[str, float]
Stacked = dict[str, np.ndarray]  # columns of many networks
Measure = str | Callable[[Trajectory, int], Any]


@dataclass(frozen=True)
class Measuring:
    """What a sweep measures of each network, and how."""

    measure: tuple[Measure, ...]
    at: str
    threshold: float | None
    backoffs: int

    @property
    def key(self) -> str:
        """A hash of it, with the sources of a user's measures: rows of other keys do not count as rows of a sweep."""
        names = sorted(to_plain(measure, function_fingerprint) for measure in self.measure)
        return fingerprint(replace(self, measure=tuple(names)))[:16]


def _lines(weights: np.ndarray, initial: np.ndarray, threshold: float | None) -> Stacked:
    counts = count_lines(weights, threshold=threshold)
    columns = {
        "k_eff": counts.k_eff,  # what is drawn where no other quantity is chosen
        "lines": counts.lines,
        "orientations": counts.orientations,
        "cover": counts.cover,
        "condensed": counts.condensed,
    }
    none = np.isnan(counts.k_eff)  # no lines
    return {name: np.where(none, np.nan, values) for name, values in columns.items()}


def _change(weights: np.ndarray, initial: np.ndarray, threshold: float | None) -> Stacked:
    return {"change": relative_changes(weights, initial)}


def _ranks(weights: np.ndarray) -> Columns:
    return {
        "effective_rank": effective_rank(weights),
        "stable_rank": stable_rank(weights),
        "participation": participation_ratio(weights),
    }


def _cosine(weights: np.ndarray) -> Columns:
    pairs = np.abs(cosine_similarity(weights))[np.triu_indices(len(weights), 1)]
    return {"cosine": float(np.median(pairs))} if len(pairs) else {}


def _one_by_one(measure: Callable[[np.ndarray], Columns]) -> "OfLayers":
    """A measure of many networks' weights from one of a single network's; NaN where it is refused."""

    def columns(weights: np.ndarray) -> Columns:
        try:
            return measure(weights)
        except InputError:  # weights that have no such quantity
            return {}

    return lambda weights, *_: stack_columns([columns(own) for own in weights])


def stack_columns(rows: Sequence[Columns]) -> Stacked:
    """Columns from rows; what a row lacks is NaN."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


OfLayers = Callable[[np.ndarray, np.ndarray, float | None], Stacked]  # of weights, initial ones, cosine
OF_LAYERS: dict[str, OfLayers] = {
    "lines": _lines,
    "change": _change,
    "rank": _one_by_one(_ranks),
    "cosine": _one_by_one(_cosine),
}
NAMES = (*OF_LAYERS, "share")
QUANTITIES: dict[Any, tuple[str, ...]] = {  # the columns of each, for each hidden layer
    "lines": ("k_eff", "lines", "orientations", "cover", "condensed"),
    "change": ("change",),
    "rank": ("effective_rank", "stable_rank", "participation"),
    "cosine": ("cosine",),
    "share": ("share",),
}


def check_measures(chosen: Measure | Iterable[Measure]) -> tuple[Measure, ...]:
    """The measures, each once, those named ``module:function`` as functions; what is not known is refused.

    While a table is opened they stay names (with the digests of their sources): numbers are read without the code that
    made them.
    """
    measures: dict[Measure, None] = {}
    for measure in (chosen,) if isinstance(chosen, str) or not isinstance(chosen, Iterable) else chosen:
        if isinstance(measure, str) and ":" in measure and may_import():
            measure = function_at(measure)
        if callable(measure):
            function_path(measure)  # refused where its rows would have no name
            if not name_of(measure).isidentifier():
                raise InputError(f"the measure {name_of(measure)} names no column: write it with def")
            _check_free(measure.__name__)
        elif not isinstance(measure, str) or (measure not in NAMES and ":" not in measure):
            raise unknown_name("measure", measure, NAMES)
        measures[measure] = None
    if not measures:
        raise InputError(f"a sweep measures something: {', '.join(NAMES)}, or a function")
    return tuple(measures)


def check_fit(measures: Iterable[Measure], network: Network) -> None:
    """Refuse what cannot be measured in a network."""
    if "share" in measures and not (isinstance(network, Dense) and network.outputs == 1):
        raise InputError("the share along z is of dense networks with one output, and this network is none")


def columns_of(measures: Iterable[Measure], experiment: Experiment) -> list[str] | None:
    """The quantities that a table of an experiment can have; None where a user's own measure names them."""
    columns: list[str] = []
    hidden = [layer.name for layer in experiment.network.layers[:-1] if experiment.keeps(f"{layer.name}.weight")]
    for measure in measures:
        if measure not in QUANTITIES:
            return None
        layers = hidden[:1] if measure == "share" else hidden
        columns += [f"{layer}.{quantity}" for layer in layers for quantity in QUANTITIES[measure]]
    scores = ["loss"] + ["accuracy"] * (experiment.network.outputs > 1)
    columns += scores + [f"test_{name}" for name in scores if experiment.test is not None]
    return columns + ["time"] * isinstance(experiment.optimizer, GradientFlow)


def measure_step(
    trajectory: Trajectory, step: int, measures: Iterable[Measure], threshold: float | None = None
) -> Columns:
    """All columns of a trajectory of one seed at a saved step: ``LAYER.QUANTITY`` for each hidden layer.

    ``share`` is $|\\theta_{w,z}|/|\\theta_w|$ of the first layer, the share of its weights along
    $z = \\frac1n \\sum_i y_i x_i$ (the bias's input is 1). What cannot be measured (weights that are all zero, say) has
    no column.
    """
    measures = tuple(measures)
    named = measure_named([(trajectory, step)], measures, threshold)
    columns: Columns = {}
    for measure in measures:
        own = named[measure] if isinstance(measure, str) else {}
        added = of_user(measure, trajectory, step) if callable(measure) else {k: float(v[0]) for k, v in own.items()}
        check_clash(added, columns)
        columns |= added
    return columns


Moment = tuple[Trajectory, int]  # a trajectory of one seed and a saved step


def measure_named(
    moments: Sequence[Moment], measures: Iterable[Measure], threshold: float | None
) -> dict[str, Stacked]:
    """The columns of each measure that has a name, of many networks of one kind at once; NaN where one has none.

    A column that no network has is left out.
    """
    chosen = [measure for measure in measures if isinstance(measure, str)]
    if not chosen or not moments:
        return {measure: {} for measure in chosen}
    first = moments[0][0]
    together = max(1, AT_ONCE // sum(value[0, 0].size for value in first.parameters.values()))
    cuts = [moments[k : k + together] for k in range(0, len(moments), together)]
    parts = [_measure_together(cut, chosen, threshold) for cut in cuts]
    return {measure: _joined([part[measure] for part in parts], [*map(len, cuts)]) for measure in chosen}


def _measure_together(moments: Sequence[Moment], chosen: list[str], threshold: float | None) -> dict[str, Stacked]:
    named: dict[str, Stacked] = {measure: {} for measure in chosen}
    first = moments[0][0]
    places = [int(np.searchsorted(trajectory.saved, step)) for trajectory, step in moments]
    hidden = [layer for layer in first.experiment.network.layers if layer.name in {*first.layers} - {"output"}]
    for number, layer in enumerate(hidden):
        weights, initial = (
            layer.units(
                {
                    name: np.stack([moment[0].parameters[name][0, k] for moment, k in zip(moments, own, strict=True)])
                    for name in layer.parameters
                },
                None,
            )
            for own in (places, [0] * len(places))
        )
        for measure in chosen if number == 0 else [measure for measure in chosen if measure != "share"]:
            try:
                with warnings.catch_warnings(action="ignore"):  # units of norm zero
                    if measure == "share":
                        shares = [_share(own, moment[0]) for own, moment in zip(weights, moments, strict=True)]
                        columns = stack_columns(shares)
                    else:
                        columns = OF_LAYERS[measure](weights, initial, threshold)
            except InputError:  # a layer that has no such quantity
                continue
            named[measure] |= {f"{layer.name}.{quantity}": values for quantity, values in columns.items()}
    return named


def _joined(parts: list[Stacked], sizes: list[int]) -> Stacked:
    """The columns of parts one below the other, without those that hold no number."""
    whole: Stacked = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part.get(name, np.full(size, np.nan)) for part, size in zip(parts, sizes, strict=True)]
        joined = np.concatenate(values).astype(float)
        if not np.isnan(joined).all():
            whole[name] = joined
    return whole


def check_clash(added: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse a column that two measures give."""
    for name in sorted({*added} & {*columns}):
        raise InputError(f"two measures give a column {name}: one of them needs another name")


def _share(weights: np.ndarray, trajectory: Trajectory) -> Columns:
    """The share of the first layer's weights along z; none where there is no such share."""
    check_fit(("share",), trajectory.experiment.network)
    x, y = trajectory.data(trajectory.seeds[0])
    inputs = np.hstack([x, np.ones((len(x), 1))])[:, : weights.shape[1]]  # the bias is the last weight, if there is one
    try:
        return {"share": share_along(weights, inputs.T @ y[:, 0] / len(x))}
    except InputError:
        return {}


def of_user(function: Callable[[Trajectory, int], Any], trajectory: Trajectory, step: int) -> Columns:
    """A user's measure: a number, named by the function, or numbers by name."""
    result, name = function(trajectory, step), function.__name__
    try:
        columns = {str(n): float(v) for n, v in (result if isinstance(result, Mapping) else {name: result}).items()}
    except (TypeError, ValueError) as error:
        raise InputError(f"the measure {name} must give a number or numbers by name, not {result!r}") from error
    for column in columns:
        _check_free(column)
    return columns


def _check_free(column: str) -> None:
    if column in COLUMNS:
        raise InputError(f"no measure can be called {column}, as tables have a column of that name: it needs another")
