"""Phase maps: a quantity over two axes of a sweep, with boundaries, regimes and named starts on it."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import Bbox, ScaledTranslation

from ..errors import InputError
from ._style import COLOURS, FAINT, INK, PAGE, figure_of, look, new_axes
from ._terminal_map import SEQUENTIAL, Centres, Places, colour_limits, read_cells

DIVERGING = ("#0b2f5c", "#2f86c1", "#f4f4f2", "#d4640c", "#662500")  # as dark on either side; blue and orange
LINES = (INK, COLOURS[2], COLOURS[3], COLOURS[4], COLOURS[5])  # colours of boundaries
MISSING: dict[str, Any] = {"hatch": "/////", "edgecolor": "#8a8a8a", "linewidth": 0}
MOST_UNEVEN = 2.0  # ratio of the largest to the least step of an axis up to which they count as even
MOST_IN_A_ROW = 3
MOST_TICKS = 6  # at the centres of cells
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
    """A named point, such as a usual start."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Regime:
    """A name that stands in the map."""

    x: float
    y: float
    name: str


class _Scale(NamedTuple):
    """How one axis is drawn."""

    centres: Centres
    edges: np.ndarray
    log: bool


class _Map(NamedTuple):
    """What all panels have in common."""

    columns: _Scale
    rows: _Scale
    norm: Normalize
    colours: Colormap
    extend: str


