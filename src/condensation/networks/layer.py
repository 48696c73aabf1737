"""A layer with weights: its name and shape, and the affine map it is."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float


@dataclass(frozen=True)
class LayerShape:
    """Name of a layer, the shape of its weight (outputs first) and whether it has a bias."""

    name: str
    weight: tuple[int, ...]
    has_bias: bool

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter by its full name.

        >>> LayerShape("dense1", (50, 5), True).parameters
        {'dense1.weight': (50, 5), 'dense1.bias': (50,)}
        """
        shapes = {f"{self.name}.weight": self.weight}
        return shapes | {f"{self.name}.bias": self.weight[:1]} if self.has_bias else shapes

    def units(self, parameters: dict[str, np.ndarray]) -> np.ndarray:
        """Input weights of the units, ``... units inputs``, the bias as the last input where there is one."""
        weight = parameters[f"{self.name}.weight"]
        if not self.has_bias:
            return weight
        return np.concatenate([weight, parameters[f"{self.name}.bias"][..., None]], axis=-1)


class Affine(eqx.Module):
    """The map h -> W h + b on columns."""

    weight: Float[Array | np.ndarray, "outputs inputs"]
    bias: Float[Array | np.ndarray, " outputs"] | None

    def __call__(self, h: Float[Array | np.ndarray, "inputs samples"]) -> Float[Array | np.ndarray, "outputs samples"]:
        """The outputs for samples that stand as columns."""
        product = self.weight @ h
        return product if self.bias is None else product + self.bias[:, None]

    @staticmethod
    def of(shape: LayerShape, parameters: dict[str, Any]) -> "Affine":
        """The layer's map with the parameters of its name."""
        bias = parameters[f"{shape.name}.bias"] if shape.has_bias else None
        return Affine(parameters[f"{shape.name}.weight"], bias)
