from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensors import entries_of, rotation, same_lines, samples_of

from condensation.theory import Tensor, generic_count, stationary_directions
from condensation.theory._homotopy import refine_lines, start_lines, track_lines
from condensation.theory._tensor import restrict_to_span, unit

# Kolda and Mayo 2011, Example 3.6
CUBIC = {
    "111": -0.1281, "112": 0.0516, "113": -0.0954, "122": -0.1958, "123": -0.1790,
    "133": -0.2676, "222": 0.3251, "223": 0.2513, "233": 0.1773, "333": 0.0338,
}  # fmt: skip
CUBIC_VALUES = [0.8730, 0.4306, 0.2294, 0.0180, 0.0033, 0.0018, 0.0006]
# Kofidis and Regalia 2002, Example 1; the values are those of Kolda and Mayo, Example 3.5
QUARTIC = {
    "1111": 0.2883, "1112": -0.0031, "1113": 0.1973, "1122": -0.2485, "1123": -0.2939,
    "1133": 0.3847, "1222": 0.2972, "1223": 0.1862, "1233": 0.0919, "1333": -0.3619,
    "2222": 0.1241, "2223": -0.3420, "2233": 0.2127, "2333": 0.2727, "3333": -0.3054,
}  # fmt: skip
QUARTIC_VALUES = [0.8893, 0.8169, 0.5105, 0.3633, 0.2682, 0.2628, 0.2433, 0.1735, -0.0451, -0.5629, -1.0954]


def brute_force(x, r, p, starts=1000):
    """Real lines by plain Newton's method on G(u) = l u, u.u = 1 from many random points."""
    stream, found = np.random.default_rng(0), []
    for _ in range(starts):
        u = stream.normal(size=x.shape[1])
        u /= np.linalg.norm(u)
        lam = stream.normal()
        for _ in range(60):
            z = x @ u
            matrix = (x.T * (r * z ** (p - 2))) @ x / len(x)
            residual = np.append(matrix @ u - lam * u, (u @ u - 1) / 2)
            jacobian = np.block([[(p - 1) * matrix - lam * np.eye(len(u)), -u[:, None]], [u[None], np.zeros((1, 1))]])
            step = np.linalg.solve(jacobian, residual)
            u, lam = u - step[:-1], lam - step[-1]
            if np.linalg.norm(step) < 1e-13:
                break
        if np.linalg.norm(residual) < 1e-12 and all(min(abs(u - v).max(), abs(u + v).max()) > 1e-6 for v in found):
            found.append(u)
    return np.array(found)


@pytest.mark.parametrize(
    ("entries", "p", "count", "values"), [(CUBIC, 3, 7, CUBIC_VALUES), (QUARTIC, 4, 13, QUARTIC_VALUES)]
)
def test_published_tensors_have_their_published_lines(entries, p, count, values):
    x, r = samples_of(entries, 3, p)
    found = stationary_directions(x, r, p)
    assert found.certified
    assert (found.method, found.generic_count, found.complex_count) == ("homotopy", count, count)
    np.testing.assert_allclose(np.sort(found.values)[::-1], values, atol=6e-5)
    assert len(found.complex_directions) == count - len(values)
    assert same_lines(found.directions, brute_force(x, r, p)) < 1e-9


@pytest.mark.parametrize("dim", [3, 4, 5, 6])
def test_all_lines_of_an_orthogonally_decomposable_cubic(dim):
    """F = sum l_i u_i^3 in turned coordinates: a line for each set of axes, sum e_i/l_i, of value (sum l_i^-2)^-1/2."""
    turn = rotation(dim, dim)
    strengths = np.random.default_rng(dim).uniform(0.5, 2, dim)
    found = stationary_directions(turn.T, strengths * dim, 3)
    sets = np.array([s for s in product([0, 1], repeat=dim) if any(s)])
    lines = sets / strengths
    lengths = np.linalg.norm(lines, axis=1)
    assert found.certified
    assert found.count == 2**dim - 1
    assert same_lines(found.directions, (lines / lengths[:, None]) @ turn.T) < 1e-12
    np.testing.assert_allclose(np.sort(found.values), np.sort(1 / lengths), rtol=1e-12)
    attracting = found.directions[found.attracts] @ turn
    assert same_lines(attracting, np.eye(dim)) < 1e-12, "the axes and no other"


