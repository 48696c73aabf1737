from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from condensation import Adam, Dense, Every, Experiment, Init, Normal, train, two_waves
from condensation.drawing import draw_features, draw_history, draw_loss, draw_similarity, save
from condensation.drawing._panels import draw_distribution
from condensation.drawing._style import BEIGE, NAVY, figure_of, new_axes
from condensation.measure import count_lines


@pytest.fixture(scope="module")
def trajectory():
    experiment = Experiment(
        Dense((1, 60, 1), "x_tanh"), Init(Normal(0.005)), two_waves(), Adam(5e-4), 200, save=Every(50)
    )
    return train(experiment, 3)


def test_the_heat_map_is_beige_for_plus_one_and_navy_for_minus_one(trajectory):
    axes = draw_similarity(np.array([[1.0, 1], [-1, -1], [2, 2]]), title="three")
    image = axes.images[0]
    cosines = np.asarray(image.get_array())
    np.testing.assert_allclose(np.sort(cosines[0]), [-1, 1, 1] if cosines[0].sum() > 0 else [-1, -1, 1])
    colours = [to_hex(image.cmap(image.norm(value))) for value in (1.0, -1.0)]
    assert colours == [BEIGE, NAVY]
    assert axes.get_title() == "three"


def test_the_loss_is_drawn_with_the_70_percent_line(trajectory):
    axes = draw_loss(trajectory)
    assert len(axes.lines) >= len(trajectory.seeds) + 2
    assert any(np.allclose(np.asarray(line.get_ydata(), float), 0.7) for line in axes.lines)
    assert axes.get_xlabel() == "step"


def test_the_history_shows_lines_and_k_eff(trajectory):
    history = count_lines(trajectory.history(1))
    axes = draw_history(trajectory.saved, history)
    drawn = {line.get_label(): np.asarray(line.get_ydata(), float) for line in axes.lines}
    np.testing.assert_allclose(drawn["lines"], np.median(history.lines, axis=0))
    np.testing.assert_allclose(drawn["$k_{eff}$"], np.median(history.k_eff, axis=0))


def test_every_neuron_is_in_the_feature_picture(trajectory):
    weights = trajectory.weights(1, 200, 0)
    axes = draw_features(weights, trajectory.weights("output", 200, 0))
    assert sum(len(points.get_offsets()) for points in axes.collections) == len(weights)


def test_pictures_are_saved_as_vectors_and_pixels(trajectory, tmp_path):
    axes = draw_similarity(trajectory.weights(1, 200, 0))
    paths = save(axes, tmp_path / "new" / "map")
    assert [path.suffix for path in paths] == [".pdf", ".png"]
    assert paths[0].read_bytes().startswith(b"%PDF")
    assert save(figure_of(axes), tmp_path / "map.svg")[0].read_text().startswith("<?xml")


@pytest.mark.parametrize("gone", [1, 3])
def test_diverged_seeds_are_told_and_have_no_count(gone):
    weights = np.random.default_rng(0).normal(size=(3, 2, 8, 4))
    weights[:gone, 1:] = np.nan
    history = count_lines(weights)
    axes = draw_history(np.array([0, 10]), history)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"lines ({gone} of 3 seeds diverged)" in names
    (median,) = [line.get_ydata() for line in axes.lines if line.get_label().startswith("lines")]
    expected = np.median(history.lines[gone:, 1]) if gone < 3 else np.nan
    np.testing.assert_array_equal(median, [np.median(history.lines[:, 0]), expected])
    last = count_lines(weights[:, 1:])
    counts = SimpleNamespace(lines=last.lines[:, 0], condensed=last.condensed[:, 0], shown=weights[0, 0], history=last)
    axes = draw_distribution(new_axes(), counts, 1, 4)
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx((3 - gone) / 3)
    assert [text.get_text() for text in axes.texts] == [f"3 seeds, {gone} diverged"]
