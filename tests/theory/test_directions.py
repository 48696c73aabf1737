import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tensors import rotation, same_lines

from condensation import InputError
from condensation.theory import stationary_directions

few = settings(max_examples=15)


def data(dim, seed, samples=40):
    stream = np.random.default_rng(seed)
    return stream.normal(size=(samples, dim)) + stream.normal(size=dim), stream.normal(size=samples)


def growth(u, x, r, p):
    """F(u) by its definition."""
    return (np.atleast_2d(u) @ x.T) ** p @ r / len(x)


def two_waves(points=40):
    x = np.linspace(-1, 1.5, points)
    return np.stack([x, np.ones(points)], axis=1), np.sin(3 * x) + np.sin(6 * x) / 2


@pytest.mark.parametrize(("p", "lines"), [(1, 1), (2, 2), (3, 3)])
def test_equally_spaced_points_have_as_many_attracting_lines_as_the_multiplicity(p, lines):
    found = stationary_directions(*two_waves(), p)
    assert found.certified
    assert (found.count, found.attracts.sum()) == (lines, lines)


def test_random_points_have_three_maxima_but_often_fewer_of_positive_value():
    """40 points, p = 3: in the other seeds a maximum attracts the angle while the amplitude shrinks."""
    three, positive = 0, 0
    for seed in range(100):
        x = np.random.default_rng(seed).uniform(-1, 1.5, 40)
        found = stationary_directions(np.stack([x, np.ones(40)], 1), np.sin(3 * x) + np.sin(6 * x) / 2, 3)
        assert found.certified
        three += found.count == 3
        positive += found.attracts.sum() == 3
    assert three >= 95
    assert positive < three


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_multiplicity_one_has_the_mean_of_residual_times_input(dim, seed):
    x, r = data(dim, seed)
    g = x.T @ r / len(x)
    found = stationary_directions(x, r, 1)
    assert (found.method, found.certified, found.count, found.outside) == ("closed form", True, 1, 0)
    np.testing.assert_allclose(found.directions[0], g / np.linalg.norm(g), atol=1e-12)
    assert found.values[0] == pytest.approx(np.linalg.norm(g))
    np.testing.assert_allclose(found.eigenvalues, -np.linalg.norm(g) * np.ones((1, dim - 1)))
    np.testing.assert_allclose(found.orientations(-1), -found.orientations(1))
    assert (found.attracts_positive[0], found.attracts_negative[0]) == (True, True)


@given(st.integers(2, 8), st.integers(0, 10**6))
def test_multiplicity_two_has_the_eigenvectors(dim, seed):
    x, r = data(dim, seed)
    values, vectors = np.linalg.eigh((x.T * r) @ x / len(x))
    found = stationary_directions(x, r, 2)
    assert found.certified
    np.testing.assert_allclose(np.sort(found.values), values, atol=1e-10)
    assert same_lines(found.directions, vectors.T) < 1e-7
    assert found.attracts_positive.sum() == (values[-1] > 0)
    assert found.attracts_negative.sum() == (values[0] < 0)
    for line, value in zip(found.eigenvalues, found.values, strict=True):
        others = values[np.abs(values - value).argsort()[1:]]
        np.testing.assert_allclose(line, np.sort(others - value), atol=1e-10)
    assert len(found.orientations(1)) == 2 * found.attracts_positive.sum()


@pytest.mark.trials
@settings(max_examples=50)
@given(st.integers(3, 8), st.integers(0, 10**6))
def test_in_the_plane_maxima_are_those_of_a_fine_grid(p, seed):
    x, r = data(2, seed)
    found = stationary_directions(x, r, p)
    assume(found.certified and np.abs(found.eigenvalues).min() > 1e-3 * found.growth.max())
    angle = np.linspace(0, np.pi, 20001)[:-1]
    value = growth(np.stack([np.cos(angle), np.sin(angle)], 1), x, r, p)
    for sign, attracts in ((1, found.attracts_positive), (-1, found.attracts_negative)):
        f = np.concatenate([value, (-1) ** p * value]) * sign  # the whole circle
        peaks = (f > np.roll(f, 1)) & (f >= np.roll(f, -1)) & (f > 0)
        assert len(found.orientations(sign)) == peaks.sum()
        assert attracts.sum() == peaks.sum() / (1 if p % 2 else 2)
    assert found.complex_count == p
    conjugate_pairs = np.abs(found.complex_directions @ found.complex_directions.T).max(axis=1, initial=0)
    assert conjugate_pairs == pytest.approx(np.ones(p - found.count))


