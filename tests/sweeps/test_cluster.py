"""Sweeps on a real Dask cluster and a real Ray, whose workers and scheduler are killed in the middle."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import driving
import psutil
import pytest

from condensation import InputError
from condensation.sweeps import Dask, Local, open_sweep, run_sweep

pytestmark = pytest.mark.cluster
ONE_LIFE = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}  # a task that kills two workers is given up
HERE = Path(__file__).parent


class DaskCluster:
    """A scheduler and workers, each a process without a nanny: one that is killed stays away."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address, self.folder, self.processes = f"tcp://127.0.0.1:{self.port}", folder, []

    def _start(self, part: str, *given: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *given, "--no-dashboard"]
        with (self.folder / f"{part}.log").open("a") as said:
            process = subprocess.Popen(command, env=driving.environment() | ONE_LIFE, stderr=said, cwd=self.folder)
        self.processes.append(process)
        return process

    def scheduler(self) -> subprocess.Popen[bytes]:
        return self._start("scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    def worker(self, *given: str) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", *(given or ("--no-nanny",)))

    def close(self) -> None:
        for process in self.processes:
            driving.stop(process)


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[DaskCluster]:
    cluster = DaskCluster(tmp_path)
    yield cluster
    cluster.close()


def check(out: Path, told: dict) -> None:
    """The table is that of one process; nothing was trained in the driver."""
    assert told["failed"] == {}
    assert told["driver"] not in told["workers"]
    driving.same(open_sweep(out), driving.serial())
    driving.check_raw(out, driving.ROWS)


def test_a_dask_worker_is_killed(dask, tmp_path):
    dask.scheduler()
    first, second = dask.worker(), dask.worker()
    out = tmp_path / "out"
    with driving.driven(out, ["dask", dask.address]) as driver:
        driving.wait_for_files(out, 2, driver)
        first.kill()
        told = driving.finish(driver, out)
    check(out, told)
    assert second.pid in told["workers"]


def test_the_dask_scheduler_is_killed_and_comes_back(dask, tmp_path):
    scheduler = dask.scheduler()
    dask.worker(), dask.worker()
    out = tmp_path / "out"
    with driving.driven(out, ["dask", dask.address]) as driver:
        driving.wait_for_files(out, 2, driver)
        scheduler.kill()
        time.sleep(1)
        dask.scheduler()
        dask.worker(), dask.worker()
        told = driving.finish(driver, out)
    check(out, told)
    assert "dask broke down" in Path(f"{out}.log").read_text()


def test_a_dask_worker_that_outlives_its_driver_brings_in_nothing(dask, tmp_path):
    """It is stopped while the next driver takes over and finishes; then it goes on with the task it had begun."""
    dask.scheduler()
    worker, out = dask.worker(), tmp_path / "out"
    with driving.driven(out, ["dask", dask.address]) as driver:
        driving.wait_for_files(out, 2, driver)
        driving.suspend_at_work([psutil.Process(worker.pid)], out)
        driver.kill()
    driving.same(run_sweep(driving.small(), out, Local(1)), driving.serial())
    before = driving.stamps(out)
    worker.send_signal(signal.SIGCONT)
    time.sleep(3)  # a task takes some tenths of a second
    assert worker.poll() is None
    assert driving.stamps(out) == before
    driving.check_raw(out, driving.ROWS)


def test_a_dask_cluster_of_one_thread_does_the_work_itself(dask, tmp_path):
    dask.scheduler()
    only = dask.worker()
    out = tmp_path / "out"
    with driving.driven(out, ["dask", dask.address]) as driver:
        driving.wait_for_files(out, 1, driver)
        later = dask.worker()
        told = driving.finish(driver, out)
    check(out, told)
    assert only.pid in told["workers"]
    assert set(told["workers"]) <= {only.pid, later.pid}


def test_a_cell_that_kills_dask_workers_is_named(dask, tmp_path):
    """Dask's nannies start new workers; the scheduler gives the task up after the second."""
    dask.scheduler()
    dask.worker("--nworkers", "2", "--nanny")
    out = tmp_path / "out"
    with driving.driven(out, ["dask", dask.address], measure=["change", "poison:kills"], steps=200) as driver:
        told = driving.finish(driver, out)
    driving.check_poisoned(out, told, "KilledWorker")


