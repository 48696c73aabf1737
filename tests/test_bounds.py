"""What a call takes is told before it takes it: memory, files that have no end, servers that say nothing."""

import json
import os
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condensation as c
from condensation import InputError, _memory
from condensation._files import map_tensors, open_arrays, read_arrays
from condensation._memory import Free, free_memory, in_words, limit_memory, require
from condensation.papers.phases.lines import LinesDiagram
from condensation.saving import Every
from condensation.sweeps import Dask, Local, Ray, Sweep, _backends
from condensation.sweeps._run import _block, pairs_of
from condensation.training._need import need_of, networks_that_fit, require_room
from condensation.training._train import member_of
from condensation.weights import measure_path
from condensation.weights._measure import measure_arrays

BASE = c.Experiment(
    c.Dense((5, 50, 1)), c.Init(c.Normal(0.1)), c.sine_sum(1, 1, 1, dim=5, n=80, low=0, high=1), c.Adam(1e-3), 500
)
GIB = 2**30
RATES = ("learning_rate", "eps", "b1")


@pytest.fixture
def has(monkeypatch):
    """Let the machine have so many bytes."""

    def set_free(size: int) -> None:
        monkeypatch.setattr(_memory, "free_memory", lambda: Free(size, f"this machine has {in_words(size)} free"))
        monkeypatch.setattr("condensation.training._need.free_memory", _memory.free_memory)

    return set_free


@pytest.fixture(autouse=True)
def _own_limit(monkeypatch):
    monkeypatch.delenv(_memory.VARIABLE, raising=False)
    yield
    limit_memory(None)


LARGE = {
    "steps that are saved": (lambda: c.train(BASE.replace(steps=10**9, save=Every(1)), 5), "1,000,000,001 saved steps"),
    "steps that are listed": (BASE.replace(steps=10**9, save=Every(1)).saved_steps, "a list of 1,000,000,001 steps"),
    "samples": (lambda: c.train(BASE.replace(**{"data.n": 10**9}), 5), "take fewer samples"),
    "samples that are drawn": (lambda: c.two_waves(2 * 10**9).draw(c.Seed(0, 0)), "drawing 2,000,000,000 samples"),
    "a rotation": (lambda: c.Synthetic(((1, 1, 1),), 10**6, 2, 0, 1, rotated=True).draw(c.Seed(0, 0)), "a rotation of"),
    "seeds": (lambda: c.train(BASE, 10**20), r"some 10\^20 network"),
    "seeds that are listed": (lambda: Sweep(BASE, {}, seeds=10**20), r"a list of some 10\^20 seeds"),
    "a width": (lambda: c.train(BASE.replace(**{"network.widths.1": 2**30})), "keep fewer layers"),
    "weights": (lambda: BASE.init.draw(c.Dense((2**30, 2**30, 1)), np.random.default_rng(0)), "drawing some 10"),
    "a width beyond 2^31": (lambda: c.Dense((5, 2**63, 1)), r"below 2\^31"),
    "blocks": (lambda: c.ResNet((1, 8, 8), 10, depth=10**9), "residual blocks"),
    "channels": (
        lambda: c.train(
            BASE.replace(network=c.Conv((1, 8, 8), (10**5,), 3, 10), data=c.Images("digits", n=500), save=c.Evenly(2))
        ),
        "a step's own arrays",
    ),
    "an axis": (lambda: c.linspace(0, 1, 2 * 10**9), "an axis of 2,000,000,000 values"),
    "a diagram": (lambda: LinesDiagram.sweep(2 * 10**9), "an axis of 2,000,000,000 values"),
    "cells": (
        lambda: Sweep(BASE, {f"optimizer.{name}": c.linspace(0.1, 0.2, 300) for name in RATES}, seeds=2).cells(),
        r"27,000,000 cells \(300 x 300 x 300\) with 2 seeds each",
    ),
    "cosines": (lambda: c.measure.cosine_similarity(np.ones((10**5, 2))), "100,000 with 100,000 units"),
}


