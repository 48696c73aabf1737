"""Several processes at one folder: two write, one copies, one reads. The numbers are those of one alone."""

import json
import re
import shutil
import sys
import threading
import time
import warnings
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import processes
import pytest
from longer import BASE, LONG, same

from condensation import InputError, Seed, load_run, train
from condensation import _files as files
from condensation import _locks as locks
from condensation._files import map_tensors
from condensation._locks import locked, own_folder
from condensation._writing import write_tensors
from condensation.runs import UnfinishedSeeds, run_folder
from condensation.runs._checkpoints import RunCheckpoints
from condensation.sweeps import Local, Sweep, open_sweep, run_sweep

SWEEP = Sweep(
    BASE.replace(steps=3000), {"optimizer.learning_rate": [1e-3, 2e-3, 3e-3, 4e-3]}, seeds=3, measure="change"
)
RUN_SWEEP = """
import sys
sys.path.insert(0, {tests!r})
from test_writers import SWEEP
from condensation import InputError
from condensation.sweeps import Local, run_sweep
print("begins", flush=True)
try:
    run_sweep(SWEEP, {out!r}, Local(1), block=1)
except InputError as error:
    sys.exit(f"refused: {{error}}")
"""


def training(out: Path, name: str = "adam", seeds: int = 2) -> tuple[object, ...]:
    return sys.executable, processes.HERE / "longer.py", name, out, seeds


def sweeping(out: Path) -> tuple[object, ...]:
    return sys.executable, "-c", RUN_SWEEP.format(tests=str(processes.HERE), out=str(out))


def same_table(one, other) -> None:
    assert one.complete
    for name in ("optimizer.learning_rate", "seed_init", "loss", "dense1.change"):
        np.testing.assert_array_equal(one.column(name), other.column(name))


def test_what_is_finished_is_not_taken_back(tmp_path):
    """A second process that trains the same seed comes along behind."""
    trained = train(BASE, 1, out=tmp_path)
    slow = RunCheckpoints(tmp_path, [(BASE, Seed(0, 0))])
    kept = slow.load()[0]
    slow.keep({0: replace(kept, finished=False, row=3)})
    same(load_run(run_folder(tmp_path, BASE)), trained)
    file = run_folder(tmp_path, BASE) / "data0-init0.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1  # what is damaged is trained anew, and that is kept
    file.write_bytes(content)
    slow.keep({0: replace(kept, finished=False, row=3)})
    again = slow.load()[0]
    assert (again.finished, again.row) == (False, 3)
    slow.keep({0: kept})
    slow.close()
    same(load_run(run_folder(tmp_path, BASE)), trained)
    assert [path.name for path in file.parent.glob(".*")] == []


def test_parts_of_a_killed_process_are_removed(tmp_path):
    train(BASE, 1, out=tmp_path)
    folder = run_folder(tmp_path, BASE)
    left, other = folder / ".data0-init0.safetensors.12345678.part", folder / ".notes.part"
    for path in (left, other):
        path.write_bytes(b"half")
    with locked(folder), pytest.MonkeyPatch.context() as patched:  # somebody else may be writing it
        patched.setattr(locks, "WAIT", 0.05)
        train(BASE, 1, out=tmp_path)
    assert left.exists()
    train(BASE, 1, out=tmp_path)
    assert not left.exists()
    assert other.exists()


def test_a_file_may_be_replaced_while_it_is_read(tmp_path, monkeypatch):
    file = tmp_path / "a.safetensors"
    write_tensors(file, {"x": np.arange(3.0)})
    other = tmp_path / "b.safetensors"
    write_tensors(other, {"x": np.arange(30.0), "y": np.zeros(2)})
    opened = Path.open

    def replaced(self, *given):
        handle = opened(self, *given)
        other.replace(self)
        return handle

    monkeypatch.setattr(files.Path, "open", replaced)
    _, arrays = map_tensors(file)
    np.testing.assert_array_equal(arrays["x"].read(), np.arange(3.0))


def test_a_folder_is_locked_for_a_moment_and_never_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "WAIT", 0.1)
    with locked(tmp_path) as first, locked(tmp_path) as second:
        pass
    with locked(tmp_path) as third:
        pass
    with locked(tmp_path / "gone") as nowhere:
        pass
    monkeypatch.setattr(locks, "fcntl", None)
    with locked(tmp_path) as unlocked:
        pass
    assert (first, second, third, nowhere, unlocked) == (True, False, True, False, False)


def test_a_folder_for_temporary_files_that_somebody_else_made_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(locks.tempfile, "gettempdir", lambda: str(tmp_path))
    path = own_folder("some")
    assert (path.stat().st_mode & 0o777, own_folder("some")) == (0o700, path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        own_folder("some")


@pytest.mark.trials
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "late"), [("adam", 0), ("adam", 1.5), ("flow", 0), ("conv", 0.5)])
def test_two_processes_train_one_experiment(name, late, tmp_path):
    """Side by side in one folder, with many checkpoints; the second may come later."""
    expected = train(LONG[name], 2)
    with ExitStack() as stack:
        both = [stack.enter_context(processes.started(*training(tmp_path, name)))]
        time.sleep(late)
        both.append(stack.enter_context(processes.started(*training(tmp_path, name))))
        ended = [processes.ended(process) for process in both]
    assert ended == [(0, ""), (0, "")]
    folder = run_folder(tmp_path, LONG[name])
    same(load_run(folder), expected)
    assert [*folder.glob(".*")] == []
    assert len(json.loads((folder / "run.json").read_text())["seeds"]) == 2


