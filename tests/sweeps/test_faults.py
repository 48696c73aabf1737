"""What breaks in the middle of a sweep: workers, drivers, disks, cells. Nothing is lost, nothing is there twice."""

import json
import pickle
import subprocess
from dataclasses import replace
from pathlib import Path

import driving
import numpy as np
import psutil
import pyarrow as pa
import pytest

from condensation import Arrays, Experiment, InputError, Seed, load_run
from condensation.sweeps import IncompleteTable, Local, SweepWarning, open_sweep, run_sweep
from condensation.sweeps import _folder as folder_module
from condensation.sweeps._folder import SweepFolder
from condensation.sweeps._run import pairs_of
from condensation.sweeps._task import Outcome, Task
from condensation.sweeps._texts import array_file
from condensation.sweeps._worker import pack, work

QUICK = {"steps": 100, "measure": ("change",)}


def workers_of(driver: subprocess.Popen) -> list[psutil.Process]:
    """The driver's processes of loky."""
    children = psutil.Process(driver.pid).children()
    return [child for child in children if any("LokyProcess" in part for part in child.cmdline())]


@pytest.mark.kill
def test_a_worker_is_killed(tmp_path):
    out = tmp_path / "out"
    with driving.driven(out, ["local", 2]) as driver:
        driving.wait_for_files(out, 2, driver)
        workers_of(driver)[0].kill()
        told = driving.finish(driver, out)
    assert told["failed"] == {}
    assert "local broke down: TerminatedWorkerError" in Path(f"{out}.log").read_text()
    driving.same(open_sweep(out), driving.serial())
    driving.check_raw(out, driving.ROWS)


@pytest.mark.kill
def test_workers_of_a_dead_driver_bring_in_nothing(tmp_path):
    """They are stopped while the next driver takes over and finishes; when they go on, they end."""
    out = tmp_path / "out"
    with driving.driven(out, ["local", 2]) as first:
        driving.wait_for_files(out, 2, first)
        orphans = workers_of(first)
        driving.suspend_at_work(orphans, out)
        first.kill()
        first.wait()
        try:
            with driving.driven(out, ["local", 2]) as second:
                told = driving.finish(second, out)
            before = driving.stamps(out)
        finally:
            for orphan in orphans:
                orphan.resume()
        assert psutil.wait_procs(orphans, timeout=driving.PATIENCE)[1] == []
    assert told["failed"] == {}
    assert driving.stamps(out) == before
    driving.same(open_sweep(out), driving.serial())
    driving.check_raw(out, driving.ROWS)


@pytest.mark.kill
def test_a_cell_that_kills_its_worker_is_named(tmp_path):
    out = tmp_path / "out"
    with driving.driven(out, ["local", 2], measure=["change", "poison:kills"], steps=200) as driver:
        told = driving.finish(driver, out)
    driving.check_poisoned(out, told, "TerminatedWorkerError")


@pytest.mark.kill
def test_a_second_driver_is_refused_and_a_dead_one_followed(tmp_path):
    out = tmp_path / "out"
    with driving.driven(out, ["local", 2]) as first:
        driving.wait_for_files(out, 1, first)
        asked = (out / "sweep.json").read_bytes()
        with pytest.raises(InputError, match=f"is being run by process {first.pid} on .* since .*: wait for it"):
            run_sweep(driving.small(**QUICK), out, Local(1))
        assert (out / "sweep.json").read_bytes() == asked
        first.kill()
        first.wait()
    driving.same(run_sweep(driving.small(), out, Local(1)), driving.serial())
    driving.check_raw(out, driving.ROWS)


def test_a_round_that_is_over_takes_nothing(tmp_path):
    """Whatever a worker of it was about to do."""
    sweep, folder = driving.small(**QUICK), SweepFolder(tmp_path)
    folder.make(sweep)
    rows = pa.table({"fingerprint": ["f"], "seed_data": [0], "seed_init": [0], "measured": ["m"], "x": [1.0]})
    folder.open_round("first-0")
    assert folder.begin("first-0", "a1", [("f", 0, 0)])
    assert folder.begin("first-0", "a2", [("g", 0, 0)])
    assert folder.commit("first-0", "a1", rows)
    folder.end("first-0", "a1")
    (tmp_path / "rounds" / "first-0" / "a3").write_text("[[")  # killed while it was written
    assert folder.begun("first-0") == {"a1", "a2", "a3"}
    assert folder.open_round("second-0") == {("g", 0, 0)}
    before = driving.stamps(tmp_path)
    assert not folder.begin("first-0", "a2", [("g", 0, 0)])
    assert not folder.commit("first-0", "a2", rows)
    folder.end("first-0", "a2")
    assert driving.stamps(tmp_path) == before
    assert [*before] == ["1-a1.parquet"]
    assert folder.commit("second-0", "a2", rows)
    assert folder.open_round("third-0") == set()
    assert [path.name for path in (tmp_path / "rounds").iterdir()] == ["third-0"]


