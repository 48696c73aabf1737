"""Runs of this package as checkpoints over training: what was trained here, and what was watched."""

from pathlib import Path

import numpy as np

from .._files import read_json
from ..errors import InputError
from ..measure import Row
from ..runs import RunFolder, Watched, load_run, open_run
from ..runs._watch_writer import SEED, rows_of
from ._layout import Units
from ._measure import JOBS, measure_listed
from ._series import Measured, few


def measure_run(folder: Path, *, threshold: float | None = None, every_step: bool = False) -> Measured:
    """The layers of a run at its steps: of a watched one as they were measured then, else of its first seed.

    Args:
        folder: of the run.
        threshold: the cosine that decides; a watched run has its own.
        every_step: all steps, not a dozen of them.
    """
    run = open_run(folder)
    if isinstance(run.source, Watched):
        if threshold is not None:
            raise InputError(f"{folder} was measured while it was watched: a threshold is given to watch(), not here")
        return _watched(run, run.source, every_step)
    trajectory = load_run(folder)
    seed = trajectory.seeds[0]
    layers = [layer for layer in trajectory.layers if layer != "output"]
    chosen = trajectory.saved.tolist() if every_step else few(trajectory.saved.tolist())
    starts = {layer: trajectory.weights(layer, chosen[0], seed) for layer in layers}
    steps, listed = {}, []
    for step in chosen:
        listed = [_units(layer, trajectory.weights(layer, step, seed)) for layer in layers]
        steps[step] = measure_listed(listed, threshold=threshold, start=lambda units: starts[units.name], jobs=JOBS)
    facts = {
        "seed": f"data {seed.data}, start {seed.init}, the first of {len(trajectory.seeds)}",
        "steps": f"{chosen[0]:,} to {chosen[-1]:,}, {len(chosen)} of {len(trajectory.saved)} measured",
    }
    return Measured(folder, steps, listed, facts)


def is_watched(folder: Path) -> bool:
    """Whether the run in a folder was watched, not trained here."""
    return "watched" in read_json(folder / "run.json")


def _units(layer: str, weights: np.ndarray) -> Units:
    return Units(layer, layer, "unit", *weights.shape, read=lambda: weights)


def _watched(run: RunFolder, watched: Watched, every_step: bool) -> Measured:
    kept = run.read(SEED)
    steps: dict[int, list[Row]] = {}
    for row in rows_of(watched, kept):
        steps.setdefault(row.step, []).append(row)
    recorded = list(steps)
    chosen = recorded if every_step else few(recorded)
    last = [_units(layer, arrays[-1]) for layer, arrays in kept.record.weights.items()]
    facts = {"model": watched.model, "steps": f"{recorded[0]:,} to {recorded[-1]:,}, {len(chosen)} of {len(recorded)}"}
    return Measured(run.path, {step: steps[step] for step in chosen}, last, facts, ("measured while it was watched",))
