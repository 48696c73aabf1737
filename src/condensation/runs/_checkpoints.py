"""Keeps the members of a training in run folders while they are trained.

Seeds that are finished within some seconds go into one file: a run of many small networks has few files. What is
unfinished is kept by those that are trained together, so that a batch is one file.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .._locks import locked
from ..experiment import Experiment
from ..seeds import Seed
from ._run import Checkpoint
from ._store import ExperimentFolder

WAIT = 2.0  # seconds that a finished seed waits for others that go into its file
MOST_BYTES = 64 * 2**20  # of finished seeds that wait


class RunCheckpoints:
    """Keeps the members of a training, pairs of experiment and seed, in run folders; threads may share it."""

    def __init__(self, out: str | Path, pairs: Sequence[tuple[Experiment, Seed]]) -> None:
        experiments = {id(experiment): experiment for experiment, _ in pairs}
        self.folders = {key: ExperimentFolder.make(out, experiment) for key, experiment in experiments.items()}
        self.places = [(id(experiment), seed) for experiment, seed in pairs]
        self._finished: dict[int, dict[Seed, Checkpoint]] = {key: {} for key in self.folders}
        self._bytes, self._since = 0, 0.0  # of what waits, and since when
        self._lock = threading.Lock()

    def load(self) -> dict[int, Checkpoint]:
        """What was kept, by member. Of a damaged file the checkpoint before it, or nothing."""
        wanted: dict[int, set[Seed]] = {key: set() for key in self.folders}
        for key, seed in self.places:
            wanted[key].add(seed)
        there = {}
        for key, folder in self.folders.items():
            with locked(folder.path):
                folder.mend()
            there[key] = folder.checkpoints(wanted[key])
            there[key] |= folder.from_shorter(wanted[key] - there[key].keys())
        return {k: there[key][seed] for k, (key, seed) in enumerate(self.places) if seed in there[key]}

    def keep(self, checkpoints: Mapping[int, Checkpoint]) -> None:
        """Keep where some members are, which are all finished or are trained together."""
        of_folder: dict[int, dict[Seed, Checkpoint]] = {}
        for member, checkpoint in checkpoints.items():
            key, seed = self.places[member]
            of_folder.setdefault(key, {})[seed] = checkpoint
        for key, own in of_folder.items():
            if next(iter(own.values())).finished:
                self._gather(key, own)
            else:
                self._write(key, own)
        if self._bytes > MOST_BYTES or (self._bytes and time.monotonic() - self._since > WAIT):
            self.flush()

    def _gather(self, key: int, finished: Mapping[Seed, Checkpoint]) -> None:
        with self._lock:
            if not self._bytes:
                self._since = time.monotonic()
            self._finished[key].update(finished)
            self._bytes += sum(checkpoint.nbytes for checkpoint in finished.values())

    def flush(self) -> None:
        """Write the finished seeds that wait."""
        with self._lock:
            waiting, self._finished = self._finished, {key: {} for key in self.folders}
            self._bytes = 0
        for key, finished in waiting.items():
            if finished:
                self._write(key, finished)

    def _write(self, key: int, checkpoints: Mapping[Seed, Checkpoint]) -> None:
        with locked(self.folders[key].path):
            self.folders[key].write(checkpoints)

    def close(self) -> None:
        """Write what waits, and enter in each run.json which seeds are finished."""
        self.flush()
        for folder in self.folders.values():
            with locked(folder.path):
                folder.describe()
