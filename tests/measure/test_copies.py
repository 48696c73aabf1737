"""Units that repeat others, are others turned round, or have no weights: counted as by brute force, and told truly."""

import numpy as np
import pytest

from condensation.measure import measure_units
from condensation.measure._copies import COPY, beyond_chance, copies
from condensation.measure._reading import Action


def read(weights, kind="neuron", **options):
    return measure_units("a", weights, kind, with_null=True, **options)


def orientations(weights):
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_of_neighbours_is_not_one_unit(seed):
    """Around a circle each unit has a copy beside it, and the ends of the chain are none of each other."""
    rng = np.random.default_rng(seed)
    for weights in (rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) @ rng.normal(size=(2, 40))):
        u = orientations(weights)
        near = u @ u.T >= COPY
        left, kept = np.ones(400, bool), 0  # at least so many are needed: each takes its most neighbours along
        while left.any():
            best = (near & left).sum(axis=1).argmax()
            left &= ~near[best]
            kept += 1
        assert 400 - 2 * kept <= copies(weights).copies <= 400 - 0.75 * kept
    many = np.repeat(rng.normal(size=(4, 30)), 25, axis=0) * rng.uniform(0.5, 2, size=(100, 1))
    assert copies(many + 1e-4 * rng.normal(size=many.shape)).copies == 96


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_units_turned_round_are_told_and_are_no_untrained_layer(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(900, 40))
    weights = np.concatenate([weights, -rng.uniform(0.5, 2, size=(50, 1)) * weights[:50], 3 * weights[60:67]])
    row = read(weights.astype(np.float32))
    assert (row.copies, row.opposites) == (7, 50)
    row = read(weights[:950])
    assert row.reading.startswith("50 of 950 units are others turned round: k_eff ")
    assert row.read.action is Action.LOOK


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_few_values_repeat_each_other_by_chance(seed):
    rng = np.random.default_rng(seed)
    signs = np.sign(rng.normal(size=(256, 9)))
    row = read(signs, "filter")
    assert row.copies == 256 - len(np.unique(signs, axis=0)) > 30
    assert row.chance_copies == pytest.approx(row.copies, abs=15)
    assert row.read.action is Action.NOTHING
    signs = np.sign(rng.normal(size=(256, 14)))
    planted = copies(np.concatenate([signs, signs[:40]]))
    assert beyond_chance(planted.copies, planted.chance_copies)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_units_without_weights_are_not_alike_but_can_go(seed, shift):
    """Less the mean of the others they would all be the same."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(256, 64)) + shift
    weights[40:] = 0
    row, alone = read(weights), read(weights[:40])
    assert row.centred_k_eff == pytest.approx(alone.centred_k_eff, rel=1e-6)
    assert row.mean == pytest.approx(alone.mean)
    assert row.reading.startswith("216 of 256 units without weights: k_eff ")
    assert row.reading.endswith("reduce: they are constants and can go, 13,824 of 16,384 parameters")
    assert read(weights, "embedding").read.action is Action.NOTHING
    biased = np.column_stack([weights, rng.normal(size=256)])
    assert read(biased, bias=True).zeros == 216
    weights[40:] = 1e-12 * rng.normal(size=(216, 64))
    assert read(weights).reading == row.reading


def test_inputs_without_weights_are_told():
    weights = np.random.default_rng(0).normal(size=(64, 33))
    weights[:, 10:26] = 0
    row = read(weights, bias=True)
    assert row.zero_inputs == 16
    assert row.reading.startswith("16 of 32 inputs without weights: k_eff ")
    assert read(np.delete(weights, range(10, 26), axis=1), bias=True).zero_inputs == 0


def test_two_units_that_are_one_can_go_and_two_outputs_stay():
    one = np.random.default_rng(0).normal(size=(1, 64))
    assert read(np.concatenate([one, 2 * one])).reading.endswith(
        "reduce: up to 1 of 2 units can go, 64 of 128 parameters"
    )
    assert read(np.concatenate([one, one]), "output").reading.endswith("the outputs of the model, which stay")


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_norms_and_biases_tell_a_layer_from_an_untrained_one(spread):
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(256, 64))
    assert read(plain).read.action is Action.TRAIN
    assert read(plain * np.exp(spread * rng.normal(size=(256, 1)))).read.action is Action.NOTHING
    assert read(np.column_stack([plain, np.full(256, 15.0)]), bias=True).read.action is Action.NOTHING


def test_units_on_one_side_of_one_line_can_be_merged():
    """The mean is most of them, and they are alike without it, too; units around a mean are not."""
    rng = np.random.default_rng(0)
    line = np.outer(rng.uniform(0.5, 2, size=64), rng.normal(size=32))
    assert read(line).reading.endswith("reduce: up to 63 of 64 units can go, 2,016 of 2,048 parameters")
    around = 30 * rng.normal(size=32) + rng.normal(size=(64, 32))
    assert "acts as a bias" in read(around).reading
    assert read(around, "embedding").reading.endswith("what all rows share tells no token from another")


def test_a_rank_that_saves_more_than_its_copies_is_what_is_said():
    rng = np.random.default_rng(0)
    row = read(rng.normal(size=(256, 3)) @ rng.normal(size=(3, 256)))
    assert row.copies > 0
    assert row.reading.startswith("low rank: effective rank ")
