"""Runs and a sweep to be opened in the page, each of a kind of its own."""

from pathlib import Path

import numpy as np

from condensation import Every, sweep, train
from condensation.measure import measure_units
from condensation.playground._settings import Settings
from condensation.runs import Watched, WatchedLayer, WatchedRow, WatchWriter

DENSE = Settings(width=24, seed=3)
DIGITS = Settings(data="digits", n=40, layers=("tanh",), width=6, std_w=1e-3, std_a=1e-3, optimizer="gd", rate=0.2)
AXES = {"init.hidden.std": [1e-3, 1e-2, 1e-1], "optimizer.learning_rate": [1e-3, 2e-3]}
LAYER = WatchedLayer("body.0", "neuron", 15, 3)


def watched_weights(step: int) -> np.ndarray:
    """Units that turn to one line."""
    spread = np.random.default_rng(5).normal(size=(15, 3))
    return spread * 0.5**step + step * np.array([1.0, 2.0, -1.0])


def fill(folder: Path) -> Path:
    """Runs ``dense`` (two seeds), ``digits``, ``watched`` and the sweep ``swept``."""
    fill_two(folder)
    train(DIGITS.experiment(steps=10).replace(**{"save.count": 3}), seeds=[0], out=folder / "made")
    _take(folder / "made", folder / "digits")
    sweep(Settings(width=8).experiment(steps=10), AXES, "lines", seeds=2, out=folder / "swept")
    return folder


def fill_two(folder: Path) -> Path:
    """The runs ``dense`` and ``watched``."""
    train(DENSE.experiment(steps=40).replace(**{"save.count": 5}), seeds=[3, 8], out=folder / "made")
    _take(folder / "made", folder / "dense")
    watched = Watched("Net", (LAYER,), Every(1), keep=("body.0",), torch="2.0")
    writer = WatchWriter(watched, folder / "watched", resume=False)
    writer.keep_start(iter([watched_weights(0)]))
    for step in range(4):
        row = measure_units("body.0", watched_weights(step), "neuron", start=writer.start_of("body.0"))
        writer.add([WatchedRow(**vars(row), step=step, loss=1 / (1 + step))], {"body.0": watched_weights(step)})
    writer.begin(lambda _: True)
    writer.write(3, now=True, finished=True)
    return folder


def _take(made: Path, name: Path) -> None:
    """Gives the run in a folder a name of its own."""
    (run,) = made.iterdir()
    run.rename(name)
    made.rmdir()
