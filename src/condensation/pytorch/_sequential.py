"""A plain ``nn.Sequential`` as the network that it is: a ``Dense`` or a ``Conv``."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..activations import Activation
from ..errors import InputError
from ..networks import Conv, Dense, Network
from ._activations import name_of_module

_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d)
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d)
_POOLS = {nn.MaxPool1d: "max", nn.MaxPool2d: "max", nn.AvgPool1d: "average", nn.AvgPool2d: "average"}


@dataclass
class _Layer:
    """A layer with weights, and what stands behind it."""

    module: Any  # an nn.Linear, nn.Conv1d or nn.Conv2d
    activation: nn.Module | None = None
    pool: tuple[str, int] | None = None  # what is taken of each window, and its side
    dropout: float = 0.0
    flat: bool = field(default=False)  # whether its output is flattened


def read_sequential(module: nn.Sequential, network: Network | None) -> tuple[Network, dict[str, torch.Tensor]]:
    """The network that a Sequential is, and its tensors by the names of their parameters; refused where it is none.

    ``network``, if given, tells the image of convolutions and the activations that have no name.
    """
    layers = _layers(module)
    convolutions = [layer for layer in layers if isinstance(layer.module, _CONVOLUTIONS)]
    dense = layers[len(convolutions) :]
    if any(isinstance(layer.module, _CONVOLUTIONS) for layer in dense):
        raise InputError("a convolution behind a Linear layer is in no network of this package")
    if not dense or dense[-1].activation is not None or dense[-1].dropout:
        raise InputError("the last layer of a network is a Linear layer without an activation behind it")
    names = _activations(layers[:-1], network)
    found = _conv(convolutions, dense, names, network) if convolutions else _dense(dense, names)
    tensors = {}
    for shape, layer in zip(found.layers, layers, strict=True):
        tensors[f"{shape.name}.weight"] = layer.module.weight
        if layer.module.bias is not None:
            tensors[f"{shape.name}.bias"] = layer.module.bias
    return found, tensors


def _leaves(module: nn.Sequential) -> Iterator[nn.Module]:
    for part in module:
        if isinstance(part, nn.Sequential):
            yield from _leaves(part)
        else:
            yield part


def _layers(module: nn.Sequential) -> list[_Layer]:
    """The layers with weights, one after the other; what is not known is refused."""
    layers: list[_Layer] = []
    for number, part in enumerate(_leaves(module)):
        if isinstance(part, (nn.Linear, *_CONVOLUTIONS)):
            layers.append(_Layer(part))
        elif isinstance(part, nn.Flatten):
            if (part.start_dim, part.end_dim) != (1, -1):
                raise InputError("Flatten must make one row of each sample: start_dim = 1, end_dim = -1")
            if layers:
                layers[-1].flat = True
        elif isinstance(part, _DROPOUT):
            if not layers or layers[-1].activation is None or not isinstance(layers[-1].module, nn.Linear):
                raise InputError("dropout stands behind the activation of a dense hidden layer")
            layers[-1].dropout = part.p
        elif type(part) in _POOLS:
            if not layers or layers[-1].activation is None or layers[-1].pool or layers[-1].flat:
                raise InputError("pooling stands once, behind the activation of a convolution")
            layers[-1].pool = _POOLS[type(part)], _window(part)
        elif not layers or any(True for _ in part.parameters()) or isinstance(part, nn.modules.batchnorm._NormBase):
            raise InputError(
                f"part {number} of the Sequential, {type(part).__name__}, has no counterpart here: Linear, Conv1d, "
                "Conv2d, activations, pooling, Flatten and Dropout have"
            )
        elif type(part) is nn.Identity:
            continue
        elif layers[-1].activation is not None:
            raise InputError(
                f"part {number} of the Sequential, {type(part).__name__}, is a second activation of a layer"
            )
        else:
            layers[-1].activation = part
    return layers


def _activations(layers: list[_Layer], network: Network | None) -> list[Activation]:
    """The activation of each hidden layer; without one it is linear."""
    given = () if network is None else network.activations
    found: list[Activation] = []
    for number, layer in enumerate(layers):
        known = "linear" if layer.activation is None else name_of_module(layer.activation)
        own = given[number] if number < len(given) else None
        if known is None and callable(own):
            known = own
        if known == "silu" and own == "swish":
            known = own
        if known is None:
            raise InputError(
                f"the activation {layer.activation} has no name here: pass network= with your own function in its place"
            )
        found.append(known)
    return found


def _one(what: str, values: list[Any]) -> Any:
    if len(set(values)) > 1:
        raise InputError(f"all layers of a network have the same {what}, and these have {', '.join(map(str, values))}")
    return values[0]


def _single(names: list[Any]) -> Any:
    return names[0] if len(set(names)) == 1 else tuple(names)


def _dense(layers: list[_Layer], names: list[Activation]) -> Dense:
    if len(layers) < 2:
        raise InputError("a network has at least one hidden layer, and this Sequential is a single Linear layer")
    *hidden, last = layers
    widths = (layers[0].module.in_features, *(layer.module.out_features for layer in layers))
    bias = _one("bias", [layer.module.bias is not None for layer in hidden])
    dropout = _one("dropout", [layer.dropout for layer in hidden])
    return Dense(widths, _single(names), bias=bias, output_bias=last.module.bias is not None, dropout=dropout)


def _window(part: Any) -> int:
    """The side of the windows of a pooling; refused where they overlap or are not square."""
    sides = {name: _sides(getattr(part, name)) for name in ("kernel_size", "stride", "padding")}
    square = {*sides["kernel_size"]} | {*sides["stride"]}
    if len(square) > 1 or {*sides["padding"]} != {0} or part.ceil_mode or getattr(part, "dilation", 1) != 1:
        raise InputError(f"the windows of pooling are square, do not overlap and have no padding, unlike {part}")
    return sides["kernel_size"][0]


def _sides(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _side(module: Any, name: str) -> int | str:
    """An option of a convolution that is the same number at each side."""
    value = getattr(module, name)
    if isinstance(value, str):
        return value
    if len({*_sides(value)}) > 1:
        raise InputError(f"kernels are square, stride and padding the same at each side, not {name} = {value}")
    return _sides(value)[0]


def _conv(convolutions: list[_Layer], dense: list[_Layer], names: list[Activation], network: Network | None) -> Conv:
    _one("kind of convolution", [type(layer.module).__name__ for layer in convolutions])
    for layer in convolutions:
        for name, value in {"dilation": 1, "groups": 1, "padding_mode": "zeros"}.items():
            if _side(layer.module, name) != value:
                raise InputError(f"a convolution with {name} = {getattr(layer.module, name)} has no counterpart here")
    if any(layer.module.bias is None for layer in (*convolutions, *dense[:-1])):
        raise InputError("all layers of a Conv but the output have a bias, and one of these has none")
    if not convolutions[-1].flat:
        raise InputError("Flatten stands between the last convolution and the first Linear layer")
    count, pools = len(convolutions), [layer.pool for layer in convolutions]
    each = {
        name: _single([_side(layer.module, field) for layer in convolutions])
        for name, field in (("kernel", "kernel_size"), ("padding", "padding"), ("stride", "stride"))
    }
    options: dict[str, Any] = each | {
        "channels": tuple(layer.module.out_channels for layer in convolutions),
        "hidden": tuple(layer.module.out_features for layer in dense[:-1]),
        "outputs": dense[-1].module.out_features,
        "activation": _single(names[:count]),
        "output_bias": dense[-1].module.bias is not None,
    }
    if options["stride"] == 1:
        del options["stride"]
    if any(pools):
        kinds = [pool[0] if pool else "max" for pool in pools]  # a window of side 1 is no pooling
        options |= {"pooling": _single(kinds), "pool_size": _single([pool[1] if pool else 1 for pool in pools])}
    if dense[:-1]:
        options["dense_activation"] = _one("activation of dense layers", names[count:])
        options["dropout"] = _one("dropout", [layer.dropout for layer in dense[:-1]])
    elif isinstance(network, Conv):
        options["dense_activation"] = network.dense_activation  # of no layer
    if isinstance(network, Conv):
        return Conv(network.image, **options)
    return Conv(_image(convolutions, dense[0].module.in_features, options), **options)


def _image(convolutions: list[_Layer], inputs: int, options: dict[str, Any]) -> tuple[int, ...]:
    """The image that leaves as many numbers as the first dense layer reads: square, where that is the only one."""
    first, flat = convolutions[0].module, isinstance(convolutions[0].module, nn.Conv1d)
    places, left = divmod(inputs, options["channels"][-1])
    side = places if flat else math.isqrt(places)
    unclear = any(layer.pool or _side(layer.module, "stride") != 1 for layer in convolutions)
    if unclear or left or (not flat and side * side != places):
        raise InputError(
            f"the images cannot be told from the {inputs} inputs of the first Linear layer: pass network= with their "
            "sides"
        )
    for layer in convolutions:
        padding = _side(layer.module, "padding")
        kernel = _side(layer.module, "kernel_size")
        assert isinstance(kernel, int)
        side += 0 if padding == "same" else kernel - 1 - 2 * (padding if isinstance(padding, int) else 0)
    return (first.in_channels, side) if flat else (first.in_channels, side, side)
