import io
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console
from rich.segment import Segments

from condensation.drawing import map_text
from condensation.drawing._map_cells import SEQUENTIAL, colour_limits
from condensation.drawing._terminal_map import LEVELS, _coloured
from condensation.errors import InputError

NAMES = {"quantity": "lines", "labels": ("gamma", "rate")}


def plain(shown: Segments) -> str:
    """The characters of a map without their colours."""
    return "".join(segment.text for segment in shown.segments)


def backgrounds(shown: Segments) -> list[list[tuple[int, ...] | None]]:
    """Colours of the characters, line by line."""
    lines: list[list[tuple[int, ...] | None]] = [[]]
    for text, style, _ in shown.segments:
        triplet = style.bgcolor.triplet if style is not None and style.bgcolor is not None else None
        for character in text:
            if character == "\n":
                lines.append([])
            else:
                lines[-1].append(None if triplet is None else tuple(triplet))
    return lines


def lightness(colour: tuple[int, ...]) -> float:
    """CIELAB's L* of an sRGB colour."""
    c = np.array(colour) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    return 116 * np.cbrt(luminance) - 16 if luminance > 0.008856 else 903.3 * luminance


def ramp() -> list[tuple[int, ...]]:
    colours = [_coloured(level).bgcolor for level in range(LEVELS)]
    return [tuple(colour.get_truecolor()) for colour in colours if colour is not None]


def test_lightness_rises_evenly():
    light = np.array([lightness(colour) for colour in ramp()])
    assert (np.diff(light) > 0).all()
    even = np.linspace(light[0], light[-1], LEVELS)
    assert np.abs(light - even).max() < 4  # of 79
    assert ramp()[0] == tuple(bytes.fromhex(SEQUENTIAL[0][1:]))
    assert ramp()[-1] == tuple(bytes.fromhex(SEQUENTIAL[-1][1:]))


def test_the_largest_y_is_on_top_and_x_grows_to_the_right():
    values = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, np.nan]])
    for rows in (slice(None), slice(None, None, -1)):  # whatever the order in which they are given
        for columns in (slice(None), slice(None, None, -1)):
            x, y = np.array([0.1, 0.2, 0.3])[columns], np.array([-1.0, 1.0])[rows]
            shown = map_text(values[rows][:, columns], x, y, **NAMES)
            lines = plain(shown).splitlines()
            assert lines == ["lines", "rate", " 1     " + " ·", "-1       ", "   gamma: 0.1 to 0.3", *lines[5:]]
            assert lines[5] == "   0 " + 16 * " " + " 4"
            assert lines[6:] == ["   · 1 of 6 missing"]
            top, bottom = backgrounds(shown)[2:4]
            light = [lightness(colour) for colour in (*bottom, *top) if colour]
            assert len(light) == 10
            np.testing.assert_allclose(light[::2], light[1::2])  # two characters a cell
            expected = [lightness(ramp()[round(value / 4 * (LEVELS - 1))]) for value in range(5)]
            np.testing.assert_allclose(light[::2], expected)


def test_ends_of_the_axes_stand_at_the_ends_of_the_map():
    shown = map_text(np.zeros((4, 9)), np.geomspace(1e-4, 1, 9), np.linspace(0, 1, 4), **NAMES)
    lines = plain(shown).splitlines()
    assert lines[6] == "  0.0001           1"
    assert lines[7].strip() == "gamma"
    assert lines[2].startswith("1 ")
    assert lines[5].startswith("0 ")
    assert lines[3].startswith("   ")


def test_names_stand_at_their_rows_and_below_the_columns():
    shown = map_text(np.eye(2, 3), ["tanh", "relu", "gelu"], ["GD", "Adam"], **NAMES)
    lines = plain(shown).splitlines()
    assert lines[2:4] == ["Adam " + 6 * " ", "  GD " + 6 * " "]
    assert lines[4].strip() == "gamma: tanh, relu, gelu"
    assert [len([colour for colour in line if colour]) for line in backgrounds(shown)[2:4]] == [6, 6]
    kinds = plain(map_text(np.eye(2), [None, 0.1], [True, False], **NAMES))
    assert "gamma: None, 0.1" in kinds
    assert "False " in kinds