def test_a_round_may_end_between_writing_and_committing(tmp_path, monkeypatch):
    folder = SweepFolder(tmp_path)
    folder.make(driving.small(**QUICK))
    folder.open_round("first-0")
    write = folder_module.write_atomic

    def overtaken(path, content):
        write(path, content)
        folder.open_round("second-0")

    monkeypatch.setattr(folder_module, "write_atomic", overtaken)
    row = pa.table({"fingerprint": ["f"], "seed_data": [0], "seed_init": [0], "measured": ["m"]})
    assert not folder.commit("first-0", "a1", row)
    assert folder.files() == []


def test_a_driver_that_is_overtaken_stops(tmp_path, monkeypatch):
    """Where the file system has no locks, a second driver is not refused."""
    begin = SweepFolder.begin

    def overtaken(self, *given):
        SweepFolder(tmp_path).open_round("another-0")
        return begin(self, *given)

    monkeypatch.setattr(SweepFolder, "begin", overtaken)
    with pytest.raises(InputError, match="was taken over by another driver"):
        run_sweep(driving.small(**QUICK), tmp_path, Local(1))


def test_a_full_disk_stops_only_what_it_hits(tmp_path, monkeypatch):
    """Some tasks find no space in any round; what they were to do is named, and done when there is."""
    write, written = folder_module.write_atomic, []

    def full(path, content):
        if path.parent.parent.name == "rounds":
            written.append(path.name[:21])
            if len(written) in (3, 5) or len(written) > driving.TASKS:
                raise InputError(f"{path} cannot be written: No space left on device; what was saved before stays")
        write(path, content)

    monkeypatch.setattr(folder_module, "write_atomic", full)
    with pytest.warns(IncompleteTable, match="4 of 24 networks have no row"):
        table = run_sweep(driving.small(**QUICK), tmp_path, Local(1), block=2)
    assert len(written) == driving.TASKS + 4 + 4
    assert len(table) == driving.ROWS - 4
    assert not table.complete
    assert len(table.failed) == 4
    assert all("No space left on device" in reason for reason in table.failed.values())
    monkeypatch.undo()
    before = driving.stamps(tmp_path)
    again = run_sweep(driving.small(**QUICK), tmp_path, Local(1), block=2)
    assert again.failed == {}
    assert again.complete
    assert before.items() <= driving.stamps(tmp_path).items()
    driving.check_raw(tmp_path, driving.ROWS)


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of its own that is nearly full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    tried = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", disk], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"no file system can be mounted here: {tried.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_disk_that_is_really_full(tiny_disk):
    with pytest.warns(IncompleteTable, match="No space left on device"):
        table = run_sweep(driving.small(**QUICK), tiny_disk / "out", Local(1), block=2)
    assert 0 < len(table) < driving.ROWS
    assert len(table.failed) == driving.ROWS - len(table)
    assert all("No space left on device" in reason for reason in table.failed.values())
    driving.check_raw(tiny_disk / "out", len(table))
    subprocess.run(["mount", "-o", "remount,size=4m", tiny_disk], check=True)
    assert run_sweep(driving.small(**QUICK), tiny_disk / "out", Local(1), block=2).complete
    driving.check_raw(tiny_disk / "out", driving.ROWS)


@pytest.mark.parametrize("own", [(), ("poison:early",)])
def test_a_cell_that_diverges_has_a_row(tmp_path, own):
    sweep = driving.small(steps=300, measure=("lines", "change", *own), rates=(1e-3, 1e200))
    with pytest.warns(SweepWarning, match="6 of 12 networks diverged"):
        table = run_sweep(sweep, tmp_path, Local(1), block=2)
    assert table.complete
    assert table.failed == {}
    gone = table.column("optimizer.learning_rate") == 1e200
    assert (table.column("diverged")[gone] >= 0).all()
    assert np.isnan(table.column("diverged")[~gone]).all()
    for quantity in ("early",) if own else ("dense1.k_eff", "dense1.change"):
        assert np.isnan(table.column(quantity)[gone]).all()
        assert np.isfinite(table.column(quantity)[~gone]).all()
    if not own:
        driving.check_raw(tmp_path, len(table))
    before = driving.stamps(tmp_path)
    with pytest.warns(SweepWarning, match="6 of 12 networks diverged"):
        run_sweep(sweep, tmp_path, Local(1), block=2)
    assert driving.stamps(tmp_path) == before


def test_a_measure_that_raises_is_named(tmp_path):
    sweep = driving.small(steps=100, measure=("change", "poison:raises"))
    with pytest.warns(IncompleteTable, match="no such thing here"):
        table = run_sweep(sweep, tmp_path, Local(1))
    assert table.failed == {driving.POISONED: "RuntimeError: no such thing here"}
    assert len(table) == driving.ROWS - 1
    with pytest.raises(InputError, match="no cell of the sweep could be trained: RuntimeError: nothing is good"):
        run_sweep(driving.small(steps=100, measure="poison:never"), tmp_path / "other", Local(1))


def test_what_is_done_is_not_done_again(tmp_path):
    out = tmp_path / "out"
    run_sweep(driving.small(**QUICK), out, Local(1), keep_runs=True)
    first = driving.stamps(out)
    assert run_sweep(driving.small(**QUICK), out, Local(1)).complete
    assert driving.stamps(out) == first
    run_sweep(driving.small(**QUICK, rates=(1e-3, 2e-3, 5e-3, 1e-2, 2e-2)), out, Local(1))
    wider = driving.stamps(out)
    assert rows_in(out, wider.keys() - first.keys()) == 6
    run_sweep(driving.small(**QUICK, seeds=3), out, Local(1))
    deeper = driving.stamps(out)
    assert rows_in(out, deeper.keys() - wider.keys()) == 12
    assert first.items() <= wider.items() <= deeper.items()
    driving.check_raw(out, driving.ROWS + 6 + 12)
    assert len(open_sweep(out)) == driving.ROWS + 12


def test_arrays_of_a_user_stay_in_the_folder(tmp_path):
    """A task on its way to a worker names them; the worker reads them once."""
    sampled = driving.small(**QUICK)
    x, y = sampled.experiment.data.draw(Seed(0, 0))
    sweep = replace(sampled, experiment=sampled.experiment.replace(data=Arrays(x, y)))
    expected = run_sweep(sweep, tmp_path, Local(1))
    pair = pairs_of(sweep)[0]
    task = Task(tmp_path, "first-0", (pair,), sweep.measuring, sweep.measuring.key)
    payload = pack(task, task.folder)
    assert len(payload) < 4000 < len(pickle.dumps(task))
    folder = SweepFolder(tmp_path)
    folder.open_round("first-0")
    assert work(payload, pinned=False) == Outcome()
    found = folder.rows([folder.cells / f"1-{task.name}.parquet"]).to_pylist()[0]
    assert found["dense1.change"] == expected.column("dense1.change")[0]
    assert json.loads(found["experiment"])["data"]["file"] == array_file(pair.experiment.data)
    again = Experiment.from_plain(json.loads(found["experiment"]), tmp_path)
    assert again.fingerprint() == found["fingerprint"]


def rows_in(out: Path, names: set[str]) -> int:
    return SweepFolder(out).rows([out / "cells" / name for name in names]).num_rows


def test_other_measures_are_taken_from_the_kept_runs(tmp_path):
    few = {"steps": 100, "rates": (1e-3, 2e-3)}
    trained = run_sweep(driving.small(**few, measure="change"), tmp_path, Local(1), keep_runs=True)
    before = driving.stamps(tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/*.safetensors")}
    assert sum(len(load_run(path.parent).seeds) for path in kept) == len(trained) == 12
    table = run_sweep(driving.small(**few, measure="lines"), tmp_path, Local(1), keep_runs=True)
    assert table.complete
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    np.testing.assert_array_equal(table.column("seconds"), trained.column("seconds"))
    assert "dense1.change" not in table.rows.column_names
    assert before.items() <= driving.stamps(tmp_path).items()
    assert len(driving.stamps(tmp_path)) == 2 * len(before)


class Hiding(Local):
    """A library that is interrupted while it starts a process, and raises an error of its own for it."""

    def run(self, payloads):
        try:
            raise KeyboardInterrupt
        finally:
            raise UnboundLocalError("parent_r")


def test_an_interruption_is_not_taken_for_a_breakdown(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_sweep(driving.small(**QUICK), tmp_path, Hiding(2))


def test_what_a_killed_driver_was_writing_is_removed(tmp_path):
    sweep, folder = driving.small(**QUICK), SweepFolder(tmp_path)
    folder.make(sweep)
    for name in ("sweep.json", "failed.json", "data.safetensors", "table.parquet"):
        (tmp_path / f".{name}.30bf566e.part").write_text("half of")
    folder.make(sweep)
    assert not [*tmp_path.glob(".*.part")]
