"""The scales of a phase map: where its cells lie on both axes, the ticks there, and the colours of its values."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, LogNorm, Normalize
from matplotlib.ticker import NullLocator

from ..errors import InputError
from ._map_cells import SEQUENTIAL, Centres, Places, colour_limits, read_cells

DIVERGING = ("#0b2f5c", "#2f86c1", "#f4f4f2", "#d4640c", "#662500")  # as dark on either side; blue and orange
MOST_UNEVEN = 2.0  # ratio of the largest to the least step of an axis up to which they count as even
MOST_TICKS = 6  # at the centres of cells


class Scale(NamedTuple):
    """One axis: the centres of its cells, the edges between them, and whether it is logarithmic."""

    centres: Centres
    edges: np.ndarray
    log: bool


class MapScales(NamedTuple):
    """Both axes and the colours of a map, which all panels share."""

    columns: Scale
    rows: Scale
    norm: Normalize
    colours: Colormap
    extend: str


def read_panels(
    panels: Mapping[str, np.ndarray],
    x: Places,
    y: Places,
    centred: bool,
    limits: tuple[float, float] | None,
    logarithmic: bool,
) -> tuple[dict[str, np.ndarray], MapScales]:
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
    return cells, MapScales(_scale(columns), _scale(rows), norm, colours, beyond)


def _scale(centres: Centres) -> Scale:
    places = centres.places
    log = False
    if not centres.names and len(places) >= 3 and places[0] > 0:
        even, even_log = (float(steps.max() / steps.min()) for steps in (np.diff(places), np.diff(np.log(places))))
        log = even_log < even and even_log <= MOST_UNEVEN
    if len(places) == 1:
        half = 0.5 if centres.names else 0.5 * abs(places[0]) or 0.5
        return Scale(centres, places[0] + np.array([-half, half]), False)
    at = np.log(places) if log else places
    middles = (at[1:] + at[:-1]) / 2
    edges = np.concatenate([[2 * at[0] - middles[0]], middles, [2 * at[-1] - middles[-1]]])
    return Scale(centres, np.exp(edges) if log else edges, log)


def draw_ticks(axes: Axes, which: str, scale: Scale) -> None:
    """Names and few numbers at their centres; where decades do not tell a logarithmic axis, some of its numbers."""
    centres, count = scale.centres, len(scale.centres.places)
    axis, set_ticks = (axes.xaxis, axes.set_xticks) if which == "x" else (axes.yaxis, axes.set_yticks)
    if not centres.names and (scale.edges[-1] > 100 * scale.edges[0] if scale.log else count > MOST_TICKS):
        return
    every = 1 if centres.names else -(-count // MOST_TICKS)
    slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if which == "x" and _slanted(scale) else {}
    set_ticks(centres.places[::every], [centres.text(cell) for cell in range(0, count, every)], **slanted)
    axis.set_minor_locator(NullLocator())


def _slanted(scale: Scale) -> bool:
    return sum(len(name) + 2 for name in scale.centres.names) > 36


def tick_height(scale: Scale) -> float:
    """Points that slanted names need below others."""
    return 2.2 * max(map(len, scale.centres.names)) if _slanted(scale) else 0.0
