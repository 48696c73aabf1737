"""Folders with bad runs among good ones: the good ones are shown, the bad ones are listed with their reasons."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from condensation import InputError, sweep, train
from condensation._writing import write_json
from condensation.playground._library import Library
from condensation.playground._session import Session
from condensation.playground._settings import Settings

SMALL = Settings(width=3, n=4)
FOREIGN = [
    "",
    "{",
    "[1, 2]",
    "null",
    '{"a": 1}',
    "[" * 5000,
    "\0",
    '{"format": 1, "fingerprint": "x", "experiment": {}}',
]
HOSTILE = (
    *("<img src=x onerror=alert(1)>", "\"'&lt;`${x}", "a\x1b[2J\x1b]0;title\x07b", "line\nbreak"),
    *("turned\N{RIGHT-TO-LEFT OVERRIDE}txt", os.fsdecode(b"not-utf8-\xff"), "[bold red]x", "%s%n%(name)s"),
    *("x" * 200, " ", "constructor", "__proto__"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A good run and a good sweep."""
    folder = tmp_path_factory.mktemp("made")
    train(SMALL.experiment(steps=2), seeds=[0], out=folder / "runs")
    sweep(SMALL.experiment(steps=2), {"init.hidden.std": [0.01, 0.1]}, "lines", seeds=1, out=folder / "swept")
    (run,) = (folder / "runs").iterdir()
    run.rename(folder / "good")
    (folder / "runs").rmdir()
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "library")


def another(folder, name):
    return shutil.copytree(folder / "good", folder / name)


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 4
    path.write_bytes(content)


def rewrite(path, **changes):
    """A description that was changed, with a right checksum."""
    plain = json.loads(path.read_text())
    plain.pop("seal")
    write_json(path, plain | changes)


def fill_with_bad_ones(folder):
    """Bad runs and sweeps of all kinds beside the good ones; what their reasons say."""
    for number, text in enumerate(FOREIGN):
        (folder / f"foreign{number}").mkdir()
        (folder / f"foreign{number}" / "run.json").write_text(text)
    reasons = {f"foreign{number}": "damaged" for number in range(len(FOREIGN))}
    flip(another(folder, "flipped") / "run.json")
    rewrite(another(folder, "other") / "run.json", fingerprint="0" * 64)
    rewrite(another(folder, "newer") / "run.json", format=99)
    rewrite(another(folder, "strange") / "run.json", experiment=7)
    rewrite(another(folder, "stranger") / "run.json", experiment={"network": {"kind": ["dense"]}})
    (seed,) = another(folder, "short").glob("*.safetensors")
    seed.write_bytes(seed.read_bytes()[:-8])
    path = another(folder, "own") / "run.json"
    plain = json.loads(path.read_text())["experiment"]
    plain["network"]["activation"] = "a_strangers_module:act"
    rewrite(path, experiment=plain)
    shutil.copytree(folder / "swept", folder / "swept-flipped")
    flip(folder / "swept-flipped" / "sweep.json")
    shutil.copytree(folder / "swept", folder / "swept-rows")
    flip(next((folder / "swept-rows" / "cells").iterdir()))
    (folder / "no-run").mkdir()
    (folder / "folder" / "run.json").mkdir(parents=True)
    (folder / "loop").symlink_to("loop")
    return reasons | {
        **{
            "flipped": "damaged",
            "other": "not the one that was run",
            "newer": "format 99",
            "strange": "",
            "stranger": "",
        },
        **{"short": "truncated", "own": "a_strangers_module", "swept-flipped": "damaged", "swept-rows": "damaged"},
    }


def test_foreign_files_are_listed_with_their_reasons(tmp_path):
    for number, text in enumerate(FOREIGN):
        for mark in ("run", "sweep"):
            (tmp_path / f"{mark}{number}").mkdir()
            (tmp_path / f"{mark}{number}" / f"{mark}.json").write_text(text)
    listed = Library([tmp_path, tmp_path / "run0"]).listed()
    assert len(listed) == 2 * len(FOREIGN) + 1
    assert all("damaged" in entry["problem"] for entry in listed)


