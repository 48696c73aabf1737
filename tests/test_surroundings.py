"""Hostile surroundings: full and read-only disks, closed output, odd paths; numbers stay, or one sentence."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzzing import check_told, told, toml_file, written
from test_fuzz import experiments

import condensation as c
from condensation._writing import write_atomic
from condensation.runs import run_folder

TINY = experiments()[0] | {
    "steps": 4,
    "save": {"kind": "every", "k": 2},
    "network": {"kind": "dense", "widths": [5, 4, 1]},
}
ODD = ("a b", 'it\'s "quoted"', "two\nlines", "中文", "مرحبا", "🙂", "-x", "[red]", "n" * 200, "%s{0}$HOME", "\udcff")


def run(*words: object, **options) -> subprocess.CompletedProcess:
    """A command in a process of its own, its errors kept."""
    line = [sys.executable, "-m", "condensation", *map(str, words)]
    return subprocess.run(line, stderr=subprocess.PIPE, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Path, bytes]:
    """An experiment file, the folder of its run, and what is measured there."""
    folder = tmp_path_factory.mktemp("plain")
    path = written(folder / "e.toml", toml_file(TINY))
    assert check_told("train", path, "--seeds", 2, "--out", folder / "runs") == 0
    place = run_folder(folder / "runs", c.Experiment.load(path))
    return path, place, told("measure", place, "--json")[1].encode()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ODD)
def test_paths_of_any_characters(name, trained, tmp_path, monkeypatch):
    path, place, measured = trained
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(folder)
    own, run_ = folder / f"{name[:99]}.toml", folder / "run"
    shutil.copy(path, own)
    shutil.copytree(place, run_)
    assert told("measure", run_, "--json")[1].encode() == measured
    if name in ("two\nlines", "\udcff"):
        assert check_told("measure", run_, "--report", folder / "report.html") == 0
        assert (folder / "report.html").stat().st_size > 1000
    assert c.Experiment.load(own) == c.Experiment.load(path)
    code, _, errors = told("measure", folder / "none.npy")
    assert (code, errors.count("\n")) == (2, 1)
    errors.encode("ascii", "backslashreplace")


def test_a_run_in_a_folder_of_any_characters_has_the_same_numbers(trained, tmp_path):
    path, _, measured = trained
    out = tmp_path / "中文 'and\nmore"
    assert check_told("train", path, "--seeds", 2, "--out", out) == 0
    assert told("measure", run_folder(out, c.Experiment.load(path)), "--json")[1].encode() == measured


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_a_disk_that_takes_no_more_keeps_what_was_saved(number, trained, tmp_path, monkeypatch):
    path, place, measured = trained
    out = tmp_path / "runs"
    assert check_told("train", path, "--seeds", 1, "--out", out) == 0

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        code, _, errors = told("train", path, "--seeds", 2, "--out", out)
    assert code == 2
    assert f"cannot be written: {os.strerror(number)}; what was saved before stays" in errors
    folder = run_folder(out, c.Experiment.load(path))
    assert not list(folder.glob(".*"))
    whole = c.load_run(place)
    assert np.array_equal(c.load_run(folder).parameters["dense1.weight"], whole.parameters["dense1.weight"][:1])
    assert check_told("train", path, "--seeds", 2, "--out", out) == 0
    assert told("measure", folder, "--json")[1].encode() == measured


@pytest.mark.parametrize(
    "place", ["file", *(pytest.param(more, marks=pytest.mark.trials) for more in ("file/inside", "/proc/x", "/sys/x"))]
)
def test_what_cannot_be_a_folder_is_named(place, trained, tmp_path, monkeypatch):
    path, folder, _ = trained
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("s.toml").write_bytes(toml_file({"format": 1, "experiment": TINY, "axes": {"init.hidden.std": [0.1]}}))
    for line in (
        ("train", path, "--seeds", 1, "--out", place),
        ("sweep", "s.toml", "--n-jobs", 1, "--out", place),
        ("reduce", folder, "--out", place),
        ("reproduce", "fc-fig3", "--out", place),
        ("measure", folder, "--report", f"{place}/report.html"),
    ):
        code, _, errors = told(*line)
        assert (code, "cannot be" in errors) == (2, True), (line, errors)
        check_told(*line)
    with pytest.raises(c.InputError, match="cannot be written"):
        write_atomic(Path(place) / "inside", b"")
    assert Path("file").read_text() == ""


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4"])
def test_data_of_the_other_order_of_bytes_are_the_same_data(dtype, tmp_path):
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    np.savez(tmp_path / "big.npz", x=x.astype(dtype), y=y.astype(dtype))
    assert c.Arrays.load("big.npz", tmp_path) == c.Arrays(x, y)
    with pytest.raises(c.InputError, match="complex"):
        c.Arrays(x + 1j, y)


def test_output_that_nobody_takes(trained):
    """A closed pipe is quiet; a full disk is told in one sentence."""
    path, place, measured = trained
    reading, writing = os.pipe()
    os.close(reading)
    done = run("train", path, "--seeds", 2, "--out", place.parent, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
    with open("/dev/full", "wb") as full:
        done = run("measure", place, "--json", stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith(b"condensation: the output or a file cannot be read or written: No space left")
    assert done.stderr.count(b"\n") == 1
    assert told("measure", place, "--json")[1].encode() == measured


@pytest.mark.trials
def test_surroundings_of_a_process(trained, tmp_path):
    """Without a home, a terminal, input, output or a folder of its own; in a locale without most characters."""
    path, place, measured = trained
    bare = {name: value for name, value in os.environ.items() if name != "HOME" and not name.startswith("XDG_")}
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    for change in ({"TERM": "dumb", "COLUMNS": "0"}, {"HOME": "/proc/none", "COLUMNS": "x"}, ascii_only):
        for stdin in (subprocess.DEVNULL, None):
            env = bare | change
            done = run("measure", place, "--json", env=env, stdin=stdin, stdout=subprocess.PIPE)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) == json.loads(measured)
    folder = tmp_path / "中文"
    folder.mkdir()
    shutil.copy(path, folder / "e.toml")
    env = bare | ascii_only
    done = run("train", folder / "e.toml", "--seeds", 2, "--out", folder / "runs", env=env, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    table = run("measure", run_folder(folder / "runs", c.Experiment.load(path)), env=env, stdout=subprocess.PIPE)
    assert table.returncode == 0, table.stderr


@pytest.mark.trials
def test_closed_streams_and_a_deleted_folder(trained, tmp_path):
    _, place, _ = trained
    line = " ".join(f"'{word}'" for word in (sys.executable, "-m", "condensation"))
    for ending, code in ((">&-", 0), ("<&- >&- 2>&-", 0), ("| head -1; exit ${PIPESTATUS[0]}", 0)):
        done = subprocess.run(["bash", "-c", f"{line} measure '{place}' {ending}"], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (code, b""), ending
    for ending in ("2>/dev/full", "2>&-"):
        done = subprocess.run(["bash", "-c", f"{line} measure none {ending}"], capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (2, b"", b""), ending
    gone = f"mkdir gone && cd gone && rmdir ../gone && {line} measure '{place}'"
    done = subprocess.run(["bash", "-c", gone], capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(b"condensation: the current folder is gone")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.trials
def test_files_that_may_not_grow(trained, tmp_path):
    """A limit on the size of files: what fits stays whole, the rest is told, and training again without it goes on."""
    path, _, measured = trained
    limited = f"ulimit -f 4; '{sys.executable}' -m condensation train '{path}' --seeds 2 --out '{tmp_path}'"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, check=False)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    folder = run_folder(tmp_path, c.Experiment.load(path))
    assert not list(folder.glob(".*.part"))
    assert check_told("train", path, "--seeds", 2, "--out", tmp_path) == 0
    assert told("measure", folder, "--json")[1].encode() == measured
