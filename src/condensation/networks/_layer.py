"""A layer with weights: its name and shape, and the affine map it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from .._device import on_cpu
from ..errors import unknown_name


@dataclass(frozen=True)
class LayerShape:
    """Name of a layer, the shape of its weight (outputs first) and whether it has a bias.

    Its ``role`` tells which law of an ``Init`` is for it: ``"hidden"``, or of attention ``"embedding"``,
    ``"query_key"`` or ``"value"`` (values and projections).
    """

    name: str
    weight: tuple[int, ...]
    has_bias: bool
    role: str = "hidden"

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter by its full name.

        >>> LayerShape("dense1", (50, 5), True).parameters
        {'dense1.weight': (50, 5), 'dense1.bias': (50,)}
        """
        shapes = {f"{self.name}.weight": self.weight}
        return shapes | {f"{self.name}.bias": self.weight[:1]} if self.has_bias else shapes

    @property
    def size(self) -> int:
        """Number of its parameters."""
        return sum(map(math.prod, self.parameters.values()))

    @property
    def is_convolution(self) -> bool:
        """Whether the layer has kernels: a weight of outputs x inputs x side x side, or outputs x inputs x length."""
        return len(self.weight) > 2

    @property
    def fans(self) -> tuple[int, int]:
        """Numbers of inputs of an output and of outputs of an input, kernel entries counted.

        >>> LayerShape("conv1", (32, 3, 5, 5), True).fans
        (75, 800)
        """
        entries = math.prod(self.weight[2:])
        return self.weight[1] * entries, self.weight[0] * entries

    def units(self, parameters: dict[str, np.ndarray], view: str | None = None) -> np.ndarray:
        """Input weights of the units, ``... units inputs``.

        Of a dense layer the units are its neurons, the bias as the last input. Of a convolution layer they are its
        ``"kernel"``s, one for each pair of output and input channel, or its ``"filter"``s, all input channels of an
        output channel with the bias as the last input.
        """
        known = ("kernel", "filter") if self.is_convolution else ("neuron",)
        view = view or known[0]
        if view not in known:
            raise unknown_name(f"view of the layer {self.name}", view, known)
        weight = parameters[f"{self.name}.weight"]
        before = weight.shape[: weight.ndim - len(self.weight)]
        if view == "kernel":
            return weight.reshape(*before, self.weight[0] * self.weight[1], -1)
        flat = weight.reshape(*before, self.weight[0], -1)
        return np.concatenate([flat, parameters[f"{self.name}.bias"][..., None]], -1) if self.has_bias else flat


def _repeat(bias: Any, samples: int) -> Any:
    """The bias as a column for each sample.

    On a CPU it is a product with ones: its gradient is a product then too, and takes a tenth of the time of XLA's sum.
    """
    if not on_cpu() or isinstance(bias, np.ndarray):
        return bias[:, None]
    return jnp.matmul(bias[:, None], jnp.ones((1, samples), bias.dtype), precision="highest")


class Affine(eqx.Module):
    """The map h -> W h + b on columns."""

    weight: Float[Array | np.ndarray, "outputs inputs"]
    bias: Float[Array | np.ndarray, " outputs"] | None

    def __call__(self, h: Float[Array | np.ndarray, "inputs samples"]) -> Float[Array | np.ndarray, "outputs samples"]:
        """The outputs for samples that stand as columns."""
        product = self.weight @ h
        return product if self.bias is None else product + _repeat(self.bias, h.shape[1])

    @staticmethod
    def of(shape: LayerShape, parameters: dict[str, Any]) -> Affine:
        """The layer's map with the parameters of its name."""
        bias = parameters[f"{shape.name}.bias"] if shape.has_bias else None
        return Affine(parameters[f"{shape.name}.weight"], bias)
