"""Runs of this package as checkpoints over training: what was trained here, and what was watched."""

from pathlib import Path

import numpy as np

from ..errors import InputError
from ..measure import Row
from ..runs import WatchedRun, open_run
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
    stored = open_run(folder)
    if stored.kind == "watched":
        if threshold is not None:
            raise InputError(f"{folder} was measured while it was watched: a threshold is given to watch(), not here")
        return _measured_then(folder, stored.load(), every_step)
    run = stored.load()
    seed = run.seeds[0]
    layers = [layer for layer in run.layers if layer != "output"]
    chosen = run.saved.tolist() if every_step else few(run.saved.tolist())
    starts = {layer: run.weights(layer, chosen[0], seed) for layer in layers}
    steps, listed = {}, []
    for step in chosen:
        listed = [_units(layer, run.weights(layer, step, seed)) for layer in layers]
        steps[step] = measure_listed(listed, threshold=threshold, start=lambda units: starts[units.name], jobs=JOBS)
    facts = {
        "seed": f"data {seed.data}, start {seed.init}, the first of {len(run.seeds)}",
        "steps": f"{chosen[0]:,} to {chosen[-1]:,}, {len(chosen)} of {len(run.saved)} measured",
    }
    return Measured(folder, steps, listed, facts)


def is_watched(folder: Path) -> bool:
    """Whether the run in a folder was watched, not trained here."""
    return open_run(folder).kind == "watched"


def _units(layer: str, weights: np.ndarray) -> Units:
    return Units(layer, layer, "unit", *weights.shape, read=lambda: weights)


def _measured_then(folder: Path, run: WatchedRun, every_step: bool) -> Measured:
    """The layers of a watched run as they were measured during training."""
    steps: dict[int, list[Row]] = {}
    for row in run.rows:
        steps.setdefault(row.step, []).append(row)
    recorded = list(steps)
    chosen = recorded if every_step else few(recorded)
    last = [_units(layer, run.history(layer)[0, -1]) for layer in run.layers]
    span = f"{recorded[0]:,} to {recorded[-1]:,}, {len(chosen)} of {len(recorded)}"
    facts = {"model": run.watched.model, "steps": span}
    return Measured(folder, {step: steps[step] for step in chosen}, last, facts, ("measured while it was watched",))
