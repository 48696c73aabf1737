"""The rows of a run: medians over its seeds, whichever of them can be measured."""

from dataclasses import replace

import numpy as np
import pytest

from condensation import Adam, Dense, Every, Experiment, Init, InputError, Normal, load_run, sine_sum, train
from condensation.measure import bootstrap_errors, measure_units
from condensation.runs._store import ExperimentFolder
from condensation.weights._measured import cell, cell_with_error, columns
from condensation.weights._runs import measure_run

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
EXPERIMENT = Experiment(Dense((5, 50, 20, 1)), Init(Normal(0.05)), DATA, Adam(1e-3), 40, save=Every(20))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    train(EXPERIMENT, 3, out=runs)
    return next(runs.iterdir())


def test_each_number_is_the_median_over_the_seeds(folder):
    trajectory, measured = load_run(folder), measure_run(folder)
    assert list(measured.steps) == [0, 20, 40]
    for record in measured.records:
        weights = [trajectory.weights(record["layer"], record["step"], seed) for seed in trajectory.seeds]
        starts = [trajectory.weights(record["layer"], 0, seed) for seed in trajectory.seeds]
        rows = [measure_units("", own, start=start, with_null=True) for own, start in zip(weights, starts, strict=True)]
        for name in ("lines", "orientations", "cover", "k_eff", "effective_rank", "change", "mean", "null_k_eff"):
            assert record[name] == pytest.approx(np.median([getattr(row, name) for row in rows]))
        assert (record["units"], record["inputs"], record["kind"]) == (*weights[0].shape, "neuron")
        assert (record["seeds"], record["condensed_seeds"]) == (3, sum(row.condensed for row in rows))
    assert [row.layer for row in measured.last] == ["dense1", "dense2"]
    assert measured.units[0].weights() == pytest.approx(trajectory.weights("dense1", 40, 0))


def test_errors_are_medians_over_the_seeds_too(folder):
    trajectory, measured = load_run(folder), measure_run(folder, errors=True)
    for record in measured.records:
        weights = [trajectory.weights(record["layer"], record["step"], seed) for seed in trajectory.seeds]
        for name in ("k_eff", "effective_rank", "stable_rank"):
            errors = [getattr(bootstrap_errors(own), name) for own in weights]
            assert record[f"{name}_error"] == pytest.approx(np.median(errors))
            assert f" ±{np.median(errors):.1g}" in cell_with_error(record, name)


def test_a_diverged_seed_is_left_out_and_named(folder, monkeypatch):
    trajectory = load_run(folder)
    parameters = {name: value.copy() for name, value in trajectory.parameters.items()}
    broken = replace(trajectory, parameters=parameters, diverged={trajectory.seeds[1]: 7})
    monkeypatch.setattr(ExperimentFolder, "load", lambda self: broken)
    measured = measure_run(folder)
    assert {record["step"]: record["seeds"] for record in measured.records} == {0: 3, 20: 2, 40: 2}
    assert measured.notes == ("seed 1-1 diverged at step 7: from there on the medians are of the others",)
    for value in parameters.values():
        value[:, 1:] = np.nan
    measured = measure_run(folder)
    assert {record["step"]: record["seeds"] for record in measured.records} == {0: 3, 20: 0, 40: 0}
    assert "NaN" in measured.records[-1]["reason"]


def test_a_run_without_a_hidden_layer_is_refused(folder, monkeypatch):
    trajectory = load_run(folder)
    output = {name: value for name, value in trajectory.parameters.items() if name.startswith("output")}
    monkeypatch.setattr(ExperimentFolder, "load", lambda self: replace(trajectory, parameters=output))
    with pytest.raises(InputError, match="no hidden layer that was kept"):
        measure_run(folder)


def test_only_columns_that_tell_something_are_shown(folder):
    records = measure_run(folder).records
    assert {"step", "seeds", "condensed_seeds", "null_k_eff", "change"} <= columns(records, series=True).keys()
    alone = [record | {"seeds": 1, "mean": np.nan} for record in records]
    assert (
        not {"step", "seeds", "condensed_seeds", "null_k_eff", "mean", "change"} & columns(alone, series=False).keys()
    )
    assert [cell("step", 12000), cell("reason", "a vector"), cell("mean", np.nan)] == ["12,000", "a vector", "-"]
