"""Directions of many heads, and the stationary points of linear attention: by hand, and by finite differences."""

from itertools import product

import numpy as np
import pytest
import small_figure as small

from condensation import Seed
from condensation.papers._claims import judge
from condensation.papers._trainings import untrained
from condensation.papers.attention._heads_course import HeadsCourse, alike_in_both, group_sizes
from condensation.papers.attention.heads import Heads, many_heads
from condensation.papers.attention.in_context import CONTEXT, DIM, EIGENVALUES, LEVELS, in_context
from condensation.papers.attention.points import SETS, Sample, expected_gradient, heads_of, measured, random_heads
from condensation.saving import Evenly
from condensation.theory import context_loss
from condensation.training import train

# The gradients of queries and keys begin below Adam's eps: that is how values come first.
pytestmark = pytest.mark.filterwarnings("ignore:in the initial stage the mean gradient is below")
SIGNS = np.array(list(product((-1.0, 1.0), repeat=4)))


def test_heads_of_signs_on_a_line_have_sixteen_directions_and_others_have_more():
    rng = np.random.default_rng(0)
    line, own = rng.normal(size=32), rng.integers(16, size=500)
    heads = SIGNS[own][:, :, None] * line + 0.1 * rng.normal(size=(500, 4, 32))
    sizes = group_sizes(heads.reshape(500, -1))
    assert sizes.tolist() == sorted(np.bincount(own), reverse=True)
    uneven = (rng.normal(size=(500, 4))[:, :, None] * line).reshape(500, -1)  # sizes of their own: no cube
    assert len(group_sizes(uneven)) > 30
    assert len(group_sizes(rng.normal(size=(50, 128)))) == 50


def test_pairs_that_are_alike_are_counted_by_loops():
    rng = np.random.default_rng(1)
    one, other = SIGNS[rng.integers(4, size=30)], SIGNS[rng.integers(4, size=30)]
    pairs = [(i, j) for i in range(30) for j in range(i)]
    alike = [[np.array_equal(own[i], own[j]) for i, j in pairs] for own in (one, other)]
    expected = np.sum(np.logical_and(*alike)) / np.sum(np.logical_or(*alike))
    assert alike_in_both(one, other) == pytest.approx(expected)
    assert alike_in_both(one, one) == 1
    assert np.isnan(alike_in_both(np.eye(3), np.eye(3)))


@pytest.mark.trials
def test_heads_that_hardly_moved_fulfil_nothing_and_attend_to_all_alike():
    figure, control = small.observed("attn-heads", steps=2, seeds=1)
    small.judged(figure)
    assert not any(any(holds) for holds in small.judged(control).values())
    one = control.courses["adam"][0]
    assert one.fewest("value") == 64
    assert one.held("value") == pytest.approx(16 / 64)
    assert one.unevenness_of_attention()[0] < 1e-3
    assert np.isnan(one.fewest_grown)
    assert figure.draw().pictures


@pytest.mark.trials
def test_attention_and_outputs_by_hand():
    """Large queries and keys attend unevenly; outputs of values on one line have as many directions as these."""
    few = Evenly(2)
    run = train(many_heads("quick").replace(steps=1, save=few, record=few), 1, progress=False)
    rng, one = np.random.default_rng(2), HeadsCourse(run, 0)
    for name in ("query1", "key1"):
        run.parameters[f"{name}.weight"][:] = rng.normal(size=run.parameters[f"{name}.weight"].shape)
    assert one.unevenness_of_attention()[0] > 1
    for name in ("query1", "key1"):
        run.parameters[f"{name}.weight"][:] *= 1e-9
    line = SIGNS[rng.integers(16, size=64)][:, :, None] * rng.normal(size=16)
    run.parameters["value1.weight"][:] = line.reshape(-1, 16)
    fresh = HeadsCourse(run, 0)
    assert fresh.outputs_follow == 1
    assert fresh.counts("value")[0].tolist() == [len(np.unique(np.sign(line[..., 0]), axis=0))] * 2


@pytest.mark.trials
def test_adam_gives_the_values_of_heads_sixteen_directions():
    often = Evenly(11)
    run = train(many_heads("quick").replace(steps=100, save=often, record=often), 2, progress=False)
    for observed, expected in ((run, "reproduced"), (untrained(run), "not reproduced")):
        figure = Heads({"adam": observed})
        for key in ("value-held", "outputs"):
            assert judge(figure.measured(key).holds(Heads.claim(key).rule)) == expected, key
        assert all((one.fewest("value") <= 20) == (observed is run) for one in figure.courses["adam"])


def change(function, parts, epsilon=1e-6):
    """The gradient of a function of output weights, keys and queries, by central differences."""
    found = []
    for k, part in enumerate(parts):
        for index in np.ndindex(part.shape):
            ends = []
            for sign in (1, -1):
                moved = [own.copy() for own in parts]
                moved[k][index] += sign * epsilon
                ends.append(function(tuple(moved)))
            found.append((ends[0] - ends[1]) / (2 * epsilon))
    return np.linalg.norm(found)


def test_gradients_of_expected_and_real_losses_are_those_of_finite_differences():
    def expected(parts):
        return context_loss(np.einsum("h,hd,he->de", *parts), EIGENVALUES, CONTEXT)

    sample, rng = Sample(in_context("rank1", 200), Seed(3, 3)), np.random.default_rng(3)
    for parts in (random_heads(2.0, 5, rng), heads_of((0, 2), 5)):
        assert expected_gradient(parts) == pytest.approx(change(expected, parts), abs=1e-8)
        assert sample.gradient(parts) == pytest.approx(change(sample.loss, parts), rel=1e-6)
    wrong = tuple(1.1 * part for part in heads_of((1,), 5))
    assert expected_gradient(wrong) > 0.01
    assert expected_gradient(heads_of((1,), 5)) < 1e-12


def test_the_sets_of_largest_eigenvalues_have_the_levels_of_the_staircase():
    own = [
        context_loss(np.einsum("h,hd,he->de", *heads_of(tuple(range(m)), 5)), EIGENVALUES, CONTEXT) for m in range(5)
    ]
    np.testing.assert_allclose(own, LEVELS)
    assert len(SETS) == len(set(SETS)) == 2**DIM


def test_the_network_is_stationary_at_all_points_and_not_at_random_ones():
    found = measured(in_context("rank1", 4000), Seed(0, 0))
    assert found.expected.max() < 1e-12 < found.random_expected.min()
    assert found.found[0] == 0
    assert found.found.max() < 0.3 * np.median(found.random_found)
    assert np.abs(found.losses - found.levels).max() < 0.1
    assert found.lowered == 2**DIM - 1


def test_the_figure_of_points_draws_and_its_claims_need_no_training():
    figure, control = small.observed("icl-points", steps=1, seeds=1, data=in_context("rank1", 2000).data)
    assert small.judged(figure) == small.judged(control)
    assert not any(claim.trained for claim in figure.claims)
    assert figure.draw().pictures