def draw_phase_map(
    values: Float[np.ndarray, "rows columns"],
    x: Places,
    y: Places,
    axes: Axes | None = None,
    *,
    quantity: str,
    labels: tuple[str, str],
    centred: bool = False,
    boundaries: Sequence[Boundary] = (),
    marks: Sequence[Mark] = (),
    regimes: Sequence[Regime] = (),
    title: str = "",
    limits: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> Axes:
    """A heat map of cells; those that are not finite (missing, diverged) are grey and hatched.

    An axis of at least three positive numbers whose logarithms are more evenly spaced than they are gets a logarithmic
    scale. Cells meet half-way between their centres. On an axis of names the places of boundaries, marks and regimes
    are 0, 1, 2, ...; what lies outside the map is not drawn.

    Args:
        values: ``values[i, j]`` is the cell at ``y[i]`` and ``x[j]``.
        x: numbers or names, one a column, in any order.
        y: numbers or names, one a row, in any order.
        axes: where to draw; a new figure without it.
        quantity: what the values are, beside the colour bar.
        labels: what x and y are.
        centred: two colours that meet at zero.
        boundaries: lines between regimes, which a legend below names.
        marks: named points.
        regimes: names in the map.
        title: what stands above.
        limits: of the colours; without it the least and largest value.
        logarithmic: colours by the logarithm of the values.
    """
    with look():
        cells, shared = _prepare({"": values}, x, y, centred, limits, logarithmic)
        axes = axes or new_axes(0.62 * PAGE, 3.1 + 0.16 * len(boundaries))
        _draw_cells(axes, cells[""], shared)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        axes.set_title(_wrapped(title, axes.get_position().width * figure_of(axes).get_figwidth()))
        _draw_bar([axes], quantity, shared)
        handles = _handles(boundaries, bool(np.isnan(cells[""]).any()))
        if handles:
            below = -30 - _tick_height(shared.columns)
            shift = ScaledTranslation(0, below / 72, figure_of(axes).dpi_scale_trans)
            axes.legend(
                handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=axes.transAxes + shift,
                ncols=_fitting(handles, 0.62 * PAGE), handlelength=3, borderaxespad=0,
            )  # fmt: skip
        if marks or regimes:
            _lay_out(figure_of(axes))
        _draw_on(axes, boundaries, boundaries, marks, regimes)
    return axes


def draw_phase_maps(
    panels: Mapping[str, Float[np.ndarray, "rows columns"]],
    x: Places,
    y: Places,
    *,
    quantity: str,
    labels: tuple[str, str],
    centred: bool = False,
    boundaries: Sequence[Boundary] | Mapping[str, Sequence[Boundary]] = (),
    marks: Sequence[Mark] = (),
    regimes: Sequence[Regime] = (),
    title: str = "",
    limits: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> Figure:
    """Maps side by side, with the same axes and one colour bar; three in a row.

    Everything else is as in ``draw_phase_map``.

    Args:
        panels: the values of each map, by what stands above it.
        boundaries: of every map, or by map; those of one label look alike.
    """
    if not panels:
        raise InputError("no panel was given: there is nothing to draw")
    own = boundaries if isinstance(boundaries, Mapping) else dict.fromkeys(panels, boundaries)
    for name in own:
        if name not in panels:
            raise InputError(f"boundaries are given for {name!r}, but the panels are {', '.join(panels)}")
    every = list({(b.label, b.found): b for bs in own.values() for b in bs}.values())
    with look():
        cells, shared = _prepare(panels, x, y, centred, limits, logarithmic)
        across = 2 if len(panels) == 4 else min(len(panels), MOST_IN_A_ROW)
        down = -(-len(panels) // across)
        figure = Figure(figsize=(PAGE, 0.5 + down * (0.8 + 4.4 / across**0.9)), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        drawn, spare = list(grid.flat)[: len(panels)], list(grid.flat)[len(panels) :]
        for axes in spare:
            axes.remove()
        for number, (axes, name) in enumerate(zip(drawn, cells, strict=True)):
            _draw_cells(axes, cells[name], shared)
            axes.set_title(_wrapped(name, 0.7 * PAGE / across))
            lowest = number + across >= len(panels)
            axes.tick_params(labelbottom=lowest, labelleft=number % across == 0)
            axes.set(xlabel=labels[0] if lowest else "", ylabel="" if number % across else labels[1])
        _draw_bar(drawn, quantity, shared)
        figure.suptitle(_wrapped(title, 0.9 * PAGE), fontsize=9)
        handles = _handles(every, any(bool(np.isnan(panel).any()) for panel in cells.values()))
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=_fitting(handles, PAGE), handlelength=3)
        if marks or regimes:
            _lay_out(figure)
        for axes, name in zip(drawn, cells, strict=True):
            _draw_on(axes, own.get(name, ()), every, marks, regimes)
    return figure


def _prepare(
    panels: Mapping[str, np.ndarray],
    x: Places,
    y: Places,
    centred: bool,
    limits: tuple[float, float] | None,
    logarithmic: bool,
) -> tuple[dict[str, np.ndarray], _Map]:
    """Cells in order, and what decides on their places and colours."""
    read = {name: read_cells(values, x, y) for name, values in panels.items()}
    cells = {name: ordered for name, (ordered, _, _) in read.items()}
    _, columns, rows = next(iter(read.values()))
    every = np.concatenate([values.ravel() for values in cells.values()])
    finite = every[np.isfinite(every)]
    if centred and logarithmic:
        raise InputError("a map is centred at zero or logarithmic, not both")
    if logarithmic and ((finite <= 0).any() or (limits is not None and min(limits) <= 0)):
        few = int((finite <= 0).sum())
        raise InputError(f"logarithmic colours need positive values and limits, but {few} values of cells are not")
    low, high = (0.1, 1.0) if logarithmic and not len(finite) and limits is None else colour_limits(finite, limits)
    colours: Colormap = LinearSegmentedColormap.from_list("phases", SEQUENTIAL)
    if centred:
        if limits is None:
            low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
        half = max(abs(low), abs(high))  # a colour means as much on either side, whatever the limits
        both = LinearSegmentedColormap.from_list("both", DIVERGING)
        colours = ListedColormap(both((np.linspace(low, high, 256) / half + 1) / 2))
    extend = {(0, 0): "neither", (1, 0): "min", (0, 1): "max", (1, 1): "both"}
    beyond = extend[int((finite < low).any()), int((finite > high).any())]
    norm = LogNorm(low, high) if logarithmic else Normalize(low, high)
    return cells, _Map(_scale(columns), _scale(rows), norm, colours, beyond)


def _scale(centres: Centres) -> _Scale:
    places = centres.places
    log = False
    if not centres.names and len(places) >= 3 and places[0] > 0:
        even, even_log = (float(steps.max() / steps.min()) for steps in (np.diff(places), np.diff(np.log(places))))
        log = even_log < even and even_log <= MOST_UNEVEN
    if len(places) == 1:
        half = 0.5 if centres.names else 0.5 * abs(places[0]) or 0.5
        return _Scale(centres, places[0] + np.array([-half, half]), False)
    at = np.log(places) if log else places
    middles = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middles[0]], middles, [2 * at[-1] - middles[-1]]])
    return _Scale(centres, np.exp(edges) if log else edges, log)


