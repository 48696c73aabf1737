"""Ctrl-C and its like: the first stops a command and saves what it has, the second ends it at once."""

import asyncio
import os
import pty
import re
import select
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

import processes
import psutil
import pytest

from condensation.cli import _signals
from condensation.runs._store import ExperimentFolder, open_run
from condensation.seeds import Seed

SENTENCE = "condensation: interrupted; what was saved stays, and the same command goes on from there"
LONG = """
format = 1
steps = {steps}
[network]
kind = "dense"
widths = [5, 30, 1]
activation = "tanh"
[init]
hidden = {{ kind = "normal", std = 0.5 }}
[data]
kind = "synthetic"
terms = [[3.5, 5, 1]]
dim = 5
n = 40
low = -4
high = 2
[save]
kind = "every"
k = {steps}
[optimizer]
{optimizer}
"""
IMAGES = """
format = 1
steps = 1000000
[network]
kind = "conv"
image = [1, 8, 8]
channels = [4]
kernel = 3
outputs = 10
hidden = [8]
[init]
hidden = { kind = "normal", std = 0.1 }
[data]
kind = "images"
name = "digits"
n = 50
[loss]
name = "cross_entropy"
[optimizer]
kind = "adam"
learning_rate = 0.001
[save]
kind = "every"
k = 1000000
"""
ADAM, FLOW = 'kind = "adam"\nlearning_rate = 1e-3', 'kind = "gradient_flow"\ntime_step = 0.01'
EXPERIMENTS = {
    "dense": LONG.format(steps=100_000_000, optimizer=ADAM),
    "flow": LONG.format(steps=10_000_000, optimizer=FLOW) + '[record]\nkind = "every"\nk = 500\n',
    "conv": IMAGES,
}
ROW = EXPERIMENTS["flow"].replace("k = 500", "k = 10000000")  # would take hours
ROW = ROW.replace("time_step = 0.01", "time_step = 0.01\nmost_steps = 1000000000")
SWEEP = """
format = 1
experiment = "dense.toml"
measure = ["lines"]
[axes]
"optimizer.learning_rate" = [0.1, 0.2, 0.3]
"""
SIGNALS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


def saved(folder: Path) -> list[Path]:
    return [*folder.glob("*/data*.safetensors")]


def training(folder: Path, kind: str) -> tuple[str, ...]:
    (folder / f"{kind}.toml").write_text(EXPERIMENTS[kind])
    return (*processes.COMMAND, "train", str(folder / f"{kind}.toml"), "--seeds", "1", "--out", str(folder))


def check_said(code: int, said: str, expected: int) -> None:
    assert code == expected, said
    assert said.count(SENTENCE) == 1
    assert not re.search("Traceback|Exception|FATAL|leaked", said), said


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if (kind, name) == ("dense", "SIGTERM") else pytest.mark.trials)
        for kind in EXPERIMENTS
        for name in SIGNALS
    ],
)
def test_a_signal_stops_a_training_which_saves_first(kind, name, tmp_path):
    with processes.started(*training(tmp_path, kind)) as process:
        processes.wait_until(lambda: saved(tmp_path), process)
        time.sleep(0.3)
        at = time.time_ns()
        process.send_signal(getattr(signal, name))
        check_said(*processes.ended(process), SIGNALS[name])
        processes.check_gone(process)
    (file,) = saved(tmp_path)
    assert file.stat().st_mtime_ns > at  # what was trained until the signal
    folder = open_run(file.parent)
    assert isinstance(folder, ExperimentFolder)
    assert not folder.checkpoints()[Seed(0, 0)].finished
    assert not [*file.parent.glob(".*.part")]


@pytest.mark.trials
@pytest.mark.parametrize("kind", EXPERIMENTS)
@pytest.mark.parametrize("names", [("SIGINT", "SIGINT"), ("SIGTERM", "SIGINT"), ("SIGINT", "SIGTERM")])
def test_a_second_signal_ends_a_training_at_once(kind, names, tmp_path):
    """Whatever threads of native code are doing: a flow's one call takes long here. What was saved is whole."""
    command = training(tmp_path, kind)
    with processes.started(*command) as process:
        processes.wait_until(lambda: saved(tmp_path), process)
        for name in names:
            process.send_signal(getattr(signal, name))
            time.sleep(0.01)
        code, said = processes.ended(process)
    # the first may be quicker; two that arrive within one native call are handled in the order of their numbers
    assert code in {SIGNALS[name] for name in names} | {-getattr(signal, names[1])}
    assert not re.search("Traceback|Exception|FATAL|leaked", said), said
    (file,) = saved(tmp_path)
    assert open_run(file.parent).checkpoints()[Seed(0, 0)].leaves


