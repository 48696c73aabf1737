"""What is measured in a cell, against the measures themselves and against loops."""

import dataclasses

import numpy as np
import pytest

from condensation import (
    GD,
    Adam,
    Arrays,
    Conv,
    Dense,
    Evenly,
    Experiment,
    Glorot,
    Init,
    InputError,
    Normal,
    Seed,
    sine_sum,
    train,
)  # fmt: skip
from condensation.measure import effective_rank, find_lines, participation_ratio, relative_change, stable_rank
from condensation.sweeps import Local, Sweep, run_sweep
from condensation.sweeps._measures import NAMES, check_fit, check_measures, measure_step
from condensation.sweeps._rows import join_rows, measure_rows
from condensation.sweeps._run import pairs_of
from condensation.training import train_pairs

BASE = Experiment(Dense((2, 8, 6, 1)), Init(Normal(0.3)), sine_sum(1, 2, 1, dim=2, n=9, low=-1, high=1), Adam(3e-2), 40)
SEED = Seed(1, 2)


def last_loss(trajectory, step):
    return trajectory.loss[0, -1]


def two(trajectory, step):
    return {"double": 2 * step, "half": np.float32(step / 2)}


def double(trajectory, step):
    return 0


def no_number(trajectory, step):
    return "many"


def at_step(trajectory, step):
    return {"step": step}


def time(trajectory, step):
    return 1.0


@pytest.fixture(scope="module")
def run():
    return train_pairs([(BASE, SEED)])[0]


def test_columns_are_the_measures_of_each_hidden_layer(run):
    step = int(run.saved[-1])
    found = measure_step(run, step, NAMES)
    expected = {}
    for layer in ("dense1", "dense2"):
        weights, start = run.weights(layer, step, SEED), run.weights(layer, 0, SEED)
        lines = find_lines(weights)
        cosines = [
            abs(u @ v) / np.linalg.norm(u) / np.linalg.norm(v) for k, u in enumerate(weights) for v in weights[:k]
        ]
        expected |= {
            f"{layer}.lines": lines.count,
            f"{layer}.orientations": lines.orientations,
            f"{layer}.cover": lines.cover,
            f"{layer}.k_eff": lines.k_eff,
            f"{layer}.condensed": float(lines.condensed),
            f"{layer}.change": relative_change(weights, start),
            f"{layer}.effective_rank": effective_rank(weights),
            f"{layer}.stable_rank": stable_rank(weights),
            f"{layer}.participation": participation_ratio(weights),
            f"{layer}.cosine": np.median(cosines),
        }
    weights = run.weights("dense1", step, SEED)
    z = np.zeros(3)
    for x, y in zip(*run.data(SEED), strict=True):
        z += y[0] * np.array([*x, 1.0]) / 9
    along = weights @ z / np.linalg.norm(z)
    expected["dense1.share"] = np.sqrt((along**2).sum() / (weights**2).sum())
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name
    assert all(type(value) is float for value in found.values())


def test_the_threshold_decides_which_units_are_of_one_line(run):
    weights = run.weights("dense1", 40, SEED)
    for threshold in (0.5, 0.999):
        found = measure_step(run, 40, ("lines",), threshold)
        assert found["dense1.k_eff"] == find_lines(weights, threshold=threshold).k_eff
    assert measure_step(run, 40, ("lines",), 0.5) != measure_step(run, 40, ("lines",), 0.999)


def test_the_share_without_a_bias():
    plain = train(BASE.replace(network=Dense((2, 8, 1), bias=False)), seeds=[SEED])
    x, y = plain.data(SEED)
    z, weights = x.T @ y[:, 0], plain.weights("dense1", 40, SEED)
    along = np.linalg.norm(weights @ z) / np.linalg.norm(z) / np.linalg.norm(weights)
    assert measure_step(plain, 40, ("share",)) == {"dense1.share": pytest.approx(along, rel=1e-12)}


def test_what_cannot_be_measured_has_no_column(run):
    """Weights that are zero have no lines, but they have changed."""
    still = {name: np.zeros_like(value) for name, value in run.parameters.items()}
    kept = {name: np.where(np.arange(value.shape[1]).reshape(1, -1, *[1] * (value.ndim - 2)) == 0, value, still[name])
            for name, value in run.parameters.items()}  # fmt: skip
    gone = dataclasses.replace(run, parameters=kept)
    assert measure_step(gone, 40, NAMES) == {"dense1.change": 1.0, "dense2.change": 1.0}


def test_kernels_are_units():
    image = Arrays(np.random.default_rng(0).normal(size=(4, 1, 6, 6)), np.eye(2)[[0, 1, 0, 1]])
    small = BASE.replace(network=Conv((1, 6, 6), (3,), 3, 2, (4,)), data=image, steps=2)
    (run,) = train_pairs([(small, SEED)])
    found = measure_step(run, 2, ("change",))
    assert found == {
        layer + ".change": relative_change(run.weights(layer, 2, SEED), run.weights(layer, 0, SEED))
        for layer in ("conv1", "dense1")
    }
    with pytest.raises(InputError, match="the share along z is of dense networks with one output"):
        check_fit(("lines", "share"), small.network)
    with pytest.raises(InputError, match="the share along z"):
        Sweep(small, {"steps": [2]}, measure="share")
    assert measure_step(run, 2, ("share",)) == {}


