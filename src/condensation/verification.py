"""Verify that the files of runs, sweeps and models are those that were written: ``verify("runs")``.

Every file that condensation keeps carries a checksum (see ``_seals``), and a run's description names the seeds that
were finished. Nothing that a file names is imported.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ._files import SEAL, map_tensors, read_sealed_json
from ._phrases import plural
from ._seals import check_seal
from ._seeds_header import read_header
from .errors import InputError
from .runs._seed_file import listed_seeds
from .seeds import Seed
from .sweeps import IncompleteTable, open_sweep

DESCRIPTIONS = ("run.json", "sweep.json")  # of a run's and of a sweep's folder


@dataclass(frozen=True)
class Verified:
    """What verifying a run, a sweep or a model's file gave.

    Attributes:
        path: of the folder or the file.
        kind: "run", "sweep" or "model".
        files: how many files were checked.
        problems: a sentence for each file that is damaged or gone.
        unfinished: a sentence on what was never finished; that is no damage.
    """

    path: Path
    kind: str
    files: int
    problems: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


def verify(path: str | Path) -> list[Verified]:
    """Check the files of all runs and sweeps in a folder, or a model's file.

    >>> import tempfile, condensation as c
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = c.Points(((0.0, 1.0), (0.5, -1.0)))
    ...     run = c.train(c.Experiment(c.Dense((1, 2, 1)), c.Init(c.Normal(0.1)), data, c.GD(0.1), 1), out=folder)
    ...     [(each.kind, each.problems) for each in verify(folder)]
    [('run', ())]
    """
    path = Path(path)
    if path.is_file():
        if path.suffix != ".safetensors" or SEAL not in map_tensors(path)[0]:
            raise InputError(f"{path} carries no checksum: it was not written by condensation")
        return [Verified(path, "model", 1, tuple(_damage([path])))]
    found = sorted(file for name in DESCRIPTIONS for file in path.rglob(name))
    if not found:
        raise InputError(f"there is no run and no sweep in {path}")
    return [(_verify_run if file.name == "run.json" else _verify_sweep)(file.parent) for file in found]


def _damage(files: list[Path]) -> Iterator[str]:
    """A sentence for each file that is not as it was written."""
    for file in files:
        try:
            check_seal(file)
        except InputError as error:
            yield str(error)


def _verify_run(folder: Path) -> Verified:
    files = sorted(file for file in folder.glob("*.*") if file.suffix in (".json", ".safetensors") and _is_shown(file))
    problems = [*_damage(files)]
    finished: set[Seed] = set()
    unfinished: set[Seed] = set()
    if not problems:
        try:
            fingerprint = str(read_sealed_json(folder / "run.json").get("fingerprint"))
            for file in files:
                metadata = map_tensors(file)[0] if file.suffix == ".safetensors" else {}
                if "condensation" in metadata:
                    header = read_header(file, metadata, fingerprint)
                    (finished if header.finished else unfinished).update(header.seeds)
            gone = sorted(listed_seeds(folder / "run.json").keys() - finished)
            problems += [f"{seed} was finished in {folder}, and its file is gone" for seed in gone]
        except InputError as error:  # whole, and not what condensation writes
            problems.append(str(error))
    left = len(unfinished - finished)
    notes = (f"{plural(left, 'seed')} not finished",) if left else ()
    return Verified(folder, "run", len(files), tuple(problems), notes)


def _verify_sweep(folder: Path) -> Verified:
    names = ("sweep.json", "failed.json", "table.parquet", "cells/*.parquet", "arrays/*.safetensors")
    files = [file for name in names for file in sorted(folder.glob(name)) if _is_shown(file)]
    problems, notes = [*_damage(files)], []
    if not problems:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                open_sweep(folder)
            except InputError as error:
                notes.append(f"which cells are missing cannot be told: {error}")
        notes += [str(warning.message) for warning in caught if warning.category is IncompleteTable]
    return Verified(folder, "sweep", len(files), tuple(problems), tuple(notes))


def _is_shown(file: Path) -> bool:
    return not file.name.startswith(".")
