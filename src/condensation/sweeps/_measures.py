"""Measures of a cell: columns of numbers from the trajectory of one seed at one saved step."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._functions import function_at, function_fingerprint, function_path, may_import
from .._serialization import fingerprint, to_plain
from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..measure import (
    cosine_similarity,
    effective_rank,
    find_lines,
    participation_ratio,
    relative_change,
    share_along,
    stable_rank,
)
from ..networks import Dense, Network
from ..optimizers import GradientFlow
from ..runs import Trajectory
from ._axes import COLUMNS

Columns = dict[str, float]
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


def _lines(weights: np.ndarray, initial: np.ndarray, threshold: float | None) -> Columns:
    lines = find_lines(weights, threshold=threshold)
    if lines.reason:
        raise InputError(lines.reason)
    return {
        "k_eff": lines.k_eff,  # what is drawn where no other quantity is chosen
        "lines": float(lines.count),
        "orientations": float(lines.orientations),
        "cover": lines.cover,
        "condensed": float(lines.condensed),
    }


def _ranks(weights: np.ndarray) -> Columns:
    return {
        "effective_rank": effective_rank(weights),
        "stable_rank": stable_rank(weights),
        "participation": participation_ratio(weights),
    }


def _cosine(weights: np.ndarray, initial: np.ndarray, threshold: float | None) -> Columns:
    pairs = np.abs(cosine_similarity(weights))[np.triu_indices(len(weights), 1)]
    return {"cosine": float(np.median(pairs))} if len(pairs) else {}


OF_LAYERS: dict[str, Callable[[np.ndarray, np.ndarray, float | None], Columns]] = {  # of weights, initial ones, cosine
    "lines": _lines,
    "change": lambda weights, initial, _: {"change": relative_change(weights, initial)},
    "rank": lambda weights, *_: _ranks(weights),
    "cosine": _cosine,
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
            measure = function_at(measure.partition("#")[0])
        if callable(measure):
            function_path(measure)  # refused where a worker could not find it
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
    columns: Columns = {}
    for measure in measures:
        of_user = callable(measure)
        added = _of_user(measure, trajectory, step) if of_user else _of_layers(measure, trajectory, step, threshold)
        for name in sorted(added.keys() & columns.keys()):
            raise InputError(f"two measures give a column {name}: one of them needs another name")
        columns |= added
    return columns


def _of_layers(name: str, trajectory: Trajectory, step: int, threshold: float | None) -> Columns:
    """The columns of a measure that has a name."""
    (seed,) = trajectory.seeds
    hidden = [layer for layer in trajectory.layers if layer != "output"]
    columns = {}
    for layer in hidden[:1] if name == "share" else hidden:
        weights, initial = (trajectory.weights(layer, when, seed) for when in (step, 0))
        try:
            with warnings.catch_warnings(action="ignore"):  # units of norm zero
                values = (
                    _share(weights, trajectory) if name == "share" else OF_LAYERS[name](weights, initial, threshold)
                )
        except InputError:  # weights that have no such quantity
            continue
        columns |= {f"{layer}.{quantity}": value for quantity, value in values.items()}
    return columns


def _share(weights: np.ndarray, trajectory: Trajectory) -> Columns:
    """The share of the first layer's weights along z."""
    check_fit(("share",), trajectory.experiment.network)
    x, y = trajectory.data(trajectory.seeds[0])
    inputs = np.hstack([x, np.ones((len(x), 1))])[:, : weights.shape[1]]  # the bias is the last weight, if there is one
    return {"share": share_along(weights, inputs.T @ y[:, 0] / len(x))}


def _of_user(function: Callable[[Trajectory, int], Any], trajectory: Trajectory, step: int) -> Columns:
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
