import numpy as np
import pytest

from condensation import InputError
from condensation.theory import labels_for, stationary_directions


def random_lines(count, dim, seed):
    lines = np.random.default_rng(seed).normal(size=(count, dim))
    return lines / np.linalg.norm(lines, axis=1, keepdims=True)


def simplex(dim):
    """dim + 1 unit vectors, all with the cosine -1/dim."""
    corners = np.eye(dim + 1) - 1 / (dim + 1)
    lines = corners @ np.linalg.svd(corners)[2][:dim].T
    return lines / np.linalg.norm(lines, axis=1, keepdims=True)


def with_bias(samples, dim, seed):
    x = np.random.default_rng(seed).normal(size=(samples, dim))
    x[:, -1] = 1
    return x


@pytest.mark.parametrize(
    ("lines", "p"),
    [
        (random_lines(1, 4, 0), 1),
        (random_lines(1, 4, 0), 2),
        (random_lines(2, 2, 1), 3),
        (simplex(2), 3),
        (random_lines(4, 5, 0), 3),
        (random_lines(5, 5, 1), 3),
        (random_lines(6, 6, 1), 3),
        (simplex(3), 3),
        (simplex(5), 3),
        (simplex(6), 3),
        (random_lines(6, 4, 0), 4),
    ],
)
def test_prescribed_lines_attract(lines, p):
    """More than p of them for p = 3 and D > 2: "at most p lines" is no theorem there."""
    dim = lines.shape[1]
    x = with_bias(90, dim, seed=dim)
    found = stationary_directions(x, labels_for(3 * lines, x, p), p)
    assert found.certified
    attracting = found.orientations(1)
    away = np.abs(attracting[:, None] - lines).max(axis=2)
    assert away.min(axis=0).max() < 1e-8
    own = away.argmin(axis=0)
    values = (attracting[own] @ x.T) ** p @ labels_for(lines, x, p) / len(x)
    assert values.mean() == pytest.approx(1)


def test_labels_are_the_shortest_for_their_tensor():
    """Labels are orthogonal to all labels that give no field."""
    x = with_bias(60, 3, 0)
    y = labels_for(random_lines(2, 3, 0), x, 3)
    cubes = np.array([x[:, i] * x[:, j] * x[:, k] for i in range(3) for j in range(i, 3) for k in range(j, 3)])
    invisible = np.linalg.svd(cubes)[2][10:]
    np.testing.assert_allclose(invisible @ y, 0, atol=1e-10 * np.linalg.norm(y))


@pytest.mark.parametrize(
    ("lines", "x", "p", "sentence"),
    [
        (random_lines(2, 3, 0), with_bias(50, 3, 0), 1, "2 lines cannot all attract at p = 1"),
        (random_lines(2, 3, 0), with_bias(50, 3, 0), 2, "2 lines cannot all attract at p = 2"),
        (random_lines(5, 2, 0), with_bias(50, 2, 0), 3, "5 lines cannot all attract"),
        (np.array([[1.0, 0], [1.0, 0.01]]), with_bias(50, 2, 0), 3, "2 lines cannot all attract"),
        (random_lines(2, 3, 0), with_bias(9, 3, 0), 3, "9 samples are too few: F has 10 monomials"),
        (np.eye(2), np.tile([[1.0, 1.0]], (20, 1)), 3, "linearly dependent"),
        (np.eye(3), with_bias(20, 2, 0), 3, "lines have 3 inputs and the samples 2"),
        (np.zeros((1, 2)), with_bias(20, 2, 0), 3, "line 0 is zero"),
        (np.full((1, 2), np.nan), with_bias(20, 2, 0), 3, "lines hold NaN or Inf"),
        (np.ones(2), with_bias(20, 2, 0), 3, "lines must be rows"),
        (np.eye(2), with_bias(20, 2, 0), 0, "multiplicity p must be a whole number"),
    ],
)
def test_input_that_cannot_be_used_gets_a_sentence(unchecked, lines, x, p, sentence):
    with pytest.raises(InputError, match=sentence):
        labels_for(lines, x, p)
