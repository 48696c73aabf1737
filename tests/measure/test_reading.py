"""The reading of a layer: what was planted is told, random weights are not, and nothing depends on scale or order."""

import numpy as np
import pytest

from condensation.measure import _spectrum, effective_rank, measure_units, most_condensed_first, null_count, stable_rank
from condensation.measure._copies import beyond_chance, copies
from condensation.measure._reading import NO_MERGING, Action
from condensation.measure._table import NO_WEIGHTS

SHAPES = ((2, 3), (3, 2), (5, 3), (8, 8), (16, 4), (30, 9), (64, 27), (100, 20), (40, 200), (256, 64))


def read(weights, kind="neuron", **options):
    return measure_units("a", weights, kind, with_null=True, **options)


def lognormal(units, inputs, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(units, inputs)) * rng.lognormal(sigma=spread, size=(units, 1))


@pytest.mark.parametrize("seeds", [3, pytest.param(100, marks=pytest.mark.trials)])
def test_random_layers_of_unequal_norms_are_said_to_be_alike_in_two_of_a_hundred_cases_at_most(seeds):
    rows = [read(lognormal(*shape, seed), bias=seed % 2 == 0) for shape in SHAPES for seed in range(seeds)]
    told = [row for row in rows if row.read.action in (Action.REDUCE, Action.LOOK)]
    assert len(told) <= len(rows) // 50, [row.reading for row in told]
    assert all(row.ratio > 0.9 for row in rows if row.inputs >= 20)


@pytest.mark.parametrize("seed", range(5))
def test_unequal_norms_alone_are_chance(seed):
    """k_eff of a few heavy units is small; (sum r)^2 / sum r^2 is what it is beside."""
    weights = lognormal(200, 50, seed, spread=2)
    row, r = read(weights), np.linalg.norm(weights, axis=1)
    assert row.centred_k_eff < 60
    assert null_count(weights, 0.95) == pytest.approx(r.sum() ** 2 / (r**2).sum(), rel=1e-6)
    assert row.read.action in (Action.NOTHING, Action.TRAIN)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(5))
def test_planted_copies_are_counted(seed):
    rng = np.random.default_rng(seed)
    weights = lognormal(1000, 60, seed)
    weights[rng.permutation(np.arange(500, 1000))[:50]] = weights[:50] * rng.uniform(0.5, 2, size=(50, 1))
    row = read(weights.astype(np.float32))
    assert row.copies == 50
    assert row.read.saving == 50 * 60
    assert row.reading.startswith("50 of 1,000 units repeat others: where chance makes none, k_eff ")
    assert "reduce: up to 50 of 1,000 units can go, 3,000 of 60,000 parameters" in row.reading


