"""After the initial stage: plateaus of a real training, critical points, splits; each beside another computation."""

import numpy as np
import pytest

from condensation import Dense, Geometric, Model, train
from condensation.derivatives import as_vector, gradient, hessian, jacobian, loss_of
from condensation.papers import judge
from condensation.papers._figure import Available
from condensation.papers._trainings import untrained
from condensation.papers.beyond import Saddles, Splitting
from condensation.papers.beyond._critical import gradient_share, to_critical, to_minimum
from condensation.papers.beyond._split import SHARES, Split
from condensation.papers.beyond._standing import effective_width, standings
from condensation.papers.beyond.saddles import TARGET, four_relus


def relu(z):
    return np.maximum(z, 0)


def test_the_target_is_that_of_four_relus():
    x = np.linspace(-1, 1, 41)[:, None]
    expected = -relu(x) + relu(2 * (x + 0.3)) - relu(1.5 * (x - 0.4)) + relu(0.5 * (x - 0.8))
    data = four_relus("relu").data
    assert data.formula == TARGET
    np.testing.assert_allclose(data.target(x), expected, atol=1e-15)


@pytest.fixture(scope="module")
def run():
    often = Geometric(30)
    return train(four_relus("tanh").replace(steps=15_000, save=often, record=often), 1, progress=False)


@pytest.fixture(scope="module")
def one(run):
    return standings(run, 0)[0]


def test_a_training_of_tanh_has_a_plateau_between_two_drops(run, one):
    loss = run.loss[0] / run.loss[0, 0]
    assert loss[one.last] < loss[one.first] < 0.2
    assert one.first <= one.column <= one.last < one.left <= one.until
    assert loss[one.left] <= 0.9 * loss[one.column] < loss[one.left - 1]
    sizes = [
        np.linalg.norm(as_vector(gradient(run.model(int(step), 0), *run.data(0))))
        for step in run.saved[one.first : one.last + 1]
    ]
    assert one.column == one.first + int(np.argmin(sizes))
    assert not standings(untrained(run), 0)


def test_the_lines_there_are_those_of_the_residual(one):
    """At multiplicity 1 the line is the mean of residual times input, and a small neuron grows at its norm."""
    x, y = one.data
    inputs = np.c_[x, np.ones(len(x))]
    a, w = one.model.parameters["output.weight"][0], one.model.weights(1)
    residual = y[:, 0] - np.tanh(inputs @ w.T) @ a
    mean = residual @ inputs / len(x)
    (line,) = one.lines
    assert abs(line @ mean) == pytest.approx(np.linalg.norm(mean), rel=1e-9)
    adds = np.sqrt(((a * np.tanh(inputs @ w.T)) ** 2).mean(axis=0))
    outputs = np.tanh(inputs @ w.T) @ a
    np.testing.assert_array_equal(one.idle, adds <= 0.01 * np.sqrt((outputs**2).mean()))
    assert one.directions.values[one.directions.attracts][0] == pytest.approx(np.linalg.norm(mean), rel=1e-9)


def test_gains_are_those_of_the_weights(run, one):
    after = run.model(int(run.saved[one.left]), 0)
    sizes = [
        np.linalg.norm(m.weights(1), axis=1) * np.abs(m.parameters["output.weight"][0]) for m in (one.model, after)
    ]
    np.testing.assert_allclose(one.gains, np.maximum(sizes[1] - sizes[0], 0))
    assert 0 <= one.share_of_idle <= 1
    assert 0 <= one.share_on_lines <= 1
    predicted, found = one.times
    assert found == run.saved[one.left] - run.saved[one.column]
    assert predicted > 0


def test_the_reduced_network_of_the_plateau_is_a_narrow_one(run, one):
    x, y = one.data
    residual = np.linalg.norm(y - one.model(x))
    off = one.narrow(x) - one.model(x)
    assert np.linalg.norm(off - off.mean()) <= 0.1 * residual * (1 + 1e-9)
    assert len(one.narrow.weights(1)) < 5
    assert effective_width(run, one.column, 0) <= effective_width(run, len(run.saved) - 1, 0)
    assert 0 < one.still_to_gain < 1.2
    assert one.stillness < 0.5


def test_the_rate_is_that_of_the_hessian(one):
    matrix = hessian(one.model, *one.data)
    rate, found = one.rates
    assert rate == pytest.approx(-np.linalg.eigvalsh((matrix + matrix.T) / 2)[0], rel=1e-6)
    assert found > 0


def test_untrained_networks_decide_nothing_beyond_plateaus(run):
    still = untrained(run)
    figure = Saddles(Available(dict.fromkeys(("tanh", "x_tanh", "relu"), still)))
    for claim in Saddles.claims:
        holds = figure.measured(claim.key).holds(claim.rule)
        assert holds == ((False,) if claim.key.endswith("-plateaus") else (None,)), claim.key


