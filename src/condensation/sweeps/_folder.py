"""A sweep on disk.

    OUT/sweep.json               the sweep that was run last, with its fingerprint
        failed.json              why it could not train or measure pairs of cell and seed, by pair
        driver.json              who runs it; locked while that process lives
        cells/PAIRS-TASK.parquet the rows of a task, renamed to this place when they are whole
        rounds/ROUND/TASK        tasks that are running, or were lost with their worker: these come last the next time.
                                 Rows are written here first; once the folder is gone, its workers cannot commit
        arrays/DIGEST.safetensors    a user's arrays, if the experiments have them
        runs/                    the trajectories, if they are kept
        table.parquet            all rows of the last sweep that was completed

``cells`` is a data set that grows: pandas, Polars and DuckDB read it at any moment.
"""

import json
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import ArrowException, parquet

from .._files import SEAL, read_sealed_json
from .._functions import opening
from .._seals import PLACE, check_seal, seal
from .._writing import make_folder, write_atomic, write_json
from ..errors import Damaged, InputError
from ..experiment import Experiment
from ..runs._folder import keep_arrays, warn_of_damage
from ._grid import Sweep
from ._texts import array_file

if TYPE_CHECKING:
    from ._table import SweepTable

RowKey = tuple[str, int, int]  # of a pair: fingerprint of the experiment, data seed, initialization seed
KEY = ("fingerprint", "seed_data", "seed_init", "measured")
MARK = "[0-9a-f]*"  # names of tasks; what is being written begins with a dot


class SweepFolder:
    """The folder of a sweep."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.cells = self.path / "cells"
        self.rounds = self.path / "rounds"

    def make(self, sweep: Sweep) -> None:
        """Make the folder if it is not there, and write the sweep into it; for the one driver that has its lock."""
        for part in (self.path, self.cells, self.rounds):
            make_folder(part)
        for name in ("*.json", "*.safetensors", "*.parquet"):
            for left in self.path.glob(f".{name}.*.part"):
                left.unlink(missing_ok=True)  # of a driver that was killed while it wrote
        self.keep_arrays(sweep.experiment)
        (self.path / "failed.json").unlink(missing_ok=True)
        plain = sweep.to_plain() | {"fingerprint": sweep.fingerprint()}
        write_json(self.path / "sweep.json", plain)

    def keep_failed(self, failed: Mapping[str, str]) -> None:
        """Write why pairs of cell and seed failed."""
        write_json(self.path / "failed.json", failed)

    def failed(self) -> dict[str, str]:
        """Why pairs of cell and seed failed in the last run, by pair."""
        path = self.path / "failed.json"
        return read_sealed_json(path) if path.exists() else {}

    def keep_arrays(self, experiment: Experiment) -> None:
        """Keep a user's arrays beside the rows that were trained on them."""
        for arrays in experiment.arrays().values():
            path = self.path / array_file(arrays)
            make_folder(path.parent)
            keep_arrays(path, arrays)

    def open_round(self, name: str) -> set[RowKey]:
        """Begin a round; workers of earlier rounds can commit no more. The pairs that were lost in those."""
        lost = self.close_rounds()
        make_folder(self.rounds / name)
        return lost

    def close_rounds(self) -> set[RowKey]:
        """End all rounds; the pairs that were begun in them and not finished."""
        lost: set[RowKey] = set()
        for path in sorted(self.rounds.iterdir()):
            if not path.name.startswith("."):  # a driver that died here left it so
                path = path.rename(path.with_name(f".{path.name}"))  # from now on its workers find no folder
            for mark in path.glob(MARK):
                lost |= _keys(mark)
            shutil.rmtree(path, ignore_errors=True)
        return lost

    def begin(self, round: str, task: str, keys: Iterable[RowKey]) -> bool:
        """Mark a task as begun; False if its round is over."""
        try:
            (self.rounds / round / task).write_text(json.dumps(list(keys)), encoding="utf-8")
        except FileNotFoundError:
            return False
        return True

    def end(self, round: str, task: str) -> None:
        """Remove the mark of a task that is finished, or failed."""
        (self.rounds / round / task).unlink(missing_ok=True)

    def begun(self, round: str) -> set[str]:
        """Tasks that are running or lost in a round, or finished in any."""
        return {path.name for path in (self.rounds / round).glob(MARK)} | {
            path.stem.split("-")[1] for path in self.files()
        }

    def commit(self, round: str, task: str, rows: pa.Table) -> bool:
        """Add a task's rows to the data set, whole or not at all; False if its round is over."""
        part = self.rounds / round / f".{task}.{secrets.token_hex(4)}"
        try:
            write_parquet(part, rows)
            part.replace(self._file(task, len(rows.group_by(KEY).aggregate([]))))
        except (OSError, InputError):
            if part.parent.exists():
                part.unlink(missing_ok=True)
                raise
            return False
        return True

    def has(self, task: str, pairs: int) -> bool:
        """Whether a task's rows are here, those of all its pairs."""
        return self._file(task, pairs).exists()

    def _file(self, task: str, pairs: int) -> Path:
        return self.cells / f"{pairs}-{task}.parquet"

    def files(self) -> list[Path]:
        """The committed files."""
        return sorted(self.cells.glob("[0-9]*-*.parquet"))

    def done(self, measured: str) -> set[RowKey]:
        """The pairs of experiment and seed that have their rows; a damaged file is removed, and made again."""
        keys: set[RowKey] = set()
        for path in self.files():
            try:
                table = _read(path, columns=list(KEY))
            except Damaged as error:
                warn_of_damage(error)
                path.unlink()
                continue
            columns = [table.column(name).to_pylist() for name in KEY]
            keys |= {(f, d, i) for f, d, i, m in zip(*columns, strict=True) if m == measured}
        return keys

    def rows(self, files: Iterable[Path] | None = None) -> pa.Table:
        """All committed rows, or those of some files; a column that a file lacks is null."""
        tables = [_read(path) for path in (self.files() if files is None else files)]
        if not tables:
            raise InputError(f"the sweep in {self.path} has no finished cell yet")
        return pa.concat_tables(tables, promote_options="permissive")


def _keys(mark: Path) -> set[RowKey]:
    """The pairs of a task that was begun; none if that was not written whole."""
    try:
        return {(fingerprint, data, init) for fingerprint, data, init in json.loads(mark.read_text(encoding="utf-8"))}
    except (OSError, ValueError):
        return set()


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table as a sealed Parquet file."""

    def write(file: BinaryIO) -> None:
        with parquet.ParquetWriter(file, table.schema, write_page_checksum=True) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({SEAL: PLACE})
        seal(file)

    write_atomic(path, write)


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    check_seal(path)
    try:
        return parquet.ParquetFile(path).read(columns=columns)
    except (ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def open_sweep(path: str | Path, trust: bool = False) -> "SweepTable":
    """The table of a sweep's folder, also while it grows; the measures that made its numbers are not imported.

    Args:
        path: the folder.
        trust: import the modules of activations that the sweep names. By default those of modules that are imported
            already are found, and others refused: opening a sweep runs no code.

    It warns as ``sweep`` does: ``IncompleteTable`` where pairs of cell and seed have no rows (yet).
    """
    from ._notes import warn_of_notes
    from ._table import SweepTable

    folder = SweepFolder(path)
    plain = read_sealed_json(folder.path / "sweep.json")
    with opening(trust):
        sweep = Sweep.from_plain(plain, folder.path)
    table = SweepTable.read(sweep, folder, folder.failed())
    warn_of_notes(table)
    return table
