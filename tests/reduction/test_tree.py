"""The order of merging, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condensation.reduction._tree import merging_tree, renumber


def spread(points, mass):
    """Sum of mass times squared distance from the mean."""
    return (mass[:, None] * (points - mass @ points / mass.sum()) ** 2).sum()


def points_of(weights, oriented):
    mass = np.linalg.norm(weights, axis=1)
    u = weights / mass[:, None]
    return mass, u if oriented else np.einsum("ui,uj->uij", u, u).reshape(len(u), -1)


@pytest.mark.parametrize("oriented", [True, False])
@given(seed=st.integers(0, 10_000), units=st.integers(2, 9), inputs=st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_each_merge_is_the_cheapest(oriented, seed, units, inputs):
    weights = np.random.default_rng(seed).normal(size=(units, inputs))
    mass, points = points_of(weights, oriented)
    tree = merging_tree(weights, oriented)
    groups = [[k] for k in range(units)]
    for one, other in tree.merges:
        costs = {}
        for a in range(len(groups)):
            for b in range(a):
                union = groups[a] + groups[b]
                apart = sum(spread(points[part], mass[part]) for part in (groups[a], groups[b]))
                costs[a, b] = spread(points[union], mass[union]) - apart
        chosen = [next(k for k, group in enumerate(groups) if unit in group) for unit in (one, other)]
        a, b = max(chosen), min(chosen)
        assert costs[a, b] == pytest.approx(min(costs.values()), rel=1e-9, abs=1e-12)
        assert tree.costs[units - len(groups)] == pytest.approx(costs[a, b], rel=1e-9, abs=1e-12)
        groups[b] += groups.pop(a)


def test_light_units_do_not_keep_heavy_ones_apart():
    weights = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1e-6], [1.0, 0.01, 0]])
    labels = merging_tree(weights, oriented=False).groups(2)
    assert labels[0] == labels[3] != labels[1]


def test_lines_join_opposite_units_and_orientations_do_not():
    weights = np.array([[1.0, 2, 0], [-2, -4, 0], [0, 0, 1]])
    assert merging_tree(weights, oriented=False).groups(2).tolist() == [0, 0, 1]
    assert merging_tree(weights, oriented=True).groups(2).tolist() != [0, 0, 1]


@given(seed=st.integers(0, 10_000), light=st.integers(0, 10))
@settings(max_examples=30, deadline=None)
def test_a_threshold_finds_planted_lines_whatever_light_units_there_are(seed, light):
    stream = np.random.default_rng(seed)
    axes = np.linalg.qr(stream.normal(size=(6, 6)))[0][:3]
    planted = stream.integers(3, size=20)
    heavy = stream.choice([-1.0, 1.0], (20, 1)) * axes[planted] + 0.01 * stream.normal(size=(20, 6))
    weights = np.concatenate([heavy, 1e-5 * stream.normal(size=(light, 6))])
    labels = merging_tree(weights, oriented=False).groups_within(0.95)[:20]
    np.testing.assert_array_equal(labels, renumber(planted))


def test_a_unit_of_norm_zero_joins_anyone():
    weights = np.array([[1.0, 0], [0, 1.0], [0, 0]])
    assert sorted(np.bincount(merging_tree(weights, oriented=False).groups(2))) == [1, 2]
    assert merging_tree(weights, oriented=False).groups_within(0.5).tolist() == [0, 1, 2]
    assert renumber(np.array([3, 3, 1])).tolist() == [0, 0, 1]
