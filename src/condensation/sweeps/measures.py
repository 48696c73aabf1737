"""What is measured in each cell: columns from the trajectory of one seed at one saved step."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError, unknown_name
from ..measure import effective_rank, find_lines, participation_ratio, relative_change, share_along
from ..measure.similarity import cosine_similarity
from ..training.trajectory import Trajectory

Columns = Mapping[str, float | int | bool]
Measure = str | Callable[[Trajectory, int], Any]
NAN = float("nan")


def _lines(weights: np.ndarray, start: np.ndarray, threshold: float | None) -> Columns:
    found = find_lines(weights, threshold=threshold)
    return {
        "lines": float(found.count),
        "orientations": float(found.orientations),
        "cover": found.cover,
        "k_eff": found.k_eff,
        "condensed": float(found.condensed),
    }


def _change(weights: np.ndarray, start: np.ndarray, threshold: float | None) -> Columns:
    return {"change": relative_change(weights, start)}


def _rank(weights: np.ndarray, start: np.ndarray, threshold: float | None) -> Columns:
    return {"effective_rank": effective_rank(weights), "participation": participation_ratio(weights)}


def _cosine(weights: np.ndarray, start: np.ndarray, threshold: float | None) -> Columns:
    pairs = np.abs(cosine_similarity(weights))[np.triu_indices(len(weights), 1)]
    return {"cosine": float(np.median(pairs)) if len(pairs) else NAN}


OF_LAYERS = {"lines": _lines, "change": _change, "rank": _rank, "cosine": _cosine}
NAMES = (*OF_LAYERS, "share")


def check_measures(given: tuple[Measure, ...]) -> tuple[Measure, ...]:
    """The measures, each once; a name that is not known is refused."""
    if not given:
        raise InputError(f"a sweep measures something: {', '.join(NAMES)}, or a function")
    for one in given:
        if isinstance(one, str) and one not in NAMES:
            raise unknown_name("measure", one, NAMES)
        if not isinstance(one, str) and not callable(one):
            raise InputError(f"a measure is a name or a function of a trajectory and a step, not {one!r}")
    return tuple(dict.fromkeys(given))


def measure_step(
    trajectory: Trajectory, step: int, measures: tuple[Measure, ...], threshold: float | None = None
) -> dict[str, float]:
    """All columns of a trajectory of one seed at a saved step: ``LAYER.QUANTITY`` for each hidden layer.

    ``share`` is $|\\theta_{w,z}|/|\\theta_w|$ of the first layer, the share of its weights along
    $z = \\frac1n \\sum_i y_i x_i$ (the bias's input is 1). What cannot be measured (weights that are all zero, say) has
    no column.
    """
    seed, columns = trajectory.seeds[0], {}
    hidden = [name for name in trajectory.layers if name != "output"]
    for one in measures:
        if callable(one):
            columns |= _own(one, trajectory, step)
        elif one == "share":
            if hidden:
                columns |= _or_nothing(lambda: {f"{hidden[0]}.share": _share(trajectory, hidden[0], step)})
        else:
            for layer in hidden:
                weights = trajectory.weights(layer, step, seed)
                start = trajectory.weights(layer, 0, seed)
                found = _or_nothing(lambda one=one, w=weights, s=start: OF_LAYERS[one](w, s, threshold))
                columns |= {f"{layer}.{name}": value for name, value in found.items()}
    return columns


def _or_nothing(measure: Callable[[], Columns]) -> Columns:
    """What a measure gives; nothing for weights that it refuses."""
    try:
        with warnings.catch_warnings(action="ignore"):  # units of norm zero
            return measure()
    except InputError:
        return {}


def _share(trajectory: Trajectory, layer: str, step: int) -> float:
    """The share of the layer's weights along z."""
    x, y = trajectory.data(trajectory.seeds[0])
    weights = trajectory.weights(layer, step, trajectory.seeds[0])
    flat = x.reshape(len(x), -1)
    inputs = np.hstack([flat, np.ones((len(flat), 1))]) if weights.shape[1] == flat.shape[1] + 1 else flat
    if y.shape[1] != 1 or inputs.shape[1] != weights.shape[1]:
        raise InputError("the share along z is of dense networks with one output")
    return share_along(weights, inputs.T @ y[:, 0] / len(x))


def _own(function: Callable[[Trajectory, int], Any], trajectory: Trajectory, step: int) -> dict[str, float]:
    """A user's measure: a number, named by the function, or numbers by name."""
    found = function(trajectory, step)
    name = getattr(function, "__name__", "measure")
    columns = found if isinstance(found, Mapping) else {name: found}
    try:
        return {str(key): float(value) for key, value in columns.items()}
    except (TypeError, ValueError) as error:
        raise InputError(f"the measure {name} must give a number or numbers by name, not {found!r}") from error
