import numpy as np
import pytest

from condensation import Arrays, InputError, Seed, Synthetic, hinges, sine_sum, two_waves


def test_targets_agree_with_their_formulas():
    x, y = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2).draw(Seed(0, 0))
    assert x.shape == (80, 5)
    assert x.min() >= -4
    assert x.max() <= 2
    np.testing.assert_allclose(y[:, 0], [sum(3.5 * np.sin(5 * c + 1) for c in row) for row in x])
    x, y = two_waves().draw(Seed(3, 0))
    np.testing.assert_allclose(y, np.sin(3 * x) + np.sin(6 * x) / 2)
    x, y = hinges(n=50).draw(Seed(3, 0))
    relu = lambda z: np.where(z > 0, z, 0)  # noqa: E731
    np.testing.assert_allclose(y, -relu(x) + relu(2 * (x + 0.3)) - relu(1.5 * (x - 0.4)) + relu(0.5 * (x - 0.8)))


def test_points_are_uniform_and_new_for_each_seed():
    data = sine_sum(1, 1, 0, dim=3, n=20000, low=-4, high=2)
    one, other = data.points(Seed(0, 0)), data.points(Seed(1, 0))
    np.testing.assert_allclose(one.mean(axis=0), -1, atol=0.05)
    np.testing.assert_allclose(one.var(axis=0), 36 / 12, rtol=0.05)
    assert np.abs(np.corrcoef(one[:, 0], other[:, 0])[0, 1]) < 0.03
    np.testing.assert_array_equal(one, data.points(Seed(0, 99)))


def test_even_spacing_is_a_grid():
    np.testing.assert_allclose(two_waves(n=6, spacing="even").points(Seed(0, 0))[:, 0], np.linspace(-1, 1.5, 6))
    grid = Synthetic(((1, 1, 0),), dim=2, n=9, low=0, high=2, spacing="even").points(Seed(7, 0))
    assert {tuple(row) for row in grid.tolist()} == {(a, b) for a in (0, 1, 2) for b in (0, 1, 2)}


def test_arrays_take_vectors_and_cannot_be_changed():
    data = Arrays(np.arange(3), np.arange(3))
    assert data.x.shape == data.y.shape == (3, 1)
    with pytest.raises(ValueError, match="read-only"):
        data.x[0] = 5


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Arrays(np.ones((3, 2)), np.ones(4)), r"not \(3, 2\) and \(4, 1\)"),
        (lambda: Arrays(np.ones((3, 2)), np.ones((3, 1, 1))), "samples x inputs"),
        (lambda: Arrays(np.array([[1.0], [np.nan]]), np.ones(2)), "x holds NaN or Inf in 1 of 2 samples, first in 1"),
        (lambda: Arrays(np.ones(2), np.array([np.inf, 1])), "y holds NaN or Inf"),
        (lambda: two_waves(spacing="evenly"), "unknown spacing 'evenly'; did you mean 'even'"),
        (lambda: two_waves(low=2.0, high=1.0), "not 2.0 to 1.0"),
        (lambda: Synthetic((), dim=1, n=2, low=0, high=1), "triples"),
        (lambda: Synthetic(((1, 2),), dim=1, n=2, low=0, high=1), r"terms\[0\] must be a list of 3, not of 2"),
        (lambda: sine_sum(np.inf, 1, 0, dim=1, n=2, low=0, high=1), "finite triples"),
        (lambda: Synthetic(((1, 1, 0),), dim=2, n=10, low=0, high=1, spacing="even"), r"n = k\^2, not n = 10"),
        (lambda: Synthetic(((1, 1, 0),), dim=1, n=2, low=0, high=1, function="cos"), "unknown target function 'cos'"),
    ],
)
def test_data_that_cannot_be_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()
