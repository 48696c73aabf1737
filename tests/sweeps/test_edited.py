"""A measure is known by what it does: edited, it is measured again, and the old rows do not come back as new."""

import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from condensation import Adam, Dense, Experiment, Init, InputError, Normal, sine_sum
from condensation._functions import function_fingerprint
from condensation._writing import write_json
from condensation.sweeps import Local, Sweep, open_sweep, run_sweep
from condensation.sweeps._folder import SweepFolder
from condensation.sweeps._run import pairs_of
from condensation.sweeps._task import Task

DATA = sine_sum(1, 2, 1, dim=2, n=8, low=-1, high=1)
BASE = Experiment(Dense((2, 6, 1)), Init(Normal(0.1)), DATA, Adam(1e-2), 4)
RATE = "optimizer.learning_rate"
TEXT = "import jax.numpy as jnp\n\nSCALE = 1.0\n\n\ndef measure(run, step):\n    return SCALE * step\n\n\n"
TEXT += "def activation(x):\n    return jnp.tanh(x)\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a module of the user's and imports it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text=TEXT):
        (tmp_path / "own_measures.py").write_text(text)
        sys.modules.pop("own_measures", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_measures")

    yield write
    sys.modules.pop("own_measures", None)


def sweep_of(module, **options):
    return Sweep(BASE, {RATE: [0.1, 0.2]}, measure=("change", module.measure), seeds=2, **options)


def test_an_edited_measure_is_measured_again(write, tmp_path):
    out = tmp_path / "out"
    first = run_sweep(sweep_of(write()), out, Local(1))
    np.testing.assert_array_equal(first.array("measure"), 4)
    files = {path.name for path in SweepFolder(out).files()}
    second = run_sweep(sweep_of(write(TEXT.replace("SCALE * step", "SCALE * step + 7"))), out, Local(1))
    np.testing.assert_array_equal(second.array("measure"), 11)
    third = run_sweep(sweep_of(write(TEXT.replace("SCALE = 1.0", "SCALE = 2.0"))), out, Local(1))
    np.testing.assert_array_equal(third.array("measure"), 8)
    new = {path.name for path in SweepFolder(out).files()}
    assert files < new
    again = run_sweep(sweep_of(write("# a comment\n" + TEXT)), out, Local(1))
    np.testing.assert_array_equal(again.array("measure"), 4)
    assert {path.name for path in SweepFolder(out).files()} == new


def test_the_file_names_the_measure(write):
    module = write()
    assert sweep_of(module).to_plain()["measure"] == ["change", function_fingerprint(module.measure)]
    assert function_fingerprint(module.measure).startswith("own_measures:measure#")


def test_a_table_is_read_whatever_became_of_its_measure_and_continued_by_the_measure_as_it_is(write, tmp_path):
    out = tmp_path / "out"
    made = function_fingerprint(write().measure)
    run_sweep(sweep_of(write()), out, Local(1))
    write(TEXT.replace("SCALE * step", "2 * step"))
    table = open_sweep(out)
    assert (len(table), table.sweep.measure) == (4, ("change", made))
    np.testing.assert_array_equal(table.array("measure"), 4)
    np.testing.assert_array_equal(run_sweep(table.sweep, out, Local(1)).array("measure"), 8)


def test_a_table_of_an_edited_activation_is_not_opened(write, tmp_path):
    out = tmp_path / "out"
    module = write()
    experiment = BASE.replace(network=Dense((2, 6, 1), module.activation))
    run_sweep(replace(sweep_of(module), experiment=experiment), out, Local(1))
    assert len(open_sweep(out)) == 4
    write(TEXT.replace("jnp.tanh", "jnp.sin"))
    with pytest.raises(InputError, match=r"is not the one that was run: .* the source of a function"):
        open_sweep(out)
    write()
    assert open_sweep(out).complete


def test_a_changed_sweep_file_is_refused(write, tmp_path):
    out = tmp_path / "out"
    run_sweep(sweep_of(write()), out, Local(1))
    plain = json.loads((out / "sweep.json").read_text())
    write_json(out / "sweep.json", plain | {"seeds": [[0, 0]]})
    with pytest.raises(InputError, match="is not the one that was run"):
        open_sweep(out)


@pytest.mark.parametrize("edit", [("SCALE * step", "2 * step"), ("jnp.tanh", "jnp.sin")], ids=["measure", "activation"])
def test_a_worker_with_another_source_measures_nothing(write, tmp_path, edit):
    """A file that is edited while a sweep runs, or differs from machine to machine."""
    module = write()
    experiment = BASE.replace(network=Dense((2, 6, 1), module.activation))
    sweep = replace(sweep_of(module), experiment=experiment)
    pair = pairs_of(sweep)[0]
    folder = SweepFolder(tmp_path / "out")
    folder.make(sweep)
    folder.open_round("first-0")
    task = Task(folder.path, "first-0", (pair,), sweep.measuring, sweep.measuring.key)
    other = write(TEXT.replace(*edit))
    there = BASE.replace(network=Dense((2, 6, 1), other.activation))  # what the worker imports
    edited = replace(
        task, measuring=sweep_of(other).measuring, pairs=(pair._replace(experiment=there.replace(optimizer=Adam(0.1))),)
    )
    outcome = edited.run()
    assert not folder.files()
    assert "another source" in dict(outcome.failed)[str(pair)]
