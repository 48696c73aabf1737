"""Sign descent and Muon against independent loops of a few lines."""

import numpy as np
import pytest
import torch

from condensation import (
    Adam,
    Arrays,
    At,
    Conv,
    Cosine,
    Dense,
    Every,
    Experiment,
    Init,
    InputError,
    Muon,
    Normal,
    SignGD,
    train,
)
from condensation.training import _chunks as chunks


def arrays(inputs=4, outputs=3):
    stream = np.random.default_rng(1)
    return Arrays(stream.normal(size=(20, inputs)), stream.normal(size=(20, outputs)))


def run(optimizer, steps, network=None, std=0.5, data=None):
    experiment = Experiment(
        network or Dense((4, 9, 3), bias=False), Init(Normal(std)), data or arrays(), optimizer, steps,
        save=At((0, steps)), dtype="float64",
    )  # fmt: skip
    return train(experiment, 1)


def torch_gradients(weights, x, y):
    """Gradients of half the mean squared error of a two-layer tanh network without biases."""
    w, a = (torch.tensor(part, requires_grad=True) for part in weights)
    loss = (torch.tanh(torch.tensor(x) @ w.T) @ a.T - torch.tensor(y)).square().sum() / 2 / len(x)
    return [part.numpy() for part in torch.autograd.grad(loss, (w, a))]


def follow(trajectory, steps, step_of):
    """The weights after so many steps theta - step_of(gradients, number)."""
    start = trajectory.parameters_at(0, 0)
    weights = [start["dense1.weight"], start["output.weight"]]
    for k in range(steps):
        moves = step_of(torch_gradients(weights, *trajectory.data(0)), k)
        weights = [part - move for part, move in zip(weights, moves, strict=True)]
    return dict(zip(("dense1.weight", "output.weight"), weights, strict=True))


def compare(trajectory, steps, expected, tolerance):
    for name, value in expected.items():
        ours = trajectory.parameters_at(steps, 0)[name]
        assert np.abs(ours - trajectory.parameters_at(0, 0)[name]).max() > 1e3 * tolerance
        np.testing.assert_allclose(ours, value, rtol=0, atol=tolerance)


def test_sign_descent_is_a_loop_over_signs():
    trajectory = run(SignGD(1e-2), 60)
    compare(trajectory, 60, follow(trajectory, 60, lambda g, k: [1e-2 * np.sign(part) for part in g]), 1e-10)


def test_sign_descent_takes_a_schedule():
    trajectory = run(SignGD(1e-2, Cosine(40)), 20)
    rates = 1e-2 * (1 + np.cos(np.pi * np.arange(20) / 40)) / 2
    compare(trajectory, 20, follow(trajectory, 20, lambda g, k: [rates[k] * np.sign(part) for part in g]), 1e-12)


def test_adams_first_step_is_sign_descents():
    signs, adam = run(SignGD(1e-2), 1), run(Adam(1e-2, eps=1e-30), 1)
    for name, value in signs.parameters_at(1, 0).items():
        np.testing.assert_allclose(adam.parameters_at(1, 0)[name], value, rtol=0, atol=1e-15)


def test_an_input_that_is_zero_is_left_alone():
    given = arrays()
    trajectory = run(SignGD(1e-2), 5, data=Arrays(given.x * np.array([1, 1, 0, 1]), given.y))
    moved = trajectory.weights(1, 5, 0) != trajectory.weights(1, 0, 0)
    np.testing.assert_array_equal(moved.all(axis=0), [True, True, False, True])


def newton_schulz(m):
    x = m / np.linalg.norm(m)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


