"""The page's settings: read, bounded, written; the experiments they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import InputError, Seed
from condensation.papers.fc.experiments import fig3, one_input, six_layers
from condensation.playground._presets import figures, settings_of, targets
from condensation.playground._settings import LIMITS, OPTIMIZERS, Settings
from condensation.playground._tour import scenes


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
    assert again.replace(std_w=1.0) == settings.replace(std_w=1.0)


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


@pytest.mark.parametrize("experiment", [fig3("tanh"), six_layers(True), one_input("x2_tanh")])
def test_a_papers_experiment_as_settings_is_the_same(experiment):
    made = settings_of(experiment).experiment()
    assert (made.network, made.optimizer) == (experiment.network, experiment.optimizer)
    seed = Seed(2, 2)
    for drawn, known in zip(made.data.draw(seed), experiment.data.draw(seed), strict=True):
        np.testing.assert_allclose(drawn, known, rtol=1e-12, atol=1e-12)
    mine, theirs = (one.init.draw(one.network, seed.init_stream()) for one in (made, experiment))
    for name, value in theirs.items():
        np.testing.assert_array_equal(mine[name], value)


def test_all_that_is_offered_can_be_opened():
    offered = [one["settings"] for one in (*figures(), *targets())]
    offered += [one["settings"] for scene in scenes() for one in (scene.plain(), *scene.plain()["compare"])]
    assert len(offered) > 40
    for settings in offered:
        Settings.from_text(settings).experiment().data.draw(Seed(0, 0))


def test_figures_are_known_by_name():
    names = [one["name"] for one in figures()]
    assert len(set(names)) == len(names)
    assert {"fc-fig3-tanh", "fc-fig4", "fc-a5", "fc-fig6-x2_tanh", "fc-a7-tanh", "cnn-fig2", "cnn-fig3"} <= set(names)
