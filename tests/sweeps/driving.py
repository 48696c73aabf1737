"""A small but real sweep, and its driver as a process of its own: python driving.py OUT '{"backend": ["local", 2]}'."""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from glob import glob
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil

from condensation import Adam, Dense, Evenly, Experiment, Init, Normal, sine_sum
from condensation.sweeps import Dask, Local, Ray, Sweep, SweepTable, run_sweep
from condensation.sweeps._folder import SweepFolder

HERE = Path(__file__).parent
OF_THE_RUN = {"seconds", "host", "process", "finished"}  # columns that tell who made a row, and when
BACKENDS = {"local": Local, "dask": Dask, "ray": Ray}
PATIENCE, TASKS = 180, 12  # seconds; of two networks each
MEASURE = ("lines", "change", "poison:waits")  # so that a task takes some time, whatever the machine
RATES = (1e-3, 2e-3, 5e-3, 1e-2)
ROWS, POISONED = 24, "init.hidden.std = 0.0001, optimizer.learning_rate = 0.005, seed 1"


def small(steps: int = 3000, seeds: int = 2, measure: Any = MEASURE, rates: Any = RATES) -> Sweep:
    """3 x 4 cells and two seeds: 24 networks."""
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    base = Experiment(Dense((5, 20, 1)), Init(Normal(0.005)), data, Adam(1e-3), steps, save=Evenly(3))
    axes = {"init.hidden.std": (1e-4, 1e-2, 1.0), "optimizer.learning_rate": tuple(rates)}
    return Sweep(base, axes, seeds=seeds, measure=measure)  # type: ignore[arg-type]


@lru_cache
def serial() -> SweepTable:
    """The table of one process, without any fault."""
    with TemporaryDirectory() as out:
        return run_sweep(small(), out, Local(1))


def same(found: SweepTable, expected: SweepTable) -> None:
    """All columns are equal bit for bit, but for those that tell of the run."""
    assert found.complete
    names = [name for name in expected.rows.column_names if name not in OF_THE_RUN]
    assert [name for name in found.rows.column_names if name not in OF_THE_RUN] == names
    for name in names:
        np.testing.assert_array_equal(found.column(name), expected.column(name), name)


def check_raw(out: Path, rows: int) -> None:
    """What pandas, Polars and DuckDB read in the folder has each network once."""
    import duckdb
    import pandas
    import polars

    key, files = ["fingerprint", "seed_data", "seed_init"], f"{out}/cells/*.parquet"
    frame = pandas.read_parquet(out / "cells")
    assert len(frame) == rows
    assert not frame.duplicated(key).any()
    assert polars.read_parquet(files).select(key).unique().height == rows
    found = duckdb.sql(f"select count(*), count(distinct ({', '.join(key)})) from '{files}'").fetchall()
    assert found == [(rows, rows)]


def check_poisoned(out: Path, told: dict[str, Any], error: str) -> None:
    """The cell that kills its worker is named, with the error; all others have their rows."""
    assert list(told["failed"]) == [POISONED]
    assert error in told["failed"][POISONED]
    assert told["rows"] == ROWS - 1
    check_raw(out, ROWS - 1)


@contextmanager
def driven(
    out: Path, backend: list[Any], before: tuple[str, ...] = (), **asked: Any
) -> Iterator[subprocess.Popen[str]]:
    """A driver; what it says is in OUT.log. Nothing of it is left at the end."""
    command = [*before, sys.executable, str(HERE / "driving.py"), str(out), json.dumps({"backend": backend} | asked)]
    with TemporaryDirectory(prefix="ray") as temporary:
        own = environment() | {"RAY_TMPDIR": temporary}
        with Path(f"{out}.log").open("a") as said:
            driver = subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            yield driver
        finally:
            stop(driver)
            driver.communicate()


def stop(process: subprocess.Popen[Any]) -> None:
    """Kill a process and all its children."""
    if process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait(20)
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(family, timeout=20)


def environment() -> dict[str, str]:
    """Of drivers and workers: they find ``poison``, use one thread, and tell nobody."""
    found_first = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    own = {"PYTHONPATH": found_first, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "JAX_PLATFORMS": "cpu"}
    return dict(os.environ) | own


def finish(driver: subprocess.Popen[str], out: Path) -> dict[str, Any]:
    """What a driver prints at its end."""
    printed, _ = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 0, Path(f"{out}.log").read_text()[-4000:]
    return json.loads(printed.splitlines()[-1])


def wait_for_files(out: Path, count: int, driver: subprocess.Popen[str]) -> None:
    """Wait until some tasks are committed; others are still to come."""
    began = time.monotonic()
    while len(SweepFolder(out).files()) < count:
        assert driver.poll() is None, Path(f"{out}.log").read_text()[-4000:]
        assert time.monotonic() - began < PATIENCE, "no file was committed"
        time.sleep(0.02)
    assert len(SweepFolder(out).files()) < TASKS - 1


def stamps(out: Path) -> dict[str, int]:
    """When each file of the data set was written."""
    return {path.name: path.stat().st_mtime_ns for path in SweepFolder(out).files()}


def begun(out: Path, earlier: set[str]) -> bool:
    """Whether a task is on its way in a round that was not there before.

    The driver removes rounds meanwhile: `glob` passes over folders that vanish, `Path.glob` fails.
    """
    return any(Path(task).parent.name not in earlier for task in glob(f"{out}/rounds/*/[0-9a-f]*"))


def suspend_at_work(workers: list[psutil.Process], out: Path) -> None:
    """Stop processes at a moment at which a task of theirs is on its way."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        for worker in workers:
            worker.suspend()
        if begun(out, set()):
            return
        for worker in workers:
            worker.resume()
        time.sleep(0.01)
    raise AssertionError("no task was on its way")


def main(out: str, asked: str) -> None:
    """Run the sweep and print how it ended."""
    logging.basicConfig(level=logging.INFO)
    given = json.loads(asked)
    name, *rest = given.pop("backend")
    table = run_sweep(small(**given), out, BACKENDS[name](*rest), block=2)
    told = {"rows": len(table), "complete": table.complete, "failed": dict(table.failed), "driver": os.getpid()}
    print(json.dumps(told | {"workers": sorted({*table.column("process").tolist()})}))


if __name__ == "__main__":
    main(*sys.argv[1:])
