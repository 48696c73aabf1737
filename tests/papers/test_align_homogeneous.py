"""The neural correlation: its gradient, times of alignment in closed form, the order of a new neuron, pursuit."""

from dataclasses import replace

import numpy as np
import pytest
import small_figure as small

from condensation import GD, Dense, Drawn, Evenly, Experiment, GradientFlow, Init, Normal, train
from condensation.derivatives import as_vector, gradient
from condensation.papers import judge
from condensation.papers.align import _pursuit as pursuit
from condensation.papers.align._correlation import (
    ALIGNED,
    between,
    gradients,
    reached,
    relu2,
    relu3,
    time_at,
    two_neurons,
    vectors,
)
from condensation.papers.align.again import second_alignment
from condensation.papers.align.pursuit import example


def run_of(widths, activation, scale=1.0, outputs=1, seeds=1):
    def drawn(rng):
        x = rng.standard_normal((6, 2))
        return x, x @ rng.standard_normal((2, outputs))

    network = Dense((2, *widths, outputs), activation, bias=False)
    return train(Experiment(network, Init(Normal(scale)), Drawn(drawn), GD(1e-3), 2), seeds, progress=False)


@pytest.mark.parametrize(
    ("widths", "activation", "power", "outputs"),
    [((4,), "relu", 2, 1), ((4,), relu2, 3, 3), ((4,), relu3, 4, 1), ((3, 3), "relu", 3, 2)],
)
def test_the_gradient_is_that_of_a_homogeneous_correlation(widths, activation, power, outputs):
    run = run_of(widths, activation, outputs=outputs)
    x, y = run.data(0)
    value = np.mean(np.sum(y * run.model(0, 0)(x), axis=1))
    weights, slope = vectors(run, 0)[0], gradients(run, 0)[0]
    assert weights @ slope == pytest.approx(power * value)  # Euler
    # the gradient of the loss on targets that are far away is that of the correlation alone
    far = as_vector(gradient(run.model(0, 0), x, 1e9 * y)) / -1e9
    np.testing.assert_allclose(slope, far, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_blow_up_between_saved_steps_is_found_where_it_is(power):
    time = np.linspace(0, 1, 8)
    sines = np.clip(1 - time, 0, 1) ** (1 / power)  # 0.1 at 1 - 0.1^power
    place = reached(sines + 1e-12, ALIGNED)
    assert time_at(time, sines, place, power) == pytest.approx(1 - ALIGNED**power)
    assert between(10.0 ** np.arange(8), place) == pytest.approx(10**place)
    assert np.isnan(time_at(time, np.ones(8), reached(np.ones(8), ALIGNED)))
    assert np.isnan(reached(np.full(8, np.nan), ALIGNED))


@pytest.mark.trials
def test_small_weights_at_a_saddle_follow_the_correlation_with_the_residual():
    scale, steps = 1e-3, 400
    flow = GradientFlow(40 / scale / steps, stop_ratio=0.01, rtol=1e-6)
    every = Evenly(steps + 1)
    network = Dense((3, 20, 1), relu2, bias=False)
    experiment = Experiment(network, Init(Normal(scale)), Drawn(two_neurons), flow, steps, save=every, record=every)
    run = train(experiment, 1, progress=False)
    found = second_alignment(run, 0)
    assert found.grown is not None
    assert found.first < found.saddle < found.grown
    assert found.norms[found.saddle] < 0.1 < found.loss[found.saddle] < 1
    column = found.saddle
    model, (x, y) = run.model(int(run.saved[column]), 0), run.data(0)
    grown = np.argmax(np.linalg.norm(model.weights(1), axis=1))
    slope = gradient(model, x, y)
    own = [model.weights(1), model.parameters["output.weight"].T]
    down = [-slope["dense1.weight"], -slope["output.weight"].T]
    rest, descent = (np.delete(np.hstack(parts), grown, axis=0).ravel() for parts in (own, down))
    cosine = rest @ descent / np.linalg.norm(rest) / np.linalg.norm(descent)
    assert found.sines[column] == pytest.approx(np.sqrt(1 - cosine**2), rel=0.01)
    assert found.norms[column] == pytest.approx(np.linalg.norm(rest))


def test_a_network_without_a_second_growth_decides_nothing():
    run = run_of((4,), relu2, scale=1e-3)
    still = run.curves | {"time": np.zeros_like(run.loss)}
    found = second_alignment(replace(run, curves=still), 0)
    assert found.grown is None
    assert np.isnan(found.place)
    assert np.isnan(found.wait)


@pytest.mark.parametrize(("where", "degree"), [("path", 3), ("first", 2), ("second", 2)])
def test_the_correlation_of_new_weights_is_the_lowest_order_of_what_they_add(where, degree):
    rng = np.random.default_rng(0)
    x, y = example(rng)
    net, widths = nothing(), {"first": 0, "second": 0}
    if where != "path":
        net = pursuit._with(net, widths, "path", rng.standard_normal(22))
        net = pursuit._with(net, widths, "first", np.r_[rng.standard_normal(20), np.eye(8)[0]])
    with pursuit.precision("float64"):
        residual = y - np.asarray(pursuit.output(net, x))
        new = {"path": np.r_[x[0], 1, 1], "first": np.r_[x[0], 1, np.zeros(7)], "second": np.r_[1, 2, np.zeros(6), 1]}
        value = float(pursuit.correlation(new[where], where, net, x, residual))
        larger = pursuit._with(net, widths, where, 1e-5 * new[where])
        gained = np.asarray(pursuit.output(larger, x)) - np.asarray(pursuit.output(net, x))
    assert abs(value) > 1e-3
    assert np.mean(residual * gained) == pytest.approx(value * 1e-5**degree, rel=1e-3)


def nothing():
    return {"first": np.zeros((8, 20)), "second": np.zeros((8, 8)), "last": np.zeros(8)}


def test_the_search_finds_more_than_random_directions_and_one_neuron_is_learned_at_once():
    rng = np.random.default_rng(1)
    x = rng.choice([-1.0, 1.0], (200, 5))
    y = np.maximum(x @ [2.0, 0, 1, 0, 0], 0)
    found = pursuit.pursue(x, y, rng, 0.05, 5000)
    assert [each.widths for each in found] == [(1, 1)]
    assert found[0].error <= pursuit.EXACT
    assert not found[0].net["first"][1:].any()  # neurons that were not added are still zero
    assert not found[0].net["second"][1:].any()
    assert pursuit.error_on(found[0].net, x, y) == pytest.approx(found[0].error)
    net = {"first": np.zeros((8, 5)), "second": np.zeros((8, 8)), "last": np.zeros(8)}
    tried = rng.standard_normal((2000, 7))
    tried /= np.linalg.norm(tried, axis=1, keepdims=True)
    with pursuit.precision("float64"):
        best = max(float(pursuit.correlation(each, "path", net, x, y)) for each in tried[:300])
    assert found[0].correlation > best
    control = pursuit.pursue(x, y, rng, 0.05, 10, layers=("first",))
    assert [each.widths for each in control] == [(1, 1), (2, 1)]
    assert control[0].correlation < found[0].correlation


@pytest.mark.parametrize("name", [pytest.param("align-deep", marks=pytest.mark.trials), "align-again"])
def test_a_network_that_hardly_moved_fulfils_nothing(name):
    figure, control = small.observed(name)
    assert not any(any(holds) for holds in small.judged(figure).values())
    assert not any(any(holds) for holds in small.judged(control).values())
    assert figure.draw().pictures


@pytest.mark.trials
def test_pursuit_is_drawn_from_few_steps(monkeypatch):
    from condensation.papers.align import pursuit as module

    monkeypatch.setattr(module, "STEPS", {"quick": 30, "paper": 30})
    monkeypatch.setattr(pursuit, "STARTS", 2)
    figure, control = small.observed("align-pursuit", seeds=1)
    assert not any(any(holds) for holds in small.judged(figure).values())
    assert not any(control.measured("whole").holds(figure.claim("whole").rule))
    drawing = figure.draw()
    assert drawing.pictures
    assert list(drawing.data["kind"]) == ["pursuit"] * 7 + ["random"] * 7


@pytest.mark.trials
@pytest.mark.parametrize("name", ["align-deep", "align-again"])
def test_networks_align_in_a_time_that_their_homogeneity_tells(name, measured_of):
    found = {key: judge(values.holds(rule)) for key, (values, rule, _) in measured_of(name).items()}
    assert set(found.values()) == {"reproduced"}
