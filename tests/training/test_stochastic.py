"""Minibatches, learning-rate schedules, dropout and weight decay."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from condensation import (  # fmt: skip
    GD,
    Adam,
    AdamW,
    Arrays,
    Conv,
    Cosine,
    Dense,
    Evenly,
    Every,
    Experiment,
    Images,
    Init,
    InputError,
    Loss,
    Normal,
    Product,
    StepDecay,
    Warmup,
    sine_sum,
    train,
)
from condensation.training import _program, _work

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
BASE = Experiment(Dense((5, 20, 1)), Init(Normal(0.1)), DATA, GD(0.01), 40, save=Every(1))


def torch_steps(experiment, batches, factor=lambda step: 1.0):
    """The weights after each step of an independent loop over the given batches."""
    trajectory = train(experiment, 1)
    start = {k: torch.tensor(v).requires_grad_() for k, v in trajectory.parameters_at(0, 0).items()}
    x, y = (torch.tensor(v) for v in trajectory.data(0))
    given = experiment.optimizer
    make = torch.optim.AdamW if isinstance(given, Adam) else torch.optim.SGD
    optimizer = make(start.values(), given.learning_rate, weight_decay=given.weight_decay)
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = given.learning_rate * factor(step)
        optimizer.zero_grad()
        f = torch.tanh(x[batch] @ start["dense1.weight"].T + start["dense1.bias"]) @ start["output.weight"].T
        ((f - y[batch]) ** 2).sum().div(2 * len(batch)).backward()
        if given.clip is not None:
            torch.nn.utils.clip_grad_norm_(start.values(), given.clip)
        optimizer.step()
    return trajectory, {k: v.detach().numpy() for k, v in start.items()}


RATES = [
    (Cosine(30, final=0.1), lambda step: 0.1 + 0.45 * (1 + math.cos(math.pi * min(step, 30) / 30))),
    (StepDecay((10, 25)), lambda step: 0.1 ** ((step >= 10) + (step >= 25))),
    (Warmup(15), lambda step: min((step + 1) / 15, 1)),
    (Warmup(15, first=0.2), lambda step: 0.2 + 0.8 * min(step / 15, 1)),
    (Product((Warmup(15), StepDecay((25,), 0.5))), lambda step: min((step + 1) / 15, 1) * (0.5 if step >= 25 else 1)),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("optimizer", [GD(0.01, weight_decay=0.3), Adam(0.01, weight_decay=0.3)], ids=["gd", "adam"])
@pytest.mark.parametrize(("rate", "factor"), RATES, ids=["cosine", "step_decay", "warmup", "warmup_from", "product"])
def test_schedules_and_weight_decay_agree_with_torch(optimizer, rate, factor):
    experiment = BASE.replace(optimizer=replace(optimizer, schedule=rate))
    trajectory, theirs = torch_steps(experiment, [np.arange(80)] * 40, factor)
    for name, value in theirs.items():
        np.testing.assert_allclose(trajectory.parameters_at(40, 0)[name], value, atol=1e-11)


@pytest.mark.parametrize("optimizer", [GD(0.01, clip=0.5), Adam(0.01, clip=0.5), AdamW(0.01, clip=0.5)])
def test_clipped_gradients_agree_with_torch(optimizer):
    trajectory, theirs = torch_steps(BASE.replace(optimizer=optimizer), [np.arange(80)] * 40)
    plain = train(BASE.replace(optimizer=replace(optimizer, clip=None)), 1)
    for name, value in theirs.items():
        ours = trajectory.parameters_at(40, 0)[name]
        np.testing.assert_allclose(ours, value, atol=1e-6)  # PyTorch divides by the norm plus 1e-6
        assert np.abs(ours - plain.parameters_at(40, 0)[name]).max() > 1e-4, "clipping must be seen"


def test_a_large_clip_changes_nothing():
    plain, clipped = (train(BASE.replace(optimizer=Adam(0.01, clip=clip)), 1) for clip in (None, 1e6))
    assert np.array_equal(plain.weights("dense1", 40), clipped.weights("dense1", 40))


def identity_data(n):
    """The weight of input i moves only if sample i is in the batch."""
    return Arrays(np.eye(n), np.ones(n))


def batches_of(n, size, steps, seed=0):
    """Which samples each step saw, read off the weights."""
    network = Dense((n, 1, 1), linear, bias=False)
    experiment = Experiment(
        network, Init(Normal(0.5)), identity_data(n), GD(0.05), steps, save=Every(1), batch_size=size
    )
    weights = train(experiment, [seed]).history(1)[0, :, 0]
    return [set(np.flatnonzero(row)) for row in np.diff(weights, axis=0) != 0]


def linear(x):
    return x


def test_each_epoch_sees_each_sample_once_in_a_new_order():
    seen = batches_of(12, 4, 12)
    assert all(len(batch) == 4 for batch in seen)
    for epoch in range(4):
        assert set().union(*seen[3 * epoch : 3 * epoch + 3]) == set(range(12))
    assert seen[:3] != seen[3:6]
    assert batches_of(12, 4, 12) == seen
    assert batches_of(12, 4, 12, seed=1) != seen


def test_a_last_incomplete_batch_is_left_out():
    seen = batches_of(10, 4, 6)
    assert all(len(batch) == 4 for batch in seen)
    assert all(not seen[2 * k] & seen[2 * k + 1] for k in range(3))


def test_minibatches_agree_with_torch_on_the_same_batches():
    experiment = BASE.replace(optimizer=Adam(0.01), batch_size=16)
    n, orders = 80, batches_of(80, 16, 40)
    trajectory, theirs = torch_steps(experiment, [sorted(batch) for batch in orders])
    assert n == len(trajectory.data(0)[0])
    for name, value in theirs.items():
        np.testing.assert_allclose(trajectory.parameters_at(40, 0)[name], value, atol=1e-11)


def test_the_recorded_loss_is_that_of_all_samples():
    for network in (BASE.network, Dense((5, 20, 1), dropout=0.5)):
        trajectory = train(BASE.replace(network=network, batch_size=16), 1)
        x, y = trajectory.data(0)
        for step in (0, 7, 40):
            loss = ((trajectory.output(x, step, 0) - y) ** 2).mean() / 2
            assert trajectory.loss[0, trajectory.recorded == step][0] == pytest.approx(loss, rel=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("loss", "parts"), [(Loss(), 1), (Loss(), 10), (Loss("mse", "sum"), 79)])
def test_a_large_set_is_evaluated_in_parts(monkeypatch, loss, parts):
    own = BASE.replace(batch_size=7, test=DATA, loss=loss, steps=3)
    whole = train(own, 2)
    monkeypatch.setattr(_program, "EVALUATED", parts * own.network.passed_on)
    monkeypatch.setattr("condensation.training._work._advance", _work._advance.__wrapped__)
    cut = train(own, 2)
    for curve in ("loss", "test_loss"):
        np.testing.assert_allclose(cut.curves[curve], whole.curves[curve], rtol=1e-12)
    np.testing.assert_array_equal(cut.parameters["output.weight"], whole.parameters["output.weight"])


def test_what_is_recorded_does_not_change_a_stochastic_run():
    experiment = BASE.replace(batch_size=16, network=Dense((5, 20, 1), dropout=0.3))
    sparse = train(experiment.replace(save=Evenly(2), record=Evenly(2)), 2)
    np.testing.assert_array_equal(sparse.weights(1, 40), train(experiment, 2).weights(1, 40))


def test_dropout_leaves_out_its_share_and_scales_up():
    import jax
    import jax.numpy as jnp

    network = Dense((4, 5000, 1), linear, bias=False, dropout=0.3)
    weights = {"dense1.weight": np.ones((5000, 4), np.float32), "output.weight": np.ones((1, 5000), np.float32)}
    x = jnp.ones((3, 4)) / 4
    made = network.assemble(weights)
    np.testing.assert_allclose(made(x), 5000, rtol=1e-5)
    dropped = np.asarray(made(x, key=jax.random.PRNGKey(0)))
    assert (dropped != 5000).all()
    np.testing.assert_allclose(dropped, 5000, rtol=6 * math.sqrt(0.3 / 0.7 / 5000))


def test_dropout_and_batches_on_a_convolutional_network():
    stream = np.random.default_rng(0)
    data = Arrays(stream.normal(size=(24, 1, 6, 6)), np.eye(3)[stream.integers(3, size=24)])
    network = Conv((1, 6, 6), channels=(3,), kernel=3, outputs=3, hidden=(10,), dropout=0.4)
    experiment = Experiment(network, Init(Normal(0.3)), data, Adam(0.01), 20, Loss("cross_entropy"), batch_size=8)
    trajectory = train(experiment, 2)
    sparse = train(experiment.replace(save=Evenly(2), record=Evenly(2)), 2)
    np.testing.assert_array_equal(trajectory.weights("conv1", 20), sparse.weights("conv1", 20))
    x, y = trajectory.data(0)
    right = trajectory.output(x, 20, 1).argmax(1) == y.argmax(1)
    assert trajectory.accuracy[1, -1] == pytest.approx(right.mean())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: GD(0.1, weight_decay=-1.0), "weight_decay must be"),
        (lambda: AdamW(0.1, clip=0.0), "clip must be"),
        (lambda: Cosine(0), "steps must be"),
        (lambda: Cosine(5, 2.0), "final is a share"),
        (lambda: StepDecay((0,)), r"at\[0\] must be a whole number of at least 1"),
        (lambda: Dense((2, 3, 1), dropout=1.0), "dropout is a share"),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_held_out_samples_are_other_samples():
    run = BASE.replace(test=DATA, steps=5)
    trajectory = train(run, 2)
    assert (trajectory.curves["test_loss"] != trajectory.loss).all()
    x, y = DATA.draw(trajectory.seeds[1].held_out())
    expected = ((trajectory.output(x, 5, 1) - y) ** 2).sum() / (2 * len(y))
    assert trajectory.curves["test_loss"][1, -1] == pytest.approx(expected)
    with pytest.raises(InputError, match="test images must come from the other split, not from 'train' too"):
        Experiment(
            Dense((64, 4, 10)), Init(Normal(0.1)), Images("digits", flat=True), GD(0.1), 5,
            test=Images("digits", n=50, flat=True),
        )  # fmt: skip
