"""Run a sweep: rounds of tasks over what is missing, on whatever engine, until every cell has its rows."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._device import on_cpu
from .._files import make_folder, write_atomic
from ..errors import InputError, check_whole
from ..experiment import Experiment
from ..seeds import Seed
from ..training._train import ensemble_key
from ._backends import Backend, Local, backend_of
from ._folder import SweepFolder, as_parquet
from ._grid import Sweep
from ._lock import DriverLock
from ._measures import Measure
from ._table import SweepTable
from ._task import Pair, Task, said
from ._worker import pack

ROUNDS = 3
TASKS_A_WORKER = 8  # so that workers end at about the same time, and little is lost with one
BLOCK, GPU_BLOCK = 256, 16384  # networks in a task, at most
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is: pairs of cell and seed that are done, of how many, and new files since the last time."""

    done: int
    total: int
    new: tuple[Path, ...]


SweepReporter = Callable[[SweepProgress], None]


def sweep(
    experiment: Experiment,
    grid: Mapping[str, Iterable[Any]],
    measure: Measure | Sequence[Measure] = ("lines", "change"),
    *,
    fields: Mapping[str, str] | None = None,
    seeds: int | Iterable[int | Seed] = 1,
    at: str = "end",
    threshold: float | None = None,
    backoffs: int = 0,
    out: str | Path = "sweep",
    on: str | Backend = "local",
    n_jobs: int | None = None,
    keep_runs: bool = False,
) -> SweepTable:
    """Train an experiment over a grid and measure each cell; what is finished in ``out`` is not trained again.

    ``sweep(experiment, {"init.hidden.std": logspace(1e-4, 1, 9)}, "lines", seeds=5)``

    Args:
        experiment: the base; each cell changes some of its fields.
        grid: values by axis: a dotted path is a field, another name a variable of the formulas in ``fields``.
        measure: what is measured, by name (``lines``, ``change``, ``share``, ``rank``, ``cosine``) or by a function of
            a trajectory of one seed and a step, found by import.
        fields: formulas for fields, ``{"network.widths.1": "m"}``.
        seeds: how many, or which.
        at: measure at the ``"end"``, at the end of the ``"initial"`` stage, or at each ``"saved"`` step.
        threshold: the cosine that decides which units are of one line.
        backoffs: how often the learning rate may be halved, and training begun again, where the loss rises.
        out: the folder of the sweep.
        on: ``"local"``, or an engine (``Local``, ``Dask``, ``Ray``).
        n_jobs: workers on this machine.
        keep_runs: keep the trajectories, too.
    """
    asked = Sweep(experiment, grid, fields or {}, seeds, measure, at, threshold, backoffs)
    engine = backend_of(on, n_jobs=n_jobs) if isinstance(on, str) else on
    return run_sweep(asked, out, engine, keep_runs=keep_runs)


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    engine: Backend | None = None,
    *,
    keep_runs: bool = False,
    block: int | None = None,
    watcher: SweepReporter | None = None,
) -> SweepTable:
    """Run what is missing of a sweep in a folder, and give its table; what failed is named in it.

    Args:
        sweep: what is asked for.
        out: the folder; one driver at a time.
        engine: where tasks run; by default processes of this machine.
        keep_runs: keep the trajectories, too.
        block: networks in a task; by default by their number, at most 256 (on a GPU 16384).
        watcher: told now and then how far it is.
    """
    if block is not None:
        check_whole("block", block)
    engine, folder = engine or Local(), SweepFolder(out)
    pairs = pairs_of(sweep)
    make_folder(folder.path)
    lock = DriverLock(folder.path, engine.name)
    try:
        folder.make(sweep)
        users = {id(one): pair.experiment for pair in pairs for one in pair.experiment.arrays().values()}
        for experiment in users.values():
            folder.keep_arrays(experiment)
        failed = _Driver(sweep, folder, engine, lock.token, keep_runs, block, watcher).run(pairs)
        if not folder.files():
            raise InputError(f"no cell of the sweep could be trained: {next(iter(failed.values()), '')}")
        table = SweepTable.read(sweep, folder, failed)
        try:
            write_atomic(folder.path / "table.parquet", as_parquet(table.rows))
        except InputError as error:  # a full disk; the rows themselves are safe
            log.warning("%s", error)
    finally:
        lock.close()
    return table


def pairs_of(sweep: Sweep) -> list[Pair]:
    """All pairs of cell and seed, each experiment once."""
    seen, found = set(), []
    for cell in sweep.cells():
        if cell.fingerprint not in seen:
            seen.add(cell.fingerprint)
            found += [Pair(cell.coordinates, cell.experiment, cell.fingerprint, seed) for seed in sweep.seeds]
    return found


