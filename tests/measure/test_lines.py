import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import InputError, find_lines
from condensation.measure import chance_cosine, count_lines


def planted(stream, dim, shares, units, noise, separation):
    """Units on lines at least ``separation`` degrees apart, each turned by ``noise`` degrees (std), signs random."""
    axes = []
    while len(axes) < len(shares):
        axis = stream.normal(size=dim)
        axis /= np.linalg.norm(axis)
        if all(abs(axis @ other) < np.cos(np.deg2rad(separation)) for other in axes):
            axes.append(axis)
    labels = stream.permutation(np.repeat(np.arange(len(shares)), np.rint(np.array(shares) * units).astype(int)))
    axes = np.array(axes)
    away = stream.normal(size=(len(labels), dim))
    away -= (away * axes[labels]).sum(1, keepdims=True) * axes[labels]
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    angle = np.deg2rad(noise) * stream.normal(size=(len(labels), 1))
    weights = (np.cos(angle) * axes[labels] + np.sin(angle) * away) * stream.choice([-1, 1], (len(labels), 1))
    return axes, labels, weights * stream.uniform(0.5, 1.5, (len(labels), 1))


@pytest.mark.parametrize("dim", [2, 3, 4, 6, 20, 200])
@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5), (0.6, 0.25, 0.15)])
@pytest.mark.parametrize("units", [60, 400])
def test_planted_lines_are_recovered(dim, shares, units):
    """Separation of 40 degrees, noise of 2 degrees: count, labels, directions to 4 standard errors, shares to 0.05."""
    stream = np.random.default_rng([dim, len(shares), units])
    for _ in range(10):
        axes, labels, weights = planted(stream, dim, shares, units, noise=2, separation=40)
        found = find_lines(weights)
        assert found.condensed
        assert found.count == len(shares)
        match = np.abs(found.directions @ axes.T)
        off = np.rad2deg(np.arccos(np.clip(match.max(axis=0), 0, 1)))
        assert (off < 4 * 2 / np.sqrt(np.array(shares) * units)).all()
        order = match.argmax(axis=1)
        norms = np.linalg.norm(weights, axis=1)
        true = np.array([norms[labels == k].sum() for k in order]) / norms.sum()
        np.testing.assert_allclose(found.shares, true, atol=0.05)
        assert (order[found.labels[found.labels >= 0]] == labels[found.labels >= 0]).mean() > 0.97


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dim", [2, 3, 4, 5, 6, 8, 19, 50, 200, 800])
@pytest.mark.parametrize("units", [20, 50, pytest.param(200, marks=pytest.mark.trials)])
def test_random_weights_are_not_condensed(dim, units):
    """At most 1% of 1000 draws."""
    stream = np.random.default_rng([dim, units, 1])
    alarms = sum(count_lines(stream.normal(size=(100, units, dim))).condensed.sum() for _ in range(10))
    assert alarms <= 10


@pytest.mark.parametrize("dim", [2, 3, 40])
def test_large_random_layers_are_not_condensed(dim):
    """The sampled way, above a thousand units."""
    stream = np.random.default_rng(dim)
    assert not any(find_lines(stream.normal(size=(1500, dim))).condensed for _ in range(50))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("ratio", "units"), [(0.8, 1000), (0.6, 200), (0.3, 50), (0.3, 200)])
def test_an_uneven_cloud_in_the_plane_is_not_condensed(ratio, units):
    stream = np.random.default_rng(units)
    alarms = sum(find_lines(stream.normal(size=(units, 2)) * [1, ratio]).condensed for _ in range(200))
    assert alarms <= 4


@pytest.mark.parametrize("heavy", [3, 24, 200])
def test_a_few_heavy_units_of_a_large_layer_are_seen(heavy):
    """When the norm concentrates, a line of a few units may hold nearly all of it."""
    stream = np.random.default_rng(heavy)
    weights = stream.normal(size=(5000, 100))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    weights[:heavy] = np.ones(100) / 10 * (5000 - heavy) * 19 / heavy
    found = find_lines(weights)
    assert (found.count, found.condensed) == (1, True)
    assert found.cover == pytest.approx(0.95)
    assert found.k_eff == pytest.approx(1 / 0.95**2, rel=0.02)