def test_a_training_without_plateaus_is_drawn_too(run):
    figure = Saddles(Available(dict.fromkeys(("tanh", "x_tanh", "relu"), untrained(run))))
    assert figure.draw().data == {}
    assert [row[1] for row in figure.draw().tables[0].rows] == ["0"] * 3


def test_the_figure_is_drawn_and_tells_reasons(run):
    figure = Saddles(Available(dict.fromkeys(("tanh", "x_tanh", "relu"), run)))
    drawing = figure.draw()
    assert drawing.data["seed"].shape == drawing.data["time_found"].shape
    assert {len(row) for table in drawing.tables for row in table.rows} == {len(drawing.tables[0].header)}
    for claim in Saddles.claims:
        (holds,) = figure.measured(claim.key).holds(claim.rule)
        assert holds is not None
        assert claim.why(figure)


def narrow(width=1, seed=0):
    stream = np.random.default_rng(seed)
    values = {"dense1.weight": (width, 1), "dense1.bias": (width,), "output.weight": (1, width)}
    return Model(Dense((1, width, 1), "tanh"), {name: stream.normal(size=shape) for name, shape in values.items()})


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(1).uniform(-1, 1, (30, 1))
    return x, np.sin(3 * x) + 0.3


def test_the_share_of_the_gradient(data):
    x, y = data
    model = narrow()
    slopes = np.concatenate([part.reshape(len(x), -1) for part in jacobian(model, x).values()], 1)
    largest = np.linalg.svd(slopes)[1][0] * np.linalg.norm(y - model(x)) / len(x)
    slope = np.linalg.norm(as_vector(gradient(model, x, y)))
    assert gradient_share(model, x, y) == pytest.approx(slope / largest, rel=1e-9)


def test_a_minimum_and_a_critical_point_are_found(data):
    start = narrow()
    minimum = to_minimum(start, *data)
    assert loss_of(minimum, *data) < loss_of(start, *data)
    assert np.linalg.eigvalsh(hessian(minimum, *data))[0] > -1e-8
    critical = to_critical(minimum, *data)
    assert np.linalg.norm(as_vector(gradient(critical, *data))) < 1e-12


def test_what_a_split_adds_is_what_s_predicts(data):
    x, y = data
    split = Split.of(narrow(), x, y)
    assert split.critical
    w, a = split.model.weights(1)[0], split.model.parameters["output.weight"][0, 0]
    inputs = np.c_[x, np.ones(len(x))]
    t = np.tanh(inputs @ w)
    residual, second = y[:, 0] - a * t, -2 * t * (1 - t**2)
    s = -a * sum(r * b * np.outer(u, u) for r, b, u in zip(residual, second, inputs, strict=True)) / len(x)
    np.testing.assert_allclose(split.curvature(0), s, atol=1e-12)
    for shares in SHARES:
        wide = split.split(0, shares)
        np.testing.assert_allclose(wide(x), split.model(x), atol=1e-12)
        assert split.gradient_norm(wide) < 1e-11
        values = split.shared[0, shares]
        signs = np.linalg.eigvalsh(shares[0] * shares[1] * s)
        assert split.zeros(values) == 1
        assert split.negative(values) == (signs < 0).sum() == split.predicted(0, shares)
    assert split.left < 1


def test_a_network_that_never_was_critical_decides_nothing():
    run = train(four_relus("x_tanh", 1, 0.5).replace(steps=5), 1, progress=False)
    figure, moving = Splitting(Available({"x_tanh": run})), Split(run.model(5, 0), *run.data(0))
    nothing = {name: 0 * value for name, value in moving.model.parameters.items()}
    dead = Split(Model(moving.model.network, nothing), moving.x, moving.y)
    assert dead.critical
    assert not figure.decides("x_tanh", dead)  # all of it is flat
    assert not figure.decides("x_tanh", moving)


@pytest.mark.trials
def test_tanh_leaves_by_splitting_and_x_tanh_by_idle_neurons(measured_of):
    def verdict(name, key):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return judge(values.holds(rule))

    assert verdict("beyond-saddles", "tanh-idle") == "not reproduced"
    assert verdict("beyond-saddles", "tanh-time") == "not reproduced"
    assert verdict("beyond-saddles", "x_tanh-time") == "reproduced"
    assert verdict("beyond-saddles", "relu-plateaus") == "reproduced"
    assert verdict("beyond-splitting", "tanh-more") == "reproduced"
    assert verdict("beyond-splitting", "x_tanh-more") == "not reproduced"