def test_dask_tasks_go_to_workers_with_a_gpu(dask, tmp_path):
    """A pretended one: for Dask it is a name and a number."""
    dask.scheduler()
    having = dask.worker("--no-nanny", "--resources", "GPU=1")
    dask.worker()
    deadline = time.monotonic() + 60
    while Dask(dask.address).workers() != 1 or not Dask(dask.address).on_gpus():
        assert time.monotonic() < deadline
    out = tmp_path / "out"
    with driving.driven(out, ["dask", dask.address]) as driver:
        told = driving.finish(driver, out)
    check(out, told)
    assert told["workers"] == [having.pid]


def test_dask_that_does_not_answer_is_named(dask, tmp_path, monkeypatch):
    monkeypatch.setattr("condensation.sweeps._backends.WAIT", 1)
    with pytest.raises(InputError, match=f"no Dask scheduler answers at {dask.address}"):
        Dask(dask.address).workers()
    dask.scheduler()
    monkeypatch.setattr("condensation.sweeps._backends.WAIT", 10)
    with pytest.raises(InputError, match="has no workers"):
        Dask(dask.address).workers()


def alone() -> tuple[str, ...]:
    """What stands before a command to run it where there is no network but ``lo``."""
    before = ("unshare", "--net", *(() if os.geteuid() == 0 else ("--map-root-user",)))
    up = (sys.executable, str(HERE / "loopback.py"))
    try:
        tried = subprocess.run([*before, *up, "true"], capture_output=True, text=True, timeout=300)
    except OSError as error:
        pytest.skip(f"no network namespace can be made: {error}")
    if tried.returncode:
        pytest.skip(f"no network namespace can be made: {tried.stderr.strip()}")
    return before + up


def ray_workers(driver: psutil.Process) -> list[psutil.Process]:
    """The processes of the driver's own Ray that have a task now."""
    family = driver.children(recursive=True)
    return [one for one in family if one.is_running() and "ray::_call" in " ".join(one.cmdline())]


def test_a_ray_worker_is_killed(tmp_path):
    out = tmp_path / "out"
    with driving.driven(out, ["ray", "local"], before=alone()) as driver:
        driving.wait_for_files(out, 2, driver)
        began = time.monotonic()
        while not (working := ray_workers(psutil.Process(driver.pid))):
            assert time.monotonic() - began < driving.PATIENCE
        working[0].kill()
        told = driving.finish(driver, out)
    check(out, told)
    assert len(told["workers"]) >= min(2, len(os.sched_getaffinity(0)))


ASKS_RAY = """
import os
from functools import partial
from condensation.sweeps import Ray

with Ray("local", 1)._connect() as futures:
    future = futures.submit(partial(os.getenv, "CUDA_VISIBLE_DEVICES"), print)
    print(futures.places, futures.on_gpus, future.result())
"""


def test_ray_gives_each_task_a_gpu():
    """Pretended ones: Ray tells a task by CUDA_VISIBLE_DEVICES which one is its own, and none if it asks for none."""
    command = [*alone(), sys.executable, "-c", ASKS_RAY]
    with TemporaryDirectory(prefix="ray") as short:  # for its sockets
        own = driving.environment() | {"RAY_TMPDIR": short, "RAY_OVERRIDE_RESOURCES": '{"GPU": 2}'}
        told = subprocess.run(command, env=own, capture_output=True, text=True, timeout=driving.PATIENCE)
    assert "2 True 0" in told.stdout or "2 True 1" in told.stdout, told.stderr[-2000:]


def test_a_cell_that_kills_ray_workers_is_named(tmp_path):
    out = tmp_path / "out"
    with driving.driven(out, ["ray", "local"], before=alone(), measure=["change", "poison:kills"], steps=200) as driver:
        told = driving.finish(driver, out)
    driving.check_poisoned(out, told, "WorkerCrashedError")


def test_ray_that_does_not_answer_is_named(tmp_path):
    """In a process of its own, for Ray warns on import."""
    code = "from condensation.sweeps import Ray; Ray().workers()"
    own = driving.environment() | {"RAY_TMPDIR": str(tmp_path)}
    told = subprocess.run(
        [sys.executable, "-c", code], env=own, capture_output=True, text=True, timeout=driving.PATIENCE
    )
    assert "InputError: no Ray cluster answers at auto" in told.stderr
