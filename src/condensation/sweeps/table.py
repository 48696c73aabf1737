"""The table of a sweep: its rows, and its quantities as arrays over the axes."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, unknown_name
from ..seeds import Seed
from .axes import label
from .folder import SweepFolder
from .grid import Sweep

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class SweepTable:
    """What a sweep found.

    Attributes:
        sweep: what was asked for.
        rows: a row for each cell and seed (and saved step, where all are measured), as an Arrow table in the order of
            the grid: coordinates, ``seed_data``, ``seed_start``, ``step``, ``loss``, what was measured, and what is
            needed to run it again (``experiment``, ``fingerprint``, versions).
        failed: why cells are missing, by cell.
    """

    sweep: Sweep
    rows: "pa.Table"
    failed: Mapping[str, str]

    @classmethod
    def read(cls, sweep: Sweep, folder: SweepFolder, failed: Mapping[str, str] | None = None) -> "SweepTable":
        """The rows of a sweep's cells among all that its folder has, each once, with this sweep's coordinates."""
        import pyarrow as pa

        place = {}
        for number, cell in enumerate(sweep.cells()):
            place.setdefault(cell.experiment.fingerprint(), []).append((number, cell.coordinates))
        order = {seed: k for k, seed in enumerate(sweep.seeds)}
        measured = sweep.measured_key()
        found = folder.rows()
        keys = [found.column(name).to_pylist() for name in ("fingerprint", "seed_data", "seed_start", "step")]
        kinds = found.column("measured").to_pylist()
        chosen: dict[tuple[int, int, int], int] = {}
        for row, (print_, data, start, step) in enumerate(zip(*keys, strict=True)):
            seed = Seed(data, start)
            if kinds[row] == measured and seed in order:
                for number, _ in place.get(print_, ()):
                    chosen.setdefault((number, order[seed], step), row)
        ordered = sorted(chosen)
        rows = found.take(pa.array([chosen[key] for key in ordered], pa.int64()))
        coordinates = {number: at for cells in place.values() for number, at in cells}
        named = {name: pa.array([coordinates[number][name] for number, _, _ in ordered]) for name in sweep.axes}
        rest = [name for name in rows.column_names if name not in named and rows.column(name).null_count < len(rows)]
        return cls(sweep, pa.table(named | {name: rows.column(name) for name in rest}), dict(failed or {}))

    def __len__(self) -> int:
        return self.rows.num_rows

    @property
    def complete(self) -> bool:
        """Whether every cell has all its seeds."""
        pairs = {
            (f, d, s)
            for f, d, s in zip(
                *(self.rows.column(n).to_pylist() for n in ("fingerprint", "seed_data", "seed_start")), strict=True
            )
        }
        cells = {cell.experiment.fingerprint() for cell in self.sweep.cells()}
        return len(pairs) == len(cells) * len(self.sweep.seeds)

    def column(self, name: str) -> np.ndarray:
        """A column, row after row."""
        if name not in self.rows.column_names:
            raise unknown_name("column", name, self.rows.column_names)
        return self.rows.column(name).to_numpy(zero_copy_only=False)

    @property
    def steps(self) -> np.ndarray:
        """The steps that were measured."""
        return np.unique(self.column("step"))

    def array(self, quantity: str) -> np.ndarray:
        """A quantity over the axes and the seeds (last), NaN where a cell is missing.

        Where every saved step is measured, the steps are one more dimension behind the seeds.
        """
        each = self.sweep.at == "saved"
        steps = self.steps if each else None
        shape = (*self.sweep.shape, len(self.sweep.seeds), *([len(steps)] if steps is not None else []))
        found = np.full(shape, np.nan)
        places = [{repr(label(value)): k for k, value in enumerate(values)} for values in self.sweep.axes.values()]
        axes = [self.rows.column(name).to_pylist() for name in self.sweep.axes]
        index = [[where[repr(value)] for value in column] for where, column in zip(places, axes, strict=True)]
        order = {seed: k for k, seed in enumerate(self.sweep.seeds)}
        seeds = zip(self.column("seed_data").tolist(), self.column("seed_start").tolist(), strict=True)
        index.append([order[Seed(*pair)] for pair in seeds])
        if steps is not None:
            index.append(np.searchsorted(steps, self.column("step")).tolist())
        found[tuple(np.array(part, int) for part in index)] = self.column(quantity).astype(float)
        return found

    def map(
        self,
        quantity: str,
        x: str,
        y: str,
        *,
        at: Mapping[str, Any] | None = None,
        over: Callable[..., Any] = np.nanmedian,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A quantity over two axes: values (rows y, columns x), the x values and the y values.

        Args:
            quantity: a column.
            x: an axis, or ``"step"`` where every saved step is measured.
            y: another one.
            at: values of the other axes, by name; without a value, an axis is reduced together with the seeds.
            over: how seeds are reduced.
        """
        values, names = self.array(quantity), [*self.sweep.axes, "seed"]
        labels = {name: [label(value) for value in axis] for name, axis in self.sweep.axes.items()}
        if self.sweep.at == "saved":
            names.append("step")
            labels["step"] = self.steps.tolist()
        for name in (x, y, *(at or {})):
            if name not in labels:
                raise unknown_name("axis", name, labels)
        if x == y:
            raise InputError(f"a map needs two axes, not {x} twice")
        for name, value in (at or {}).items():
            if value not in labels[name]:
                raise unknown_name(f"value of {name}", value, labels[name])
            values = np.take(values, labels[name].index(value), axis=names.index(name))
            names.remove(name)
        moved = np.moveaxis(values, [names.index(y), names.index(x)], [0, 1]).reshape(
            values.shape[names.index(y)], values.shape[names.index(x)], -1
        )
        with warnings.catch_warnings(action="ignore"):  # a cell without a finite value is NaN
            reduced = over(moved, axis=-1)
        return reduced, np.array(labels[x]), np.array(labels[y])

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The seeds of every cell."""
        return self.sweep.seeds

    def untrained(self) -> "SweepTable":
        """The same table as if nothing had moved: every row of a cell and seed as its first saved step."""
        names = [*self.sweep.axes, "seed_data", "seed_start"]
        keys = list(zip(*(self.rows.column(name).to_pylist() for name in names), strict=True))
        first = [k if k == 0 or keys[k] != keys[k - 1] else -1 for k in range(len(keys))]
        places = np.maximum.accumulate(np.array(first, int)) if first else np.array([], int)
        rows = self.rows.take(places)
        kept = rows.set_column(rows.column_names.index("step"), "step", self.rows.column("step"))
        return replace(self, rows=kept)

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame, where pandas is installed."""
        return self.rows.to_pandas()
