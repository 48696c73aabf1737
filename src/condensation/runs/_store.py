"""Runs on disk: a folder with a description and files of seeds.

    run.json                    what was run (an experiment, or what was watched), fingerprint, versions, seeds, times
    data0-init0.safetensors     weights and curves of a seed; while it is trained, also its state
    seeds-DIGEST.safetensors    the same of several seeds, which its header names: those that were finished within
                                some seconds, or are trained as one batch
    data.safetensors            a user's arrays, if the experiment has them;
    test.safetensors            held-out ones

The folder of an experiment's run is named by the experiment's fingerprint; that of a watched run by its user, and it
holds one seed. A finished seed keeps the state of its training where that is small, so that a longer training goes on
from there (``_longer.py``). Every file is written under another name and then renamed: it is whole or not there. Each
carries a checksum, which is checked when it is read. No pickle.
"""

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

from .._files import read_sealed_json
from .._functions import opening
from .._locks import locked
from .._serialization import check_format
from ..activations import label
from ..errors import Damaged, InputError
from ..experiment import Experiment
from ..networks import Dense
from ..seeds import Seed
from ._folder import RunFolder, warn_of_damage
from ._longer import lengthened, of_one_stem, stem
from ._run import Checkpoint, listed
from ._seed_file import check_record, listed_seeds
from ._trajectory import Trajectory, collect
from ._watched import Watched
from ._watched_run import SEED, WatchedRun, collect_watched


def run_folder(out: str | Path, experiment: Experiment) -> Path:
    """The folder of an experiment's run in a folder of runs: the first 16 digits of its fingerprint."""
    return Path(out) / experiment.fingerprint()[:16]


class UnfinishedSeeds(UserWarning):
    """A run was loaded without seeds whose training was interrupted, or still goes on."""


class ExperimentFolder(RunFolder):
    """The folder of an experiment's run."""

    kind: ClassVar[Literal["experiment"]] = "experiment"
    source: Experiment

    @classmethod
    def make(cls, out: str | Path, experiment: Experiment) -> "ExperimentFolder":
        """The run of an experiment in a folder of runs, made if it is not there."""
        run = cls(run_folder(out, experiment), experiment)
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            there = (run.path / "run.json").exists()
            with locked(run.path) as alone:
                lefts = [*run.path.glob(".*.safetensors.*.part"), *run.path.glob(".run.json.*.part")]
                for left in lefts if alone else ():
                    left.unlink(missing_ok=True)  # of a process that was killed while it wrote
        except OSError as error:
            raise InputError(f"the folder {run.path} cannot be made: {error.strerror}") from error
        try:
            about = read_sealed_json(run.path / "run.json") if there else {}
        except Damaged as error:
            warn_of_damage(error)
            there, about = False, {}
        if not there:
            with locked(run.path):
                run.describe()
            return run
        check_format(f"run {run.path}", about.get("format"))
        if about.get("fingerprint") != run.fingerprint:
            raise InputError(f"the folder {run.path} holds the run of another experiment")
        return run

    def read(self, path: Path) -> dict[Seed, Checkpoint]:
        """Where each seed of a file is; what training this experiment cannot have left is refused."""
        checkpoints = super().read(path)
        for checkpoint in checkpoints.values():
            if checkpoint.finished:
                check_record(path, self.source, checkpoint.record)
        return checkpoints

    def from_shorter(self, wanted: set[Seed]) -> dict[Seed, Checkpoint]:
        """Where seeds are that a shorter training of the same experiment has finished; the longest one counts."""
        found: dict[Seed, Checkpoint] = {}
        if not wanted:
            return found
        runs = []
        for path in of_one_stem(self.path, self.source):
            with suppress(InputError):  # a run that is damaged, or of another version, is none to go on from
                runs.append(open_run(path))
        for run in sorted(runs, key=lambda run: -getattr(run.source, "steps", 0)):
            if not isinstance(run, ExperimentFolder) or stem(run.source) != stem(self.source):
                continue
            with suppress(InputError):
                for seed, checkpoint in run.checkpoints(wanted - found.keys()).items():
                    longer = lengthened(checkpoint, run.source, self.source) if seed in wanted - found.keys() else None
                    found |= {} if longer is None else {seed: longer}
        return found

    def load(self) -> Trajectory:
        """The trajectory of all finished seeds; a warning names the others, and one that is gone is an error."""
        named = self.listed()  # before the files: a process that trains writes a seed's file first
        checkpoints = self.checkpoints()
        records = {seed: checkpoint.record for seed, checkpoint in checkpoints.items() if checkpoint.finished}
        for seed in named:
            if seed not in records:
                raise Damaged(f"{seed} was finished in {self.path}, and its file is gone: train the experiment again")
        if not records:
            raise self.unfinished()
        if left_out := [f"{seed.data}-{seed.init}" for seed in checkpoints if seed not in records]:
            warnings.warn(
                f"{len(left_out)} of {len(checkpoints)} seeds in {self.path} are not finished, and are left out: "
                f"{listed(left_out)}; train the experiment again to finish them",
                UnfinishedSeeds,
                stacklevel=3,
            )
        return collect(self.source, tuple(records), list(records.values()))

    def headline(self) -> dict[str, str]:
        """The stem, by which longer trainings find this run."""
        return super().headline() | {"stem": stem(self.source)}

    def listed(self) -> dict[Seed, dict[str, Any]]:
        """The finished seeds of run.json, and what it says of each."""
        return listed_seeds(self.path / "run.json")

    def title(self, name: str) -> str:
        """Network and optimizer beside the run's name, which is a fingerprint."""
        network = self.source.network
        shape = "-".join(map(str, network.widths)) if isinstance(network, Dense) else type(network).__name__
        activations = ", ".join(dict.fromkeys(label(activation) for activation in network.activations))
        return f"{shape}, {activations}, {type(self.source.optimizer).__name__} ({name[:6]})"


