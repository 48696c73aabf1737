"""One driver a folder: a second one is refused, a dead one's place is taken."""

import os
import socket
import subprocess
import sys

import pytest

from condensation import InputError
from condensation import _locks as locks
from condensation._locks import NoLocks, lock_file
from condensation.sweeps import _lock as lock
from condensation.sweeps._lock import DriverLock, read_driver

HOLD = """
import sys
from pathlib import Path
from condensation.sweeps._lock import DriverLock
held = DriverLock(Path(sys.argv[1]), "local")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_once(tmp_path):
    first = lock_file(tmp_path / "file")
    with pytest.raises(BlockingIOError):
        lock_file(tmp_path / "file")
    lock_file(tmp_path / "other").close()
    first.close()
    lock_file(tmp_path / "file").close()


def test_a_refused_lock_leaves_no_file_open(tmp_path):
    held = lock_file(tmp_path / "file")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        with pytest.raises(BlockingIOError):
            lock_file(tmp_path / "file")
    assert not before or len(os.listdir("/proc/self/fd")) == before
    held.close()


def test_a_second_driver_is_refused_and_the_first_named(tmp_path):
    first = DriverLock(tmp_path, "dask")
    told = read_driver(tmp_path)
    assert (told["process"], told["host"], told["backend"]) == (os.getpid(), socket.gethostname(), "dask")
    with pytest.raises(InputError, match=f"is being run by process {os.getpid()} on .* since 2.*: wait for it"):
        DriverLock(tmp_path, "local")
    assert read_driver(tmp_path) == told
    first.close()
    first.close()
    second = DriverLock(tmp_path, "local")
    assert second.token != first.token
    second.close()


def test_the_place_of_a_dead_driver_is_taken(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], text=True, **pipes) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            with pytest.raises(InputError, match=f"is being run by process {other.pid} "):
                DriverLock(tmp_path, "local")
        finally:
            other.kill()
    mine = DriverLock(tmp_path, "local")
    assert read_driver(tmp_path)["process"] == os.getpid()
    mine.close()


def test_a_driver_does_without_locks_where_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "fcntl", None)
    with pytest.raises(NoLocks):
        lock_file(tmp_path / "file")
    with pytest.warns(UserWarning, match="has no locks .*: a second driver there would not be noticed"):
        driver = DriverLock(tmp_path, "local")
    assert read_driver(tmp_path)["process"] == os.getpid()
    driver.close()


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "driver.json").mkdir()
    with pytest.raises(InputError, match=r"driver\.json cannot be written: Is a directory"):
        DriverLock(tmp_path, "local")


def test_a_full_disk_gives_the_lock_back(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(lock.Path, "write_text", full)
        with pytest.raises(InputError, match="cannot be written: No space left on device"):
            DriverLock(tmp_path, "local")
    DriverLock(tmp_path, "local").close()


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"host": "a"'])
def test_what_says_nothing_is_read_as_nothing(tmp_path, content):
    assert read_driver(tmp_path) == {}
    (tmp_path / "driver.json").write_text(content)
    assert read_driver(tmp_path) == {}
    held = lock_file(tmp_path / "driver.json")
    with pytest.raises(InputError, match=r"by process \? on \? since \?"):
        DriverLock(tmp_path, "local")
    held.close()
