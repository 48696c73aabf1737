"""The convolutional paper's figures: their settings, their measures on real digits, and what holds over seeds."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from condensation import GD, Adam, Conv, Dense, Evenly, Experiment, Images, Init, Loss, Model, Normal, train
from condensation._settings import reduced_text
from condensation.measure import count_lines
from condensation.papers import FIGURES
from condensation.papers._claims import PerSeed, exactly
from condensation.papers._figure import Available
from condensation.papers._trainings import untrained
from condensation.papers._variant import NotRun
from condensation.papers.cnn import fig1, optimizers
from condensation.papers.cnn.experiments import GD_RATE, GD_STEPS, balanced, deep, deep_to_the_end, descent, shallow
from condensation.papers.cnn.fig2 import Fig2
from condensation.papers.cnn.maps import Panel, map_claims
from condensation.papers.cnn.table import _parts_of_v1
from condensation.prediction._kernels import (
    cosine_to_v1,
    cosines_to,
    dynamics,
    initial_filters,
    predicted_model,
    predicted_sides,
    predicted_turning,
    times,
)
from condensation.seeds import Seed
from condensation.theory import KernelDynamics

FIGURES_OF_THE_PAPER = (
    *(f"cnn-fig{k}" for k in range(1, 14)),
    *("cnn-table", "cnn-theorem1", "cnn-samples", "cnn-accuracy", "cnn-equal", "cnn-zero", "cnn-optimizers"),
    *("cnn-speed", "cnn-reset", "cnn-dense"),
)


@pytest.fixture(scope="module")
def run():
    """Fig. 2's experiment on scikit-learn's digits, which are always there; these two classes have a gap of 20%."""
    experiment = Experiment(
        Conv((1, 8, 8), (16,), 3, 2),
        Init(Normal(1e-10), convolution=Normal(1e-11)),
        Images("digits", n=200, classes=(6, 9)),
        GD(5e-4),
        120,
        Loss("softmax_mse", "sum"),
        save=Evenly(16),
        record=Evenly(16),
        dtype="float32",
        kept_layers=("conv1",),
    )
    return train(experiment, 3)


def test_every_figure_of_the_paper_is_there():
    assert {name for name in FIGURES if name.startswith("cnn-")} == set(FIGURES_OF_THE_PAPER)
    assert {FIGURES[name].paper for name in FIGURES_OF_THE_PAPER} == {"CNN"}


def test_captioned_settings():
    two = descent("paper")
    assert (two.network.channels, two.network.kernel, two.network.hidden) == ((32,), 3, ())
    assert (two.optimizer, two.steps, two.data.n, two.loss) == (GD(5e-6), 4500, 500, Loss("softmax_mse", "sum"))
    assert two.init.convolution.std_of(two.network.layers[0], 32) == pytest.approx((35 / 2 * 9) ** -4)
    three = deep("paper")
    assert (three.network.channels, three.network.kernel, three.network.hidden) == ((32, 32, 32), 5, (1024,))
    assert (three.optimizer, three.steps, three.loss.name) == (Adam(2e-6), 300, "cross_entropy")
    assert 300 in deep_to_the_end("paper").saved_steps()
    one = {name: shallow("paper", name) for name in ("relu", "sigmoid", "tanh")}
    assert {name: each.steps for name, each in one.items()} == {"relu": 1000, "sigmoid": 5000, "tanh": 300}
    assert {each.optimizer for each in one.values()} == {Adam(5e-7)}
    assert balanced(three).data.balanced
    assert not three.data.balanced


def test_what_is_measured_of_descent(run):
    figure, control = Fig2({"descent": run}), Fig2({"descent": untrained(run)})
    for claim in Fig2.claims:
        if claim.trained:
            assert not any(control.measured(claim.key).holds(claim.rule)), claim.key
    assert np.min(figure.measured("predicted").values) >= 0.9
    assert np.min(figure.measured("v1").values) >= 0.95
    assert list(figure.measured("line").values) == [1, 1, 1]
    last = run.history("conv1", view="kernel")[0, -1].astype(float)
    cosines = np.abs(last.sum(axis=1)) / np.linalg.norm(last, axis=1) / 3
    table = figure._table()
    column = table.header.index("|cos| of kernels with 1")
    assert table.rows[0][column] == f"{cosines.mean():.4g} ± {cosines.std():.2g}"


def test_the_linear_dynamics_tell_how_filters_turn(run):
    early = run.loss[:, np.searchsorted(run.recorded, run.saved)] >= 0.99 * run.loss[:, :1]
    difference = np.abs(cosine_to_v1(run) - predicted_turning(run))
    assert difference[early].max() < 0.05


def test_times_are_of_the_mean_loss(run):
    np.testing.assert_allclose(times(run), 5e-4 * 200 * run.saved)


def test_the_initial_weights_are_those_that_were_trained(run):
    filters, outputs = initial_filters(run, 1)
    np.testing.assert_allclose(filters, run.weights("conv1", 0, 1, view="filter"), rtol=1e-6)
    assert outputs.shape == (16, 2 * 36)
    assert set(predicted_sides(run, 1)) == {-1, 1}


def test_the_linear_dynamics_at_time_zero_are_the_initial_network(run):
    x, _ = run.data(1)
    initial = run.experiment.init.draw(run.experiment.network, run.seeds[1].init_stream())
    np.testing.assert_allclose(predicted_model(run, 1, 0.0)(x), Model(run.experiment.network, initial)(x), rtol=1e-9)


def test_the_mean_over_the_samples_as_printed_does_not_condense(run):
    """The closed form of the claim beside the matrix exponential of [[0, Zᵀ], [Z, 0]]."""
    figure = Fig2({"descent": run})
    z = dynamics(run, 0)
    block = np.block([[np.zeros((z.z.shape[1],) * 2), z.z.T], [z.z, np.zeros((z.z.shape[0],) * 2)]])
    filters, outputs = initial_filters(run, 0)
    moved = np.concatenate([filters, outputs], axis=1) @ expm(GD_RATE * GD_STEPS["cifar10"] * block).T
    cosine = np.median(np.abs(cosines_to(moved[:, : filters.shape[1]], z.v1)))
    assert figure.as_printed().values[0] == pytest.approx(cosine, rel=1e-6)
    assert figure.as_printed().values[0] < 0.95


def test_rows_of_z_and_output_weights_stand_in_one_order(run):
    """The first step of the output weights is Z times the filters."""
    filters, outputs = initial_filters(run, 0)
    theory = dynamics(run, 0)
    step = 1e-6
    moved = theory.evolve(filters, outputs, step)[1]
    network, (x, y) = run.experiment.network, run.data(0)
    start = run.experiment.init.draw(network, run.seeds[0].init_stream())
    with jax.enable_x64(True):
        x, y = jnp.asarray(x, float), jnp.asarray(y, float)
        slope = jax.grad(lambda p: Loss("softmax_mse")(network.assemble(p)(x), y))(start)
    expected = -np.asarray(slope["output.weight"]).reshape(2, 16, -1).swapaxes(0, 1).reshape(16, -1)
    np.testing.assert_allclose((moved - outputs) / step, expected, atol=1e-3 * np.abs(expected).max())


def test_the_vertex_of_sign_descent_does_not_move():
    stream = np.random.default_rng(0)
    theory = KernelDynamics(stream.normal(size=(40, 10)), 1)
    vertex = optimizers.vertex(theory)
    assert set(np.abs(vertex)) == {1.0}
    np.testing.assert_array_equal(np.sign(theory.z.T @ np.sign(theory.z @ vertex)), vertex)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_filters_with_summed_output_weights(dtype):
    """With equal amplitudes in each group the reading to the letter is exact."""
    stream = np.random.default_rng(0)
    direction, signs = stream.normal(size=(3, 3, 3)), np.array([1, 1, -1, 1, -1, -1.0])
    network = Conv((3, 8, 8), (6,), 3, 4)
    parameters = {
        "conv1.weight": signs[:, None, None, None] * direction,
        "conv1.bias": 0.3 * signs,
        "output.weight": stream.normal(size=(4, 6 * 36)),
    }
    model = Model(network, {name: value.astype(dtype) for name, value in parameters.items()})
    x = stream.normal(size=(5, 3, 8, 8)).astype(dtype)
    for weighted in (True, False):
        small = fig1.merge_sides(model, weighted)
        assert small.network.channels == (2,)
        np.testing.assert_allclose(small(x), model(x), atol=1e-5)


def test_claims_of_maps():
    panels = (Panel("a", "run", "conv1", "a network, layer 1", "a", 2), Panel("b", "run", "conv2", "it, layer 2", "b"))
    claims = {claim.key: claim for claim in map_claims("Fig. X", panels, "at the end")}
    assert set(claims) == {"a", "b", "a-sides", "run-accuracy"}
    assert claims["a-sides"].rule.value == 2


def test_relu_on_mnist_is_looked_at_where_each_seed_is_most_condensed():
    """By brute force over the saved steps before the loss falls below 70%; Fig. 13 tells the loss there."""
    relu = Experiment(
        Conv((1, 8, 8), (8,), 3, 10, (16,), "relu"),
        Init(Normal(1e-2), convolution=Normal(1e-2)),
        Images("digits", n=60),
        Adam(5e-3),
        60,
        Loss("cross_entropy"),
        save=Evenly(13),
        record=Evenly(61),
        dtype="float32",
        kept_layers=("conv1",),
    )
    trained = train(relu, 3)
    figure = FIGURES["cnn-fig8"]({"relu": trained})
    loss = trained.loss[:, trained.saved] / trained.loss[:, :1]
    assert (loss[:, -1] < 0.7).all()  # the last saved step is not in the initial stage
    kernels, expected = trained.history("conv1", view="kernel"), []
    for k in range(3):
        stage = int(np.argmax(loss[k] < 0.7))
        k_eff = [count_lines(kernels[k : k + 1, j : j + 1]).k_eff[0, 0] for j in range(stage)]
        expected.append(int(trained.saved[np.argmin(k_eff)]))
    assert list(figure.counts["kernel"]["relu"].steps) == expected
    losses = FIGURES["cnn-fig13"]({"8-relu": trained})
    np.testing.assert_allclose(losses.loss("8-relu").values, trained.loss[range(3), expected] / trained.loss[:, 0])
    assert "8-relu" not in {claim.key for claim in FIGURES["cnn-fig13"].claims}  # it is looked at within the stage
    assert "of its first value" in figure.there_and_before(figure.panels[0])


def test_relu_on_mnist_is_trained_further_than_in_fig_4():
    experiments = FIGURES["cnn-fig8"].experiments("paper")
    assert {name: each.steps for name, each in experiments.items()} == {"relu": 6000, "sigmoid": 5000, "tanh": 300}
    assert experiments["relu"].optimizer == Adam(5e-7)
    assert FIGURES["cnn-fig4"].experiments("paper")["relu"].steps == 1000


@pytest.mark.parametrize(("lines", "holds"), [([1, 3], (True, True)), ([4, 2], (False, True)), ([0, 1], (False, True))])
def test_a_few_lines_at_the_end_are_a_condensation_and_no_line_is_none(lines, holds):
    """The text gives no number for the end of training: one or a few lines, and the layer must be condensed."""
    condensed = np.array(lines) > 0
    figure = SimpleNamespace(
        counts={"kernel": {"final-conv1": SimpleNamespace(lines_found=lambda: PerSeed(lines, condensed))}}
    )
    claim = FIGURES["cnn-fig3"].claim("final-conv1")
    assert claim.measure(figure).holds(claim.rule) == holds
    assert FIGURES["cnn-fig3"].claim("conv1").rule == exactly(1)  # of the initial stage the text says two directions


def test_spreads_are_told_by_where_the_papers_lie_among_sets_of_draws():
    figure = FIGURES["cnn-table"]({})
    figure.spreads = np.array(
        [[0.0349, 0.00094, 0.0009], [0.02, 0.002, 0.0009], [0.03, 0.003, 0.0009], [1, 0.004, 0.0009]]
    )
    assert figure.tail_of_spread(0) == 0.5
    assert figure.tail_of_spread(1) == 0.25  # 0.00094 is 0.0009 to four digits
    assert figure.tail_of_spread(2) == 0
    assert FIGURES["cnn-table"].claim("blue-spread").rule.holds(figure.tail_of_spread(2)) is False


def test_the_parts_of_v1_from_the_small_matrix():
    x, y = Images("digits", n=80, target="index").draw(Seed(0, 0))
    np.testing.assert_allclose(_parts_of_v1(x, y), KernelDynamics.of(x, y, 3).channel_cosines, rtol=1e-9)


def test_a_dense_networks_z_has_rank_zero_where_each_image_has_both_labels():
    experiment = Experiment(
        Dense((64, 4, 1)),
        Init(Normal(1e-6)),
        Images("digits", n=30, classes=(0, 1), target="sign", flat=True),
        GD(1e-3),
        1,
    )
    figure = FIGURES["cnn-dense"]({"dense": train(experiment, 2)})
    assert set(figure.measured("rank-one").values) == {1}
    assert set(figure.measured("rank-zero").values) == {0}


@pytest.mark.parametrize("name", ["cnn-fig3", "cnn-fig4"])
def test_a_panel_without_its_run_is_not_run(name):
    figure = FIGURES[name](Available({}, dict.fromkeys(FIGURES[name].experiments("quick"), "no images")))
    for claim in figure.claims:
        with pytest.raises(NotRun, match="no images"):
            figure.measured(claim.key)


def shares(measured_of, name):
    """In which share of the seeds each claim of a figure holds; one that decides nothing does not count for it."""
    return {
        key: np.mean([holds is True for holds in values.holds(rule)])
        for key, (values, rule, _) in measured_of(name).items()
    }


@pytest.mark.download
def test_the_parts_of_v1_are_the_papers(measured_of):
    found = shares(measured_of, "cnn-table")
    assert found.pop("cnn-table-integer-kernel") == 0  # v1 is mostly bias with integer labels
    assert min(found.values()) == 1


@pytest.mark.download
@pytest.mark.parametrize("name", ["cnn-fig2", "cnn-fig10"])
def test_descent_condenses_on_v1(measured_of, name):
    found = shares(measured_of, name)
    assert all(found[f"{name}-{key}"] == 1 for key in ("line", "sides", "v1", "predicted", "gap"))


@pytest.mark.download
def test_deep_layers_condense_and_filters_stay_so(measured_of):
    found = shares(measured_of, "cnn-fig3")
    assert all(found[f"cnn-fig3-{key}"] >= 2 / 3 for key in ("conv2", "conv3"))
    assert all(found[f"cnn-fig3-final-conv{k}-filters"] >= 2 / 3 for k in (1, 2, 3))
    assert found["cnn-fig3-final-conv1"] >= 2 / 3


@pytest.mark.trials
def test_theorem_1_tells_which_images_its_numbers_are_of():
    """Settings are those of the paper scale, and a number that was measured at the quick scale names its own images."""
    figure = FIGURES["cnn-theorem1"]
    quick, paper = (figure.experiments(scale) for scale in ("quick", "paper"))
    run = train(quick["gamma = 4, M = 32"].replace(steps=1, save=Evenly(2)), 2)
    gap = figure({"gamma = 4, M = 32": run}).gap_in_words()
    assert run.experiment.describe()["data"] in gap
    assert "of the quick scale" in gap
    reduced = reduced_text(quick, paper)
    assert "scikit-learn's digits" in reduced
    assert "left out: gamma = 4, M = 128; " in reduced
    assert "the theorem names none" in figure.chosen
