"""A row a layer: what is measured, what is left of it without the mean and by chance, and what it says in words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import InputError, find_lines
from condensation.measure import (
    effective_rank,
    measure_units,
    most_condensed_first,
    null_count,
    permuted,
    relative_change,
)

WILD = {"with_null": True}


def random(units, inputs, seed=0):
    return np.random.default_rng(seed).normal(size=(units, inputs))


def on_lines(lines, units, inputs, seed=0, noise=0.02):
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(inputs, lines)))[0].T
    signs = rng.choice([-1.0, 1.0], units) * rng.uniform(0.5, 2, units)
    return signs[:, None] * (axes[np.arange(units) % lines] + noise * rng.normal(size=(units, inputs)) / inputs**0.5)


def brute_force_count(weights, c):
    r = np.linalg.norm(weights, axis=1)
    u = weights / r[:, None]
    w = r / r.sum()
    return 1 / sum(w[i] * w[j] for i in range(len(w)) for j in range(len(w)) if i == j or abs(u[i] @ u[j]) >= c)


@given(seed=st.integers(0, 10_000), units=st.integers(2, 60), inputs=st.integers(2, 40))
def test_permuting_keeps_every_column_and_mixes_units(seed, units, inputs):
    weights = random(units, inputs, seed)
    mixed = permuted(weights, seed)
    np.testing.assert_array_equal(np.sort(mixed, axis=0), np.sort(weights, axis=0))


def test_the_null_is_the_mean_over_permutations_and_keeps_norms():
    weights = on_lines(2, 60, 5)
    r = np.linalg.norm(weights, axis=1, keepdims=True)
    nulls = [permuted(weights / r, draw) for draw in range(99)]
    draws = [brute_force_count(r * null / np.linalg.norm(null, axis=1, keepdims=True), 0.95) for null in nulls]
    assert null_count(weights, 0.95) == pytest.approx(np.mean(draws), rel=1e-9)


def test_the_null_of_a_large_layer_is_told_by_some_of_its_units():
    weights = random(4000, 3, seed=1).astype(np.float32)  # in three dimensions cosines above 0.95 are common
    r = np.linalg.norm(weights, axis=1, keepdims=True)
    rows = permuted(weights / r, 5)
    u = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    w = r[:, 0] / r.sum()
    exact = 1 / (w @ (np.abs(u @ u.T) >= 0.95) @ w)
    assert null_count(weights, 0.95) == pytest.approx(exact, rel=0.05)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(20))
def test_planted_lines_are_below_the_null_and_random_weights_are_not(seed):
    planted = measure_units("planted", on_lines(3, 100, 30, seed), **WILD)
    chance = measure_units("chance", random(100, 30, seed), **WILD)
    assert planted.condensed
    assert planted.lines == 3
    assert planted.ratio < 0.1
    assert not chance.condensed
    assert 0.95 < chance.ratio < 1.05
    assert chance.reading.startswith("as chance: k_eff ")
    assert chance.reading.endswith("; nothing to do")
    assert [row.layer for row in most_condensed_first([chance, planted])] == ["planted", "chance"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(20))
def test_a_common_mean_is_told_from_condensation_beyond_it(seed):
    """Units of the wild: a strong common mean. All look alike, and are as chance once it is gone."""
    mean = 4 * random(1, 200, seed + 100)
    row = measure_units("wild", mean + random(120, 200, seed), **WILD)
    assert row.condensed == find_lines(mean + random(120, 200, seed)).condensed
    assert row.mean > 0.9
    assert row.centred_lines == 0
    assert 0.95 < row.ratio < 1.05
    assert "common mean" in row.reading
    hidden = measure_units("hidden", mean + on_lines(2, 120, 200, seed), **WILD)
    assert hidden.centred_lines in (2, 3)  # the mean of what was planted stays in: a third side can appear
    assert hidden.ratio < 0.1


def test_a_row_is_what_its_measures_are():
    weights, start = on_lines(2, 40, 6), random(40, 6, 3)
    row, lines = measure_units("a", weights, "neuron", start=start), find_lines(weights)
    assert (row.kind, row.units, row.inputs) == ("neuron", 40, 6)
    assert (row.lines, row.orientations, row.condensed) == (lines.count, lines.orientations, lines.condensed)
    assert (row.cover, row.k_eff) == (lines.cover, lines.k_eff)
    assert row.effective_rank == effective_rank(weights)
    assert row.change == relative_change(weights, start)
    assert row.reading == f"condensed on 2 lines: k_eff 2 where random units have {row.chance_k_eff:.3g}; reduce"


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (np.ones((1, 5)), "a single unit"),
        (np.zeros((4, 5)), "all 4 units have norm zero"),
        (np.full((4, 5), np.nan), "4 of 4 units hold NaN or Inf"),
        (np.ones((4, 1)), "directions need at least 2 inputs"),
        (np.ones(4), "units x inputs"),
    ],
)
def test_what_cannot_be_measured_is_said(weights, reason):
    row = measure_units("a", weights, **WILD)
    assert reason in row.reason
    assert row.reading == row.reason


def test_zero_units_are_counted_without_a_warning():
    weights = on_lines(1, 20, 5)
    weights[[3, 7]] = 0
    row = measure_units("a", weights, **WILD)
    assert row.zeros == 2
    assert row.reading.startswith("condensed on 1 line: k_eff 1 where chance leaves ")
    assert "; 2 units are zero; reduce: up to 18 of 20 units can go, 90 of 100 parameters" in row.reading


@given(seed=st.integers(0, 10_000), rank=st.integers(1, 12), wide=st.booleans())
def test_the_rank_of_float32_weights_is_that_of_their_singular_values(seed, rank, wide):
    rng = np.random.default_rng(seed)
    weights = (rng.normal(size=(40, rank)) @ rng.normal(size=(rank, 25))).astype(np.float32)
    weights = weights.T if wide else weights
    exact = effective_rank(weights.astype(np.float64))
    assert effective_rank(weights) == pytest.approx(exact, rel=1e-5)


def test_nothing_left_of_equal_units():
    row = measure_units("a", np.tile(random(1, 8), (10, 1)), **WILD)
    assert row.lines == 1
    assert row.mean == pytest.approx(1)
    assert row.copies == 9
    assert row.reading == (
        "9 of 10 units repeat others: where chance makes none, k_eff 1 where random units have 5; "
        "reduce: up to 9 of 10 units can go, 72 of 80 parameters"
    )


def test_a_null_needs_a_direction():
    with pytest.raises(InputError, match="all weights are zero"):
        null_count(np.zeros((3, 4)), 0.95)
