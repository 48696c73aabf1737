"""No stranger's code: what opening a run, a sweep or a model imports, and which folders modules come from."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import condensation as c
from condensation._writing import write_json
from condensation.runs import run_folder
from condensation.sweeps import Local, Sweep, open_sweep, run_sweep

BASE = c.Experiment(
    c.Dense((2, 6, 1)), c.Init(c.Normal(0.1)), c.sine_sum(1, 2, 3, dim=2, n=9, low=-1, high=1), c.GD(0.1), 4
)
EVIL = """
import pathlib
pathlib.Path({mark!r}).write_text("it ran")
import jax.numpy as jnp
def activation(x):
    return jnp.tanh(x)
def measure(trajectory, step):
    return 1.0
"""
SHADOWS = ("scipy", "secrets", "copy", "token", "numpy", "rich", "json")


def command(*words, cwd) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "condensation", *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300
    )


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "it_ran"


@pytest.fixture
def foreign(tmp_path, mark):
    """The folders of a run and of a sweep whose functions are in ``evil.py``, which lies beside them."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    (folder / "evil.py").write_text(EVIL.format(mark=str(mark)))
    script = """
import condensation as c, evil
from dataclasses import replace
from condensation.sweeps import Local, Sweep, run_sweep
from tests.test_trust import BASE
own = BASE.replace(network=c.Dense((2, 6, 1), evil.activation))
c.train(own, 1, out="runs")
model = c.train(own, 1).model(4, c.Seed(0, 0))
model.save("model.safetensors")
run_sweep(Sweep(BASE, {"optimizer.learning_rate": [0.1, 0.2]}, measure=evil.measure), "sweep", Local(1))
run_sweep(Sweep(own, {"optimizer.learning_rate": [0.1, 0.2]}), "own", Local(1))
"""
    paths = os.pathsep.join([str(folder), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", script], cwd=folder, env=os.environ | {"PYTHONPATH": paths}, check=True)
    assert mark.exists()
    mark.unlink()
    return folder


def test_opening_a_foreign_run_runs_nothing_until_the_user_says_so(foreign, mark):
    """Beside ``evil.py``, in the folder where it lies: by the command and in Python."""
    (run,) = (foreign / "runs").iterdir()
    for words in (("measure", run), ("reduce", run)):
        done = command(*words, cwd=foreign)
        assert done.returncode == 2
        assert "the function 'evil:activation' is not imported, and opening data runs no code" in done.stderr
        assert not mark.exists(), words
    for opened in (c.load_run, c.Model.load, open_sweep):
        path = {c.load_run: run, c.Model.load: foreign / "model.safetensors", open_sweep: foreign / "own"}[opened]
        with pytest.raises(c.InputError, match=r"'evil:activation' is not imported.*trust=True"):
            opened(path)
    assert not mark.exists()
    done = command("measure", run, "--trust", cwd=foreign)
    assert (done.returncode, mark.exists()) == (0, True), done.stderr


def test_a_function_that_the_user_has_is_found(foreign, mark, monkeypatch):
    (run,) = (foreign / "runs").iterdir()
    monkeypatch.syspath_prepend(str(foreign))
    import evil  # type: ignore[import-not-found]

    assert c.load_run(run).experiment.network.activations[0] is evil.activation
    del sys.modules["evil"]
    with pytest.raises(c.InputError, match="is not imported"):
        c.load_run(run)
    assert c.load_run(run, trust=True).experiment.network.activations[0].__module__ == "evil"
    del sys.modules["evil"]


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:exec", "subprocess:run", "jax:__version__", "evil"),
        *("cloudpickle:loads", "condensation:train"),  # of other modules than the named one
    ],
)
def test_names_in_a_run_stand_for_no_function_of_python_itself(tmp_path, name):
    c.train(BASE, 1, out=tmp_path)
    file = run_folder(tmp_path, BASE) / "run.json"
    plain = json.loads(file.read_text())
    plain["experiment"]["network"]["activation"] = name
    write_json(file, plain)
    with pytest.raises(c.InputError, match=r"not imported|no function|unknown activation|no activation"):
        c.load_run(file.parent)


