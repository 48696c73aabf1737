import io

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from condensation.drawing import Boundary, Mark, Regime, draw_phase_map, draw_phase_maps, save
from condensation.drawing._map_cells import SEQUENTIAL
from condensation.drawing._phase_map import DIVERGING
from condensation.drawing._style import FAINT, figure_of, new_axes
from condensation.errors import InputError

NAMES = {"quantity": "slope", "labels": ("gamma", "rate")}
PLAIN = LinearSegmentedColormap.from_list("plain", SEQUENTIAL)
BOTH = LinearSegmentedColormap.from_list("both", DIVERGING)


def pixels(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] / 255


def colours_at(axes: Axes, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What is painted at places of the map, rows x columns x 3."""
    image = pixels(figure_of(axes))
    places = axes.transData.transform(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)).round().astype(int)
    return image[len(image) - 1 - places[:, 1], places[:, 0]].reshape(len(y), len(x), 3)


def mesh_of(axes: Axes) -> QuadMesh:
    return next(part for part in axes.collections if isinstance(part, QuadMesh))


def corners_of(axes: Axes) -> tuple[np.ndarray, np.ndarray]:
    corners = np.asarray(mesh_of(axes).get_coordinates())
    return corners[0, :, 0], corners[:, 0, 1]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
def test_each_cell_is_painted_at_its_place(log, order):
    x = np.geomspace(1e-3, 10, 5) if log else np.linspace(-1, 1, 5)
    y = np.array([30.0, 100, 300, 1000]) if log else np.array([1.0, 2, 3, 4])
    values = np.random.default_rng(0).normal(size=(4, 5))
    axes = draw_phase_map(values[:, order], x[order], y, **NAMES)
    assert (axes.get_xscale(), axes.get_yscale()) == (("log",) * 2 if log else ("linear",) * 2)
    expected = PLAIN((values - values.min()) / np.ptp(values))[..., :3]
    np.testing.assert_allclose(colours_at(axes, x, y), expected, atol=0.02)


def test_cells_meet_half_way():
    across, up = corners_of(draw_phase_map(np.zeros((3, 4)), [1, 10, 100, 1000], [0, 1, 3], **NAMES))
    np.testing.assert_allclose(across, 10 ** np.arange(-0.5, 4))
    np.testing.assert_allclose(up, [-0.5, 0.5, 2, 4])


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ([1, 2, 4], "log"),
        ([1, 2, 3], "linear"),
        ([100, 300, 1000, 3000], "log"),
        ([1, 2, 5, 10, 20, 50], "log"),
        (np.geomspace(1, 1.2, 5), "log"),
        (np.linspace(1e-3, 1, 30), "linear"),
        ([1, 10], "linear"),  # too few to tell
        ([0, 1, 10, 100], "linear"),
        ([-1, -10, -100], "linear"),
        ([1, 2, 1000], "linear"),
    ],
)
def test_the_scale_of_an_axis(numbers, scale):
    assert draw_phase_map(np.zeros((1, len(numbers))), numbers, [1], **NAMES).get_xscale() == scale
    assert draw_phase_map(np.zeros((len(numbers), 1)), [1], numbers, **NAMES).get_yscale() == scale


def test_missing_cells_are_grey_and_hatched():
    values = np.arange(12.0).reshape(3, 4)
    values[0, 1], values[2, 3] = np.nan, np.inf
    axes = draw_phase_map(values, range(4), range(3), **NAMES)
    (grey,) = [part for part in axes.collections if isinstance(part, PolyCollection)]
    assert grey.get_hatch()
    centres = [np.asarray(path.vertices)[:4].mean(axis=0).tolist() for path in grey.get_paths()]
    assert sorted(centres) == [[1, 0], [3, 2]]
    painted = colours_at(axes, np.arange(4.0), np.arange(3.0))
    chroma = np.ptp(painted, axis=-1)
    np.testing.assert_array_equal(chroma < 0.01, ~np.isfinite(values))
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["missing or diverged"]
    cell = pixels(figure_of(axes))[..., 0]
    assert (np.abs(cell - to_rgb(FAINT)[0]) < 0.01).sum() > 500  # grey there is, between darker lines
    none = draw_phase_map(np.ones((2, 2)), [0, 1], [0, 1], **NAMES)
    assert none.get_legend() is None
    assert len(none.collections) == 1


def test_centred_colours_are_neutral_at_zero_and_mean_as_much_on_either_side():
    values = np.array([[-2.0, -1.0, 0.0, 1.0, 4.0]])
    for limits, half in ((None, 4.0), ((-2.0, 4.0), 4.0), ((-8.0, 4.0), 8.0)):
        axes = draw_phase_map(values, range(5), [0], **NAMES, centred=True, limits=limits)
        found = colours_at(axes, np.arange(5.0), np.zeros(1))[0]
        np.testing.assert_allclose(found, BOTH((values[0] / half + 1) / 2)[:, :3], atol=0.03)
        np.testing.assert_allclose(found[2], to_rgb(DIVERGING[2]), atol=0.03)
        low, high = mesh_of(axes).get_clim()
        assert (low, high) == ((-4.0, 4.0) if limits is None else limits)


def test_both_sides_of_the_centred_colours_darken():
    rgb = BOTH(np.linspace(0, 1, 101))[:, :3]
    luminance = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance[:51]) > 0).all()
    assert (np.diff(luminance[50:]) < 0).all()
    np.testing.assert_allclose(luminance, luminance[::-1], atol=0.06)
    assert (rgb[:45, 2] > rgb[:45, 0]).all()  # blue on one side,
    assert (rgb[56:, 0] > rgb[56:, 2]).all()  # orange on the other: told apart without red or without green


def test_logarithmic_colours_and_limits():
    values = np.array([[1.0, 10.0, 100.0]])
    axes = draw_phase_map(values, range(3), [0], **NAMES, logarithmic=True)
    assert isinstance(mesh_of(axes).norm, LogNorm)
    painted = colours_at(axes, np.arange(3.0), np.zeros(1))[0]
    np.testing.assert_allclose(painted, PLAIN([0.0, 0.5, 1.0])[:, :3], atol=0.02)
    axes = draw_phase_map(values, range(3), [0], **NAMES, limits=(5.0, 50.0))
    assert mesh_of(axes).get_clim() == (5.0, 50.0)
    painted = colours_at(axes, np.arange(3.0), np.zeros(1))[0]
    np.testing.assert_allclose(painted[[0, 2]], PLAIN([0.0, 1.0])[:, :3], atol=0.02)


def test_boundaries_lie_on_the_scale_of_the_cells():
    x = np.geomspace(1, 100, 5)
    theory = Boundary(np.array([1.0, 100.0]), np.array([0.0, 2.0]), "theory")
    found = Boundary(np.array([10.0, 10.0]), np.array([0.0, 2.0]), "found", found=True)
    axes = draw_phase_map(np.zeros((3, 5)), x, [0, 1, 2], **NAMES, boundaries=[theory, found])
    drawn = {str(line.get_label()): line for line in axes.lines}
    np.testing.assert_array_equal(drawn["theory"].get_xdata(), theory.x)
    assert drawn["theory"].get_linestyle() == "-"
    assert drawn["found"].get_linestyle() == "--"
    assert drawn["found"].get_marker() == "o"
    assert drawn["found"].get_color() != drawn["theory"].get_color()
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["theory", "found"]
    pixels(figure_of(axes))
    below, name = legend.get_window_extent(), axes.xaxis.label.get_window_extent()
    assert below.y1 <= name.y0  # the legend is below the name of the axis
    assert below.y0 >= 0  # and on the figure


MARKS = [Mark(0.5, 0, "NTK"), Mark(1, 0, "mean-field"), Mark(1, 0, "Xavier"), Mark(0.5, 0.5, "LeCun")]
MARKS += [Mark(2.45, 0.1, "far right"), Mark(1.0, 0.2, "close by"), Mark(9, 9, "outside")]
REGIMES = [Regime(0.7, -0.6, "linear"), Regime(2.4, 0.9, "condensed"), Regime(1.1, 1.2, "critical"), Regime(9, 0, "no")]


def test_texts_have_halos_and_room():
    line = Boundary(np.array([1.0, 1.0, 1.6]), np.array([-1.2, 0, 1.7]), "theory")
    gamma, prime = np.linspace(0.5, 2.5, 9), np.linspace(-1, 1.5, 9)
    values = np.subtract.outer(prime, gamma)
    axes = draw_phase_map(values, gamma, prime, **NAMES, centred=True, boundaries=[line], marks=MARKS, regimes=REGIMES)
    pixels(figure_of(axes))
    names = {text.get_text(): text for text in axes.texts}
    labels = {"NTK", "mean-field, Xavier", "LeCun", "far right", "close by"}
    assert set(names) == labels | {"linear", "condensed", "critical"}
    assert all(text.get_path_effects() for text in axes.texts)
    boxes = {
        name: Annotation.get_window_extent(text) if isinstance(text, Annotation) else text.get_window_extent()
        for name, text in names.items()
    }
    frame = axes.get_window_extent()
    for name, box in boxes.items():
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1, name
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1, name
        assert sum(box.overlaps(other) for other in boxes.values()) == 1, name


def test_names_are_ticks():
    names = ["tanh", "relu", "sigmoid", "softplus", "leaky_relu", "x2_tanh"]
    axes = draw_phase_map(
        np.eye(2, 6), names, ["GD", "Adam"], **NAMES, boundaries=[Boundary(np.arange(2.0), np.ones(2), "line")]
    )
    assert [tick.get_text() for tick in axes.get_xticklabels()] == names
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["GD", "Adam"]
    painted = colours_at(axes, np.arange(6.0), np.array([0.3, 1.3]))
    assert (painted[0, 0] == painted[1, 1]).all()
    legend = axes.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y1 <= axes.xaxis.label.get_window_extent().y0


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_maps_of_one_row_or_column(shape):
    rows, columns = shape
    axes = draw_phase_map(np.ones(shape), 3e-4 + np.arange(columns), np.arange(rows), **NAMES, title="t")
    across, up = corners_of(axes)
    assert (np.diff(across) > 0).all()
    assert (np.diff(up) > 0).all()
    assert (len(up) - 1, len(across) - 1) == shape
    pixels(figure_of(axes))
    none = draw_phase_map(np.full(shape, np.nan), range(columns), range(rows), **NAMES, logarithmic=True)
    pixels(figure_of(none))


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8, unique=True),
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8, unique=True),
)
@example([0.0], [1.0, 0.0016866455078125, 0.0016866455078125002])  # two have the same logarithm
def test_every_centre_is_in_its_own_cell(x, y):
    axes = draw_phase_map(np.zeros((len(y), len(x))), x, y, **NAMES)
    for numbers, edges in zip((x, y), corners_of(axes), strict=True):
        numbers = np.sort(numbers)
        assert (edges[:-1] <= numbers).all()
        assert (numbers <= edges[1:]).all()


def test_long_titles_stay_on_the_figure():
    title = "A very long title that says what was swept, of which data ($x \\in R^5$, 80 samples), and for how long"
    axes = draw_phase_map(np.eye(3), range(3), range(3), quantity=title, labels=("a", "b"), title=title)
    figure = figure_of(axes)
    pixels(figure)
    for text in (axes.title, figure.axes[1].yaxis.label):
        box = text.get_window_extent()
        assert "$x \\in R^5$," in text.get_text()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1


def test_it_draws_on_axes_that_it_is_given(tmp_path):
    given_axes = new_axes()
    axes = draw_phase_map(np.eye(2), [0, 1], [0, 1], given_axes, **NAMES, title="here")
    assert axes is given_axes
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("here", "gamma", "rate")
    assert figure_of(axes).axes[1].get_ylabel() == "slope"
    assert save(axes, tmp_path / "map.pdf")[0].read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(("count", "rows"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (7, 3)])
def test_panels_share_one_colour_bar(count, rows):
    values = np.arange(12.0).reshape(3, 4)
    panels = {f"m = {k}": values * (k + 1) for k in range(count)}
    lines = {"m = 0": [Boundary(np.arange(2.0), np.arange(2.0), "theory")]}
    figure = draw_phase_maps(panels, range(4), range(3), **NAMES, boundaries=lines, title="all")
    *maps, bar = figure.axes
    assert [axes.get_title() for axes in maps] == list(panels)
    assert bar.get_ylabel() == "slope"
    assert {mesh_of(axes).get_clim() for axes in maps} == {(0.0, 11.0 * count)}
    pixels(figure)
    assert len({round(axes.get_position().y0, 3) for axes in maps}) == rows
    assert [len(axes.lines) for axes in maps] == [1] + [0] * (count - 1)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["theory"]
    named = [axes for axes in maps if axes.get_xlabel()]
    lowest = {round(axes.get_position().x0, 3): axes for axes in maps}  # later ones are lower
    assert named == sorted(lowest.values(), key=maps.index)


def test_a_boundary_looks_the_same_in_each_panel():
    theory, found = (Boundary(np.arange(2.0), np.arange(2.0), label, label == "found") for label in ("theory", "found"))
    panels = {"a": np.eye(2), "b": np.full((2, 2), np.nan)}
    figure = draw_phase_maps(panels, [0, 1], [0, 1], **NAMES, boundaries={"a": [theory, found], "b": [found]})
    assert figure.axes[0].lines[1].get_color() == figure.axes[1].lines[0].get_color()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["theory", "found", "missing or diverged"]
    figure.savefig(io.BytesIO(), format="svg")


def test_what_cannot_be_drawn_is_refused(unchecked):
    with pytest.raises(InputError, match=r"rows x columns, both at least 1, not of shape \(2,\)"):
        draw_phase_map(np.ones(2), [1], [1, 2], **NAMES)
    with pytest.raises(InputError, match="the x axis must be one value for each of 2 cells"):
        draw_phase_map(np.ones((2, 2)), [1, 2, 3], [1, 2], **NAMES)
    with pytest.raises(InputError, match="centred at zero or logarithmic, not both"):
        draw_phase_map(np.ones((1, 1)), [1], [1], **NAMES, centred=True, logarithmic=True)
    with pytest.raises(InputError, match="logarithmic colours need positive values and limits, but 1 "):
        draw_phase_map(np.array([[0.0, 1.0]]), [1, 2], [1], **NAMES, logarithmic=True)
    with pytest.raises(InputError, match="limits must be two rising finite numbers"):
        draw_phase_map(np.ones((1, 1)), [1], [1], **NAMES, limits=(2.0, 1.0))
    with pytest.raises(InputError, match=r"'edge' must be as many x as y, not of shapes \(2,\) and \(3,\)"):
        Boundary(np.ones(2), np.ones(3), "edge")
    with pytest.raises(InputError, match="no panel was given"):
        draw_phase_maps({}, [1], [1], **NAMES)
    with pytest.raises(InputError, match="boundaries are given for 'c', but the panels are a, b"):
        draw_phase_maps({"a": np.eye(1), "b": np.eye(1)}, [1], [1], **NAMES, boundaries={"c": []})
    with pytest.raises(InputError, match="the y axis must be one value for each of 2 cells"):
        draw_phase_maps({"a": np.ones((1, 1)), "b": np.ones((2, 1))}, [1], [1], **NAMES)


@pytest.mark.parametrize("length", [1, 5, 20])
def test_long_names_of_boundaries_stay_on_the_figure(length):
    lines = [Boundary(np.arange(2.0), np.arange(2.0), f"bound {k} " * length) for k in range(3)]
    axes = draw_phase_map(np.eye(2), [0, 1], [0, 1], **NAMES, boundaries=lines)
    figures = [figure_of(axes), draw_phase_maps({"a": np.eye(2)}, [0, 1], [0, 1], **NAMES, boundaries=lines)]
    for figure, legend in zip(figures, (axes.get_legend(), figures[1].legends[0]), strict=True):
        assert legend is not None
        pixels(figure)
        box = legend.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1