@pytest.mark.sampled(8)
@pytest.mark.parametrize("levels", [(-1, 1), (-1, 0, 1), (-2, -1, 0, 1), (0, 0, 0, 0, -1, 1)])
@pytest.mark.parametrize("shape", [(16, 9), (64, 9), (64, 16), (256, 9)])
def test_units_of_few_levels_repeat_others_by_chance(levels, shape):
    """What a few draws of permuted entries may miss is no finding; planted copies are."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        weights = rng.choice(levels, size=shape).astype(float)
        own = copies(weights[weights.any(axis=1)])
        found.append(beyond_chance(own.copies, own.chance_copies) or beyond_chance(own.opposites, own.chance_copies))
        planted = rng.choice(levels, size=(shape[0], 40)).astype(float)
        planted[-5:] = planted[:5]
        own = copies(planted[planted.any(axis=1)])
        assert beyond_chance(own.copies, own.chance_copies)
    assert sum(found) <= 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(50, 3), (200, 3), (200, 4)])
def test_random_weights_of_one_sign_repeat_others_by_chance(shape):
    """Few inputs and a common mean bring units together; nothing of that is a finding."""
    laws = (
        lambda rng: rng.random(shape),
        lambda rng: abs(rng.normal(size=shape)),
        lambda rng: 2 + rng.normal(size=shape),
    )
    rows = [read(law(np.random.default_rng(seed))) for law in laws for seed in range(6)]
    assert sum(row.copies for row in rows) > 0
    assert sum("repeat" in row.reading for row in rows) <= 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_units_on_one_side_of_one_line_repeat_the_first(seed, dtype):
    """To the last digit or nearly so: many at one place are compared with a few neighbours only."""
    rng = np.random.default_rng(seed)
    for units in (40, 1000):
        row = read(np.outer(rng.uniform(1, 2, size=units), rng.normal(size=20)).astype(dtype))
        assert (row.copies, row.read.action) == (units - 1, Action.REDUCE)


@pytest.mark.parametrize("seed", range(6))
def test_lines_of_a_few_heavy_units_are_not_said_to_be_a_mean(seed):
    """Chance leaves about as few lines; the lines are told, and nothing of a mean that is not there."""
    rng = np.random.default_rng(seed)
    norms = rng.choice([-1, 1], size=(40, 1)) * rng.lognormal(sigma=1.5, size=(40, 1))
    row = read(norms * np.eye(2)[np.arange(40) % 2] + 0.02 * rng.normal(size=(40, 2)))
    assert row.mean < 0.1
    assert "common mean" not in row.reading
    assert not row.condensed or row.reading.startswith("condensed on 2 lines: k_eff")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(1000, 64), (300, 100)])
def test_units_of_a_single_huge_entry_repeat_others_by_chance(shape):
    """Among independent Cauchy numbers units lie on the axes of the largest; planted copies are found none the less."""
    for seed in range(4):
        weights = np.random.default_rng(seed).standard_cauchy(size=shape)
        assert "repeat" not in read(weights).reading
        weights[-40:] = 2 * weights[:40]
        assert "units repeat others" in read(weights).reading


@pytest.mark.parametrize("seed", range(4))
def test_a_heavy_input_is_not_said_to_be_heavy_units(seed):
    weights = np.random.default_rng(seed).normal(size=(200, 8)) * np.array([200.0, *7 * [1]])
    row = read(weights)
    assert row.condensed
    assert row.chance_k_eff > 100
    assert row.reading.endswith(
        "a few inputs carry the weights of all units, and chance would leave about as few lines"
    )


def test_copies_without_the_bias_are_none():
    rng = np.random.default_rng(0)
    weights = np.column_stack([rng.normal(size=(40, 12)), 1000 + rng.normal(size=40)])
    assert copies(weights)[0] > 30
    assert copies(weights, without_bias=True)[0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_low_rank_is_told_with_its_saving(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(256, 8)) @ rng.normal(size=(8, 256)) + 0.01 * rng.normal(size=(256, 256))
    row = read(weights)
    assert row.kept_rank == 8
    assert row.effective_rank < 0.5 * row.null_rank
    assert row.reading.startswith("low rank: effective rank ")
    assert row.read.saving == 256 * 256 - 8 * 512
    assert read(rng.normal(size=(256, 256))).effective_rank > 0.99 * row.null_rank


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [2, 4])
def test_a_low_rank_is_told_rather_than_the_few_units_that_are_near_a_line_in_it(seed, rank):
    rng = np.random.default_rng(seed)
    row = read(rng.normal(size=(64, rank)) @ rng.normal(size=(rank, 64)))
    assert row.lines
    assert not row.condensed
    assert row.reading.startswith("low rank: effective rank ")
    assert row.read.saving == 64 * 64 - rank * 128 > max(row.spare, row.copies) * 64


@pytest.mark.parametrize("seed", range(5))
def test_a_layer_dominated_by_its_bias_is_not_condensed(seed):
    rng = np.random.default_rng(seed)
    weights = np.column_stack([rng.normal(size=(64, 32)), 60 + rng.normal(size=64)])
    assert read(weights).condensed
    row = read(weights, bias=True)
    assert not row.condensed
    assert row.bias > 0.99
    assert row.reading.startswith("dominated by its bias: 99")
    less = np.column_stack([rng.normal(size=(64, 32)), np.full(64, 16.0)])  # cosines of 0.9 by the bias alone
    assert read(less, bias=True, threshold=0.8).lines == 0 < read(less, threshold=0.8).lines
    zero = np.column_stack([np.zeros((64, 32)), rng.normal(size=64)])
    assert read(zero, bias=True).reading == NO_WEIGHTS


@pytest.mark.parametrize("seed", range(5))
def test_lines_hold_with_and_without_the_bias(seed):
    rng = np.random.default_rng(seed)
    axes = rng.normal(size=(3, 21))
    weights = rng.choice([-1, 1], size=(90, 1)) * rng.uniform(0.5, 2, (90, 1)) * axes[np.arange(90) % 3]
    row = read(weights + 0.01 * rng.normal(size=weights.shape), bias=True)
    assert (row.lines, row.condensed, row.spare) == (3, True, 84)
    assert "reduce: up to 84 of 90 units can go" in row.reading
    weights[:, -1] = 5 * rng.normal(size=90)  # units of one direction with biases of their own are no line
    assert not read(weights, bias=True).condensed


def test_two_outputs_and_units_that_do_not_merge_are_not_listed_first():
    rng = np.random.default_rng(0)
    one = rng.normal(size=30)
    head = measure_units("head", np.stack([one, -one]), "output", with_null=True)
    assert "opposite to each other as a softmax makes them" in head.reading
    line = measure_units("line", np.outer(rng.normal(size=40), one), "neuron", with_null=True)
    assert [row.layer for row in most_condensed_first([head, line])] == ["line", "head"]
    for kind, why in NO_MERGING.items():
        row = measure_units("line", np.outer(rng.normal(size=40), one), kind, with_null=True)
        assert row.read.action is Action.LOOK
        assert row.reading.endswith(why)
    assert "quantised" in read(np.outer(rng.normal(size=40), one), quantised=True).reading


@pytest.mark.parametrize("seed", range(5))
def test_units_that_are_only_turned_round_are_no_saving(seed):
    """A line with one unit on each side: an odd activation could merge them, and no number is promised."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(12, 20))
    weights[0] *= 5
    weights[1] = -weights[0] + 0.3 * rng.normal(size=20)
    row = read(weights)
    assert (row.lines, row.spare, row.copies) == (1, 0, 0)
    assert row.read.action is Action.LOOK
    assert row.reading.endswith("an odd activation would let them be merged, a relu does not")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_scale_order_and_type_change_no_reading(seed):
    rng = np.random.default_rng(seed)
    lines = np.outer(rng.normal(size=80), rng.normal(size=40)) + 0.02 * rng.normal(size=(80, 40))
    repeated = lognormal(80, 40, seed)
    repeated[60:] = 3 * repeated[:20]
    for weights in (lines, repeated, lognormal(80, 40, seed), rng.normal(size=(80, 3)) @ rng.normal(size=(3, 40))):
        plain = read(weights, bias=True)
        idle = {Action.NOTHING, Action.TRAIN}  # which of them the null's draw may decide, and that is of the order
        for other in (1e-12 * weights, 1e12 * weights, weights.astype(np.float32), weights[rng.permutation(80)]):
            row = read(other, bias=True)
            assert (row.lines, row.copies) == (plain.lines, plain.copies)
            assert row.read.finding == plain.read.finding or {row.read.action, plain.read.action} <= idle
            assert row.centred_k_eff == pytest.approx(plain.centred_k_eff, rel=1e-3)


