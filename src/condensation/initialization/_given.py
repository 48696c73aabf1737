"""Initialization from given weights: to continue a run, to perturb a critical point, to fine-tune."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._serialization import Part
from ..errors import InputError, check_finite
from ..networks import Model, Network, Weights
from ..networks._weights import GivenWeights, as_weights
from ..seeds import Seed
from ._init import Init

Factor = Annotated[float, check_finite]


@dataclass(frozen=True, init=False)
class Given(Part, kind="given"):
    r"""Training starts from given weights: $\theta_0 = s\,\theta_{given} + \theta_{drawn}$.

    >>> from condensation import Dense, Normal
    >>> weights = {"dense1.weight": np.array([[1.0], [2.0]]), "output.weight": np.array([[3.0, 4.0]])}
    >>> model = Model(Dense((1, 2, 1), bias=False), weights)
    >>> Given(model, scale=(0.5, 1)).draw(model.network, np.random.default_rng(0))["dense1.weight"].ravel()
    array([0.5, 1. ])

    Args:
        weights: a ``Model``, arrays by name, the name of a .safetensors or .npz file, models by seed
            (``trajectory.models(step)``: each seed goes on from its own), or ``Weights.of_run(folder, step)``.
        scale: a factor of all given weights, or one for each layer; 0 leaves a layer's given weights out. Batch
            norms are taken as they are.
        drawn: weights that each seed draws anew and adds: noise, or where the given ones are left out or missing a
            layer of its own. Here ``Zeros`` may stand for hidden layers too: nothing is added to these.
    """

    weights: Weights
    scale: Factor | tuple[Factor, ...] = 1.0
    drawn: Init | None = None

    def __init__(
        self,
        weights: GivenWeights,
        scale: float | Sequence[float] = 1.0,
        drawn: Init | None = None,
    ) -> None:
        for name, value in (("weights", as_weights(weights)), ("scale", scale), ("drawn", drawn)):
            object.__setattr__(self, name, value)
        self.__post_init__()

    antisymmetric = False

    def check(self, network: Network) -> None:
        """Refuse weights that do not fit a network."""
        if isinstance(self.scale, tuple) and len(self.scale) != len(network.layers):
            raise InputError(f"{len(self.scale)} scales are given, and the network has {len(network.layers)} layers")
        if self.drawn is not None:
            self.drawn.laws(network, zeros=True)
        given = self.weights.of()
        missing = {name: shape for layer in network.layers for name, shape in layer.parameters.items()}
        filled = {name: np.broadcast_to(0.0, shape) for name, shape in missing.items()} if self.drawn else {}
        try:
            Model(network, filled | given)
        except InputError as error:
            raise InputError(f"the given weights do not fit the network: {error}") from error

    def draw(self, network: Network, stream: np.random.Generator, seed: Seed | None = None) -> dict[str, np.ndarray]:
        """Parameters by name, float64: those of the seed where each has its own."""
        given = self.weights.of(seed)
        drawn = {} if self.drawn is None else self.drawn.draw(network, stream)
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,) * len(network.layers)
        parameters = {}
        for layer, scale in zip(network.layers, scales, strict=True):
            for name, shape in layer.parameters.items():
                parameters[name] = scale * given.get(name, np.zeros(shape)) + drawn.get(name, 0.0)
        for norm in network.norms:
            for name in norm.parameters | norm.statistics:
                parameters[name] = np.array(given[name] if name in given else drawn[name])
        return parameters

    def describe(self, network: Network) -> str:
        """Where the weights come from, in words."""
        several = isinstance(self.scale, tuple)
        times = (
            ", ".join(f"{factor:g}" for factor in self.scale) if isinstance(self.scale, tuple) else f"{self.scale:g}"
        )
        scaled = f" times {times}{' by layer' if several else ''}" if several or self.scale != 1 else ""
        added = f", plus {self.drawn.describe(network)}" if self.drawn is not None else ""
        return f"{self.weights.describe()}{scaled}{added}"
