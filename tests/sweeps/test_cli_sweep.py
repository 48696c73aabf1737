"""``condensation sweep`` as a user types it, and the guide's snippets."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from condensation import Experiment, InputError, train
from condensation.cli._commands import COMMANDS
from condensation.sweeps import open_sweep

pytestmark = pytest.mark.trials

ROOT = Path(__file__).parents[2]
SWEEP = """
format = 1
experiment = "tanh.toml"
seeds = 2
measure = ["lines", "own:middle"]

[axes]
"init.hidden.std" = { logspace = [1e-3, 1.0, 3] }
"optimizer.learning_rate" = [1e-3, 1e-2]
"""


def command(*words, cwd=None):
    line = [sys.executable, "-m", "condensation", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    text = (ROOT / "examples" / "tanh.toml").read_text().replace("steps = 500", "steps = 200")
    (folder / "tanh.toml").write_text(text)
    (folder / "mine.toml").write_text(SWEEP)
    (folder / "own.py").write_text("def middle(run, step):\n    return run.weights('dense1', step).mean()\n")
    done = command("sweep", "mine.toml", "--out", "out", "--n-jobs", 2, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_a_file_gives_table_and_picture(swept, monkeypatch):
    folder, told = swept
    monkeypatch.syspath_prepend(folder)  # its measure is a user's
    found = told["sweeps"]["mine"]
    assert (found["cells"], found["seeds"], found["rows"], found["failed"]) == (6, 2, 12, {})
    rows = parquet.read_table(folder / "out" / "table.parquet")
    assert rows.num_rows == 12
    assert {"init.hidden.std", "dense1.k_eff", "middle", "experiment"} <= {*rows.column_names}
    for name in told["pictures"]:
        assert (folder / name).stat().st_size > 5000
    table = open_sweep(folder / "out")
    k_eff = table.array("dense1.k_eff")
    assert k_eff.shape == (3, 2, 2)
    assert (k_eff[0, 0] < 5).all()  # a small start condenses
    assert (k_eff[2, 0] > 30).all()  # an ordinary one does not


def test_a_row_can_be_trained_again(swept):
    folder, _ = swept
    row = parquet.read_table(folder / "out" / "table.parquet").to_pylist()[5]
    experiment = Experiment.from_plain(json.loads(row["experiment"]), folder / "out")
    assert experiment.fingerprint() == row["fingerprint"]
    again = train(experiment, seeds=[row["seed_data"]])
    assert again.loss[0, -1] == row["loss"]  # bit for bit, and in another process


def test_the_same_again_trains_nothing(swept):
    folder, told = swept
    before = {path: path.stat().st_mtime_ns for path in (folder / "out" / "cells").iterdir()}
    done = command("sweep", "mine.toml", "--out", "out", "--x", "optimizer.learning_rate", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in (folder / "out" / "cells").iterdir()} == before
    assert json.loads(done.stdout)["sweeps"] == told["sweeps"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["phase-two-layr"], "did you mean 'phase-two-layer'"),
        (["mine.toml", "--backend", "dask"], "--scheduler"),
        (["mine.toml", "--scheduler", "tcp://x:1"], "--scheduler goes with --backend dask"),
        (["mine.toml", "--size", "5"], "has its own axes"),
        (["mine.toml", "--n-jobs", "0"], "n_jobs must be a whole number of at least 1"),
        (["mine.toml", "--out", "out", "--quantity", "dense1.keff"], "did you mean 'dense1.k_eff'"),
        (["mine.toml", "--out", "out", "--y", "std"], "unknown axis 'std'"),
        (["missing.toml"], "cannot be read"),
    ],
)
def test_what_cannot_be_used_gives_one_sentence(swept, words, told):
    done = command("sweep", *words, cwd=swept[0])
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_diverged_cell_is_named(swept):
    folder, _ = swept
    text = SWEEP.replace("[1e-3, 1e-2]", "[1e-3, 1e200]").replace("seeds = 2", "seeds = 1")
    (folder / "wild.toml").write_text(text)
    done = command("sweep", "wild.toml", "--out", "wild", "--n-jobs", 1, "--json", cwd=folder)
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)["sweeps"]["wild"]
    assert len(found["diverged"]) == 3
    assert all("1e+200" in cell for cell in found["diverged"])


def test_the_guide_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sweeps.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        line = [sys.executable, "-W", "error", "-c", block]
        done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_cells_that_fail_are_named_and_left_out_of_the_map(swept):
    folder, _ = swept
    (folder / "fails.py").write_text("def fails(run, step):\n    return 1 / (run.seeds[0].init == 0)\n")
    (folder / "broken.toml").write_text(SWEEP.replace("own:middle", "fails:fails"))
    done = command("sweep", "broken.toml", "--out", "broken", "--n-jobs", 1, "--json", cwd=folder)
    assert done.returncode == 4, done.stderr
    assert "warning: 6 of 12 networks have no row" in done.stderr
    told = json.loads(done.stdout)
    assert len(told["sweeps"]["broken"]["failed"]) == told["sweeps"]["broken"]["rows"] == 6
    assert [*told["sweeps"]["broken"]["notes"]] == ["6 of 12 networks have no row"]
    assert told["pictures"]  # hatched, and it says why


LATE = {
    "an axis": ({"x": "nope"}, "unknown axis 'nope'; known: init.hidden.std, optimizer.learning_rate"),
    "another axis": ({"y": "step"}, "unknown axis 'step'"),
    "an empty axis": ({"x": ""}, "unknown axis ''"),
    "one axis twice": ({"x": "init.hidden.std", "y": "init.hidden.std"}, "init.hidden.std stands twice"),
    "a quantity": ({"quantity": "dense1.keff"}, "unknown quantity 'dense1.keff'; did you mean 'dense1.k_eff'"),
    "no quantity": ({"quantity": ""}, "unknown quantity ''"),
    "accuracy": ({"quantity": "accuracy"}, "unknown quantity 'accuracy'"),
    "a block of none": ({"block": 0}, "block must be a whole number of at least 1, not 0"),
    "no seed": ({"seeds": 0}, "at least one seed is needed, not seeds=0"),
    "many seeds": ({"seeds": 10**20}, r"a list of some 10\^20 seeds takes"),
    "no jobs": ({"backend": "dask", "scheduler": "tcp://h:1", "n_jobs": 0}, "n_jobs must be a whole number"),
    "jobs below none": ({"backend": "ray", "n_jobs": -3}, "n_jobs must be a whole number of at least 1"),
    "no address": ({"backend": "ray", "address": ""}, "Ray has an address"),
    "no scheduler": ({"scheduler": ""}, "--scheduler goes with --backend dask"),
    "no memory": ({"memory": "0"}, "memory is a positive number with a unit, such as 4GiB or 500MB, not '0'"),
    "a folder": ({"out": Path("file") / "out"}, "the folder file/out cannot be made: Not a directory"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a sweep and a file; nothing may be drawn."""
    (tmp_path / "tanh.toml").write_text((ROOT / "examples" / "tanh.toml").read_text())
    (tmp_path / "sweep.toml").write_text(SWEEP.replace('"own:middle"', '"share"'))
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONDENSATION_MEMORY", "8GiB")
    monkeypatch.setattr("condensation.data._synthetic.Synthetic.draw", lambda *_: pytest.fail("data were drawn"))
    return tmp_path


@pytest.mark.parametrize(("options", "said"), LATE.values(), ids=LATE)
def test_an_option_is_checked_before_anything_is_drawn_or_written(folder, options, said):
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError, match=said):
        COMMANDS["sweep"]("sweep.toml", **options)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("size", [0, -1, 1])
def test_a_size_of_a_diagram_is_checked(folder, size):
    with pytest.raises(InputError, match=f"size must be a whole number of at least 2, not {size}"):
        COMMANDS["sweep"]("phase-two-layer", size=size)


def test_data_that_do_not_fit_a_cells_network_are_refused_before_they_are_drawn(folder):
    text = (folder / "sweep.toml").read_text() + '"data.dim" = [5, 4]\n'
    (folder / "sweep.toml").write_text(text)
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError, match=r"data.dim = 4 cannot be trained: the data has samples of shape \(4,\)"):
        COMMANDS["sweep"]("sweep.toml")
    assert sorted(folder.rglob("*")) == before
