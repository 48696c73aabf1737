"""The table of a sweep: its rows, and its quantities as arrays over the axes."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int
from pyarrow import compute

from .._display import Shown, short_list, spread
from .._phrases import plural
from .._sketch import curves, heat
from ..errors import InputError, unknown_name
from ..seeds import Seed
from ._axes import COLUMNS, CURVES, label
from ._folder import SweepFolder
from ._grid import Sweep, is_field, pair_name
from ._notes import notes_on

MOST_SHOWN = 3  # measured columns that a printed table tells of


@dataclass(frozen=True, eq=False)
class SweepTable(Shown):
    """The results of a sweep.

    Attributes:
        sweep: the sweep.
        rows: a row for each cell and seed (and saved step, where all are measured), as an Arrow table in the order of
            the grid: coordinates, ``seed_data``, ``seed_init``, ``step``, ``loss``, what was measured, and what is
            needed to run it again (``experiment``, ``fingerprint``, versions).
        places: the index of the cell and of the seed of each row.
        failed: why pairs of cell and seed could not be trained or measured, by pair.
    """

    sweep: Sweep
    rows: pa.Table
    places: Int[np.ndarray, "rows 2"]
    failed: Mapping[str, str]

    @classmethod
    def read(cls, sweep: Sweep, folder: SweepFolder, failed: Mapping[str, str] | None = None) -> "SweepTable":
        """The rows of a sweep's cells among all that its folder has, each once, with this sweep's coordinates."""
        stored = folder.rows()
        wide = [f.with_type(pa.large_string()) if pa.types.is_string(f.type) else f for f in stored.schema]
        stored = stored.cast(pa.schema(wide))  # more than two million rows have over 2 GiB of text
        rows, places = _choose(sweep, stored)
        chosen = stored.take(pa.array(rows, pa.int64()))
        indices = np.unravel_index(places[:, 0], sweep.shape) if sweep.axes else ()
        columns = {
            name: pa.array(labels).take(pa.array(index, pa.int64()))
            for (name, labels), index in zip(sweep.labels.items(), indices, strict=True)
        }
        for name in chosen.column_names:
            of_others = is_field(name) or chosen.column(name).null_count == len(rows) > 0
            if name in COLUMNS or not (name in columns or of_others):
                columns[name] = chosen.column(name)
        return cls(sweep, pa.table(columns), places, dict(failed or {}))

    def __len__(self) -> int:
        return self.rows.num_rows

    def _title(self) -> str:
        cells, seeds = plural(len(self.sweep), "cell"), plural(len(self.seeds), "seed")
        return (
            f"SweepTable: {plural(len(self), 'row')} of {cells} and {seeds}, {self.sweep.experiment.network.describe()}"
        )

    def _facts(self) -> dict[str, str]:
        facts = {}
        for name, labels in self.sweep.labels.items():
            facts[name] = ("" if len(labels) == 1 else f"{len(labels)} values: ") + short_list(labels, 4)
        for name in self.quantities[:MOST_SHOWN]:
            values = self.column(name)
            known = values[np.isfinite(values)]
            facts[name] = spread(known) if len(known) else "not a number anywhere"
        others = self.quantities[MOST_SHOWN:]
        missing = int((~self.has_rows).sum())
        diverged = int((self.column("diverged") >= 0).sum()) if len(self) else 0
        return facts | {
            "also measured": short_list(others, 4) if others else "",
            "missing": f"{missing} of {len(self.sweep) * len(self.seeds)} networks" if missing else "",
            "diverged": f"{diverged} rows" if diverged else "",
            "failed": f"{len(self.failed)}, the first: {next(iter(self.failed.values()))}" if self.failed else "",
        }

    def _picture(self) -> str:
        axes = [name for name, labels in self.sweep.labels.items() if len(labels) > 1]
        if not self.quantities or not axes or not len(self):
            return ""
        name = self.quantities[0]
        if len(axes) > 1:
            values, _, _ = self.map(name, axes[0], axes[1])
            return heat(values[::-1], label=name)
        values = self.array(name)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a cell without any value is NaN
            turned = np.moveaxis(values, [*self.sweep.axes].index(axes[0]), 0)
            middle = np.nanmedian(turned.reshape(len(turned), -1), axis=1)
        return curves(range(len(middle)), [middle], label=f"{name} over {axes[0]}")

    @property
    def complete(self) -> bool:
        """Whether every cell has all its seeds."""
        return bool(self.has_rows.all())

    @property
    def has_rows(self) -> Bool[np.ndarray, "..."]:
        """Whether there are rows, over the axes and the seeds (last)."""
        has_rows = np.zeros((len(self.sweep), len(self.sweep.seeds)), bool)
        has_rows[tuple(self.places.T)] = True
        return has_rows.reshape(*self.sweep.shape, -1)

    @property
    def missing(self) -> dict[str, str]:
        """Why pairs of cell and seed have no rows, by pair: an error, or that they were not trained yet."""
        cells = [*self.sweep.cells()]
        first = {cell.fingerprint: cell for cell in reversed(cells)}  # what equal experiments are called in ``failed``
        reasons = {}
        for number, k in np.argwhere(~self.has_rows.reshape(len(cells), -1)):
            cell, seed = cells[number], self.sweep.seeds[k]
            failed = self.failed.get(pair_name(first[cell.fingerprint].coordinates, seed), "not trained yet")
            reasons[pair_name(cell.coordinates, seed)] = failed
        return reasons

    @property
    def notes(self) -> dict[str, str]:
        """What the numbers do not show by themselves: rows that are missing, networks that diverged, and more."""
        return notes_on(self)

    def column(self, name: str) -> np.ndarray:
        """A column, row after row."""
        if name not in self.rows.column_names:
            raise unknown_name("column", name, self.rows.column_names)
        return self.rows.column(name).to_numpy(zero_copy_only=False)

    @property
    def quantities(self) -> list[str]:
        """The columns that were measured, those of the sweep's measures before the curves."""
        others = {*COLUMNS, *self.sweep.axes} - {*CURVES}
        numeric = [field.name for field in self.rows.schema if pa.types.is_floating(field.type)]
        return sorted((name for name in numeric if name not in others), key=lambda name: name in CURVES)

    @property
    def steps(self) -> Int[np.ndarray, " steps"]:
        """The steps that were measured."""
        return np.unique(self.column("step"))

    def array(self, quantity: str) -> Float[np.ndarray, "..."]:
        """A quantity over the axes and the seeds (last), NaN where a cell is missing.

        Where every saved step is measured, the steps are one more dimension behind the seeds.
        """
        column = self.column(quantity)
        try:
            values = column.astype(float)
        except ValueError as error:
            raise InputError(f"the column {quantity} holds texts, no numbers") from error
        index, shape = [*self.places.T], [len(self.sweep), len(self.sweep.seeds)]
        if self.sweep.at == "saved":
            steps = self.steps
            index.append(np.searchsorted(steps, self.column("step")))
            shape.append(len(steps))
        grid = np.full(shape, np.nan)
        grid[tuple(index)] = values
        return grid.reshape(*self.sweep.shape, *shape[1:])

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

        A value is NaN where a seed has no rows; of seeds that diverged, ``nanmedian`` takes the others.

        Args:
            quantity: a column.
            x: an axis, or ``"step"`` where every saved step is measured.
            y: another one.
            at: values of the other axes, by name; without a value, an axis is reduced together with the seeds.
            over: how seeds are reduced.
        """
        values, names = self.array(quantity), [*self.sweep.axes, "seed"]
        has_rows = self.has_rows.reshape(*self.has_rows.shape, *[1] * (values.ndim - len(names)))
        values = np.stack([values, np.broadcast_to(has_rows, values.shape)])  # both are cut and turned alike
        labels = dict(self.sweep.labels)
        if self.sweep.at == "saved":
            names.append("step")
            labels["step"] = tuple(self.steps.tolist())
        chosen = [x, y, *(at or {})]
        for name in chosen:
            if name not in labels:
                raise unknown_name("axis", name, labels)
            if chosen.count(name) > 1:
                raise InputError(f"a map is over two axes, at values of others: {name} stands twice")
        for name, value in (at or {}).items():
            if label(value) not in labels[name]:
                raise unknown_name(f"value of {name}", label(value), labels[name])
            values = values.take(labels[name].index(label(value)), axis=names.index(name) + 1)
            names.remove(name)
        values = np.moveaxis(values, [names.index(y) + 1, names.index(x) + 1], [1, 2])
        values, has_rows = values.reshape(*values.shape[:3], -1)
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a cell without any value is NaN
            reduced = np.where(has_rows.all(axis=-1), over(values, axis=-1), np.nan)
        return reduced, np.array(labels[x]), np.array(labels[y])

    @property
    def seeds(self) -> tuple[Seed, ...]:
        """The seeds of every cell."""
        return self.sweep.seeds

    def untrained(self) -> "SweepTable":
        """This table as if nothing had been trained: every row of a cell and seed holds its first saved step."""
        _, first, group = np.unique(self.places, axis=0, return_index=True, return_inverse=True)
        rows = self.rows.take(first[group])
        return replace(self, rows=rows.set_column(rows.column_names.index("step"), "step", self.rows.column("step")))


def _choose(sweep: Sweep, stored: pa.Table) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, "rows 2"]]:
    """Which stored rows belong to a sweep, in the order of its grid, each once, and the cell and the seed of each.

    Cells of equal experiments share their rows. Of several rows of one pair and step (a lost task's, say) the first
    counts.
    """
    experiments = {key: k for k, key in enumerate(dict.fromkeys(cell.fingerprint for cell in sweep.cells()))}
    seeds = {tuple(seed): k for k, seed in enumerate(sweep.seeds)}
    data, init, steps = (stored.column(name).to_numpy() for name in ("seed_data", "seed_init", "step"))
    known = pa.array([*experiments], stored.schema.field("fingerprint").type)
    found = compute.call_function("index_in", [stored.column("fingerprint")], compute.SetLookupOptions(known))
    of_experiment = found.fill_null(-1).to_numpy()
    of_seed = [seeds.get(seed, -1) for seed in zip(data.tolist(), init.tolist(), strict=True)]
    keys = np.array([of_experiment, of_seed, steps], int)
    measured = stored.column("measured").to_numpy(zero_copy_only=False) == sweep.measuring.key
    mine = np.flatnonzero((keys[:2] >= 0).all(axis=0) & measured)
    ordered = mine[np.lexsort(keys[::-1, mine])]
    ordered = ordered[(np.diff(keys[:, ordered], axis=1, prepend=-1) != 0).any(axis=0)]
    bounds = np.searchsorted(keys[0, ordered], np.arange(len(experiments) + 1))
    of_cell = np.array([experiments[cell.fingerprint] for cell in sweep.cells()])
    counts = np.diff(bounds)[of_cell]  # rows of each cell
    cells = np.repeat(np.arange(len(of_cell)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = ordered[bounds[of_cell][cells] + within]
    return rows, np.stack([cells, keys[1, rows]], axis=1)