@pytest.mark.parametrize(("call", "said"), LARGE.values(), ids=LARGE)
def test_what_cannot_fit_is_refused_at_once(call, said, has):
    has(20 * GIB)
    with pytest.raises(InputError, match=said) as told:
        call()
    assert "takes" not in str(told.value) or "this machine has 20 GiB free: " in str(told.value)


def test_a_training_says_how_many_networks_would_fit(has):
    large = BASE.replace(network=c.Dense((5, 300, 300, 1)), save=Every(1))
    has(20 * GIB)
    said = r"training 40 networks \(27.6 GiB of it for the weights at 501 saved steps\) takes 27.\d GiB of memory, but"
    with pytest.raises(InputError, match=said) as told:
        c.train(large, 40)
    [fitting] = [word for word in str(told.value).split() if word.startswith("(2")][1:]
    assert fitting == "(28"
    need = need_of(large)
    assert 28 * need.kept + need.working < 20 * GIB < 29 * need.kept + 2 * need.working
    with pytest.raises(InputError, match="training 40 networks"):
        c.training.train_pairs([(large, c.Seed(k, k)) for k in range(40)])


def test_more_than_half_of_it_is_warned_of(has):
    need = need_of(BASE)
    has(int(1.5 * (need.kept + need.working + need.steps)))
    limit_memory("1GiB")  # so that little is looked at, too
    with pytest.warns(UserWarning, match=r"training 1 network .* takes .*, and this machine has"):
        require_room([(BASE, 1)])


@pytest.mark.parametrize("kept", [None, ("dense1",)])
def test_the_need_is_what_a_run_holds(kept):
    chosen = BASE.replace(kept_layers=kept, steps=40, save=Every(3))
    run = c.train(chosen, 1)
    need, member = need_of(chosen), member_of(chosen, c.Seed(0, 0))
    assert need.saved == 2 * sum(value.nbytes for value in run.parameters.values())
    assert need.samples == member.x.nbytes + member.y.nbytes
    assert need.weights == sum(value.nbytes for value in member.init.values())
    held = 2 * sum(value.nbytes for value in run.curves.values())
    assert held <= need.curves <= 4 * held


@pytest.mark.parametrize("schedule", [Every(7), Every(5), c.Evenly(9), c.Geometric(10), c.At((3, 7)), c.At((0, 20))])
@pytest.mark.parametrize("last", [1, 2, 20, 1000])
def test_schedules_know_how_many_steps_they_have(schedule, last):
    if not isinstance(schedule, c.At) or schedule.chosen[-1] <= last:
        steps = schedule.steps(last)
        assert len(steps) <= schedule.most(last) <= len(steps) + (20 if isinstance(schedule, c.Geometric) else 0)


def test_ordinary_work_asks_for_nothing(monkeypatch):
    monkeypatch.setattr(_memory, "free_memory", lambda: pytest.fail("memory was looked up"))
    require_room([(BASE, 20)])
    member_of(BASE, c.Seed(0, 0))
    measure_arrays({"a.weight": np.ones((20, 3))})


def test_where_nothing_is_known_everything_goes_on(monkeypatch):
    for source in ("_of_machine", "_of_group", "_of_process"):
        monkeypatch.setattr(_memory, source, lambda: ())
    assert free_memory() is None
    require(2**80, "anything", "nothing")


