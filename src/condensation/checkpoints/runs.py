"""Runs of this package as checkpoints over training: what was trained here, and what was watched."""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..measure.table import Row
from ..training.store import load_run, read_json
from ..training.trajectory import Trajectory
from ..training.watched import QUANTITIES, Watched
from .layout import Units
from .measure import JOBS, measure_listed
from .series import Measured, few


def measure_run(folder: Path, *, threshold: float | None = None, every_step: bool = False) -> Measured:
    """The layers of a run at its steps: of a watched one as they were measured then, else of its first seed.

    Args:
        folder: of the run.
        threshold: the cosine that decides; a watched run has its own.
        every_step: all steps, not a dozen of them.
    """
    trajectory = load_run(folder)
    if isinstance(trajectory.source, Watched):
        if threshold is not None:
            raise InputError(f"{folder} was measured while it was watched: a threshold is given to watch(), not here")
        return _watched(folder, trajectory, trajectory.source, every_step)
    seed = trajectory.seeds[0]
    layers = [layer for layer in trajectory.layers if layer != "output"]
    chosen = trajectory.saved.tolist() if every_step else few(trajectory.saved.tolist())
    starts = {layer: trajectory.weights(layer, chosen[0], seed) for layer in layers}
    steps, listed = {}, []
    for step in chosen:
        listed = [_units(layer, trajectory.weights(layer, step, seed)) for layer in layers]
        steps[step] = measure_listed(listed, threshold=threshold, start=lambda units: starts[units.name], jobs=JOBS)
    facts = {
        "seed": f"data {seed.data}, start {seed.start}, the first of {len(trajectory.seeds)}",
        "steps": f"{chosen[0]:,} to {chosen[-1]:,}, {len(chosen)} of {len(trajectory.saved)} measured",
    }
    return Measured(folder, steps, listed, facts)


def is_watched(folder: Path) -> bool:
    """Whether the run in a folder was watched, not trained here."""
    return "watched" in read_json(folder / "run.json")


def _units(layer: str, weights: np.ndarray) -> Units:
    return Units(layer, layer, "unit", *weights.shape, read=lambda: weights)


def _watched(folder: Path, trajectory: Trajectory, watched: Watched, every_step: bool) -> Measured:
    recorded = trajectory.recorded.tolist()
    chosen = recorded if every_step else few(recorded)
    steps: dict[int, list[Row]] = {}
    for place, step in enumerate(recorded):
        if step not in chosen:
            continue
        rows = []
        for layer in watched.layers:
            told: dict[str, Any] = {q: float(trajectory.curves[f"{q}/{layer.name}"][0, place]) for q in QUANTITIES}
            if np.isnan(told["k_eff"]):
                reason = "not measured at this step"
                rows.append(Row(layer.name, layer.kind, layer.units, layer.inputs, reason=reason))
                continue
            told |= {name: int(told[name]) for name in ("lines", "orientations")}
            told["condensed"] = bool(told["condensed"])
            rows.append(Row(layer.name, layer.kind, layer.units, layer.inputs, **told))
        steps[step] = rows
    kept = [_units(layer, trajectory.weights(layer, recorded[-1], 0)) for layer in trajectory.layers]
    facts = {"model": watched.model, "steps": f"{recorded[0]:,} to {recorded[-1]:,}, {len(chosen)} of {len(recorded)}"}
    return Measured(folder, steps, kept, facts, ("measured while it was watched",))
