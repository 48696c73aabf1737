"""Phase maps: a quantity over two axes of a sweep, with boundaries, regimes and named initializations on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from ..errors import InputError
from ._map_annotations import MISSING, Boundary, Mark, Regime, draw_annotations, legend_options, wrapped
from ._map_cells import SEQUENTIAL, MapAxis, Places, colour_limits, read_cells
from ._style import FAINT, PAGE, figure_of, look, new_axes

DIVERGING = ("#0b2f5c", "#2f86c1", "#f4f4f2", "#d4640c", "#662500")  # as dark on either side; blue and orange
MOST_IN_A_ROW = 3
MOST_TICKS = 6  # at the centres of cells


class _Scales(NamedTuple):
    """Both axes and the colours of a map, which all panels share."""

    columns: MapAxis
    rows: MapAxis
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
        quantity: what the values are, beside the colour bar.
        labels: what x and y are.
        centred: two colours that meet at zero.
        boundaries: lines between regimes, which a legend below names.
        marks: named points.
        regimes: names in the map.
        limits: of the colours; without it the least and largest value.
        logarithmic: colours by the logarithm of the values.
    """
    with look():
        cells, shared = _read_panels({"": values}, x, y, centred, limits, logarithmic)
        axes = axes or new_axes(0.62 * PAGE, 3.1 + 0.16 * len(boundaries))
        _draw_cells(axes, cells[""], shared)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        axes.set_title(wrapped(title, axes.get_position().width * figure_of(axes).get_figwidth()))
        _draw_bar([axes], quantity, shared)
        legend = legend_options(boundaries, bool(np.isnan(cells[""]).any()), 0.62 * PAGE)
        if legend:
            below = -30 - _tick_height(shared.columns)
            place = axes.transAxes + ScaledTranslation(0, below / 72, figure_of(axes).dpi_scale_trans)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=place, borderaxespad=0, **legend)
        if marks or regimes:
            _lay_out(figure_of(axes))
        draw_annotations(axes, boundaries, boundaries, marks, regimes)
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
        cells, shared = _read_panels(panels, x, y, centred, limits, logarithmic)
        across = 2 if len(panels) == 4 else min(len(panels), MOST_IN_A_ROW)
        down = -(-len(panels) // across)
        figure = Figure(figsize=(PAGE, 0.5 + down * (0.8 + 4.4 / across**0.9)), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        drawn = list(grid.flat)[: len(panels)]
        for spare in grid.flat[len(panels) :]:
            spare.remove()
        for number, (axes, name) in enumerate(zip(drawn, cells, strict=True)):
            _draw_cells(axes, cells[name], shared)
            axes.set_title(wrapped(name, 0.7 * PAGE / across))
            lowest = number + across >= len(panels)
            axes.tick_params(labelbottom=lowest, labelleft=number % across == 0)
            axes.set(xlabel=labels[0] if lowest else "", ylabel="" if number % across else labels[1])
        _draw_bar(drawn, quantity, shared)
        figure.suptitle(wrapped(title, 0.9 * PAGE), fontsize=9)
        legend = legend_options(every, any(bool(np.isnan(panel).any()) for panel in cells.values()), PAGE)
        if legend:
            figure.legend(loc="outside lower center", **legend)
        if marks or regimes:
            _lay_out(figure)
        for axes, name in zip(drawn, cells, strict=True):
            draw_annotations(axes, own.get(name, ()), every, marks, regimes)
    return figure


def _read_panels(
    panels: Mapping[str, np.ndarray],
    x: Places,
    y: Places,
    centred: bool,
    limits: tuple[float, float] | None,
    logarithmic: bool,
) -> tuple[dict[str, np.ndarray], _Scales]:
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
    return cells, _Scales(columns, rows, norm, colours, beyond)


def _draw_cells(axes: Axes, cells: Float[np.ndarray, "rows columns"], shared: _Scales) -> None:
    across, up = shared.columns.edges, shared.rows.edges
    missing = np.isnan(cells)
    axes.set_xscale("log" if shared.columns.log else "linear")
    axes.set_yscale("log" if shared.rows.log else "linear")
    shown = np.ma.masked_array(cells, missing)
    axes.pcolormesh(across, up, shown, cmap=shared.colours, norm=shared.norm, rasterized=True)
    if missing.any():
        grey = np.ma.masked_array(np.zeros_like(cells), ~missing)
        axes.pcolor(across, up, grey, cmap=ListedColormap([FAINT]), zorder=1, antialiased=False, **MISSING)
    axes.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
    _draw_ticks(axes.xaxis, shared.columns)
    _draw_ticks(axes.yaxis, shared.rows)
    axes.spines[:].set_visible(False)


def _draw_ticks(axis: Axis, scale: MapAxis) -> None:
    """Names and few numbers at their centres; where decades do not tell a logarithmic axis, some of its numbers."""
    count, edges = len(scale.places), scale.edges
    if not scale.names and (edges[-1] > 100 * edges[0] if scale.log else count > MOST_TICKS):
        return
    every = 1 if scale.names else -(-count // MOST_TICKS)
    slanted = isinstance(axis, XAxis) and _tick_height(scale) > 0
    style = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axis.set_ticks(scale.places[::every], [scale.text(cell) for cell in range(0, count, every)], **style)
    axis.set_minor_locator(NullLocator())


def _tick_height(scale: MapAxis) -> float:
    """Points that names need below others: they are slanted where they are many or long."""
    slanted = sum(len(name) + 2 for name in scale.names) > 36
    return 2.2 * max(map(len, scale.names)) if slanted else 0.0


def _lay_out(figure: Figure) -> None:
    """Give the maps the size that they will have, by which texts find their places."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)


def _draw_bar(axes: list[Axes], quantity: str, shared: _Scales) -> None:
    figure = figure_of(axes[0])
    image = ScalarMappable(shared.norm, shared.colours)
    bar = figure.colorbar(image, ax=axes, extend=shared.extend, pad=0.02, aspect=25)
    bar.set_label(wrapped(quantity, 0.6 * figure.get_figheight()))
    bar.outline.set_visible(False)  # type: ignore[operator]
    low, high = float(shared.norm.vmin or 0), float(shared.norm.vmax or 1)
    if isinstance(shared.norm, LogNorm) and high < 100 * low:
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 4 * low else range(1, 10)))
        bar.ax.yaxis.set_major_formatter("{x:g}")
        bar.ax.yaxis.set_minor_locator(NullLocator())
