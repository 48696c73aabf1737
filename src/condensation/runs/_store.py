"""Runs on disk: a folder for each experiment, named by its fingerprint, with a file for each seed.

    OUT/<first 16 digits of the fingerprint>/run.json                    experiment, fingerprint, versions, seeds, times
                                             data0-init0.safetensors    weights, curves; while it runs, also its state
                                             data.safetensors            a user's arrays, if the experiment has them;
                                             test.safetensors            held-out ones

The folder of a run that was watched is named by its user; it holds one seed, and ``watched`` stands where
``experiment`` stands otherwise.

Every file is written under another name and then renamed: it is whole or not there. No pickle.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from .._files import read_json, read_tensors, write_atomic
from .._serialization import FORMAT, check_format
from .._versions import versions
from ..errors import InputError
from ..experiment import Experiment
from ..seeds import Seed
from ._checkpoint import Checkpoint, Record
from ._trajectory import Trajectory, collect
from ._watched import Watched


class RunCheckpoints:
    """Keeps the members of a training, pairs of experiment and seed, in run folders."""

    def __init__(self, out: str | Path, pairs: Sequence[tuple[Experiment, Seed]]) -> None:
        self.folders = {id(one): RunFolder.open(Path(out), one) for one in {id(one): one for one, _ in pairs}.values()}
        self.pairs = pairs

    def _place(self, member: int) -> tuple["RunFolder", Seed]:
        experiment, seed = self.pairs[member]
        return self.folders[id(experiment)], seed

    def load(self, member: int) -> Checkpoint | None:
        """What was kept of a member."""
        run, seed = self._place(member)
        return run.read(seed) if run.file_of(seed).exists() else None

    def keep(self, member: int, kept: Checkpoint) -> None:
        """Keep where a member is."""
        run, seed = self._place(member)
        run.write(seed, kept)

    def close(self) -> None:
        """Enter in each run.json which seeds are finished."""
        for run in self.folders.values():
            run.describe()


class RunFolder:
    """The folder of one experiment's run, or of a watched one."""

    def __init__(self, path: Path, source: Experiment | Watched) -> None:
        self.path, self.source = path, source
        self.fingerprint = source.fingerprint()

    @classmethod
    def open(cls, out: Path, experiment: Experiment) -> "RunFolder":
        """The run of an experiment in a folder of runs, made if it is not there."""
        run = cls(out / experiment.fingerprint()[:16], experiment)
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            there = (run.path / "run.json").exists()
        except OSError as error:
            raise InputError(f"the folder {run.path} cannot be made: {error.strerror}") from error
        if there:
            found = read_json(run.path / "run.json")
            check_format(f"run {run.path}", found.get("format"))
            if found.get("fingerprint") != run.fingerprint:
                raise InputError(f"the folder {run.path} holds the run of another experiment")
        else:
            run.describe()
        return run

    def describe(self) -> None:
        """Write run.json: the experiment, versions, and what the files of the seeds say."""
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
        about |= {"watched" if isinstance(self.source, Watched) else "experiment": plain, "seeds": seeds}
        write_atomic(self.path / "run.json", json.dumps(about, indent=1).encode())

    def file_of(self, seed: Seed) -> Path:
        """The file of a seed."""
        return self.path / f"data{seed.data}-init{seed.init}.safetensors"

    def seeds(self) -> list[Seed]:
        """All seeds that have a file, finished or not."""
        names = [re.fullmatch(r"data(\d+)-init(\d+)", path.stem) for path in self.path.glob("*.safetensors")]
        return sorted(Seed(int(name[1]), int(name[2])) for name in names if name)

    def write(self, seed: Seed, kept: Checkpoint) -> None:
        """Write where a seed is."""
        record = kept.record
        tensors = {f"weights/{name}": value for name, value in record.weights.items()}
        tensors |= {f"curves/{name}": value for name, value in record.curves.items()}
        tensors |= {f"state/{k:04}": value for k, value in enumerate(kept.leaves)}
        about = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "finished": kept.finished,
            "row": kept.row,
            "offset": kept.offset,
            "diverged": record.diverged,
            "seconds": record.seconds,
        }
        whole = {name: np.array(value, order="C") for name, value in tensors.items()}  # a number stays one
        write_atomic(self.file_of(seed), save(whole, {"condensation": json.dumps(about)}))

    def header(self, seed: Seed, tensors: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a seed's file says of itself, and its arrays if they are wanted."""
        path = self.file_of(seed)
        about, found = read_tensors(path, tensors)
        if "condensation" not in about:
            raise InputError(f"{path} was not written by condensation")
        try:
            header = json.loads(about["condensation"])
            check_format(f"file {path}", header["format"])
            if header["fingerprint"] != self.fingerprint:
                raise InputError(f"{path} belongs to another experiment")
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} was not written by condensation: {error}") from error
        return header, found

    def read(self, seed: Seed) -> Checkpoint:
        """What was written of a seed."""
        header, tensors = self.header(seed)
        part = lambda prefix: {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}  # noqa: E731
        record = Record(part("weights/"), part("curves/"), header["diverged"], header["seconds"])
        leaves = [tensor for _, tensor in sorted(part("state/").items())]
        return Checkpoint(record, header["row"], header["offset"], leaves, header["finished"])


def load_run(path: str | Path) -> Trajectory:
    """The trajectory of all finished seeds in a run's folder; of a watched run also while it grows."""
    run = open_run(path)
    kept = {seed: run.read(seed) for seed in run.seeds()}
    watched = isinstance(run.source, Watched)
    finished = {seed: one.record for seed, one in kept.items() if one.finished or watched}
    if not finished:
        raise InputError(f"the run in {path} has no finished seed yet")
    return collect(run.source, tuple(finished), list(finished.values()))


def open_run(path: str | Path) -> RunFolder:
    """The run in a folder, as its run.json describes it."""
    path = Path(path)
    about = read_json(path / "run.json")
    check_format(f"run {path}", about.get("format"))
    if "fingerprint" not in about or not {"experiment", "watched"} & about.keys():
        raise InputError(f"{path / 'run.json'} is not the description of a run")
    watched = "watched" in about
    run = RunFolder(
        path, Watched.from_plain(about["watched"]) if watched else Experiment.from_plain(about["experiment"], path)
    )
    if run.fingerprint != about["fingerprint"]:
        what = "watched run" if watched else "experiment"
        raise InputError(f"the {what} in {path / 'run.json'} was changed: its fingerprint is another one")
    return run
