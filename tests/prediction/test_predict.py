"""Predictions beside trained networks."""

import numpy as np
import pytest

import condensation as c
from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    At,
    Conv,
    Dense,
    Evenly,
    Every,
    Experiment,
    GradientFlow,
    Images,
    Init,
    InputError,
    Loss,
    Model,
    Momentum,
    Normal,
    NormalisedGD,
    RMSprop,
    Seed,
    sine_sum,
    train,
    two_waves,
)
from condensation.prediction import plateaus, predict, predict_model, predict_next
from condensation.theory import CubeFates, Fates, KernelDynamics, moving_line, stationary_directions
from condensation.training import GradientBelowEps

FIG4 = Dense((3, *[18] * 5, 1), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True)


def cosines(weights, lines):
    return np.abs(weights @ lines.T) / np.linalg.norm(weights, axis=1, keepdims=True)


@pytest.mark.parametrize(("activation", "lines"), [("tanh", 1), ("x_tanh", 2), ("x2_tanh", 3)])
def test_equally_spaced_points_have_p_attracting_lines(activation, lines):
    experiment = Experiment(
        Dense((1, 100, 1), activation), Init(Normal(0.005)), two_waves(spacing="even"), GD(5e-4), 10
    )
    found = predict(experiment)["dense1"]
    assert found.directions.attracts.sum() == lines
    assert found.directions.certified
    assert found.fates is not None
    assert found.fates.lines.shape == (100,)


@pytest.mark.parametrize("activation", ["linear", "gelu", "silu", "leaky_relu", "quadratic"])
def test_units_of_every_activation_go_where_they_are_predicted(activation):
    """Each on its own side: slopes of 1/2 at 0, none at all, a kink, and p = 2 without a higher order."""
    data = sine_sum(1, 2, 0.5, dim=3, n=40, low=-1, high=1)
    saved = {"save": At((800,)), "record": At((800,))}
    experiment = Experiment(Dense((3, 40, 1), activation), Init(Normal(1e-5)), data, NormalisedGD(1e-6), 800, **saved)
    prediction, trajectory = predict(experiment)["dense1"], train(experiment, 1)
    x, y = trajectory.data(0)
    inputs = np.c_[x, np.ones(len(x))]
    found = prediction.directions.directions[prediction.directions.attracts]
    if activation == "quadratic":  # the ends of the spectrum of sum r x x^T
        expected = np.linalg.eigh((inputs * y).T @ inputs)[1].T[[0, -1]]
        np.testing.assert_allclose(np.abs(expected @ found.T).max(axis=0), 1, atol=1e-6)
    else:
        expected = y[:, 0] @ inputs / np.linalg.norm(y[:, 0] @ inputs)
        assert np.abs(found @ expected).max() == pytest.approx(1, abs=1e-6)
    weights, goes = trajectory.weights(1, 800, 0), prediction.fates.lines >= 0
    cosine = (weights * prediction.fates.orientations).sum(axis=1) / np.linalg.norm(weights, axis=1)
    assert goes.mean() > 0.8
    assert (cosine[goes] > 0.95).mean() > 0.9


@pytest.mark.parametrize(
    "optimizer", [Momentum(2e-3), Momentum(2e-3, nesterov=True), RMSprop(1e-7)], ids=["momentum", "nesterov", "rmsprop"]
)
def test_momentum_takes_the_lines_of_the_flow_and_rmsprop_those_of_the_cube(optimizer):
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    experiment = Experiment(Dense((5, 50, 1)), Init(Normal(5e-6)), data, optimizer, 2000, save=Every(20))
    trajectory = train(experiment, 5)
    on_lines = []
    for seed in range(5):
        found = predict(experiment, seed)["dense1"].directions
        standing = (
            trajectory.loss[seed, np.isin(trajectory.recorded, trajectory.saved)] > 0.99 * trajectory.loss[seed, 0]
        )
        lines = found.directions[found.attracts] / np.linalg.norm(found.directions[found.attracts], axis=1)[:, None]
        for step in (0, trajectory.saved[standing][-1]):
            close = cosines(trajectory.weights("dense1", int(step), seed), lines).max(axis=1) > 0.95
            on_lines.append(close.mean())
    assert max(on_lines[::2]) < 0.1
    assert np.median(on_lines[1::2]) > 0.95


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
    assert (found.surface, type(found.fates)) == ("cube", CubeFates)
    np.testing.assert_array_equal(np.abs(found.directions.directions), [[1, 1]])
    assert found.directions.directions[0] @ np.sign(mean) == 2
    flow = predict(experiment.replace(optimizer=GD(1e-3)))["dense1"]
    assert (flow.surface, type(flow.fates)) == ("sphere", Fates)
    relu = predict(experiment.replace(**{"network.activation": "relu"}))["dense1"]
    assert relu.directions.oriented
    assert "these are gradient flow's" in relu.note


