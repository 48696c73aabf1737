"""A small heat map for the terminal, shown while a sweep runs; it needs no matplotlib."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float
from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style

from ..errors import check_whole
from ._map_cells import SEQUENTIAL, MapAxis, Places, colour_limits, read_cells

LEVELS = 64  # more colours than an eye tells apart
SCALE = 16  # characters of the colour scale
LEAST_WIDTH = 40  # in which the scale with its numbers fits
OTHER_LINES = 6  # of the text, besides the map's own
BOLD, DIM = Style(bold=True), Style(dim=True)


def map_text(
    values: Float[np.ndarray, "rows columns"],
    x: Places,
    y: Places,
    *,
    quantity: str,
    labels: tuple[str, str],
    limits: tuple[float, float] | None = None,
    width: int = 80,
    height: int = 36,
) -> Segments:
    """A heat map as coloured text, the largest y on top; cells that are not finite are dots.

    Rich prints its segments as they are: a ``Text`` would be taken apart anew at each refresh.

    The other arguments are those of ``draw_phase_map``.

    Args:
        width: how many characters there are in a line; of a larger map every k-th column is shown.
        height: how many lines there are; of a larger map every k-th row is shown.
    """
    check_whole("width", width, LEAST_WIDTH)
    check_whole("height", height, OTHER_LINES + 1)
    cells, columns, rows = read_cells(values, x, y)
    low, high = colour_limits(cells, limits)
    margin = max(len(rows.text(row)) for row in (range(len(cells)) if rows.names else (0, len(cells) - 1)))
    margin = min(margin, width // 3)
    each_row = -(-len(cells) // (height - OTHER_LINES))
    each_column = -(-cells.shape[1] // ((width - margin - 1) // 2))
    shown_rows, shown_columns = range(0, len(cells), each_row)[::-1], range(0, cells.shape[1], each_column)
    levels = np.rint(np.clip((cells - low) / (high - low), 0, 1) * (LEVELS - 1))
    pieces = [Segment(_line(quantity, 0, width), BOLD), Segment(_line(labels[1], 0, width))]
    for row in shown_rows:
        ends = row in (shown_rows[0], shown_rows[-1])
        name = _fitted(rows.text(row) if rows.names or ends else "", margin).rjust(margin)
        pieces += [Segment(name + " "), *_row(levels[row, :: shown_columns.step]), Segment("\n")]
    pieces.append(Segment(_below(columns, shown_columns, labels[0], margin + 1, width)))
    pieces += _scale(low, high, margin + 1, width)
    missing = int(np.isnan(cells).sum())
    notes = [f"· {missing} of {cells.size} missing"] if missing else []
    notes += [f"every {_ordinal(k)} {noun}" for k, noun in ((each_column, "column"), (each_row, "row")) if k > 1]
    if notes:
        pieces.append(Segment(_line(", ".join(notes), margin + 1, width), DIM))
    return Segments(pieces)


def _row(levels: Float[np.ndarray, " columns"]) -> list[Segment]:
    """Cells side by side, those of one colour in one piece."""
    numbers = np.where(np.isnan(levels), -1, levels).astype(int)
    starts = np.flatnonzero(np.diff(numbers, prepend=-2))
    lengths = np.diff(starts, append=len(numbers))
    runs = zip(numbers[starts].tolist(), lengths.tolist(), strict=True)
    return [
        Segment(" ·" * length, DIM) if level < 0 else Segment("  " * length, _coloured(level)) for level, length in runs
    ]


def _below(columns: MapAxis, shown: range, label: str, indent: int, width: int) -> str:
    """What stands at the ends of the columns, and their name."""
    if columns.names:
        return _line(f"{label}: {', '.join(columns.names[column] for column in shown)}", indent, width)
    first, last = columns.text(shown[0]), columns.text(shown[-1])
    room = 2 * len(shown) - len(first) - len(last)
    if len(shown) == 1 or room < 1:
        return _line(f"{label}: {first}" + (f" to {last}" if len(shown) > 1 else ""), indent, width)
    middle = indent + max(0, (2 * len(shown) - len(label)) // 2)
    return _line(first + " " * room + last, indent, width) + _line(label, middle, width)


def _scale(low: float, high: float, indent: int, width: int) -> list[Segment]:
    least, most = f"{low:.3g} ", f" {high:.3g}"
    indent = min(indent, width - len(least) - SCALE - len(most))
    steps = [Segment(" ", _coloured(round(k * (LEVELS - 1) / (SCALE - 1)))) for k in range(SCALE)]
    return [Segment(" " * indent + least), *steps, Segment(most + "\n")]


@cache
def _coloured(level: int) -> Style:
    """The background of a level, between the anchors in straight lines."""
    anchors = np.array([Color.parse(anchor).get_truecolor() for anchor in SEQUENTIAL])
    at = level / (LEVELS - 1) * (len(SEQUENTIAL) - 1)
    red, green, blue = (np.interp(at, range(len(SEQUENTIAL)), channel) for channel in anchors.T)
    return Style(bgcolor=Color.from_rgb(round(red), round(green), round(blue)))


def _line(text: str, indent: int, width: int) -> str:
    """A line, indented as far as its text allows."""
    return " " * max(0, min(indent, width - len(text))) + _fitted(text, width) + "\n"


def _fitted(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
