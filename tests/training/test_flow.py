"""Gradient flow against tiny steps of gradient descent and against a closed form."""

import numpy as np
import pytest
from scipy.integrate import quad

from condensation import (  # fmt: skip
    GD,
    Arrays,
    Conv,
    Dense,
    Evenly,
    Every,
    Experiment,
    GradientFlow,
    Init,
    InputError,
    Normal,
    find_lines,
    sine_sum,
    train,
)
from condensation.training import Diverged

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
FLOW = Experiment(
    Dense((5, 50, 1)), Init(Normal(0.005)), DATA, GradientFlow(0.05), 200, save=Evenly(5), record=Evenly(21)
)


@pytest.mark.trials
def test_gradient_descent_tends_to_the_flow_in_proportion_to_its_step():
    flow = train(FLOW, 2)
    gaps = []
    for finer in (10, 100):
        steps = 200 * finer
        descent = train(FLOW.replace(optimizer=GD(0.05 / finer), steps=steps), 2)
        gaps.append(np.abs(descent.weights(1, steps) - flow.weights(1, 200)).max())
    assert gaps[1] < 1e-3
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.1)


def linear(x):
    return x


def one_linear_neuron(std: float) -> Experiment:
    """The loss (a w - 1)^2 / 2: dw/dt = a (1 - a w), da/dt = w (1 - a w)."""
    data = Arrays(np.ones((1, 1)), np.ones(1))
    network = Dense((1, 1, 1), linear, bias=False)
    return Experiment(network, Init(Normal(std)), data, GradientFlow(0.1), 100, save=Every(10))


def test_the_flow_of_tiny_weights_is_the_exponential():
    """While a w is far below 1, w + a grows like exp(t) and w - a falls like exp(-t)."""
    trajectory = train(one_linear_neuron(1e-8), 3)
    w, a = trajectory.history("dense1")[..., 0, 0], trajectory.history("output")[..., 0, 0]
    time = trajectory.saved * 0.1
    np.testing.assert_allclose(w + a, (w + a)[:, :1] * np.exp(time), rtol=1e-6)
    np.testing.assert_allclose((w - a)[:, :5], (w - a)[:, :1] * np.exp(-time[:5]), rtol=1e-4)


