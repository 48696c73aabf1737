"""Saddle to saddle: growth in closed form, exponents by hand, and that an untrained network fulfils nothing."""

from dataclasses import replace

import numpy as np
import pytest
import small_figure as small

from condensation import GradientFlow, train
from condensation.data import Drawn
from condensation.papers import judge
from condensation.papers.saddle._growth import (
    between_drops,
    exponents,
    half,
    linear_rest,
    modes,
    other_units,
    reached,
    unit_norms,
)
from condensation.papers.saddle.kept import KINDS, placed
from condensation.papers.saddle.modes import LEARNED, equal_squares, linear, near_low_rank, quadratic, two_squares


@pytest.fixture(scope="module")
def run():
    return train(linear(Drawn(half), 1e-3).replace(steps=1500), 1, progress=False)


def test_modes_grow_as_in_closed_form(run):
    """Balanced to first order, so each mode is s / (1 + c exp(-2 s t)) once it is well above its start."""
    gains, time = modes(run)[0], run.saved * 0.02
    for k, s in enumerate((1.0, 0.5)):
        own = gains[:, k]
        late = (own > 0.05 * s) & (own < 0.95 * s)
        slope = np.polyfit(time[late], np.log(own[late] / (s - own[late])), 1)[0]
        assert late.sum() > 10
        assert slope == pytest.approx(2 * s, rel=0.03)


def test_the_rest_is_read_at_the_moment_of_half_growth(run):
    moment = reached(run, modes(run)[..., 0], 0.5)[0]
    k = int(np.searchsorted(run.saved, moment))
    model = [run.model(int(run.saved[j]), 0).parameters for j in (k - 1, k)]
    rests = [np.hypot(np.linalg.norm(m["dense1.weight"][:, 1]), np.linalg.norm(m["output.weight"][1])) for m in model]
    assert rests[0] < linear_rest(run)[0] < rests[1]
    still = replace(run, parameters={name: value[:, :1] for name, value in run.parameters.items()}, saved=run.saved[:1])
    assert np.isnan(linear_rest(still)).all()
    assert np.isnan(exponents(np.array([1.0, 2.0]), np.array([[np.nan], [1.0]]))).all()


def test_the_norm_of_a_unit_has_all_its_weights():
    short = train(quadratic(Drawn(two_squares), 0.1, 3).replace(steps=2), 1, progress=False)
    model = short.model(2, 0)
    expected = [
        np.sqrt(w @ w + a**2) for w, a in zip(model.weights(1), model.parameters["output.weight"][0], strict=True)
    ]
    np.testing.assert_allclose(unit_norms(short)[0, -1], expected)
    assert np.isnan(other_units(short)).all()


@pytest.mark.trials
def test_quadratic_units_follow_the_scale_and_stand_still_between_them():
    scales = np.array([1e-3, 1e-5])
    runs = [train(quadratic(Drawn(two_squares), scale), 2, progress=False) for scale in scales]
    np.testing.assert_allclose(exponents(scales, np.array([other_units(each) for each in runs])), 1, atol=0.05)
    steps = [reached(each, np.sort(unit_norms(each))[..., -1], 0.5) for each in runs]
    np.testing.assert_allclose(*steps, rtol=0.02)  # a step is a time over the scale: times go as one over it
    assert between_drops(runs[1], 2 * LEARNED).tolist() == [1, 1]
    assert np.isnan(between_drops(runs[1], LEARNED / 2)).all()
    assert between_drops(train(quadratic(Drawn(equal_squares), 1e-5, time=2.0), 2, progress=False), 0.02).min() == 1


@pytest.mark.trials
def test_descent_is_near_to_the_flow(run):
    flow = linear(Drawn(half), 1e-3).replace(steps=1500, optimizer=GradientFlow(0.02))
    assert linear_rest(train(flow, 1, progress=False))[0] == pytest.approx(linear_rest(run)[0], rel=0.03)


def test_the_start_near_rank_one_is_near_it():
    values = np.linalg.svd(near_low_rank().initial_model(0).parameters["dense1.weight"])[1]
    assert values[1] < 1e-3 * values[0]


@pytest.mark.parametrize("name", [pytest.param("saddle-modes", marks=pytest.mark.trials), "saddle-units"])
def test_a_network_that_hardly_moved_fulfils_nothing(name):
    figure, control = small.observed(name, steps=10, seeds=1)
    small.judged(figure)
    assert not any(any(holds) for holds in small.judged(control).values())
    assert figure.draw().pictures


@pytest.mark.trials
def test_linear_networks_follow_the_exponents_and_x_tanh_grows_by_one_unit(measured_of):
    def verdict(name, key):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return judge(values.holds(rule))

    assert {verdict("saddle-modes", f"linear-{ratio}") for ratio in (0.25, 0.5, 0.75)} == {"reproduced"}
    assert verdict("saddle-modes", "linear-equal") == "reproduced"
    assert verdict("saddle-units", "x_tanh-one") == verdict("saddle-units", "tanh-line") == "reproduced"


@pytest.mark.parametrize("name", ["equal", "zero", "proportional", "dependent"])
def test_units_begin_on_their_manifold_or_beside_it(name):
    off = KINDS[name][1]
    assert np.abs(off(placed(name, 0.0))).max() < 1e-15
    assert np.linalg.norm(off(placed(name, 1e-3))) == pytest.approx(1e-3)


def test_manifolds_are_kept_by_trained_networks_and_nothing_by_untrained_ones():
    figure, control = small.observed("saddle-kept", steps=3000, seeds=1, only=("dependent", "dependent, beside"))
    assert figure.distances["dependent"][0] < 1e-12
    assert np.isfinite(figure.distances["dependent, beside"]).all()
    assert figure.distances["dependent, beside"][0] > 1e-4
    assert not any(control.measured("dependent").holds(control.claim("dependent").rule))
