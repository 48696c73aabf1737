r"""Replacing the units of a layer by fewer: new input weights, and what their readers add up.

Whatever takes the place of a layer's outputs h is of the form $h \approx C \hat h + d$ with the outputs $\hat h$ of the
new units: a layer that reads h with weights W then reads $\hat h$ with $W C$, and its bias grows by $W d$.

For units of one line, $w_j = s_j r_j u$, and an activation of multiplicity p, the leading order
$\sigma(w_j \cdot x) - \sigma(0) \approx c\,(s_j r_j)^p (u \cdot x)^p$ gives $C_j = s_j^p (r_j / R)^p$ for the new unit
$R u$ and $d_j = \sigma(0) (1 - C_j)$; so $a_{eff} R^p = \sum_j a_j s_j^p r_j^p$. For odd and even activations the sign
is exact; for equal amplitudes the whole is. Of a positively homogeneous activation (relu) the units of one
*orientation* are merged, exactly, by the same formula with p its degree. R is free at this order; it is chosen between
the amplitudes so that the next order of an odd or even activation holds as well as can be,
$R^2 = \sum_j m_j r_j^2 / \sum_j m_j$ with $m_j = |a_j| r_j^p$. (A convolution over an image padded with zeros sees no
constant at the border: there d is right only inside.)

Pooling by means or sums is linear, and changes nothing but d (of sums, by the size of a window). The largest value in a
window keeps factors that are positive: behind it units of one *orientation* are merged, unless p is even.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..activations import Activation, derivatives_at_zero, get_activation, multiplicity
from ..errors import InputError
from ..measure._similarity import norms
from ..networks import Attention, Conv, Dense, LayerShape, Model, Network
from ..networks._geometry import Geometry
from ._tree import common_direction


@dataclass(frozen=True)
class MergeRule:
    """How an activation's units merge: by ``oriented`` directions or by lines, with the power p, around sigma(0)."""

    oriented: bool
    power: float
    constant: float


@lru_cache(maxsize=64)
def merge_rule(activation: Activation) -> MergeRule:
    """The rule of an activation. Without multiplicity and degree (power 0) only equal units merge exactly.

    >>> merge_rule("x_tanh"), merge_rule("relu")
    (MergeRule(oriented=False, power=2, constant=0.0), MergeRule(oriented=True, power=1.0, constant=0.0))
    """
    p = multiplicity(activation)
    constant = derivatives_at_zero(activation, 0)[0]
    if p is not None:
        return MergeRule(False, p, constant)
    with jax.enable_x64(True):
        z = jnp.array([1e-3, 1.0, 1e3, -1e-3, -1.0, -1e3])
        function = jax.vmap(get_activation(activation))
        once, twice = np.asarray(function(z)), np.asarray(function(2 * z))
    before, after = np.abs(once[[1, 4]]).sum(), np.abs(twice[[1, 4]]).sum()
    degree = float(np.log2(after / before)) if before > 0 and after > 0 else 0.0
    homogeneous = np.allclose(twice, 2**degree * once, rtol=1e-9, atol=0)
    return MergeRule(True, degree if homogeneous else 0.0, constant)


def layer_rule(network: Network, layer: str) -> MergeRule:
    """The rule of a layer. The largest of some values is not minus that of their negatives: behind it signs matter."""
    rule, geometry = merge_rule(mergeable(network)[layer]), _geometry(network, layer)
    signed = geometry is not None and geometry.pools and geometry.pooling == "max" and rule.power % 2 != 0
    return replace(rule, oriented=True) if signed else rule


def _geometry(network: Network, layer: str) -> Geometry | None:
    """How the kernels of a convolution layer lie and are pooled; None for other layers."""
    place = [one.name for one in network.layers].index(layer)
    return network.geometry[place] if isinstance(network, Conv) and place < len(network.geometry) else None


@dataclass(frozen=True)
class Merge:
    """New units of a layer: their input weights (bias last), C and d of h = C h' + d."""

    weights: Float[np.ndarray, "new inputs"]
    combine: Float[np.ndarray, "units new"]
    constant: Float[np.ndarray, " units"]


def merge_groups(
    weights: Float[np.ndarray, "units inputs"],
    amounts: Float[np.ndarray, " units"],
    rule: MergeRule,
    groups: Int[np.ndarray, " units"],
) -> Merge:
    """One new unit for each group; ``amounts`` are the sizes |a_j| of the units' output weights."""
    count = int(groups.max()) + 1
    long = norms(weights)
    made, combine = np.zeros((count, weights.shape[1])), np.zeros((len(weights), count))
    for group in range(count):
        members = np.flatnonzero(groups == group)
        direction, signs = common_direction(weights[members], rule.oriented)
        r = long[members]
        mass = amounts[members] * r**rule.power
        mass = mass if mass.sum() > 0 else np.ones(len(members))
        amplitude = np.sqrt(mass @ r**2 / mass.sum())
        made[group] = amplitude * direction
        # units of norm zero are all the constant sigma(0), as their new unit is
        combine[members, group] = signs**rule.power * (r / amplitude) ** rule.power if amplitude > 0 else 1
    rest = 1 - combine.sum(axis=1)
    return Merge(made, combine, rule.constant * np.where(np.abs(rest) < 1e-12, 0, rest))  # rounding asks for no bias


