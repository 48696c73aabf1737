"""A sweep on disk.

    OUT/sweep.json               the sweep as it was asked for last
        driver.json              who runs it; locked while that process lives
        cells/ROWS-TASK.parquet  what a task found, written under another name and then renamed: whole or not there
        begun/TASK               tasks on their way, or lost with their worker: these come last the next time
        arrays/DIGEST.safetensors    a user's arrays, if the experiments have them
        runs/                    the trajectories, if they are kept
        table.parquet            all rows of the last sweep that was completed

``cells`` is a data set that grows: pandas, Polars and DuckDB read it at any moment.
"""

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save

from ..errors import InputError
from ..experiment import Experiment
from ..files import make_folder, read_json, write_whole
from .grid import Sweep
from .lock import read_driver

if TYPE_CHECKING:
    import pyarrow as pa

    from .table import SweepTable

Key = tuple[str, int, int]
KEY = ("fingerprint", "seed_data", "seed_start", "measured")


class SweepFolder:
    """The folder of a sweep."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.cells = self.path / "cells"

    def make(self, sweep: Sweep) -> None:
        """Make the folder if it is not there, and write down what is asked for."""
        for part in (self.path, self.cells, self.path / "begun"):
            make_folder(part)
        self.keep_arrays(sweep.experiment)
        plain = sweep.to_plain() | {"experiment": json.loads(self.describe(sweep.experiment))}
        write_whole(self.path / "sweep.json", json.dumps(plain, indent=1).encode())

    def keep_arrays(self, experiment: Experiment) -> None:
        """Keep a user's arrays beside the rows that were trained on them."""
        for arrays in experiment.arrays().values():
            path = self.path / self._array_file(arrays)
            if not path.exists():
                make_folder(path.parent)
                write_whole(path, save({part: np.array(getattr(arrays, part), order="C") for part in ("x", "y")}))

    @staticmethod
    def _array_file(arrays: Any) -> str:
        told = arrays.__plain__()
        return f"arrays/{told['x_sha256'][:12]}-{told['y_sha256'][:12]}.safetensors"

    def describe(self, experiment: Experiment) -> str:
        """An experiment as JSON, with file names relative to this folder: ``Experiment.from_plain`` reads it."""
        plain = experiment.to_plain()
        for name, arrays in experiment.arrays().items():
            plain[name]["file"] = self._array_file(arrays)
        return json.dumps(plain)

    def begin(self, task: str) -> None:
        """Note that a task is begun."""
        (self.path / "begun" / task).touch()

    def end(self, task: str) -> None:
        """Note that it came to an end."""
        (self.path / "begun" / task).unlink(missing_ok=True)

    def begun(self) -> set[str]:
        """Tasks that were begun and did not come to an end."""
        return {path.name for path in (self.path / "begun").iterdir()}

    def commit(self, task: str, rows: Sequence[dict[str, Any]], token: str) -> bool:
        """Write a task's rows, whole or not at all; False if another driver has taken the folder over."""
        found = read_driver(self.path)
        if found and found.get("token") != token:
            return False
        pairs = len({tuple(row[name] for name in KEY) for row in rows})
        write_whole(self.cells / f"{pairs}-{task}.parquet", as_parquet(as_table(rows)))
        return True

    def files(self) -> list[Path]:
        """The committed files."""
        return sorted(self.cells.glob("[0-9]*-*.parquet"))

    def done(self, measured: str) -> set[Key]:
        """The pairs of experiment and seed that have their rows."""
        found: set[Key] = set()
        for path in self.files():
            table = _read(path, columns=list(KEY))
            columns = [table.column(name).to_pylist() for name in KEY]
            found |= {(f, d, s) for f, d, s, m in zip(*columns, strict=True) if m == measured}
        return found

    def rows(self, files: Iterable[Path] | None = None) -> "pa.Table":
        """All committed rows, or those of some files; a column that a file lacks is null."""
        import pyarrow as pa

        tables = [_read(path) for path in (self.files() if files is None else files)]
        if not tables:
            raise InputError(f"the sweep in {self.path} has no finished cell yet")
        return pa.concat_tables(tables, promote_options="permissive")


def as_table(rows: Sequence[dict[str, Any]]) -> "pa.Table":
    """Rows as a table; what a row lacks is NaN among numbers."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        missing = float("nan") if any(isinstance(row.get(name), float) for row in rows) else None
        columns[name] = pa.array([row.get(name, missing) for row in rows])
    return pa.table(columns)


def as_parquet(table: "pa.Table") -> bytes:
    """A table as a Parquet file."""
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _read(path: Path, columns: list[str] | None = None) -> "pa.Table":
    from pyarrow import ArrowException, parquet

    try:
        return parquet.ParquetFile(path).read(columns=columns)
    except (ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def open_sweep(path: str | Path) -> "SweepTable":
    """The table of a sweep's folder, also while it grows."""
    from .table import SweepTable

    folder = SweepFolder(path)
    plain = read_json(folder.path / "sweep.json")
    return SweepTable.read(Sweep.from_plain(plain, folder.path), folder)
