"""Data that stand in text: against NumPy's own evaluation, as TOML, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import condensation
from condensation import (
    Adam,
    Dense,
    Experiment,
    Expression,
    Init,
    InputError,
    Normal,
    Points,
    Seed,
    Synthetic,
    sine_sum,
    two_waves,
)
from condensation._serialization import fingerprint
from condensation.data._sampling import turn

finite = st.floats(-1e6, 1e6)
small = st.floats(-3, 3)
seeds = st.builds(Seed, st.integers(0, 10**6), st.integers(0, 10**6))


def experiment(data, dim):
    return Experiment(Dense((dim, 7, 1), "tanh"), Init(Normal(1e-3)), data, Adam(1e-3), 40)


@given(small, small, small, st.integers(1, 6), st.integers(1, 90), seeds)
def test_a_formula_in_x_is_the_synthetic_sum(amplitude, frequency, phase, dim, n, seed):
    text = f"({amplitude!r})*sin(({frequency!r})*x+({phase!r}))"
    x, y = Expression(text, dim, n, -4, 2).draw(seed)
    wanted = sine_sum(amplitude, frequency, phase, dim=dim, n=n, low=-4, high=2).draw(seed)
    np.testing.assert_array_equal(x, wanted[0])
    np.testing.assert_allclose(y, wanted[1], rtol=0, atol=1e-13)


def test_the_papers_target_in_words():
    for seed in (Seed(0, 0), Seed(7, 1)):
        x, y = Expression("3.5*sin(5*x+1)", 5, 80, -4, 2).draw(seed)
        wanted = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2).draw(seed)
        np.testing.assert_array_equal(x, wanted[0])
        np.testing.assert_allclose(y, wanted[1], rtol=0, atol=1e-13)
    grid = Expression("sin(3*x) + sin(6*x)/2", 1, 40, -1, 1.5, "even").draw(Seed(3, 0))
    for one, other in zip(grid, two_waves(spacing="even").draw(Seed(0, 0)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


@given(seeds, small, small, st.floats(-720, 720))
def test_a_formula_in_coordinates_is_that_function(seed, a, b, turned):
    x, y = Expression(f"({a!r})*x1**2 - tanh(x2*({b!r})) + max(x1, x2)", 2, 25, -2, 1, turned=turned).draw(seed)
    straight = seed.data_stream().uniform(-2, 1, size=(25, 2))
    wanted = [a * one**2 - np.tanh(b * two) + max(one, two) for one, two in straight]
    np.testing.assert_allclose(y[:, 0], wanted, rtol=1e-12, atol=1e-12)
    rotated = (straight @ [1, 1j]) * np.exp(1j * np.pi * turned / 180)  # the plane as complex numbers
    np.testing.assert_allclose(x, np.stack([rotated.real, rotated.imag], axis=1), rtol=0, atol=1e-12)


def test_one_coordinate_alone_and_no_coordinate():
    x, y = Expression("2*x3", 3, 8, 0, 1).draw(Seed(0, 0))
    np.testing.assert_array_equal(y[:, 0], 2 * x[:, 2])
    _, y = Expression("pi / 2", 3, 8, 0, 1).draw(Seed(0, 0))  # a constant, not three times one
    np.testing.assert_array_equal(y, np.full((8, 1), np.pi / 2))
    x, y = Expression("x**2", 3, 8, 0, 1).draw(Seed(0, 0))
    np.testing.assert_allclose(y[:, 0], (x**2).sum(axis=1), rtol=1e-14)
    one, same = (Expression(text, 1, 8, 0, 1).draw(Seed(0, 0)) for text in ("exp(x)", "exp(x1)"))
    np.testing.assert_array_equal(one, same)


@given(
    st.integers(1, 4).flatmap(
        lambda dim: st.lists(st.tuples(*[finite] * (dim + 1)), min_size=1, max_size=9).map(tuple)
    ),
    seeds,
)
def test_points_are_what_is_written(rows, seed):
    data = Points(rows)
    x, y = data.draw(seed)
    assert data.n == len(rows)
    assert data.dim == len(rows[0]) - 1
    np.testing.assert_array_equal(np.hstack([x, y]), np.array(rows))
    x[:], y[:] = 5, 5  # what is drawn may be changed; the data stay
    np.testing.assert_array_equal(np.hstack(data.draw(seed)), np.array(rows))


def test_points_turn_and_their_targets_stay():
    x, y = Points(((1, 0, 3), (0, 2, 4)), turned=90).draw(Seed(0, 0))
    np.testing.assert_allclose(x, [[0, 1], [-2, 0]], atol=1e-15)
    np.testing.assert_array_equal(y, [[3], [4]])


@given(finite, finite, st.floats(-400, 400), st.floats(-400, 400))
def test_turns_add_up(one, two, first, second):
    x = np.array([[one, two]])
    np.testing.assert_allclose(turn(turn(x, first), second), turn(x, first + second), rtol=0, atol=1e-8)
    assert turn(x, 0.0) is x


@pytest.mark.parametrize(
    ("data", "dim"),
    [
        (Expression("3.5*sin(5*x+1)", 5, 80, -4, 2), 5),
        (Expression("x1 * x2", 2, 81, -1, 1, "even", 30), 2),
        (Points(((0, 1, 0.1), (1e-17, 2, -3), (1 / 3, 0, 7)), 12.5), 2),
        (Points(((1, 2),)), 1),
    ],
)
def test_experiments_with_them_go_to_toml_and_back(data, dim):
    made = experiment(data, dim)
    again = Experiment.from_toml(made.to_toml())
    assert again == made
    assert again.fingerprint() == made.fingerprint()
    assert f'kind = "{data.kind}"' in made.to_toml()
    assert Experiment.from_plain(made.to_plain()) == made
    for one, other in zip(again.data.draw(Seed(3, 0)), data.draw(Seed(3, 0)), strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=6).map(tuple), finite)
def test_any_points_come_back_equal_with_their_fingerprint(rows, turned):
    made = experiment(Points(rows, turned), 2)
    again = Experiment.from_toml(made.to_toml())
    assert again == made
    assert again.fingerprint() == made.fingerprint()


@pytest.mark.usefixtures("unchecked")
def test_fingerprints_are_those_of_the_numbers_and_stay():
    assert fingerprint(Points(((0, 1), (2, 3)))) == fingerprint(Points(np.array([[0.0, 1.0], [2.0, 3.0]])))
    assert fingerprint(Points(((-0.0, 1),))) == fingerprint(Points(((0, 1),)))
    assert fingerprint(Expression("x", 1, 2, 0, 1)) == fingerprint(Expression("x", np.int64(1), 2, 0.0, 1.0))
    assert fingerprint(Expression("x", 2, 4, 0, 1)) != fingerprint(Expression("x", 2, 4, 0, 1, turned=1))
    assert fingerprint(Expression("sin(x)", 2, 4, 0, 1))[:16] == "d6cc4aff8a6aad6f"
    assert fingerprint(Points(((0, 1, 2),), 5))[:16] == "9b95ffeaa6bdfc7a"
    waves = Synthetic(((1, 3, 0), (0.5, 6, 0)), dim=1, n=40, low=-1, high=1.5)
    assert fingerprint(waves)[:16] == "1abd5495ed3f4818"  # as it was before the points had a file of their own


def test_they_train_and_are_named_in_the_package():
    assert condensation.Expression is Expression
    assert condensation.Points is Points
    trained = condensation.train(experiment(Points(((0, 0, 1), (1, 0, 2), (0, 1, -1))), 2), seeds=[0, 1])
    np.testing.assert_array_equal(trained.data(0)[1], trained.data(1)[1])
    assert np.isfinite(trained.loss).all()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Expression("x + x1", 2, 9, 0, 1), "mixes x with x1: write x alone.*coordinates x1 and x2"),
        (lambda: Expression("x + q", 3, 9, 0, 1), "mixes x with q"),
        (lambda: Expression("x3 * y", 2, 9, 0, 1), "uses x3, y, but with dim = 2 it may use x1 and x2, or x"),
        (lambda: Expression("x0", 2, 9, 0, 1), "uses x0"),
        (lambda: Expression("x01", 2, 9, 0, 1), "uses x01"),
        (lambda: Expression("X1", 4, 9, 0, 1), "uses X1, but with dim = 4 it may use x1 to x4"),
        (lambda: Expression(f"x{'9' * 30}", 2, 9, 0, 1), "uses x9999"),
        (lambda: Expression("sin(x", 2, 9, 0, 1), "cannot be read at character"),
        (lambda: Expression("", 2, 9, 0, 1), "cannot be read"),
        (lambda: Expression("x.real", 2, 9, 0, 1), "'.' at character 2"),
        (lambda: Expression(3, 2, 9, 0, 1), "formula must be a text, not 3"),  # type: ignore[arg-type]
        (lambda: Expression("x", 2, 9, 1, 0), "not 1.0 to 0.0"),
        (lambda: Expression("x", 2, 9, -1e308, 1e308), "wider than numbers go"),
        (lambda: Expression("x", 0, 9, 0, 1), "dim must be a whole number of at least 1"),
        (lambda: Expression("x", 2, 0, 0, 1), "n must be a whole number of at least 1"),
        (lambda: Expression("x", 2, 8, 0, 1, "even"), r"n = k\^2, not n = 8"),
        (lambda: Expression("x", 2, 9, 0, 1, "evn"), "unknown spacing 'evn'; did you mean 'even'"),
        (lambda: Expression("x", 3, 9, 0, 1, turned=5), "turned = 5 needs 2 coordinates, not 3"),
        (lambda: Expression("x", 2, 9, 0, 1, turned=np.inf), "a finite number of degrees, not by inf"),
        (lambda: Points(()), "at least one row"),
        (lambda: Points(((1,), (2,))), r"two numbers or more, not \(1.0,\)"),
        (lambda: Points(((1, 2), (1, 2, 3))), r"as the first, 2 numbers, but row 1 is \(1.0, 2.0, 3.0\)"),
        (lambda: Points(((1, 2), (np.nan, 3))), r"must be finite, but row 1 is \(nan, 3.0\)"),
        (lambda: Points(((1, "a"),)), r"rows\[0\]\[1\] must be a number, not 'a'"),  # type: ignore[arg-type]
        (lambda: Points(((1, 2), (3, 4)), turned=1), "turned = 1 needs 2 coordinates, not 1"),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_targets_that_are_not_finite_are_refused_with_their_sample():
    with pytest.raises(InputError, match=r"'log\(x\)' is -inf at \(0\), sample 0, and not finite at 1 of 3 samples"):
        Expression("log(x)", 1, 3, 0, 1, "even").draw(Seed(0, 0))
    with pytest.raises(InputError, match=r"is nan at \(-1, 2\), sample 1, and not finite at 1 of 4"):
        Expression("sqrt(x1 + 2 - x2)", 2, 4, -1, 2, "even").draw(Seed(0, 0))
    with pytest.raises(InputError, match="is inf at"):
        Expression("1e308*x", 5, 8, 1, 2).draw(Seed(0, 0))  # only the sum is too large
