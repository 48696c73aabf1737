"""The scales of a phase map: its axes with their ticks, and the colours of its values."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axis import Axis, XAxis
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, LogNorm, Normalize
from matplotlib.ticker import NullLocator

from ..errors import InputError
from ._map_cells import SEQUENTIAL, MapAxis, Places, colour_limits, read_cells

DIVERGING = ("#0b2f5c", "#2f86c1", "#f4f4f2", "#d4640c", "#662500")  # as dark on either side; blue and orange
MOST_TICKS = 6  # at the centres of cells


class MapScales(NamedTuple):
    """Both axes and the colours of a map, which all panels share."""

    columns: MapAxis
    rows: MapAxis
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
    return cells, MapScales(columns, rows, norm, colours, beyond)


def draw_ticks(axis: Axis, scale: MapAxis) -> None:
    """Names and few numbers at their centres; where decades do not tell a logarithmic axis, some of its numbers."""
    count, edges = len(scale.places), scale.edges
    if not scale.names and (edges[-1] > 100 * edges[0] if scale.log else count > MOST_TICKS):
        return
    every = 1 if scale.names else -(-count // MOST_TICKS)
    slanted = isinstance(axis, XAxis) and tick_height(scale) > 0
    style = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axis.set_ticks(scale.places[::every], [scale.text(cell) for cell in range(0, count, every)], **style)
    axis.set_minor_locator(NullLocator())


def tick_height(scale: MapAxis) -> float:
    """Points that names need below others: they are slanted where they are many or long."""
    slanted = sum(len(name) + 2 for name in scale.names) > 36
    return 2.2 * max(map(len, scale.names)) if slanted else 0.0
