"""The map of a sweep: a quantity over two of its axes, a panel for each value of a third."""

import numpy as np
from matplotlib.figure import Figure

from ..errors import InputError, unknown_name
from ..sweeps import Sweep, SweepTable
from ._phase_map import draw_phase_maps

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
    known = table.quantities
    if quantity is not None and quantity not in known:
        raise unknown_name("quantity", quantity, known)
    x, y, third = map_axes(table.sweep, x, y)
    if x is None or y is None or not known:
        return None
    quantity = known[0] if quantity is None else quantity
    places = {f"{third} = {value}": {third: value} for value in table.sweep.labels[third]} if third else {"": {}}
    maps = {title: table.map(quantity, x, y, at=at) for title, at in places.items()}
    _, columns, rows = next(iter(maps.values()))
    panels = {title: np.asarray(values) for title, (values, _, _) in maps.items()}
    return draw_phase_maps(panels, columns, rows, quantity=quantity, labels=(x, y), title="; ".join(table.notes))