@pytest.mark.trials
def test_two_processes_train_different_seeds_of_one_experiment(tmp_path):
    expected = train(LONG["gd"], 3)
    with (
        processes.started(*training(tmp_path, "gd", 3)) as one,
        processes.started(*training(tmp_path, "gd", 1)) as other,
    ):
        assert [processes.ended(one), processes.ended(other)] == [(0, ""), (0, "")]
    same(load_run(run_folder(tmp_path, LONG["gd"])), expected)


@pytest.mark.trials
def test_two_drivers_of_one_sweep(tmp_path):
    """One is refused; the table is that of one process."""
    out = tmp_path / "out"
    with processes.started(*sweeping(out)) as one, processes.started(*sweeping(out)) as other:
        ended = sorted([processes.ended(one), processes.ended(other)])
    assert [code for code, _ in ended] in ([0, 1], [0, 0])  # the second may come when the first is done
    if ended[1][0]:
        assert "refused: the sweep in" in ended[1][1]
        assert "is being run by process" in ended[1][1]
    same_table(open_sweep(out), run_sweep(SWEEP, tmp_path / "alone", Local(1)))


def load(out: Path, name: str):
    """The run, or why it cannot be loaded."""
    try:
        with warnings.catch_warnings(action="ignore", category=UnfinishedSeeds):
            return load_run(run_folder(out, LONG[name]))
    except InputError as error:
        return error


def copy(folder: Path, to: Path) -> None:
    with suppress(shutil.Error):  # some files were gone when their turn came
        shutil.copytree(folder, to)


@pytest.mark.trials
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["adam", "batches"])
def test_a_run_that_is_copied_while_it_is_written(name, tmp_path):
    """A copy is loaded, or it is said what it lacks; trained further it comes to the same numbers."""
    expected = train(LONG[name], 2)
    copies = []
    with processes.started(*training(tmp_path / "out", name)) as process:
        assert processes.line(process) == "moving\n"
        while process.poll() is None and len(copies) < 30:
            copies.append(tmp_path / f"copy{len(copies)}")
            copy(tmp_path / "out", copies[-1])
            time.sleep(0.15)
        assert processes.ended(process)[0] == 0
    assert len(copies) > 2
    said = [str(found) for found in (load(out, name) for out in copies) if isinstance(found, InputError)]
    assert all(re.search("has no finished seed yet|there is no file|is gone", why) for why in said), said
    for out in (copies[1], copies[len(copies) // 2], copies[-2]):
        same(train(LONG[name], 2, out=out), expected)
        same(load_run(run_folder(out, LONG[name])), expected)
    same(load_run(run_folder(tmp_path / "out", LONG[name])), expected)


@pytest.mark.trials
def test_a_sweep_that_is_copied_and_read_while_it_is_written(tmp_path):
    expected, rows, copies = run_sweep(SWEEP, tmp_path / "alone", Local(1)), [], []
    out = tmp_path / "out"
    with processes.started(*sweeping(out)) as process:
        processes.wait_until(lambda: [*out.glob("cells/*")], process)
        while process.poll() is None:
            with warnings.catch_warnings(action="ignore"):
                rows.append(len(open_sweep(out)))
            copies.append(tmp_path / f"copy{len(copies)}")
            copy(out, copies[-1])
            time.sleep(0.1)
        assert processes.ended(process) == (0, "")
    assert rows == sorted(rows)
    for one in (copies[0], copies[len(copies) // 2]):
        same_table(run_sweep(SWEEP, one, Local(1), block=1), expected)
    same_table(open_sweep(out), expected)


@pytest.mark.trials
def test_a_run_that_is_read_while_it_is_written(tmp_path):
    """Many times: only what is not there yet is missed, and each seed is whole when it is there."""
    expected, folder = train(LONG["gd"], 3), run_folder(tmp_path, LONG["gd"])
    looks, said = 0, set()
    with processes.started(*training(tmp_path, "gd", 3)) as process:
        processes.wait_until((folder / "run.json").exists, process)
        while process.poll() is None:
            looks += 1
            found = load(tmp_path, "gd")
            if isinstance(found, InputError):
                said.add(str(found))
                continue
            for seed in found.seeds:
                k = expected.seeds.index(seed)
                np.testing.assert_array_equal(found.loss[found.seeds.index(seed)], expected.loss[k])
        assert processes.ended(process)[0] == 0
    assert looks > 5
    assert said <= {f"the run in {folder} has no finished seed yet"}
    same(load_run(folder), expected)


def test_threads_of_one_process_wait_for_each_other(tmp_path, monkeypatch):
    inside, most = 0, []
    monkeypatch.setattr(locks, "WAIT", processes.PATIENCE)

    def enter():
        nonlocal inside
        for _ in range(20):
            with locked(tmp_path) as alone:
                assert alone
                inside += 1
                most.append(inside)
                time.sleep(0.001)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80
