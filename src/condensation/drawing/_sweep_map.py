"""The map of a sweep: a quantity over two of its axes, a panel for each value of a third."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..errors import InputError, unknown_name
from ..sweeps import Sweep, SweepTable
from ._layer_curves import medians
from ._phase_map import draw_phase_maps
from ._style import COLOURS, look, new_axes

PANELS = 12  # of a map at most


def map_axes(sweep: Sweep, x: str | None, y: str | None) -> tuple[str | None, str | None, str | None]:
    """The axes of a sweep's map, and the one that its panels are of; None where there is none."""
    axes = [name for name, values in sweep.axes.items() if len(values) > 1] + ["step"] * (sweep.at == "saved")
    for name in (x, y):
        if name is not None and name not in axes:
            raise unknown_name("axis", name, axes)
    if x is not None and x == y:
        raise InputError(f"a map is over two axes: {x} stands twice")
    x = next((name for name in axes if name != y), None) if x is None else x
    y = next((name for name in axes if name != x), None) if y is None else y
    third = next((name for name in axes if name not in (x, y, "step")), None)
    if third is not None and len(sweep.axes[third]) > PANELS:
        count = len(sweep.axes[third])
        raise InputError(f"{third} has {count} values, too many for a panel each: name other axes to draw")
    return x, y, third


class ChosenMap(NamedTuple):
    """What of a table is drawn: a quantity over two axes, or over one where y is None; x is None if none varies."""

    quantity: str
    x: str | None
    y: str | None
    panels: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]  # values, places of x and of y, by the panel's title


def choose_map(table: SweepTable, x: str | None, y: str | None, quantity: str | None) -> ChosenMap:
    """The map that is asked for, seeds as their median; what the table does not have is refused."""
    known = table.quantities
    if quantity is not None and quantity not in known:
        raise unknown_name("quantity", quantity, known)
    x, y, third = map_axes(table.sweep, x, y)
    if not known:
        raise InputError("this sweep has no numbers that were measured")
    quantity = known[0] if quantity is None else quantity
    if x is None or y is None:
        return ChosenMap(quantity, x or y, None, {})
    places = {f"{third} = {value}": {third: value} for value in table.sweep.labels[third]} if third else {"": {}}
    return ChosenMap(quantity, x, y, {title: table.map(quantity, x, y, at=at) for title, at in places.items()})


def sweep_curve(table: SweepTable, quantity: str, x: str) -> Float[np.ndarray, " places"]:
    """A quantity over the only axis that varies: the median of the seeds, NaN where there is none."""
    axis = [*table.sweep.axes].index(x) if x in table.sweep.axes else -1
    values = np.moveaxis(table.array(quantity), axis, 0)
    return medians(values.reshape(len(values), -1).T)


def draw_axis(table: SweepTable, quantity: str, x: str) -> Axes:
    """A quantity over the only axis of a sweep that varies, the median of the seeds."""
    labels = [str(place) for place in (table.steps if x == "step" else table.sweep.labels[x])]
    with look():
        axes = new_axes()
        axes.plot(range(len(labels)), sweep_curve(table, quantity, x), "o-", color=COLOURS[0], markersize=3)
        each = -(-len(labels) // 8)
        axes.set_xticks(range(0, len(labels), each), labels[::each])
        axes.set(xlabel=x, ylabel=quantity)
    return axes


def draw_sweep(
    table: SweepTable, *, x: str | None = None, y: str | None = None, quantity: str | None = None
) -> Figure | None:
    """The map of a sweep, seeds as their median; None for a sweep with fewer than two axes to draw.

    A cell that lacks a seed is hatched; what else the numbers do not show stands above the map.

    Args:
        table: of the sweep.
        x: the horizontal axis; the first if not given.
        y: the vertical one; the second (the steps, where a sweep has one axis and all saved steps) if not given.
        quantity: the column; the first that was measured if not given.
    """
    if quantity is None and not table.quantities:
        return None
    chosen = choose_map(table, x, y, quantity)
    if chosen.x is None or chosen.y is None:
        return None
    _, columns, rows = next(iter(chosen.panels.values()))
    panels = {title: np.asarray(values) for title, (values, _, _) in chosen.panels.items()}
    labels = (chosen.x, chosen.y)
    return draw_phase_maps(panels, columns, rows, quantity=chosen.quantity, labels=labels, title="; ".join(table.notes))
