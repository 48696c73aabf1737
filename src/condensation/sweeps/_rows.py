"""The rows of a task, made as columns: its networks are of one kind, so that one array holds a quantity of all."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import compute

from ..errors import InputError
from ..runs import Trajectory, in_initial_stage
from ..training._backoff import rises
from ._axes import CURVES
from ._measures import Columns, Measuring, check_clash, measure_named, of_user, stack_columns
from ._texts import ExperimentTexts

if TYPE_CHECKING:
    from ._task import Pair


class Rows(NamedTuple):
    """The rows of some pairs.

    Attributes:
        table: a row for each network (and saved step, where all are measured), of those that did not fail.
        failed: why pairs have no rows, by their place.
        measured: the columns that measures gave.
    """

    table: pa.Table
    failed: dict[int, str]
    measured: list[str]


def measure_rows(pairs: "Sequence[Pair]", trajectories: Sequence[Trajectory], measuring: Measuring) -> Rows:
    """The rows of pairs and their trajectories: coordinates, what was measured, what is needed to train them again."""
    steps = [_steps(trajectory, measuring.at) for trajectory in trajectories]
    place = np.repeat(np.arange(len(pairs)), [len(own) for own, _ in steps])  # the pair of each row
    moments = [(k, step, _is_alive(trajectories[k], step)) for k, (own, _) in enumerate(steps) for step in own]
    looked_at = [(trajectories[k], step if alive else 0) for k, step, alive in moments]  # what a dead one had is known
    named = measure_named(looked_at, measuring.measure, measuring.threshold)
    own, failed = _of_users(pairs, moments, looked_at, measuring, named)
    measured: dict[str, np.ndarray] = {}
    alive = np.array([alive for *_, alive in moments], bool)
    for measure in measuring.measure:
        columns = own[measure] if callable(measure) else named[measure]
        measured |= {name: np.where(alive, values, np.nan) for name, values in columns.items()}
    ended = [ended for _, ended in steps] if measuring.at == "initial" else None
    common = _common(pairs, trajectories, bool(measuring.backoffs), ended)
    kept = np.flatnonzero(~np.isin(place, [*failed]))
    wide = pa.table({name: pa.array(values) for name, values in common.items()}).take(place[kept])
    columns = {"step": np.array([step for _, step, _ in moments], int)} | _curves(trajectories, moments) | measured
    for name, values in columns.items():
        wide = wide.append_column(name, pa.array(values[kept]))
    return Rows(wide, failed, [*measured])


def join_rows(parts: Sequence[Rows], sizes: Sequence[int]) -> Rows:
    """The rows of several parts; a part without a column that a measure gave to another has NaN there."""
    table = pa.concat_tables([part.table for part in parts], promote_options="permissive")
    measured = [*dict.fromkeys(name for part in parts for name in part.measured)]
    for name in measured:
        filled = compute.fill_null(table.column(name), np.nan)
        table = table.set_column(table.column_names.index(name), name, filled)
    begins = np.cumsum([0, *sizes])
    failed = {int(begin) + k: why for begin, part in zip(begins, parts, strict=False) for k, why in part.failed.items()}
    return Rows(table, failed, measured)


def _common(
    pairs: "Sequence[Pair]", trajectories: Sequence[Trajectory], backed_off: bool, ended: list[bool] | None
) -> dict[str, list[Any]]:
    """The columns that all rows of a pair have in common, a value for each pair."""
    texts = ExperimentTexts()
    columns: dict[str, list[Any]] = {name: [pair.coordinates[name] for pair in pairs] for name in pairs[0].coordinates}
    columns |= {
        "seed_data": [pair.seed.data for pair in pairs],
        "seed_init": [pair.seed.init for pair in pairs],
        "fingerprint": [pair.fingerprint for pair in pairs],
        "experiment": [texts.json(pair.experiment) for pair in pairs],
        "diverged": [float(next(iter(own.diverged.values()), np.nan)) for own in trajectories],
        "loss_first": [float(own.loss[0, 0]) for own in trajectories],
        "seconds": [own.seconds for own in trajectories],
    }
    if backed_off:
        trained = [own.experiment for own in trajectories]
        columns |= {
            "learning_rate": [float(getattr(own.optimizer, "learning_rate", np.nan)) for own in trained],
            "backoffs": [
                round(np.log2(own.steps / pair.experiment.steps)) for own, pair in zip(trained, pairs, strict=True)
            ],
            "rising": [bool(rises(own)) for own in trajectories],
        }
    return columns if ended is None else columns | {"stage_ended": ended}


def _curves(trajectories: Sequence[Trajectory], moments: list[tuple[int, int, bool]]) -> dict[str, np.ndarray]:
    """The values of the curves in each row."""
    places = [int(np.searchsorted(trajectories[k].recorded, step)) for k, step, _ in moments]
    at = [(trajectories[k].curves, place) for (k, *_), place in zip(moments, places, strict=True)]
    names = [name for name in CURVES if any(name in own.curves for own in trajectories)]
    return {
        name: np.array([curves[name][0, place] if name in curves else np.nan for curves, place in at], float)
        for name in names
    }


def _of_users(
    pairs: "Sequence[Pair]", moments: list[tuple[int, int, bool]], looked_at: list[tuple[Trajectory, int]],
    measuring: Measuring, named: Mapping[str, Mapping[str, np.ndarray]],
) -> tuple[dict[Callable[..., Any], dict[str, np.ndarray]], dict[int, str]]:  # fmt: skip
    """The columns of a user's measures, and why pairs failed, by place: a user's measure fails in any way."""
    functions = [measure for measure in measuring.measure if callable(measure)]
    found: dict[Callable[..., Any], list[Columns]] = {function: [{} for _ in moments] for function in functions}
    failed: dict[int, str] = {}
    for row, ((k, _, alive), (trajectory, step)) in enumerate(zip(moments, looked_at, strict=True)):
        if not functions or k in failed:
            continue
        taken = {name for columns in named.values() for name, values in columns.items() if values[row] == values[row]}
        try:
            try:
                for function in functions:
                    columns = of_user(function, trajectory, step)
                    check_clash(columns, taken)
                    taken |= columns.keys()
                    found[function][row] = columns
            except Exception:
                if alive:
                    raise
                for function in functions:  # one that cannot be taken at step 0: then its columns are not known
                    found[function][row] = {}
            if clash := taken & pairs[k].coordinates.keys():
                raise InputError(f"a measure gives {clash.pop()}, which is an axis: name it otherwise")
        except Exception as error:
            failed[k] = one_line(error)
    return {function: stack_columns(rows) for function, rows in found.items()}, failed


def _steps(trajectory: Trajectory, at: str) -> tuple[list[int], bool]:
    """The saved steps that get a row, and whether the initial stage ended at a saved step."""
    if at == "end":
        return [int(trajectory.saved[-1])], False
    saved = trajectory.saved.tolist()
    if at == "saved":
        return saved, False
    losses = trajectory.loss[0, np.searchsorted(trajectory.recorded, saved)]
    left = np.flatnonzero(~in_initial_stage(losses))  # none in a seed that diverged before
    return [saved[left[0] - 1 if len(left) else -1]], bool(len(left))


def _is_alive(trajectory: Trajectory, step: int) -> bool:
    """Whether the one seed of a trajectory had not diverged by a step."""
    return step < next(iter(trajectory.diverged.values()), step + 1)


def one_line(error: Exception) -> str:
    """The first line of an error, with its type unless it is written for the user."""
    first = str(error).strip().split("\n")[0]
    return first if isinstance(error, InputError) else f"{type(error).__name__}: {first}"