def _draw_cells(axes: Axes, cells: Float[np.ndarray, "rows columns"], shared: _Map) -> None:
    across, up = shared.columns.edges, shared.rows.edges
    missing = np.isnan(cells)
    for scale, set_scale in ((shared.columns, axes.set_xscale), (shared.rows, axes.set_yscale)):
        set_scale("log" if scale.log else "linear")
    look_of: dict[str, Any] = {"cmap": shared.colours, "norm": shared.norm, "rasterized": True}
    axes.pcolormesh(across, up, np.ma.masked_array(cells, missing), **look_of)
    if missing.any():
        grey = np.ma.masked_array(np.zeros_like(cells), ~missing)
        axes.pcolor(across, up, grey, cmap=ListedColormap([FAINT]), zorder=1, antialiased=False, **MISSING)
    axes.set_xlim(across[0], across[-1])
    axes.set_ylim(up[0], up[-1])
    _draw_ticks(axes, "x", shared.columns)
    _draw_ticks(axes, "y", shared.rows)
    for side in axes.spines.values():
        side.set_visible(False)


def _draw_ticks(axes: Axes, which: str, scale: _Scale) -> None:
    """Names and few numbers at their centres; where decades do not tell a logarithmic axis, some of its numbers."""
    centres, count = scale.centres, len(scale.centres.places)
    axis, set_ticks = (axes.xaxis, axes.set_xticks) if which == "x" else (axes.yaxis, axes.set_yticks)
    if not centres.names and (scale.edges[-1] > 100 * scale.edges[0] if scale.log else count > MOST_TICKS):
        return
    every = 1 if centres.names else -(-count // MOST_TICKS)
    slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if which == "x" and _slanted(scale) else {}
    set_ticks(centres.places[::every], [centres.said(cell) for cell in range(0, count, every)], **slanted)
    axis.set_minor_locator(NullLocator())


def _slanted(scale: _Scale) -> bool:
    return sum(len(name) + 2 for name in scale.centres.names) > 36


def _tick_height(scale: _Scale) -> float:
    """Points that slanted names need below others."""
    return 2.2 * max(map(len, scale.centres.names)) if _slanted(scale) else 0.0


def _look_of(boundary: Boundary, every: Sequence[Boundary]) -> dict[str, Any]:
    """Boundaries of one label have one colour."""
    labels = list(dict.fromkeys(each.label for each in every))
    colour = LINES[labels.index(boundary.label) % len(LINES)]
    points = {"linestyle": (0, (3, 1.5)), "marker": "o", "markersize": 3.4, "markerfacecolor": "white"}
    halo = {"path_effects": [withStroke(linewidth=3, foreground="white")]}
    line = {"color": colour, "linewidth": 1.5, "label": _wrapped(boundary.label, 2.6)}
    return line | halo | (points if boundary.found else {})


def _handles(boundaries: Sequence[Boundary], missing: bool) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [Line2D([], [], **_look_of(boundary, boundaries)) for boundary in boundaries]
    if missing:
        handles.append(Patch(facecolor=FAINT, label="missing or diverged", **MISSING))
    return handles


def _fitting(handles: Sequence[Line2D | Patch], inches: float) -> int:
    """How many entries of a legend fit side by side."""
    longest = max(_extent(str(handle.get_label()), 7)[0] for handle in handles)
    return max(1, int(inches * 72 / (45 + longest)))


def _lay_out(figure: Figure) -> None:
    """Give the maps the size that they will have, by which texts find their places."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)


def _draw_on(
    axes: Axes,
    boundaries: Sequence[Boundary],
    every: Sequence[Boundary],
    marks: Sequence[Mark],
    regimes: Sequence[Regime],
) -> None:
    """Boundaries, regimes, and marks with their labels where there is most room; marks of one place have one label."""
    for boundary in boundaries:
        axes.plot(boundary.x, boundary.y, zorder=3, **_look_of(boundary, every))
    halo = [withStroke(linewidth=2.2, foreground="white")]
    own: dict[str, Any] = {"clip_on": True, "zorder": 5, "path_effects": halo}
    size = _in_points(axes, axes.get_xlim()[1], axes.get_ylim()[1])
    taken: list[Bbox] = []
    for regime in regimes:
        place = _in_points(axes, regime.x, regime.y)
        if _is_inside(place, size):
            extent = _extent(regime.name, 8.5)
            place = np.clip(place, extent / 2 + 2, np.maximum(size - extent / 2 - 2, extent / 2 + 2))
            taken.append(Bbox([place - extent / 2, place + extent / 2]))
            centre: dict[str, Any] = {"ha": "center", "va": "center", "style": "italic", "fontsize": 8.5}
            across, up = place / size
            axes.text(across, up, regime.name, transform=axes.transAxes, **centre, **own)
    named: dict[tuple[float, float], list[str]] = {}
    for mark in marks:
        if _is_inside(_in_points(axes, mark.x, mark.y), size):
            named.setdefault((mark.x, mark.y), []).append(mark.label)
    dots = [_in_points(axes, *at) for at in named]
    taken += [Bbox([dot - 3.5, dot + 3.5]) for dot in dots]
    crossed = np.concatenate([_points_along(axes, boundary) for boundary in boundaries] or [np.empty((0, 2))])
    for (at, names), dot in zip(named.items(), dots, strict=True):
        axes.plot(*at, "o", color=INK, markersize=5, markeredgecolor="white", markeredgewidth=1, zorder=4)
        text = ", ".join(names)
        boxes = [_beside(dot, _extent(text, 7), side) for side in SIDES]
        best = min(range(len(SIDES)), key=lambda k: _cost(boxes[k], size, taken, crossed))
        taken.append(boxes[best])
        right, up = SIDES[best]
        own |= {"ha": ("right", "center", "left")[right + 1], "va": ("top", "center", "bottom")[up + 1]}
        axes.annotate(text, at, (AWAY * right, AWAY * up), textcoords="offset points", fontsize=7, **own)


def _in_points(axes: Axes, x: float, y: float) -> np.ndarray:
    """A place in points from the lower left corner of the map."""
    return (axes.transData.transform((x, y)) - axes.bbox.p0) * 72 / figure_of(axes).dpi


def _points_along(axes: Axes, boundary: Boundary) -> np.ndarray:
    corners = np.array([_in_points(axes, x, y) for x, y in zip(boundary.x, boundary.y, strict=True)]).reshape(-1, 2)
    corners = corners[np.isfinite(corners).all(axis=1)]
    if not len(corners):
        return corners
    along = np.linspace(0, len(corners) - 1, 200)
    return np.column_stack([np.interp(along, range(len(corners)), corner) for corner in corners.T])


def _is_inside(place: np.ndarray, size: np.ndarray) -> bool:
    return bool(((place >= 0) & (place <= size)).all())


def _extent(text: str, fontsize: float) -> np.ndarray:
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


def _draw_bar(axes: list[Axes], quantity: str, shared: _Map) -> None:
    figure = figure_of(axes[0])
    image = ScalarMappable(shared.norm, shared.colours)
    bar = figure.colorbar(image, ax=axes, extend=shared.extend, pad=0.02, aspect=25)
    bar.set_label(_wrapped(quantity, 0.6 * figure.get_figheight()))
    bar.outline.set_visible(False)  # type: ignore[operator]
    low, high = float(shared.norm.vmin or 0), float(shared.norm.vmax or 1)
    if isinstance(shared.norm, LogNorm) and high < 100 * low:
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 4 * low else range(1, 10)))
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_locator(NullLocator())


def _wrapped(text: str, inches: float) -> str:
    """A text in lines of a width; formulas between $ stay whole."""
    whole = re.sub(r"\$[^$]*\$", lambda formula: formula.group().replace(" ", "\0"), text)
    return textwrap.fill(whole, max(10, int(inches * 72 / 4.3)), break_long_words=False).replace("\0", " ")
