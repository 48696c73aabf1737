"""The map of a sweep: a quantity over two of its axes, a panel for each value of a third."""

import numpy as np
from matplotlib.figure import Figure

from ..errors import InputError, unknown_name
from ..sweeps import SweepTable
from ._phase_map import draw_phase_maps


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
    axes = [name for name, values in table.sweep.axes.items() if len(values) > 1]
    axes += ["step"] * (table.sweep.at == "saved")
    known = table.quantities
    if quantity is not None and quantity not in known:
        raise unknown_name("quantity", quantity, known)
    for name in (x, y):
        if name is not None and name not in axes:
            raise unknown_name("axis", name, axes)
    x = x or next((name for name in axes if name != y), None)
    y = y or next((name for name in axes if name != x), None)
    if x is None or y is None or not known:
        return None
    quantity = quantity or known[0]
    third = next((name for name in axes if name not in (x, y, "step")), None)
    places = {f"{third} = {value}": {third: value} for value in table.sweep.labels[third]} if third else {"": {}}
    if len(places) > 12:
        raise InputError(f"{third} has {len(places)} values, too many for a panel each: name other axes to draw")
    maps = {title: table.map(quantity, x, y, at=at) for title, at in places.items()}
    _, columns, rows = next(iter(maps.values()))
    panels = {title: np.asarray(values) for title, (values, _, _) in maps.items()}
    return draw_phase_maps(panels, columns, rows, quantity=quantity, labels=(x, y), title="; ".join(table.notes))
