"""Decoded sets of images, and texts, on disk, mapped into memory when they are used.

    CACHE/<name>/train_images.npy  train_labels.npy  test_images.npy  test_labels.npy
                 train_text.npy    test_text.npy     of a text in their place
                 about.json        source, mean and standard deviation of the training images, format, checksums

CACHE is the folder ``CONDENSATION_CACHE``, or the user's cache folder. A set is written into a folder beside its place
and renamed: it is whole or not there. Decoded arrays are checked by their sums before they are stored, and by the
checksums of about.json when a process loads them first.
"""

import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._files import SEAL, read_json, read_sealed_json
from .._serialization import FORMAT, check_format
from .._writing import write_json
from ..errors import InputError
from ._catalog import SETS, SPLITS, Source
from ._formats import Splits

DAY = 86400


@dataclass(frozen=True)
class Loaded:
    """What was fetched: its splits, mean and standard deviation of each channel in training, and where it came from."""

    splits: Splits
    mean: list[float]
    std: list[float]
    source: str


@dataclass(frozen=True)
class CacheEntry:
    """A set in the cache; ``problem`` says what is wrong with the copy, if anything."""

    name: str
    folder: str
    bytes: int
    source: str
    problem: str | None = None


def root() -> Path:
    """The folder of the cache."""
    if chosen := os.environ.get("CONDENSATION_CACHE"):
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("condensation"))


def folder_of(dataset: Source) -> Path:
    """The folder of a set in the cache."""
    return root() / dataset.name


def holds(dataset: Source) -> bool:
    """Whether the cache has a set, whole or damaged."""
    return os.path.exists(folder_of(dataset))  # false where it may not be looked at, too


@contextmanager
def workplace(dataset: Source) -> Iterator[Path]:
    """An empty folder beside a set's place, to be filled and renamed; refused where the cache cannot be written."""
    part = root() / f".{dataset.name}.{uuid.uuid4().hex}"
    try:
        part.mkdir(parents=True)
    except OSError as error:
        raise _unwritable(error) from error
    for left in root().glob(f".{dataset.name}.*"):
        with suppress(OSError):  # another process may be done with it just now
            if time.time() - left.stat().st_mtime > DAY:  # left by one that was killed
                shutil.rmtree(left, ignore_errors=True)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def store(dataset: Source, splits: Splits, source: str, part: Path, again: bool = False) -> Path:
    """Store a set, written in the workplace ``part``. If another process was first, its copy stays unless ``again``."""
    place = folder_of(dataset)
    try:
        for split in SPLITS:
            for kind, array in splits[split]._asdict().items():
                with (part / f"{split}_{kind}.npy").open("wb") as file:
                    np.save(file, array)
                    file.flush()
                    os.fsync(file.fileno())
        write_json(part / "about.json", _about(dataset, splits, source, part))
        try:
            part.rename(place)
        except OSError:
            if place.is_file():  # no copy
                place.unlink()
                part.rename(place)
                return place
            if not place.is_dir():
                raise
            for file in part.iterdir() if again else ():
                file.replace(place / file.name)
    except OSError as error:
        raise _unwritable(error) from error
    load(dataset)
    return place


def _about(dataset: Source, splits: Splits, source: str, folder: Path) -> dict[str, Any]:
    """What about.json says of a set whose files are in a folder."""
    mean, std = dataset.moments(splits["train"])
    checksums = {name: _checksum(folder / name) for name in _names(dataset)}
    about = {"format": FORMAT, "name": dataset.name, "source": source, "mean": mean, "std": std}
    return about | {"checksums": checksums}


def _names(dataset: Source) -> list[str]:
    """The files of a set's splits."""
    return [f"{split}_{kind}.npy" for split in SPLITS for kind in dataset.content._fields]


def _checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(path: Path) -> tuple[int, ...]:
    """What changes when a file is written."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def load(dataset: Source) -> Loaded:
    """A set from the cache, mapped into memory; opened and checked once for each version of its files."""
    place = folder_of(dataset)
    try:
        return _open(dataset, place, *(_version(place / name) for name in ("about.json", *_names(dataset))))
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise InputError(
            f"the copy of {dataset.name} in {place} is damaged ({error}): "
            f"`condensation data fetch {dataset.name} --again` mends it"
        ) from error


@lru_cache(maxsize=8)
def _open(dataset: Source, place: Path, *versions: tuple[int, ...]) -> Loaded:
    plain = read_json(place / "about.json")
    check_format(f"copy of {dataset.name}", plain["format"])
    splits = {split: _load_split(dataset, place, split) for split in SPLITS}
    if not {SEAL, "checksums"} & plain.keys():  # a copy from before there were checksums
        dataset.check(splits)
        plain |= _about(dataset, splits, str(plain["source"]), place)
        with suppress(InputError):  # a cache that cannot be written is checked each time
            write_json(place / "about.json", plain)
        return Loaded(splits, plain["mean"], plain["std"], plain["source"])
    about = read_sealed_json(place / "about.json")
    for name, checksum in about["checksums"].items():
        if _checksum(place / name) != checksum:
            raise ValueError(f"the bytes of {name} are not those that were written")
    return Loaded(splits, about["mean"], about["std"], about["source"])


def _load_split(dataset: Source, place: Path, split: str) -> Any:
    parts = []
    for kind, shape in dataset.shapes(split).items():
        path = place / f"{split}_{kind}.npy"
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.shape != shape or array.dtype != np.uint8:
            raise InputError(f"{path.name} holds {array.dtype} of shape {array.shape} instead of uint8 of {shape}")
        parts.append(array)
    return dataset.content(*parts)


def entries() -> list[CacheEntry]:
    """All sets in the cache."""
    cached = []
    for dataset in filter(holds, SETS.values()):
        place = folder_of(dataset)
        size = sum(file.stat().st_size for file in place.glob("*"))
        try:
            source, problem = load(dataset).source, None
        except InputError as error:
            source, problem = "unknown", str(error)
        cached.append(CacheEntry(dataset.name, str(place), size, source, problem))
    return cached


def _unwritable(error: OSError) -> InputError:
    return InputError(
        f"the cache {root()} cannot be written ({error.strerror}): set CONDENSATION_CACHE to a folder that can"
    )