def test_measures_of_the_user(run):
    assert measure_step(run, 40, (last_loss, two, "change")).keys() == {
        "last_loss", "double", "half", "dense1.change", "dense2.change"
    }  # fmt: skip
    assert measure_step(run, 40, (two,)) == {"double": 80.0, "half": 20.0}
    assert measure_step(run, 40, (last_loss,)) == {"last_loss": float(run.loss[0, -1])}


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        ((no_number,), "the measure no_number must give a number or numbers by name, not 'many'"),
        ((two, double), "two measures give a column double"),
        ((at_step,), "no measure can be called step, as tables have a column of that name"),
    ],
)
def test_a_measure_that_gives_something_else_is_refused(run, measures, said):
    with pytest.raises(InputError, match=said):
        measure_step(run, 40, measures)


@pytest.mark.usefixtures("unchecked")
def test_measures_are_names_or_functions():
    assert check_measures("lines") == check_measures(["lines", "lines"]) == ("lines",)
    assert check_measures(two) == (two,)
    assert check_measures((two, "rank", f"{__name__}:two")) == (two, "rank")
    nested = lambda trajectory, step: 1.0  # noqa: E731
    for given, said in [
        ((), "a sweep measures something"),
        (("line",), "unknown measure 'line'; did you mean 'lines'"),
        ((3,), "unknown measure 3"),
        ((nested,), "the measure <lambda> names no column: write it with def"),
        ((time,), "no measure can be called time"),
        ((f"{__name__}:none",), "cannot be imported: AttributeError"),
    ]:
        with pytest.raises(InputError, match=said):
            check_measures(given)


def test_a_measure_of_the_user_is_a_column_of_the_table(tmp_path):
    sweep = Sweep(BASE, {"optimizer.learning_rate": [0.1, 0.2]}, measure=[two, last_loss], seeds=2)
    table = run_sweep(sweep, tmp_path, Local(1))
    assert table.complete
    np.testing.assert_array_equal(table.array("double"), 80)
    np.testing.assert_array_equal(table.array("last_loss"), table.array("loss"))


def test_a_single_input_has_no_columns_of_lines():
    """One input and zero biases: there are no directions to condense to."""
    experiment = Experiment(
        Dense((1, 20, 1)), Init(Glorot()), sine_sum(1, 2, 0, dim=1, n=5, low=-1, high=1), Adam(1e-3), 1
    )
    (run,) = train_pairs([(experiment, SEED)])
    assert measure_step(run, 0, ("lines",)) == {}
    assert "dense1.k_eff" in measure_step(run, 1, ("lines",))


def early(trajectory, step):
    """A column that some networks lack, and an error in one of them."""
    if trajectory.seeds[0] == Seed(2, 2) and trajectory.experiment.init.hidden == Normal(0.1):
        raise RuntimeError("not this one")
    return {"early": float(step)} if trajectory.seeds[0].init == 0 else {"late": float(step)}


@pytest.mark.parametrize("at", ["end", "saved"])
def test_rows_are_those_of_each_network_alone(at):
    """Also where they are measured in parts: a column that a part lacks is NaN there, and so are networks that died."""
    save = {"save": Evenly(3), "record": Evenly(3), "optimizer": GD(1e3)}
    sweep = Sweep(BASE.replace(**save), {"init.hidden.std": [0.1, 1e200]}, seeds=3, measure=("lines", early), at=at)
    pairs = pairs_of(sweep)
    trajectories = train_pairs([(pair.experiment, pair.seed) for pair in pairs])
    assert any(own.diverged for own in trajectories)
    whole = measure_rows(pairs, trajectories, sweep.measuring)
    assert whole.failed == {2: "RuntimeError: not this one"}
    cuts = [(0, 2), (2, 3), (3, 6)]
    parts = [measure_rows(pairs[a:b], trajectories[a:b], sweep.measuring) for a, b in cuts]
    joined = join_rows(parts, [b - a for a, b in cuts])
    assert joined.failed == whole.failed
    assert {*joined.measured} == {*whole.measured} >= {"early", "late", "dense1.lines"}
    for name in whole.table.column_names:
        np.testing.assert_array_equal(joined.table[name].to_numpy(), whole.table[name].to_numpy(), name)
    found = iter(whole.table.to_pylist())
    for pair, trajectory in zip(pairs, trajectories, strict=True):
        if pair.seed == Seed(2, 2) and pair.coordinates == {"init.hidden.std": 0.1}:
            continue
        for step in trajectory.saved[-1:].tolist() if at == "end" else trajectory.saved.tolist():
            row = next(found)
            assert (row["step"], row["fingerprint"]) == (step, pair.experiment.fingerprint())
            alone = measure_step(trajectory, step, sweep.measure) if not trajectory.diverged else {}
            assert {name: row[name] for name in whole.measured if row[name] == row[name]} == alone
