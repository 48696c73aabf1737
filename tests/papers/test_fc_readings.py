"""Readings that the fully connected paper's text leaves open, and premises of its statements."""

import numpy as np
import pytest

from condensation.measure import count_lines
from condensation.networks import Dense, Model
from condensation.papers.fc.experiments import EVEN, FIG5_ACTIVATIONS, fig3, one_input, resnet, resnet_of_width
from condensation.papers.fc.fig1 import EPOCH, EQUAL, Fig1, sum_error
from condensation.papers.fc.fig2 import READINGS, Fig2Readings
from condensation.papers.fc.fig5 import Fig5
from condensation.papers.fc.fig6 import Fig6
from condensation.seeds import as_seed


def test_uniformly_sampled_points_are_random_or_equally_spaced():
    for seed in (0, 7):
        x, y = one_input("tanh", "even").data.draw(as_seed(seed))
        np.testing.assert_allclose(x[:, 0], np.linspace(-1, 1.5, 40))
        np.testing.assert_allclose(y[:, 0], np.sin(3 * x[:, 0]) + np.sin(6 * x[:, 0]) / 2)
        spaces = np.diff(np.sort(one_input("tanh").data.draw(as_seed(seed))[0][:, 0]))
        assert spaces.max() > 5 * spaces.min()


@pytest.mark.parametrize("figure", [Fig5, Fig6])
def test_each_statement_of_random_points_is_asked_of_equally_spaced_ones(figure):
    claims = {claim.key: claim for claim in figure.claims}
    random = {key for key in claims if EVEN not in key}
    for key in random:
        activation, _, kind = key.partition("-")
        other = claims[f"{activation}{EVEN}" + f"-{kind}" * bool(kind)]
        assert other.rule == claims[key].rule
        assert other.ours
        assert "equally spaced" in other.text
    stages = {f"{name}{EVEN}-stage" for name in FIG5_ACTIVATIONS}  # App. A.3 has those of random points
    assert len(claims) == 2 * len(random) + len(stages & claims.keys())
    assert stages <= claims.keys()
    assert "equally spaced" in figure.chosen


@pytest.mark.trials
def test_the_neurons_of_equally_spaced_points_have_the_stated_lines_in_every_seed(share_of):
    for name in FIG5_ACTIVATIONS:
        for key in (f"{name}{EVEN}", f"{name}{EVEN}-field", f"{name}{EVEN}-most", f"{name}{EVEN}-stage"):
            assert share_of("fc-fig6", key) == 1
    assert share_of("fc-fig5", f"tanh{EVEN}") == 1


@pytest.mark.trials
def test_the_loss_of_the_other_reading_at_the_captioned_epoch(runs_of):
    name, runs = f"x2_tanh{EVEN}", runs_of("fc-fig5")
    run = runs[name]
    expected = []
    for seed in run.seeds:
        x, y = run.data(seed)
        squares = [np.mean((run.output(x, step, seed) - y) ** 2) for step in (0, 1000)]
        expected.append(squares[1] / squares[0])
    np.testing.assert_allclose(Fig5(runs).measured(f"{name}-stage").values, expected, rtol=1e-6)
    assert max(expected) < 0.7


def layer(activation, weights, outputs):
    """A two-layer network with two inputs and a bias."""
    weights = np.asarray(weights, float)
    parameters = {"dense1.weight": weights[:, :2], "dense1.bias": weights[:, 2], "output.weight": np.array([outputs])}
    return Model(Dense((2, len(weights), 1), activation), parameters)


def test_the_sum_is_exact_where_all_neurons_are_the_same():
    x = np.random.default_rng(0).normal(size=(30, 2))
    same = np.tile([0.3, -0.2, 0.5], (4, 1))
    for activation in ("sigmoid", "softplus", "tanh"):  # the first two are not zero at 0
        assert sum_error(layer(activation, same, [1.0, 2.0, -0.5, 3.0]), x, turned=False) < 1e-14
    sides = same * np.array([[1], [-1], [-1], [1]])
    opposite = layer("tanh", sides, [1.0, -2.0, -1.0, 2.0])
    assert sum_error(opposite, x) < 1e-14
    assert sum_error(opposite, x, turned=False) == pytest.approx(1)  # the output weights cancel: nothing is left


