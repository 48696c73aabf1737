"""Runs of this package, trained here or watched, measured like checkpoints over training."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..errors import InputError
from ..measure import Row
from ..runs import RunFolder, Watched, load_run, open_run
from ..runs._watch_writer import SEED, rows_of
from ..seeds import Seed
from ._layout import Units
from ._measured import Measured, median_row
from ._series import few, measure_steps, steps_in_words


def measure_run(folder: Path, *, threshold: float | None = None, every_step: bool = False) -> Measured:
    """The layers of a run at its saved steps, as medians over its seeds; of a watched one as they were measured then.

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
    hidden = [layer for layer in trajectory.experiment.network.layers[:-1] if layer.name in trajectory.layers]
    if not hidden:
        raise InputError(f"{folder} has no hidden layer that was kept")
    saved = trajectory.saved.tolist()
    chosen = saved if every_step else few(saved)
    kinds = {layer.name: "kernel" if layer.is_convolution else "neuron" for layer in hidden}
    shapes = {name: trajectory.history(name).shape[2:] for name in kinds}

    def series(seed: Seed) -> Iterator[tuple[int, list[Units]]]:
        for step in chosen:
            yield (
                step,
                [
                    Units(name, name, kind, *shapes[name], read=partial(trajectory.weights, name, step, seed))
                    for name, kind in kinds.items()
                ],
            )

    seeds = trajectory.seeds
    measured = [measure_steps(series(seed), threshold, with_change=len(chosen) > 1) for seed in seeds]
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


def _watched(run: RunFolder, watched: Watched, every_step: bool) -> Measured:
    kept = run.read(SEED)
    steps: dict[int, list[Row]] = {}
    for row in rows_of(watched, kept):
        steps.setdefault(row.step, []).append(row)
    recorded = list(steps)
    chosen = recorded if every_step else few(recorded)
    last = [
        Units(layer, layer, "unit", *arrays.shape[1:], read=lambda last=arrays[-1]: last)
        for layer, arrays in kept.record.weights.items()
    ]
    facts = {"model": watched.model, "steps": steps_in_words(recorded, chosen)}
    return Measured(run.path, {step: steps[step] for step in chosen}, last, facts, ("measured while it was watched",))