@pytest.mark.trials
def test_bad_runs_are_listed_with_their_reasons_and_the_others_are_shown(folder):
    reasons = fill_with_bad_ones(folder)
    library = Library([folder])
    listed = {entry["name"]: entry for entry in library.listed()}
    assert listed.keys() == reasons.keys() | {"good", "swept"}
    assert [name for name, entry in listed.items() if not entry["problem"]] == ["good", "swept"]
    for name, reason in reasons.items():
        assert reason in listed[name]["problem"]
        assert str(folder) not in listed[name]["problem"]
    assert "a_strangers_module" not in sys.modules
    session = Session(library)
    assert session.open_run("good")[0]["kind"] == "opened"
    assert session.map("swept")[0]["kind"] == "map"
    for name, entry in listed.items():
        if entry["problem"]:
            with pytest.raises(InputError, match=re.escape(entry["problem"][:30])):
                session.map(name) if entry["kind"] == "sweep" else session.open_run(name)
    assert session.open_run("good")[0]["kind"] == "opened"


@pytest.mark.trials
def test_a_run_that_is_damaged_while_the_page_is_open_says_so_and_can_be_mended(folder):
    library = Library([folder])
    session = Session(library)
    session.open_run("good")
    (seed,) = (folder / "good").glob("*.safetensors")
    whole = seed.read_bytes()
    flip(seed, 0.9)
    assert session.frame({"at": 2}, 1.0)[0]["step"] == 2  # what is shown was read before
    with pytest.raises(InputError, match="damaged"):
        session.open_run("good")
    assert "damaged" in library.listed()[0]["problem"]
    assert session.frame({"at": 0}, 1.0)[0]["step"] == 0
    seed.write_bytes(whole)
    assert session.open_run("good")[0]["kind"] == "opened"
    assert library.listed()[0]["problem"] == ""


@pytest.mark.trials
def test_a_run_that_is_deleted_while_it_is_shown_stays_in_view(folder):
    library = Library([folder])
    session = Session(library)
    session.open_run("good")
    shutil.rmtree(folder / "good")
    shutil.rmtree(folder / "swept")
    assert session.frame({"at": 2}, 1.0)[0]["step"] == 2
    assert session.choose_layer("dense1")[0]["kind"] == "layer"
    assert session.export()[0]["kind"] == "text"
    with pytest.raises(InputError, match=r"there is no file good.run\.json"):
        session.open_run("good")
    with pytest.raises(InputError, match=r"there is no file swept.sweep\.json"):
        session.open_cell("swept", 0)
    assert all(entry["problem"] for entry in library.listed())
    assert session.frame({"at": 0}, 1.0)[0]["step"] == 0


@pytest.mark.trials
def test_hostile_names_of_folders_are_shown_as_text(folder):
    for name in HOSTILE:
        another(folder, name)
    library = Library([folder])
    listed = {entry["name"]: entry for entry in library.listed()}
    assert listed.keys() == {"good", "swept", *HOSTILE}
    session = Session(library)
    for name in HOSTILE:
        assert json.loads(json.dumps(name)) == name
        assert not listed[name]["problem"]
        title = session.open_run(name)[0]["title"]
        assert title == listed[name]["title"]
        assert title.isprintable()


@pytest.mark.trials
def test_the_command_starts_beside_bad_runs_and_its_lines_steer_no_terminal(folder):
    reasons = fill_with_bad_ones(folder)
    flip(another(folder, HOSTILE[2]) / "run.json")
    flip(another(folder, HOSTILE[4]) / "run.json")
    command = [sys.executable, "-m", "condensation", "play", "--no-browser", "--port", "0", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "the playground is at http://127.0.0.1:" in process.stdout.readline()
    process.terminate()
    _, errors = process.communicate(timeout=180)
    lines = errors.splitlines()
    for name in reasons:
        assert sum(f" {name} cannot be shown: " in line for line in lines) == 1
    assert any("a\\x1b[2J\\x1b]0;title\\x07b cannot be shown" in line for line in lines)
    assert all(line.isprintable() for line in lines)
    assert "Traceback" not in errors


def test_a_folder_that_holds_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="neither a run nor a sweep"):
        Library([tmp_path])
    with pytest.raises(InputError, match="neither a run nor a sweep"):
        Library([tmp_path / "none"])