@pytest.mark.parametrize("units", [1024, 20_000])
def test_k_eff_of_large_random_layers_is_their_number_of_units(units):
    found = find_lines(np.random.default_rng(0).normal(size=(units, 100)))
    assert found.k_eff == pytest.approx(units, rel=0.02)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float32, 1e-25), (np.float32, 1e18), (np.float64, 1e-200), (np.float64, 1e160), (np.float16, 100)],
)
def test_lines_of_weights_at_the_ends_of_their_precision(dtype, scale):
    stream = np.random.default_rng(0)
    weights = (np.outer(np.sign(stream.normal(size=40)), stream.normal(size=20)) * scale).astype(dtype)
    found = find_lines(weights)
    assert (found.count, found.orientations, found.condensed) == (1, 2, True)
    assert found.cover == pytest.approx(1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("units", [20, 100])
def test_random_weights_with_heavy_tails_are_not_condensed_in_the_plane(units):
    stream = np.random.default_rng(units)
    alarms = 0
    for _ in range(1000):
        weights = stream.normal(size=(units, 2)) * np.exp(stream.normal(size=(units, 1)))
        alarms += find_lines(weights).condensed
    assert alarms <= 10


def test_a_fixed_cosine_would_call_random_weights_in_the_plane_condensed():
    """Why the plane has its own way: the trap that the threshold against chance avoids."""
    weights = np.random.default_rng(0).normal(size=(100, 2))
    assert find_lines(weights, threshold=0.95).condensed
    assert not find_lines(weights).condensed


@given(st.integers(2, 30), st.integers(2, 60), st.integers(0, 10**6), st.floats(1e-12, 1e12))
def test_lines_do_not_depend_on_scale_signs_order_or_rotation(dim, units, seed, scale):
    stream = np.random.default_rng(seed)
    _, _, weights = planted(stream, dim, (0.5, 0.5), units, noise=3, separation=45)
    found = find_lines(weights)
    order = stream.permutation(len(weights))
    signs = stream.choice([-1, 1], (len(weights), 1))
    other = find_lines((signs * weights * scale)[order])
    assert (other.count, other.condensed) == (found.count, found.condensed)
    assert other.cover == pytest.approx(found.cover)
    assert other.k_eff == pytest.approx(found.k_eff)
    if dim > 2:
        turn = np.linalg.qr(stream.normal(size=(dim, dim)))[0]
        turned = find_lines(weights @ turn)
        assert turned.count == found.count
        np.testing.assert_allclose(np.abs((turned.directions @ turn.T * found.directions).sum(1)), 1, atol=1e-6)


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_equal_lines_give_k_eff_exactly(k, seed):
    stream = np.random.default_rng(seed)
    axes = np.linalg.qr(stream.normal(size=(10, 10)))[0][:k]
    found = find_lines(np.repeat(axes, 5, axis=0) * stream.choice([-1, 1], (5 * k, 1)))
    assert found.count == k
    assert found.k_eff == pytest.approx(k)
    assert found.cover == pytest.approx(1)


def test_orientations_and_lines_are_two_numbers():
    axis = np.array([1.0, 2, 3, 4, 5])
    both = np.concatenate([np.tile(axis, (10, 1)), np.tile(-axis, (5, 1))])
    found = find_lines(both)
    assert (found.count, found.orientations) == (1, 2)
    assert (find_lines(np.tile(axis, (10, 1))).orientations) == 1
    np.testing.assert_allclose(found.directions[0], axis / np.linalg.norm(axis))
    np.testing.assert_array_equal(found.signs, [1] * 10 + [-1] * 5)


def test_light_or_lone_units_are_no_line():
    heavy = np.tile([[1.0, 0, 0, 0]], (40, 1))
    light = np.tile([[0.0, 0.01, 0, 0]], (40, 1))
    lone = np.array([[0.0, 0, 4.0, 0]])
    found = find_lines(np.concatenate([heavy, light, lone]))
    assert found.count == 1
    assert found.cover == pytest.approx(40 / 44.4)
    assert (found.labels[40:] == -1).all()
    assert (found.signs[40:] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_layer_is_counted_like_a_small_one(dtype):
    stream = np.random.default_rng(0)
    axes, labels, weights = planted(stream, 100, (0.5, 0.3, 0.1), 6000, noise=3, separation=60)
    rest = stream.normal(size=(600, 100)) / 10
    large = np.concatenate([weights, rest]).astype(dtype)
    found = find_lines(large)
    assert found.count == 3
    norms = np.linalg.norm(large, axis=1)
    true = np.array([norms[: len(labels)][labels == k].sum() for k in range(3)]) / norms.sum()
    np.testing.assert_allclose(found.shares, true, atol=1e-3)
    assert (np.abs((found.directions * axes).sum(1)) > 0.9995).all()
    near = 0.0
    shares, unit = norms / norms.sum(), large / norms[:, None]
    for start in range(0, len(large), 500):
        near += shares[start : start + 500] @ (np.abs(unit[start : start + 500] @ unit.T) >= found.threshold) @ shares
    assert found.k_eff == pytest.approx(1 / near, rel=0.1)


def test_chance_level_agrees_with_random_directions():
    stream = np.random.default_rng(0)
    for dim in (2, 3, 6, 19):
        u, v = stream.normal(size=(2, 200_000, dim))
        cosine = np.abs((u * v).sum(1)) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
        assert np.quantile(cosine, 0.99) == pytest.approx(chance_cosine(dim), abs=0.005)
    np.testing.assert_allclose([chance_cosine(d) for d in (2, 4, 6, 19)], [0.99988, 0.9587, 0.8745, 0.5614], atol=5e-5)


def test_history_counts_each_step_and_seed():
    stream = np.random.default_rng(0)
    random = stream.normal(size=(30, 6))
    line = np.outer(stream.normal(size=30), stream.normal(size=6))
    gone = np.full((30, 6), np.nan)
    history = count_lines(np.array([[random, line], [line, gone]]))
    np.testing.assert_array_equal(history.condensed, [[False, True], [True, False]])
    for counts in (history.lines, history.orientations):
        np.testing.assert_array_equal(np.isnan(counts), [[False, False], [False, True]])  # diverged: not -1 lines
    np.testing.assert_array_equal(history.lines[[0, 1], [1, 0]], 1)
    assert np.isnan(history.k_eff[1, 1])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(5), r"units x inputs, both at least 1, not of shape \(5,\)"),
        (np.ones((0, 5)), r"not of shape \(0, 5\)"),
        (np.array([[1.0, 2], [np.nan, 1]]), "1 of 2 units hold NaN or Inf, first unit 1"),
        (np.zeros((3, 4)), "all 3 units have norm zero"),
        (np.ones((3, 1)), "at least 2 inputs"),
        ([["a"]], "real numbers"),
        ([[1.0], [1.0, 2.0]], "array of numbers"),
        (np.ones((3, 2)) * 1j, "real numbers, not of complex128"),
    ],
)
def test_weights_without_directions_are_refused(weights, said):
    with pytest.raises(InputError, match=said):
        find_lines(weights)


def test_units_of_norm_zero_are_told_and_left_out():
    weights = np.concatenate([np.tile([[1.0, 1, 1]], (20, 1)), np.zeros((2, 3))])
    with pytest.warns(UserWarning, match="2 of 22 units have norm zero and are on no line"):
        found = find_lines(weights)
    assert found.condensed
    assert (found.labels[-2:] == -1).all()


def test_a_single_unit_is_no_line():
    found = find_lines(np.array([[1.0, 2.0, 3.0]]))
    assert (found.count, found.condensed) == (0, False)
