"""Sweeps whose processes are killed at random moments: the table is that of one process, nobody is left behind."""

import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import driving
import processes
import psutil
import pytest

from condensation import _leftovers as leftovers
from condensation.sweeps import open_sweep
from condensation.sweeps._folder import SweepFolder

pytestmark = pytest.mark.kill


class Killed:
    """A sweep of two workers in a folder, killed and run again."""

    def __init__(self, out: Path) -> None:
        self.out, self.earlier, self.found, self.left = out, set(), [], set()
        self.moments = random.Random(9)

    def command(self) -> list[object]:
        self.earlier = {path.name.lstrip(".") for path in self.out.glob("rounds/*")}
        return [sys.executable, driving.HERE / "driving.py", self.out, json.dumps({"backend": ["local", 2]})]

    def at_work(self, process: subprocess.Popen[str]) -> None:
        """A task of this driver's is on its way, some may be done, or all are."""
        folder, more = SweepFolder(self.out), self.moments.randint(0, 2)
        files = len(folder.files()) + more
        met = lambda: driving.begun(self.out, self.earlier) and len(folder.files()) >= files  # noqa: E731
        processes.wait_until(lambda: met() or process.poll() is not None)

    def strike(self, process: subprocess.Popen[str]) -> None:
        """Kill the driver, whose workers end without it."""
        self.found.append(len(SweepFolder(self.out).files()))
        process.kill()

    def strike_all(self, process: subprocess.Popen[str]) -> None:
        """Nobody is left to clear up what they shared."""
        self.found.append(len(SweepFolder(self.out).files()))
        processes.kill(process)
        self.left |= {path.name for path in leftovers.SHARED.glob(f"sem.loky-{process.pid}-*")}

    def ended(self, process: subprocess.Popen[str]) -> None:
        code, said = processes.ended(process)
        assert code == 0, said
        driving.same(open_sweep(self.out), driving.serial())
        driving.check_raw(self.out, driving.ROWS)
        assert not [*self.out.glob("rounds/*")]
        shutil.rmtree(self.out)


@pytest.fixture
def killed(tmp_path):
    return Killed(tmp_path / "out")


@pytest.mark.parametrize("kind", ["driver", "all"])
def test_a_sweep_is_killed_at_work(killed, kind):
    strike = killed.strike if kind == "driver" else killed.strike_all
    options = {"env": driving.environment(), "strike": strike}
    processes.kill_again_and_again(kind, killed.command, killed.at_work, killed.ended, **options)
    assert len(set(killed.found)) > 2, killed.found
    if kind == "all" and leftovers.SHARED.exists():
        assert len(killed.left) >= 8
        assert not killed.left & {path.name for path in leftovers.SHARED.iterdir()}  # the next driver did


def test_a_driver_is_killed_while_it_starts(killed):
    """Alone: workers that are being started end, too, and those that were not yet told whose they are."""
    options = {"env": driving.environment(), "strike": killed.strike, "longest": 4.0}
    processes.kill_again_and_again("start", killed.command, lambda _: None, killed.ended, **options)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The driver's processes of loky."""
    found = []
    for child in psutil.Process(process.pid).children():
        try:
            if any("LokyProcess" in part for part in child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


def test_workers_are_killed(killed):
    """Two in each sweep: a network whose worker is lost three times is given up."""
    kills, wanted = 0, processes.KILLS["worker"]
    while kills < wanted:
        with processes.started(*killed.command(), env=driving.environment()) as process:
            for _ in range(2):
                files = len(SweepFolder(killed.out).files())
                enough = lambda files=files: len(SweepFolder(killed.out).files()) > files and workers_of(process)  # noqa: E731
                processes.wait_until(enough, process)
                workers_of(process)[kills % 2 - 1].kill()
                kills += 1
            killed.ended(process)
    assert kills == wanted


def test_a_worker_that_is_stopped_for_a_while_loses_nothing(killed):
    with processes.started(*killed.command(), env=driving.environment()) as process:
        processes.wait_until(lambda: SweepFolder(killed.out).files() and workers_of(process), process)
        driving.suspend_at_work(workers_of(process), killed.out)
        time.sleep(2)
        assert process.poll() is None
        for worker in workers_of(process):
            worker.resume()
        killed.ended(process)
