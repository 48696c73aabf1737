"""Runs on disk: a folder for each experiment, named by its fingerprint, with a file for each seed.

    OUT/<first 16 digits of the fingerprint>/run.json                    experiment, fingerprint, versions, seeds, times
                                             data0-start0.safetensors    weights, curves; while it runs, also its state
                                             data.safetensors            a user's arrays, if the experiment has them

Every file is written under another name and then renamed: it is whole or not there. No pickle.
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from ..data import Arrays
from ..errors import InputError
from ..experiment import Experiment
from ..files import read_tensors, write_whole
from ..seeds import Seed
from ..values import FORMAT, check_format
from ..versions import versions
from .engine import Kept, Record
from .trajectory import Trajectory, collect

DATA_FILE = "data.safetensors"


class RunKeeper:
    """Keeps the members of a training, experiment after experiment and in each seed after seed, in run folders."""

    def __init__(self, out: str | Path, experiments: Sequence[Experiment], seeds: Sequence[Seed]) -> None:
        self.runs = [RunFolder.open(Path(out), experiment) for experiment in experiments]
        self.seeds = seeds

    def _place(self, member: int) -> tuple["RunFolder", Seed]:
        return self.runs[member // len(self.seeds)], self.seeds[member % len(self.seeds)]

    def load(self, member: int) -> Kept | None:
        """What was kept of a member."""
        run, seed = self._place(member)
        return run.read(seed) if run.file_of(seed).exists() else None

    def keep(self, member: int, kept: Kept) -> None:
        """Keep where a member is."""
        run, seed = self._place(member)
        run.write(seed, kept)


class RunFolder:
    """The folder of one experiment's run."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path, self.experiment = path, experiment
        self.lock = threading.Lock()

    @classmethod
    def open(cls, out: Path, experiment: Experiment) -> "RunFolder":
        """The run of an experiment in a folder of runs, made if it is not there."""
        fingerprint = experiment.fingerprint()
        path = out / fingerprint[:16]
        if (path / "run.json").exists():
            found = read_json(path / "run.json")
            if found.get("fingerprint") != fingerprint:
                raise InputError(f"the folder {path} holds the run of another experiment")
            return cls(path, experiment)
        run = cls(path, experiment)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder {path} cannot be made: {error.strerror}") from error
        plain = experiment.to_plain()
        if isinstance(experiment.data, Arrays):
            arrays = {"x": np.ascontiguousarray(experiment.data.x), "y": np.ascontiguousarray(experiment.data.y)}
            write_whole(path / DATA_FILE, save(arrays))
            plain["data"]["file"] = DATA_FILE
        about = {"format": FORMAT, "fingerprint": fingerprint, "versions": versions(), "experiment": plain, "seeds": []}
        write_whole(path / "run.json", json.dumps(about, indent=1).encode())
        return run

    def file_of(self, seed: Seed) -> Path:
        """The file of a seed."""
        return self.path / f"data{seed.data}-start{seed.start}.safetensors"

    def write(self, seed: Seed, kept: Kept) -> None:
        """Write where a seed is; a finished one is entered in run.json."""
        record = kept.record
        tensors = {f"weights/{name}": value for name, value in record.weights.items()}
        tensors |= {f"curves/{name}": value for name, value in record.curves.items()}
        tensors |= {f"state/{k:04}": value for k, value in enumerate(kept.leaves)}
        about = {
            "format": FORMAT,
            "fingerprint": self.experiment.fingerprint(),
            "finished": kept.finished,
            "row": kept.row,
            "offset": kept.offset,
            "diverged": record.diverged,
            "seconds": record.seconds,
        }
        whole = {name: np.array(value, order="C") for name, value in tensors.items()}  # a number stays one
        write_whole(self.file_of(seed), save(whole, {"condensation": json.dumps(about)}))
        if kept.finished:
            with self.lock:
                run = read_json(self.path / "run.json")
                others = [entry for entry in run["seeds"] if (entry["data"], entry["start"]) != tuple(seed)]
                entry = {"data": seed.data, "start": seed.start, "seconds": record.seconds, "diverged": record.diverged}
                run["seeds"] = sorted([*others, entry], key=lambda e: (e["data"], e["start"]))
                write_whole(self.path / "run.json", json.dumps(run, indent=1).encode())

    def read(self, seed: Seed) -> Kept:
        """What was written of a seed."""
        path = self.file_of(seed)
        about, tensors = read_tensors(path)
        if "condensation" not in about:
            raise InputError(f"{path} was not written by condensation")
        header = json.loads(about["condensation"])
        check_format(f"file {path}", header.get("format"))
        if header["fingerprint"] != self.experiment.fingerprint():
            raise InputError(f"{path} belongs to another experiment")
        part = lambda prefix: {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}  # noqa: E731
        record = Record(part("weights/"), part("curves/"), header["diverged"], header["seconds"])
        leaves = [tensor for _, tensor in sorted(part("state/").items())]
        return Kept(record, header["row"], header["offset"], leaves, header["finished"])


def load_run(path: str | Path) -> Trajectory:
    """The trajectory of all finished seeds in a run's folder."""
    path = Path(path)
    about = read_json(path / "run.json")
    check_format(f"run {path}", about.get("format"))
    if not {"experiment", "fingerprint", "seeds"} <= about.keys():
        raise InputError(f"{path / 'run.json'} is not the description of a run")
    experiment = Experiment.from_plain(about["experiment"], path)
    if experiment.fingerprint() != about["fingerprint"]:
        raise InputError(f"the experiment in {path / 'run.json'} was changed: its fingerprint is another one")
    seeds = tuple(Seed(entry["data"], entry["start"]) for entry in about["seeds"])
    if not seeds:
        raise InputError(f"the run in {path} has no finished seed yet")
    run = RunFolder(path, experiment)
    return collect(experiment, seeds, [run.read(seed).record for seed in seeds])


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no JSON object")
    return found
