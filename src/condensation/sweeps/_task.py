"""A task: pairs of cell and seed that are trained together, measured, and committed as one Parquet file."""

import hashlib
import json
import os
import socket
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from .._device import cores, device_name, on_cpu
from .._processes import Processes
from .._versions import versions
from ..errors import InputError
from ..experiment import Experiment
from ..runs import Trajectory, in_initial_stage
from ..seeds import Seed
from ..training import StillRising, train_pairs, train_with_backoff
from ..training._backoff import rises
from ._axes import CURVES, Label
from ._folder import RowKey, SweepFolder
from ._grid import pair_name
from ._measures import Measuring, Named, join_columns, measure_named
from ._texts import ExperimentTexts
from ._worker import measure, pack

MANY = 512  # pairs that are worth other processes
TableRows = list[dict[str, Any]]


class Pair(NamedTuple):
    """A cell and a seed: one network to train, and a row of the table (or one a saved step)."""

    coordinates: dict[str, Label]
    experiment: Experiment
    fingerprint: str
    seed: Seed

    @property
    def key(self) -> RowKey:
        """What its rows are found by: the experiment's fingerprint and both seeds."""
        return self.fingerprint, self.seed.data, self.seed.init

    def __str__(self) -> str:
        return pair_name(self.coordinates, self.seed)


class Outcome(NamedTuple):
    """What became of a task that did not simply commit its rows.

    Attributes:
        failed: why pairs were not committed, by pair.
        lost: why its worker did not finish it.
        stale: whether its round had been closed before it could commit.
    """

    failed: tuple[tuple[str, str], ...] = ()
    lost: str = ""
    stale: bool = False


