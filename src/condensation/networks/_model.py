"""A network together with its parameters: what training leaves at one step, and what can be reduced."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from .._device import convolution_options
from .._display import Shown, short_number
from .._files import read_tensors
from .._functions import opening
from .._plain import parse_json
from .._precision import precision
from .._serialization import from_plain, to_plain, without_none
from .._sketch import heat
from .._writing import write_tensors
from ..errors import InputError, unknown_name
from ._attention_shape import Attention
from ._conv import Conv
from ._dense import Dense
from ._layer import LayerShape
from ._resnet import ResNet

Network = Dense | Conv | ResNet | Attention
"""The kinds of networks that an experiment can have."""
AT_ONCE = 1000  # samples that go through the network together


@dataclass(frozen=True, eq=False)
class Model(Shown):
    """A network's description and its parameters by name, as NumPy arrays; it can be called on samples.

    Batch norm's running statistics are among the parameters: the model is as after training.
    """

    network: Network
    parameters: dict[str, np.ndarray]

    def __post_init__(self) -> None:
        needed = {name: shape for layer in self.network.layers for name, shape in layer.parameters.items()}
        for norm in self.network.norms:
            needed |= {name: value.shape for name, value in (norm.parameters | norm.statistics).items()}
        given = {name: np.asarray(value) for name, value in self.parameters.items()}
        for name, shape in needed.items():
            if name not in given:
                raise InputError(f"the parameter {name} is missing; the network needs {', '.join(needed)}")
            if given[name].shape != shape:
                raise InputError(f"the parameter {name} must have the shape {shape}, not {given[name].shape}")
        for name in given:
            if name not in needed:
                raise unknown_name("parameter", name, needed)
        object.__setattr__(self, "parameters", {name: given[name] for name in needed})

    def __call__(self, x: Float[np.ndarray, "samples ..."]) -> Float[np.ndarray, "samples outputs"]:
        """The outputs on any samples, in the precision of the parameters (never TF32)."""
        x = np.asarray(x)
        if x.shape[1:] != self.network.input_shape:
            raise InputError(f"a sample of this network has shape {self.network.input_shape}, not {x.shape[1:]}")
        if not len(x):
            raise InputError("at least one sample is needed")
        check_samples(self.network, x)
        dtype = np.result_type(*self.parameters.values(), np.float32)
        with precision(str(dtype)):
            run, parameters = _compiled(self.network), jax.device_put(self.parameters)
            parts = (np.asarray(x[k : k + AT_ONCE], dtype) for k in range(0, len(x), AT_ONCE))
            return np.concatenate([np.asarray(run(parameters, part)) for part in parts])

    def apply(self, parameters: dict[str, Any], x: Any) -> Any:
        """The outputs with other parameters, as a pure function that JAX can differentiate, compile and map.

        Precision is that of JAX at the call: single, unless ``jax.enable_x64`` says otherwise.
        """
        return self.network.assemble(parameters)(x)

    def layer(self, layer: str | int) -> LayerShape:
        """A layer by its name, or by its number from 1 on."""
        return find_layer(self.network, layer)

    def weights(self, layer: str | int, *, view: str | None = None) -> Float[np.ndarray, "units inputs"]:
        """Input weights of a layer's units, the bias as the last input."""
        return self.layer(layer).units(self.parameters, view)

    def _title(self) -> str:
        return f"Model: {self.network.describe()}"

    def _facts(self) -> dict[str, str]:
        dtype = np.result_type(*self.parameters.values())
        facts = {"parameters": f"{sum(value.size for value in self.parameters.values())}, {dtype}"}
        for layer in self.network.layers:
            weight = self.parameters[f"{layer.name}.weight"]
            shape, bias = " x ".join(map(str, weight.shape)), " and bias" if layer.has_bias else ""
            size = float(np.linalg.norm(weight.ravel())) / weight.size**0.5
            facts[layer.name] = f"{shape}{bias}, entries of size {short_number(size)}"
        return facts

    def _picture(self) -> str:
        name = self.network.layers[0].name
        weight = self.parameters[f"{name}.weight"]
        return heat(weight.reshape(len(weight), -1), label=f"weights of {name}")

    def save(self, path: str | Path) -> None:
        """Write the model to a .safetensors file that ``Model.load`` and ``condensation measure`` read."""
        about = {"network": json.dumps(without_none(to_plain(self.network)))}
        write_tensors(Path(path), self.parameters, about)

    @classmethod
    def load(cls, path: str | Path, trust: bool = False) -> Model:
        """The model in a file written by ``save``; ``trust`` as in ``load_run``."""
        about, tensors = read_tensors(Path(path))
        if "network" not in about:
            raise InputError(f"{path} names no network: it was not written by Model.save")
        try:
            plain = parse_json(about["network"])
        except ValueError as error:
            raise InputError(f"{path} names a network that cannot be read: {error}") from error
        with opening(trust):
            return cls(from_plain(Network, plain, "network"), tensors)


@lru_cache(maxsize=64)
def _compiled(network: Network) -> Any:
    convolutional = any(layer.is_convolution for layer in network.layers)
    options = convolution_options() if convolutional else None
    return jax.jit(lambda parameters, x: network.assemble(parameters)(x), compiler_options=options)


def check_samples(network: Network, x: np.ndarray) -> None:
    """Refuse samples that a network of their shape cannot read: numbers that are no tokens."""
    if isinstance(network, Attention):
        network.check_samples(x)


def fixed_parameters(network: Network) -> set[str]:
    """Full names of what training does not move: statistics of batch norms, and layers that are fixed."""
    fixed = {name for layer in network.layers if layer.name in network.fixed for name in layer.parameters}
    return fixed | {name for norm in network.norms for name in norm.statistics}


def without_pairs(network: Network) -> str:
    """A network whose neurons are not pairs of input and output weights, in words; empty for all others."""
    if isinstance(network, Attention):
        return "attention"
    return "a concatenated network" if isinstance(network, Dense) and network.concatenated else ""


def network_size(network: Network) -> int:
    """Number of a network's parameters, and of the statistics of its batch norms."""
    return sum(layer.size for layer in network.layers) + 4 * sum(norm.channels for norm in network.norms)


def find_layer(network: Network, layer: str | int) -> LayerShape:
    """A network's layer by its name, or by its number from 1 on."""
    shapes = network.layers
    if not isinstance(layer, str) and 1 <= layer <= len(shapes):
        return shapes[layer - 1]
    for shape in shapes:
        if shape.name == layer:
            return shape
    raise unknown_name("layer", layer, [*(shape.name for shape in shapes), f"1 to {len(shapes)}"])