def test_all_lines_of_an_orthogonally_decomposable_quartic():
    """F = sum u_i^4: signs double the sets of axes, (3^D - 1)/2 lines of value 1/k, all real."""
    found = stationary_directions(np.eye(4), np.full(4, 4.0), 4)
    assert found.certified
    sizes = np.rint(1 / found.values).astype(int)
    assert np.bincount(sizes).tolist() == [0, 4, 12, 16, 8]
    assert found.attracts_positive.sum() == 4
    assert not found.attracts_negative.any(), "the minima are of positive value: there the amplitude shrinks"


@pytest.mark.parametrize(("p", "dim"), [(3, 4), (3, 7), (4, 4), (5, 3), (5, 4), (7, 3)])
def test_start_lines_are_all_lines_of_the_diagonal_tensor(p, dim):
    g = np.exp(2j * np.pi * np.random.default_rng(0).random(dim))
    x = start_lines(g, p)
    assert len(x) == generic_count(p, dim)
    np.testing.assert_allclose(g * x ** (p - 1), x, atol=1e-12)
    cosines = np.abs(x.conj() @ x.T) / np.outer(*[np.linalg.norm(x, axis=1)] * 2)
    assert (cosines - np.eye(len(x))).max() < 1 - 1e-3


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("p", "dim"), [(3, 3), (3, 5), (3, 6), (4, 3), (4, 4), (5, 3), (6, 3)])
def test_random_data_are_certified(p, dim):
    """Six seeds of the paper's kind of data and of noise, offset and of uneven scale."""
    for seed in range(6):
        stream = np.random.default_rng(seed)
        x = stream.uniform(-4, 2, size=(80, dim))
        x[:, -1] = 1
        y = (3.5 * np.sin(5 * x[:, :-1] + 1)).sum(axis=1)
        if seed % 2:
            x, y = (x + stream.normal(size=dim)) * 10 ** stream.uniform(-1, 0, dim), stream.normal(size=80)
        found = stationary_directions(x, y, p)
        assert found.certified
        assert found.complex_count == found.generic_count == generic_count(p, dim)
        assert (found.count - found.generic_count) % 2 == 0
        assert len(found.complex_directions) + found.count == found.generic_count
        fields = ((found.directions @ x.T) ** (p - 1) * y) @ x / len(x)
        scale = np.abs(found.values).max()
        np.testing.assert_allclose(fields, found.values[:, None] * found.directions, atol=1e-12 * scale)


def test_six_dimensions_are_certified():
    stream = np.random.default_rng(0)
    x, y = stream.normal(size=(80, 6)), stream.normal(size=80)
    assert stationary_directions(x, y, 3).certified


@pytest.mark.parametrize(
    ("function", "dim", "p", "attracting"),
    [
        (lambda u: (u @ u) * u[0], 3, 3, 1),  # all isotropic x are stationary
        (lambda u: u[0] ** 2 * u[1] + u[2] ** 3, 3, 3, 3),  # a double line
        (lambda u: (u @ u) ** 2, 3, 4, 0),  # everything is stationary
        (lambda u: u[0] * (u[1] ** 2 + u[2] ** 2), 3, 3, 0),  # a circle attracts
    ],
)
def test_what_is_not_isolated_is_said_and_never_certified(function, dim, p, attracting):
    found = stationary_directions(*samples_of(entries_of(function, dim, p), dim, p), p)
    assert not found.certified
    assert "the others are multiple or nearly so, fill a continuum" in found.note
    assert found.complex_count < found.generic_count
    assert found.attracts.sum() == attracting


