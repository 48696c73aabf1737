"""A model as an ``nn.Module`` with the same outputs, and back."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ..errors import InputError
from ..networks import Conv, Dense, Model, Network, ResNet
from ._activations import MODULES, TorchFunction, name_of_module, to_module
from ._network import TorchConv, TorchDense, TorchNetwork, TorchResNet
from ._sequential import read_sequential
from ._units import unwrapped

_MODULES: dict[type, tuple[type[TorchNetwork], set[str]]] = {  # with the fields that they know
    Dense: (TorchDense, {"widths", "activation", "residual", "bias", "output_bias", "dropout", "concatenated"}),
    Conv: (
        TorchConv,
        {
            *("image", "channels", "kernel", "outputs", "hidden", "activation", "dense_activation", "padding"),
            *("output_bias", "dropout", "stride", "pooling", "pool_size"),
        },
    ),
    ResNet: (
        TorchResNet,
        {
            *("image", "outputs", "hidden", "activation", "channels", "depth", "stem", "output_bias", "dropout"),
            "batch_norm",
        },
    ),
}


def to_torch(model: Model, *, activation: TorchFunction | Mapping[Any, TorchFunction] | None = None) -> TorchNetwork:
    """A model as an ``nn.Module``: the same outputs, the layers under the same names, in the model's precision.

    Args:
        model: a network with its parameters, for instance ``trajectory.model(step, seed)``.
        activation: where the network has an activation of your own, written with jax.numpy: the same function of
            tensors. Where it has several: a dictionary from each of them to its function of tensors.

    Returns:
        A module on the CPU, in evaluation mode: with ``module.train()`` dropout is active, and batch norms take the
        batch's own statistics, as in training here.

    >>> weights = {"dense1.weight": np.ones((2, 1)), "dense1.bias": np.zeros(2), "output.weight": np.ones((1, 2))}
    >>> module = to_torch(Model(Dense((1, 2, 1)), weights))
    >>> module.dense1, round(module(torch.ones(1, 1, dtype=torch.float64)).item(), 6)
    (Linear(in_features=1, out_features=2, bias=True), 1.523188)
    """
    network = model.network
    if type(network) not in _MODULES:
        raise InputError(f"to_torch is for dense, convolutional and residual networks, not {type(network).__name__}")
    kind, known = _MODULES[type(network)]
    for field in dataclasses.fields(network):
        if field.name not in known and getattr(network, field.name) != field.default:
            raise InputError(
                f"to_torch does not know {type(network).__name__}'s {field.name} = {getattr(network, field.name)!r}"
            )
    module = kind(network, activation)
    dtype = torch.from_numpy(np.zeros(0, np.result_type(*model.parameters.values(), np.float32))).dtype
    module.to(dtype)
    state = module.state_dict()
    for name, place in module.names().items():
        state[place].copy_(torch.from_numpy(np.array(model.parameters[name])))
    return module.eval()


def from_torch(module: nn.Module, network: Network | None = None) -> Model:
    """The model that a module is: one that ``to_torch`` made, trained on or not, or a plain ``nn.Sequential``.

    Args:
        module: what ``to_torch`` made, also within ``torch.compile`` or DistributedDataParallel; or an
            ``nn.Sequential`` of Linear, Conv1d, Conv2d, activations, pooling, Flatten and Dropout that is a ``Dense``
            or a ``Conv``.
        network: the description that the module must have. A Sequential that begins with convolutions needs it
            where they have strides or pooling or the images are not square, and one with an activation that has no name
            here.

    Returns:
        The network and its parameters, as the module has them now; float32 for half precision.

    >>> model = from_torch(nn.Sequential(nn.Linear(5, 50), nn.Tanh(), nn.Linear(50, 1, bias=False)))
    >>> model.network.describe()
    '5-50-1, tanh, no output bias'
    """
    module = unwrapped(module)
    if not isinstance(module, TorchNetwork | nn.Sequential):
        raise InputError(
            f"a {type(module).__name__} is neither what to_torch made nor an nn.Sequential of Linear, Conv1d, "
            "Conv2d, activations, pooling, Flatten and Dropout"
        )
    if isinstance(module, nn.Sequential):
        own, tensors = read_sequential(module, network)
    else:
        own, tensors = module.network, _tensors(module)
    if network is not None and not _same(own, network):
        raise InputError(f"the module is the network {own.describe()}, not {network.describe()}")
    return Model(network or own, {name: _array(tensor) for name, tensor in tensors.items()})


def _same(own: Network, network: Network) -> bool:
    """Whether two descriptions are of one network, however a convolution's options are written."""
    if not (isinstance(own, Conv) and isinstance(network, Conv)):
        return own == network
    fields = ("image", "channels", "geometry", "outputs", "hidden", "activations", "output_bias", "dropout")
    return all(getattr(own, name) == getattr(network, name) for name in fields)


def _tensors(module: TorchNetwork) -> dict[str, torch.Tensor]:
    """The tensors of a module that ``to_torch`` made; one whose activations were exchanged since is refused."""
    for found, activation in zip(module.activations, module.network.activations, strict=False):
        if activation in MODULES and name_of_module(found) != name_of_module(to_module(activation)):
            raise InputError(f"the network has the activation {activation}, and the module now {type(found).__name__}")
    state = module.state_dict()
    missing = [place for place in module.names().values() if place not in state]
    if missing:
        raise InputError(f"the module no longer has {missing[0]}, which its network {module.network.describe()} needs")
    return {name: state[place] for name, place in module.names().items()}


def _array(tensor: torch.Tensor) -> np.ndarray:
    values = tensor.detach().cpu()
    return np.array((values if values.dtype in (torch.float32, torch.float64) else values.float()).numpy())
