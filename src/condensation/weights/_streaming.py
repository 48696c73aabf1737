"""Layers of a large model one after the other: how many may be in memory, and the sample of a layer of many units."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from ..measure import Row
from ..measure._similarity import as_weights, norms
from ._layout import Units

ROOM = 2**30  # bytes of layers that are measured at the same time, unless one alone takes more
SAMPLE = 16384  # units of a larger layer that are measured
Progress = Callable[[str, int, int], None]  # called with the last layer, and the weights that are done, of all


class Room:
    """Lets layers in while they fit together into some bytes; one alone always is let in."""

    def __init__(self, size: int = ROOM) -> None:
        self._size, self._taken = size, 0
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        """Wait until there is room, and keep it."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken or self._taken + size <= self._size)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


def sampled(units: int) -> Int[np.ndarray, " sample"] | None:
    """The units of a large layer that are measured, the same ones in every call; None where all are."""
    return None if units <= SAMPLE else np.sort(np.random.default_rng(0).choice(units, SAMPLE, replace=False))


def sample_note(listed: list[Units]) -> tuple[str, ...]:
    """A sentence on the layers of which a sample is measured."""
    large = [units for units in listed if not units.reason and units.units > SAMPLE]
    if not large:
        return ()
    more = f" and {len(large) - 1} more" if len(large) > 1 else ""
    first = f"{large[0].name}{more}: {SAMPLE:,} of its {large[0].units:,} units are measured"
    return (f"{first}; k_eff is reckoned for all of them, lines of fewer units may be missed",)


def of_all_units(row: Row, sample: Float[np.ndarray, "sample inputs"], units: int) -> Row:
    r"""The row of a layer whose sample was measured.

    $1/k = s + (1 - s) P$ with s the share of a unit's pairs with itself, which falls as 1 over the number of units, and
    P that of pairs of others, which a sample estimates; the lines and the ranks are those of the sample. Units that can
    go are as many times more, and pairs by chance the square of that.
    """
    if row.reason:
        return replace(row, units=units)
    array, part = as_weights(sample), len(sample) / units
    centred = array - array.mean(axis=0, dtype=float).astype(array.dtype)
    pairs = {
        "k_eff": array,
        "chance_k_eff": array,
        "centred_k_eff": centred,
        "null_k_eff": centred,
        "null_low": centred,
    }
    larger = {
        name: _larger(getattr(row, name), _with_itself(weights, len(array)), part) for name, weights in pairs.items()
    }
    error = row.k_eff_error * larger["k_eff"] / row.k_eff
    counts = {name: round(getattr(row, name) / part) for name in ("zeros", "copies", "opposites", "spare")}
    chance = row.chance_copies / part**2
    return replace(row, units=units, chance_copies=chance, k_eff_error=error, **counts, **larger)


def _with_itself(array: np.ndarray, units: int) -> float:
    """The share of pairs of a unit with itself, among so many units like these."""
    r = norms(array).astype(float)
    return float((r**2).mean() / max(r.mean(), np.finfo(float).tiny) ** 2 / units)


def _larger(k_eff: float, with_itself: float, part: float) -> float:
    """k_eff of all units, from that of a part of them.

    >>> round(_larger(100.0, 0.01, 0.1)), round(_larger(4.0, 0.01, 0.1), 1)  # all apart; four lines
    (1000, 4.1)
    """
    with_itself = min(with_itself, 1 / k_eff)
    others = (1 / k_eff - with_itself) / (1 - with_itself) if with_itself < 1 else 1.0
    of_all = with_itself * part
    return float(1 / (of_all + (1 - of_all) * others)) if np.isfinite(k_eff) else k_eff
