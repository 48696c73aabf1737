"""Runs on disk: a folder with a description and a file for each seed.

    run.json                    what was run (an experiment, or what was watched), fingerprint, versions, seeds, times
    data0-init0.safetensors     weights, curves; while it runs, also its state
    data.safetensors            a user's arrays, if the experiment has them;
    test.safetensors            held-out ones

The folder of an experiment's run is named by the experiment's fingerprint; that of a watched run by its user, and it
holds one seed. Every file is written under another name and then renamed: it is whole or not there. No pickle.
"""

import json
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from safetensors.numpy import save

from .._files import read_json, read_tensors, write_atomic
from .._functions import opening
from .._serialization import FORMAT, check_format
from .._versions import versions
from ..activations import label
from ..errors import InputError
from ..experiment import Experiment
from ..networks import Dense
from ..seeds import Seed
from ._run import Checkpoint, Record, listed
from ._trajectory import Trajectory, collect
from ._watched import Watched
from ._watched_run import SEED, WatchedRun, collect_watched


def run_folder(out: str | Path, experiment: Experiment) -> Path:
    """The folder of an experiment's run in a folder of runs: the first 16 digits of its fingerprint."""
    return Path(out) / experiment.fingerprint()[:16]


class UnfinishedSeeds(UserWarning):
    """A run was loaded without seeds whose training was interrupted, or still goes on."""


class RunFolder:
    """The folder of a run: ``ExperimentFolder`` or ``WatchedFolder``."""

    kind: ClassVar[Any]  # the key in run.json, a literal in each kind of folder
    source: Any  # what was run: an Experiment or a Watched

    def __init__(self, path: Path, source: Experiment | Watched) -> None:
        self.path, self.source, self.fingerprint = path, source, source.fingerprint()

    def describe(self) -> None:
        """Write run.json: what was run, versions, and what the files of the seeds say."""
        plain = self.source.to_plain()
        for name, arrays in self.source.arrays().items():
            file = self.path / f"{name}.safetensors"
            if not file.exists():
                write_atomic(file, save({part: np.array(getattr(arrays, part), order="C") for part in ("x", "y")}))
            plain[name]["file"] = file.name
        seeds = []
        for seed in self.seeds():
            header = self.header(seed, tensors=False)[0]
            if header["finished"]:
                entry = {"seconds": header["seconds"], "diverged": header["diverged"]}
                seeds.append({"data": seed.data, "init": seed.init} | entry)
        about = {"format": FORMAT, "fingerprint": self.fingerprint, "versions": versions()}
        about |= {self.kind: plain, "seeds": seeds}
        write_atomic(self.path / "run.json", json.dumps(about, indent=1).encode())

    def file_of(self, seed: Seed) -> Path:
        """The file of a seed."""
        return self.path / f"data{seed.data}-init{seed.init}.safetensors"

    def seeds(self) -> list[Seed]:
        """All seeds that have a file, finished or not."""
        names = [re.fullmatch(r"data(\d+)-init(\d+)", path.stem) for path in self.path.glob("*.safetensors")]
        return sorted(Seed(int(name[1]), int(name[2])) for name in names if name)

    def write(self, seed: Seed, checkpoint: Checkpoint) -> None:
        """Write where a seed is."""
        record = checkpoint.record
        tensors = {f"weights/{name}": value for name, value in record.weights.items()}
        tensors |= {f"curves/{name}": value for name, value in record.curves.items()}
        tensors |= {f"state/{k:04}": value for k, value in enumerate(checkpoint.leaves)}
        about = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "finished": checkpoint.finished,
            "row": checkpoint.row,
            "offset": checkpoint.offset,
            "diverged": record.diverged,
            "seconds": record.seconds,
        }
        whole = {name: np.array(value, order="C") for name, value in tensors.items()}  # a number stays one
        write_atomic(self.file_of(seed), save(whole, {"condensation": json.dumps(about)}))

    def header(self, seed: Seed, tensors: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a seed's file says of itself, and its arrays if they are wanted."""
        path = self.file_of(seed)
        about, arrays = read_tensors(path, tensors)
        if "condensation" not in about:
            raise InputError(f"{path} was not written by condensation")
        try:
            header = json.loads(about["condensation"])
            version, fingerprint = header["format"], header["fingerprint"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} was not written by condensation: {error}") from error
        check_format(f"file {path}", version)
        if fingerprint != self.fingerprint:
            raise InputError(f"{path} belongs to another experiment")
        return header, arrays

    def read(self, seed: Seed) -> Checkpoint:
        """What was written of a seed."""
        header, tensors = self.header(seed)
        part = lambda prefix: {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}  # noqa: E731
        record = Record(part("weights/"), part("curves/"), header["diverged"], header["seconds"])
        leaves = [tensor for _, tensor in sorted(part("state/").items())]
        return Checkpoint(record, header["row"], header["offset"], leaves, header["finished"])

    def unfinished(self) -> InputError:
        """The error of a folder from which no run can be loaded yet."""
        return InputError(f"the run in {self.path} has no finished seed yet")


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
        """The trajectory of all finished seeds; a warning names the others."""
        checkpoints = {seed: self.read(seed) for seed in self.seeds()}
        records = {seed: checkpoint.record for seed, checkpoint in checkpoints.items() if checkpoint.finished}
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
        if not self.file_of(SEED).exists():
            raise self.unfinished()
        return collect_watched(self.source, self.read(SEED))

    def title(self, name: str) -> str:
        """The model's class beside the run's name."""
        return f"{self.source.model}, watched ({name})"


def open_run(path: str | Path, trust: bool = False) -> ExperimentFolder | WatchedFolder:
    """The run in a folder, as its run.json describes it; ``trust`` as in ``load_run``."""
    path = Path(path)
    about = read_json(path / "run.json")
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
