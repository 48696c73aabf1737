"""Many layers at once: the same numbers as one by one."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from condensation import InputError, find_lines
from condensation.measure import count_lines
from condensation.measure._linkage import linked_groups

KINDS = {  # of a stream, random weights of units x inputs, and units on two lines
    "random": lambda stream, random, lines: random,
    "condensed": lambda stream, random, lines: lines + 0.03 * random,
    "partly": lambda stream, random, lines: lines + 10 ** stream.uniform(-2, 0.5) * random,
    "exact lines": lambda stream, random, lines: lines,
    "few dimensions": lambda stream, random, lines: random[:, :1] @ random[:1] + random[:, 1:2] @ random[1:2],
    "dead inputs": lambda stream, random, lines: random * (np.arange(random.shape[1]) < 3),
    "one input": lambda stream, random, lines: random * (np.arange(random.shape[1]) < 1),
    "dead units": lambda stream, random, lines: random * (stream.uniform(size=(len(random), 1)) < 0.7),
    "zero": lambda stream, random, lines: 0 * random,
    "diverged": lambda stream, random, lines: np.where(stream.uniform(size=random.shape) < 0.1, np.nan, random),
    "pairs": lambda stream, random, lines: np.concatenate(
        [random[: len(random) // 2]] * 2 + [random[: len(random) % 2]]
    ),
    "tiny": lambda stream, random, lines: 1e-25 * (lines + 0.1 * random),
    "large": lambda stream, random, lines: 1e18 * (lines + 0.1 * random),
}


def layers_of(seed, kinds, units, inputs, dtype):
    stream, layers = np.random.default_rng(seed), []
    for kind in kinds:
        axes, line = stream.normal(size=(2, inputs)), stream.integers(0, 2, units)
        random = stream.normal(size=(units, inputs))
        layers.append(KINDS[kind](stream, random, stream.normal(size=(units, 1)) * axes[line]))
    return np.array(layers, dtype)


@given(
    st.integers(0, 10**6),
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=8),
    st.integers(2, 60),
    st.integers(2, 8),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([None, None, 0.5, 0.9]),
)
def test_layers_together_are_counted_as_one_by_one(seed, kinds, units, inputs, dtype, threshold):
    layers = layers_of(seed, kinds, units, inputs, dtype)
    with warnings.catch_warnings(action="ignore"):  # units of norm zero
        counts = count_lines(layers, threshold)
        for k, layer in enumerate(layers):
            try:
                found = find_lines(layer, threshold=threshold)
                exact, rounded = (found.count, found.orientations, found.condensed), (found.k_eff, found.cover)
            except InputError:
                exact, rounded = (np.nan, np.nan, False), (np.nan, np.nan)
            np.testing.assert_array_equal((counts.lines[k], counts.orientations[k], counts.condensed[k]), exact)
            np.testing.assert_allclose((counts.k_eff[k], counts.cover[k]), rounded, rtol=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 30), st.floats(0.3, 0.99))
def test_groups_are_those_of_a_tree_that_scipy_cuts(seed, units, c):
    layers = layers_of(seed, ["random", "partly", "partly", "condensed"], units, 4, float)
    u = layers / np.linalg.norm(layers, axis=2, keepdims=True)
    cosines = np.abs(u @ u.swapaxes(1, 2))
    for own, groups in zip(cosines, linked_groups(cosines, c), strict=True):
        angles = np.arccos(np.minimum(own, 1)) * (1 - np.eye(units))
        asked = fcluster(linkage(squareform(angles, checks=False), "average"), np.arccos(c), "distance")
        np.testing.assert_array_equal(groups[:, None] == groups, asked[:, None] == asked)


def test_any_shape_of_layers_is_kept_and_what_is_none_is_refused():
    layers = layers_of(0, ["random", "condensed", "zero"] * 2, 20, 5, float).reshape(2, 3, 20, 5)
    counts = count_lines(layers)
    np.testing.assert_array_equal(counts.k_eff, count_lines(layers.reshape(6, 20, 5)).k_eff.reshape(2, 3))
    assert np.isnan(counts.lines[:, 2]).all()
    assert counts.reason == "all units have norm zero: there is no direction"
    with pytest.raises(InputError, match=r"units x inputs, not of shape \(20, 5\)"):
        count_lines(layers[0, 0])
    with pytest.raises(InputError, match="at least 2 inputs"):
        count_lines(layers[:, :, :, :1])
    with pytest.raises(InputError, match="a cosine between 0 and 1, not 2"):
        count_lines(layers, threshold=2)