def test_a_container_and_a_limit_of_the_process_count(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "_of_machine", lambda: ())
    monkeypatch.setattr(_memory, "_of_process", lambda: ())
    monkeypatch.setattr(_memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(_memory, "_PROCESS", tmp_path)
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder, limit in (("a/b", "max"), ("a", 3 * GIB), (".", 9 * GIB)):
        (tmp_path / folder / "memory.max").write_text(f"{limit}\n")
        (tmp_path / folder / "memory.current").write_text(f"{2 * GIB}\n")
        (tmp_path / folder / "memory.stat").write_text(f"anon 5\ninactive_file {GIB // 2}\nactive_file {GIB // 4}\n")
    assert free_memory() == Free(int(1.75 * GIB), "this container has 1.75 GiB of its 3 GiB free")
    (tmp_path / "cgroup").write_text("4:cpu:/\n3:memory:/a\nnonsense\n")
    (tmp_path / "memory" / "a").mkdir(parents=True)
    for name, value in (("limit_in_bytes", GIB), ("usage_in_bytes", 2 * GIB), ("stat", "total_inactive_file 7")):
        (tmp_path / "memory" / "a" / f"memory.{name}").write_text(f"{value}\n")
    assert free_memory() == Free(0, "this container has 0 bytes of its 1 GiB free")
    (tmp_path / "memory" / "a" / "memory.limit_in_bytes").write_text(str(2**63 - 4096))
    assert free_memory() is None


def test_a_limit_of_the_process_is_seen():
    code = "from condensation._memory import free_memory; print(*free_memory())"
    limited = f"ulimit -v {3 * 2**20} && exec {sys.executable} -c '{code}'"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=True)
    assert "this process may have 3 GiB (ulimit -v)" in done.stdout
    assert 2 * GIB < int(done.stdout.split()[0]) < 3 * GIB


@pytest.mark.parametrize(("text", "size"), [("4GiB", 4 * GIB), ("1.5 gb", 15 * 10**8), ("200MB", 2 * 10**8), (7, 7)])
def test_the_users_limit(text, size):
    limit_memory(text)
    assert os.environ[_memory.VARIABLE] == str(size)
    free = free_memory()
    assert free is not None
    assert free.size <= size
    limit_memory(None)
    assert _memory.VARIABLE not in os.environ


@pytest.mark.parametrize("wrong", ["4", "", "0GiB", "-1GiB", "lots", "GiB", 0, -5, "4GiB2"])
def test_what_is_no_limit_is_refused(wrong):
    with pytest.raises(InputError, match="memory is a positive number with a unit, such as 4GiB or 500MB, not"):
        limit_memory(wrong)


def test_a_limit_larger_than_the_machine_lets_a_call_go_on():
    limit_memory("100TiB")
    free = free_memory()
    assert free is not None
    assert free.size > 2**46
    require(2**40, "a terabyte", "nothing")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "socket"])
@pytest.mark.parametrize(
    "name", ["w.npz", "w.npy", "w.safetensors", "w.toml", "run.json", "model.safetensors.index.json"]
)
def test_only_regular_files_are_read(tmp_path, kind, name):
    path = tmp_path / name
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
    read = {"w.toml": c.Experiment.load, "run.json": lambda path: c.load_run(path.parent)}.get(name, measure_path)
    if kind == "folder" and read is measure_path:
        pytest.skip("a folder may hold a model")
    with pytest.raises(
        InputError, match=rf"is a .*{'' if kind == 'socket' else kind}.*, and only a regular file can be read"
    ):
        read(path)
    if name == "w.toml":
        with pytest.raises(InputError, match="only a regular file"):
            Sweep.load(path)
    if name == "w.npz":
        with pytest.raises(InputError, match="only a regular file"):
            c.Arrays.load(path)