def test_a_module_that_makes_its_attributes_when_asked_imports_nothing(tmp_path):
    """``scipy.datasets`` would import ``pooch``, here a file of a stranger in the current folder."""
    c.train(BASE, 1, out=tmp_path / "runs")
    file = run_folder(tmp_path / "runs", BASE) / "run.json"
    plain = json.loads(file.read_text())
    plain["experiment"]["network"]["activation"] = "scipy:datasets"
    write_json(file, plain)
    (tmp_path / "pooch.py").write_text("print('it ran')\n")
    script = f"import scipy; from condensation import load_run; load_run({str(file.parent)!r})"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "it ran" not in done.stdout
    assert "InputError: 'scipy:datasets' is no function" in done.stderr


@pytest.mark.parametrize("absolute", [False, True])
def test_a_run_reads_no_arrays_outside_its_folder(tmp_path, absolute):
    stream = np.random.default_rng(0)
    own = BASE.replace(data=c.Arrays(stream.normal(size=(9, 2)), stream.normal(size=9)))
    c.train(own, 1, out=tmp_path)
    folder = run_folder(tmp_path, own)
    (folder / "data.safetensors").rename(tmp_path / "mine.safetensors")
    plain = json.loads((folder / "run.json").read_text())
    plain["experiment"]["data"]["file"] = str(tmp_path / "mine.safetensors") if absolute else "../mine.safetensors"
    write_json(folder / "run.json", plain)
    with pytest.raises(c.InputError, match="which is not in the folder that is opened"):
        c.load_run(folder)
    (folder / "link.safetensors").symlink_to(tmp_path / "mine.safetensors")
    plain["experiment"]["data"]["file"] = "link.safetensors"
    write_json(folder / "run.json", plain)
    with pytest.raises(c.InputError, match="which is not in the folder that is opened"):
        c.load_run(folder)
    assert c.load_run(folder, trust=True).experiment == own


def test_a_table_is_read_without_its_measures(foreign, mark):
    table = open_sweep(foreign / "sweep")
    assert not mark.exists()
    assert table.sweep.measure[0].startswith("evil:measure#")
    np.testing.assert_array_equal(table.array("measure"), 1)


@pytest.mark.trials
def test_no_file_of_the_current_folder_stands_for_an_installed_module(tmp_path, mark):
    """In the command itself and in the worker processes of a sweep."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"import pathlib\npathlib.Path({str(mark)!r}).write_text({name!r})\n")
    (tmp_path / "own.py").write_text("def last(trajectory, step):\n    return float(step)\n")
    (tmp_path / "experiment.toml").write_text(BASE.to_toml())
    (tmp_path / "map.toml").write_text(
        'format = 1\nexperiment = "experiment.toml"\nmeasure = ["own:last"]\nseeds = 2\n'
        '[axes]\n"optimizer.learning_rate" = [0.1, 0.2, 0.3]\n'
    )
    script = Path(sys.executable).with_name("condensation")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    for words in (("train", "experiment.toml"), ("sweep", "map.toml", "--n-jobs", "2", "--block", "1")):
        done = subprocess.run(
            [script, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert not mark.exists(), f"{words[0]} imported {mark.read_text()}.py of the current folder"
    assert (open_sweep(tmp_path / "sweeps" / "map").array("last") == BASE.steps).all()


def test_a_sweep_in_processes_still_finds_measures_beside_the_user(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text("def last(trajectory, step):\n    return float(step)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine_here  # type: ignore[import-not-found]

    sweep = Sweep(BASE, {"optimizer.learning_rate": [0.1, 0.2]}, measure=mine_here.last)
    table = run_sweep(sweep, tmp_path / "out", Local(2), block=1)
    assert (table.array("last") == BASE.steps).all()