def test_weights_that_hardly_moved_are_to_be_trained_longer():
    start = lognormal(50, 20, 0)
    row = read(start + 0.01 * lognormal(50, 20, 1), start=start)
    assert row.read.action is Action.TRAIN
    assert "since the first step" in row.reading


@pytest.mark.sampled(2)
@pytest.mark.parametrize("spread", [0, 1.5])
def test_ranks_of_large_matrices_are_estimated(monkeypatch, spread):
    """Beyond some size by a randomised method: within 2% of what all singular values give."""
    weights = lognormal(700, 900, 0, spread).astype(np.float32)
    low = (lognormal(700, 200, 1) @ lognormal(200, 900, 2)).astype(np.float32)
    for array in (weights, weights.T, low, weights.astype(float)):
        exact = effective_rank(array), stable_rank(array)
        with monkeypatch.context() as patch:
            patch.setattr(_spectrum, "EXACT", 100)
            assert (effective_rank(array), stable_rank(array)) == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_two_clusters_say_both_counts(seed):
    """Without their mean two lines are one, whose k_eff alone would contradict the lines that were found."""
    rng = np.random.default_rng(seed)
    row = read(np.repeat(rng.normal(size=(2, 20)), 50, axis=0) + 0.02 * rng.normal(size=(100, 20)))
    own, centred = (f"{value:.3g}" for value in (row.k_eff, row.centred_k_eff))
    assert row.reading.startswith(f"condensed on 2 lines: k_eff {own}, and without the mean {centred} where chance")


@pytest.mark.parametrize("seed", range(5))
def test_lines_that_the_mean_spreads_have_their_own_count_beside_the_other(seed):
    """Units of three lines and unequal norms are on many, when their mean is taken from them."""
    rng = np.random.default_rng(seed)
    weights = np.tile(rng.normal(size=(3, 20)), (22, 1)) * rng.uniform(0.1, 1, size=(66, 1))
    r = np.linalg.norm(weights, axis=1) / np.linalg.norm(weights, axis=1).sum()
    own = 1 / sum(r[k::3].sum() ** 2 for k in range(3))
    row = read(weights)
    assert round(row.centred_k_eff) > 3
    assert row.reading.startswith(
        f"condensed on 3 lines: k_eff {own:.3g}, and without the mean {row.centred_k_eff:.3g}"
    )