def in_a_long_call(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait until a training of one row has been compiled, and is in the middle of it."""
    processes.wait_until(lambda: [*folder.glob("*/run.json")], process)
    used = lambda: sum(psutil.Process(process.pid).cpu_times()[:2])  # noqa: E731
    begun = used()
    processes.wait_until(lambda: used() > begun + 20, process)


@pytest.mark.trials
def test_a_second_signal_does_not_wait_for_a_long_call(tmp_path):
    """One row of a flow, which would take hours."""
    (tmp_path / "row.toml").write_text(ROW)
    with processes.started(
        *processes.COMMAND, "train", tmp_path / "row.toml", "--seeds", 2, "--out", tmp_path
    ) as process:
        in_a_long_call(process, tmp_path)
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        code, said = processes.ended(process)
        processes.check_gone(process)
    assert code == -signal.SIGINT
    assert not re.search("Traceback|Exception|FATAL", said), said
    assert "stopping: the steps that are being taken come to their end first" in said


@pytest.mark.trials
def test_a_users_own_program_ends_by_ctrl_c_whatever_its_threads_do(tmp_path):
    """Each signal interrupts what waits for the threads, the last one Python's own end; then it must not abort."""
    (tmp_path / "row.toml").write_text(ROW)
    code = "import sys, condensation as c; c.train(c.Experiment.load(sys.argv[1]), 2, out=sys.argv[2])"
    with processes.started(sys.executable, "-c", code, tmp_path / "row.toml", tmp_path) as process:
        in_a_long_call(process, tmp_path)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        code, said = processes.ended(process)
    assert code == -signal.SIGINT, said
    assert "KeyboardInterrupt" in said
    assert "FATAL" not in said


@pytest.mark.trials
@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("moment", [0.3, 1.5, 6])
def test_a_signal_of_the_terminal_stops_a_sweep(workers, name, moment, tmp_path):
    """Driver and workers get it, while they start and while they train; only the driver says something."""
    (tmp_path / "map.toml").write_text(SWEEP)
    (tmp_path / "dense.toml").write_text(EXPERIMENTS["dense"])
    out = tmp_path / "out"
    with processes.started(
        *processes.COMMAND, "sweep", tmp_path / "map.toml", "--n-jobs", workers, "--out", out
    ) as process:
        if moment > 1:
            processes.wait_until(out.exists, process)
        time.sleep(moment)
        os.killpg(process.pid, getattr(signal, name))
        code, said = processes.ended(process)
        processes.check_gone(process)
    if moment > 1:
        check_said(code, said, SIGNALS[name])
    else:  # Python itself may be starting
        assert code in (SIGNALS[name], -getattr(signal, name))


@pytest.mark.trials
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_stops_a_reproduction(name, tmp_path):
    with processes.started(*processes.COMMAND, "reproduce", "fc-fig3", "--out", tmp_path) as process:
        processes.wait_until(lambda: [*tmp_path.glob("runs/*/run.json")], process)
        time.sleep(1)
        os.killpg(process.pid, getattr(signal, name))
        check_said(*processes.ended(process), SIGNALS[name])
        processes.check_gone(process)


@pytest.mark.parametrize(
    "name", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.trials) for name in ("SIGINT", "SIGHUP"))]
)
def test_a_signal_stops_a_download(name, tmp_path):
    files = {"train-images-idx3-ubyte.gz": bytes(200)}
    own = os.environ | {"CONDENSATION_CACHE": str(tmp_path / "cache"), "no_proxy": "*"}
    with (
        processes.slow_host(files, 30) as (address, asked),
        processes.started(*processes.fetching(address), env=own) as process,
    ):
        processes.wait_until(lambda: asked, process)
        time.sleep(0.1)
        process.send_signal(getattr(signal, name))
        check_said(*processes.ended(process), SIGNALS[name])
    assert [*(tmp_path / "cache").iterdir()] == []


