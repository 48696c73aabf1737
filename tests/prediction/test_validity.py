"""The validity clock on real runs."""

import numpy as np
import pytest

from condensation import (
    GD,
    Adam,
    At,
    Dense,
    Evenly,
    Experiment,
    GradientFlow,
    Init,
    InputError,
    Normal,
    sine_sum,
    train,
)
from condensation.prediction import validity

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)


def run(std=0.005, activation="tanh", steps=200, optimizer=None, **more):
    experiment = Experiment(
        Dense((5, 50, 1), activation), Init(Normal(std)), DATA, optimizer or Adam(1e-3), steps, save=Evenly(21), **more
    )
    return train(experiment, 2)


def test_the_clock_runs_out_as_the_weights_grow():
    clock = validity(run())
    assert clock.loss_ratio[0] == 1
    assert clock.drift[0] == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(clock.share, 1)
    assert clock.leading_error[0] < 0.01 < 0.2 < clock.leading_error[-1]
    assert (np.diff(clock.size)[:5] > 0).all()
    until = clock.valid_until()
    assert until is not None
    assert 0 < until < 200
    at = list(clock.steps).index(until)
    assert clock.leading_error[: at + 1].max() <= 0.05
    assert clock.leading_error[at + 1] > 0.05 or clock.drift[at + 1] > 0.1
    assert f"theory valid until step {until}" in str(clock)


def test_the_leading_error_is_that_of_the_next_taylor_term():
    """tanh z = z - z^3/3: the error is a third of the weighted square."""
    trajectory = run(std=1e-3, steps=20)
    clock = validity(trajectory, steps=[0])
    x, _ = trajectory.data(0)
    z = np.concatenate([x, np.ones((len(x), 1))], axis=1) @ trajectory.weights(1, 0, 0).T
    assert clock.leading_error[0] == pytest.approx(np.linalg.norm(z**3 / 3) / np.linalg.norm(z), rel=1e-3)
    assert clock.size[0] == pytest.approx(np.abs(z).max())


@pytest.mark.trials
def test_small_starts_stay_valid_as_long_as_the_loss_stands():
    """Gradient flow from tiny weights: the theory holds until the loss moves, and directions turn before norms grow."""
    trajectory = run(std=5e-5, steps=400, optimizer=GradientFlow(0.05, stop_ratio=0.99))
    clock = validity(trajectory)
    moved = clock.steps[clock.loss_ratio < 1 - 1e-6]
    assert clock.valid_until() is not None
    assert clock.valid_until() >= moved[0]
    assert clock.loss_until() == 400
    assert clock.turning[0] > clock.growing[0]  # Remark 1, compared fairly: rates of the same kind
    assert clock.turning[-1] < 0.1 * clock.growing[-1]  # on the line it no longer turns


@pytest.mark.parametrize("activation", ["sigmoid", "softplus"])
def test_the_clock_watches_the_residual_of_the_prediction(activation):
    """A constant is learned first: without it the line hardly turns, whatever becomes of the raw residual."""
    trajectory = run(std=1e-4, activation=activation, steps=60, optimizer=GD(0.02))
    clock = validity(trajectory)
    x, y = trajectory.data(0)
    inputs = np.c_[x, np.ones(len(x))]
    residuals = [(y - trajectory.output(x, step, 0))[:, 0] for step in (0, 60)]
    before, after = (inputs.T @ (residual - residual.mean()) for residual in residuals)
    cosine = abs(before @ after) / np.linalg.norm(before) / np.linalg.norm(after)
    assert clock.drift[-1] == pytest.approx(np.arccos(min(cosine, 1)), abs=1e-6)
    assert clock.drift[-1] < 0.1
    assert clock.valid_until() == 60


def test_the_clock_watches_the_lines_of_the_optimizer():
    clock = validity(run(steps=400), steps=[0, 400])
    trajectory = run(steps=400)
    x, y = trajectory.data(0)
    inputs = np.c_[x, np.ones(len(x))]
    vertices = [np.sign(inputs.T @ (y - trajectory.output(x, step, 0))[:, 0]) for step in (0, 400)]
    assert clock.drift[1] == pytest.approx(np.arccos(abs(vertices[0] @ vertices[1]) / 6), abs=1e-6)


def test_the_drift_is_the_angle_between_predictions():
    trajectory = run(steps=400, optimizer=GD(0.02))
    clock = validity(trajectory, steps=[0, 400])
    x, y = trajectory.data(0)
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    before, after = (inputs.T @ (y - trajectory.output(x, step, 0))[:, 0] for step in (0, 400))
    cosine = abs(before @ after) / np.linalg.norm(before) / np.linalg.norm(after)
    assert clock.drift[1] == pytest.approx(np.arccos(cosine), abs=1e-9)


def test_deep_layers_have_a_clock_too():
    network = Dense((5, 12, 12, 1), ("x_tanh", "tanh"), residual=True)
    experiment = Experiment(network, Init(Normal(0.01)), DATA, Adam(1e-3), 100, save=At((50,)))
    trajectory = train(experiment, 1)
    for layer in (1, "dense2"):
        assert validity(trajectory, layer=layer).valid_until() is not None
    with pytest.raises(InputError, match=r"for hidden layers \(dense1, dense2\), not for output"):
        validity(trajectory, layer="output")
    with pytest.raises(InputError, match="step 7 was not saved"):
        validity(trajectory, steps=[7])
