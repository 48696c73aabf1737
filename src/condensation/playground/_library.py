"""The library: the user's own runs and sweeps, in folders given to the command. The page knows only their names."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..runs import Run, load_run, open_run
from ..seeds import Seed
from ..sweeps import SweepTable, SweepWarning, open_sweep

MARKS = {"run.json": "run", "sweep.json": "sweep"}


@dataclass(frozen=True)
class LibraryEntry:
    """A run or a sweep of the library."""

    name: str
    kind: str
    path: Path
    trust: bool

    @property
    def title(self) -> str:
        """A run's network and optimizer beside its name, which is a fingerprint; a sweep's name says enough."""
        return self.name if self.kind == "sweep" else open_run(self.path, self.trust).title(self.name)


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
                self.entries[name] = LibraryEntry(name, kind, path, trust)

    def listed(self) -> list[dict[str, str]]:
        """Name, kind and title of each entry, for the page."""
        return [{"name": entry.name, "kind": entry.kind, "title": entry.title} for entry in self.entries.values()]

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
        return load_run(self._entry(name, "run").path, self.trust)

    def sweep(self, name: Any) -> SweepTable:
        """A sweep's table."""
        with warnings.catch_warnings(action="ignore", category=SweepWarning):  # the map shows the notes
            return open_sweep(self._entry(name, "sweep").path, self.trust)

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


def _kinds(folder: Path) -> dict[Path, str]:
    """The runs and sweeps that a folder contains, or the one that it is."""

    def kind(path: Path) -> str | None:
        return next((kind for mark, kind in MARKS.items() if (path / mark).is_file()), None)

    paths = [folder] if kind(folder) else sorted(folder.iterdir()) if folder.is_dir() else []
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
