"""k_eff and the ranks: their formulas, limits and errors, and that k_eff and the count of lines tell one story."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from condensation import InputError, find_lines
from condensation.measure import bootstrap_errors, chance_cosine, chance_probability, effective_rank, stable_rank


def units_at(degrees, units=30):
    """Units on lines of the plane at given angles, as many on each."""
    angle = np.repeat(np.deg2rad(degrees), units)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@given(st.floats(0, 180), st.floats(1, 90))
def test_in_the_plane_k_eff_is_the_number_of_lines(first, apart):
    """Two equal lines are two from the resolution of 13.3 degrees on, which bins of half a degree blur."""
    assume(abs(apart - 13.3) > 0.6)
    lines = find_lines(units_at([first, first + apart]))
    assert lines.count == pytest.approx(lines.k_eff) == 1 + (apart > 13.3)
    assert lines.threshold == pytest.approx(np.cos(np.deg2rad(13.3)), abs=2e-4)


@given(st.integers(1, 6), st.floats(0, 180), st.integers(0, 10**6))
def test_equal_lines_of_the_plane_count_the_same_both_ways(k, first, seed):
    """With a scatter of two degrees."""
    weights = units_at(first + 180 / k * np.arange(k), units=40)
    lines = find_lines(weights + 0.035 * np.random.default_rng(seed).normal(size=weights.shape))
    assert lines.count == k
    assert lines.k_eff == pytest.approx(k, rel=0.05)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dim", [2, 3, 4, 6, 30])
@pytest.mark.parametrize("units", [20, 200])
def test_random_units_have_the_k_eff_of_chance(dim, units):
    stream = np.random.default_rng([dim, units])
    layers = [find_lines(stream.normal(size=(units, dim))) for _ in range(100)]
    near, chance = (np.mean([1 / getattr(lines, name) for lines in layers]) for name in ("k_eff", "chance_k_eff"))
    assert near == pytest.approx(chance, rel=0.03)  # shares of pairs
    assert 1 / chance < min(units, 1 / chance_probability(dim, layers[0].threshold))


def test_the_most_that_random_units_can_have():
    most = {dim: find_lines(np.random.default_rng(0).normal(size=(4000, dim))).chance_k_eff for dim in (2, 3, 4)}
    assert most[2] == pytest.approx(6.76, rel=0.01)
    assert 90 < min(most[3], most[4]) < 100


@given(st.integers(2, 500), st.floats(1e-6, 0.999))
def test_the_probability_of_a_cosine_is_the_inverse_of_the_cosine_of_chance(dim, probability):
    assert chance_probability(dim, chance_cosine(dim, probability)) == pytest.approx(probability, rel=1e-5)


@given(st.integers(2, 40), st.integers(2, 40), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_ranks_agree_with_singular_values_and_stand_in_order(units, inputs, rank, seed, single):
    stream = np.random.default_rng(seed)
    rank = min(rank, units, inputs)
    weights = stream.normal(size=(units, rank)) @ stream.normal(size=(rank, inputs))
    weights = weights.astype(np.float32 if single else float)
    stable, effective = stable_rank(weights), effective_rank(weights)
    exact = weights.astype(float)
    assert stable == pytest.approx(np.linalg.norm(exact) ** 2 / np.linalg.norm(exact, 2) ** 2)
    assert 1 - 1e-9 <= stable <= effective * (1 + 1e-9)
    assert effective <= rank * (1 + 1e-4)
    assert stable_rank(np.concatenate([weights, weights])) == pytest.approx(stable)


def on_lines(stream, units, dim, lines, noise):
    axes = np.linalg.qr(stream.normal(size=(dim, lines)))[0].T
    noisy = axes[stream.integers(lines, size=units)] + noise * stream.normal(size=(units, dim)) / dim**0.5
    return noisy * stream.normal(size=(units, 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "draw",
    [
        lambda stream: stream.normal(size=(50, 6)),
        lambda stream: stream.normal(size=(200, 3)),
        lambda stream: stream.normal(size=(50, 200)),
        lambda stream: on_lines(stream, 100, 10, 3, 0.1),
        lambda stream: on_lines(stream, 60, 6, 2, 0.5),
        lambda stream: on_lines(stream, 1500, 6, 4, 0.3),
    ],
    ids=["random", "space", "many inputs", "three lines", "scattered lines", "large"],
)
def test_errors_are_the_spread_over_layers_of_other_units(draw):
    """Within a factor of 2.2: the spread over 30 layers is known to 13%, and numbers at their limit vary less."""
    layers = [draw(np.random.default_rng(seed)) for seed in range(30)]
    values = np.array([(find_lines(w).k_eff, effective_rank(w), stable_rank(w)) for w in layers])
    errors = np.mean([tuple(vars(bootstrap_errors(w)).values()) for w in layers[:6]], axis=0)
    ratio = errors / values.std(axis=0, ddof=1)
    assert (ratio > 1 / 2.2).all()
    assert (ratio < 2.2).all()


def test_errors_do_not_call_different_units_alike():
    """Resampling with repetition would give 31 of 50 different units: a k_eff of 25."""
    weights = np.random.default_rng(0).normal(size=(50, 200))
    assert bootstrap_errors(weights).k_eff < 0.1
    assert bootstrap_errors(weights) == bootstrap_errors(weights)
    with pytest.raises(InputError, match="at least 8 units with a direction, not 5"):
        bootstrap_errors(weights[:5])


def spectra(size: int) -> dict[str, np.ndarray]:
    """Large matrices of many kinds: bulks, steps, decays over decades, a few directions with noise, heavy tails."""
    stream, k = np.random.default_rng(size), np.arange(1, size + 1)
    draw = lambda *shape: stream.normal(size=shape)  # noqa: E731
    turns = [np.linalg.qr(draw(size, size))[0] for _ in range(2)]
    singular = {"1/k": 1 / k, "k^-2": k**-2.0, "exponential": np.exp(-k / 50), "step": np.where(k < 200, 1, 0.01)}
    return {
        "random": draw(size, size),
        "tall": draw(2 * size, size),
        "equal": np.eye(size),
        "three directions": draw(size, 3) @ draw(3, size) + 0.01 * draw(size, size),
        "rank 1": np.outer(draw(size), draw(size)),
        "unequal norms": draw(size, size) * np.exp(draw(size, 1) + draw(1, size)),
        "common mean": draw(size, size) + 1,
        **{name: (turns[0] * values) @ turns[1] for name, values in singular.items()},
    }


def check_ranks(name, weights):
    values = np.linalg.svd(weights, compute_uv=False)
    shares = values[values > 0] / values.sum()
    expected = np.exp(-(shares * np.log(shares)).sum())
    for array in (weights, weights[::-1].astype(np.float32)):
        assert effective_rank(array) == pytest.approx(expected, rel=0.03), name
    assert stable_rank(weights) == pytest.approx((values**2).sum() / values[0] ** 2, rel=0.005), name


@pytest.mark.trials
@pytest.mark.parametrize("size", [1100, 1700])
def test_the_ranks_of_large_matrices_are_those_of_the_svd(size, monkeypatch):
    """Estimated, to 3%, of units in any order."""
    monkeypatch.setattr("condensation.measure._spectrum.EXACT", 1000)
    for name, weights in spectra(size).items():
        check_ranks(name, weights)


def test_the_ranks_of_a_large_random_matrix_and_of_few_directions(monkeypatch):
    monkeypatch.setattr("condensation.measure._spectrum.EXACT", 1000)
    stream = np.random.default_rng(0)
    random = stream.normal(size=(1030, 1040))
    check_ranks("random", random)
    check_ranks("three directions", stream.normal(size=(1030, 3)) @ random[:3] + 0.01 * random)
    with pytest.raises(InputError, match="all weights are zero"):
        effective_rank(np.zeros((1030, 1040)))
