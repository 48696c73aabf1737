"""The units of arrays that are in files: names and shapes tell the layouts, types and bytes what is no weight."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import Stored
from .layout import Units, list_units
from .names import layouts
from .quantised import dequantised

_LOOKED_AT = 64  # numbers of an array that are compared before all are


def units_of_stored(
    arrays: Mapping[str, Stored],
    config: Mapping[str, Any] | None = None,
    *,
    heads: bool = False,
    view: str = "filter",
) -> list[Units]:
    """The units of a checkpoint; tied, packed, integer and unreadable arrays are listed with the reason.

    Args:
        arrays: by name.
        config: of the model, where there is one: it tells the sizes of attention heads.
        heads: cut attention projections into their heads.
        view: of convolution layers, ``"filter"`` or ``"kernel"``.
    """
    known = dequantised(arrays)
    found = layouts({name: stored.shape for name, stored in known.items()}, config)
    embeddings_first = sorted(known, key=lambda name: getattr(found[name], "kind", "") != "embedding")
    same = tied({name: known[name] for name in embeddings_first})
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
    """Which arrays are another one, that came before: they lie in one place, or have the same numbers throughout.

    Without places, only arrays of two axes and more are compared, and none whose numbers are all the same.
    """
    found: dict[str, str] = {}
    places: dict[Any, str] = {}
    alike: dict[Any, dict[str, Stored]] = {}
    for name, stored in arrays.items():
        if stored.reason or not stored.floating or not stored.size:
            continue
        if stored.place is not None:
            first = places.setdefault(stored.place, name)
            found |= {name: first} if first != name else {}
        elif len(stored.shape) > 1:
            alike.setdefault((stored.dtype, stored.shape), {})[name] = stored
    for group in alike.values():
        if len(group) > 1:
            found |= _equal(group)
    return found


def _equal(arrays: Mapping[str, Stored]) -> dict[str, str]:
    """Which of some arrays of one shape and type have the numbers of an earlier one."""
    found: dict[str, str] = {}
    firsts: dict[bytes, list[str]] = {}
    for name, stored in arrays.items():
        try:
            flat = stored.load().reshape(-1)
        except InputError:
            continue  # told when it is measured
        look = np.ascontiguousarray(flat[:: max(1, len(flat) // _LOOKED_AT)])
        if (look == look[0]).all():
            continue
        for first in firsts.setdefault(look.tobytes(), []):
            if np.array_equal(flat, arrays[first].load().reshape(-1)):
                found[name] = first
                break
        else:
            firsts[look.tobytes()].append(name)
    return found
