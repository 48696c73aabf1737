"""Small pictures of results for notebooks: SVG made by hand, in a few kilobytes, without a library or a script."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._phrases import printable

WIDTH, HEIGHT = 240, 120  # of a picture, in pixels
POINTS, CURVES, BARS, CELLS = 120, 12, 40, 24  # that a picture has at most, cells along each side
INK = ("#c2571a", "#2b6cb0", "#4a7c59", "#7b4fa3")
LEVELS = 12  # colours of a heat map
Numbers = Any  # a sequence or an array of numbers; NumPy is not imported for it


def curves(x: Numbers, rows: Iterable[Numbers], *, label: str = "", log: bool = False) -> str:
    """Some curves over the same places as an SVG; what is not finite (or, with ``log``, not positive) is a gap.

    >>> curves([0, 1, 2], [[1.0, 2.0, 4.0]]).count("<polyline")
    1
    """
    change: Callable[[float], float] = (lambda v: math.log10(v) if v > 0 else math.nan) if log else float
    each = max(1, -(-len(x) // POINTS))
    kept = sorted({*range(0, len(x), each), len(x) - 1}) if len(x) else []
    chosen = [[change(float(row[k])) for k in kept] for _, row in zip(range(CURVES), rows, strict=False)]
    finite = [value for row in chosen for value in row if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    left, right = float(x[kept[0]]), float(x[kept[-1]])

    def place(at: float, value: float) -> str:
        across = (at - left) / (right - left) if right > left else 0.5
        up = (value - low) / (high - low) if high > low else 0.5
        return f"{4 + across * (WIDTH - 8):.1f},{HEIGHT - 18 - up * (HEIGHT - 34):.1f}"

    parts = []
    for colour, row in enumerate(chosen):
        for piece in _pieces(row):
            points = " ".join(place(float(x[kept[k]]), row[k]) for k in piece)
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{INK[colour % len(INK)]}" stroke-width="1.2"/>'
            )
    ends = (f"{10**v:.3g}" if log else f"{v:.3g}" for v in (low, high))
    return _svg("".join(parts), label, f"{left:g}", f"{right:g}", *ends)


def _pieces(row: list[float]) -> list[list[int]]:
    """The stretches of a row without gaps."""
    pieces: list[list[int]] = [[]]
    for k, value in enumerate(row):
        if math.isfinite(value):
            pieces[-1].append(k)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def bars(values: Numbers, *, label: str = "", strong: Sequence[bool] | None = None) -> str:
    """Some numbers as bars, those that are ``strong`` in the first colour.

    >>> bars([0.5, -0.25]).count("<rect")
    2
    """
    chosen = [float(value) for _, value in zip(range(BARS), values, strict=False)]
    finite = [value for value in chosen if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(0.0, *finite), max(0.0, *finite)
    scale, width = (HEIGHT - 34) / (high - low or 1), (WIDTH - 8) / len(chosen)
    parts = []
    for k, value in enumerate(chosen):
        if math.isfinite(value):
            top, tall = 16 + (high - max(value, 0)) * scale, max(abs(value) * scale, 0.5)
            colour = INK[0] if strong is None or strong[k] else "#a0a0a0"
            wide = max(min(width - 2, 24), 1)
            parts.append(
                f'<rect x="{4 + k * width:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{colour}"/>'
            )
    return _svg("".join(parts), label, "", "", f"{low:.3g}", f"{high:.3g}")


def heat(rows: Numbers, *, label: str = "") -> str:
    """A table of numbers as a heat map, the first row on top; of a larger one every k-th row and column.

    >>> heat([[0.0, 1.0], [float("nan"), 0.5]]).count("<path")
    3
    """
    if not len(rows) or not len(rows[0]):
        return ""
    down, across = max(1, -(-len(rows) // CELLS)), max(1, -(-len(rows[0]) // CELLS))
    cells = [[float(value) for value in row[::across]] for row in rows[::down]]
    finite = [value for row in cells for value in row if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    by_level: dict[int, str] = {}
    for y, row in enumerate(cells):
        for x, value in enumerate(row):
            if math.isfinite(value):
                level = round((value - low) / (high - low) * (LEVELS - 1)) if high > low else LEVELS // 2
                by_level[level] = by_level.get(level, "") + f"M{x} {y}h1v1h-1z"
    paths = "".join(f'<path d="{d}" fill="{_colour(level)}"/>' for level, d in sorted(by_level.items()))
    size = f"scale({(WIDTH - 8) / len(cells[0]):.3f} {(HEIGHT - 34) / len(cells):.3f})"
    inner = f'<g transform="translate(4 16) {size}" shape-rendering="crispEdges">{paths}</g>'
    return _svg(inner, label, "", "", f"{low:.3g}", f"{high:.3g}")


def _colour(level: int) -> str:
    """From pale to dark orange."""
    share = level / (LEVELS - 1)
    ends = ((247, 236, 222), (140, 45, 4))
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))


def _svg(inner: str, label: str, left: str, right: str, low: str, high: str) -> str:
    """A picture with its name and its range above it, and the ends of its places below."""
    text = 'font-size="10" fill="currentColor" font-family="sans-serif"'
    above = f"{printable(label)[:40]}: {low} to {high}" if label else f"{low} to {high}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<text x="4" y="10" {text}>{html.escape(above)}</text>{inner}'
        f'<text x="4" y="{HEIGHT - 4}" {text}>{html.escape(left)}</text>'
        f'<text x="{WIDTH - 4}" y="{HEIGHT - 4}" text-anchor="end" {text}>{html.escape(right)}</text></svg>'
    )
