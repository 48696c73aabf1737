"""The units of arrays that are in files: names and shapes tell the layouts, types and bytes what is no weight."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._files import Stored
from ..errors import InputError
from ._layout import Units, list_units
from ._names import layouts
from ._quantised import dequantised

_LOOKED_AT = 64  # numbers of an array that are compared before all are


def units_of_stored(
    arrays: Mapping[str, Stored],
    config: Mapping[str, Any] | None = None,
    same: Mapping[str, str] | None = None,
    *,
    heads: bool = False,
    view: str = "filter",
) -> list[Units]:
    """The units of a checkpoint; tied, packed, integer and unreadable arrays are listed with the reason.

    Args:
        arrays: by name.
        config: of the model, where there is one: it tells the sizes of attention heads.
        same: which arrays are another one, where that is known: it takes reading them.
        heads: cut attention projections into their heads.
        view: of convolution layers, ``"filter"`` or ``"kernel"``.
    """
    known = dequantised(arrays)
    found = layouts({name: stored.shape for name, stored in known.items()}, config)
    same = tied(arrays) if same is None else same
    for name, stored in known.items():
        if reason := stored.reason or _no_number(stored, isinstance(found[name], str)):
            found[name] = reason
        elif name in same:
            found[name] = f"tied: it is {same[name]}"
    reads = {name: (stored.shape, stored.read) for name, stored in known.items()}
    return list_units(reads, found, heads=heads, view=view)


def _no_number(stored: Stored, told: bool) -> str:
    """Why values of a type are no weights; empty where they are, or where the shape has told already."""
    if stored.floating or told:
        return ""
    if stored.dtype.startswith("complex"):
        return "complex: lines are of real weights"
    return f"of type {stored.dtype}, not floating-point: quantised weights have to be dequantised first"


def tied(arrays: Mapping[str, Stored]) -> dict[str, str]:
    """Which arrays are another one: they lie in one place, or have the numbers of an embedding, as a head may.

    Other equal numbers say nothing: layers that were copied at the start are trained apart, and most files keep no
    places.
    """
    known = dequantised(arrays)
    kinds = layouts({name: stored.shape for name, stored in known.items()})
    found: dict[str, str] = {}
    places: dict[Any, str] = {}
    alike: dict[Any, list[str]] = {}
    for name in sorted(known, key=lambda name: getattr(kinds[name], "kind", "") != "embedding"):
        stored = known[name]
        if stored.reason or not stored.floating or not stored.size:
            continue
        if stored.place is not None:
            first = places.setdefault(stored.place, name)
            found |= {name: first} if first != name else {}
        elif len(stored.shape) == 2:
            alike.setdefault((stored.dtype, stored.shape), []).append(name)
    for names in alike.values():
        firsts: list[str] = []
        for name in names:
            first = next((first for first in firsts if _equal(known[first], known[name])), None)
            if first is not None:
                found[name] = first
            elif getattr(kinds[name], "kind", "") == "embedding":
                firsts.append(name)
    return found


def _equal(first: Stored, second: Stored) -> bool:
    """Whether two arrays have the same numbers; not where these are all one."""
    try:
        one, other = first.load().reshape(-1), second.load().reshape(-1)
    except InputError:
        return False  # told when it is measured
    look = slice(None, None, max(1, len(one) // _LOOKED_AT))
    return bool((one[look] == other[look]).all() and (one[look] != one[0]).any() and np.array_equal(one, other))
