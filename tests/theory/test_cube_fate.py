"""Fates under sign descent: closed forms, brute force in tiny steps, symmetries, and trained networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condensation as c
from condensation.theory import cube_directions, cube_fates
from condensation.theory._tensor import unit

ACTIVATIONS = {1: "tanh", 2: "x_tanh", 3: "x2_tanh"}
few = settings(max_examples=10)
seeds = st.integers(0, 10**6)


def case(seed, units=60, dim=3, samples=40):
    stream = np.random.default_rng(seed)
    x = np.concatenate(
        [stream.normal(size=(samples, dim - 1)) + stream.normal(size=dim - 1) / 2, np.ones((samples, 1))], 1
    )
    return 1e-3 * stream.normal(size=(units, dim)), 1e-3 * stream.normal(size=units), x, stream.normal(size=samples)


def brute_force(w, a, x, r, p, sign=1, step=2e-6, length=0.015):
    """Sign descent on the leading order itself, all weights at once, in steps of one length."""
    for _ in range(int(length / step)):
        z = w @ x.T
        g = sign * (z ** (p - 1) * r) @ x
        w, a = w + step * np.sign(a[:, None] * g), a + step * np.sign((g * w).sum(axis=1))
    return w, a


def nearest(w, found):
    """Line and side of the direction that each row is nearest to."""
    cosine = unit(w) @ unit(found.directions).T
    line = np.abs(cosine).argmax(axis=1)
    return line, np.sign(np.take_along_axis(cosine, line[:, None], 1)[:, 0]).astype(int)


@few
@given(seeds, st.integers(1, 6), st.sampled_from([1, -1]))
def test_multiplicity_one_is_decided_by_one_sum(seed, dim, sign):
    w, a, x, r = case(seed, units=200, dim=dim)
    found = cube_fates(w, a, x, r, lambda z: sign * z)
    g = x.T @ r / len(r)
    ahead = w @ g / np.abs(g).sum() + sign * a
    np.testing.assert_array_equal(found.lines, 0)
    np.testing.assert_array_equal(found.signs, np.sign(ahead))
    np.testing.assert_array_equal(found.flips, sign * a * ahead < 0)
    assert found.decided.all()
    clear = np.abs(ahead) > 1e-5
    last_w, last_a = brute_force(w[clear], a[clear], x, r, 1, sign, step=1e-5)
    np.testing.assert_array_equal(np.sign(last_w), found.signs[clear, None] * np.sign(g))
    np.testing.assert_array_equal(np.sign(last_a) != np.sign(a[clear]), found.flips[clear])


@pytest.mark.parametrize(("p", "dim", "seed"), [(2, 2, 0), (2, 3, 1), (2, 4, 1), (3, 2, 4), (3, 3, 0), (3, 4, 1)])
def test_neurons_end_where_tiny_steps_bring_them(p, dim, seed):
    w, a, x, r = case(seed, dim=dim)
    found = cube_fates(w, a, x, r, ACTIVATIONS[p])
    assert (found.lines >= 0).all()
    assert found.decided.mean() > 0.9
    ends = [brute_force(w, a, x, r, p, step=step) for step in (2e-6, 3.3e-6)]
    (line, side), again = (nearest(last_w, found.directions) for last_w, _ in ends)
    steady = found.decided & (line == again[0]) & (side == again[1])
    assert steady.mean() > 0.85
    right = (line == found.lines) & (side == found.signs) & ((np.sign(ends[0][1]) != np.sign(a)) == found.flips)
    assert right[steady].mean() >= 0.98
    serves = np.where(found.flips, -1, 1) * np.sign(a)
    for sign in (1, -1):
        ends = unit(found.directions.orientations(sign))
        assert (found.orientations[serves == sign] @ ends.T).max(axis=1, initial=1).min(initial=1) > 1 - 1e-12


@few
@given(seeds, st.integers(2, 3), st.integers(2, 5), st.floats(-9, 9), st.floats(-3, 3), st.floats(-3, 3))
def test_scales_do_not_matter(seed, p, dim, start, inputs, targets):
    w, a, x, r = case(seed, units=20, dim=dim)
    found = cube_fates(w, a, x, r, ACTIVATIONS[p])
    by = 2.0 ** round(3 * start)  # powers of two: without rounding
    other = cube_fates(by * w, by * a, x * 2.0 ** round(inputs), r * 2.0 ** round(targets), ACTIVATIONS[p])
    for name in ("lines", "signs", "flips", "decided"):
        np.testing.assert_array_equal(getattr(found, name), getattr(other, name))


@pytest.mark.trials
@few
@given(seeds, st.integers(2, 3))
def test_opposite_neurons_go_opposite_ways(seed, dim):
    for p, sign in ((2, 1), (3, -1)):  # F(-w) is F(w) or -F(w)
        w, a, x, r = case(seed, units=30, dim=dim)
        found, other = (cube_fates(s * w, (sign if s < 0 else 1) * a, x, r, ACTIVATIONS[p]) for s in (1, -1))
        np.testing.assert_array_equal(found.lines, other.lines)
        np.testing.assert_array_equal(found.signs, -other.signs)
        np.testing.assert_array_equal(found.flips, other.flips)


@few
@given(seeds, st.integers(2, 3), st.integers(2, 4))
def test_the_cubes_own_symmetries_turn_the_ends_along(seed, p, dim):
    w, a, x, r = case(seed, units=30, dim=dim)
    stream = np.random.default_rng(seed)
    order, flips = stream.permutation(dim), stream.choice([-1.0, 1.0], dim)
    found = cube_fates(w, a, x, r, ACTIVATIONS[p])
    other = cube_fates(w[:, order] * flips, a, x[:, order] * flips, r, ACTIVATIONS[p])
    both = found.decided & other.decided  # sums are rounded in another order
    np.testing.assert_allclose(other.orientations[both], (found.orientations[:, order] * flips)[both], atol=1e-7)
    assert both.mean() > 0.6


def test_a_negative_coefficient_is_a_negative_output_weight():
    w, a, x, r = case(3)
    plus, minus = (cube_fates(w, s * a, x, r, lambda z, s=s: s * z * z) for s in (1, -1))
    for name in ("lines", "signs", "flips", "decided"):
        np.testing.assert_array_equal(getattr(plus, name), getattr(minus, name))


def test_weights_of_the_wrong_sign_shrink_until_one_is_zero():
    """F = |w|^2: with a < 0 all weights shrink at one speed; a turns if it is the smallest, and w stays zero if all are
    smaller."""
    stream = np.random.default_rng(0)
    w, a = stream.normal(size=(300, 3)), 0.7 * stream.normal(size=300)
    w /= np.abs(w).max(axis=1, keepdims=True)
    found = cube_fates(w, a, np.eye(3), np.full(3, 3.0), lambda z: z * z)
    first, last = np.abs(w).min(axis=1) + a, 1 + a
    grows, none, between = (a > 0) | (first > 0.05), last < -0.15, (first < -0.05) & (last > 0.15)
    assert min(grows.sum(), none.sum(), between.sum()) > 10
    np.testing.assert_allclose(found.orientations[grows], np.sign(w[grows]) / np.sqrt(3))
    np.testing.assert_array_equal(found.flips[grows], a[grows] < 0)
    np.testing.assert_array_equal(found.lines[none], -1)
    np.testing.assert_array_equal(found.signs[none], 0)
    np.testing.assert_array_equal(found.orientations[none], 0)
    assert not found.flips[none].any()
    assert found.decided[grows | none].all()
    assert 0.1 < found.decided[between].mean() < 0.7  # weights at zero go to and fro when a turns


def test_what_does_not_move_comes_to_no_line():
    w, a, x, r = case(0, dim=3)
    w[0], w[1], a[1] = 0, 1e-308, 1e100
    found = cube_fates(w, a, x, r, "x_tanh")
    assert (found.lines[0], found.signs[0], found.flips[0]) == (-1, 0, False)
    still = cube_fates(np.zeros((1, 3)), np.zeros(1), x, r, "tanh")
    assert (still.lines[0], still.signs[0], still.flips[0]) == (-1, 0, False)


@pytest.mark.parametrize("p", [2, 3])
def test_an_input_that_does_not_count_stays_behind(p):
    w, a, x, r = case(4, dim=3)
    x[:, 1] = 0
    found = cube_fates(w, a, x, r, ACTIVATIONS[p])
    assert (found.directions.directions[:, 1] == 0).all()
    plain = cube_fates(w[:, [0, 2]], a, x[:, [0, 2]], r, ACTIVATIONS[p])
    same = (found.lines == plain.lines) & (found.signs == plain.signs)
    assert same.mean() > 0.9  # steps are shares of the largest weight, that of the still input included


def test_a_mean_residual_takes_all_output_weights_along():
    w, a, x, r = case(0)
    for shift in (1.0, -1.0):
        found = cube_fates(w, a, x, r - r.mean() + shift, "sigmoid")
        np.testing.assert_array_equal(found.signs, shift)
        np.testing.assert_array_equal(found.flips, a * shift < 0)
    even = cube_fates(w, a, x, r - r.mean() + 1, lambda z: 1 + z * z)
    up = even.directions.attracts_positive
    assert up[even.lines[even.lines >= 0]].all()
    without = cube_fates(w, a, x, r - r.mean(), "sigmoid")
    assert set(without.signs.tolist()) == {1, -1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"activation": "relu"}, "the multiplicity of relu is undefined"),
        ({"weights": np.ones((4, 2))}, r"units x 3 inputs \(the bias last\), not of shape \(4, 2\)"),
        ({"outputs": np.ones(3)}, "one output weight for each of 4 units"),
        ({"residual": np.ones((40, 2))}, "one residual for each sample is needed, not 2"),
        ({"p": 3}, "the directions are of p = 3, 3 inputs and 1 output, the network has p = 2, 3 inputs"),
    ],
)
def test_what_cannot_be_told_is_refused(change, said):
    _, _, x, r = case(0)
    given = {"weights": np.ones((4, 3)), "outputs": np.ones(4), "x": x, "residual": r, "activation": "x_tanh"} | change
    directions = cube_directions(x, r, given.pop("p")) if "p" in given else None
    with pytest.raises(c.InputError, match=said):
        cube_fates(**given, directions=directions)


FC = c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
WAVES = c.two_waves()


def shares(activation, data, width, optimizer, std, steps, runs=5):
    """Of trained neurons: share on the predicted side of the predicted line, of decided ones, and of permuted fates."""
    network, saved = c.Dense((data.dim, width, 1), activation), c.At((0, steps))
    start = c.Init(c.Normal(std))
    run = c.train(c.Experiment(network, start, data, optimizer, steps, save=saved, record=saved, dtype="float64"), runs)
    rows, stream = [], np.random.default_rng(0)
    for seed in range(runs):
        assert run.loss[seed, -1] > 0.99 * run.loss[seed, 0], "still the initial stage"
        x, y = run.data(seed)
        start_a, a = (run.parameters_at(step, seed)["output.weight"][0] for step in (0, steps))
        found = cube_fates(run.weights(1, 0, seed), start_a, np.c_[x, np.ones(len(x))], y[:, 0], activation)
        line, side = nearest(run.weights(1, steps, seed), found.directions)

        def right(order, found=found, line=line, side=side):
            return (line == found.lines[order]) & (side == found.signs[order])

        own = right(np.arange(width))
        control = np.mean([right(stream.permutation(width)) for _ in range(20)])
        turned = ((np.sign(a) != np.sign(start_a)) == found.flips).mean()
        rows.append((own.mean(), own[found.decided].mean(), control, turned))
    return np.mean(rows, axis=0)


def test_trained_neurons_end_as_told():
    own, decided, control, turned = shares("x_tanh", WAVES, 200, c.SignGD(2e-7), 5e-6, 3000, runs=3)
    assert own > 0.96
    assert decided > 0.97
    assert control < 0.35
    assert turned > 0.96


SIGN = (c.SignGD(2e-7), 5e-6)
ADAM = (c.Adam(2e-7, eps=1e-30), 5e-6)
LARGER = (c.Adam(1e-6, eps=1e-30), 5e-5)


@pytest.mark.trials
@pytest.mark.parametrize(
    ("p", "data", "width", "optimizer", "least"),
    [
        (1, FC, 50, SIGN, 0.99), (1, FC, 50, ADAM, 0.99), (1, FC, 50, LARGER, 0.99),
        (1, WAVES, 200, SIGN, 0.98), (1, WAVES, 200, ADAM, 0.99), (1, WAVES, 200, LARGER, 0.99),
        (2, FC, 50, SIGN, 0.9), (2, FC, 50, ADAM, 0.8), (2, FC, 50, LARGER, 0.8),
        (2, WAVES, 200, SIGN, 0.97), (2, WAVES, 200, ADAM, 0.97), (2, WAVES, 200, LARGER, 0.97),
        (3, FC, 50, SIGN, 0.95), (3, FC, 50, ADAM, 0.9), (3, FC, 50, LARGER, 0.9),
        (3, WAVES, 200, SIGN, 0.95), (3, WAVES, 200, ADAM, 0.93), (3, WAVES, 200, LARGER, 0.93),
    ],
)  # fmt: skip
def test_trained_neurons_of_both_papers_data_end_as_told(p, data, width, optimizer, least):
    """Adam remembers gradients for longer than a neuron takes to turn, so fewer of its neurons end as told."""
    own, decided, control, turned = shares(ACTIVATIONS[p], data, width, *optimizer, 3000)
    assert own > least
    assert decided > own - 1e-9
    assert control < (0.55 if p == 1 else 0.3)
    assert turned > 0.97


@pytest.mark.trials
@pytest.mark.parametrize("activation", ["sigmoid", "softplus"])
@pytest.mark.parametrize("optimizer", [c.SignGD(2e-7), c.Adam(2e-7, eps=1e-30)])
def test_no_constant_is_learned_first(activation, optimizer):
    own, *_ = shares(activation, FC, 50, optimizer, 5e-6, 1000)
    assert own == 1
