"""Initialization: the law each layer's weights are drawn from, always with an explicit standard deviation.

A law gives the std of a layer from its shape and from the ``width`` at it, the number of hidden units there.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from ._memory import in_digits, require
from ._serialization import Part, Positive
from .errors import InputError, check_finite, check_positive
from .networks import LayerShape, Network
from .networks._model import network_size


class _Law(Part):
    """A distribution of a layer's weights; of its biases too, unless these are zero."""

    draws_bias: ClassVar[bool] = True
    phrase: ClassVar[str] = ""

    def std_of(self, shape: LayerShape, width: int) -> float:
        """The std of a layer of a shape, with so many hidden units at it."""
        raise NotImplementedError

    def draw(self, shape: tuple[int, ...], std: float, stream: np.random.Generator) -> np.ndarray:
        """Weights of a shape."""
        return stream.standard_normal(shape) * std

    def describe(self) -> str:
        """The law in words.

        >>> Normal(0.005).describe(), Normal(5e-5).describe(), Glorot().describe(), Uniform(0.1).describe()
        ('N(0, 0.005²)', 'N(0, (5e-05)²)', 'Glorot normal', 'uniform on [-0.1, 0.1]')
        >>> FanOutPower(1.5).describe(), FanOutPower(0.25).describe(), WidthPower(1.5).describe()
        ('N(0, 1/m_out³)', 'N(0, 1/m_out^0.5)', 'N(0, σ²) with σ = m^-1.5, m the width')
        >>> ChannelPower(2).describe()
        'N(0, σ²) with σ = ((c_in + c_out)/2 · m²)^-2'
        """
        return self.phrase


@dataclass(frozen=True)
class Normal(_Law, kind="normal"):
    """N(0, std^2), the bias too. The papers' ``var = 0.005^2`` is ``Normal(std=0.005)``."""

    std: Positive

    def std_of(self, shape: LayerShape, width: int) -> float:
        """The std that was given."""
        return self.std

    def describe(self) -> str:
        """N(0, std²)."""
        std = f"{self.std:g}"
        return f"N(0, ({std})²)" if "e" in std else f"N(0, {std}²)"


@dataclass(frozen=True)
class Uniform(_Law, kind="uniform"):
    """Uniform on [-high, high], a std of high/sqrt(3), the bias too."""

    high: Positive

    def std_of(self, shape: LayerShape, width: int) -> float:
        """high/sqrt(3)."""
        return self.high / 3**0.5

    def draw(self, shape: tuple[int, ...], std: float, stream: np.random.Generator) -> np.ndarray:
        """Weights between -high and high."""
        return stream.uniform(-self.high, self.high, shape)

    def describe(self) -> str:
        """The interval."""
        return f"uniform on [-{self.high:g}, {self.high:g}]"


@dataclass(frozen=True)
class _Power(_Law):
    """A std that is a power of a size of the layer, the bias too."""

    gamma: Annotated[float, check_finite]


@dataclass(frozen=True)
class FanOutPower(_Power, kind="fan_out_power"):
    """A std of m_out^-gamma with m_out the layer's outputs, the bias too. A variance of 1/m_out^3 is gamma = 1.5."""

    def std_of(self, shape: LayerShape, width: int) -> float:
        """m_out^-gamma."""
        return shape.weight[0] ** -self.gamma

    def describe(self) -> str:
        """The variance as a power of m_out."""
        return "N(0, 1/m_out³)" if self.gamma == 1.5 else f"N(0, 1/m_out^{2 * self.gamma:g})"


@dataclass(frozen=True)
class WidthPower(_Power, kind="width_power"):
    """A std of m^-gamma, the bias too; m is the layer's number of neurons (for the output layer: of its inputs)."""

    def std_of(self, shape: LayerShape, width: int) -> float:
        """m^-gamma."""
        return width**-self.gamma

    def describe(self) -> str:
        """The std as a power of the width."""
        return f"N(0, σ²) with σ = m^{0 - self.gamma:g}, m the width"


@dataclass(frozen=True)
class ChannelPower(_Power, kind="channel_power"):
    """A std of ((c_in + c_out)/2 m^2)^-gamma for a convolution layer with m x m kernels, the bias too."""

    def std_of(self, shape: LayerShape, width: int) -> float:
        """((c_in + c_out)/2 m^2)^-gamma."""
        if not shape.is_convolution:
            raise InputError(f"the law channel_power is for convolution layers, not for {shape.name}")
        return (sum(shape.fans) / 2) ** -self.gamma

    def describe(self) -> str:
        """The std as a power of the channels and the kernel."""
        return f"N(0, σ²) with σ = ((c_in + c_out)/2 · m²)^{0 - self.gamma:g}"


@dataclass(frozen=True)
class Glorot(_Law, kind="glorot"):
    """N(0, 2/(m_in + m_out)) for weights, zero for biases."""

    draws_bias: ClassVar[bool] = False
    phrase: ClassVar[str] = "Glorot normal"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """sqrt(2 / (m_in + m_out)), kernel entries counted."""
        return float(np.sqrt(2 / sum(shape.fans)))


@dataclass(frozen=True)
class He(_Law, kind="he"):
    """N(0, 2/m_in) for weights, zero for biases: the usual initialization of relu networks."""

    draws_bias: ClassVar[bool] = False
    phrase: ClassVar[str] = "He normal"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """sqrt(2 / m_in), kernel entries counted."""
        return float(np.sqrt(2 / shape.fans[0]))


