"""All that the figures of a report train, as one list of tasks: each once, on all cores, kept in the folder of runs."""

import logging
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from .._dependencies import digest
from .._device import cores, on_cpu
from .._files import read_sealed_json
from .._processes import Processes
from .._writing import write_atomic
from ..data import Images, Text
from ..data._sources import load
from ..errors import InputError
from ..experiment import Experiment
from ..optimizers import static_part
from ..runs import Trajectory, run_folder
from ..seeds import as_seeds
from ..sweeps import SweepTable
from ..training import Reporter, train
from ._variant import NotRun

SEEDS = {"resnet": {"quick": 3, "paper": 1}, "conv": {"quick": 3, "paper": 5}}  # of other networks ten
MOST_WORKERS = 4  # each uses the whole machine: a convolution's rounding depends on its number of threads
CODE = "code.txt"  # in a run's folder: the digest of the code that trained it
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """An experiment to be trained for a number of seeds, in the folder of runs."""

    experiment: Experiment
    seeds: int
    runs: Path

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return run_folder(self.runs, self.experiment)

    @property
    def finished(self) -> bool:
        """Whether all its seeds are trained."""
        try:
            trained = read_sealed_json(self.path / "run.json")["seeds"]
        except (InputError, KeyError):
            return False
        return {(seed["data"], seed["init"]) for seed in trained} >= {*as_seeds(self.seeds)}

    def prepare(self, force: bool = False) -> None:
        """Remove what other code has trained, or whatever is there."""
        file = self.path / CODE
        if force or not file.exists() or file.read_text() != training_code():
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True)
            write_atomic(file, training_code().encode())

    def run(self, reporter: Reporter | None = None) -> tuple[Trajectory, list[str]]:
        """Train what is not trained yet; the run, and the warnings that it gives, whenever it was trained."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = train(self.experiment, self.seeds, out=self.runs, progress=reporter or False)
        return run, [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


def training_of(experiment: Experiment, runs: Path, scale: str, seeds: int | None) -> Training:
    """The training of an experiment at a scale; ``NotRun`` where its images or its text cannot be had."""
    require(*(data for data in (experiment.data, experiment.test) if isinstance(data, Images | Text)))
    return Training(experiment, seed_count(experiment, scale, seeds), runs)


def seed_count(experiment: Experiment, scale: str, seeds: int | None = None) -> int:
    """How many seeds of an experiment are trained at a scale, if no other number is given."""
    return seeds or SEEDS.get(experiment.network.kind, {}).get(scale, 10)


def train_all(trainings: Sequence[Training], n_jobs: int | None = None) -> Iterator[Training]:
    """Train what is not finished as soon as a process is free, and give each back when it is.

    Those that one compiled program can train are one task, so that it is compiled in one process only.

    Args:
        trainings: each of another experiment.
        n_jobs: how many processes; as many as there are cores, at most four, if not given, and on a GPU this one alone.
            With one, nothing is trained here: a figure's runs are trained when they are asked for.
    """
    waiting = [training for training in trainings if not training.finished]
    yield from (training for training in trainings if training not in waiting)
    tasks = _by_program(waiting)
    workers = min(n_jobs or (min(cores(), MOST_WORKERS) if on_cpu() else 1), len(tasks))
    if workers < 2:
        yield from waiting
        return
    warnings.filterwarnings("ignore", "A worker stopped while some jobs")  # one that has grown is replaced, no harm
    pool: Any = Parallel(workers, Processes(), return_as="generator_unordered")
    left = dict(enumerate(tasks))
    try:
        for k in pool(delayed(_train)(k, task) for k, task in enumerate(tasks)):
            yield from left.pop(k)
    except TerminatedWorkerError as error:
        log.warning("a process that trained was lost, this one goes on alone: %s", str(error).split("\n")[0])
        yield from (training for task in left.values() for training in task)


def _by_program(trainings: Iterable[Training]) -> list[list[Training]]:
    """Trainings of one program together, in the order in which the first of them are asked for."""
    tasks: dict[str, list[Training]] = {}
    for training in trainings:
        own = training.experiment
        program = own.network, own.loss, static_part(own.optimizer), own.dtype, own.batch_size
        tasks.setdefault(repr(program), []).append(training)
    return list(tasks.values())


def _train(k: int, trainings: list[Training]) -> int:
    """Train in a process of its own; whatever fails there fails again, and is told, where the run is opened."""
    for training in trainings:
        try:
            training.run()
        except Exception:
            log.info("the training in %s failed", training.path)
    return k


@cache
def training_code() -> str:
    """A digest of the code that trains: what other code has trained is trained again."""
    return digest(["condensation.training._train"])


def require(*fetched: Images | Text) -> None:
    """Say that a figure is not run where its images or its text cannot be had, and why."""
    for chosen in fetched:
        try:
            load(chosen.name)
        except InputError as error:
            raise NotRun(str(error)) from error


def untrained(run: Trajectory | SweepTable) -> Trajectory | SweepTable:
    """A run in which nothing moves: the first weights at every saved step, the first loss at every recorded one."""
    if isinstance(run, SweepTable):
        return run.untrained()
    parameters, curves = (
        {name: np.broadcast_to(values[:, :1], values.shape) for name, values in each.items()}
        for each in (run.parameters, run.curves)
    )
    return replace(run, parameters=parameters, curves=curves, diverged={})
