import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear
from tensors import rotation

from condensation import GD, Arrays, At, Dense, Experiment, Init, InputError, Normal, train
from condensation.theory import extremal_directions
from condensation.theory._climb import alternate, search, starting_points


def growth(u, x, r, slope=0.0):
    z = np.atleast_2d(u) @ x.T
    return np.maximum(z, slope * z) @ r / len(x)


def sphere(count, dim, seed):
    u = np.random.default_rng(seed).normal(size=(count, dim))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


@settings(max_examples=50)
@given(st.integers(1, 25), st.sampled_from([0.0, 0.1, 0.5, -1.0]), st.integers(0, 10**6))
def test_the_plane_is_enumerated_as_a_fine_grid_does(samples, slope, seed):
    stream = np.random.default_rng(seed)
    x, r = stream.normal(size=(samples, 2)), stream.normal(size=samples)
    found = extremal_directions(x, r, slope)
    assert (found.certified, found.oriented) == (True, True)
    np.testing.assert_allclose(growth(found.directions, x, r, slope), found.values, atol=1e-12)
    angle = np.linspace(0, 2 * np.pi, 40001)[:-1]
    f = growth(np.stack([np.cos(angle), np.sin(angle)], axis=1), x, r, slope)
    for sign in (1, -1):
        listed = found.orientations(sign)
        at = np.mod(np.arctan2(listed[:, 1], listed[:, 0]), 2 * np.pi)
        g = sign * f
        peaks = angle[(g > np.roll(g, 1)) & (g >= np.roll(g, -1)) & (g > 1e-6)]
        for one, others in ((peaks, at), (at[sign * found.values[sign * found.values > 0] > 1e-5], peaks)):
            away = np.abs(np.mod(one[:, None] - others + np.pi, 2 * np.pi) - np.pi)
            assert (away.min(axis=1, initial=np.inf) < 4e-4).all()


def test_a_neuron_of_relu_settles_inside_a_sector_or_on_a_sample():
    """r = (1, 1) on the axes: their sum. With a third sample that pulls back: the kink of that sample."""
    inside = extremal_directions(np.eye(2), np.array([1.0, 1.0]))
    np.testing.assert_allclose(inside.directions, [[0.5**0.5, 0.5**0.5]])
    np.testing.assert_allclose(inside.eigenvalues, [[-(0.5**0.5)]])
    assert "no field" in inside.note, "where no sample is active nothing moves"
    pulled = extremal_directions(np.array([[1.0, 0], [0, 1], [-1, 2]]), np.array([1.0, 1.0, -3.0]))
    best = pulled.orientations(1)
    np.testing.assert_allclose(best, np.array([[2, 1]]) / 5**0.5, atol=1e-12)
    assert pulled.eigenvalues[pulled.attracts_positive].tolist() == [[-np.inf]]


def test_leaky_relu_of_slope_near_one_is_linear():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(30, 2)), stream.normal(size=30)
    found = extremal_directions(x, r, 1 - 1e-9)
    g = r @ x / np.linalg.norm(r @ x)
    np.testing.assert_allclose(found.orientations(1), [g], atol=1e-6)
    np.testing.assert_allclose(found.orientations(-1), [-g], atol=1e-6)


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_the_search_finds_in_the_plane_what_the_sweep_lists(slope):
    for seed in range(10):
        stream = np.random.default_rng(seed)
        x, r = stream.normal(size=(12, 2)), stream.normal(size=12)
        swept = extremal_directions(x, r, slope)
        u, kinks, hits = search(x, r / 12, slope, 200)
        assert len(u) == swept.count
        assert hits.sum() <= 400
        order = [np.abs(swept.directions - one).max(axis=1).argmin() for one in u]
        np.testing.assert_allclose(swept.directions[order], u, atol=1e-9)
        np.testing.assert_array_equal(np.isinf(swept.eigenvalues[order, 0]), kinks == 1)


