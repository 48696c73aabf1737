"""What the folders of all runs have in common: files of seeds that are written, checked, mended; ``run.json``."""

import dataclasses
import hashlib
import json
import re
import warnings
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._files import read_tensors
from .._seals import check_seal
from .._seeds_header import SeedsHeader, read_header
from .._serialization import FORMAT
from .._stored import StoredArrays
from .._versions import versions
from .._writing import write_json, write_tensors
from ..errors import Damaged, InputError
from ..experiment import Experiment
from ..seeds import Seed
from ._run import Checkpoint, Record
from ._watched import Watched


class DamagedFile(UserWarning):
    """A file of a run or a sweep was damaged, and what it held is made again."""


class RunFolder:
    """The folder of a run: ``ExperimentFolder`` or ``WatchedFolder``."""

    kind: ClassVar[Any]  # the key in run.json, a literal in each kind of folder
    source: Any  # what was run: an Experiment or a Watched

    def __init__(self, path: Path, source: Experiment | Watched) -> None:
        self.path, self.source, self.fingerprint = path, source, source.fingerprint()
        self._headers: dict[Path, tuple[int, SeedsHeader]] = {}  # of files that were checked, and when they changed

    def describe(self) -> None:
        """Write run.json: what was run, versions, and what the files of the seeds say."""
        files = {}
        for name, arrays in self.source.arrays().items():
            files[id(arrays)] = {"file": f"{name}.safetensors"}
            keep_arrays(self.path / f"{name}.safetensors", arrays)
        plain = self.source.to_plain_at(lambda arrays: files[id(arrays)])
        finished: dict[Seed, dict[str, Any]] = {}
        with suppress(InputError):  # there is none yet, or it is damaged
            finished |= self.listed()
        for header in self.headers().values():
            if header.finished:
                ends = zip(header.seeds, header.seconds, header.diverged, strict=True)
                finished |= {seed: {"seconds": taken, "diverged": at} for seed, taken, at in ends}
        seeds = [{"data": seed.data, "init": seed.init} | finished[seed] for seed in sorted(finished)]
        about = {"format": FORMAT, **self.headline(), "versions": versions()}
        about |= {self.kind: plain, "seeds": seeds}
        write_json(self.path / "run.json", about)

    def headline(self) -> dict[str, str]:
        """What run.json begins with."""
        return {"fingerprint": self.fingerprint}

    def listed(self) -> dict[Seed, dict[str, Any]]:
        """The finished seeds of run.json."""
        return {}

    def files(self) -> list[Path]:
        """The files of seeds, finished or not."""
        names = re.compile(r"data\d+-init\d+|seeds-[0-9a-f]+")
        return sorted(path for path in self.path.glob("*.safetensors") if names.fullmatch(path.stem))

    def file_of(self, seeds: Sequence[Seed]) -> Path:
        """The file of seeds that are kept together."""
        if len(seeds) == 1:
            return self.path / f"data{seeds[0].data}-init{seeds[0].init}.safetensors"
        digest = hashlib.sha256(json.dumps(seeds).encode()).hexdigest()[:16]
        return self.path / f"seeds-{digest}.safetensors"

    def write(self, checkpoints: Mapping[Seed, Checkpoint]) -> None:
        """Write where some seeds are, which are all finished or all at the same place, into one file.

        What another process has finished meanwhile stays so.
        """
        seeds = tuple(sorted(checkpoints))
        ends = [checkpoints[seed] for seed in seeds]
        first, records = ends[0], [checkpoint.record for checkpoint in ends]
        if not first.finished and _finished(self.headers()).issuperset(seeds):
            return
        stack = lambda values: values[0][None] if len(values) == 1 else np.stack(values)  # noqa: E731
        tensors = {f"weights/{name}": stack([r.weights[name] for r in records]) for name in first.record.weights}
        tensors |= {f"curves/{name}": stack([r.curves[name] for r in records]) for name in first.record.curves}
        for k in range(min(len(checkpoint.leaves) for checkpoint in ends)):
            tensors[f"state/{k:04}"] = stack([np.asarray(checkpoint.leaves[k]) for checkpoint in ends])
        diverged, seconds = [record.diverged for record in records], [record.seconds for record in records]
        header = SeedsHeader(seeds, first.finished, first.row, first.offset, diverged, seconds)
        path = self.file_of(seeds)
        previous = previous_of(path)
        if not first.finished and path.exists():
            with suppress(OSError):  # a disk without links keeps none; another writer may do the same
                previous.unlink(missing_ok=True)
                previous.hardlink_to(path)
        plain = {"format": FORMAT, "fingerprint": self.fingerprint, **dataclasses.asdict(header)}
        write_tensors(path, tensors, {"condensation": json.dumps(plain)})
        with suppress(OSError):
            self._headers[path] = path.stat().st_mtime_ns, header
        if first.finished:
            self._remove_superseded()

    def _remove_superseded(self) -> None:
        """Remove states of seeds that are finished."""
        headers = self.headers()
        finished = _finished(headers)
        for path, header in headers.items():
            if finished.issuperset(header.seeds):
                previous_of(path).unlink(missing_ok=True)
                if not header.finished:
                    path.unlink(missing_ok=True)

    def headers(self) -> dict[Path, SeedsHeader]:
        """What the files of seeds say of themselves; those that are damaged or gone are left out."""
        headers = {}
        for path in self.files():
            with suppress(InputError):  # whoever reads that file is told
                headers[path] = self.header(path)
        return headers

    def header(self, path: Path) -> SeedsHeader:
        """What a file of seeds says of itself; the file is checked, once for each version of it."""
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            raise InputError(f"there is no file {path}") from None
        known = self._headers.get(path)
        if known is None or known[0] != changed:
            check_seal(path)
            about, _ = read_tensors(path, arrays=False)
            self._headers[path] = known = changed, read_header(path, about, self.fingerprint)
        return known[1]

    def read(self, path: Path) -> dict[Seed, Checkpoint]:
        """Where each seed of a file is; a damaged file is refused."""
        self.header(path)
        about, tensors = read_tensors(path, checked=True)
        header = read_header(path, about, self.fingerprint)

        def part(prefix: str, k: int) -> dict[str, np.ndarray]:
            return {name.removeprefix(prefix): t[k] for name, t in tensors.items() if name.startswith(prefix)}

        if any(tensor.ndim == 0 or len(tensor) != len(header.seeds) for tensor in tensors.values()):
            raise InputError(f"{path} is not the file of a seed: its arrays are not of {len(header.seeds)} seeds")
        checkpoints = {}
        for k, seed in enumerate(header.seeds):
            record = Record(part("weights/", k), part("curves/", k), header.diverged[k], header.seconds[k])
            leaves = [np.asarray(tensor) for _, tensor in sorted(part("state/", k).items())]  # a number is an array
            checkpoints[seed] = Checkpoint(record, header.row, header.offset, leaves, header.finished)
        return checkpoints

    def checkpoints(self, wanted: Container[Seed] | None = None) -> dict[Seed, Checkpoint]:
        """Where each seed is, or each that is wanted; of a seed in several files, the furthest."""
        furthest: dict[Seed, Checkpoint] = {}
        for path in self.files():
            try:
                if wanted is not None and not any(seed in wanted for seed in self.header(path).seeds):
                    continue
                checkpoints = self.read(path)
            except InputError:
                if path.exists():
                    raise
                return self.checkpoints(wanted)  # another process has put its seeds into another file
            for seed, checkpoint in checkpoints.items():
                if seed not in furthest or checkpoint.place > furthest[seed].place:
                    furthest[seed] = checkpoint
        return {seed: furthest[seed] for seed in sorted(furthest)}

    def mend(self) -> None:
        """Remove damaged files of seeds, or put the checkpoint before in their place; say so."""
        for path in self.files():
            try:
                self.header(path)
            except Damaged as error:
                warn_of_damage(error, "it is removed, and what it held is trained again when it is asked for")
                previous = previous_of(path)
                try:
                    check_seal(previous)
                    previous.replace(path)
                except (InputError, OSError):
                    path.unlink(missing_ok=True)
                    previous.unlink(missing_ok=True)
        self._remove_superseded()

    def unfinished(self) -> InputError:
        """The error of a folder from which no run can be loaded yet."""
        return InputError(f"the run in {self.path} has no finished seed yet")


def _finished(headers: Mapping[Path, SeedsHeader]) -> set[Seed]:
    return {seed for header in headers.values() if header.finished for seed in header.seeds}


def keep_arrays(file: Path, arrays: StoredArrays) -> None:
    """Keep a user's arrays in a file; one that is there and damaged is written anew."""
    try:
        check_seal(file)
    except InputError as error:
        if isinstance(error, Damaged):
            warn_of_damage(error)
        arrays.keep(file)


def warn_of_damage(error: Damaged, what_happens: str = "it is made again") -> None:
    """Say that a file was damaged, and what is done about it."""
    warnings.warn(f"{error}; {what_happens}", DamagedFile, stacklevel=3)


def previous_of(path: Path) -> Path:
    """Where the checkpoint before the last one is while seeds are trained, in case the last is damaged."""
    return path.with_name(f".{path.stem}.previous")
