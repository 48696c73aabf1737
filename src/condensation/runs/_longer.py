"""A longer training goes on from the end of a shorter one: the same experiment but for its steps and what it keeps.

The *stem* of an experiment is the fingerprint of what trainings that differ only in their length have in common. It
stands at the beginning of each run.json, so that one look at a folder of runs finds those of the same stem. A finished
seed keeps the state of its training where that is small; a longer training does not go on from a run without it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..experiment import Experiment
from ..optimizers import GradientFlow
from ..saving import At
from ._run import Checkpoint, Record

ANY_LENGTH = {"steps": 1, "save": At(()), "record": At(())}
BEGINNING = 1000  # bytes of a run.json that hold its stem
STEM = re.compile(rb'"stem": "([0-9a-f]{64})"')


def stem(experiment: Experiment) -> str:
    """What trainings have in common that differ only in their length and in what they keep."""
    return experiment.with_parts(ANY_LENGTH).fingerprint()


def of_one_stem(folder: Path, experiment: Experiment) -> Iterator[Path]:
    """Folders beside an experiment's run whose runs differ from it only in their length and in what they keep."""
    own = stem(experiment).encode()
    for path in sorted(folder.parent.glob("*/run.json")):
        if path.parent != folder:
            with suppress(OSError), path.open("rb") as file:
                found = STEM.search(file.read(BEGINNING))
                if found and found[1] == own:
                    yield path.parent


def lengthened(checkpoint: Checkpoint, short: Experiment, long: Experiment) -> Checkpoint | None:
    """Where a longer training is when a shorter one has ended; None if it is not the same training, or misses rows.

    Descent has taken one step beyond the end, as the last row is recorded by a step. Gradient flow starts its
    integrator anew at each record: there the same steps must have been recorded.
    """
    flow = isinstance(long.optimizer, GradientFlow)
    recorded, saved = (np.array(steps) for steps in (long.recorded_steps(), long.saved_steps()))
    there, kept = (np.array(steps) for steps in (short.recorded_steps(), short.saved_steps()))
    rows, slots = recorded[recorded <= short.steps], saved[saved <= short.steps]
    if short.steps >= long.steps or not (set(rows) <= set(there) and set(slots) <= set(kept)):
        return None
    if flow and not np.array_equal(rows, there):
        return None
    ended = checkpoint.record.diverged
    if not checkpoint.finished or not (checkpoint.leaves or ended is not None):
        return None
    if ended is not None:  # told at the first recorded step that sees it
        ended = int(recorded[np.searchsorted(recorded, ended)])
    record = Record(
        {name: _longer(value, kept, slots, len(saved)) for name, value in checkpoint.record.weights.items()},
        {name: _longer(value, there, rows, len(recorded)) for name, value in checkpoint.record.curves.items()},
        ended,
        checkpoint.record.seconds,
    )
    done = short.steps + (0 if flow else 1)
    row = int(np.searchsorted(recorded, done, "right")) - 1
    return Checkpoint(record, row, done - int(recorded[row]), checkpoint.leaves, finished=ended is not None)


def _longer(values: np.ndarray, steps: np.ndarray, wanted: np.ndarray, length: int) -> np.ndarray:
    """Rows of some steps at the beginning of a longer array, whose other rows are not known yet."""
    longer = np.full((length, *values.shape[1:]), np.nan, values.dtype)
    longer[: len(wanted)] = values[np.searchsorted(steps, wanted)]
    return longer
