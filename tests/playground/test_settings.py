"""The page's settings: read, bounded, written; the experiments they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import Experiment, GradientFlow, InputError, Seed
from condensation.papers.attention.in_context import in_context
from condensation.papers.attention.stages import whole
from condensation.papers.fc.experiments import FIG5_ACTIVATIONS, LINES, fig3, low_frequency, one_input, six_layers
from condensation.playground._presets import presets
from condensation.playground._settings import LIMITS, OPTIMIZERS, Settings
from condensation.theory import labels_for

PRESETS = presets()
FIGURES = {figure["name"]: figure for figure in PRESETS["figures"]}
PAPER = {
    **{f"fc-fig3-{name}": fig3(name) for name in LINES},
    "fc-fig4": six_layers(residual=True),
    "fc-a5": six_layers(residual=False),
    **{f"fc-fig6-{name}": one_input(name) for name in FIG5_ACTIVATIONS},
    **{f"fc-a7-{name}": low_frequency(name) for name in LINES},
}


@given(
    st.sampled_from(sorted(OPTIMIZERS)),
    st.floats(1e-12, 10),
    st.integers(1, 128),
    st.lists(st.sampled_from(["tanh", "relu", "x_tanh"]), min_size=1, max_size=5),
    st.integers(0, 2**31 - 1),
    st.booleans(),
)
def test_words_and_back(optimizer, std, width, layers, seed, residual):
    settings = Settings(optimizer=optimizer, std_w=std, width=width, layers=tuple(layers), seed=seed, residual=residual)
    again = Settings.from_text(settings.to_text())
    assert again.to_text() == settings.to_text()
    assert again.std_w == pytest.approx(std, rel=1e-11)
    assert replace(again, std_w=1.0) == replace(settings, std_w=1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"widht": "3"}, "did you mean 'width'"),
        ({"width": "401"}, "from 1 to 400"),
        ({"width": "1e9"}, "from 1 to 400"),
        ({"width": "2.5"}, "whole number"),
        ({"width": "nan"}, "must be a number"),
        ({"std_w": "inf"}, "must be a number"),
        ({"std_w": "0"}, "from 1e-12"),
        ({"rate": "-1"}, "rate must be from"),
        ({"layers": ""}, "1 to 5 hidden layers"),
        ({"layers": "tanh," * 6}, "1 to 5 hidden layers"),
        ({"layers": "os:system"}, "unknown activation"),
        ({"layers": "tanh,tanh", "width": "400"}, "128 wide at most"),
        ({"optimizer": "sgd"}, "unknown optimizer"),
        ({"data": "points"}, "click to draw some"),
        ({"data": "points", "points": "1,2"}, "points are needed"),
        ({"data": "points", "points": "1,2,3;1,2,1"}, "each from -2 to 2"),
        ({"data": "points", "points": "1,x,0;1,1,0"}, "must be a number"),
        ({"bias": "0"}, "keep the bias"),
        ({"bias": "yes"}, "0 or 1"),
        ({"width": 3}, "must be a text"),
        ({"low": "2"}, "low to a higher high"),
        ({"n": "400", "width": "400"}, "100 can be used here"),
        ({"data": "digits", "layers": "tanh,tanh,tanh", "width": "32", "n": "400"}, "too many for 3 layers"),
        ({"n": "401"}, "from 2 to 400 for these data"),
        ({"data": "sequences"}, "32 wide at most, not 100"),
        ({"data": "sequences", "width": "8", "heads": "9"}, "from 1 to 8"),
        ({"data": "sequences", "width": "4", "heads": "5"}, "4 heads at most, not 5"),
        ({"data": "sequences", "width": "8", "layers": "tanh,tanh"}, "1 dense hidden layer here, not 2"),
        ({"data": "sequences", "width": "32", "tokens": "64"}, "19 can be used here"),
        ({"data": "sequences", "width": "8"}, "neuron-normalised descent"),
        ({"data": "context", "eigenvalues": ""}, "are needed, not none"),
        ({"data": "context", "eigenvalues": "0.4,-1"}, "1 to 8 eigenvalues"),
        ({"data": "context", "eigenvalues": "0.4,x"}, "must be a number"),
        ({"data": "context", "n": "2000", "heads": "8"}, "1250 can be used here"),
        ({"data": "context", "n": "2", "optimizer": "gd"}, "cannot be whitened"),
    ],
)
def test_what_cannot_be_is_said(settings, said):
    with pytest.raises(InputError, match=said):
        Settings.from_text(settings).experiment()


def test_an_even_grid_takes_the_next_number_of_samples_that_fills_it():
    assert [Settings(inputs=d, n=n).n for d, n in ((1, 40), (2, 40), (3, 100), (6, 400))] == [40, 36, 125, 64]


@pytest.mark.parametrize("formula", ["__import__('os')", "x.__class__", "y", "sin(x", "x" * 501, "1/(x-x)"])
def test_a_formula_is_parsed_and_never_run(formula):
    with pytest.raises(InputError):
        Settings(formula=formula).experiment().data.draw(Seed(0, 0))


def test_every_number_has_its_bounds():
    numbers = {n for n, default in vars(Settings()).items() if type(default) in (int, float)} | {"reduce"}
    assert numbers == LIMITS.keys()


@pytest.mark.parametrize("name", PAPER)
def test_the_examples_of_the_fc_paper_are_its_experiments(name):
    made, experiment = Settings.from_text(FIGURES[name]["settings"]).experiment(), PAPER[name]
    assert (made.network, made.optimizer) == (experiment.network, experiment.optimizer)
    seed = Seed(2, 2)
    for drawn, known in zip(made.data.draw(seed), experiment.data.draw(seed), strict=True):
        np.testing.assert_allclose(drawn, known, rtol=1e-12, atol=1e-12)
    mine, theirs = (one.init.draw(one.network, seed.init_stream()) for one in (made, experiment))
    for name, value in theirs.items():
        np.testing.assert_array_equal(mine[name], value)


@pytest.mark.parametrize(
    ("name", "experiment"),
    [
        ("attn-stages", whole("tanh")),
        ("attn-stages-linear", whole("linear")),
        ("icl-staircase", in_context("rank1", 1000)),
        ("icl-rank2", in_context("rank2", 1000)),
        ("icl-merged", in_context("merged", 1000)),
    ],
)
def test_the_examples_of_attention_are_the_figures_experiments(name, experiment):
    made, seed = Settings.from_text(FIGURES[name]["settings"]).experiment(), Seed(2, 2)
    assert (made.network, made.loss) == (experiment.network, experiment.loss)
    name = "time_step" if isinstance(made.optimizer, GradientFlow) else "learning_rate"
    assert type(made.optimizer) is type(experiment.optimizer)
    assert getattr(made.optimizer, name) == getattr(experiment.optimizer, name)
    for drawn, known in zip(made.data.draw(seed), experiment.data.draw(seed), strict=True):
        np.testing.assert_array_equal(drawn.reshape(known.shape), known)
    mine, theirs = (one.init.draw(one.network, seed.init_stream()) for one in (made, experiment))
    for layer, value in theirs.items():
        np.testing.assert_array_equal(mine[layer], value)
    assert Experiment.from_toml(made.to_toml()) == made


def test_all_that_is_offered_can_be_opened():
    comparisons = [comparison for scene in PRESETS["scenes"] for comparison in scene["compare"]]
    offered = [*PRESETS["targets"], *PRESETS["figures"], *PRESETS["scenes"], *comparisons]
    assert len(offered) > 40
    for preset in offered:
        Settings.from_text(preset["settings"]).experiment().data.draw(Seed(0, 0))


def test_figures_are_known_by_name():
    assert len(FIGURES) == len(PRESETS["figures"])
    assert {*PAPER, "cnn-fig2", "cnn-fig3"} <= FIGURES.keys()


@pytest.mark.parametrize("name", ["condense", "initial_condense"])
def test_public_notebooks_are_presets_and_files(name):
    preset = Settings.from_text(FIGURES[f"dlphenomena-{name}"]["settings"]).experiment()
    whole = Experiment.load(Path(__file__).parents[2] / "examples" / f"{name}.toml")
    for mine, theirs in zip(preset.data.draw(Seed(3, 3)), whole.data.draw(Seed(3, 3)), strict=True):
        np.testing.assert_allclose(mine, theirs)
    stds = [each.initial_model(0).weights(1).std() for each in (preset, whole)]
    assert stds[0] == pytest.approx(stds[1], rel=0.15)
    assert preset.network.activations == whole.network.activations
    assert preset.optimizer.learning_rate == whole.optimizer.learning_rate


def test_a_scene_has_the_targets_that_attract_to_the_axes_of_a_tetrahedron():
    scene = next(scene for scene in PRESETS["scenes"] if scene["name"] == "beyond")
    points = np.array(Settings.from_text(scene["settings"]).points)
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    targets = labels_for(corners, np.c_[points[:, :2], np.ones(len(points))], 3)
    np.testing.assert_allclose(points[:, 2], targets / np.abs(targets).max(), atol=5e-5)
