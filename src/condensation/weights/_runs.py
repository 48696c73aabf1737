"""Runs of this package, trained here or watched, measured like checkpoints over training."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..errors import InputError
from ..measure import Row
from ..runs import WatchedRun, open_run
from ..seeds import Seed
from ._layout import Units
from ._measured import Measured, median_row
from ._series import few, measure_steps, steps_in_words


def measure_run(
    folder: Path,
    *,
    threshold: float | None = None,
    errors: bool = False,
    every_step: bool = False,
    trust: bool = False,
) -> Measured:
    """The layers of a run at its saved steps, as medians over its seeds; of a watched one as they were measured then.

    ``threshold`` is the cosine that decides, and a watched run has its own; a dozen steps are measured, or every step.
    ``errors`` adds standard errors of k_eff and of the ranks, which a watched run has none of. ``trust``
    is as in ``load_run``.
    """
    stored = open_run(folder, trust)
    if stored.kind == "watched":
        if threshold is not None:
            raise InputError(f"{folder} was measured while it was watched: a threshold is given to watch(), not here")
        if errors:
            raise InputError(f"{folder} was measured while it was watched, without errors")
        return _measured_then(folder, stored.load(), every_step)
    trajectory = stored.load()
    hidden = [layer for layer in trajectory.experiment.network.layers[:-1] if layer.name in trajectory.layers]
    if not hidden:
        raise InputError(f"{folder} has no hidden layer that was kept")
    saved = trajectory.saved.tolist()
    chosen = saved if every_step else few(saved)
    kinds = {layer.name: "kernel" if layer.is_convolution else "neuron" for layer in hidden}
    shapes = {name: trajectory.history(name).shape[2:] for name in kinds}

    def series(seed: Seed) -> Iterator[tuple[int, list[Units]]]:
        for step in chosen:
            reads = {name: partial(trajectory.weights, name, step, seed) for name in kinds}
            yield step, [Units(name, name, kind, *shapes[name], read=reads[name]) for name, kind in kinds.items()]

    seeds = trajectory.seeds
    with_change = len(chosen) > 1
    measured = [measure_steps(series(seed), threshold, errors=errors, with_change=with_change) for seed in seeds]
    steps: dict[int, list[Row]] = {
        step: [median_row(rows) for rows in zip(*(own[step] for own, _ in measured), strict=True)] for step in chosen
    }
    facts = {
        "seeds": f"{len(seeds)}: the numbers are medians over them, the heat maps of data {seeds[0].data}, "
        f"initialization {seeds[0].init}",
        "steps": steps_in_words(saved, chosen),
    }
    notes = [
        f"seed {seed.data}-{seed.init} diverged at step {step}: from there on the medians are of the others"
        for seed, step in trajectory.diverged.items()
    ]
    return Measured(folder, steps, measured[0][1], facts, tuple(notes))


def _measured_then(folder: Path, run: WatchedRun, every_step: bool) -> Measured:
    """The layers of a watched run as they were measured during training."""
    steps: dict[int, list[Row]] = {}
    for row in run.rows:
        steps.setdefault(row.step, []).append(row)
    recorded = list(steps)
    chosen = recorded if every_step else few(recorded)
    last = [
        Units(layer, layer, "unit", *(weights := run.history(layer)[0, -1]).shape, read=lambda weights=weights: weights)
        for layer in run.layers
    ]
    facts = {"model": run.watched.model, "steps": steps_in_words(recorded, chosen)}
    return Measured(folder, {step: steps[step] for step in chosen}, last, facts, ("measured while it was watched",))
