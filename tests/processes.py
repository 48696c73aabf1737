"""Processes that are stopped and killed, each in a session of its own: nothing of it is lost sight of."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
PATIENCE = 180  # seconds; a machine may be slow
COMMAND = (sys.executable, "-m", "condensation")
KILLS = {  # in all
    **{"adam": 8, "gd": 6, "batches": 6, "flow": 8, "conv": 8, "resnet": 4},  # trainings
    **{"driver": 12, "worker": 8, "all": 8, "start": 16},  # sweeps: the driver, a worker, all at once, before they work
    **{"download": 10, "reproduce": 6},
}
assert sum(KILLS.values()) == 100
FETCH = """
import sys
sys.path.insert(0, {data!r})
import pytest, tiny
from condensation import cli
tiny.make(pytest.MonkeyPatch(), hosts=({address!r},))
sys.argv = ["condensation", "data", "fetch", "tiny"]
cli.main()
"""


@contextmanager
def started(*command: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, of which nothing is left at the end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    process = subprocess.Popen([*map(str, command)], start_new_session=True, **pipes)
    try:
        yield process
    finally:
        kill(process)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
        process.wait()


def kill(process: subprocess.Popen[Any]) -> None:
    """Kill all processes of a session at once."""
    for one in session_of(process):
        with suppress(psutil.NoSuchProcess):
            one.kill()


def session_of(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    """The living processes of a session."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(one.pid) == process.pid and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def check_gone(process: subprocess.Popen[Any], seconds: float = 60) -> None:
    """All processes of a session end, without help."""
    wait_until(lambda: not session_of(process), seconds=seconds)


def wait_until(met: Callable[[], Any], process: subprocess.Popen[Any] | None = None, seconds: float = PATIENCE) -> None:
    """Wait for something, while a process lives."""
    end = time.monotonic() + seconds
    while not met():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.02)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a process, and what it said on its standard error."""
    said = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, said


@contextmanager
def slow_host(files: dict[str, bytes], seconds: float) -> Iterator[tuple[str, list[str]]]:
    """A web server that takes its time for each file: its address, and the files that were asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = files[self.path[1:]]
            asked.append(self.path[1:])
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with suppress(OSError):  # the other side was killed
                for half in (content[:50], content[50:]):
                    self.wfile.write(half)
                    self.wfile.flush()
                    time.sleep(seconds / 2)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fetching(address: str) -> tuple[str, ...]:
    """A command that fetches the set ``tiny`` from a host."""
    return sys.executable, "-c", FETCH.format(data=str(HERE / "data"), address=address)


def kill_again_and_again(
    kind: str,
    command: Callable[[], Sequence[object]],
    ready: Callable[[subprocess.Popen[str]], None],
    ended: Callable[[subprocess.Popen[str]], None],
    strike: Callable[[subprocess.Popen[str]], None] | None = None,
    longest: float = 1.0,
    **options: Any,
) -> None:
    """Start a command again and again, and kill it at random moments, as often as ``KILLS`` says; then let it end.

    Args:
        kind: of what is killed.
        command: the next command; one that came to its end before it was killed is followed by another.
        ready: waits for the moment from which on it may be killed.
        ended: checks what a command has left that nobody killed.
        strike: kills it; all its processes at once if not given.
        longest: seconds after which it is killed at the latest.
    """
    moments, kills, began = random.Random(kind), 0, time.monotonic()
    while True:
        with started(*command(), **options) as process:
            ready(process)
            if kills < KILLS[kind]:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(moments.uniform(0, longest))
                if process.poll() is None:
                    (strike or kill)(process)
                    process.wait(PATIENCE)
                if process.returncode == -signal.SIGKILL:
                    kills += 1
                    check_gone(process)
                    continue
            ended(process)
            if kills == KILLS[kind]:
                break
    print(f"{kind}: killed {kills} times, {time.monotonic() - began:.0f} s")


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline()
