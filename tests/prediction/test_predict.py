"""Predictions beside trained networks."""

import numpy as np
import pytest

from condensation import (  # fmt: skip
    Adam,
    Arrays,
    At,
    Conv,
    Dense,
    Evenly,
    Experiment,
    GradientFlow,
    Init,
    InputError,
    Normal,
    sine_sum,
    train,
    two_waves,
)
from condensation.prediction import plateaus, predict, predict_next
from condensation.theory import moving_line, stationary_directions

FIG4 = Dense((3, *[18] * 5, 1), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True)


def cosines(weights, lines):
    return np.abs(weights @ lines.T) / np.linalg.norm(weights, axis=1, keepdims=True)


@pytest.mark.parametrize(("activation", "lines"), [("tanh", 1), ("x_tanh", 2), ("x2_tanh", 3)])
def test_equally_spaced_points_have_p_attracting_lines(activation, lines):
    experiment = Experiment(
        Dense((1, 100, 1), activation), Init(Normal(0.005)), two_waves(spacing="even"), Adam(5e-4), 10
    )
    found = predict(experiment)["dense1"]
    assert found.directions.attracts.sum() == lines
    assert found.directions.certified
    assert found.fates is not None
    assert found.fates.lines.shape == (100,)


@pytest.mark.trials
def test_tanh_goes_where_it_was_predicted():
    """Gradient flow from std 5e-5 to L/L0 = .99, ten seeds: every orientation, and the line of the leading order there.

    Where the linear part of the data is weak, 1% of the loss turns the line; the moving line turns with it.
    """
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    flow = GradientFlow(0.05, stop_ratio=0.99)
    experiment = Experiment(Dense((5, 50, 1)), Init(Normal(5e-5)), data, flow, 600, save=At(()), record=Evenly(61))
    trajectory = train(experiment, 10)
    assert np.allclose(trajectory.loss[:, -1] / trajectory.loss[:, 0], 0.99)
    standing = []
    for seed in range(10):
        found = predict(experiment, seed)["dense1"]
        weights = trajectory.weights("dense1", 600, seed)
        assert found.fates is not None
        along = np.einsum("jd,jd->j", weights, found.fates.orientations) / np.linalg.norm(weights, axis=1)
        assert (along > 0).all()
        standing.append(np.median(np.abs(along)))
        x, y = trajectory.data(seed)
        inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        model = trajectory.model(0, seed)
        line = moving_line(inputs, y, model.weights(1), model.parameters["output.weight"], "tanh")
        assert np.median(cosines(weights, line.direction[None])) > 0.999
        assert line.time == pytest.approx(trajectory.curves["time"][seed, -1], rel=0.02)
    assert np.sort(standing)[2:].min() > 0.999  # the line predicted at the start: eight of ten
    assert min(standing) > 0.99


def test_each_layer_of_figure_4_is_predicted():
    data = sine_sum(4, 12, 1, dim=3, n=80, low=-4, high=2)
    found = predict(Experiment(FIG4, Init(Normal(0.01)), data, Adam(4e-5), 10))
    assert list(found) == [f"dense{k}" for k in range(1, 6)]
    assert [one.directions.p for one in found.values()] == [3, 2, 1, 1, 1]
    assert all(one.fates is None for one in found.values())
    assert all(one.field.share > 0.99 for one in found.values())


@pytest.mark.trials
def test_the_residual_of_a_plateau_tells_the_next_lines():
    """Saddle to saddle: the first neuron to grow after a plateau is on a line predicted there, not on the first."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(100, 4))
    turn = np.linalg.qr(stream.normal(size=(4, 4)))[0]
    y = 0.3 * (x @ turn[0]) ** 2 + 0.1 * (x @ turn[1]) ** 2 - 0.06 * (x @ turn[2]) ** 2
    experiment = Experiment(
        Dense((4, 50, 1), "x_tanh", bias=False), Init(Normal(1e-3)), Arrays(x, y), GradientFlow(1.0, rtol=1e-6), 1600,
        save=Evenly(161), record=Evenly(161),
    )  # fmt: skip
    trajectory = train(experiment, 4)
    first = stationary_directions(x, y, 2)
    near = []
    for seed in range(4):
        flat = plateaus(trajectory, seed)
        assert flat
        at = max(k for k, step in enumerate(trajectory.saved) if step <= flat[0])
        found = predict_next(trajectory, int(trajectory.saved[at]), seed)["dense1"].directions
        history = trajectory.history(1)[seed, at:]
        size = np.linalg.norm(history, axis=2)
        out = (size > 0.1) & (size[0] < 0.05)
        when = int(out.any(axis=1).argmax())
        weights = history[when, int(out[when].argmax())][None]
        near.append(cosines(weights, found.directions[found.attracts]).max())
        assert cosines(weights, first.directions[first.attracts]).max() < 0.9
    assert sum(cosine > 0.9 for cosine in near) >= 3  # in one seed the second neuron leaves before the loss is flat


def test_adam_has_lines_of_its_own():
    experiment = Experiment(Dense((1, 20, 1)), Init(Normal(1e-3)), two_waves(spacing="even"), Adam(1e-3), 10)
    found = predict(experiment)["dense1"]
    mean = found.residual @ found.field.inputs
    np.testing.assert_array_equal(np.abs(found.on_the_cube().directions), [[1, 1]])
    assert found.on_the_cube().directions[0] @ np.sign(mean) == 2
    relu = predict(experiment.replace(**{"network.activation": "relu"}))["dense1"]
    assert relu.directions.oriented
    with pytest.raises(InputError, match="relu has no multiplicity, and no lines on the cube are known"):
        relu.on_the_cube()


def test_what_cannot_be_predicted_is_said():
    conv = Conv((1, 4, 4), (2,), 3, 1)
    images = Arrays(np.random.default_rng(0).normal(size=(8, 1, 4, 4)), np.arange(8.0))
    with pytest.raises(InputError, match="for dense networks, not for Conv"):
        predict(Experiment(conv, Init(Normal(0.1)), images, Adam(1e-3), 5))
    zero = Arrays(np.random.default_rng(0).normal(size=(8, 2)), np.zeros(8))
    with pytest.raises(InputError, match="the targets are all zero: there is nothing to learn"):
        predict(Experiment(Dense((2, 4, 1)), Init(Normal(0.1)), zero, Adam(1e-3), 5))
    short = train(Experiment(Dense((2, 4, 1)), Init(Normal(0.1)), images_flat(), Adam(1e-3), 2, record=Evenly(3)), 1)
    with pytest.raises(InputError, match="recorded at five steps or more, not at 3"):
        plateaus(short)


def images_flat():
    stream = np.random.default_rng(0)
    return Arrays(stream.normal(size=(8, 2)), stream.normal(size=8))
