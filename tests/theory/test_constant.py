import numpy as np
import pytest

import condensation as c
from condensation.theory import effective_residual

DATA = c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)


def test_which_is_learned_first_is_decided_by_the_two_rates():
    stream = np.random.default_rng(0)
    x, y = np.c_[stream.normal(size=(40, 3)), np.ones(40)], 1 + stream.normal(size=40)
    g = np.linalg.norm(y @ x) / 40
    for width in (1, 4, 1000):
        found = effective_residual(x, y, "softplus", width)
        ratio = width * np.log(2) ** 2 / (0.5 * g)
        assert found.ratio == pytest.approx(ratio)
        assert found.learned_first == (ratio >= 3)
        np.testing.assert_allclose(found.residual, y - y.mean() if found.learned_first else y)
    assert "learned first" in found.note
    assert found.outputs(stream.normal(size=1000)).sum() == pytest.approx(y.mean() / np.log(2))
    slow = effective_residual(x, 100 * y, "softplus", 1)
    assert "more slowly" in slow.note
    np.testing.assert_array_equal(slow.outputs([1.0, 2.0]), [1, 2])


@pytest.mark.parametrize("activation", ["tanh", "x_tanh", "relu"])
def test_without_a_constant_nothing_changes(activation):
    found = effective_residual(np.eye(3), np.arange(3.0), activation, 10)
    assert not found.learned_first
    np.testing.assert_array_equal(found.residual, np.arange(3.0))


def test_p_2_is_ever_slower_than_the_constant():
    found = effective_residual(np.eye(3), np.arange(3.0), lambda z: 1 + z**2, 1)
    assert found.learned_first
    assert found.ratio == np.inf
    np.testing.assert_allclose(found.residual, [-1, 0, 1])


@pytest.mark.trials
def test_sigmoid_networks_condense_on_the_line_of_the_centred_targets():
    network, start = c.Dense((5, 50, 1), "sigmoid"), c.Init(c.Normal(5e-3))
    experiment = c.Experiment(network, start, DATA, c.GradientFlow(0.05, atol=1e-18), 1600, save=c.Evenly(201))
    run = c.train(experiment, 6)
    cosines, others = [], []
    for seed in range(6):
        x, y = run.data(seed)
        x = np.c_[x, np.ones(80)]
        centred = effective_residual(x, y, "sigmoid", 50).residual
        loss = run.loss[seed][np.isin(run.recorded, run.saved)]
        step = int(run.saved[np.flatnonzero(loss >= 0.99 * (centred**2).mean() / 2)[-1]])
        weights = run.weights(1, step, seed)
        u = weights / np.linalg.norm(weights, axis=1)[:, None]
        for r, into in ((centred, cosines), (y[:, 0], others)):
            into.append(np.median(np.abs(u @ (r @ x))) / np.linalg.norm(r @ x))
    assert min(cosines) > 0.97
    assert np.median(others) < 0.9


def test_what_cannot_be_is_refused_in_a_sentence():
    x, y = np.eye(3), np.arange(3.0)
    with pytest.raises(c.InputError, match="width must be a whole number"):
        effective_residual(x, y, "sigmoid", 0)
