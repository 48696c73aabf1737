"""What stands on a phase map: boundaries with their legend, names of regimes, and marks with a label each."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from ..errors import InputError
from ._style import COLOURS, FAINT, INK, figure_of

LINES = (INK, COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[5])  # colours of boundaries
MISSING: dict[str, Any] = {"hatch": "/////", "edgecolor": "#8a8a8a", "linewidth": 0}
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))  # where a mark's label may stand
AWAY = 4.5  # points from a mark to its label


@dataclass(frozen=True, eq=False)
class Boundary:
    """A line between regimes: solid from theory; dashed, with its points marked, as it was found in the cells."""

    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    label: str
    found: bool = False

    def __post_init__(self) -> None:
        if np.ndim(self.x) != 1 or np.shape(self.x) != np.shape(self.y):
            shapes = f"{np.shape(self.x)} and {np.shape(self.y)}"
            raise InputError(f"the boundary {self.label!r} must be as many x as y, not of shapes {shapes}")


@dataclass(frozen=True)
class Mark:
    """A named point of the map, such as a common initialization."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Regime:
    """A name written into the map at (x, y), such as "condensed"."""

    x: float
    y: float
    name: str


def _boundary_style(boundary: Boundary, every: Sequence[Boundary]) -> dict[str, Any]:
    """Boundaries of one label have one colour."""
    labels = list(dict.fromkeys(each.label for each in every))
    colour = LINES[labels.index(boundary.label) % len(LINES)]
    points = {"linestyle": (0, (3, 1.5)), "marker": "o", "markersize": 3.4, "markerfacecolor": "white"}
    halo = {"path_effects": [withStroke(linewidth=3, foreground="white")]}
    line = {"color": colour, "linewidth": 1.5, "label": wrapped(boundary.label, 2.6)}
    return line | halo | (points if boundary.found else {})


def legend_options(boundaries: Sequence[Boundary], missing: bool, inches: float) -> dict[str, Any]:
    """A legend of the boundaries, and of missing cells if there are any, so wide; nothing where it would be empty."""
    handles: list[Line2D | Patch] = [Line2D([], [], **_boundary_style(boundary, boundaries)) for boundary in boundaries]
    if missing:
        handles.append(Patch(facecolor=FAINT, label="missing or diverged", **MISSING))
    if not handles:
        return {}
    longest = max(_text_extent(str(handle.get_label()), 7)[0] for handle in handles)
    return {"handles": handles, "ncols": max(1, int(inches * 72 / (45 + longest))), "handlelength": 3}


def draw_annotations(
    axes: Axes,
    boundaries: Sequence[Boundary],
    every: Sequence[Boundary],
    marks: Sequence[Mark],
    regimes: Sequence[Regime],
) -> None:
    """Boundaries, regimes, and marks with their labels where there is most room; marks of one place have one label."""
    for boundary in boundaries:
        axes.plot(boundary.x, boundary.y, zorder=3, **_boundary_style(boundary, every))
    halo = [withStroke(linewidth=2.2, foreground="white")]
    own: dict[str, Any] = {"clip_on": True, "zorder": 5, "path_effects": halo}
    size = _in_points(axes, (axes.get_xlim()[1], axes.get_ylim()[1]))
    taken: list[Bbox] = []
    for regime in regimes:
        place = _in_points(axes, (regime.x, regime.y))
        if _is_inside(place, size):
            extent = _text_extent(regime.name, 8.5)
            place = np.clip(place, extent / 2 + 2, np.maximum(size - extent / 2 - 2, extent / 2 + 2))
            taken.append(Bbox([place - extent / 2, place + extent / 2]))
            centre: dict[str, Any] = {"ha": "center", "va": "center", "style": "italic", "fontsize": 8.5}
            across, up = place / size
            axes.text(across, up, regime.name, transform=axes.transAxes, **centre, **own)
    named: dict[tuple[float, float], list[str]] = {}
    for mark in marks:
        if _is_inside(_in_points(axes, (mark.x, mark.y)), size):
            named.setdefault((mark.x, mark.y), []).append(mark.label)
    dots = [_in_points(axes, at) for at in named]
    taken += [Bbox([dot - 3.5, dot + 3.5]) for dot in dots]
    crossed = np.concatenate([_points_along(axes, boundary) for boundary in boundaries] or [np.empty((0, 2))])
    for (at, names), dot in zip(named.items(), dots, strict=True):
        axes.plot(*at, "o", color=INK, markersize=5, markeredgecolor="white", markeredgewidth=1, zorder=4)
        text = ", ".join(names)
        boxes = [_beside(dot, _text_extent(text, 7), side) for side in SIDES]
        best = min(range(len(SIDES)), key=lambda k: _cost(boxes[k], size, taken, crossed))
        taken.append(boxes[best])
        right, up = SIDES[best]
        own |= {"ha": ("right", "center", "left")[right + 1], "va": ("top", "center", "bottom")[up + 1]}
        axes.annotate(text, at, (AWAY * right, AWAY * up), textcoords="offset points", fontsize=7, **own)


def _in_points(axes: Axes, at: tuple[float, float] | np.ndarray) -> np.ndarray:
    """Places (x, y) in points from the lower left corner of the map."""
    return (axes.transData.transform(at) - axes.bbox.p0) * 72 / figure_of(axes).dpi


def _points_along(axes: Axes, boundary: Boundary) -> np.ndarray:
    corners = _in_points(axes, np.column_stack([boundary.x, boundary.y]))
    corners = corners[np.isfinite(corners).all(axis=1)]
    if not len(corners):
        return corners
    along = np.linspace(0, len(corners) - 1, 200)
    return np.column_stack([np.interp(along, range(len(corners)), corner) for corner in corners.T])


def _is_inside(place: np.ndarray, size: np.ndarray) -> bool:
    return bool(((place >= 0) & (place <= size)).all())


def _text_extent(text: str, fontsize: float) -> np.ndarray:
    """Roughly the width and height of a text in points."""
    lines = re.sub(r"\\[a-z]+", "x", re.sub(r"[${}^_]", "", text)).split("\n")
    return np.array([0.58 * fontsize * max(map(len, lines)), 1.25 * fontsize * len(lines)])


def _beside(dot: np.ndarray, extent: np.ndarray, side: tuple[int, int]) -> Bbox:
    centre = dot + np.array(side) * (AWAY + extent / 2)
    return Bbox([centre - extent / 2, centre + extent / 2])


def _cost(box: Bbox, size: np.ndarray, taken: Sequence[Bbox], crossed: np.ndarray) -> float:
    """How much a text in a box would be outside the map, on other texts, or on boundaries."""
    outside = box.width * box.height - _shared(box, Bbox.from_bounds(0, 0, *size))
    on_texts = sum(_shared(box, other) for other in taken)
    on_lines = int(((crossed > box.p0) & (crossed < box.p1)).all(axis=1).sum())
    return 10 * outside + 4 * on_texts + 2 * on_lines


def _shared(box: Bbox, other: Bbox) -> float:
    both = Bbox.intersection(box, other)
    return both.width * both.height if both is not None else 0.0


def wrapped(text: str, inches: float) -> str:
    """A text in lines of a width; formulas between $ stay whole."""
    whole = re.sub(r"\$[^$]*\$", lambda formula: formula.group().replace(" ", "\0"), text)
    return textwrap.fill(whole, max(10, int(inches * 72 / 4.3)), break_long_words=False).replace("\0", " ")