@pytest.mark.parametrize(("dim", "slope"), [(3, 0.0), (3, 0.3), (6, 0.0), (6, -1.0)])
def test_above_the_plane_all_found_are_local_maxima(dim, slope):
    stream = np.random.default_rng(dim)
    x, r = stream.normal(size=(50, dim)), stream.normal(size=50)
    found = extremal_directions(x, r, slope)
    assert (found.method, found.certified, found.starts) == ("fixed points", False, 200)
    assert found.count > 1
    np.testing.assert_allclose(growth(found.directions, x, r, slope), found.values, atol=1e-12)
    for u, value in zip(found.directions, found.values, strict=True):
        near = u + 1e-6 * stream.normal(size=(500, dim))
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        assert (np.sign(value) * (growth(near, x, r, slope) - value) < 1e-13).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_neurons_of_relu_end_in_the_orientations(dim):
    """Explicit Euler steps that grow shorter, of both signs of a, from points where the amplitude grows."""
    stream = np.random.default_rng(dim)
    x, r = stream.normal(size=(20, dim)), stream.normal(size=20)
    found = extremal_directions(x, r)
    for sign in (1, -1):
        u = sphere(60, dim, seed=sign + 1)
        u = u[sign * growth(u, x, r) > 1e-2]
        for step in 0.1 / np.arange(1, 20000) ** 0.7:
            u = u + step * sign * ((u @ x.T > 0) * r) @ x
            u /= np.linalg.norm(u, axis=1, keepdims=True)
        away = np.abs(u[:, None] - found.orientations(sign)).max(axis=2).min(axis=1)
        assert away.max() < 1e-2


def test_rotated_inputs_rotate_and_dead_inputs_do_not_matter():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(30, 2)), stream.normal(size=30)
    turn = rotation(4, 0)
    found, wide = extremal_directions(x, r), extremal_directions(np.concatenate([x, 0 * x], axis=1) @ turn.T, r)
    assert (wide.outside, wide.certified) == (2, True)
    np.testing.assert_allclose(wide.directions, found.directions @ turn[:, :2].T, atol=1e-9)
    np.testing.assert_allclose(wide.values, found.values)
    line = extremal_directions(np.array([[1.0], [-2.0]]), np.array([3.0, 5.0]))
    assert sorted(line.values.tolist()) == [1.5, 5.0]
    assert line.attracts_positive.all()


def test_samples_that_only_pull_or_are_empty():
    """All residuals negative: for a > 0 nothing grows, for a < 0 the mean; a zero input changes nothing but n."""
    x = np.abs(np.random.default_rng(0).normal(size=(10, 3))) + 0.1
    found = extremal_directions(x, -np.ones(10))
    assert found.attracts_negative.tolist() == [True]
    np.testing.assert_allclose(found.directions[0], x.sum(axis=0) / np.linalg.norm(x.sum(axis=0)))
    padded = extremal_directions(np.concatenate([x, np.zeros((10, 3))]), -np.ones(20))
    np.testing.assert_allclose(padded.values, found.values / 2)
    plane = extremal_directions(np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [-1.0, 1.0]]), np.ones(4))
    np.testing.assert_allclose(plane.directions, [[0, 1]], atol=1e-15)


def test_many_samples_in_the_plane_are_swept_at_once():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(20_000, 2)), stream.normal(size=20_000)
    found = extremal_directions(x, r)
    for u, value in zip(found.directions, found.values, strict=True):
        near = u + 1e-7 * stream.normal(size=(20, 2))
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        assert (np.sign(value) * (growth(near, x, r) - value) < 1e-13).all()


@pytest.mark.parametrize(
    ("r", "slope", "sentence"),
    [
        (np.ones((3, 2, 1)), 0.0, "one number or a row of outputs each"),
        (np.zeros(3), 0.0, "all residuals are zero"),
        (np.ones(3), 1.0, "number below 1"),
        (np.ones(3), "0.1", "number below 1"),
        (np.ones(3), float("nan"), "number below 1"),
        (np.ones(2), 0.0, "residuals of 3 samples"),
    ],
)
def test_input_that_cannot_be_used_gets_a_sentence(unchecked, r, slope, sentence):
    with pytest.raises(InputError, match=sentence):
        extremal_directions(np.eye(3), r, slope)