@pytest.mark.parametrize(
    ("std", "dtype", "bound"), [(1e-9, "float64", 1e-7), (1e-18, "float64", 1e-8), (1e-30, "float64", 1e-8),
                                (1e-120, "float64", 1e-8), (1e-30, "float32", 1e-4)],
)  # fmt: skip
def test_weights_of_any_size_are_followed_to_the_same_relative_error(std, dtype, bound):
    """A tanh layer whose outputs are far below the targets: w and a turn hyperbolically along the moment g."""
    x, y = np.random.default_rng(0).normal(size=(40, 4)), np.random.default_rng(1).normal(size=(40, 1))
    g = (y.T @ x)[0] / len(x)
    rate, time = np.linalg.norm(g), 10.0
    flow = GradientFlow(time / rate / 100, **({} if dtype == "float64" else {"rtol": 1e-5}))
    network = Dense((4, 20, 1), bias=False)
    run = train(Experiment(network, Init(Normal(std)), Arrays(x, y), flow, 100, save=Every(100), dtype=dtype), 2)
    w, a = run.history("dense1").astype(float), run.history("output").astype(float)[:, :, 0]
    along = w[:, 0] @ g / rate
    moved = np.cosh(time) * along + np.sinh(time) * a[:, 0] - along
    exact = w[:, 0] + moved[..., None] * g / rate
    np.testing.assert_allclose(w[:, 1] / std, exact / std, atol=bound * np.abs(exact / std).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_flow_whose_first_loss_is_infinite_has_diverged_at_once(dtype):
    """It took 100,000 rejected steps before each record; a network of any size must not wait for them."""
    large = 1e30 if dtype == "float32" else 1e200
    data = Arrays(np.ones((400, 50)), np.full((400, 1), large))
    network = Dense((50, 1000, 1), "relu")
    with pytest.warns(Diverged, match="not finite at step 0"):
        run = train(Experiment(network, Init(Normal(1.0)), data, GradientFlow(1.0), 10, dtype=dtype), 1)
    assert [*run.diverged.values()] == [0]


def test_the_flow_to_the_end_is_its_closed_form():
    """With c = w^2 - a^2 conserved, p = a w obeys dp/dt = (1 - p) sqrt(c^2 + 4 p^2): t is an integral over p."""
    trajectory = train(one_linear_neuron(0.1), 3)
    w, a = trajectory.history("dense1")[..., 0, 0], trajectory.history("output")[..., 0, 0]
    c, p = w**2 - a**2, w * a
    np.testing.assert_allclose(c, c[:, :1] * np.ones_like(c), atol=1e-9)
    assert (np.abs(p[:, -1] - 1) < 1e-3).all()
    for k in range(3):
        for i in range(5):
            time, _ = quad(lambda q, k=k: 1 / ((1 - q) * np.sqrt(c[k, 0] ** 2 + 4 * q**2)), p[k, i], p[k, i + 1])
            assert time == pytest.approx(1.0, abs=1e-6)


@pytest.mark.trials
def test_the_flow_stops_exactly_at_a_loss_ratio_and_stands_still_after():
    experiment = FLOW.replace(optimizer=GradientFlow(0.05, stop_ratio=0.99))
    trajectory = train(experiment, 10)
    np.testing.assert_allclose(trajectory.loss[:, -1] / trajectory.loss[:, 0], 0.99, rtol=1e-12)
    stop = trajectory.curves["time"][:, -1]
    assert (stop < 200 * 0.05).all()
    assert len(set(stop)) == 10
    after = trajectory.saved * 0.05 > stop.max()
    assert after.sum() >= 2
    ends = trajectory.history(1)[:, after]
    np.testing.assert_array_equal(ends[:, 0], ends[:, -1])
    running = train(FLOW, 10)
    before = trajectory.recorded * 0.05 < stop.min()
    np.testing.assert_allclose(trajectory.loss[:, before], running.loss[:, before], rtol=1e-7)


def test_the_flow_stops_in_float32_too():
    flow = GradientFlow(0.05, stop_ratio=0.99, rtol=1e-5, atol=1e-9)
    trajectory = train(FLOW.replace(optimizer=flow, dtype="float32", init=Init(Normal(5e-5))), 4)
    assert not trajectory.diverged
    np.testing.assert_allclose(trajectory.loss[:, -1] / trajectory.loss[:, 0], 0.99, rtol=1e-4)


@pytest.mark.trials
def test_tolerance_is_kept_and_recording_hardly_matters():
    loose, plain, tight = (train(FLOW.replace(optimizer=GradientFlow(0.05, rtol=r)), 2) for r in (1e-5, 1e-8, 1e-11))
    final = [t.weights(1, 200) for t in (loose, plain, tight)]
    assert np.abs(final[1] - final[2]).max() < 1e-7
    assert np.abs(final[0] - final[2]).max() < 1e-3
    denser = train(FLOW.replace(record=Every(1)), 2)
    assert np.abs(denser.weights(1, 200) - final[1]).max() < 1e-7


def test_tanh_from_tiny_weights_condenses_on_one_line_under_the_flow():
    experiment = FLOW.replace(init=Init(Normal(5e-5)), optimizer=GradientFlow(0.05, stop_ratio=0.99))
    trajectory = train(experiment, 10)
    for seed in range(10):
        found = find_lines(trajectory.weights(1, 200, seed))
        assert (found.count, found.condensed) == (1, True)


def test_the_flow_of_a_convolutional_network():
    stream = np.random.default_rng(0)
    data = Arrays(stream.normal(size=(6, 1, 5, 5)), stream.normal(size=(6, 1)))
    network = Conv((1, 5, 5), channels=(3,), kernel=3, outputs=1)
    base = Experiment(network, Init(Normal(0.1)), data, GradientFlow(0.1), 20, save=Evenly(2), record=Evenly(3))
    flow = train(base, 1)
    descent = train(base.replace(optimizer=GD(0.001), steps=2000), 1)
    np.testing.assert_allclose(flow.weights("conv1", 20), descent.weights("conv1", 2000), atol=2e-3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.0,), "time_step must be a positive"),
        ((0.1, 1.5), "stop_ratio is a share"),
        ((0.1, None, -1.0), "rtol must be"),
    ],
)
def test_a_flow_that_cannot_be_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        GradientFlow(*arguments)