@dataclass(frozen=True)
class Task:
    """Pairs to train together, and how their rows are made."""

    folder: Path
    round: str
    pairs: tuple[Pair, ...]
    measuring: Measuring
    measured: str  # the key of what is measured, where the sweep was begun
    keep_runs: bool = False

    @cached_property
    def name(self) -> str:
        """A hash of what it trains and measures."""
        keys = json.dumps([self.measured, [pair.key for pair in self.pairs]])
        return hashlib.sha256(keys.encode()).hexdigest()[:20]

    @property
    def cost(self) -> float:
        """How long it takes, as networks x steps x weights."""
        first = self.pairs[0].experiment
        return len(self.pairs) * first.steps * sum(float(np.prod(layer.weight)) for layer in first.network.layers)

    def run(self) -> Outcome:
        """Train, measure and commit. An error becomes part of the outcome, so that it stops no other task."""
        folder = SweepFolder(self.folder)
        try:
            if folder.has(self.name, len(self.pairs)):  # a worker was lost after its work was done
                return Outcome()
            if not folder.begin(self.round, self.name, [pair.key for pair in self.pairs]):
                return Outcome(stale=True)
            return self._run(folder)
        except Exception as error:
            return Outcome(tuple((str(pair), one_line(error)) for pair in self.pairs))
        finally:
            folder.end(self.round, self.name)

    def _check_sources(self) -> None:
        """Refuse a user's functions that are not here what they were where the sweep was begun."""
        first = self.pairs[0]  # all pairs of a task have the same activations
        if (self.measuring.key, first.experiment.fingerprint()) != (self.measured, first.fingerprint):
            raise InputError(
                "the worker has another source of a function that the sweep names: it was edited while the sweep ran, "
                "or this machine has another file; run the sweep again in a new process"
            )

    def _run(self, folder: SweepFolder) -> Outcome:
        self._check_sources()
        networks = [(pair.experiment, pair.seed) for pair in self.pairs]
        runs = self.folder / "runs" if self.keep_runs else None
        if self.measuring.backoffs:
            with warnings.catch_warnings(action="ignore", category=StillRising):  # the column `rising` says so
                trajectories = train_with_backoff(networks, backoffs=self.measuring.backoffs, out=runs)
        else:
            trajectories = train_pairs(networks, out=runs)
        rows, failed = [], []
        about = self._about()
        for pair, measured in zip(self.pairs, self._measure(trajectories), strict=True):
            if isinstance(measured, str):
                failed.append((str(pair), measured))
            else:
                rows += [row | about for row in measured]
        stale = bool(rows) and not folder.commit(self.round, self.name, rows)
        return Outcome(tuple(failed), stale=stale)

    def _measure(self, trajectories: list[Trajectory]) -> "list[TableRows | str]":
        """The rows of each pair, or why there are none. A user's measures are taken on all cores beside a GPU."""
        if on_cpu() or len(self.pairs) < MANY or not any(map(callable, self.measuring.measure)):
            return self.measure_here(trajectories)
        cuts = np.linspace(0, len(self.pairs), 4 * cores() + 1).astype(int)
        parts: Any = Parallel(n_jobs=cores(), backend=Processes())(
            delayed(measure)(pack(replace(self, pairs=self.pairs[a:b]), trajectories[a:b])) for a, b in pairwise(cuts)
        )
        return [rows for part in parts for rows in part]

    def measure_here(self, trajectories: list[Trajectory]) -> "list[TableRows | str]":
        """The rows of each pair, or why there are none; measured in this process."""
        steps = [self._steps(trajectory) for trajectory in trajectories]
        moments = [
            (trajectory, step if _is_alive(trajectory, step) else 0)  # what a seed that diverged has is known there
            for trajectory, (own, _) in zip(trajectories, steps, strict=True)
            for step in own
        ]
        named = iter(measure_named(moments, self.measuring.measure, self.measuring.threshold))
        rows: list[TableRows | str] = []
        texts = ExperimentTexts()
        for pair, trajectory, (own, ended) in zip(self.pairs, trajectories, steps, strict=True):
            measured = dict(zip(own, named, strict=False))
            try:
                rows.append(self._rows(pair, trajectory, measured, ended, texts.json(pair.experiment)))
            except Exception as error:  # a user's measure fails in any way
                rows.append(one_line(error))
        return rows

    def _about(self) -> dict[str, Any]:
        """The columns that say how, where and when the rows were made."""
        installed = _versions()
        return {
            "measured": self.measured,
            "version": installed["condensation"],
            "jax": installed.get("jax", ""),
            "device": device_name(),
            "host": socket.gethostname(),
            "process": os.getpid(),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S"),
        }

    def _rows(
        self, pair: Pair, trajectory: Trajectory, measured: dict[int, Named], ended: bool, experiment: str
    ) -> TableRows:
        """The rows of a pair: its coordinates, what was measured, and what is needed to train it again."""
        trained = trajectory.experiment
        diverged = next(iter(trajectory.diverged.values()), None)
        common = dict(pair.coordinates) | {
            "seed_data": pair.seed.data,
            "seed_init": pair.seed.init,
            "fingerprint": pair.fingerprint,
            "experiment": experiment,
            "diverged": np.nan if diverged is None else float(diverged),
            "loss_first": float(trajectory.loss[0, 0]),
            "seconds": trajectory.seconds,
        }
        if self.measuring.backoffs:
            common |= {
                "learning_rate": float(getattr(trained.optimizer, "learning_rate", np.nan)),
                "backoffs": round(np.log2(trained.steps / pair.experiment.steps)),
                "rising": bool(rises(trajectory)),
            }
        if self.measuring.at == "initial":
            common["stage_ended"] = ended
        rows = []
        for step, named in measured.items():
            columns = self._columns(trajectory, step, named)
            if clash := columns.keys() & pair.coordinates.keys():
                raise InputError(f"a measure gives {clash.pop()}, which is an axis: name it otherwise")
            k = np.searchsorted(trajectory.recorded, step)
            curves = {n: float(trajectory.curves[n][0, k]) for n in CURVES if n in trajectory.curves}
            rows.append(common | {"step": step} | curves | columns)
        return rows

    def _columns(self, trajectory: Trajectory, step: int, named: Named) -> dict[str, float]:
        """What is measured at a step; once a seed diverged, the same columns of NaN: all files have the same ones."""
        if _is_alive(trajectory, step):
            return join_columns(self.measuring.measure, named, trajectory, step)
        try:
            return dict.fromkeys(join_columns(self.measuring.measure, named, trajectory, 0), np.nan)
        except Exception:  # a user's measure that cannot be taken at step 0: then its columns are not known
            return {}

    def _steps(self, trajectory: Trajectory) -> tuple[list[int], bool]:
        """The saved steps that get a row, and whether the initial stage ended at a saved step."""
        saved = trajectory.saved.tolist()
        if self.measuring.at != "initial":
            return saved if self.measuring.at == "saved" else saved[-1:], False
        losses = trajectory.loss[0, np.searchsorted(trajectory.recorded, saved)]
        left = np.flatnonzero(~in_initial_stage(losses))  # none in a seed that diverged before
        return [saved[left[0] - 1 if len(left) else -1]], bool(len(left))


def _is_alive(trajectory: Trajectory, step: int) -> bool:
    """Whether the one seed of a trajectory had not diverged by a step."""
    return step < next(iter(trajectory.diverged.values()), step + 1)


_versions = cache(versions)  # reading them takes longer than a small task


def one_line(error: Exception) -> str:
    """The first line of an error, with its type unless it is written for the user."""
    first = str(error).strip().split("\n")[0]
    return first if isinstance(error, InputError) else f"{type(error).__name__}: {first}"