def growths(u, x, r, slope=0.0):
    """|G(u)| of several outputs."""
    z = np.atleast_2d(u) @ x.T
    return np.linalg.norm(np.maximum(z, slope * z) @ r / len(x), axis=1)


@settings(max_examples=50)
@given(st.integers(1, 25), st.integers(2, 4), st.sampled_from([0.0, 0.1, -1.0]), st.integers(0, 10**6))
def test_maxima_of_several_outputs_on_the_circle_are_those_of_a_fine_grid(samples, outputs, slope, seed):
    stream = np.random.default_rng(seed)
    x, r = stream.normal(size=(samples, 2)), stream.normal(size=(samples, outputs))
    found = extremal_directions(x, r, slope)
    assert (found.certified, found.oriented, found.method) == (True, True, "sectors")
    assert found.attracts_positive.all()
    np.testing.assert_array_equal(found.orientations(1), found.directions)
    np.testing.assert_allclose(growths(found.directions, x, r, slope), found.values, atol=1e-12)
    g = np.maximum(found.directions @ x.T, slope * found.directions @ x.T) @ r / samples
    np.testing.assert_allclose(found.outputs * found.values[:, None], g, atol=1e-12)
    assert found.eigenvalues.shape == (found.count, outputs)
    assert (found.eigenvalues < 0).all()
    angle = np.linspace(0, 2 * np.pi, 40001)[:-1]
    f = growths(np.stack([np.cos(angle), np.sin(angle)], axis=1), x, r, slope)
    peaks = angle[(f > np.roll(f, 1)) & (f >= np.roll(f, -1)) & (f > 1e-6)]
    at = np.arctan2(found.directions[:, 1], found.directions[:, 0])
    curved = found.eigenvalues.max(axis=1) < -1e-3 * found.values  # flatter maxima a grid does not place
    for these, others in ((peaks, at), (at[(found.values > 1e-5) & curved], peaks)):
        away = np.abs(np.mod(these[:, None] - others + np.pi, 2 * np.pi) - np.pi)
        assert (away.min(axis=1, initial=np.inf) < 4e-4).all()


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_the_search_of_several_outputs_finds_in_the_plane_what_the_sweep_lists(slope):
    listed = 0
    for seed in range(10):
        stream = np.random.default_rng(seed)
        x, r = stream.normal(size=(12, 2)), stream.normal(size=(12, 3))
        swept = extremal_directions(x, r, slope)
        u, kinks, hits = alternate(x, r / 12, slope, 200)
        order = [np.abs(swept.directions - end).max(axis=1).argmin() for end in u]
        np.testing.assert_allclose(swept.directions[order], u, atol=1e-8)
        np.testing.assert_array_equal(np.isinf(swept.eigenvalues[order, 0]), kinks == 1)
        assert hits.sum() <= 200
        listed += len(u) / swept.count / 10
    assert listed > 0.95


@pytest.mark.parametrize(("dim", "outputs", "slope"), [(3, 2, 0.0), (3, 5, 0.3), (6, 3, 0.0)])
def test_above_the_plane_all_pairs_found_are_local_maxima(dim, outputs, slope):
    stream = np.random.default_rng(dim)
    x, r = stream.normal(size=(50, dim)), stream.normal(size=(50, outputs))
    found = extremal_directions(x, r, slope)
    assert (found.method, found.certified, found.starts) == ("fixed points", False, 100)
    assert found.count > 1
    assert (found.eigenvalues < 0).all()
    for u, value in zip(found.directions, found.values, strict=True):
        near = u + 1e-5 * stream.normal(size=(500, dim))
        assert (growths(near / np.linalg.norm(near, axis=1, keepdims=True), x, r, slope) < value + 1e-13).all()


