"""Phase maps: a quantity over two axes of a sweep, with boundaries, regimes and named initializations on it."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from ..errors import InputError
from ._map_annotations import MISSING, Boundary, Mark, Regime, draw_annotations, legend_columns, legend_handles, wrapped
from ._map_cells import Places
from ._map_scales import MapScales, draw_ticks, read_panels, tick_height
from ._style import FAINT, PAGE, figure_of, look, new_axes

MOST_IN_A_ROW = 3


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
        cells, shared = read_panels({"": values}, x, y, centred, limits, logarithmic)
        axes = axes or new_axes(0.62 * PAGE, 3.1 + 0.16 * len(boundaries))
        _draw_cells(axes, cells[""], shared)
        axes.set(xlabel=labels[0], ylabel=labels[1])
        axes.set_title(wrapped(title, axes.get_position().width * figure_of(axes).get_figwidth()))
        _draw_bar([axes], quantity, shared)
        handles = legend_handles(boundaries, bool(np.isnan(cells[""]).any()))
        if handles:
            below = -30 - tick_height(shared.columns)
            shift = ScaledTranslation(0, below / 72, figure_of(axes).dpi_scale_trans)
            axes.legend(
                handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=axes.transAxes + shift,
                ncols=legend_columns(handles, 0.62 * PAGE), handlelength=3, borderaxespad=0,
            )  # fmt: skip
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
        cells, shared = read_panels(panels, x, y, centred, limits, logarithmic)
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
        handles = legend_handles(every, any(bool(np.isnan(panel).any()) for panel in cells.values()))
        if handles:
            figure.legend(
                handles=handles, loc="outside lower center", ncols=legend_columns(handles, PAGE), handlelength=3
            )
        if marks or regimes:
            _lay_out(figure)
        for axes, name in zip(drawn, cells, strict=True):
            draw_annotations(axes, own.get(name, ()), every, marks, regimes)
    return figure


def _draw_cells(axes: Axes, cells: Float[np.ndarray, "rows columns"], shared: MapScales) -> None:
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
    draw_ticks(axes.xaxis, shared.columns)
    draw_ticks(axes.yaxis, shared.rows)
    axes.spines[:].set_visible(False)


def _lay_out(figure: Figure) -> None:
    """Give the maps the size that they will have, by which texts find their places."""
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)


def _draw_bar(axes: list[Axes], quantity: str, shared: MapScales) -> None:
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
