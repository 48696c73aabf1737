"""The figures of attention: what is measured against brute force, and the verdicts at a few seeds."""

from types import SimpleNamespace

import numpy as np
import pytest

import condensation as c
from condensation.papers._claims import judge
from condensation.papers._figure import Available
from condensation.papers._trainings import untrained
from condensation.papers.attention import InContext, Stages
from condensation.papers.attention._course import Course, rank
from condensation.papers.attention._data import matrix_at_plateau, one_top, two_top
from condensation.papers.attention.in_context import LEVELS, Learner, in_context, lingering, off_sigmoid, white
from condensation.papers.attention.ranks import DIM, EIGENVALUES, HEADS, Ranks, ranked, singular_values, waits
from condensation.papers.attention.stages import frozen, whole


@pytest.fixture(scope="module")
def run():
    return c.train(whole("tanh"), 3)


def test_the_rank_of_a_known_matrix():
    assert rank(np.diag([1.0, 0.5, 0.05])) == 2


def test_f_has_one_or_two_largest_singular_values():
    rng = np.random.default_rng(0)
    one, two = (np.linalg.svd(matrix_at_plateau(*data(rng)), compute_uv=False) for data in (one_top, two_top))
    assert one[1] < 0.7 * one[0]
    assert two[1] == pytest.approx(two[0], rel=1e-12)
    assert two[2] < 0.7 * two[0]


@pytest.mark.trials
def test_assumption_1_by_loops(run):
    course = Course(run, 1)
    for k in (0, 300, course.before(0.99)):
        wv, w1, w2 = (part[k] for part in course.scaled)
        d = len(wv)
        true = [w2[i] * sum(wv[j] * w1[j, i] for j in range(d)) > 0 for i in range(d)]
        true += [wv[i] * sum(w1[i, j] * w2[j] for j in range(d)) > 0 for i in range(d)]
        for i in range(d):
            for j in range(d):
                true.append(w2[i] * w2[j] * sum(w1[:, i] * w1[:, j]) > 0)
                true.append(wv[i] * wv[j] * sum(w1[i] * w1[j]) > 0)
        assert course.shares[k] == pytest.approx(np.mean(true))


@pytest.mark.trials
def test_both_stages_are_seen_in_trained_networks_and_not_in_untrained_ones(run):
    keys = ("slope", "invariants", "assumption", "values", "still", "reverse", "outer-rank", "query-rank")
    for observed, expected in ((run, "reproduced"), (untrained(run), "not reproduced")):
        figure = Stages({"tanh": observed, "linear": observed})
        for key in keys:
            claim = Stages.claim(f"tanh-{key}")
            assert judge(claim.measure(figure).holds(claim.rule)) == expected, key
    assert "It comes true at" in figure.assumption_in_words("tanh")


@pytest.mark.trials
@pytest.mark.parametrize(("name", "expected"), [("one", 1), ("two", 2)])
def test_queries_collapse_to_the_multiplicity_of_the_largest_singular_value(name, expected):
    trained = c.train(frozen(name), 2)
    figure, control = (Stages({name: own}) for own in (trained, untrained(trained)))
    assert list(figure.ranks(name).values) == [expected] * 2
    assert min(figure.in_space(name).values) > 0.99
    assert min(control.ranks(name).values) > 4
    assert np.array_equal(trained.history("value1")[0][0], trained.history("value1")[0][-1])


def test_lingering_tells_a_staircase_from_a_slope():
    time = np.linspace(0, 100, 2001)
    slope = LEVELS[0] + (LEVELS[-1] - LEVELS[0]) * time / 100
    stairs = np.interp(time % 25 - 23, [0, 2], [0, 1]) + time // 25  # stands for 23 of 25, then falls to the next level
    stairs = np.interp(stairs, np.arange(len(LEVELS)), LEVELS)
    assert lingering(time, slope).max() == pytest.approx(1, abs=0.15)
    assert lingering(time, stairs).min() > 3


@pytest.mark.trials
def test_the_staircase_is_learned_from_the_largest_eigenvalue_on():
    experiment = InContext.experiments("quick")["rank1"]
    run = c.train(experiment.replace(steps=2000), 2)
    figure = InContext({"rank1": run})
    for one in figure.learners["rank1"]:
        assert one.loss[0] == pytest.approx(1, abs=0.1)
        assert one.passed(0) < one.passed(1)
        first = int(np.abs(one.time - one.passed(0)).argmin())
        assert one.learned[first].argmax() == 0
    assert "levels 1 to 3" in figure.in_words("rank1")


