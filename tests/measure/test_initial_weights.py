"""Untrained networks of every initialization are called condensed in at most 1% of seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import (
    ChannelPower,
    Conv,
    Dense,
    FanOutPower,
    Glorot,
    He,
    Init,
    Normal,
    Uniform,
    WidthPower,
    find_lines,
)
from condensation.measure import bootstrap_errors, count_lines, measure_units

LAWS = (Normal(0.1), Uniform(0.1), Glorot(), He(), FanOutPower(1.5), WidthPower(0.5))


def alarms(network, init, seeds, view=None):
    """In how many seeds the untrained first layer is called condensed."""
    layer = network.layers[0]
    draws = (init.draw(network, np.random.default_rng([seed, *layer.weight])) for seed in range(seeds))
    return sum(find_lines(layer.units(parameters, view)).condensed for parameters in draws)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("inputs", [1, 2, 3, 30])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_untrained_networks_are_not_condensed(law, inputs, paired):
    assert alarms(Dense((inputs, 20, 1)), Init(law, antisymmetric=paired), seeds=100) <= 1
    assert alarms(Dense((inputs, 50, 1)), Init(law, antisymmetric=paired), seeds=20) == 0


@pytest.mark.trials
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("inputs", [1, 2, 3, 4, 5, 10, 30, 100])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_untrained_networks_of_all_sizes_are_not_condensed(law, inputs, paired):
    for width, seeds in ((20, 300), (50, 300), (100, 300), (300, 100), (1000, 100)):
        assert alarms(Dense((inputs, width, 1)), Init(law, antisymmetric=paired), seeds) <= seeds / 100


@pytest.mark.sampled(7)
@pytest.mark.parametrize("view", ["kernel", "filter"])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("law", [*LAWS, ChannelPower(1.0)], ids=lambda law: law.kind)
def test_untrained_convolutions_are_not_condensed(law, kernel, view):
    """Kernels of 2 x 2 are in four dimensions; filters of one channel, without bias weights, too."""
    network = Conv((1, 6, 6), channels=(20,), kernel=kernel, outputs=1)
    init = Init(Normal(0.1), convolution=law)
    assert alarms(network, init, seeds=100, view=view) <= 1


@pytest.mark.parametrize("law", [Glorot(), He()], ids=lambda law: law.kind)
def test_a_single_input_has_no_directions_to_condense_to(law):
    network = Dense((1, 100, 1))
    parameters = Init(law).draw(network, np.random.default_rng(0))
    weights = network.layers[0].units(parameters)
    lines = find_lines(weights)
    assert (lines.count, lines.orientations, lines.condensed, lines.dimensions) == (0, 0, False, 1)
    assert lines.directions.shape == (0, 2)
    assert (lines.labels == -1).all()
    assert np.isnan([lines.k_eff, lines.chance_k_eff]).all()
    assert "no directions to condense to" in lines.reason
    row = measure_units("dense1", weights, with_null=True, with_errors=True)
    assert (row.reading, row.condensed, row.effective_rank) == (lines.reason, False, 1)
    history = count_lines(np.stack([weights, weights + np.array([0, 1.0])])[None])
    assert history.reason == lines.reason
    assert np.isnan(history.k_eff).tolist() == [[True, False]]
    assert np.isnan(bootstrap_errors(weights).k_eff)


@given(st.integers(2, 4), st.integers(8, 60), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_inputs_without_weights_are_no_dimensions(dim, units, zeros, seed, single):
    stream = np.random.default_rng(seed)
    weights = stream.normal(size=(units, dim)).astype(np.float32 if single else float)
    if seed % 2:
        weights += 10 * stream.normal(size=(3, dim))[stream.integers(3, size=units)]
    own = np.sort(stream.permutation(dim + zeros)[:dim])
    wider = np.zeros((units, dim + zeros), weights.dtype)
    wider[:, own] = weights
    bare, lines = find_lines(weights), find_lines(wider)
    np.testing.assert_array_equal(lines.labels, bare.labels)
    assert (lines.k_eff, lines.cover, lines.condensed) == (bare.k_eff, bare.cover, bare.condensed)
    assert (lines.threshold, lines.chance_k_eff, lines.dimensions) == (bare.threshold, bare.chance_k_eff, dim)
    np.testing.assert_array_equal(lines.directions[:, own], bare.directions)
    assert lines.directions.shape[1] == dim + zeros


@given(st.integers(3, 4), st.integers(20, 60), st.integers(1, 20), st.integers(0, 10**6))
def test_inputs_whose_weights_depend_on_others_are_no_dimensions(dim, units, more, seed):
    """Turned into more dimensions, the units keep their cosines, and so all that is measured."""
    stream = np.random.default_rng(seed)
    weights = stream.normal(size=(units, dim))
    turn = np.linalg.qr(stream.normal(size=(dim + more, dim)))[0].T
    bare, lines = find_lines(weights), find_lines(weights @ turn)
    assert (lines.dimensions, lines.count, lines.condensed) == (dim, bare.count, bare.condensed)
    assert lines.k_eff == pytest.approx(bare.k_eff)
    np.testing.assert_allclose(lines.directions, bare.directions @ turn, atol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("inputs", [[0, 1, 0], [0, 1, 1, 0, 1], [0] * 9 + [1]])
def test_repeated_inputs_in_the_plane_do_not_condense(inputs, dtype):
    stream = np.random.default_rng(0)
    draws = [stream.normal(size=(50, 2)).astype(dtype)[:, inputs] for _ in range(200)]
    assert sum(find_lines(weights).condensed for weights in draws) <= 2


@given(st.integers(1, 4), st.integers(5, 40), st.integers(0, 10**6))
def test_exact_lines_have_low_rank_and_keep_their_dimensions(k, dim, seed):
    stream = np.random.default_rng(seed)
    axes = np.linalg.qr(stream.normal(size=(dim, k)))[0].T
    lines = find_lines(np.repeat(axes, 3, axis=0) * stream.uniform(0.5, 2, (3 * k, 1)))
    assert (lines.count, lines.condensed, lines.dimensions, lines.reason) == (k, True, dim, "")


@given(st.integers(4, 40), st.integers(2, 9), st.integers(0, 10**6))
def test_units_in_exact_pairs_count_as_one_each(half, dim, seed):
    weights = np.random.default_rng(seed).normal(size=(half, dim))
    single, paired = find_lines(weights), find_lines(np.concatenate([weights, weights]))
    assert (paired.count, paired.condensed, paired.k_eff) == (single.count, single.condensed, single.k_eff)
    np.testing.assert_array_equal(paired.labels, np.tile(single.labels, 2))
    np.testing.assert_array_equal(paired.signs, np.tile(single.signs, 2))


def test_pairs_on_one_line_are_condensed():
    lines = find_lines(np.ones((20, 5)))
    assert (lines.count, lines.condensed, len(lines.labels)) == (1, True, 20)
    assert find_lines(np.ones((2, 5))).count == 1
