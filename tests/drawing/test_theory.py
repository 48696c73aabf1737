"""Pictures of the theory."""

import numpy as np
import pytest

from condensation import Seed, two_waves
from condensation.drawing import draw_field, draw_predicted, save
from condensation.drawing._style import figure_of
from condensation.theory import field, stationary_directions


@pytest.fixture
def waves():
    x, y = two_waves(spacing="even").draw(Seed(0, 0))
    return np.concatenate([x, np.ones((len(x), 1))], axis=1), y[:, 0]


def test_the_field_is_drawn_with_its_lines_and_neurons(waves, tmp_path):
    x, y = waves
    weights = np.random.default_rng(0).normal(size=(12, 2))
    axes = draw_field(x, y, "x2_tanh", weights=weights, outputs=np.ones(12), title="cubic")
    lines = stationary_directions(x, y, 3)
    drawn = [line for line in axes.lines if len(np.asarray(line.get_xdata())) == 2]
    assert len(drawn) == lines.count == 3
    slopes = [np.ptp(line.get_ydata()) / np.ptp(line.get_xdata()) for line in drawn]
    np.testing.assert_allclose(sorted(slopes), sorted(np.abs(lines.directions[:, 1] / lines.directions[:, 0])))
    grid, own = (collection for collection in axes.collections if hasattr(collection, "U"))
    at = np.stack([grid.X, grid.Y], axis=1)
    arrows = field(at, x, y, "x2_tanh")
    length = np.linalg.norm(arrows, axis=1)
    moving = length > 0
    drawn = np.stack([grid.U, grid.V], axis=1)
    np.testing.assert_allclose(drawn[moving], arrows[moving] / length[moving, None])
    assert len(own.U) == 12
    assert save(axes, tmp_path / "field.png")[0].stat().st_size > 10_000


def test_even_multiplicity_tells_the_two_signs_apart(waves):
    axes = draw_field(*waves, "x_tanh")
    labels = {text.get_text() for text in figure_of(axes).legends[0].get_texts()}
    assert labels == {"attracts $ac > 0$", "attracts $ac < 0$"}


def test_neurons_are_counted_on_predicted_lines(waves):
    lines = stationary_directions(*waves, 3)
    weights = np.concatenate([3 * lines.directions[:1], -lines.directions[:1], lines.directions[1:2]])
    axes = draw_predicted(weights, lines)
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "3 of 3 neurons on a predicted line"
    assert [text.get_text() for text in legend.get_texts()] == ["line 1: 2", "line 2: 1", "line 3: 0"]