@pytest.mark.parametrize("nesterov", [True, False])
def test_muon_is_a_loop_of_newton_and_schulz(nesterov):
    trajectory = run(Muon(1e-2, momentum=0.8, nesterov=nesterov, eps=1e-30), 30)
    average = [0.0, 0.0]

    def step_of(gradients, k):
        steps = []
        for j, g in enumerate(gradients):
            average[j] = 0.8 * average[j] + 0.2 * g
            ahead = 0.8 * average[j] / (1 - 0.8 ** (k + 2)) + 0.2 * g / (1 - 0.8 ** (k + 1))
            m = ahead if nesterov else average[j]
            steps.append(1e-2 * np.sqrt(max(1, len(g) / g.shape[1])) * newton_schulz(m))
        return steps

    compare(trajectory, 30, follow(trajectory, 30, step_of), 1e-9)


def test_muons_step_is_nearly_the_polar_factor():
    trajectory = run(Muon(1e-3, momentum=0, nesterov=False, eps=1e-30), 1)
    start = trajectory.parameters_at(0, 0)
    gradient = torch_gradients([start["dense1.weight"], start["output.weight"]], *trajectory.data(0))[0]
    left, _, right = np.linalg.svd(gradient, full_matrices=False)
    step = (start["dense1.weight"] - trajectory.parameters_at(1, 0)["dense1.weight"]) / 1e-3 / np.sqrt(9 / 4)
    inner = left.T @ step @ right.T
    np.testing.assert_allclose(inner, np.diag(np.diagonal(inner)), atol=1e-10)
    assert 0.68 < np.diagonal(inner).min() < np.diagonal(inner).max() < 1.21


def test_muon_moves_biases_by_adams_rule_and_filters_as_a_matrix():
    dense = run(Muon(1e-3, eps=1e-30), 1, Dense((4, 9, 3)))
    move = dense.parameters_at(1, 0)["dense1.bias"] - dense.parameters_at(0, 0)["dense1.bias"]
    first = 1 + 0.9 / 1.9  # of Adam with Nesterov's momentum
    np.testing.assert_allclose(np.abs(move), 1e-3 * first, rtol=1e-6)
    images = Arrays(np.random.default_rng(0).normal(size=(6, 2, 8, 8)), np.random.default_rng(1).normal(size=(6, 3)))
    network = Conv((2, 8, 8), (5,), 3, 3, activation="tanh")
    conv = run(Muon(1e-3, eps=1e-30), 1, network, data=images)
    name = next(name for name in conv.parameters_at(0, 0) if name.endswith("1.weight"))
    filters = (conv.parameters_at(1, 0)[name] - conv.parameters_at(0, 0)[name]).reshape(5, -1) / 1e-3
    sizes = np.linalg.svd(filters, compute_uv=False)
    assert 0.6 < sizes.min() < sizes.max() < 1.25


def test_experiments_that_differ_in_muons_numbers_are_one_ensemble():
    first = Experiment(Dense((4, 9, 3)), Init(Normal(0.1)), arrays(), Muon(1e-3), 3)
    slow, fast = train([first, first.replace(**{"optimizer.learning_rate": 1e-2})], 1)
    moved = [np.abs(run.weights(1, 3, 0) - run.weights(1, 0, 0)).mean() for run in (slow, fast)]
    assert 8 < moved[1] / moved[0] < 12


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: SignGD(0.0), "learning_rate must be a positive finite number, not 0.0"),
        (lambda: Muon(-1.0), "learning_rate must be a positive finite number, not -1.0"),
        (lambda: Muon(1.0, momentum=1.0), "momentum must be at least 0 and below 1, not 1.0"),
        (lambda: Muon(1.0, eps=0.0), "eps must be a positive finite number, not 0.0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()


def test_a_run_by_muon_that_was_interrupted_goes_on_with_the_same_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.01)
    experiment = Experiment(Dense((4, 9, 3)), Init(Normal(0.1)), arrays(), Muon(1e-3), 3000, save=Every(500))
    seen = []

    def stop(progress):
        seen.append(progress.done)
        if progress.done > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(experiment, 1, out=tmp_path, progress=stop)
    assert seen[-1] < 3000
    again, whole = train(experiment, 1, out=tmp_path), train(experiment, 1)
    for name, value in whole.parameters_at(3000, 0).items():
        np.testing.assert_array_equal(again.parameters_at(3000, 0)[name], value)