@pytest.mark.trials
@pytest.mark.parametrize(
    ("optimizer", "surface"), [(Adam(1e-6, eps=1e-30), "cube"), (NormalisedGD(3e-6), "sphere")], ids=["adam", "flow"]
)
def test_trained_neurons_lie_on_the_lines_of_their_optimizer(optimizer, surface):
    """x tanh x from 5e-6: most neurons are on a line of their own optimizer's surface, hardly one on the other's."""
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    experiment = Experiment(Dense((5, 50, 1), "x_tanh"), Init(Normal(5e-6)), data, optimizer, 3000, save=At(()))
    other = NormalisedGD(1e-6) if surface == "cube" else Adam(1e-6)
    trajectory = train(experiment, 5)
    shares = []
    for seed in range(5):
        weights = trajectory.weights("dense1", 3000, seed)
        for chosen in (experiment, experiment.replace(optimizer=other)):
            prediction = predict(chosen, seed)["dense1"]
            assert (prediction.surface == surface) == (chosen is experiment)
            points = prediction.directions.directions[prediction.directions.attracts]
            points = points / np.linalg.norm(points, axis=1, keepdims=True)
            shares.append(np.mean(cosines(weights, points).max(axis=1) >= 0.95))
    own, others = np.median(np.reshape(shares, (5, 2)), axis=0)
    assert own > (0.95 if surface == "cube" else 0.6)
    assert others < 0.1  # in one seed a line of the sphere is near one of the cube


@pytest.mark.trials
@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_several_outputs_are_predicted_by_their_own_tensor(loss):
    """Digits 64-50-10 by gradient flow: the line is the first singular vector of the matrix of mean fields."""
    experiment = Experiment(
        Dense((64, 50, 10)), Init(Normal(1e-5)), Images("digits", n=300, flat=True),
        GradientFlow(0.1, stop_ratio=0.99), 2000, Loss(loss), save=At(()), record=Evenly(11),
    )  # fmt: skip
    trajectory = train(experiment, 1)
    prediction = predict(experiment)["dense1"]
    weights = trajectory.weights("dense1", 2000, 0)
    x, y = trajectory.data(0)
    residual = y if loss == "mse" else y - 0.1
    first = np.linalg.svd(residual.T @ np.c_[x, np.ones(len(x))])[2][0]
    assert abs(first @ prediction.directions.directions[0]) == pytest.approx(1, abs=1e-6)
    along = np.einsum("jd,jd->j", weights, prediction.fates.orientations) / np.linalg.norm(weights, axis=1)
    assert (along > 0).mean() > 0.95  # on the side that is told
    assert np.median(along) > (0.99 if loss == "mse" else 0.6)  # the second value is near the first
    assert ("only as slowly" in prediction.note) == (loss == "cross_entropy")