@dataclass
class _Driver:
    sweep: Sweep
    folder: SweepFolder
    engine: Backend
    token: str
    keep_runs: bool
    block: int | None
    watcher: SweepReporter | None

    def run(self, pairs: list[Pair]) -> dict[str, str]:
        """Rounds over what is missing; why something still is, by cell."""
        measured = self.sweep.measured_key()
        reasons: dict[str, str] = {}
        for turn in range(ROUNDS):
            name = f"{self.token}-{turn}"
            lost = self.folder.open_round(name)
            done = self.folder.done(measured)
            missing = [pair for pair in pairs if pair.key not in done]
            if not missing:
                break
            size = self.block = self.block or _block(len(missing), self.engine)
            size = 1 if turn == ROUNDS - 1 else max(1, size // 4**turn)
            fresh = self._tasks(name, measured, size, [pair for pair in missing if pair.key not in lost])
            again = self._tasks(name, measured, size, [pair for pair in missing if pair.key in lost])
            log.info(
                "%s%d of %d networks to train, in %d tasks on %s",
                f"round {turn + 1}: " if turn else "",
                len(missing),
                len(pairs),
                len(fresh) + len(again),
                self.engine.name,
            )
            alone = turn == ROUNDS - 1  # so that none is lost with another
            with _Watch(self.folder, len(pairs) - len(missing), len(pairs), self.watcher):
                for tasks in (fresh, *([task] for task in again)) if alone else (fresh + again,):
                    reasons |= self._run(name, tasks)
        self.folder.close_rounds()
        done = self.folder.done(measured)
        return {str(pair): reasons.get(str(pair), "its worker was lost") for pair in pairs if pair.key not in done}

    def _tasks(self, round: str, measured: str, size: int, pairs: list[Pair]) -> list[Task]:
        """Pairs of one ensemble together, long tasks first."""
        groups: dict[Any, list[Pair]] = {}
        for pair in pairs:
            groups.setdefault(ensemble_key(pair.experiment), []).append(pair)
        tasks = [
            Task(
                self.folder.path.resolve(),
                round,
                tuple(group[k : k + size]),
                measured,
                self.sweep.measure,
                self.sweep.at,
                self.sweep.threshold,
                self.sweep.backoffs,
                self.keep_runs,
            )
            for group in groups.values()
            for k in range(0, len(group), size)
        ]
        return sorted(tasks, key=lambda task: -task.cost)

    def _run(self, round: str, tasks: list[Task]) -> dict[str, str]:
        """Have each task begun once, whatever breaks down; why pairs failed or were lost, by pair."""
        reasons: dict[str, str] = {}
        while tasks:
            try:
                outcomes = self.engine.run(pack(task) for task in tasks)
            except InputError:
                raise
            except Exception as error:  # a lost worker, a lost scheduler: each engine has its own way to say so
                log.warning("%s broke down: %s", self.engine.name, said(error))
                begun = self.folder.begun(round)
                left = [task for task in tasks if task.name not in begun]
                tasks, lost = ([], tasks) if len(left) == len(tasks) else (left, [t for t in tasks if t.name in begun])
                reasons |= {str(pair): said(error) for task in lost for pair in task.pairs}
                continue
            for task, outcome in zip(tasks, outcomes, strict=True):
                if outcome.lost:
                    log.warning("a worker was lost: %s", outcome.lost)
                if outcome.stale:
                    raise InputError(f"the sweep in {self.folder.path} was taken over by another driver")
                reasons |= {str(pair): outcome.lost for pair in task.pairs} if outcome.lost else dict(outcome.failed)
            tasks = []
        return reasons


def _block(count: int, engine: Backend) -> int:
    """Networks in a task, so that each worker gets several."""
    if isinstance(engine, Local) and not on_cpu():
        return GPU_BLOCK
    return max(1, min(BLOCK, -(-count // (engine.workers() * TASKS_A_WORKER))))


class _Watch:
    """Tells the watcher twice a second what the folder has: the same for every engine."""

    def __init__(self, folder: SweepFolder, done: int, total: int, watcher: SweepReporter | None) -> None:
        self.folder, self.done, self.total, self.watcher = folder, done, total, watcher
        self.seen = set(folder.files())
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> None:
        if self.watcher is not None:
            self.watcher(SweepProgress(self.done, self.total, tuple(self.seen)))
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        if self.watcher is not None:
            self.stop.set()
            self.thread.join()
            self._look()

    def _loop(self) -> None:
        while not self.stop.wait(0.5):
            self._look()

    def _look(self) -> None:
        new = [path for path in self.folder.files() if path not in self.seen]
        self.seen.update(new)
        self.done += sum(int(path.name.split("-")[0]) for path in new)
        assert self.watcher is not None
        self.watcher(SweepProgress(min(self.done, self.total), self.total, tuple(new)))
