"""The library: the user's own runs and sweeps, in folders given to the command. The page knows only their names.

One that cannot be read does not keep the others away: it is listed with the reason.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import read_tensors
from .._phrases import printable
from .._seeds_header import read_header
from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..runs import Run, UnfinishedSeeds, load_run, open_run
from ..seeds import Seed
from ..sweeps import SweepTable, SweepWarning, open_sweep
from ._log import log

MARKS = {"run.json": "run", "sweep.json": "sweep"}


@dataclass
class LibraryEntry:
    """A run or a sweep of the library.

    Attributes:
        title: of a run, its network and optimizer beside its name, which is a fingerprint.
        problem: why it could not be read the last time; empty if it could.
    """

    name: str
    kind: str
    path: Path
    title: str
    problem: str = ""

    def listed(self) -> dict[str, str]:
        """The entry for the page."""
        return {"name": self.name, "kind": self.kind, "title": self.title, "problem": self.problem}


class Library:
    """The runs and sweeps in some folders; ``trust`` as in ``load_run``."""

    def __init__(self, folders: Sequence[str | Path] = (), trust: bool = False) -> None:
        self.trust = trust
        self.entries: dict[str, LibraryEntry] = {}
        for folder in map(Path, folders):
            kinds = _kinds(folder)
            if not kinds:
                raise InputError(f"{folder} is neither a run nor a sweep, and holds none")
            for path, kind in kinds.items():
                name = path.name or str(path)
                while name in self.entries:
                    name = f"{path.parent.name}/{name}" if "/" not in name else f"{name}'"
                self.entries[name] = LibraryEntry(name, kind, path, printable(name))
        for entry in self.entries.values():
            with suppress(InputError):
                self._look_at(entry)

    def listed(self) -> list[dict[str, str]]:
        """Name, kind, title and problem of each entry, for the page."""
        return [entry.listed() for entry in self.entries.values()]

    def _look_at(self, entry: LibraryEntry) -> None:
        """Read what can be read quickly: a sweep's table; of a run, all but the weights."""
        if entry.kind == "sweep":
            self.sweep(entry.name)
            return
        with _reading(entry):
            folder = open_run(entry.path, self.trust)
            entry.title = printable(folder.title(entry.name))
            for path in folder.files():
                read_header(path, read_tensors(path, arrays=False)[0], folder.fingerprint)

    def _entry(self, name: Any, kind: str) -> LibraryEntry:
        known = [entry.name for entry in self.entries.values() if entry.kind == kind]
        if name not in known:
            raise unknown_name(kind, name, known or ["none was given to the command"])
        return self.entries[name]

    def title(self, name: Any) -> str:
        """A run's network and optimizer, and its name."""
        return self._entry(name, "run").title

    def run(self, name: Any) -> Run:
        """A saved run."""
        entry = self._entry(name, "run")
        with _reading(entry), warnings.catch_warnings(record=True, action="always", category=UnfinishedSeeds) as noted:
            run = load_run(entry.path, self.trust)
        for warning in noted:
            log.warning("warning: %s", printable(str(warning.message)))
        return run

    def sweep(self, name: Any) -> SweepTable:
        """A sweep's table."""
        entry = self._entry(name, "sweep")
        ignored = warnings.catch_warnings(action="ignore", category=SweepWarning)  # the map shows the notes
        with _reading(entry), ignored:
            return open_sweep(entry.path, self.trust)

    def cell(self, name: Any, number: Any, seed: Any) -> tuple[Experiment, Seed, str]:
        """The experiment of a sweep's cell, one of its seeds, and its coordinates as text."""
        sweep = self.sweep(name).sweep
        if type(number) is not int or not 0 <= number < len(sweep):
            raise InputError(f"the sweep {name} has the cells 0 to {len(sweep) - 1}, not {number!r}")
        if type(seed) is not int or not 0 <= seed < len(sweep.seeds):
            raise InputError(f"the sweep {name} has the seeds 0 to {len(sweep.seeds) - 1}, not {seed!r}")
        cell = list(sweep.cells())[number]
        values = {name: f"{v:.4g}" if isinstance(v, float) else v for name, v in cell.coordinates.items()}
        return cell.experiment, sweep.seeds[seed], ", ".join(f"{name} = {value}" for name, value in values.items())


@contextmanager
def _reading(entry: LibraryEntry) -> Iterator[None]:
    """Read an entry, and note why it could not be read."""
    try:
        yield
    except Exception as error:  # a foreign or broken file fails in many ways
        sentence = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        problem = printable(sentence.replace(str(entry.path), entry.name))
        if problem != entry.problem:
            log.warning("the %s %s cannot be shown: %s", entry.kind, printable(entry.name), problem)
        entry.problem = problem
        raise InputError(problem) from error
    entry.problem = ""


def _kinds(folder: Path) -> dict[Path, str]:
    """The runs and sweeps that a folder contains, or the one that it is."""

    def kind(path: Path) -> str | None:
        return next((kind for mark, kind in MARKS.items() if os.path.isfile(path / mark)), None)

    try:
        paths = [folder] if kind(folder) else sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror or error}") from error
    return {path: known for path in paths if (known := kind(path))}


def sweep_map(
    table: SweepTable, quantity: str | None, x: str | None, y: str | None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A sweep's table as a map over two axes, or over the only one; medians over seeds and all other axes."""
    sweep = table.sweep
    axes = [*sweep.axes] + ["step"] * (sweep.at == "saved")
    known = table.quantities
    if not known:
        raise InputError("this sweep has no measured numbers yet")
    for kind, name, names in (("quantity", quantity, known), ("axis", x, axes), ("axis", y, axes)):
        if name is not None and name not in names:
            raise unknown_name(kind, name, names)
    quantity = quantity or known[0]
    x = x or next(name for name in axes if name != y)
    y = y if y and y != x else next((name for name in axes if name != x), None)
    numbers = np.arange(len(sweep)).reshape(sweep.shape)
    if y is None:
        median = np.nanmedian(table.array(quantity), axis=-1)
        values = np.where(table.has_rows.all(axis=-1), median, np.nan)[None]
        xs, ys, cells = np.array(sweep.labels[x]), np.array([""]), numbers[None]
    else:
        values, xs, ys = table.map(quantity, x, y)
        grid = [*sweep.axes]
        cells = numbers[tuple(slice(None) if name in (x, y) else 0 for name in grid)]
        if y in grid and x in grid:
            cells = cells if grid.index(y) < grid.index(x) else cells.T
        else:  # the other axis is the step
            cells = np.broadcast_to(cells[None] if x in grid else cells[:, None], values.shape)
    header = {
        "quantity": quantity,
        "quantities": known,
        "axes": axes,
        "x": x,
        "y": y,
        "xs": xs.tolist(),
        "ys": ys.tolist(),
        "x_log": _is_geometric(xs),
        "y_log": _is_geometric(ys),
        "seeds": len(sweep.seeds),
        "notes": [*table.notes],
    }
    return header, {"values": np.asarray(values, np.float32), "cells": np.ascontiguousarray(cells, np.int32)}


def _is_geometric(values: np.ndarray) -> bool:
    """Whether an axis has equal ratios rather than equal distances."""
    if values.dtype.kind not in "if" or len(values) < 3 or not (values > 0).all():
        return False
    return bool(np.ptp(np.diff(np.log(values))) < 0.5 * np.ptp(np.diff(values)) / values.mean() + 1e-9)