WAITING = """
import signal, sys, time
from condensation.cli._signals import exit_code, listen
listen()
try:
    print("ready", flush=True)
    {body}
except KeyboardInterrupt as stopped:
    print("stopped", flush=True)
    {then}
    sys.exit(exit_code(stopped))
"""
LOST = """
    class Lost:
        def __del__(self):
            signal.raise_signal(signal.{name})
    Lost()
    print("went on", flush=True)
    time.sleep(60)
"""


def run(body: str = "time.sleep(60)", then: str = "pass", before: tuple[str, ...] = ()):
    return processes.started(*before, sys.executable, "-c", WAITING.format(body=body, then=then))


@pytest.mark.parametrize("first", SIGNALS)
def test_the_second_signal_ends_what_the_first_began(first):
    with run(then="time.sleep(60)") as process:
        assert processes.line(process) == "ready\n"
        process.send_signal(getattr(signal, first))
        assert processes.line(process) == "stopped\n"
        process.send_signal(signal.SIGTERM)
        assert processes.ended(process) == (-signal.SIGTERM, "")


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_that_comes_in_a_finalizer_is_not_lost(name):
    """Python prints such an exception, and goes on; JAX has a callback of garbage collection of that kind."""
    with run(LOST.format(name=name).strip()) as process:
        code, said = processes.ended(process)
    assert (code, said) == (SIGNALS[name], "")


IMPORTING = """
import signal, time
signal.raise_signal(signal.{name})
signal.raise_signal(signal.{name})  # impatient
time.sleep(0.3)
print("imported", flush=True)
"""


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_that_comes_while_a_module_is_imported_waits_for_it(name, tmp_path):
    """Native modules, JAX's among them, crash if something is raised while they start."""
    (tmp_path / "slow_module.py").write_text(IMPORTING.format(name=name))
    with run(f"sys.path.append({str(tmp_path)!r}); import slow_module; time.sleep(60)") as process:
        assert [processes.line(process) for _ in range(3)] == ["ready\n", "imported\n", "stopped\n"]
        assert processes.ended(process) == (SIGNALS[name], "")


AT_ONCE = """
    both = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    for one in both: signal.raise_signal(one)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
    time.sleep(60)
"""


def test_two_signals_within_one_native_call_are_one():
    """Python handles them in the order of their numbers, and prints that it ignores the second one."""
    with run(AT_ONCE.strip()) as process:
        assert [processes.line(process) for _ in range(2)] == ["ready\n", "stopped\n"]
        assert processes.ended(process) == (130, "")


def test_other_errors_of_finalizers_are_told():
    with run(LOST.format(name="SIGINT").replace("signal.raise_signal(signal.SIGINT)", "1 / 0").strip()) as process:
        assert processes.line(process) == "ready\n"
        assert processes.line(process) == "went on\n"
        process.send_signal(signal.SIGINT)
        code, said = processes.ended(process)
    assert code == 130
    assert "ZeroDivisionError" in said


def test_what_a_parent_says_is_to_be_ignored_is_ignored():
    """As ``nohup`` does."""
    with run(before=("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")) as process:
        assert processes.line(process) == "ready\n"
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert processes.ended(process) == (143, "")


ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.mark.trials
def test_a_terminal_that_is_closed_stops_a_training_which_saves_first(tmp_path):
    """Nothing can be said any more."""
    terminal, other = pty.openpty()
    line = sys.executable, "-c", ON_TERMINAL, *training(tmp_path, "dense")
    with processes.started(*line, stdin=other, stdout=other, stderr=other) as process:
        os.close(other)
        end = time.monotonic() + processes.PATIENCE
        while not saved(tmp_path):
            assert time.monotonic() < end
            if select.select([terminal], [], [], 0.1)[0]:
                os.read(terminal, 10_000)
        at = time.time_ns()
        os.close(terminal)
        assert process.wait(processes.PATIENCE) == 129
    assert saved(tmp_path)[0].stat().st_mtime_ns > at


def test_no_signal_is_raised_while_an_event_loop_is_made():
    """A half-made loop would print a traceback when it goes."""
    seen = []

    class Selector(selectors.DefaultSelector):
        def register(self, *args, **kwargs):
            seen.append(_signals._is_fragile(sys._getframe()))
            return super().register(*args, **kwargs)

    asyncio.SelectorEventLoop(Selector()).close()
    assert seen == [True]
    assert not _signals._is_fragile(sys._getframe())
