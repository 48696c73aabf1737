"""Cells of a map in the order of their axes, for maps on paper and in the terminal; without matplotlib."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError

Places = Sequence[Any] | np.ndarray
# even steps in lightness (CIELAB 13 to 92) from navy over teal to beige: also readable without red, green or colour
SEQUENTIAL = ("#0c1f4a", "#1b4680", "#2a6f92", "#4d9a8c", "#a3c08c", "#f6e7c9")


class Centres(NamedTuple):
    """One axis of a map, in rising order.

    Attributes:
        order: which of the given places comes first, second, ...
        places: the centres of the cells; of an axis of names 0, 1, 2, ...
        names: what stands at the centres where they are no numbers; else empty.
    """

    order: Int[np.ndarray, " cells"]
    places: Float[np.ndarray, " cells"]
    names: tuple[str, ...]

    def text(self, cell: int) -> str:
        """The name or number at the centre of a cell."""
        return self.names[cell] if self.names else f"{self.places[cell]:.4g}"


def read_centres(what: str, places: Places, count: int) -> Centres:
    """An axis as it is drawn: numbers sorted, anything else as names in the given order.

    Args:
        what: the axis, for messages.
        places: one for each row or column of cells.
        count: how many rows or columns there are.
    """
    given = np.asarray(places, None if isinstance(places, np.ndarray) or _are_numbers(places) else object)
    if given.ndim != 1 or len(given) != count:
        raise InputError(f"the {what} axis must be one value for each of {count} cells, not of shape {given.shape}")
    if given.dtype.kind not in "fiu":
        return Centres(np.arange(count), np.arange(float(count)), tuple(str(place) for place in given))
    numbers = given.astype(float)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    if not np.isfinite(numbers).all() or (np.diff(numbers) == 0).any():
        raise InputError(f"the {what} axis must consist of different finite numbers, not of {given.tolist()}")
    return Centres(order, numbers, ())


def _are_numbers(places: Sequence[Any]) -> bool:
    return all(isinstance(place, int | float | np.integer | np.floating) for place in places) and not any(
        isinstance(place, bool) for place in places
    )


def read_cells(
    values: Float[np.ndarray, "rows columns"], x: Places, y: Places
) -> tuple[Float[np.ndarray, "rows columns"], Centres, Centres]:
    """Cells in the order of their axes, NaN where they are not finite; the axis of columns, the axis of rows."""
    cells = np.array(values, float)
    if cells.ndim != 2 or 0 in cells.shape:
        raise InputError(f"a map needs values of rows x columns, both at least 1, not of shape {cells.shape}")
    columns, rows = read_centres("x", x, cells.shape[1]), read_centres("y", y, cells.shape[0])
    cells[~np.isfinite(cells)] = np.nan
    return cells[rows.order][:, columns.order], columns, rows


def colour_limits(cells: Float[np.ndarray, "..."], limits: tuple[float, float] | None) -> tuple[float, float]:
    """The values of the first and the last colour: as given, or the least and largest there are, apart."""
    if limits is not None:
        low, high = (float(limit) for limit in limits)
        if not (np.isfinite([low, high]).all() and low < high):
            raise InputError(f"limits must be two rising finite numbers, not {limits!r}")
        return low, high
    finite = cells[np.isfinite(cells)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    if high - low > 1e-12 * max(abs(low), abs(high)):
        return low, high
    return (low - 0.1 * abs(low), low + 0.1 * abs(low)) if low else (-1.0, 1.0)
