"""The lab: trains what recipes ask for, keeps the runs, so that figures share them, and remembers what was said."""

import dataclasses
import shutil
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..data import Images
from ..data._sources import load
from ..errors import InputError
from ..experiment import Experiment
from ..runs import RunFolder, Trajectory
from ..sweeps import Local, Sweep, SweepTable, run_sweep
from ..sweeps._run import SweepProgress
from ..training import Progress, Reporter, train
from .variant import NotRun, Variant

Scale = Literal["quick", "paper"]
SCALES = ("quick", "paper")
SEEDS = {"resnet": {"quick": 3, "paper": 1}, "conv": {"quick": 3, "paper": 5}}  # of other networks ten


class Lab:
    """What a recipe is given to work with.

    Attributes:
        folder: where runs are kept; a run that is there is not trained again.
        scale: ``"quick"`` or ``"paper"``.
        seeds: how many; by default ten, fewer of convolutional networks (``SEEDS``).
        variant: what differs from the captioned settings.
        force: train also what is there already.
        notes: warnings of the trainings, each once.
        used: the folders of the runs that were asked for, by name.
        missing: the reasons why some could not be trained, by name.
        trained: the runs and their warnings by fingerprint; the labs of one job share them.
    """

    def __init__(
        self,
        folder: Path,
        scale: str = "quick",
        seeds: int | None = None,
        variant: Variant | None = None,
        *,
        force: bool = False,
        reporter: Reporter | None = None,
        trained: dict[str, tuple[Trajectory, list[str]]] | None = None,
    ) -> None:
        self.folder, self.scale, self.seeds = folder, scale, seeds
        self.variant = variant or Variant()
        self.force, self.reporter = force, reporter
        self.notes: list[str] = []
        self.used: dict[str, Path] = {}
        self.missing: dict[str, str] = {}
        self.trained = {} if trained is None else trained

    def seeds_of(self, experiment: Experiment) -> int:
        """How many seeds an experiment is trained for."""
        return self.seeds or SEEDS.get(experiment.network.kind, {}).get(self.scale, 10)

    def train(self, name: str, experiment: Experiment, variant: Variant | None = None) -> Trajectory:
        """The run of an experiment for all seeds, changed by the lab's variant or by the one that is given."""
        changed = (self.variant if variant is None else variant).apply(experiment)
        for data in (changed.data, changed.test):
            if isinstance(data, Images):
                require(data)
        folder = RunFolder(self.folder / changed.fingerprint()[:16], changed).path
        self.used[name] = folder
        if changed.fingerprint() not in self.trained:
            if self.force:
                shutil.rmtree(folder, ignore_errors=True)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run = train(changed, self.seeds_of(changed), out=self.folder, progress=self.reporter or False)
            said = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
            self.trained[changed.fingerprint()] = run, said
        run, said = self.trained[changed.fingerprint()]
        self.notes += [note for text in said if (note := f"{name}: {text}") not in self.notes]
        return run

    def sweep(self, name: str, sweep: Sweep) -> SweepTable:
        """The table of a sweep, its folder beside those of the runs."""
        folder = self.folder.parent / "sweeps" / name
        self.used[name] = folder
        if self.force:
            shutil.rmtree(folder, ignore_errors=True)
        asked = dataclasses.replace(sweep, seeds=self.seeds) if self.seeds else sweep
        began = time.perf_counter()

        def watch(state: SweepProgress) -> None:
            assert self.reporter is not None
            passed = time.perf_counter() - began
            left = passed * (state.total - state.done) / max(state.done, 1)
            self.reporter(Progress(state.done, state.total, float("nan"), passed, left))

        table = run_sweep(asked, folder, Local(1), watcher=watch if self.reporter else None)
        self.notes += [f"{name}: {cell}: {reason}" for cell, reason in table.failed.items()]
        return table

    def gather(self, asked: Mapping[str, Experiment] | Mapping[str, Sweep]) -> dict[str, Any]:
        """The runs of experiments and tables of sweeps; why one cannot be had is noted, and an error where none can."""
        runs = {}
        for name, one in asked.items():
            try:
                runs[name] = self.sweep(name, one) if isinstance(one, Sweep) else self.train(name, one)
            except NotRun as error:
                self.missing[name] = str(error)
        if asked and not runs:
            raise NotRun("; ".join(dict.fromkeys(self.missing.values())))
        return runs


def require(*images: Images) -> None:
    """Say that a figure is not run where its images cannot be had, and why."""
    for one in images:
        try:
            load(one.name)
        except InputError as error:
            raise NotRun(str(error)) from error


def untrained(run: Trajectory | SweepTable) -> Trajectory | SweepTable:
    """The same as if nothing had moved: the start at every saved step, the first loss at every recorded one."""
    if isinstance(run, SweepTable):
        return run.untrained()
    return dataclasses.replace(
        run,
        parameters={name: np.broadcast_to(value[:, :1], value.shape) for name, value in run.parameters.items()},
        curves={name: np.broadcast_to(curve[:, :1], curve.shape) for name, curve in run.curves.items()},
        diverged={},
    )
