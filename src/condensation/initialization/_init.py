"""Initialization: how a network's weights are drawn, by a law for each layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np

from .._memory import in_digits, require
from .._serialization import Part
from ..errors import InputError, check_positive, one_of
from ..networks import Attention, LayerShape, Network
from ..networks._model import network_size, without_pairs
from ..seeds import Seed
from ._laws import GivenLaw, Law, Zeros

BALANCES = {  # in words
    "balanced": "output weights scaled to |a| = |w|, biases counted",
    "dominated": "output weights raised to |a| ≥ |w|, biases counted",
}
ROLES = {  # in words
    "hidden": "hidden layers",
    "convolution": "convolution layers",
    "embedding": "embeddings",
    "query_key": "queries and keys",
    "value": "values and projections",
}


@dataclass(frozen=True)
class Init(Part):
    r"""The laws of a network's layers.

    Args:
        hidden: the law of all hidden layers, or a tuple with one for each. A function ``function(shape, rng)`` of yours
            is a law, too (``OwnLaw``), wherever one may stand.
        output: the law of the output layer (the paper's a); the last hidden layer's law if not given.
        convolution: the law of the convolution layers, or a tuple with one for each; ``hidden`` is then for the dense
            hidden layers.
        embedding, query_key, value: the same for the layers of a network of attention: embedding and positions;
            queries and keys; values and projections.
        antisymmetric: units in pairs of equal input weights and opposite output weights, so that the output
            is zero at step 0. The last hidden layer is paired; with residual connections all of them are.
        balance: for one hidden layer, with $w_j$ a unit's input weights (its bias among them) and $a_j$ its output
            weights (over all outputs and, of a convolution, places): ``"balanced"`` scales each $a_j$ as it was drawn
            to $|a_j| = |w_j|$, ``"dominated"`` raises it to that where it is less, so that $|a_j| \ge |w_j|$. For relu,
            gradient flow conserves $|w_j|^2 - |a_j|^2$.
    """

    hidden: GivenLaw | tuple[GivenLaw, ...]
    output: GivenLaw | None = None
    convolution: GivenLaw | tuple[GivenLaw, ...] | None = None
    antisymmetric: bool = False
    balance: Annotated[str, one_of("balance", BALANCES)] | None = None
    embedding: GivenLaw | tuple[GivenLaw, ...] | None = None
    query_key: GivenLaw | tuple[GivenLaw, ...] | None = None
    value: GivenLaw | tuple[GivenLaw, ...] | None = None

    def check(self, network: Network) -> None:
        """Refuse laws that do not fit a network."""
        self.laws(network)

    def laws(self, network: Network, zeros: bool = False) -> tuple[Law, ...]:
        """The law of each layer, the output layer last; ``zeros`` may be that of hidden layers only if it is said."""
        if self.antisymmetric and (name := without_pairs(network)):
            raise InputError(f"{name} has no antisymmetric initialization")
        if self.balance is not None and isinstance(network, Attention):
            raise InputError("attention has no balanced initialization")
        *hidden, _ = network.layers
        groups = [self._group(layer) for layer in hidden]
        laws = {}
        for group in ROLES:
            given = getattr(self, group)
            if given is not None and group != "hidden" and group not in groups:
                raise InputError(f"the initialization has a law for {ROLES[group]}, the network has none")
            laws[group] = _laws_of(given, groups.count(group), group)
        remaining = {group: iter(own) for group, own in laws.items()}
        chosen = [next(remaining[group]) for group in groups]
        if not zeros and any(isinstance(law, Zeros) for law in chosen):
            raise InputError("only the output layer can be zero: a hidden layer of zeros has no directions")
        single = None if isinstance(self.hidden, tuple) else self.hidden
        last = cast(Law | None, self.output or (laws["hidden"][-1] if laws["hidden"] else single))
        if last is None:
            raise InputError("the initialization names no law for the output layer")
        if self.balance is not None and len(hidden) != 1:
            raise InputError(
                f"a {self.balance} initialization is for one hidden layer, and this network has {len(hidden)}"
            )
        if self.balance is not None and any(isinstance(law, Zeros) for law in (*chosen, last)):
            raise InputError(f"a {self.balance} initialization scales weights, and those of zero cannot be scaled")
        return (*chosen, last)

    def _group(self, layer: LayerShape) -> str:
        """The field whose law is for a hidden layer."""
        role = "convolution" if layer.is_convolution else layer.role
        return role if getattr(self, role) is not None else "hidden"

    def draw(self, network: Network, stream: np.random.Generator, seed: Seed | None = None) -> dict[str, np.ndarray]:
        """Parameters by name, float64, drawn in the order of the layers, a layer's weight before its bias.

        The stream decides; the seed is for ``Given``, where each may have weights of its own.
        """
        parameters = {}
        count = network_size(network)
        require(2 * 8 * count, f"drawing {in_digits(count)} weights", "a smaller network would fit")
        for layer, law in zip(network.layers, self.laws(network, zeros=True), strict=True):
            std = law.std_of(layer, layer.weight[1 if layer.name == "output" else 0])
            if not isinstance(law, Zeros):
                check_positive(f"the std of {layer.name}", std)
            for name, shape in layer.parameters.items():
                drawn = law.draw(shape, std, stream)
                parameters[name] = drawn if law.draws_bias or not name.endswith(".bias") else np.zeros(shape)
        if self.balance is not None:
            _balance(network, parameters, raised_only=self.balance == "dominated")
        if self.antisymmetric:
            _pair(network, parameters)
        for norm in network.norms:
            parameters |= norm.parameters | norm.statistics
        return parameters

    def describe(self, network: Network) -> str:
        """The laws of a network's layers in words; biases follow their layer's law where nothing is said.

        >>> from condensation import Dense, Normal
        >>> Init(Normal(0.1), output=Zeros()).describe(Dense((5, 50, 1)))
        'hidden layer N(0, 0.1²); output layer zero'
        """
        layers_by_law: dict[Law, list[LayerShape]] = {}
        for layer, law in zip(network.layers, self.laws(network, zeros=True), strict=True):
            layers_by_law.setdefault(law, []).append(layer)
        phrases = []
        for law, layers in layers_by_law.items():
            biases = "" if law.draws_bias or not any(layer.has_bias for layer in layers) else ", zero biases"
            phrases.append(f"{_describe_layers(layers, network)}{law.describe()}{biases}")
        if self.balance is not None:
            phrases.append(BALANCES[self.balance])
        if self.antisymmetric:
            phrases.append("units in antisymmetric pairs, so that the output is zero at step 0")
        return "; ".join(phrases)


def _describe_layers(chosen: list[LayerShape], network: Network) -> str:
    """Some of a network's layers in words, with a space behind; nothing for all of them."""
    layers = list(network.layers)
    convolutions = [layer for layer in layers if layer.is_convolution]
    dense = [layer for layer in layers if not layer.is_convolution]
    kinds = (
        ("", layers),
        ("output layer ", layers[-1:]),
        ("convolutions " if len(convolutions) > 1 else "convolution ", convolutions),
        ("hidden layers " if len(layers) > 2 else "hidden layer ", layers[:-1]),
        ("dense layers ", dense),
        ("dense hidden layers " if len(dense) > 2 else "dense hidden layer ", dense[:-1]),
    )
    for role in ("embedding", "query_key", "value"):
        kinds += ((f"{ROLES[role]} ", [layer for layer in layers if layer.role == role]),)
    names = ", ".join(layer.name for layer in chosen)
    return next((kind for kind, members in kinds if chosen == members), f"{names} ")


def _laws_of(given: GivenLaw | tuple[GivenLaw, ...] | None, count: int, what: str) -> list[Law]:
    """The law of each of some layers."""
    laws = list(given) if isinstance(given, tuple) else [] if given is None else [given] * count
    if len(laws) != count:
        raise InputError(f"the initialization has laws for {len(laws)} {what} layers, the network has {count}")
    return cast(list[Law], laws)


def _balance(network: Network, parameters: dict[str, np.ndarray], raised_only: bool) -> None:
    """Scale each unit's output weights to the norm of its input weights, in place; or only raise them to it."""
    hidden, output = network.layers
    units = hidden.units(parameters, "filter" if hidden.is_convolution else None)
    columns = parameters[f"{output.name}.weight"].reshape(output.weight[0], len(units), -1)  # a view
    factors = _norms(units) / _norms(columns.swapaxes(0, 1).reshape(len(units), -1))
    columns *= (np.maximum(factors, 1) if raised_only else factors)[:, None]


def _norms(rows: np.ndarray) -> np.ndarray:
    """Norms of rows, however small: their squares could be zero."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return largest[:, 0] * np.linalg.norm(rows / largest, axis=1)


def _pair(network: Network, parameters: dict[str, np.ndarray]) -> None:
    """Make the second half of the units a copy of the first with opposite output weights, in place."""
    *hidden, output = network.layers
    for layer in hidden if getattr(network, "residual", False) else hidden[-1:]:
        if layer.weight[0] % 2:
            raise InputError(f"antisymmetric pairs need an even width, not {layer.weight[0]} in {layer.name}")
        half = layer.weight[0] // 2
        for name in layer.parameters:
            parameters[name][half:] = parameters[name][:half]
    half = output.weight[1] // 2
    parameters[f"{output.name}.weight"][:, half:] = -parameters[f"{output.name}.weight"][:, :half]
    if output.has_bias:
        parameters[f"{output.name}.bias"][:] = 0
