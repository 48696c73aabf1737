"""The laws that a layer's weights are drawn from, always with an explicit standard deviation.

A law gives the std of a layer from its shape and from the ``width`` at it, the number of hidden units there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from .._functions import Function, called, described, name_of
from .._serialization import Part, Positive
from ..errors import InputError, brief, check_finite
from ..networks import LayerShape

Draw = Callable[[tuple[int, ...], np.random.Generator], Any]


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
class FanInPower(_Power, kind="fan_in_power"):
    """A std of m_in^-gamma with m_in the numbers that a unit reads (of an embedding: its width), the bias too."""

    def std_of(self, shape: LayerShape, width: int) -> float:
        """m_in^-gamma, kernel entries counted."""
        return shape.fans[0] ** -self.gamma

    def describe(self) -> str:
        """The std as a power of m_in."""
        return f"N(0, σ²) with σ = m_in^{0 - self.gamma:g}"


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
class _ByFans(_Law):
    """Zero biases; a std of the weights by the layer's numbers of inputs and outputs, kernel entries counted."""

    draws_bias: ClassVar[bool] = False

    uniform: bool | None = None

    def draw(self, shape: tuple[int, ...], std: float, stream: np.random.Generator) -> np.ndarray:
        """Normal weights, or uniform ones up to sqrt(3) std."""
        return _uniform(shape, std, stream) if self.uniform else super().draw(shape, std, stream)

    def describe(self) -> str:
        """The law in words.

        >>> He(uniform=True).describe()
        'He uniform'
        """
        return f"{self.phrase} {'uniform' if self.uniform else 'normal'}"


def _uniform(shape: tuple[int, ...], std: float, stream: np.random.Generator) -> np.ndarray:
    return stream.uniform(-(3**0.5) * std, 3**0.5 * std, shape)


@dataclass(frozen=True)
class Glorot(_ByFans, kind="glorot"):
    """N(0, 2/(m_in + m_out)) for weights, zero for biases; with ``uniform`` [-h, h], h = sqrt(6/(m_in + m_out))."""

    phrase: ClassVar[str] = "Glorot"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """sqrt(2 / (m_in + m_out)), kernel entries counted."""
        return float(np.sqrt(2 / sum(shape.fans)))


@dataclass(frozen=True)
class He(_ByFans, kind="he"):
    """N(0, 2/m_in) for weights, zero for biases: usual for relu networks; with ``uniform`` up to sqrt(6/m_in)."""

    phrase: ClassVar[str] = "He"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """sqrt(2 / m_in), kernel entries counted."""
        return float(np.sqrt(2 / shape.fans[0]))


@dataclass(frozen=True)
class LeCun(_ByFans, kind="lecun"):
    """N(0, 1/m_in) for weights, zero for biases; with ``uniform`` up to sqrt(3/m_in)."""

    phrase: ClassVar[str] = "LeCun"

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
        return _uniform(shape, std, stream)


@dataclass(frozen=True)
class Zeros(_Law, kind="zeros"):
    """All weights zero, for an output layer: the network's output is zero at step 0."""

    phrase: ClassVar[str] = "zero"

    def std_of(self, shape: LayerShape, width: int) -> float:
        """Zero."""
        return 0.0


@dataclass(frozen=True)
class OwnLaw(_Law, kind="own", of_function=True):
    """Weights from a function of yours; ``Init(hidden=function)`` makes it.

    Args:
        function: ``function(shape, rng)`` gives an array of a shape, drawn by NumPy's generator ``rng`` alone. It is
            called for each weight (outputs x inputs, for convolutions outputs x inputs x height x width) and then for
            each bias (outputs), which may be zero: ``len(shape) == 1``.

    >>> OwnLaw(lambda shape, rng: rng.laplace(size=shape)).draw((2, 3), 1.0, np.random.default_rng(0)).shape
    (2, 3)
    """

    function: Draw

    def std_of(self, shape: LayerShape, width: int) -> float:
        """The factor of what the function gives: 1."""
        return 1.0

    def draw(self, shape: tuple[int, ...], std: float, stream: np.random.Generator) -> np.ndarray:
        """What the function gives, checked."""
        _check_repeats(self.function, shape)
        return _own_weights(self.function, shape, stream) * std

    def describe(self) -> str:
        """The function by its name.

        >>> OwnLaw(np.cos).describe()
        'own law cos'
        """
        return described("own law", self.function)


def _own_weights(function: Function, shape: tuple[int, ...], stream: np.random.Generator) -> np.ndarray:
    what = f"the initialization law {name_of(function)}"
    drawn = called(what, function, shape, stream)
    try:
        weights = np.array(drawn, float) if not np.iscomplexobj(drawn) else np.array(())
    except (ValueError, TypeError):
        weights = np.array(())
    if weights.shape != shape:
        given = f"one of shape {np.shape(drawn)}" if isinstance(drawn, np.ndarray) else brief(drawn)
        raise InputError(f"{what} must give an array of real numbers of the shape {shape}, not {given}")
    if not np.isfinite(weights).all():
        raise InputError(f"{what} must give finite numbers, not NaN or Inf")
    return weights


@lru_cache(maxsize=256)
def _check_repeats(function: Function, shape: tuple[int, ...]) -> None:
    """Refuse a function that draws other weights from the same random numbers."""
    first, second = (_own_weights(function, shape, np.random.default_rng(0)) for _ in range(2))
    if not np.array_equal(first, second):
        raise InputError(
            f"the initialization law {name_of(function)} gives other weights each time: it must draw from the "
            "generator that it is given, function(shape, rng)"
        )


Powers = FanOutPower | FanInPower | WidthPower
Law = Normal | Uniform | Powers | Glorot | He | LeCun | PyTorchDefault | ChannelPower | Zeros | OwnLaw
GivenLaw = Law | Draw  # a function becomes an OwnLaw
