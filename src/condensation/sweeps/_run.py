"""Run a sweep: rounds of tasks over what is missing, on any backend, until every cell has its rows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .._writing import make_folder
from ..errors import InputError, check_whole
from ..experiment import Experiment
from ..seeds import Seed
from ..training._need import networks_that_fit
from ..training._train import ensemble_key
from ._backends import Backend, Local, backend_of
from ._folder import SweepFolder, write_parquet
from ._grid import Sweep, cell_name
from ._lock import DriverLock
from ._measures import Measure
from ._notes import warn_of_notes
from ._rows import one_line
from ._table import SweepTable
from ._task import Pair, Task
from ._worker import pack

ROUNDS = 3
TASKS_A_WORKER = 8  # so that workers end at about the same time, and little is lost with one
BLOCK, GPU_BLOCK = 256, 16384  # networks in a task, at most
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SweepProgress:
    """How many pairs of cell and seed are done, of how many, and the new files since the last report."""

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
    backend: str | Backend = "local",
    n_jobs: int | None = None,
    keep_runs: bool = False,
) -> SweepTable:
    """Train an experiment over a grid and measure each cell; what is finished in ``out`` is not trained again.

    ``sweep(experiment, {"init.hidden.std": logspace(1e-4, 1, 9)}, "lines", seeds=5)``

    The other arguments are those of ``Sweep``, where ``grid`` is called ``axes``.

    Args:
        out: the folder of the sweep.
        backend: ``"local"``, or ``Local(...)``, ``Dask(...)``, ``Ray(...)``.
        n_jobs: workers on this machine.
        keep_runs: keep the trajectories, too.
    """
    if isinstance(backend, str):
        backend = backend_of(backend, n_jobs=n_jobs)
    elif n_jobs is not None:
        raise InputError(f"the backend {backend.name} has its own n_jobs: give it there")
    planned = Sweep(experiment, grid, fields, seeds, measure, at, threshold, backoffs)
    return run_sweep(planned, out, backend, keep_runs=keep_runs)


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    backend: Backend | None = None,
    *,
    keep_runs: bool = False,
    block: int | None = None,
    watcher: SweepReporter | None = None,
) -> SweepTable:
    """Run what is missing of a sweep in a folder, and give its table, which also names what failed.

    Rows that are missing and networks that diverged are told by the warnings ``IncompleteTable`` and ``SweepWarning``.

    Args:
        sweep: the experiments, and what is measured.
        out: the folder; one driver at a time.
        backend: where tasks run; by default processes of this machine.
        keep_runs: keep the trajectories, too.
        block: networks in a task; by default by their number, at most 256 (on a GPU 16384).
        watcher: called twice a second with the progress.
    """
    if block is not None:
        check_whole("block", block)
    sweep = replace(sweep)  # an opened one names its measures; they are imported now
    backend, folder = backend or Local(), SweepFolder(out)
    pairs = pairs_of(sweep)
    check_cells(sweep)
    make_folder(folder.path)
    with closing(DriverLock(folder.path, backend.name)) as lock:
        folder.make(sweep)
        with_arrays = {id(arrays): pair.experiment for pair in pairs for arrays in pair.experiment.arrays().values()}
        for experiment in with_arrays.values():
            folder.keep_arrays(experiment)
        task = Task(folder.path.resolve(), "", (), sweep.measuring, sweep.measuring.key, keep_runs)
        failed = _Driver(task, folder, backend, lock.token, block, watcher).run(pairs)
        table = SweepTable.read(sweep, folder, failed) if folder.files() else None
        if not table:
            raise InputError(f"no cell of the sweep could be trained: {next(iter(failed.values()), '')}")
        try:
            if failed:
                folder.keep_failed(failed)
            write_parquet(folder.path / "table.parquet", table.rows)
        except InputError as error:  # a full disk; the rows themselves are safe
            log.warning("%s", error)
    warn_of_notes(table)
    return table


def pairs_of(sweep: Sweep) -> list[Pair]:
    """All pairs of cell and seed, each experiment once."""
    cells = {cell.fingerprint: cell for cell in reversed([*sweep.cells()])}  # of equal experiments the first one
    return [Pair(*cell, seed) for cell in reversed(cells.values()) for seed in sweep.seeds]


def check_cells(sweep: Sweep) -> None:
    """Refuse a sweep with a cell that cannot be, or whose data do not fit its network; nothing is drawn for it."""
    for cell in sweep.cells():
        try:
            cell.experiment.check_data()
        except InputError as error:
            raise InputError(f"{cell_name(cell.coordinates)} cannot be trained: {error}") from error


@dataclass
class _Driver:
    """Runs rounds of tasks over the pairs that have no rows yet."""

    task: Task  # without a round and pairs: what all tasks share
    folder: SweepFolder
    backend: Backend
    token: str
    block: int | None
    watcher: SweepReporter | None

    def run(self, pairs: list[Pair]) -> dict[str, str]:
        """Run the rounds; why pairs are still missing, by pair."""
        measured = self.task.measured
        reasons: dict[str, str] = {}
        for turn in range(ROUNDS):
            name, alone = f"{self.token}-{turn}", turn == ROUNDS - 1  # at last alone: none is lost with another
            lost = self.folder.open_round(name)
            done = self.folder.done(measured)
            missing = [pair for pair in pairs if pair.key not in done]
            if not missing:
                break
            self.block = _block(missing, self.backend, self.block)
            size = 1 if alone else max(1, self.block // 4**turn)
            new = self._tasks(name, size, [pair for pair in missing if pair.key not in lost])
            again = self._tasks(name, size, [pair for pair in missing if pair.key in lost])
            prefix, counts = f"round {turn + 1}: " if turn else "", (len(missing), len(pairs), len(new) + len(again))
            log.info("%s%d of %d networks to train, in %d tasks on %s", prefix, *counts, self.backend.name)
            with _reports(self.folder, len(pairs) - len(missing), len(pairs), self.watcher):
                for tasks in (new, *([task] for task in again)) if alone else (new + again,):
                    reasons |= self._run(name, tasks)
        self.folder.close_rounds()
        done = self.folder.done(measured)
        return {str(pair): reasons.get(str(pair), "its worker was lost") for pair in pairs if pair.key not in done}

    def _tasks(self, round: str, size: int, pairs: list[Pair]) -> list[Task]:
        """Cut pairs into tasks: those that train as one ensemble together, long tasks first."""
        experiments = {id(pair.experiment): pair.experiment for pair in pairs}
        numbers: dict[Any, int] = {}
        number = {own: numbers.setdefault(ensemble_key(one), len(numbers)) for own, one in experiments.items()}
        groups: dict[int, list[Pair]] = {}
        for pair in pairs:
            groups.setdefault(number[id(pair.experiment)], []).append(pair)
        tasks = [
            replace(self.task, round=round, pairs=tuple(group[k : k + size]))
            for group in groups.values()
            for k in range(0, len(group), size)
        ]
        return sorted(tasks, key=lambda task: -task.cost)

    def _run(self, round: str, tasks: list[Task]) -> dict[str, str]:
        """Begin each task once, also when the backend breaks down; why pairs failed or were lost, by pair."""
        reasons: dict[str, str] = {}
        while tasks:
            try:
                outcomes = self.backend.run(pack(task, task.folder) for task in tasks)
            except InputError:
                raise
            except Exception as error:  # a lost worker, a lost scheduler: each backend raises its own errors
                if (stopped := _interruption(error)) is not None:
                    raise stopped from error
                log.warning("%s broke down: %s", self.backend.name, one_line(error))
                begun = self.folder.begun(round)
                left = [task for task in tasks if task.name not in begun]
                tasks, lost = ([], tasks) if len(left) == len(tasks) else (left, [t for t in tasks if t.name in begun])
                reasons |= {str(pair): one_line(error) for task in lost for pair in task.pairs}
                continue
            for task, outcome in zip(tasks, outcomes, strict=True):
                if outcome.lost:
                    log.warning("a worker was lost: %s", outcome.lost)
                if outcome.stale:
                    raise InputError(f"the sweep in {self.folder.path} was taken over by another driver")
                reasons |= {str(pair): outcome.lost for pair in task.pairs} if outcome.lost else dict(outcome.failed)
            tasks = []
        return reasons


def _block(pairs: list[Pair], backend: Backend, given: int | None) -> int:
    """Networks in a task, so that each worker gets several, and those of this machine have memory for them."""
    local = isinstance(backend, Local)
    several = given or (GPU_BLOCK if backend.on_gpus() else BLOCK)
    if given is None and not (local and several == GPU_BLOCK):
        several = max(1, min(several, -(-len(pairs) // (backend.workers() * TASKS_A_WORKER))))
    if not local:
        return several
    experiments = {id(pair.experiment): pair.experiment for pair in pairs}
    most = networks_that_fit(experiments.values(), min(backend.workers(), len(pairs))) or several
    if given is not None and most < min(given, len(pairs)):
        raise InputError(f"tasks of {given} networks do not fit into memory: {most} would (block)")
    return min(several, most)


def _interruption(error: BaseException) -> KeyboardInterrupt | None:
    """The signal that an error hides: a library that is stopped while it starts a process may raise its own."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__cause__ or seen.__context__
    return seen


@contextmanager
def _reports(folder: SweepFolder, done: int, total: int, watcher: SweepReporter | None) -> Iterator[None]:
    """Report twice a second what the folder holds: this works with every backend."""
    if watcher is None:
        yield
        return
    seen, stop = set(folder.files()), threading.Event()
    watcher(SweepProgress(done, total, tuple(seen)))

    def report() -> None:
        nonlocal done
        new = [path for path in folder.files() if path not in seen]
        seen.update(new)
        done += sum(int(path.name.split("-")[0]) for path in new)
        watcher(SweepProgress(min(done, total), total, tuple(new)))

    def repeat() -> None:
        while not stop.wait(0.5):
            report()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        report()