@few
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_rotated_inputs_rotate_the_directions(p, dim, seed):
    x, r = data(dim, seed)
    turn = rotation(dim, seed)
    found, turned = stationary_directions(x, r, p), stationary_directions(x @ turn.T, r, p)
    assume(found.certified)
    assert turned.certified
    assert same_lines(found.directions @ turn.T, turned.directions) < 1e-6
    np.testing.assert_allclose(turned.values, found.values, atol=1e-9 * found.growth.max())
    np.testing.assert_array_equal(turned.attracts, found.attracts)


@pytest.mark.trials
@few
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6), st.floats(1e-30, 1e30), st.floats(1e-10, 1e10))
def test_scaled_residuals_scale_values_and_nothing_else(p, dim, seed, size, length):
    x, r = data(dim, seed)
    found, scaled = stationary_directions(x, r, p), stationary_directions(x * length, r * size, p)
    assert scaled.certified == found.certified
    assert same_lines(found.directions, scaled.directions) < 1e-6
    factor = size * length**p
    np.testing.assert_allclose(scaled.values, found.values * factor, atol=1e-9 * found.growth.max() * factor)
    np.testing.assert_allclose(
        scaled.eigenvalues, found.eigenvalues * factor, atol=1e-7 * np.abs(found.eigenvalues).max(initial=0) * factor
    )
    flipped = stationary_directions(x, -r, p)
    assert same_lines(found.directions, flipped.directions) < 1e-6
    assert flipped.attracts_positive.sum() == found.attracts_negative.sum()


@few
@given(st.integers(1, 5), st.integers(2, 5), st.integers(0, 10**6))
def test_attracting_directions_are_local_maxima_and_others_are_not(p, dim, seed):
    x, r = data(dim, seed)
    found = stationary_directions(x, r, p)
    assume(found.certified and np.abs(found.eigenvalues).min() > 1e-3 * found.growth.max())
    stream = np.random.default_rng(seed)
    for sign in (1, -1):
        attracting = found.orientations(sign)
        every = np.concatenate([found.directions, -found.directions])
        for u in every:
            near = u + 1e-3 * stream.normal(size=(500, dim))
            near /= np.linalg.norm(near, axis=1, keepdims=True)
            here = sign * growth(u, x, r, p)[0]
            is_peak = here > 0 and bool((sign * growth(near, x, r, p) <= here * (1 + 1e-12)).all())
            listed = len(attracting) > 0 and bool((np.abs(attracting - u).max(axis=1) < 1e-9).any())
            assert is_peak == listed


@pytest.mark.trials
@few
@given(st.integers(1, 4), st.integers(2, 4), st.integers(0, 10**6))
def test_the_flow_on_the_sphere_ends_in_the_orientations(p, dim, seed):
    """Explicit Euler steps of du/dt = s P T u^(p-1) from random points of s F > 0, where the amplitude grows."""
    x, r = data(dim, seed)
    found = stationary_directions(x, r, p)
    assume(found.certified and np.abs(found.eigenvalues).min() > 0.03 * found.growth.max())
    step = 0.2 / max(np.abs(found.eigenvalues).max(), found.growth.max())
    for sign in (1, -1):
        u = np.random.default_rng(seed).normal(size=(40, dim))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        u = u[sign * growth(u, x, r, p) > 0]
        for _ in range(2000):
            field = sign * ((u @ x.T) ** (p - 1) * r) @ x / len(x)
            u = u + step * (field - (field * u).sum(axis=1, keepdims=True) * u)
            u /= np.linalg.norm(u, axis=1, keepdims=True)
        ends = found.orientations(sign)
        if len(u):
            assert np.abs(u[:, None] - ends).max(axis=2).min(axis=1).max() < 1e-4


@pytest.mark.parametrize("p", [2, 3, 4])
def test_dead_inputs_are_left_out_and_counted(p):
    stream = np.random.default_rng(p)
    x, r = np.zeros((50, 7)), stream.normal(size=50)
    x[:, [0, 3, 4]] = stream.normal(size=(50, 3))
    found, inside = stationary_directions(x, r, p), stationary_directions(x[:, [0, 3, 4]], r, p)
    assert found.certified
    assert (found.outside, inside.outside, found.generic_count) == (4, 0, inside.generic_count)
    np.testing.assert_allclose(found.directions[:, [1, 2, 5, 6]], 0, atol=1e-12)
    np.testing.assert_allclose(found.values, inside.values, atol=1e-12)
    np.testing.assert_array_equal(found.attracts, inside.attracts)
    assert found.eigenvalues.shape == (found.count, 6), "four more, of -F, outside"