def test_the_typical_neuron_is_that_of_the_median_amplitude():
    x = np.random.default_rng(1).normal(size=(30, 2))
    w, outputs = np.array([0.03, -0.02, 0.05]), np.array([1.0, 2.0, 4.0])
    sizes = np.array([1.0, 3.0, 1.5])  # the median is the last
    model = layer("sigmoid", sizes[:, None] * w, outputs)
    z = np.c_[x, np.ones(30)] @ w

    def centred(values):
        return values - values.mean()

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    exact = centred(sum(a * sigmoid(size * z) for a, size in zip(outputs, sizes, strict=True)))
    for unit, size in (("median", 1.5), ("mean", sizes.mean())):
        expected = np.linalg.norm(centred(7 * sigmoid(size * z)) - exact) / np.linalg.norm(exact)
        assert sum_error(model, x, unit, turned=False) == pytest.approx(expected, rel=1e-6)


@pytest.mark.trials
def test_the_sum_is_judged_where_its_premise_holds(runs_of):
    figure = Fig1(runs_of("fc-fig1"))
    run, decided = figure.runs["sigmoid"], figure.measured("sum").decided
    assert decided is not None
    for k, seed in enumerate(run.seeds):
        weights = run.weights("dense1", EPOCH, seed)
        units = weights / np.linalg.norm(weights, axis=1, keepdims=True)
        sizes = np.linalg.norm(weights, axis=1)
        one = np.min(units @ units.T) > 0 and sizes.std() / sizes.mean() <= EQUAL
        assert bool(decided[k]) == one
    assert sum(decided) >= 8
    for key in ("sum", "sum-two-sides"):
        assert figure.measured(key).holds(figure.claim(key).rule).count(True) >= 8
    assert np.median(figure.errors_of_sum("tanh", "mean")) < 0.01 < np.median(figure.measured("sum-one-side").values)


def test_the_other_reading_of_fig_2_differs_in_the_output_layer_alone():
    captioned, other = resnet("x_tanh", "paper"), resnet_of_width("x_tanh", "paper")
    assert other == captioned.replace(init=other.init)
    stds = []
    for experiment in (captioned, other):
        layers = experiment.network.layers
        laws = experiment.init.laws(experiment.network)
        widths = [layer.weight[1 if layer.name == "output" else 0] for layer in layers]
        stds.append([law.std_of(layer, width) for law, layer, width in zip(laws, layers, widths, strict=True)])
    assert stds[0][:-1] == stds[1][:-1]
    assert stds[0][-1] == pytest.approx(10**-1.5)
    assert stds[1][-3:] == pytest.approx([1024**-1.5] * 3)
    for scale in ("quick", "paper"):
        drawn, width, plain = Fig2Readings.experiments(scale).values()
        assert (drawn, width) == (resnet("x_tanh", scale), resnet_of_width("x_tanh", scale))
        assert plain == drawn.replace(network=plain.network)
        assert plain.network.norms == ()
        assert [layer.weight for layer in plain.network.layers] == [layer.weight for layer in drawn.network.layers]
        assert all(layer.has_bias for layer in plain.network.layers[:-1])
    assert [*Fig2Readings.experiments("quick")] == [*READINGS]


@pytest.mark.trials
def test_the_most_condensed_step_of_the_initial_stage_against_brute_force(run_of):
    run = run_of(fig3("x_tanh"))
    lines = []
    for k, seed in enumerate(run.seeds):
        x, y = run.data(seed)
        best = (np.inf, 0.0)
        for column, step in enumerate(run.saved):
            losses = [np.mean((run.output(x, int(at), seed) - y) ** 2) for at in (0, step)]
            if losses[1] < 0.7 * losses[0]:
                break
            there = count_lines(run.history("dense1")[k : k + 1, column : column + 1])
            best = min(best, (there.k_eff[0, 0], there.lines[0, 0]))
        lines.append(best[1])
    assert [*Fig2Readings({"x_tanh": run}).measured("x_tanh-early").values] == lines
