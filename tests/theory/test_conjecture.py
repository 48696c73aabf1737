"""What is left of "at most 2p orientations": true for p = 1 and in the plane, false for p = 3 in higher dimensions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condensation import Arrays, At, Dense, Experiment, Init, Normal, NormalisedGD, find_lines, train
from condensation.theory import labels_for, stationary_directions


def simplex(dim):
    """dim + 1 lines of equal angles."""
    gram = (1 + 1 / dim) * np.eye(dim) - 1 / dim  # of unit vectors with cosines of -1/dim; the last is minus their sum
    vectors = np.linalg.cholesky(gram)
    return np.concatenate([vectors, -vectors.sum(axis=0, keepdims=True)])


@pytest.mark.trials
def test_trained_networks_of_multiplicity_3_condense_on_five_lines():
    """Five lines with more than the six orientations that the conjecture allows, in every seed of the initial stage.

    Most seeds have all ten; where an orientation has less than its share of the norm, there are nine.
    """
    lines = simplex(4)
    x = np.random.default_rng(0).normal(size=(60, 4))
    y = labels_for(lines, x, 3)
    predicted = stationary_directions(x, y, 3)
    assert predicted.certified
    assert predicted.attracts.sum() == 5
    experiment = Experiment(
        Dense((4, 200, 1), "x2_tanh", bias=False), Init(Normal(1e-3)), Arrays(x, y / np.abs(y).max()),
        NormalisedGD(1e-5), 4000, save=At(()),
    )  # fmt: skip
    trajectory = train(experiment, 5)
    assert (trajectory.loss[:, -1] > 0.99 * trajectory.loss[:, 0]).all()
    for seed in range(5):
        before, after = (find_lines(trajectory.weights(1, step, seed)) for step in (0, 4000))
        assert not before.condensed
        assert after.condensed
        assert after.count == 5
        assert after.orientations >= 9
        assert np.abs(after.directions @ lines.T).max(axis=1).min() > 0.999


@given(seed=st.integers(0, 10_000), p=st.integers(1, 5))
@settings(max_examples=40)
def test_in_the_plane_no_more_than_p_lines_are_stationary(seed, p):
    stream = np.random.default_rng(seed)
    found = stationary_directions(stream.normal(size=(30, 2)), stream.normal(size=30), p)
    assert found.certified
    assert found.count <= p


@given(seed=st.integers(0, 10_000), dim=st.integers(2, 8))
@settings(max_examples=40)
def test_multiplicity_2_has_at_most_two_attracting_lines(seed, dim):
    stream = np.random.default_rng(seed)
    found = stationary_directions(stream.normal(size=(60, dim)), stream.normal(size=60), 2)
    assert found.count == dim
    assert found.attracts.sum() <= 2
    assert found.attracts_positive.sum() <= 1
    assert found.attracts_negative.sum() <= 1


@pytest.mark.parametrize("dim", [3, 5, 9])
def test_multiplicity_1_has_one_line(dim):
    stream = np.random.default_rng(dim)
    x, r = stream.normal(size=(40, dim)), stream.normal(size=40)
    found = stationary_directions(x, r, 1)
    assert found.count == 1
    assert abs(found.directions[0] @ (x.T @ r)) == pytest.approx(np.linalg.norm(x.T @ r))
