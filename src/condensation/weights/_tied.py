"""Which arrays of a checkpoint are another one under a second name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._files import Stored
from ..errors import InputError
from ._layout import UnitLayout

_COMPARED_FIRST = 64  # numbers of an array that are compared before all are


def tied_arrays(arrays: Mapping[str, Stored], layouts: Mapping[str, UnitLayout | str]) -> dict[str, str]:
    """The name of the array that each tied array repeats: in the same memory, or with the numbers of an embedding.

    Other equal numbers say nothing: layers that were copied before training are trained apart, and most files keep no
    places in memory.
    """
    embeddings = {name for name, layout in layouts.items() if getattr(layout, "kind", "") == "embedding"}
    ties: dict[str, str] = {}
    places: dict[Any, str] = {}
    alike: dict[Any, list[str]] = {}
    for name in sorted(arrays, key=lambda name: name not in embeddings):
        stored = arrays[name]
        if stored.reason or not stored.floating or not stored.size:
            continue
        if stored.place is not None:
            first = places.setdefault(stored.place, name)
            ties |= {name: first} if first != name else {}
        elif len(stored.shape) == 2:
            alike.setdefault((stored.dtype, stored.shape), []).append(name)
    for names in alike.values():
        firsts: list[str] = []
        for name in names:
            first = next((first for first in firsts if _equal(arrays[first], arrays[name])), None)
            if first is not None:
                ties[name] = first
            elif name in embeddings:
                firsts.append(name)
    return ties


def _equal(first: Stored, second: Stored) -> bool:
    """Whether two arrays have the same numbers, which are not all one number."""
    try:
        a, b = first.load().reshape(-1), second.load().reshape(-1)
    except InputError:
        return False  # the row of the broken array tells it
    sample = slice(None, None, max(1, len(a) // _COMPARED_FIRST))
    return bool((a[sample] == b[sample]).all() and (a[sample] != a[0]).any() and np.array_equal(a, b))