@dataclass(frozen=True)
class LeCun(_Law, kind="lecun"):
    """N(0, 1/m_in) for weights, zero for biases."""

    draws_bias: ClassVar[bool] = False
    phrase: ClassVar[str] = "LeCun normal"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """1 / sqrt(m_in), kernel entries counted."""
        return float(shape.fans[0] ** -0.5)


@dataclass(frozen=True)
class PyTorchDefault(_Law, kind="pytorch_default"):
    """Uniform on [-1/sqrt(m_in), 1/sqrt(m_in)], the bias too: what ``torch.nn.Linear`` and ``Conv2d`` begin with."""

    phrase: ClassVar[str] = "PyTorch's default (uniform, up to 1/√m_in)"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """1 / sqrt(3 m_in), kernel entries counted."""
        return float((3 * shape.fans[0]) ** -0.5)

    def draw(self, shape: tuple[int, ...], std: float, stream: np.random.Generator) -> np.ndarray:
        """Weights up to sqrt(3) std."""
        return stream.uniform(-(3**0.5) * std, 3**0.5 * std, shape)


@dataclass(frozen=True)
class Zeros(_Law, kind="zeros"):
    """All weights zero, for an output layer: the network's output is zero at step 0."""

    phrase: ClassVar[str] = "zero"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """Zero."""
        return 0.0


Law = Normal | Uniform | FanOutPower | WidthPower | Glorot | He | LeCun | PyTorchDefault | ChannelPower | Zeros


@dataclass(frozen=True)
class Init(Part):
    """The laws of a network's layers.

    Args:
        hidden: the law of all hidden layers, or a tuple with one for each.
        output: the law of the output layer (the paper's a); the last hidden layer's law if not given.
        convolution: the law of the convolution layers, or a tuple with one for each; ``hidden`` is then for the dense
            hidden layers.
        antisymmetric: units in pairs of equal input weights and opposite output weights, so that the output
            is zero at step 0. The last hidden layer is paired; with residual connections all of them are.
    """

    hidden: Law | tuple[Law, ...]
    output: Law | None = None
    convolution: Law | tuple[Law, ...] | None = None
    antisymmetric: bool = False

    def laws(self, network: Network) -> tuple[Law, ...]:
        """The law of each layer, the output layer last."""
        *hidden, _ = network.layers
        own = [layer for layer in hidden if self.convolution is None or not layer.is_convolution]
        if self.convolution is not None and len(own) == len(hidden):
            raise InputError("the initialization has a law for convolution layers, the network has none")
        given = _laws_of(self.hidden, len(own), "hidden")
        convolutions = _laws_of(self.convolution, len(hidden) - len(own), "convolution")
        remaining, kernels = iter(given), iter(convolutions)
        chosen = [next(remaining) if layer in own else next(kernels) for layer in hidden]
        if any(isinstance(law, Zeros) for law in chosen):
            raise InputError("only the output layer can be zero: a hidden layer of zeros has no directions")
        single = None if isinstance(self.hidden, tuple) else self.hidden
        last = self.output or (given[-1] if given else single)
        if last is None:
            raise InputError("the initialization names no law for the output layer")
        return (*chosen, last)

    def draw(self, network: Network, stream: np.random.Generator) -> dict[str, np.ndarray]:
        """Parameters by name, float64, drawn in the order of the layers, a layer's weight before its bias."""
        parameters = {}
        count = network_size(network)
        require(2 * 8 * count, f"drawing {in_digits(count)} weights", "a smaller network would fit")
        for layer, law in zip(network.layers, self.laws(network), strict=True):
            std = law.std_of(layer, layer.weight[1 if layer.name == "output" else 0])
            if not isinstance(law, Zeros):
                check_positive(f"the std of {layer.name}", std)
            for name, shape in layer.parameters.items():
                drawn = law.draw(shape, std, stream)
                parameters[name] = drawn if law.draws_bias or not name.endswith(".bias") else np.zeros(shape)
        if self.antisymmetric:
            _pair(network, parameters)
        for norm in network.norms:
            parameters |= norm.parameters | norm.statistics
        return parameters

    def describe(self, network: Network) -> str:
        """The laws of a network's layers in words; biases follow their layer's law where nothing is said.

        >>> from condensation.networks import Dense
        >>> Init(Normal(0.1), output=Zeros()).describe(Dense((5, 50, 1)))
        'hidden layer N(0, 0.1²); output layer zero'
        """
        layers_by_law: dict[Law, list[LayerShape]] = {}
        for layer, law in zip(network.layers, self.laws(network), strict=True):
            layers_by_law.setdefault(law, []).append(layer)
        phrases = []
        for law, layers in layers_by_law.items():
            biases = "" if law.draws_bias or not any(layer.has_bias for layer in layers) else ", zero biases"
            phrases.append(f"{_describe_layers(layers, network)}{law.describe()}{biases}")
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
    names = ", ".join(layer.name for layer in chosen)
    return next((kind for kind, members in kinds if chosen == members), f"{names} ")


def _laws_of(given: Law | tuple[Law, ...] | None, count: int, what: str) -> list[Law]:
    """The law of each of some layers."""
    laws = list(given) if isinstance(given, tuple) else [] if given is None else [given] * count
    if len(laws) != count:
        raise InputError(f"the initialization has laws for {len(laws)} {what} layers, the network has {count}")
    return laws


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