def test_one_output_repeated_or_beside_a_zero_has_the_orientations_of_both_its_signs():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(20, 2)), stream.normal(size=20)
    single = extremal_directions(x, r)
    for columns, size in ((np.stack([r, 0 * r], axis=1), 1), (np.stack([r, -r], axis=1), 2**0.5)):
        pairs = extremal_directions(x, columns)
        np.testing.assert_allclose(pairs.directions, single.directions, atol=1e-12)
        np.testing.assert_allclose(pairs.values, size * np.abs(single.values))
        np.testing.assert_allclose(pairs.outputs[:, 0] * size, np.sign(single.values))


def test_a_sector_in_which_all_directions_grow_alike_is_not_certified():
    found = extremal_directions(np.concatenate([np.eye(2), -np.eye(2)]), np.concatenate([np.eye(2), -np.eye(2)]))
    assert not found.certified
    assert "all directions in them grow alike" in found.note


@pytest.mark.trials
@pytest.mark.parametrize(("inputs", "outputs", "least"), [(1, 2, 0.99), (2, 3, 0.97), (5, 4, 0.97)])
def test_relu_networks_of_several_outputs_condense_on_the_orientations(inputs, outputs, least):
    """Share of the norm of 100 neurons within cos .95 of an orientation, by gradient descent from 1e-10."""
    stream = np.random.default_rng(inputs)
    x, y = stream.normal(size=(40, inputs)), stream.normal(size=(40, outputs))
    found = extremal_directions(np.c_[x, np.ones(40)], y)
    experiment = Experiment(
        Dense((inputs, 100, outputs), "relu"), Init(Normal(1e-10)), Arrays(x, y), GD(0.02 / found.values[0]), 900,
        save=At((0, 900)), record=At((0, 900)), dtype="float64",
    )  # fmt: skip
    run = train(experiment, seeds=2)
    assert (run.loss[:, -1] > 0.99 * run.loss[:, 0]).all()
    for k in range(2):
        shares = []
        for step in (0, 900):
            w = run.weights(1, step, k)
            amplitude = np.linalg.norm(w, axis=1)
            on = (w @ found.directions.T / amplitude[:, None]).max(axis=1) > 0.95
            shares.append(amplitude[on].sum() / amplitude.sum())
        assert shares[0] < 0.5
        assert shares[1] > least


def climbed(x, r, slope, starts):
    """The search one start after the other, its convex problem by SciPy."""
    ends = []
    for sign in (1, -1):
        up = sign * r > 0
        rising, heights, pulls = x[up], sign * r[up], x[~up] * -sign * r[~up, None]
        for u in starting_points(x, starts):
            before = None
            while u.any() and not np.array_equal(before, active := rising @ u > 0):
                before, b = active, (np.where(active, 1, slope) * heights) @ rising
                rest = b - pulls.T @ lsq_linear(pulls.T, b, bounds=(slope, 1), method="bvls", tol=1e-14).x
                u = rest / np.linalg.norm(rest) if np.linalg.norm(rest) > 1e-10 * np.abs(r).sum() else 0 * rest
            if u.any():
                ends.append(u)
    return np.array(ends)


@pytest.mark.parametrize(("samples", "dim", "slope"), [(20, 3, 0.0), (40, 4, 0.2), (30, 6, 0.0)])
def test_all_starts_at_once_end_where_they_do_one_by_one(samples, dim, slope):
    for seed in range(3):
        stream = np.random.default_rng(seed)
        x, r = stream.normal(size=(samples, dim)), stream.normal(size=samples) / samples
        u, _, hits = search(x, r, slope, 20)
        expected = climbed(x, r, slope, 20)
        away = np.abs(expected[:, None] - u).max(axis=2)
        assert away.min(axis=1).max() < 1e-9
        np.testing.assert_array_equal(np.bincount(away.argmin(axis=1), minlength=len(u)), hits)
