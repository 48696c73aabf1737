"""Embedding: a unit split into several, the output unchanged: the inverse of reduction."""

from collections.abc import Sequence

import numpy as np

from .._serialization import coerce
from ..errors import InputError, check_whole, unknown_name
from ..networks import Model
from ._merge import Merge, merge_rule, mergeable, replace_units, unit_weights, unrolled


def embed(
    model: Model, layer: str, unit: int, shares: Sequence[float] = (0.5, 0.5), scales: Sequence[float] | None = None
) -> Model:
    """The model with one unit split into copies that share its output weights: the same function, a wider network.

    A critical point of the loss stays one, whatever the shares. A residual network becomes a concatenated one, the same
    function of more weights, where that need not be.

    Args:
        model: the network with its parameters.
        layer: a hidden layer.
        unit: the unit's number, from 0 on; its copies stand in its place, one after the other.
        shares: of the output weights, adding up to 1; they may be negative.
        scales: of the copies' input weights, positive, for positively homogeneous activations (relu): an output share
            is divided by the scale to the activation's degree.
    """
    model = unrolled(model)
    known = mergeable(model.network)
    if layer not in known:
        raise unknown_name("layer that can be embedded", layer, known)
    weights = unit_weights(model, model.layer(layer))
    check_whole("unit", unit, least=0)
    if unit >= len(weights):
        raise InputError(f"{layer} has the units 0 to {len(weights) - 1}, not {unit}")
    parts = np.array(coerce(tuple[float, ...], shares, "shares"))
    if parts.ndim != 1 or not len(parts) or not np.isclose(parts.sum(), 1, rtol=0, atol=1e-12):
        raise InputError(f"shares must be numbers that add up to 1, not {shares!r}")
    factors = np.ones(len(parts)) if scales is None else np.array(coerce(tuple[float, ...], scales, "scales"))
    if factors.shape != parts.shape or not (np.isfinite(factors) & (factors > 0)).all():
        raise InputError(f"scales must be {len(parts)} positive numbers, one for each share, not {scales!r}")
    rule = merge_rule(known[layer])
    if scales is not None and not (rule.oriented and rule.power):
        raise InputError(f"scales are for positively homogeneous activations such as relu, not for {known[layer]!r}")
    places = np.repeat(np.arange(len(weights)), np.where(np.arange(len(weights)) == unit, len(parts), 1))
    own = places == unit
    grown = weights[places]
    grown[own] *= factors[:, None]
    combine = np.zeros((len(weights), len(places)))
    combine[places, np.arange(len(places))] = 1
    combine[unit, own] = parts / factors**rule.power
    return replace_units(model, {layer: Merge(grown, combine, np.zeros(len(weights)))})
