"""Cells of a map in the order of their axes, for maps on paper and in the terminal; without matplotlib."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError

Places = Sequence[Any] | np.ndarray
MOST_UNEVEN = 2.0  # ratio of the largest to the least step of an axis up to which they count as even
# even steps in lightness (CIELAB 13 to 92) from navy over teal to beige: also readable without red, green or colour
SEQUENTIAL = ("#0c1f4a", "#1b4680", "#2a6f92", "#4d9a8c", "#a3c08c", "#f6e7c9")


class MapAxis(NamedTuple):
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

    @property
    def log(self) -> bool:
        """Whether its scale is logarithmic."""
        if self.names or len(self.places) < 3 or self.places[0] <= 0:
            return False
        with np.errstate(divide="ignore", invalid="ignore"):  # near neighbours may have equal logarithms
            even, even_log = (steps.max() / steps.min() for steps in map(np.diff, (self.places, np.log(self.places))))
        return bool(even_log < even and even_log <= MOST_UNEVEN)

    @property
    def edges(self) -> Float[np.ndarray, " edges"]:
        """Where cells meet and end: half-way between their centres."""
        if len(self.places) == 1:
            half = 0.5 if self.names else 0.5 * abs(self.places[0]) or 0.5
            return self.places[0] + np.array([-half, half])
        at = np.log(self.places) if self.log else self.places
        middles = (at[1:] + at[:-1]) / 2
        edges = np.concatenate([[2 * at[0] - middles[0]], middles, [2 * at[-1] - middles[-1]]])
        return np.exp(edges) if self.log else edges


def _read_axis(name: str, places: Places, count: int) -> MapAxis:
    """An axis as it is drawn: numbers sorted, anything else as names in the given order."""
    array = np.asarray(places, None if isinstance(places, np.ndarray) or _are_numbers(places) else object)
    if array.ndim != 1 or len(array) != count:
        raise InputError(f"the {name} axis must be one value for each of {count} cells, not of shape {array.shape}")
    if array.dtype.kind not in "fiu":
        return MapAxis(np.arange(count), np.arange(float(count)), tuple(str(place) for place in array))
    numbers = array.astype(float)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    if not np.isfinite(numbers).all() or (np.diff(numbers) == 0).any():
        raise InputError(f"the {name} axis must consist of different finite numbers, not of {array.tolist()}")
    return MapAxis(order, numbers, ())


def _are_numbers(places: Sequence[Any]) -> bool:
    numeric = int | float | np.integer | np.floating
    return all(isinstance(place, numeric) and not isinstance(place, bool) for place in places)


def read_cells(
    values: Float[np.ndarray, "rows columns"], x: Places, y: Places
) -> tuple[Float[np.ndarray, "rows columns"], MapAxis, MapAxis]:
    """Cells in the order of their axes, NaN where they are not finite; the axis of columns, the axis of rows."""
    cells = np.array(values, float)
    if cells.ndim != 2 or 0 in cells.shape:
        raise InputError(f"a map needs values of rows x columns, both at least 1, not of shape {cells.shape}")
    columns, rows = _read_axis("x", x, cells.shape[1]), _read_axis("y", y, cells.shape[0])
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
    return (low - 0.1 * abs(low), low + 0.1 * abs(low)) if abs(low) >= np.finfo(float).tiny else (-1.0, 1.0)
