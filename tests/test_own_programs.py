"""A script and a notebook that define their own functions: run twice, the second time trains nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import condensation as c

DEFINE = """
import jax.numpy as jnp, numpy as np
import condensation as c

SLOPE = 2.0

def inner(x):
    return jnp.tanh(x)

def bump(x):
    return SLOPE * inner(x)

def spread(shape, rng):
    return 0.1 * rng.normal(size=shape)

def points(rng):
    x = rng.uniform(-1, 1, size=(8, 1))
    return x, np.sin(3 * x[:, 0])

def largest(trajectory, step):
    '''A measure.'''
    return float(np.abs(trajectory.weights("dense1", step)).max())

pair = (lambda f, y: jnp.sum((f - y) ** 4), lambda f, y: jnp.sum((f - y) ** 2))
own = c.Experiment(c.Dense((1, 4, 1), bump), c.Init(spread), c.Drawn(points), c.GD(0.1), 4, c.Loss(pair[1]))
"""
TRAIN = """
run = c.train(own, seeds=2, out="runs")
"""
SWEEP = """
from condensation.sweeps import Local, Sweep, run_sweep
axes = {"network.activation": ["tanh", bump], "loss.name": pair}
done = run_sweep(Sweep(own, axes, measure=("change", largest)), "sweep", Local(2), block=1)
alone = run_sweep(Sweep(own, axes, measure=("change", largest)), "alone", Local(1))
np.testing.assert_allclose(done.array("largest"), alone.array("largest"), rtol=1e-12)
print(sorted({name.partition("#")[0] for name in done.column("network.activation")}))
"""


@pytest.fixture
def program(tmp_path):
    """Runs a script in a folder of its own; ``__main__`` is the script."""

    def run(text):
        (tmp_path / "script.py").write_text(text)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "script.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def files(folder: Path) -> dict[str, int]:
    """When each file of arrays and rows was written."""
    found = [*folder.rglob("*.safetensors"), *folder.glob("*/cells/*.parquet")]
    return {str(path): path.stat().st_mtime_ns for path in found}


@pytest.mark.trials
def test_a_script_keeps_its_runs_and_sweeps_and_finds_them_again(program, tmp_path):
    """With an activation, a law, data, a loss and a measure of its own, the sweep on two processes."""
    said = program(DEFINE + TRAIN + SWEEP)
    assert said.split("\n")[0] == "['__main__:bump', 'tanh']"
    written = files(tmp_path)
    assert sum(name.endswith(".parquet") for name in written) == 4 + 4
    load = 'from pathlib import Path\nprint(c.load_run(next(Path("runs").iterdir())).loss.shape)\n'
    assert program("# moved down\n\n" + DEFINE + TRAIN + SWEEP + load).split("\n")[1] == "(2, 5)"
    assert files(tmp_path) == written
    with pytest.raises(c.InputError, match="'__main__:bump' is not defined here as it was"):
        c.load_run(next((tmp_path / "runs").iterdir()))
    program(DEFINE.replace("SLOPE = 2.0", "SLOPE = 3.0") + TRAIN)
    assert len([*(tmp_path / "runs").iterdir()]) == 2
    with pytest.raises(c.InputError, match="'__main__:bump' is not defined here as it was"):
        c.sweeps.open_sweep(tmp_path / "sweep")
    plain = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert plain["measure"][1].startswith("__main__:largest#")


@pytest.mark.trials
def test_a_notebook_does_the_same_in_a_restarted_kernel(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    from notebooks import execute

    written = []
    for cells in ([DEFINE, TRAIN, SWEEP], ["1 + 1", DEFINE, TRAIN, SWEEP]):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
        done = execute(notebook, tmp_path)
        assert "['__main__:bump', 'tanh']" in "".join(each.get("text", "") for each in done.cells[-1].outputs)
        written.append(files(tmp_path))
    assert len(written[0]) > 8
    assert written[1] == written[0]  # nothing was trained again