class WatchedFolder(RunFolder):
    """The folder of a watched run."""

    kind: ClassVar[Literal["watched"]] = "watched"
    source: Watched

    def load(self) -> WatchedRun:
        """The run as far as it was written, finished or not."""
        path = self.file_of([SEED])
        if not path.exists():
            raise self.unfinished()
        checkpoints = self.read(path)
        try:
            return collect_watched(self.source, checkpoints[SEED])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{path} is not the file of a watched run: {error!r}") from error

    def title(self, name: str) -> str:
        """The model's class beside the run's name."""
        return f"{self.source.model}, watched ({name})"


def open_run(path: str | Path, trust: bool = False) -> ExperimentFolder | WatchedFolder:
    """The run in a folder, as its run.json describes it; ``trust`` as in ``load_run``."""
    path = Path(path)
    about = read_sealed_json(path / "run.json")
    check_format(f"run {path}", about.get("format"))
    if "fingerprint" not in about or not {"experiment", "watched"} & about.keys():
        raise InputError(f"{path / 'run.json'} is not the description of a run")
    if "watched" in about:
        run, noun = WatchedFolder(path, Watched.from_plain(about["watched"])), "watched run"
    else:
        with opening(trust):
            experiment = Experiment.from_plain(about["experiment"], path)
        run, noun = ExperimentFolder(path, experiment), "experiment"
    if run.fingerprint != about["fingerprint"]:
        raise InputError(
            f"the {noun} in {path / 'run.json'} is not the one that was run: the file was changed, or the source of a "
            "function that it names"
        )
    return run


def load_run(path: str | Path, trust: bool = False) -> Trajectory | WatchedRun:
    """The trajectory of all finished seeds in a run's folder; a watched run also while it grows.

    ``UnfinishedSeeds`` warns of seeds that are left out.

    Args:
        path: the folder.
        trust: import the modules of functions that the run names. By default those of modules that are imported
            already are found, and others refused: opening a run runs no code.
    """
    return open_run(path, trust).load()