def test_zero_values_and_isotropic_lines_are_ordinary():
    """F = 6 u_1 u_2 u_3: the axes have value 0; F = |u|^2 u_1 in the plane: (1, i) and (1, -i) are lines."""
    found = stationary_directions(*samples_of({"123": 1.0}, 3, 3), 3)
    assert (found.certified, found.count, found.attracts.sum()) == (True, 7, 4)
    np.testing.assert_allclose(found.values, [6 / 27**0.5] * 4 + [0] * 3, atol=1e-12)
    plane = restrict_to_span(
        *(np.reshape(a, (len(a), -1)) for a in samples_of({"111": 1.0, "122": 1 / 3}, 2, 3)), 3
    ).tensor
    solutions = track_lines(plane)
    assert solutions.complete
    assert (len(solutions.real), len(solutions.others)) == (1, 2)
    np.testing.assert_allclose((solutions.others**2).sum(axis=1), 0, atol=1e-12)


def test_lines_that_come_twice_or_are_missing_are_not_complete():
    tensor = Tensor(np.eye(3), np.ones((3, 1)), 3)
    lines = np.array([s for s in product([0.0, 1.0], repeat=3) if any(s)])
    assert refine_lines(tensor, lines).complete
    assert not refine_lines(tensor, lines[1:]).complete
    assert not refine_lines(tensor, np.concatenate([lines[1:], lines[1:2]])).complete
    assert refine_lines(tensor, np.concatenate([lines, -lines * 1j])).count == 7


def diagonal_lines(g, p):
    r"""All real lines of $\sum_i g_i e_i^{\otimes p}$, p = 3 or 4: entries 0 or roots of $g_i x_i^{p-2} = \pm 1$."""
    lines = []
    for sign in (1, -1)[: p - 2]:
        at = [sign / each for each in g]
        roots = [[0, q] if p == 3 else [0, q**0.5, -(q**0.5)] if q > 0 else [0] for q in at]
        lines += [u for u in product(*roots) if any(u)]
    lines = unit(np.array(lines))
    first = np.take_along_axis(lines, (lines != 0).argmax(axis=1)[:, None], axis=1)
    return lines if p == 3 else lines[first[:, 0] > 0]


@pytest.mark.trials
@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(3, 4), st.floats(0, 12), st.integers(0, 10**6))
def test_what_is_certified_is_complete_for_diagonal_tensors_of_any_spread(dim, p, spread, seed):
    stream = np.random.default_rng(seed)
    g = stream.choice([-1, 1], dim) * 10 ** (-spread * stream.random(dim))
    found, exact = stationary_directions(np.eye(dim), dim * g, p), diagonal_lines(g, p)
    cosines = np.abs(found.directions @ exact.T)
    assert (cosines.max(axis=1) > 1 - 1e-9).all(), "nothing is listed that is no line"
    assert found.certified == (found.note == "")
    if found.certified:
        assert found.count == len(exact)
        assert (cosines.max(axis=0) > 1 - 1e-9).all()
    assert found.certified or np.abs(g).max() > 1e3 * np.abs(g).min()


@pytest.mark.parametrize(
    ("g", "why"),
    [
        ((1, 1e-4, 1e-8), "nearer than 1e-06"),
        ((1, 1e-12, 1), "weaker than 1e-10 of the strongest, 4e-13 of the whole field, are not zero but were left out"),
        ((1, 1e-20, 1), "left out"),
        ((1e-13, 1, 1e-150), "left out"),
    ],
)
def test_lines_too_weak_or_too_near_are_said_to_be_missing(g, why):
    found = stationary_directions(np.eye(3), 3 * np.array(g), 3)
    assert found.count < 7
    assert not found.certified
    assert why in found.note


@pytest.mark.parametrize("p", [1, 2, 3])
def test_rounding_is_no_direction_that_was_left_out(p):
    """Inputs that are zero, sums of others, and weak: the span is certified; it turns with the inputs."""
    stream = np.random.default_rng(p)
    x, r = stream.normal(size=(40, 3)), stream.normal(size=40)
    x[:, 2] *= 1e-3
    wide = np.concatenate([x, x[:, :1] + x[:, 1:2] / 3, np.zeros((40, 1))], axis=1)
    for inputs in (wide, wide @ rotation(5, 0).T):
        found = stationary_directions(inputs, r, p)
        assert (found.certified, found.note, found.outside) == (True, "", 0 if p == 1 else 2)
