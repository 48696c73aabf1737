"""CNN Theorem 1 is judged as a limit: by the trained widths and by the linear dynamics continued beyond them."""

import numpy as np
import pytest
from scipy.linalg import expm

from condensation import GD, Evenly, train
from condensation.papers import judge
from condensation.papers._trainings import untrained
from condensation.papers.cnn.theorem1 import FAR, GAMMAS, LED, WIDEST, Theorem1
from condensation.papers.cnn.theorem1_networks import (
    KERNEL,
    STOP,
    continue_seed,
    expected_stop,
    experiment,
    exponent,
    measure_seed,
)
from condensation.prediction._kernels import initial_filters
from condensation.theory import KernelDynamics, effective_time

WIDTHS = [32, 1024, WIDEST]


def figure_with(shares=(0.5, 0.8, 0.937), change=1.0, growth=3.0, apart=0.0, grown=np.nan):
    """Theorem 1 with two seeds whose values are set by hand; the change is M^0.5 times a factor."""
    figure = Theorem1({})
    figure.widths = WIDTHS
    grid = np.ones((len(GAMMAS), len(WIDTHS), 2))
    widths, far = np.array(WIDTHS)[:, None], np.array(FAR, float)[:, None]
    share = grid * np.array(shares)[:, None]
    figure.table = {
        "share": share, "linear_share": share + apart, "stop_share": share, "linear_stop_share": share,
        "bound": grid, "stop": 2 * grid, "change": change * grid * widths**0.5, "stop_growth": grid * widths,
        "grown": grown * grid, "heuristic": grid, "lambda1": grid, "enough": grid,
    }  # fmt: skip
    wide = np.ones((len(GAMMAS), len(FAR), 2))
    figure.far = {
        "share": 1 - wide / far, "stop_share": 1 - wide / far, "change": wide * far**0.5, "growth": growth * wide,
        "stop_growth": growth * wide * far / WIDEST,
    }  # fmt: skip
    return figure


def verdict(figure, key):
    return judge(figure.measured(key).holds(Theorem1.claim(key).rule))


def test_a_share_that_tends_to_1_holds_before_it_is_there():
    """At M = 4096 the share is below 0.95, which says nothing of the limit."""
    assert verdict(figure_with(), "share-3") == "reproduced"
    assert verdict(figure_with(), "stop-3") == "reproduced"


@pytest.mark.parametrize(
    "figure",
    [figure_with(shares=(0.5, 0.8, 0.79)), figure_with(shares=(0.5, 0.5, 0.5)), figure_with(apart=0.02)],
)
def test_networks_that_do_not_go_there_refute_the_limit(figure):
    assert verdict(figure, "share-3") == "not reproduced"


def test_filters_that_have_hardly_grown_decide_nothing():
    figure = figure_with(growth=LED - 0.01)
    assert {verdict(figure, f"{key}-2") for key in ("share", "stop", "change", "grown", "time")} == {"not decided"}


def test_the_change_must_grow_at_least_so_fast_and_may_grow_faster():
    for gamma in GAMMAS:
        measured = figure_with().measured(f"change-{gamma}")
        np.testing.assert_allclose(measured.values, 0.5 / exponent(gamma))
    assert verdict(figure_with(), "change-2") == "reproduced"  # twice the power: a lower limit only
    assert verdict(figure_with(), "change-4") == "not reproduced"
    assert list(figure_with(change=0.0).measured("change-3").values) == [0, 0]


def test_the_time_of_growth_has_a_lower_limit_only():
    assert verdict(figure_with(grown=7.0), "time-4") == "reproduced"
    assert verdict(figure_with(grown=0.9), "time-4") == "not reproduced"
    assert verdict(figure_with(), "time-4") == "not decided"


def test_the_loss_falls_at_leading_order_as_the_filters_that_are_drawn():
    """The fall is the sum of <a, Z theta> over the filters, by the matrix exponential of a large sample."""
    stream, width, gamma, fall = np.random.default_rng(0), 40_000, 2.0, 0.3
    z = stream.normal(size=(6, 5)) / 6
    dynamics = KernelDynamics(z)
    block = np.block([[np.zeros((5, 5)), z.T], [z, np.zeros((6, 6))]])
    start = width ** (-gamma / 2) * stream.normal(size=(width, 11))
    time = expected_stop(dynamics.values, width, gamma, fall)
    filters, outputs = np.split(start @ expm(time * block).T, [5], axis=1)
    assert np.einsum("br,rc,bc->", outputs, z, filters) == pytest.approx(fall, rel=0.03)


@pytest.fixture(scope="module")
def run():
    """A network that is trained for a step: its initial weights and its images are all that is continued."""
    return train(experiment("quick", 3, 256).replace(optimizer=GD(1e-9), steps=1, save=Evenly(2)), 2)


def test_initial_weights_are_continued_up_to_the_times_of_wider_networks(run):
    """Beside the matrix exponential of [[0, Zᵀ], [Z, 0]]."""
    dynamics = KernelDynamics.of(*run.data(run.seeds[1]), KERNEL, run.experiment.loss)
    rows, columns = dynamics.z.shape
    block = np.block([[np.zeros((columns, columns)), dynamics.z.T], [dynamics.z, np.zeros((rows, rows))]])
    start = np.concatenate(initial_filters(run, 1), axis=1)
    own, wide = continue_seed(run, 1, 3, (256, 10**9))
    for width, found in ((256, own), (10**9, wide)):
        moved = start @ expm(effective_time(dynamics.values[0], width, 3) * block).T
        filters, initial = moved[:, :columns], start[:, :columns]
        size = np.linalg.norm(initial)
        assert found["share"] == pytest.approx(np.linalg.norm(filters @ dynamics.v1) / np.linalg.norm(filters))
        assert found["change"] == pytest.approx(np.linalg.norm(filters - initial) / size)
        assert found["growth"] == pytest.approx(np.linalg.norm(filters) / size)
    assert own["share"] < wide["share"] < 1
    assert wide["growth"] < wide["stop_growth"]


def test_before_the_bound_is_positive_nothing_has_changed(run):
    (narrow,) = continue_seed(run, 0, 2, (100,))
    assert (narrow["change"], narrow["growth"]) == (0, 1)


@pytest.mark.trials
def test_the_expected_stop_is_that_of_a_trained_network():
    trained = train(experiment("quick", 3, 1024), 2)
    for k in range(2):
        rows = measure_seed(trained, k, 3)
        dynamics = KernelDynamics.of(*trained.data(trained.seeds[k]), KERNEL, trained.experiment.loss)
        expected = expected_stop(dynamics.values, 1024, 3, (1 - STOP) * float(trained.loss[k, 0]))
        assert rows["stop"] == pytest.approx(expected, rel=0.02)
        assert rows["stop_growth"] == pytest.approx(continue_seed(trained, k, 3, (1024,))[0]["stop_growth"], rel=0.05)
    rows = measure_seed(untrained(trained), 0, 3)
    assert np.isnan([rows["stop"], rows["stop_growth"], rows["grown"]]).all()