def test_large_maps_are_thinned_and_say_so():
    values = np.arange(100.0)[:, None] + np.zeros(200)
    shown = map_text(values, np.arange(200), np.arange(100), **NAMES, width=60, height=31)
    lines = plain(shown).splitlines()
    assert lines[-1].strip() == "every 8th column, every 4th row"
    assert lines[2].startswith("96 ")
    assert lines[26].startswith(" 0 ")
    assert lines[27].split() == ["0", "192"]
    assert [len([c for c in line if c]) for line in backgrounds(shown)[2:27]] == [50] * 25
    top, bottom = backgrounds(shown)[2][10], backgrounds(shown)[26][10]
    assert (top, bottom) == (ramp()[round(96 / 99 * (LEVELS - 1))], ramp()[0])


def test_limits_and_values_beyond_them():
    values = np.array([[-5.0, 0.0, 0.5, 1.0, np.inf, 7.0]])
    shown = map_text(values, np.arange(6), [0], **NAMES, limits=(0.0, 1.0))
    row = backgrounds(shown)[2][2:]
    assert row[::2] == [ramp()[0], ramp()[0], ramp()[32], ramp()[-1], None, ramp()[-1]]
    assert "1 of 6 missing" in plain(shown)
    assert "0 " + 16 * " " + " 1\n" in plain(shown)


def test_maps_of_one_value_or_none():
    assert colour_limits(np.full((2, 2), 3.0), None) == pytest.approx((2.7, 3.3))
    assert colour_limits(np.zeros((2, 2)), None) == (-1.0, 1.0)
    shown = map_text(np.full((1, 1), np.nan), [2.0], [1e-5], **NAMES)
    assert "1 of 1 missing" in plain(shown)
    assert "1e-05  ·\n" in plain(shown)
    assert "gamma: 2\n" in plain(shown)


@given(
    arrays(float, st.tuples(st.integers(1, 60), st.integers(1, 90)), elements=st.floats(-1e9, 1e9) | st.just(np.nan)),
    st.integers(40, 120),
    st.integers(7, 50),
    st.booleans(),
)
@example(np.array([[5e-324]]), 40, 7, False)  # a tenth of it is zero
def test_it_fits_into_the_width_and_height(values, width, height, named):
    rows, columns = values.shape
    y = [f"optimizer {k}" * 3 for k in range(rows)] if named else np.geomspace(1.2345e-7, 1, rows + 1)[:rows]
    shown = map_text(
        values, np.arange(columns) - 0.123456, y, quantity="q" * 130, labels=("x" * 99, "y"), width=width, height=height
    )
    lines = plain(shown).splitlines()
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=width)
    with console.capture() as capture:
        console.print(shown)
    assert len(capture.get().splitlines()) == len(lines)


def test_it_is_quick_enough_to_be_shown_live():
    values, axis = np.random.default_rng(0).normal(size=(30, 30)), np.linspace(0, 1, 30)
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=80)
    took = []
    for _ in range(20):
        began = time.thread_time()
        console.print(map_text(values, axis, axis, **NAMES))
        took.append(time.thread_time() - began)
    assert min(took) < 0.05  # 2 to 4 ms, with type checks; this is the worst case, no neighbours alike


def test_what_cannot_be_drawn_is_refused(unchecked):
    with pytest.raises(InputError, match=r"rows x columns, both at least 1, not of shape \(3,\)"):
        map_text(np.ones(3), [1], [1, 2, 3], **NAMES)
    with pytest.raises(InputError, match=r"the y axis must be one value for each of 2 cells, not of shape \(3,\)"):
        map_text(np.ones((2, 3)), [1, 2, 3], [1, 2, 3], **NAMES)
    with pytest.raises(InputError, match="the x axis must consist of different finite numbers"):
        map_text(np.ones((1, 2)), [1.0, 1.0], [1], **NAMES)
    with pytest.raises(InputError, match="the x axis must consist of different finite numbers"):
        map_text(np.ones((1, 2)), [1.0, np.nan], [1], **NAMES)
    with pytest.raises(InputError, match="two rising finite numbers"):
        map_text(np.ones((1, 1)), [1], [1], **NAMES, limits=(1.0, 1.0))
    with pytest.raises(InputError, match="width must be a whole number of at least 40"):
        map_text(np.ones((1, 1)), [1], [1], **NAMES, width=20)
