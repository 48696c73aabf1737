"""A run in the terminal: its loss as a chart of dots, and a row a layer with k_eff over the steps."""

import numpy as np
from jaxtyping import Shaped
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._display import short_number
from .._phrases import printable
from ..runs import Run
from ._layer_curves import LayerCurve, layer_curves, medians
from ._terminal import sparkline

WIDTH, HEIGHT = 64, 10  # characters of a chart
EMPTY = 0x2800  # a Braille character without dots
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille character, row by row
DECADES = 2  # from which on the values are drawn in logarithms


def chart(
    x: Shaped[np.ndarray, " places"], y: Shaped[np.ndarray, " places"], *, width: int = WIDTH, height: int = HEIGHT
) -> list[str]:
    """A curve as lines of text, in dots of Braille; places without a number are left out.

    >>> print("\\n".join(chart(np.arange(5), np.array([4.0, 3.0, 2.0, 1.0, 0.0]), width=4, height=2)))
    4 ⠑⢄
    0 ⠀⠀⠑⢄
      0  4
    """
    known = np.isfinite(y)
    if not known.any():
        return []
    places, values = np.asarray(x, float)[known], np.asarray(y, float)[known]
    low, high = values.min(), values.max()
    log = low > 0 and high / low >= 10**DECADES
    if log:
        values = np.log10(values)
    across = np.linspace(places[0], places[-1], 2 * width)
    along = np.interp(across, places, values)
    span = float(np.ptp(values))
    rows = np.rint((values.max() - along) / span * (4 * height - 1)) if span > 0 else np.full(2 * width, 2.0 * height)
    cells = np.zeros((height, width), int)
    before = int(rows[0])
    for column, row in enumerate(rows.astype(int).tolist()):
        between = range(min(row, before + 1), max(row, before - 1) + 1)  # no gap where the curve is steep
        for dot in between:
            cells[dot // 4, column // 2] |= DOTS[dot % 4][column % 2]
        before = row
    ends = [short_number(high), short_number(low)]
    margin = max(map(len, ends))
    labels = [ends[0], *[""] * (height - 2), ends[1]] if height > 1 else [ends[0]]
    texts = ["".join(chr(EMPTY + cell) for cell in line).rstrip(chr(EMPTY)) for line in cells.tolist()]
    drawn = [f"{name:>{margin}} {text}" for name, text in zip(labels, texts, strict=True)]
    first, last = f"{places[0]:g}", f"{places[-1]:g}"
    return [*drawn, " " * (margin + 1) + first + last.rjust(width - len(first))]


def run_text(run: Run) -> Group:
    """The loss over the steps, and a row a layer: lines at last, k_eff at first and at last and in between."""
    loss = chart(run.recorded, medians(run.loss))
    what = "loss" if len(run.seeds) == 1 else "loss, the median of the seeds"
    parts = [Text(f"{what}, over the steps", style="bold"), *map(Text, loss)] if loss else [Text("no loss is known")]
    table = Table("layer", "units", "lines", "k_eff first", "k_eff last", "k_eff over the steps", box=None)
    for number in range(1, 5):
        table.columns[number].justify = "right"
    curves = layer_curves(run)
    for name, curve in curves.items():
        table.add_row(escape(printable(name)), *_row(curve))
    return Group(*parts, *([table] if curves else ()))


def _row(curve: LayerCurve) -> list[str]:
    middle, lines = curve.middle, medians(curve.lines)
    if not np.isfinite(middle).any():
        return [str(curve.units), "-", "-", "-", curve.reason]
    return [
        str(curve.units),
        short_number(lines[-1]),
        short_number(middle[0]),
        short_number(middle[-1]),
        sparkline(middle),
    ]
