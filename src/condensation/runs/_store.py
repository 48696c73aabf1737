"""Runs on disk, by kind: that of an experiment, in a folder named by its fingerprint, and a watched one.

The folder of a watched run is named by its user; it holds one seed, and ``watched`` stands in run.json where
``experiment`` stands otherwise.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from .._files import read_json
from .._serialization import check_format
from ..activations import label
from ..errors import InputError
from ..experiment import Experiment
from ..networks import Dense
from ..seeds import Seed
from ._checkpoint import Checkpoint
from ._folder import RunFolder
from ._trajectory import Trajectory, collect
from ._watched import Watched
from ._watched_run import SEED, WatchedRun, collect_watched


def run_folder(out: str | Path, experiment: Experiment) -> Path:
    """The folder of an experiment's run in a folder of runs: the first 16 digits of its fingerprint."""
    return Path(out) / experiment.fingerprint()[:16]


class ExperimentFolder(RunFolder):
    """The folder of an experiment's run."""

    kind: ClassVar[Literal["experiment"]] = "experiment"

    def __init__(self, path: Path, experiment: Experiment) -> None:
        super().__init__(path, experiment)
        self.experiment = experiment

    @classmethod
    def make(cls, out: str | Path, experiment: Experiment) -> "ExperimentFolder":
        """The run of an experiment in a folder of runs, made if it is not there."""
        run = cls(run_folder(out, experiment), experiment)
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            there = (run.path / "run.json").exists()
        except OSError as error:
            raise InputError(f"the folder {run.path} cannot be made: {error.strerror}") from error
        if there:
            about = read_json(run.path / "run.json")
            check_format(f"run {run.path}", about.get("format"))
            if about.get("fingerprint") != run.fingerprint:
                raise InputError(f"the folder {run.path} holds the run of another experiment")
        else:
            run.describe()
        return run

    def load(self) -> Trajectory:
        """The trajectory of all finished seeds."""
        checkpoints = {seed: self.read(seed) for seed in self.seeds()}
        records = {seed: checkpoint.record for seed, checkpoint in checkpoints.items() if checkpoint.finished}
        if not records:
            raise self.unfinished()
        return collect(self.experiment, tuple(records), list(records.values()))

    def title(self, name: str) -> str:
        """Network and optimizer beside the run's name, which is a fingerprint."""
        network = self.experiment.network
        shape = "-".join(map(str, network.widths)) if isinstance(network, Dense) else type(network).__name__
        activations = ", ".join(dict.fromkeys(label(activation) for activation in network.activations))
        return f"{shape}, {activations}, {type(self.experiment.optimizer).__name__} ({name[:6]})"


class WatchedFolder(RunFolder):
    """The folder of a watched run."""

    kind: ClassVar[Literal["watched"]] = "watched"

    def __init__(self, path: Path, watched: Watched) -> None:
        super().__init__(path, watched)
        self.watched = watched

    def load(self) -> WatchedRun:
        """The run as far as it was written, finished or not."""
        if not self.file_of(SEED).exists():
            raise self.unfinished()
        return collect_watched(self.watched, self.read(SEED))

    def title(self, name: str) -> str:
        """The model's class beside the run's name."""
        return f"{self.watched.model}, watched ({name})"


def open_run(path: str | Path) -> ExperimentFolder | WatchedFolder:
    """The run in a folder, as its run.json describes it."""
    path = Path(path)
    about = read_json(path / "run.json")
    check_format(f"run {path}", about.get("format"))
    if "fingerprint" not in about or not {"experiment", "watched"} & about.keys():
        raise InputError(f"{path / 'run.json'} is not the description of a run")
    if "watched" in about:
        run, noun = WatchedFolder(path, Watched.from_plain(about["watched"])), "watched run"
    else:
        run, noun = ExperimentFolder(path, Experiment.from_plain(about["experiment"], path)), "experiment"
    if run.fingerprint != about["fingerprint"]:
        raise InputError(f"the {noun} in {path / 'run.json'} was changed: its fingerprint is another one")
    return run


def load_run(path: str | Path) -> Trajectory | WatchedRun:
    """The trajectory of all finished seeds in a run's folder; a watched run also while it grows."""
    return open_run(path).load()


class RunCheckpoints:
    """Keeps the members of a training, pairs of experiment and seed, in run folders."""

    def __init__(self, out: str | Path, pairs: Sequence[tuple[Experiment, Seed]]) -> None:
        experiments = {id(experiment): experiment for experiment, _ in pairs}
        self.folders = {key: ExperimentFolder.make(out, experiment) for key, experiment in experiments.items()}
        self.places = [(self.folders[id(experiment)], seed) for experiment, seed in pairs]

    def load(self, member: int) -> Checkpoint | None:
        """What was kept of a member, if anything was."""
        run, seed = self.places[member]
        return run.read(seed) if run.file_of(seed).exists() else None

    def keep(self, member: int, checkpoint: Checkpoint) -> None:
        """Keep where a member is; whole or not at all."""
        run, seed = self.places[member]
        run.write(seed, checkpoint)

    def close(self) -> None:
        """Enter in each run.json which seeds are finished."""
        for run in self.folders.values():
            run.describe()
