"""Plateaus of loss curves: staircases whose answer is known, decays that have none, and curves that end early."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import InputError
from condensation.measure import find_plateaus


def staircase(rng, drops, noise=0.0, records=600):
    """A loss that stands still, falls by a factor of 2 to 20 within an eighth of that time or less, and so on."""
    times, heights, still = [0.0], [0.0], []
    for _ in range(drops):
        length = 100 * 10 ** rng.uniform(0, 0.7)
        still.append((times[-1], times[-1] + length))
        times += [times[-1] + length, times[-1] + length * (1 + 1 / rng.uniform(8, 20))]
        heights += [heights[-1], heights[-1] - rng.uniform(0.7, 3)]
    still.append((times[-1], times[-1] + 300))
    t = np.linspace(0, times[-1] + 300, records)
    return t, np.exp(np.interp(t, times, heights) + noise * rng.standard_normal(records)), np.array(still)


@given(seed=st.integers(0, 10_000), drops=st.integers(0, 5), noise=st.sampled_from([0.0, 0.003, 0.01]))
def test_the_plateaus_of_a_staircase_are_found(seed, drops, noise):
    t, loss, still = staircase(np.random.default_rng(seed), drops, noise)
    found = find_plateaus(t, loss)
    assert found.shape == still.shape
    assert (np.abs(found - still).max(axis=1) < 0.15 * np.diff(still)[:, 0] + 2 * t[1]).all()


@given(seed=st.integers(0, 10_000), scale=st.floats(-12, 12), pace=st.floats(-6, 6))
def test_neither_the_unit_of_the_loss_nor_that_of_time_matters(seed, scale, pace):
    t, loss, _ = staircase(np.random.default_rng(seed), 3)
    found = find_plateaus(t * 10**pace, loss * 10**scale)
    np.testing.assert_allclose(found, find_plateaus(t, loss) * 10**pace, rtol=1e-9)


@given(
    seed=st.integers(0, 10_000), noise=st.floats(0, 0.02), falls=st.floats(2, 40), records=st.integers(50, 2000),
    power=st.floats(0.3, 4), shift=st.floats(0, 3),
)  # fmt: skip
def test_one_long_decay_has_no_plateaus(seed, noise, falls, records, power, shift):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, records)
    assert not len(find_plateaus(t, np.exp(noise * rng.standard_normal(records) - falls * t)))
    geometric = np.unique(np.geomspace(1, 1e5, records).round())
    slow = (geometric + shift) ** -power * np.exp(noise * rng.standard_normal(len(geometric)))
    assert not len(find_plateaus(geometric, slow))


def test_a_decay_to_a_floor_has_its_floor_and_a_slow_escape_its_start():
    t = np.arange(1000.0)
    ((first, last),) = find_plateaus(t, 0.2 + np.exp(-t / 20))
    assert 20 * np.log(5) < first < 100  # the rest is below a fifth of the floor there
    assert last == 999
    ((first, last),) = find_plateaus(t, 1 / (1 + 1e-6 * np.exp(t / 40)) + 1e-3)
    fallen = 40 * np.log(1e6 * (np.exp(0.1) - 1))  # a tenth is gone
    assert first == 0
    assert abs(last - fallen) < 2


def test_a_plateau_may_be_bumpy_and_a_spike_is_none():
    rng = np.random.default_rng(0)
    t = np.arange(400)
    steps = np.where(t < 200, 1.0, 0.2) * np.exp(0.1 * rng.standard_normal(400))
    assert len(find_plateaus(t, steps)) == 2
    calm = np.interp(t, [0, 200, 210, 399], [1, 1, 0.2, 0.2])
    calm[[50, 300]] *= 30
    found = find_plateaus(t, calm)
    assert np.abs(found - [[0, 200], [210, 399]]).max() < 10


def test_edges():
    t = np.arange(10)
    assert find_plateaus(t, np.ones(10)).tolist() == [[0, 9]]
    assert find_plateaus([0], [1.0]).shape == find_plateaus([], []).shape == (0, 2)
    assert find_plateaus(t, np.where(t < 6, 2.0, np.nan)).tolist() == [[0, 5]]  # diverged
    assert find_plateaus(t, np.where(t < 6, 2.0, 0.0)).tolist() == [[0, 5]]  # nothing is left to learn
    assert not len(find_plateaus(t, np.where(t < 2, 2.0, np.inf)))
    assert find_plateaus(t, np.linspace(1, 5, 10)).tolist() == [[0, 9]]  # never falls
    stairs = np.interp(np.arange(300), [0, 100, 110, 299], [1, 1, 0.95, 0.95])
    assert len(find_plateaus(np.arange(300), stairs)) == 1
    assert len(find_plateaus(np.arange(300), stairs, flat=0.01)) == 2


@pytest.mark.parametrize(
    ("steps", "loss", "flat", "reason"),
    [
        ([0, 1], [1.0], 0.1, "one loss for each step"),
        ([[0, 1]], [[1.0, 1.0]], 0.1, "one loss for each step"),
        ([0, 2, 1], [1.0, 1, 1], 0.1, "the steps must ascend"),
        ([0, 1, 2], [1.0, 1, 1], 0.0, "flat is a fall"),
    ],
)
def test_what_is_no_curve_is_refused(steps, loss, flat, reason):
    with pytest.raises(InputError, match=reason):
        find_plateaus(steps, loss, flat=flat)
