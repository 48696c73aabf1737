"""Which units of a model are watched, by their names, and their weights while the model may change."""

import warnings
from collections.abc import Iterable, Iterator

import numpy as np
from torch import nn

from ..errors import InputError, unknown_name
from ..weights import Units
from ._processes import class_name
from ._units import NOT_INITIALISED, listed, unwrapped


def as_names(names: Iterable[str] | None) -> list[str] | None:
    """Names in a list; a single name need not stand in a list."""
    return [names] if isinstance(names, str) else None if names is None else list(names)


def chosen(
    model: nn.Module, layers: list[str] | None, keep: list[str], *, heads: bool, view: str
) -> tuple[list[Units], list[Units]]:
    """The units to measure and those of them to keep; a named head or projection is cut as its name says."""
    every = listed(model, heads=heads, view=view, sharded=True)
    if missing := {*(layers or ()), *keep} - {name for layer in every for name in _names(layer)}:
        every += [layer for layer in listed(model, heads=not heads, view=view, sharded=True) if layer.name in missing]
    measurable = [layer for layer in every if not layer.reason]
    if not measurable:
        name = class_name(unwrapped(model))
        raise InputError(f"the model {name} has no units to watch; {every[0].name}: {every[0].reason}")
    if layers is None and (lazy := [layer.name for layer in every if layer.reason == NOT_INITIALISED]):
        more = f" and {len(lazy) - 1} more" if len(lazy) > 1 else ""
        warnings.warn(f"left out: {lazy[0]}{more}, {NOT_INITIALISED}", stacklevel=4)
    if layers == []:
        raise InputError("layers names no layer: leave it out to watch all of them")
    measured = measurable if layers is None else _named(every, layers, "layer")
    return measured, _named(measured, keep, "layer to keep")


def _named(every: list[Units], names: list[str], what: str) -> list[Units]:
    """The units of these names; the name of a parameter or of its module stands for all that it was cut into."""
    measurable = [layer for layer in every if not layer.reason]
    reasons = {name: layer.reason for layer in every if layer.reason for name in _names(layer)}
    for name in names:
        if not any(name in _names(layer) for layer in measurable):
            if name in reasons:
                raise InputError(f"the layer {name} has no units: {reasons[name]}")
            raise unknown_name(what, name, [layer.name for layer in measurable])
    return [layer for layer in measurable if {*_names(layer)} & {*names}]


def _names(layer: Units) -> tuple[str, str, str]:
    """By what a layer may be named: its parameter with and without ``.weight``."""
    return layer.name, layer.parameter, layer.parameter.removesuffix(".weight")


def about(layer: Units) -> tuple[str, str, int, int]:
    """Name, kind, units and inputs, as rows and layers have them."""
    return layer.name, layer.kind, layer.units, layer.inputs


def weights_of(layer: Units) -> np.ndarray:
    """The weights as they are now; a layer that was resized, moved or deleted raises an InputError that says so."""
    try:
        weights = layer.weights()
    except Exception as error:  # a model can be changed in many ways
        raise InputError(f"cannot be read: {str(error).splitlines()[0] if str(error) else repr(error)}") from error
    if weights.shape != (layer.units, layer.inputs):
        now = " x ".join(map(str, weights.shape))
        raise InputError(f"cannot be read: it was {layer.units} x {layer.inputs} when watching began, and is {now}")
    return weights


def initial_weights(watched: list[Units]) -> Iterator[np.ndarray]:
    """The weights of one layer after the other, all of which can be read."""
    for layer in watched:
        try:
            yield weights_of(layer)
        except InputError as error:
            raise InputError(f"the layer {layer.name} {error}") from error
