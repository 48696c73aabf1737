import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from tensors import leading

from condensation.theory._paths import NOWHERE, ON_ITS_WAY, NeuronStates, follow_neurons, time_left


def case(p, seed=0, units=6, dim=3, c=1.5):
    stream = np.random.default_rng(seed)
    x, r = stream.normal(size=(20, dim)), stream.normal(size=20)
    return leading(x, r, p, c), stream.normal(size=(units, dim)), stream.normal(size=units)


def full(states):
    """The weights (w, a), not scaled."""
    return states.z * np.exp(states.log_size)[:, None]


def near_end(dynamics, w, a):
    """Each neuron's own time, near the end of its growth, with its state: by SciPy, one neuron after the other."""
    size = lambda t, z: np.log(np.linalg.norm(z)) - 3  # noqa: E731
    size.terminal = True
    for start in np.concatenate([w, a[:, None]], axis=1):
        solved = solve_ivp(
            lambda t, z: dynamics.velocity(z[None])[0], (0, 20), start, rtol=1e-10, atol=1e-12, events=size
        )
        yield start, solved.t[-1], solved.y[:, -1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_paths_are_those_of_the_differential_equation(p):
    dynamics, w, a = case(p)
    for start, time, expected in near_end(dynamics, w, a):
        end, _ = follow_neurons(
            dynamics, NeuronStates.begin(dynamics, start[None, :-1], start[-1:]), until=time, rtol=1e-9
        )
        np.testing.assert_allclose(full(end)[0], expected, rtol=1e-4)
        assert end.time[0] == pytest.approx(time)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_the_balance_is_conserved(p):
    dynamics, w, a = case(p)
    start = NeuronStates.begin(dynamics, w, a)
    end, _ = follow_neurons(
        dynamics, start, lambda active, before, now: np.where(now.log_size > 3, 0, ON_ITS_WAY), until=20
    )
    scale = np.exp(2 * np.maximum(end.log_size, start.log_size))
    assert (np.abs(dynamics.balance(full(end)) - dynamics.balance(full(start))) < 1e-5 * scale).all()


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_path_is_the_same_at_every_scale_at_another_speed(p):
    dynamics, w, a = case(p)
    grown = lambda active, before, now: np.where(now.log_size - begin.log_size[active] > 2, 0, ON_ITS_WAY)  # noqa: E731
    ends = []
    for scale in (1.0, 1e-12):
        begin = NeuronStates.begin(dynamics, scale * w, scale * a)
        end, place = follow_neurons(dynamics, begin, grown)
        assert (place == 0).all()
        ends.append((end.z, end.time * scale ** (p - 1), end.log_size - np.log(scale)))
    for large, small in zip(*ends, strict=True):
        np.testing.assert_allclose(large, small, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize("balance", ["w", "none", "a", "a far"])
def test_time_left_is_the_integral_over_the_amplitude(p, balance):
    r, a = {"w": (1.0, 0.1), "none": (1.0, p**-0.5), "a": (0.5, 1.0), "a far": (1e-3, 1.0)}[balance]
    dynamics = leading(np.array([[1.0]]), np.array([2.0]), p, -1.5)  # F = 2
    states = NeuronStates.begin(dynamics, np.array([[r]]), np.array([-a]))
    b = r**2 - p * a**2
    # s = r e^q, for an integrand that is smooth
    expected, _ = quad(lambda q: (r * np.exp(q)) ** (2 - p) / np.sqrt((r * np.exp(q)) ** 2 - b), 0, 60, limit=200)
    found = time_left(dynamics, states, np.array([2.0]))
    assert found[0] == pytest.approx(np.sqrt(p) / 3 * expected, rel=1e-6)


def test_time_left_at_balance_and_far_from_it_for_p_2():
    dynamics = leading(np.array([[1.0]]), np.array([2.0]), 2, 1.5)
    balanced = NeuronStates.begin(dynamics, np.array([[np.sqrt(2) * 0.1]]), np.array([0.1]))
    assert time_left(dynamics, balanced, np.array([2.0]))[0] == pytest.approx(1 / (0.1 * 1.5 * 2))
    tiny = NeuronStates.begin(
        dynamics, np.array([[1e-40]]), np.array([0.1])
    )  # w grows at the rate a c F until it is about a
    assert time_left(dynamics, tiny, np.array([2.0]))[0] == pytest.approx(
        np.log(2 * np.sqrt(2) * 0.1 / 1e-40) / 0.3, rel=1e-9
    )


def test_a_neuron_that_is_zero_stays_and_arrives_nowhere():
    dynamics, w, a = case(2)
    w[1], a[1] = 0, 0
    end, place = follow_neurons(dynamics, NeuronStates.begin(dynamics, w, a), until=0.1)
    assert place[1] == NOWHERE
    assert not end.z[1].any()
    assert np.isfinite(full(end)).all()
