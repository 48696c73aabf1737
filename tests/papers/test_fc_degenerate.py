"""Data for which the leading order vanishes or has no directions of its own."""

import numpy as np
import pytest
from scipy.linalg import expm

from condensation import InputError
from condensation.papers.fc.degenerate import CASES, Degenerate, degenerate, largest_space, moved_labels
from condensation.theory import stationary_directions

DRAWS = range(4)


def field(x, y, w, slope):
    """The velocity of a neuron with a = 1 in a network whose output is zero."""
    return (y[:, 0] * slope(x @ w)) @ x / len(x)


def test_labels_are_moved_by_the_least():
    stream = np.random.default_rng(0)
    x, y, wanted = stream.normal(size=(20, 2)), stream.normal(size=20), np.array([1.0, -2.0, 0.5])
    moved = moved_labels(x, y, 2, wanted)
    monomials = np.stack([x[:, 0] ** 2, x[:, 0] * x[:, 1], x[:, 1] ** 2])
    np.testing.assert_allclose(monomials @ moved / 20, wanted)
    least = np.linalg.pinv(monomials / 20) @ (wanted - monomials @ y / 20)  # of least norm
    np.testing.assert_allclose(moved - y, least)


@pytest.mark.parametrize("draw", DRAWS)
def test_what_is_degenerate_in_each_kind(draw):
    x, y = degenerate("moment", draw)
    assert np.abs(y[:, 0] @ x).max() < 1e-12
    x, y = degenerate("round", draw)
    np.testing.assert_allclose(
        np.mean([r * np.outer(u, u) for r, u in zip(y[:, 0], x, strict=True)], axis=0), np.eye(2), atol=1e-12
    )
    x, y = degenerate("equal", draw)
    np.testing.assert_allclose(np.linalg.svd(y.T @ x / len(x))[1], 1)
    assert np.linalg.matrix_rank(degenerate("few", draw)[0]) == 3
    assert np.linalg.matrix_rank(degenerate("collinear", draw)[0]) == 1
    x, y = degenerate("opposite", draw)
    for power in range(5):
        assert np.abs(field(x, y, np.full(4, 0.3), lambda z, power=power: z**power)).max() < 1e-14


@pytest.mark.parametrize(("kind", "p"), [("moment", 1), ("round", 2), ("few", 2), ("opposite", 1)])
def test_every_direction_of_the_space_stays(kind, p):
    for draw in DRAWS:
        x, y = degenerate(kind, draw)
        outside = np.linalg.svd(x)[2][np.linalg.matrix_rank(x) :]  # orthogonal to all samples
        basis = outside if kind == "few" else np.eye(x.shape[1])
        assert largest_space(kind, draw, p) == len(basis)
        for w in np.random.default_rng(draw).normal(size=(5, len(basis))) @ basis:
            velocity = field(x, y, w, lambda z: z ** (p - 1))
            assert np.linalg.norm(velocity - (velocity @ w) * w / (w @ w)) < 1e-12


def test_data_that_are_not_degenerate_have_lines():
    assert [largest_space("few", draw, 1) for draw in DRAWS] == [1] * 4
    assert [largest_space("moment", draw, 2) for draw in DRAWS] == [1] * 4
    assert [largest_space("collinear", draw, 1) for draw in DRAWS] == [1] * 4
    assert [largest_space("collinear", draw, 2) for draw in DRAWS] == [3] * 4  # orthogonal to the inputs


def test_the_theory_says_that_nothing_condenses_where_an_order_is_zero():
    for kind, p in (("moment", 1), ("opposite", 1), ("opposite", 2), ("opposite", 3)):
        with pytest.raises(InputError, match="nothing condenses"):
            stationary_directions(*degenerate(kind), p)
    assert stationary_directions(*degenerate("round"), 2).spaces[0].basis.shape == (2, 2)


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("moment-tanh", lambda z: 1 / np.cosh(z) ** 2),
        ("moment-swish", lambda z: (s := 1 / (1 + np.exp(-z))) + z * s * (1 - s)),
    ],
)
def test_the_order_that_decides_is_the_first_that_is_not_zero(name, slope):
    """The whole field of a small neuron is that order's, up to terms two powers (of swish: also two) smaller."""
    kind, _, p = CASES[name]
    x, y = degenerate(kind)
    w = np.random.default_rng(3).normal(size=x.shape[1])
    leading = field(x, y, w, lambda z: z ** (p - 1))
    for size in (1e-2, 3e-3):
        whole = field(x, y, size * w, slope)
        cosine = whole @ leading / np.linalg.norm(whole) / np.linalg.norm(leading)
        assert abs(cosine) > 1 - 10 * size**2


@pytest.mark.trials
def test_the_predicted_directions_in_the_plane_are_those_of_the_linear_dynamics(runs_of):
    figure = Degenerate(runs_of("fc-degenerate"))
    run, (x, y) = figure.runs["equal"], degenerate("equal")
    g = y.T @ x / len(x)
    dynamics = np.block([[np.zeros((4, 4)), g.T], [g, np.zeros((2, 2))]])
    seed = run.seeds[0]
    start = np.c_[run.weights(1, 0, seed), run.model(0, seed).parameters["output.weight"].T]
    late = (start @ expm(20 * dynamics).T)[:, :4] @ figure.predicted["equal"].spaces[0].basis
    late /= np.linalg.norm(late, axis=1, keepdims=True)
    np.testing.assert_allclose(figure.in_disc[2][0], late, atol=1e-6)


@pytest.mark.trials
def test_claims_on_degenerate_data(runs_of):
    figure = Degenerate(runs_of("fc-degenerate"))
    holds = {claim.key: {*figure.measured(claim.key).holds(claim.rule)} for claim in Degenerate.claims}
    failing = {"moment-roots", "round-roots", "few-finite", "moment-most", "round-lines", "equal-sum"}
    assert {key for key, seeds in holds.items() if seeds == {False}} == failing
    assert {key for key, seeds in holds.items() if seeds == {True}} == holds.keys() - failing
    assert np.median(figure.growth("opposite")) == pytest.approx(1, abs=0.01)
