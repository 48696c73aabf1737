"""Run a sweep: rounds of tasks over what is missing, on whatever engine, until every cell has its rows."""

import logging
import pickle
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..device import on_cpu
from ..errors import InputError, check_whole
from ..experiment import Experiment
from ..files import write_whole
from ..seeds import Seed
from ..training.train import ensemble_key
from .engines import Engine, Local, engine_of
from .folder import SweepFolder, as_parquet
from .grid import Sweep
from .lock import DriverLock
from .measures import Measure
from .table import SweepTable
from .task import Pair, Task

ROUNDS = 3
TASKS_A_WORKER = 8  # so that workers end at about the same time, and little is lost with one
BLOCK, GPU_BLOCK = 256, 16384  # networks in a task, at most
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class State:
    """How far a sweep is: pairs of cell and seed that are done, of how many, and new files since the last time."""

    done: int
    total: int
    new: tuple[Path, ...]


Watcher = Callable[[State], None]


def sweep(
    experiment: Experiment,
    grid: Mapping[str, Iterable[Any]],
    measure: Measure | Sequence[Measure] = ("lines", "change"),
    *,
    fields: Mapping[str, str] | None = None,
    seeds: int | Iterable[int | Seed] = 1,
    at: str = "end",
    threshold: float | None = None,
    halvings: int = 0,
    out: str | Path = "sweep",
    on: str | Engine = "local",
    n_jobs: int | None = None,
    keep_runs: bool = False,
) -> SweepTable:
    """Train an experiment over a grid and measure each cell; what is finished in ``out`` is not trained again.

    ``sweep(experiment, {"start.hidden.std": logspace(1e-4, 1, 9)}, "lines", seeds=5)``

    Args:
        experiment: the base; each cell changes some of its fields.
        grid: values by axis: a dotted path is a field, another name a variable of the formulas in ``fields``.
        measure: what is measured, by name (``lines``, ``change``, ``share``, ``rank``, ``cosine``) or by a function of
            a trajectory of one seed and a step, found by import.
        fields: formulas for fields, ``{"network.widths.1": "m"}``.
        seeds: how many, or which.
        at: measure at the ``"end"``, at the end of the ``"initial"`` stage, or at each ``"saved"`` step.
        threshold: the cosine that decides which units are of one line.
        halvings: halve the learning rate and start again where the loss rises, at most so often.
        out: the folder of the sweep.
        on: ``"local"``, or an engine (``Local``, ``Dask``, ``Ray``).
        n_jobs: workers on this machine.
        keep_runs: keep the trajectories, too.
    """
    asked = Sweep(experiment, grid, fields or {}, seeds, measure, at, threshold, halvings)  # type: ignore[arg-type]
    engine = engine_of(on, n_jobs=n_jobs) if isinstance(on, str) else on
    return run_sweep(asked, out, engine, keep_runs=keep_runs)


def run_sweep(
    sweep: Sweep,
    out: str | Path,
    engine: Engine | None = None,
    *,
    keep_runs: bool = False,
    block: int | None = None,
    watcher: Watcher | None = None,
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
    folder.make(sweep)
    for arrays in {id(one): pair.experiment for pair in pairs for one in pair.experiment.arrays().values()}.values():
        folder.keep_arrays(arrays)
    lock = DriverLock(folder.path, engine.name)
    try:
        failed = _Driver(sweep, folder, engine, lock.token, keep_runs, block, watcher).run(pairs)
        if not folder.files():
            raise InputError(f"no cell of the sweep could be trained: {next(iter(failed.values()), '')}")
        table = SweepTable.read(sweep, folder, failed)
        write_whole(folder.path / "table.parquet", as_parquet(table.rows))
    finally:
        lock.close()
    return table


def pairs_of(sweep: Sweep) -> list[Pair]:
    """All pairs of cell and seed, each experiment once."""
    seen, found = set(), []
    for cell in sweep.cells():
        key = cell.experiment.fingerprint()
        if key not in seen:
            seen.add(key)
            found += [Pair(cell.coordinates, cell.experiment, key, seed) for seed in sweep.seeds]
    return found


@dataclass
class _Driver:
    sweep: Sweep
    folder: SweepFolder
    engine: Engine
    token: str
    keep_runs: bool
    block: int | None
    watcher: Watcher | None

    def run(self, pairs: list[Pair]) -> dict[str, str]:
        """Rounds over what is missing; why something still is, by cell."""
        measured = self.sweep.measured_key()
        reasons: dict[str, str] = {}
        for turn in range(ROUNDS):
            done = self.folder.done(measured)
            missing = [pair for pair in pairs if pair.key not in done]
            if not missing:
                return {}
            tasks = self._tasks(missing, measured, turn)
            log.info(
                "%s%d of %d networks to train, in %d tasks on %s",
                f"round {turn + 1}: " if turn else "",
                len(missing),
                len(pairs),
                len(tasks),
                self.engine.name,
            )
            with _Watch(self.folder, len(pairs) - len(missing), len(pairs), self.watcher):
                reasons = self._round(tasks)
        done = self.folder.done(measured)
        missing = [pair for pair in pairs if pair.key not in done]
        lost = reasons.pop("", "its worker was lost")
        return {str(pair): reasons.get(str(pair), lost) for pair in missing}

    def _tasks(self, missing: list[Pair], measured: str, turn: int) -> list[Task]:
        """Pairs of one ensemble together, long tasks first; later rounds: smaller ones, those lost before at last."""
        size = self.block = self.block or _block(len(missing), self.engine)
        size = 1 if turn == ROUNDS - 1 else max(1, size // 4**turn)
        groups: dict[Any, list[Pair]] = {}
        for pair in missing:
            groups.setdefault(ensemble_key(pair.experiment), []).append(pair)
        tasks = [
            Task(
                self.folder.path.resolve(),
                self.token,
                tuple(group[k : k + size]),
                measured,
                self.sweep.measure,
                self.sweep.at,
                self.sweep.threshold,
                self.sweep.halvings,
                self.keep_runs,
            )
            for group in groups.values()
            for k in range(0, len(group), size)
        ]
        begun = self.folder.begun()
        return sorted(tasks, key=lambda task: (task.name in begun, -task.cost))

    def _round(self, tasks: list[Task]) -> dict[str, str]:
        """One round; why pairs of it failed, by pair, and under no name why it was broken off."""
        try:
            outcomes = self.engine.run(pickle.dumps(task) for task in tasks)
        except InputError:
            raise
        except Exception as error:  # a lost worker, a lost scheduler: each engine has its own way to say so
            log.warning("a round was broken off: %s: %s", type(error).__name__, str(error).split("\n")[0])
            return {"": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        return {name: reason for outcome in outcomes for name, reason in outcome.failed}


def _block(count: int, engine: Engine) -> int:
    """Networks in a task, so that each worker gets several."""
    if isinstance(engine, Local) and not on_cpu():
        return GPU_BLOCK
    return max(1, min(BLOCK, -(-count // (engine.workers() * TASKS_A_WORKER))))


class _Watch:
    """Tells the watcher twice a second what the folder has: the same for every engine."""

    def __init__(self, folder: SweepFolder, done: int, total: int, watcher: Watcher | None) -> None:
        self.folder, self.done, self.total, self.watcher = folder, done, total, watcher
        self.seen = set(folder.files())
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> None:
        if self.watcher is not None:
            self.watcher(State(self.done, self.total, tuple(self.seen)))
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
        self.watcher(State(min(self.done, self.total), self.total, tuple(new)))