def bomb(path: Path, shape: tuple[int, ...], content: bytes | None = None) -> Path:
    """An archive that unpacks to an array of zeros of a shape, or that says so."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(8 * int(np.prod(shape))) if content is None else content)
    return path


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, has):
    path = bomb(tmp_path / "w.npz", (1000, 9000))
    assert path.stat().st_size < 10**5
    has(64 * 2**20)
    with pytest.raises(InputError, match=r"w.npz cannot be read: reading the 1 arrays takes 68.7 MiB of memory"):
        read_arrays(path)
    with pytest.raises(InputError, match=r"takes 68.7 MiB"):
        open_arrays(path)["a"].read()
    rows = measure_path(path).rows
    assert "measuring 1,000 units of 9,000 inputs takes" in rows[0].reason


def test_an_archive_that_lies_about_its_size_is_refused(tmp_path):
    path = bomb(tmp_path / "w.npz", (10**6, 10**6), b"12345678")
    with pytest.raises(InputError, match=r"a is broken: ValueError: its header speaks of 7.28 TiB, and it has 8 bytes"):
        open_arrays(path)["a"].read()


def test_an_archive_of_many_arrays_is_opened_once(tmp_path, monkeypatch):
    arrays: dict[str, Any] = {f"a{k}": np.full(3, k) for k in range(300)}
    np.savez(tmp_path / "w.npz", **arrays)
    opened = []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *a, own=zipfile.ZipFile, **o: opened.append(a) or own(*a, **o))
    assert read_arrays(tmp_path / "w.npz")["a123"].tolist() == [123] * 3
    assert len(opened) == 1


def test_a_header_of_safetensors_is_bounded(tmp_path, has):
    path = tmp_path / "w.safetensors"
    with path.open("wb") as file:
        file.write((2 * 10**9).to_bytes(8, "little"))
        file.truncate(3 * 10**9)  # of holes
    with pytest.raises(InputError, match=r"its header has 1.86 GiB, and safetensors allows 95.4 MiB"):
        map_tensors(path)
    entries = {f"a{k}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for k in range(2000)}
    header = json.dumps(entries).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    assert len(map_tensors(path)[1]) == 2000
    limit_memory("1TiB")
    has(2**20)
    with pytest.raises(InputError, match=r"safetensors: the list of its arrays takes [\d.]+ MiB of memory, but this"):
        map_tensors(path)


def test_layers_that_do_not_fit_together_are_measured_one_after_the_other(has, monkeypatch):
    jobs = []
    pool = "condensation.weights._measure.ThreadPoolExecutor"
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(pool, lambda count: jobs.append(count) or ThreadPoolExecutor(count))
    monkeypatch.setattr("condensation.weights._measure.JOBS", 4)
    limit_memory("1TiB")
    arrays = {f"a{k}.weight": np.ones((50, 20)) for k in range(6)}
    for size, expected in ((2**30, 4), (20_000, 2), (9_000, 1)):
        has(size)
        assert [row.reason for row in measure_arrays(arrays)] == [""] * 6
        assert jobs.pop() == expected
    has(7_000)
    assert all("it is left out" in row.reason for row in measure_arrays(arrays))


def test_tasks_of_a_sweep_are_as_large_as_memory_allows(has):
    limit_memory("1TiB")
    pairs = pairs_of(Sweep(BASE, {"optimizer.learning_rate": c.logspace(1e-4, 1e-3, 10)}, seeds=200))
    need = need_of(BASE)
    first = need.kept + need.working + need.steps
    has(2**40)
    assert _block(pairs, Local(2), None) == 125
    has(2 * first + 8 * need.kept)
    assert networks_that_fit([BASE], 2) == 5
    assert _block(pairs, Local(2), None) == 5
    assert _block(pairs, Local(2), 3) == 3
    with pytest.raises(InputError, match=r"tasks of 50 networks do not fit into memory: 5 would \(block\)"):
        _block(pairs, Local(2), 50)
    has(2 * first - 1)
    with pytest.raises(
        InputError, match=r"training 2 networks at a time, .* each, takes .*: fewer processes \(n_jobs\)"
    ):
        _block(pairs, Local(2), None)


@pytest.mark.parametrize("backend", [Dask, Ray])
def test_a_server_that_says_nothing_is_not_waited_for_without_an_end(backend, monkeypatch):
    module = "distributed" if backend is Dask else "ray"
    waits = threading.Event()
    silent = type("Silent", (), {"Client": lambda *a, **o: waits.wait(60), "init": lambda *a, **o: waits.wait(60)})
    monkeypatch.setitem(sys.modules, module, silent)
    monkeypatch.setattr(_backends, "WAIT", 0.2)
    with pytest.raises(InputError, match=r"^no .* answers at tcp://h:1: .*nothing was heard within 0.2 seconds"):
        backend("tcp://h:1").workers()
    waits.set()


@pytest.mark.parametrize("backend", [lambda jobs: Dask("tcp://h:1", jobs), lambda jobs: Ray("h:1", jobs)])
@pytest.mark.parametrize("jobs", [0, -2])
def test_a_number_of_jobs_is_checked(backend, jobs):
    with pytest.raises(InputError, match="n_jobs must be a whole number of at least 1"):
        backend(jobs)