def test_fewer_samples_than_inputs():
    x, r = data(30, 0, samples=5)
    found = stationary_directions(x, r, 3)
    assert (found.certified, found.outside, found.generic_count) == (True, 25, 31)


def test_equal_eigenvalues_are_a_continuum_and_said_to_be():
    found = stationary_directions(np.eye(4), np.array([3.0, 1, 1, -2]), 2)
    assert not found.certified
    assert "2-fold eigenvalue" in found.note
    assert found.attracts.tolist() == [True, True, False, False], "what is simple still attracts"
    round_one = stationary_directions(np.eye(2), np.array([1.0, 1]), 2)
    assert not round_one.attracts.any()
    angle = np.pi * np.arange(5) / 5
    plane = stationary_directions(np.stack([np.cos(angle), np.sin(angle)], 1), np.ones(5), 4)
    assert "every one is stationary" in plane.note
    assert not plane.certified
    assert not plane.attracts.any()


def test_several_outputs_of_multiplicity_one_have_the_singular_vectors():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(50, 6)), stream.normal(size=(50, 3))
    left, values, right = np.linalg.svd(r.T @ x / 50, full_matrices=False)
    found = stationary_directions(x, r, 1)
    assert (found.certified, found.outside, found.attracts.tolist()) == (True, 3, [True, False, False])
    np.testing.assert_allclose(found.values, values)
    assert same_lines(found.directions, right) < 1e-12
    assert same_lines(found.outputs, left.T) < 1e-12
    np.testing.assert_allclose(np.einsum("lk,nk,nd,ld->l", found.outputs, r, x, found.directions) / 50, values)
    rest = values[1:]
    expected = np.sort(np.concatenate([rest - values[0], -rest - values[0], np.full(3, -values[0])]))
    np.testing.assert_allclose(found.eigenvalues[0], expected)
    equal = stationary_directions(np.eye(3), np.eye(3), 1)
    assert equal.values[0] == pytest.approx(equal.values[1])
    assert "3-fold singular value" in equal.note
    assert not equal.attracts.any()


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_outputs_that_are_multiples_of_one_are_one_output(p):
    """Two classes: the residuals are r and -r."""
    x, r = data(3, p)
    single, double = stationary_directions(x, r, p), stationary_directions(x, np.stack([r, -r], 1), p)
    assert double.certified
    assert double.method == single.method
    np.testing.assert_allclose(double.values, single.growth * np.sqrt(2))
    assert same_lines(double.directions, single.directions) < 1e-9
    assert same_lines(double.outputs, np.array([[1, -1]]) / np.sqrt(2)) < 1e-12
    np.testing.assert_array_equal(double.attracts, single.attracts)
    column = stationary_directions(x, r[:, None], p)
    assert column.outputs is None
    np.testing.assert_array_equal(column.values, single.values)


@pytest.mark.parametrize(
    ("x", "r", "p", "sentence"),
    [
        (np.eye(3), np.ones(3), 0, "multiplicity p must be a whole number of at least 1, not 0"),
        (np.eye(3), np.ones(3), 2.5, "multiplicity p must be a whole number"),
        (np.eye(3), np.zeros(3), 2, "all residuals are zero"),
        (np.zeros((3, 3)), np.ones(3), 2, "all inputs are zero"),
        (np.eye(3), np.array([1, np.nan, 1]), 2, "residuals of 1 samples are NaN or Inf, first of sample 1"),
        (np.full((3, 3), np.inf), np.ones(3), 2, "inputs of 3 samples are NaN"),
        (np.ones(3), np.ones(3), 2, "samples x inputs, both at least 1, not of shape"),
        (np.eye(3), np.ones(4), 2, "residuals of 3 samples are needed"),
        (np.eye(3), np.ones((3, 1, 1)), 2, "residuals of 3 samples are needed"),
        (np.eye(3), ["a", "b", "c"], 2, "residuals must be an array of real numbers"),
        (np.eye(3), np.ones(3) * 1j, 2, "residuals must be an array of real numbers"),
        (np.eye(3) * 1e200, np.ones(3), 3, "scale them nearer to one"),
        (np.array([[1.0, 2], [1, 2]]), np.array([1.0, -1]), 2, "zero for every u"),
    ],
)
def test_input_that_cannot_be_used_gets_a_sentence(unchecked, x, r, p, sentence):
    with pytest.raises(InputError, match=sentence):
        stationary_directions(x, r, p)


def test_a_sign_is_plus_or_minus_one(unchecked):
    found = stationary_directions(np.eye(2), np.ones(2), 1)
    with pytest.raises(InputError, match="1 or -1, not 2"):
        found.orientations(2)
