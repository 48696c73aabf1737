"""A run on disk: a folder with a description and a file for each seed.

    run.json                    what was run (an experiment, or what was watched), fingerprint, versions, seeds, times
    data0-init0.safetensors     weights, curves; while it runs, also its state
    data.safetensors            a user's arrays, if the experiment has them;
    test.safetensors            held-out ones

Every file is written under another name and then renamed: it is whole or not there. No pickle.
"""

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from safetensors.numpy import save

from .._files import read_tensors, write_atomic
from .._serialization import FORMAT, check_format
from .._versions import versions
from ..errors import InputError
from ..experiment import Experiment
from ..seeds import Seed
from ._checkpoint import Checkpoint, Record
from ._watched import Watched


class RunFolder:
    """The folder of a run; ``_store`` has a kind for experiments and one for watched runs."""

    kind: ClassVar[Any]  # the key in run.json, a literal in each kind of folder

    def __init__(self, path: Path, source: Experiment | Watched) -> None:
        self.path, self.source = path, source
        self.fingerprint = source.fingerprint()

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
            check_format(f"file {path}", header["format"])
            if header["fingerprint"] != self.fingerprint:
                raise InputError(f"{path} belongs to another experiment")
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} was not written by condensation: {error}") from error
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