def mergeable(network: Network) -> dict[str, Activation]:
    """The layers whose units can be merged, and their activations."""
    if isinstance(network, Attention):
        raise InputError("dense, convolutional and residual networks can be reduced, not a network of attention")
    chain = [layer.name for layer in network.layers[:-1]]
    dense = chain[len(chain) - len(network.activations) :]  # of a ResNet: batch norm stands between the others
    return dict(zip(dense, network.activations, strict=True))


def unrolled(model: Model) -> Model:
    r"""A residual network as a concatenated one: with $h_l = g_1 + ... + g_l$ the same function reads (W, ..., W)."""
    network = model.network
    if not isinstance(network, Dense) or not network.residual:
        return model
    parameters = dict(model.parameters)
    for depth, layer in enumerate(network.layers[1:], start=1):
        parameters[f"{layer.name}.weight"] = np.tile(parameters[f"{layer.name}.weight"], depth)
    return Model(replace(network, residual=False, concatenated=True), parameters)


def output_weights(model: Model, layer: str) -> Float[np.ndarray, "units outputs"]:
    """The output weights of a layer's units: whatever reads them."""
    units = model.layer(layer).weight[0]
    readers = _readers(model.network, layer).items()
    views = [_view(model.parameters[f"{name}.weight"], columns, units) for name, columns in readers]
    return np.concatenate([np.moveaxis(part, 1, 0).reshape(units, -1) for part in views], axis=1)


def _readers(network: Network, name: str) -> dict[str, slice]:
    """The layers that read a layer's units, and the columns of their flat weights that do, a run for each unit."""
    place = [layer.name for layer in network.layers].index(name)
    if isinstance(network, Dense) and network.concatenated:
        end = sum(layer.weight[0] for layer in network.layers[: place + 1])
        own = slice(end - network.layers[place].weight[0], end)
        return {reader.name: own for reader in network.layers[place + 1 :]}
    reader = network.layers[place + 1]
    return {reader.name: slice(0, int(np.prod(reader.weight[1:])))}


def _view(weight: np.ndarray, columns: slice, units: int) -> Float[np.ndarray, "outputs units entries"]:
    """The columns of a reader's weight that belong to some units, entries apart."""
    return weight.reshape(len(weight), -1)[:, columns].reshape(len(weight), units, -1)


def replace_units(model: Model, merges: Mapping[str, Merge]) -> Model:
    """The model with some layers' units replaced; layers without a bias gain one where a constant asks for it."""
    network = model.network
    parameters = {name: np.asarray(value, float) for name, value in model.parameters.items()}
    for name, merge in merges.items():  # the rows of all layers first: a reader's rows and columns are apart
        layer = next(layer for layer in network.layers if layer.name == name)
        weights = merge.weights[:, :-1] if layer.has_bias else merge.weights
        parameters[f"{name}.weight"] = weights.reshape(-1, *layer.weight[1:])
        if layer.has_bias:
            parameters[f"{name}.bias"] = merge.weights[:, -1]
    for name in reversed([layer.name for layer in network.layers if layer.name in merges]):  # columns before stay put
        merge, geometry = merges[name], _geometry(network, name)
        summed = geometry.summed if geometry else 1
        for reader, columns in _readers(network, name).items():
            weight = parameters[f"{reader}.weight"]
            flat, view = weight.reshape(len(weight), -1), _view(weight, columns, len(merge.combine))
            combined = np.einsum("oue,un->one", view, merge.combine).reshape(len(weight), -1)
            flat = np.concatenate([flat[:, : columns.start], combined, flat[:, columns.stop :]], axis=1)
            parameters[f"{reader}.weight"] = flat.reshape(len(weight), -1, *weight.shape[2:])
            if np.any(merge.constant):
                shift = np.einsum("oue,u->o", view, summed * merge.constant)
                parameters[f"{reader}.bias"] = parameters.get(f"{reader}.bias", 0) + shift
    counts = {name: len(merge.weights) for name, merge in merges.items()}
    return _model(network, parameters, counts, np.result_type(*model.parameters.values()))


def _model(network: Network, parameters: dict[str, np.ndarray], counts: dict[str, int], dtype: Any) -> Model:
    """The network that the parameters fit, its layers' units counted anew."""
    sizes = {layer.name: counts.get(layer.name, layer.weight[0]) for layer in network.layers}
    changes: dict[str, Any] = {"output_bias": "output.bias" in parameters}
    dense = tuple(sizes[layer.name] for layer in network.layers[:-1] if not layer.is_convolution)
    if isinstance(network, Dense):
        gained = any(f"{layer.name}.bias" in parameters for layer in network.layers[:-1])
        changes |= {"widths": (network.inputs, *dense, network.outputs), "bias": gained}
    else:
        changes |= {"hidden": dense}
    if isinstance(network, Conv):
        changes |= {"channels": tuple(sizes[layer.name] for layer in network.layers if layer.is_convolution)}
    new = replace(network, **changes)
    for layer in new.layers:
        if layer.has_bias:
            parameters.setdefault(f"{layer.name}.bias", np.zeros(layer.weight[0]))
    return Model(new, {name: value.astype(dtype) for name, value in parameters.items()})


def unit_weights(model: Model, layer: LayerShape) -> Float[np.ndarray, "units inputs"]:
    """Input weights of the units that can be merged: neurons, or filters of a convolution layer."""
    weights = np.asarray(layer.units(model.parameters, "filter" if layer.is_convolution else None), float)
    if not np.isfinite(weights).all():
        raise InputError(f"the weights of {layer.name} hold NaN or Inf")
    return weights
