import numpy as np
import pytest
from scipy.integrate import solve_ivp

import condensation as c
from condensation.measure import participation_ratio
from condensation.theory import fates, predict_growth

DATA = c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)


def neurons(experiment, seed):
    """Input and output weights, samples and targets of a seed of a two-layer experiment."""
    x, y = DATA.draw(c.Seed(seed, seed))
    drawn = experiment.init.draw(experiment.network, c.Seed(seed, seed).init_stream())
    w = experiment.network.layers[0].units(drawn)
    return w, drawn["output.weight"][0], np.concatenate([x, np.ones((80, 1))], axis=1), y[:, 0]


def flow(activation, start, seeds):
    """Predicted growth of each seed, and gradient flow to L/L0 = .99."""
    experiment = c.Experiment(c.Dense((5, 50, 1), activation), start, DATA, c.GD(1.0), steps=100, save=c.Evenly(2))
    predicted = [predict_growth(*neurons(experiment, seed), activation) for seed in range(seeds)]
    longest = 1.5 * max(growth.loss_time for growth in predicted)
    optimizer = c.GradientFlow(longest / 100, stop_ratio=0.99, atol=1e-20)
    return predicted, c.train(experiment.replace(optimizer=optimizer), seeds)


def flow_of_x2_tanh(w, a, x, y, time):
    """Gradient flow of the network itself to L/L0 = .99, by SciPy: its time and the input weights."""

    def residual(z):
        at = z.reshape(len(w), -1)
        inner = at[:, :-1] @ x.T
        return at, inner, y - at[:, -1] @ (inner**2 * np.tanh(inner))

    def speed(t, z):
        at, inner, r = residual(z)
        tanh = np.tanh(inner)
        force = at[:, -1:] * ((2 * inner * tanh + inner**2 * (1 - tanh**2)) * r / len(y)) @ x
        return np.concatenate([force, ((inner**2 * tanh) @ r / len(y))[:, None]], axis=1).ravel()

    moved = lambda t, z: (residual(z)[2] ** 2).sum() - 0.99 * (y**2).sum()  # noqa: E731
    moved.terminal = True
    start = np.concatenate([w, a[:, None]], axis=1).ravel()
    solved = solve_ivp(speed, (0, 2 * time), start, rtol=1e-6, atol=1e-12, events=moved)
    return solved.t[-1], solved.y[:, -1].reshape(len(w), -1)[:, :-1]


def check_winner(growth, time, found, ends):
    assert np.linalg.norm(found, axis=1).argmax() == growth.winner == growth.blow_up.argmin()
    assert time == pytest.approx(growth.loss_time, rel=0.01)
    assert participation_ratio(found) == pytest.approx(growth.participation, abs=0.02)
    assert growth.participation < 1.05
    # the others have not come to their lines, however small the start
    u = found / np.linalg.norm(found, axis=1)[:, None]
    assert np.median(np.abs(np.einsum("jd,jd->j", u, ends.orientations))) < 0.75


@pytest.mark.trials
def test_one_neuron_takes_all_the_norm_and_is_predicted_with_the_time_at_which_the_loss_moves():
    predicted, run = flow("x_tanh", c.Init(c.Normal(5e-5)), seeds=4)
    for seed, growth in enumerate(predicted):
        ends = fates(*neurons(run.experiment, seed), "x_tanh", perturbations=0)
        check_winner(growth, run.curves["time"][seed, -1], run.weights(1, 100, seed), ends)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.trials
def test_the_same_for_p_3(seed):
    experiment = c.Experiment(c.Dense((5, 50, 1), "x2_tanh"), c.Init(c.Normal(5e-4)), DATA, c.GD(1.0), steps=1)
    start = neurons(experiment, seed)
    growth = predict_growth(*start, "x2_tanh")
    check_winner(growth, *flow_of_x2_tanh(*start, growth.loss_time), fates(*start, "x2_tanh", perturbations=0))


@pytest.mark.trials
def test_from_large_output_weights_directions_condense_while_the_norm_concentrates():
    predicted, run = flow("x_tanh", c.Init(c.Normal(1e-8), c.Normal(0.1)), seeds=4)
    cosines, winners = [], []
    for seed, growth in enumerate(predicted):
        found = run.weights(1, 100, seed)
        ends = fates(*neurons(run.experiment, seed), "x_tanh", perturbations=0)
        cosines.append(np.einsum("jd,jd->j", found, ends.orientations) / np.linalg.norm(found, axis=1))
        winners.append(np.linalg.norm(found, axis=1).argmax() == growth.winner)
        assert participation_ratio(found) < 5
    assert np.median(cosines) > 0.9  # random directions: 0.3
    assert np.mean(winners) >= 0.9


@pytest.mark.trials
def test_p_1_grows_as_one():
    experiment = c.Experiment(c.Dense((5, 50, 1), "tanh"), c.Init(c.Normal(5e-5)), DATA, c.GD(1.0), steps=1)
    growth = predict_growth(*neurons(experiment, 0), "tanh")
    assert growth.participation > 10
    assert np.isinf(growth.blow_up).all()


def test_time_of_an_eigenvector_is_closed_and_of_others_is_that_of_the_differential_equation():
    x, r = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([4.0, -2.0])  # F = 2 u_1^2 - u_2^2, c = 2
    w = np.array([[0.1, 0.0], [0.03, 0.0], [0.05, 0.1]])
    a = np.array([0.1 / np.sqrt(2), 0.2, 0.1])
    b = 0.03**2 - 2 * 0.2**2
    blow_up = fates(w, a, x, r, "x_tanh", perturbations=0).blow_up
    assert blow_up[0] == pytest.approx(1 / (a[0] * 4))
    assert blow_up[1] == pytest.approx(np.sqrt(2) / 4 * np.arcsinh(np.sqrt(-b) / 0.03) / np.sqrt(-b))

    def speed(t, z):
        return np.array([4 * z[2] * z[0], -2 * z[2] * z[1], 2 * z[0] ** 2 - z[1] ** 2])

    large = lambda t, z: z[2] - 1e4  # noqa: E731
    large.terminal = True
    solved = solve_ivp(speed, (0, 100), [0.05, 0.1, 0.1], rtol=1e-10, atol=1e-14, events=large)
    assert blow_up[2] == pytest.approx(solved.t[-1] + 1 / (4 * 1e4), rel=1e-4)


def test_what_cannot_be_is_refused_in_a_sentence():
    w, a, x = np.array([[0.1, 0.0]]), np.array([0.1]), np.eye(2)
    with pytest.raises(c.InputError, match=r"share between 0 and 1, not 1.5"):
        predict_growth(w, a, x, np.ones(2), "x_tanh", loss_ratio=1.5)
    with pytest.raises(c.InputError, match="no neuron lowers the loss that far"):
        predict_growth(0 * w, a, x, np.ones(2), "x_tanh")
