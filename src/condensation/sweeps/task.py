"""A task: some cells and seeds that are trained together, measured, and committed as one Parquet file."""

import hashlib
import json
import socket
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..device import device_name
from ..errors import InputError
from ..experiment import Experiment
from ..seeds import Seed
from ..training.train import train_pairs
from ..training.trajectory import Trajectory
from ..versions import versions
from .folder import SweepFolder
from .measures import Measure, measure_step

INITIAL = 0.7  # of the first loss: the end of the initial stage
CURVES = ("loss", "accuracy", "test_loss", "test_accuracy", "time")


class Pair(NamedTuple):
    """A cell and a seed: what a row, or a row a saved step, is about."""

    coordinates: dict[str, float | int | str | bool]
    experiment: Experiment
    fingerprint: str
    seed: Seed

    @property
    def key(self) -> tuple[str, int, int]:
        """What it is known by."""
        return self.fingerprint, self.seed.data, self.seed.start

    def __str__(self) -> str:
        place = ", ".join(f"{name} = {value}" for name, value in self.coordinates.items())
        return f"{place or 'the experiment'}, seed {self.seed.data}" + (
            f"/{self.seed.start}" if self.seed.start != self.seed.data else ""
        )


class Outcome(NamedTuple):
    """What became of a task: how many pairs were committed, and why others were not."""

    committed: int
    failed: tuple[tuple[str, str], ...] = ()
    stale: bool = False


@dataclass(frozen=True)
class Task:
    """Pairs to train together, and how their rows are made."""

    folder: Path
    token: str
    pairs: tuple[Pair, ...]
    measured: str
    measure: tuple[Measure, ...]
    at: str
    threshold: float | None
    halvings: int
    keep_runs: bool = False
    name: str = field(default="")

    def __post_init__(self) -> None:
        keys = json.dumps([self.measured, [pair.key for pair in self.pairs]])
        object.__setattr__(self, "name", hashlib.sha256(keys.encode()).hexdigest()[:20])

    @property
    def cost(self) -> float:
        """How long it takes, in weights times steps."""
        first = self.pairs[0].experiment
        return len(self.pairs) * first.steps * sum(float(np.prod(layer.weight)) for layer in first.network.layers)

    def run(self) -> Outcome:
        """Train, measure and commit; whatever fails is told, so that no other task is stopped."""
        try:
            return self._run(SweepFolder(self.folder))
        except Exception as error:
            return Outcome(0, tuple((str(pair), _said(error)) for pair in self.pairs))

    def _run(self, folder: SweepFolder) -> Outcome:
        folder.begin(self.name)
        given = [(pair.experiment, pair.seed) for pair in self.pairs]
        runs = self.folder / "runs" if self.keep_runs else None
        if self.halvings:
            from ..training.halving import StillRising, train_descending

            with warnings.catch_warnings(action="ignore", category=StillRising):  # a column tells it
                trajectories = train_descending(given, most=self.halvings, out=runs)
        else:
            trajectories = train_pairs(given, out=runs)
        rows, failed, done = [], [], 0
        about = self._about()
        for pair, trajectory in zip(self.pairs, trajectories, strict=True):
            try:
                own = self._rows(pair, trajectory)
            except Exception as error:  # a user's measure fails in any way
                failed.append((str(pair), _said(error)))
                continue
            rows += [row | about for row in own]
            done += 1
        if rows and not folder.commit(self.name, rows, self.token):
            return Outcome(0, stale=True)
        folder.end(self.name)
        return Outcome(done, tuple(failed))

    def _about(self) -> dict[str, Any]:
        told = versions()
        return {
            "measured": self.measured,
            "version": told["condensation"],
            "jax": told.get("jax", ""),
            "device": device_name(),
            "host": socket.gethostname(),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }

    def _rows(self, pair: Pair, trajectory: Trajectory) -> list[dict[str, Any]]:
        """The rows of a pair: where it was measured, what was found, and what is needed to run it again."""
        trained = trajectory.experiment
        diverged = next(iter(trajectory.diverged.values()), None)
        common = dict(pair.coordinates) | {
            "seed_data": pair.seed.data,
            "seed_start": pair.seed.start,
            "fingerprint": pair.fingerprint,
            "experiment": SweepFolder(self.folder).describe(pair.experiment),
            "diverged": -1 if diverged is None else diverged,
            "loss_first": float(trajectory.loss[0, 0]),
            "seconds": trajectory.seconds,
        }
        if self.halvings:
            from ..training.halving import rises

            common |= {
                "learning_rate": float(getattr(trained.optimizer, "learning_rate", np.nan)),
                "halvings": round(np.log2(trained.steps / pair.experiment.steps)),
                "rising": bool(rises(trajectory)),
            }
        rows = []
        for step in self._steps(trajectory):
            alive = diverged is None or step < diverged
            found = measure_step(trajectory, step, self.measure, self.threshold) if alive else {}
            place = np.searchsorted(trajectory.recorded, step)
            curves = {n: float(trajectory.curves[n][0, place]) for n in CURVES if n in trajectory.curves}
            rows.append(common | {"step": step} | curves | found)
        return rows

    def _steps(self, trajectory: Trajectory) -> list[int]:
        """The saved steps that get a row."""
        saved = trajectory.saved.tolist()
        if self.at == "saved":
            return saved
        if self.at == "end":
            return saved[-1:]
        losses = trajectory.loss[0, np.searchsorted(trajectory.recorded, saved)]
        left = np.flatnonzero(losses < INITIAL * losses[0])  # NaN is not below: a diverged seed has no end of it
        return [saved[max(int(left[0]) - 1, 0)] if len(left) else saved[-1]]


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