def test_waits_of_a_staircase_of_pairs():
    """Two values at a time, five steps apart, each within one step: long waits after 2, 4 and 6 alone."""
    steps = np.arange(40.0)
    values = np.array([(steps > 5 * (k // 2) + 1) for k in range(DIM)], float).T
    found = waits(steps, values)
    assert (found[[1, 3, 5]] > 3).all()
    assert (found[[0, 2, 4, 6]] <= 0).all()


def test_singular_values_are_those_of_the_heads_together_in_white_coordinates():
    run = c.train(ranked(2, "quick").replace(steps=3, save=c.Evenly(2), record=c.Evenly(2)), 1, progress=False)
    outputs, keys, queries = (run.history(name)[0, -1] for name in ("output", "key1", "query1"))
    matrix = sum(outputs[0, h] * keys[2 * h + r][:, None] * queries[2 * h + r] for h in range(HEADS) for r in range(2))
    root = run.experiment.data.axes(run.seeds[0]).T @ np.diag(np.sqrt(EIGENVALUES))
    expected = np.linalg.svd(root.T @ matrix @ root, compute_uv=False)
    np.testing.assert_allclose(singular_values(run, 0, 2)[-1], expected, rtol=1e-8, atol=1e-18)


def test_nothing_is_said_of_ranks_before_all_is_learned():
    runs = {}
    for name, experiment in Ranks.experiments("quick").items():
        few = c.Evenly(3)
        runs[name] = c.train(experiment.replace(steps=2, save=few, record=few), 1, progress=False)
    figure = Ranks(Available(runs))
    assert not any(any(figure.measured(claim.key).holds(claim.rule)) for claim in Ranks.claims)
    assert figure.draw().pictures


def test_with_white_inputs_merged_heads_follow_the_sigmoid_and_do_not_before_training():
    run = c.train(white(2000), 1, progress=False)
    assert InContext({"white": run}).off_sigmoids[0] < 0.05
    assert np.isnan(InContext({"white": untrained(run)}).off_sigmoids[0])
    time = np.linspace(0, 9, 901)
    assert off_sigmoid(time, 1 / (1 + 5 / 31 + 1e6 * np.exp(-3 * time))) > 0.05  # another rate


@pytest.mark.trials
def test_proposition_5_by_loops(run):
    course = Course(run, 0)
    k = course.before(0.999)
    wv, w1, w2 = (part[k] for part in course.scaled)
    speed = [sum(w1[j, i] * wv[j] for j in range(len(wv))) for i in range(len(w2))]
    assert course.outer_rate == pytest.approx(np.linalg.norm(speed) / sum(w2**2))
    assert abs(course.outer_rate - 1) < 0.05
    assert course.least_parallel > 0.9
    control = Course(untrained(run), 0)
    assert abs(control.outer_rate - 1) > 0.05
    assert np.isnan(control.largest_rise)


def test_plateaus_are_read_off_where_the_loss_is_slowest():
    recorded = np.arange(0, 5001, 10)
    loss = 0.02 + np.interp(recorded, np.repeat(np.arange(0, 5000, 1000), 2) + [0, 900] * 5, np.repeat(LEVELS, 2))
    one = Learner(SimpleNamespace(recorded=recorded, loss=loss[None]), 0)
    np.testing.assert_allclose(one.plateaus, LEVELS[1:-1] + 0.02, atol=1e-9)
    assert one.off_levels == pytest.approx(0.02)


def test_levels_of_the_sequences_are_those_of_the_regression_by_hand():
    experiment = in_context("rank1", 60).replace(steps=1, save=c.Evenly(2), record=c.Evenly(2))
    run = c.train(experiment, 1)
    one = Learner(run, 0)
    tokens, y = run.data(run.seeds[0])
    x, answers = tokens[..., :4] @ one.axes.T, tokens[..., 4]
    slopes = np.einsum("sn,snd->sd", answers, x) / 31  # the query's own answer is zero
    best = 1 / (np.array([0.4, 0.3, 0.2, 0.1]) * (1 + (1 + 1 / np.array([0.4, 0.3, 0.2, 0.1])) / 31))
    for m in (1, 2, 3):
        told = (slopes * x[:, -1] * best)[:, :m].sum(axis=1)
        assert one.own_levels[m - 1] == pytest.approx(np.mean((y[:, 0] - told) ** 2))
