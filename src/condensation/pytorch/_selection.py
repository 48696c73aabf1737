"""Which units of a model are watched, by their names, and their weights while the model may change."""

from collections.abc import Iterable, Iterator

import numpy as np
from torch import nn

from ..errors import InputError, unknown_name
from ..weights import Units
from ._units import units


def as_names(names: Iterable[str] | None) -> list[str] | None:
    """Names in a list; one alone need not stand in one."""
    return [names] if isinstance(names, str) else None if names is None else list(names)


def listed(model: nn.Module, heads: bool, view: str, names: list[str]) -> list[Units]:
    """All units, and those which only the other way of cutting attention projections has, if they are named."""
    found = units(model, heads=heads, view=view)
    known = {name for one in found for name in (one.name, one.parameter)}
    if known.issuperset(names):
        return found
    return found + [one for one in units(model, heads=not heads, view=view) if one.name in {*names} - known]


def chosen(model: str, found: list[Units], layers: list[str] | None) -> list[Units]:
    """The listed units that are to be measured."""
    there = [one for one in found if not one.reason]
    if not there:
        raise InputError(f"the model {model} has no units to watch; {found[0].name}: {found[0].reason}")
    if layers is None:
        return there
    if not layers:
        raise InputError("layers names no layer: leave it out to watch all of them")
    return find_named(there, layers, "layer", {one.name: one.reason for one in found if one.reason})


def find_named(there: list[Units], names: list[str], what: str, reasons: dict[str, str] | None = None) -> list[Units]:
    """The units of these names; the name of a parameter stands for all that it was cut into."""
    for name in names:
        if name in (reasons or {}):
            raise InputError(f"the layer {name} has no units: {(reasons or {})[name]}")
        if not any(name in (one.name, one.parameter) for one in there):
            raise unknown_name(what, name, [one.name for one in there])
    return [one for one in there if one.name in names or one.parameter in names]


def about(one: Units) -> tuple[str, str, int, int]:
    """Name, kind, units and inputs, as rows and layers have them."""
    return one.name, one.kind, one.units, one.inputs


def weights_of(one: Units) -> np.ndarray:
    """The weights as they are now; a layer that was resized, moved or deleted is told in one sentence."""
    try:
        weights = one.weights()
    except Exception as error:  # a model can be changed in many ways
        raise InputError(f"cannot be read: {str(error).splitlines()[0] if str(error) else repr(error)}") from error
    if weights.shape != (one.units, one.inputs):
        now = " x ".join(map(str, weights.shape))
        raise InputError(f"cannot be read: it was {one.units} x {one.inputs} when watching began, and is {now}")
    return weights


def starts_of(watched: list[Units]) -> Iterator[np.ndarray]:
    """The weights of one layer after the other, all of which can be read."""
    for one in watched:
        try:
            yield weights_of(one)
        except InputError as error:
            raise InputError(f"the layer {one.name} {error}") from error
