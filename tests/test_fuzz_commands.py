"""Strange command lines: any options and values end in success or in one sentence; nothing is trained or fetched."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest
from fuzzing import TEXTS, Stream, Tally, check_told, stream_of, told, toml_file, written
from test_fuzz import experiments, sweeps

import condensation as c
from condensation.cli._commands import COMMANDS
from condensation.cli._data import fetch, list_sets

PATHS = (
    "e.toml",
    "s.toml",
    "w.npy",
    "folder",
    "folder/w.npz",
    "none",
    "w.npy/inside",
    "a b",
    "中文",
    "x\ny",
    "",
    "n" * 300,
)
WORDS = (
    *(
        "0",
        "1",
        "-1",
        "2",
        "0.5",
        "nan",
        "inf",
        "1e400",
        "9" * 30,
        "True",
        "None",
        "local",
        "dask",
        "ray",
        "adam",
        "gd",
    ),
    *("quick", "paper", "filter", "kernel", "float32", "fc-fig3", "digits", "mnist", "phase-lines", "tcp://", "::1"),
    *("127.0.0.1", "dense1", "--", "--help", "-x", "lines", "init.hidden.std", *TEXTS),
)
OF_PATHS = ("out", "report", "data_dir", "path", "run", "experiment", "folders")


@pytest.fixture
def without_work(tmp_path, monkeypatch):
    """Files to name, and commands that stop where their work would begin."""

    def stop(*_, **__):
        raise c.InputError("stopped")

    for place in (
        "condensation.training._train.run", "condensation.sweeps._run._Driver.run", "condensation.prediction.predict",
        "condensation.papers._reproduce._Report.make", "condensation.sweeps._backends._import",
        "condensation.data._sources.download", "condensation.data._sources.from_package", "uvicorn.Server.run",
    ):  # fmt: skip
        monkeypatch.setattr(place, stop)
    monkeypatch.setattr("webbrowser.open", lambda *_: True)
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "e.toml", toml_file(experiments()[0]))
    written(tmp_path / "base.toml", toml_file(experiments()[0]))
    written(tmp_path / "s.toml", toml_file(sweeps()[1]))
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "w.npy", np.random.default_rng(0).normal(size=(9, 4)))
    np.savez(tmp_path / "folder" / "w.npz", w=np.ones((5, 4)))
    interval = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval)


def command_line(stream: Stream) -> list[str]:
    """A command with values for its arguments and for some of its options, which may or may not fit."""
    name = str(stream.choice([*COMMANDS, "nonsense", ""], p=[0.96 / len(COMMANDS)] * len(COMMANDS) + [0.02] * 2))
    words, function = [name], COMMANDS.get(name)
    if name == "data":
        words, function = [("data", "fetch"), ("data", "list")][k := int(stream.integers(2))], (fetch, list_sets)[k]
    line, options = [*words], []
    for parameter in inspect.signature(function).parameters.values() if function else ():
        of_path = parameter.name in OF_PATHS or (parameter.name == "target" and stream.integers(2))
        known = PATHS if of_path else WORDS
        value = str(known[stream.integers(len(known))])
        if parameter.kind is parameter.POSITIONAL_ONLY:
            line += [value] * int(stream.integers(1, 3) if "tuple" in str(parameter.annotation) else 1)
        elif stream.integers(5) == 0:
            option = f"--{parameter.name.replace('_', '-')}"
            options += [[option], [option, value], [f"{option}={value}"]][stream.choice(3, p=[0.5, 0.25, 0.25])]
    if name == "watch":
        options.append("--once")
    return [*line, *options]


@pytest.mark.usefixtures("without_work")
def test_any_command_line():
    count = int(os.environ.get("FUZZ_COMMANDS", "150"))
    stream, tally = stream_of(count), Tally()
    for _ in range(count):
        line = [word for word in command_line(stream) if "\0" not in word]  # no shell can pass it
        with tally.case(line):
            tally.ends[check_told(*line)] += 1
    tally.check()
    assert tally.ends[2] > count / 4
    assert tally.ends[0] > count / 40, tally.ends


@pytest.mark.trials
def test_any_of_many_command_lines():
    """In a process of their own, without pytest's hold on its streams: thousands of commands replace and close them."""
    test = f"{__file__}::test_any_command_line"
    line = [sys.executable, "-m", "pytest", "-n", "0", "-s", "-p", "no:cacheprovider", test]
    ended = subprocess.run(
        line, env=os.environ | {"FUZZ_COMMANDS": "1500"}, capture_output=True, text=True, timeout=900
    )
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-5000:]
    assert "1 passed" in ended.stdout


@pytest.mark.parametrize("backend", [("dask", "--scheduler"), ("ray", "--address")])
def test_an_address_that_is_none_is_named(backend, tmp_path, monkeypatch):
    """The libraries' own errors for addresses, of any type, become one sentence."""
    written(tmp_path / "s.toml", toml_file(sweeps()[0]))
    name, option = backend
    line = ("sweep", tmp_path / "s.toml", "--out", tmp_path / "out", "--backend", name, option, "no address")
    code, _, errors = told(*line)
    assert code == 2
    assert f"no {name.title()} " in errors.splitlines()[-1]
