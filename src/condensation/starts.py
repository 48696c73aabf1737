"""Starts: the law each layer's weights are drawn from, always with an explicit standard deviation.

A law gives the std of a layer from its shape and from the ``width`` at it, the number of hidden neurons there.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .errors import InputError, check_positive
from .networks import Dense, LayerShape


@dataclass(frozen=True)
class Normal:
    """N(0, std^2), the bias too. The papers' ``var = 0.005^2`` is ``Normal(std=0.005)``."""

    kind: ClassVar[str] = "normal"
    draws_bias: ClassVar[bool] = True

    std: float

    def __post_init__(self) -> None:
        check_positive("std", self.std)

    def std_of(self, shape: LayerShape, width: int) -> float:
        """The std that was given."""
        return self.std


@dataclass(frozen=True)
class OutCubed:
    """N(0, 1/m_out^3) with m_out the layer's outputs: a std of m_out^-1.5, the bias too."""

    kind: ClassVar[str] = "out_cubed"
    draws_bias: ClassVar[bool] = True

    def std_of(self, shape: LayerShape, width: int) -> float:
        """m_out^-1.5."""
        return shape.weight[0] ** -1.5


@dataclass(frozen=True)
class WidthPower:
    """A std of m^-gamma, the bias too; m is the layer's number of neurons (for the output layer: of its inputs)."""

    kind: ClassVar[str] = "width_power"
    draws_bias: ClassVar[bool] = True

    gamma: float

    def std_of(self, shape: LayerShape, width: int) -> float:
        """m^-gamma."""
        return width**-self.gamma


@dataclass(frozen=True)
class GlorotNormal:
    """N(0, 2/(m_in + m_out)) for weights, zero for biases."""

    kind: ClassVar[str] = "glorot_normal"
    draws_bias: ClassVar[bool] = False

    def std_of(self, shape: LayerShape, width: int) -> float:
        """sqrt(2 / (m_in + m_out))."""
        return float(np.sqrt(2 / (shape.weight[0] + shape.weight[1])))


Law = Normal | OutCubed | WidthPower | GlorotNormal


@dataclass(frozen=True)
class Start:
    """The laws of a network's layers.

    Args:
        hidden: the law of all hidden layers, or a tuple with one for each.
        output: the law of the output layer (the paper's a); the last hidden layer's law if not given.
        antisymmetric: neurons in pairs of equal input weights and opposite output weights, so that the output
            is zero at step 0. The last hidden layer is paired; with residual connections all of them are.
    """

    hidden: Law | tuple[Law, ...]
    output: Law | None = None
    antisymmetric: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.hidden, list):
            object.__setattr__(self, "hidden", tuple(self.hidden))
        laws = self.hidden if isinstance(self.hidden, tuple) else (self.hidden,)
        for law in (*laws, *([] if self.output is None else [self.output])):
            if not isinstance(law, Law):
                raise InputError(f"a start needs a law such as Normal(std=0.005), not {law!r}")

    def laws(self, network: Dense) -> tuple[Law, ...]:
        """The law of each layer, the output layer last."""
        count = len(network.hidden)
        hidden = self.hidden if isinstance(self.hidden, tuple) else (self.hidden,) * count
        if len(hidden) != count:
            raise InputError(f"the start has laws for {len(hidden)} hidden layers, the network has {count}")
        return (*hidden, self.output or hidden[-1])

    def draw(self, network: Dense, stream: np.random.Generator) -> dict[str, np.ndarray]:
        """Parameters by name, float64, drawn in the order of the layers, a layer's weight before its bias."""
        parameters = {}
        widths = (*network.hidden, network.hidden[-1])
        for layer, law, width in zip(network.layers, self.laws(network), widths, strict=True):
            std = law.std_of(layer, width)
            for name, shape in layer.parameters.items():
                drawn = stream.standard_normal(shape) * std
                parameters[name] = drawn if law.draws_bias or not name.endswith(".bias") else np.zeros(shape)
        if self.antisymmetric:
            _pair(network, parameters)
        return parameters


def _pair(network: Dense, parameters: dict[str, np.ndarray]) -> None:
    """Make the second half of the neurons a copy of the first with opposite output weights, in place."""
    *hidden, output = network.layers
    for layer in hidden if network.residual else hidden[-1:]:
        if layer.weight[0] % 2:
            raise InputError(f"an antisymmetric start needs an even width, not {layer.weight[0]} in {layer.name}")
        half = layer.weight[0] // 2
        for name in layer.parameters:
            parameters[name][half:] = parameters[name][:half]
    half = output.weight[1] // 2
    parameters[f"{output.name}.weight"][:, half:] = -parameters[f"{output.name}.weight"][:, :half]
    if output.has_bias:
        parameters[f"{output.name}.bias"][:] = 0