def test_inputs_whose_gradients_are_below_eps_stand_still():
    """Classes of equal size: the gradient by the bias is what rounding leaves, and Adam's eps keeps it where it is."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(40, 3)) + np.repeat([[1.0, -0.5, 0.5], [-1.0, 0.5, -0.5]], 20, axis=0)
    data, loss = c.Arrays(x, np.eye(2)[np.repeat([0, 1], 20)]), c.Loss("cross_entropy")
    init = c.Init(c.Normal(1e-4))
    experiment = c.Experiment(c.Dense((3, 30, 2)), init, data, c.Adam(1e-3), 30, loss)
    with pytest.warns(GradientBelowEps):
        trajectory = c.train(experiment, 3)
    for seed in range(3):
        prediction = predict(experiment, seed)["dense1"]
        np.testing.assert_array_equal(prediction.directions.directions, [[1, -1, 1, 0]])
        assert "inputs 3 is below eps" in prediction.note
        found = c.find_lines(trajectory.weights("dense1", 30, seed))
        assert found.count == 1
        assert c.measure.nearest_lines(found.directions, prediction.directions.directions)[1][0] > 0.97
    tiny = experiment.replace(init=c.Init(c.Normal(1e-9)))
    assert "all gradients are below eps = 1e-08" in predict(tiny)["dense1"].note


def test_several_outputs_at_multiplicity_two_are_searched_and_not_certified():
    experiment = Experiment(
        Dense((64, 20, 10), "x_tanh"), Init(Normal(1e-3)), Images("digits", n=200, flat=True), GD(1e-3), 9
    )
    prediction = predict(experiment)["dense1"]
    assert prediction.directions.outputs.shape[1] == 10
    assert prediction.directions.attracts.all()
    assert not prediction.directions.certified
    assert "no fates" in prediction.note


def test_large_weights_and_layers_without_one_field_are_told():
    data = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    large = predict(Experiment(Dense((5, 20, 1)), Init(Normal(0.5)), data, GD(1e-3), 9))["dense1"]
    assert "the weights are not small" in large.note
    deep = predict(Experiment(Dense((5, 20, 20, 3)), Init(Normal(0.1)), three_outputs(data), GD(1e-3), 9))
    for prediction in deep.values():
        assert not prediction.directions.certified
        assert "of the field is common to all neurons" in prediction.note


def three_outputs(data):
    x, y = data.draw(Seed(0, 0))
    return Arrays(x, np.c_[y, np.sin(x[:, :1]), x[:, 1:2] ** 2])


def test_filters_are_predicted():
    """One convolution layer: the first singular vector of Z, as KernelDynamics has it, and each filter's side."""
    images = Images("digits", n=100, classes=(0, 1), target="sign")
    experiment = Experiment(Conv((1, 8, 8), (6,), 3, 1), Init(Normal(1e-3)), images, GD(0.1), 30)
    prediction = predict(experiment)["conv1"]
    x, y = images.draw(Seed(0, 0))
    theory = KernelDynamics.of(x, y, 3)
    model = Model(experiment.network, experiment.init.draw(experiment.network, Seed(0, 0).init_stream()))
    assert abs(prediction.directions.directions[0] @ theory.v1) == pytest.approx(1, abs=1e-3)  # f is not quite zero
    outputs = model.parameters["output.weight"].reshape(6, -1)
    sides = theory.orientations(model.weights("conv1", view="filter"), outputs)
    along = np.sign(prediction.fates.orientations @ theory.v1)
    np.testing.assert_array_equal(along, sides)
    with pytest.raises(InputError, match="unknown hidden layer 'conv2'"):
        predict_model(model, x, y, layers=["conv2"])


def test_what_cannot_be_predicted_is_said():
    images = Arrays(np.random.default_rng(0).normal(size=(8, 1, 6, 6)), np.arange(8.0))
    for conv, reason in (
        (Conv((1, 6, 6), (2, 2), 3, 1), "for one convolution layer followed by the output layer"),
        (Conv((1, 6, 6), (2,), 3, 1, activation="relu"), "multiplicity 1 that are 0 at 0, not relu"),
    ):
        with pytest.raises(InputError, match=reason):
            predict(Experiment(conv, Init(Normal(0.1)), images, GD(1e-3), 5))
    zero = Arrays(np.random.default_rng(0).normal(size=(8, 2)), np.zeros(8))
    with pytest.raises(InputError, match="the targets are all zero: there is nothing to learn"):
        predict(Experiment(Dense((2, 4, 1)), Init(Normal(0.1)), zero, Adam(1e-3), 5))
    short = train(Experiment(Dense((2, 4, 1)), Init(Normal(0.1)), images_flat(), Adam(1e-3), 2, record=Evenly(3)), 1)
    with pytest.raises(InputError, match="recorded at five steps or more, not at 3"):
        plateaus(short)


def images_flat():
    stream = np.random.default_rng(0)
    return Arrays(stream.normal(size=(8, 2)), stream.normal(size=8))
