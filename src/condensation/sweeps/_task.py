"""A task: pairs of cell and seed that are trained together, measured, and committed as one Parquet file."""

import hashlib
import json
import os
import socket
import time
import warnings
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from joblib import Parallel, delayed

from .._device import cores, device_name, on_cpu
from .._processes import Processes
from .._versions import versions
from ..errors import InputError
from ..experiment import Experiment
from ..runs import Trajectory
from ..seeds import Seed
from ..training import StillRising, train_pairs, train_with_backoff
from ._axes import Label
from ._folder import RowKey, SweepFolder
from ._grid import pair_name
from ._measures import Measuring
from ._rows import Rows, join_rows, measure_rows, one_line
from ._worker import measure, pack

MANY = 512  # pairs that are worth other processes


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
        rows = self._measure(trajectories)
        table = rows.table
        for name, value in self._about().items():
            table = table.append_column(name, pa.repeat(value, len(table)))
        stale = len(table) > 0 and not folder.commit(self.round, self.name, table)
        return Outcome(tuple((str(self.pairs[k]), reason) for k, reason in rows.failed.items()), stale=stale)

    def _measure(self, trajectories: list[Trajectory]) -> Rows:
        """The rows of all pairs. A user's measures are taken on all cores beside a GPU."""
        if on_cpu() or len(self.pairs) < MANY or not any(map(callable, self.measuring.measure)):
            return measure_rows(self.pairs, trajectories, self.measuring)
        cuts = np.linspace(0, len(self.pairs), 4 * cores() + 1).astype(int)
        parts: Any = Parallel(n_jobs=cores(), backend=Processes())(
            delayed(measure)(pack((self.pairs[a:b], trajectories[a:b], self.measuring), self.folder))
            for a, b in pairwise(cuts)
        )
        return join_rows(parts, np.diff(cuts).tolist())

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


_versions = cache(versions)  # reading them takes longer than a small task
