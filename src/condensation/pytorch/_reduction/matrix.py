"""The weights of a layer as outputs x inputs x entries, whatever its kind, and back; batch norm as factor and shift.

The inputs of a grouped convolution are those of one group. A transposed convolution stores inputs first. Batch norm and
PReLU have one input and one entry.
"""

from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd


def groups_of(module: nn.Module) -> int:
    """Number of groups of a convolution, 1 of a dense layer."""
    return module.groups if isinstance(module, _ConvNd) else 1


def in_size(module: nn.Module) -> int:
    """Number of channels that a layer reads."""
    return int(module.in_features if isinstance(module, nn.Linear) else cast(_ConvNd, module).in_channels)


def out_size(module: nn.Module) -> int:
    """Number of channels that a module gives."""
    names = ("out_features", "out_channels", "num_features", "num_parameters")
    return next(int(getattr(module, name)) for name in names if hasattr(module, name))


def array(value: torch.Tensor) -> np.ndarray:
    """The values of a tensor in float64."""
    return value.detach().to("cpu", torch.float64).numpy().copy()


def matrix_of(module: nn.Module) -> Float[np.ndarray, "outputs inputs entries"]:
    """The weight of a layer."""
    weight = array(cast(torch.Tensor, module.weight))
    if isinstance(module, _ConvNd) and module.transposed:
        g = module.groups
        weight = weight.reshape(g, weight.shape[0] // g, weight.shape[1], -1).swapaxes(1, 2)
        return weight.reshape(-1, weight.shape[2], weight.shape[3])
    return weight.reshape(len(weight), *(weight.shape[1:2] or (1,)), -1)


def to_weight(matrix: Float[np.ndarray, "outputs inputs entries"], module: nn.Module) -> np.ndarray:
    """The weight in the layer's own order; the matrix may have other outputs and inputs than the layer has now."""
    if not isinstance(module, _ConvNd):
        return matrix[:, :, 0] if isinstance(module, nn.Linear) else matrix[:, 0, 0]
    size = tuple(module.kernel_size)
    if not module.transposed:
        return matrix.reshape(*matrix.shape[:2], *size)
    g = matrix.shape[0] if module.groups == module.in_channels == module.out_channels else module.groups
    grouped = matrix.reshape(g, matrix.shape[0] // g, *matrix.shape[1:]).swapaxes(1, 2)
    return grouped.reshape(-1, grouped.shape[2], *size)


def bias_of(module: nn.Module) -> np.ndarray | None:
    """The bias of a layer, if it has one."""
    bias = module._parameters.get("bias")
    return None if bias is None else array(bias)


def norm_factor(norm: _BatchNorm) -> tuple[np.ndarray, np.ndarray]:
    """What batch norm does in evaluation mode: a factor and a shift of each channel."""
    mean, var = array(cast(torch.Tensor, norm.running_mean)), array(cast(torch.Tensor, norm.running_var))
    factor = 1 / np.sqrt(var + norm.eps)
    if norm.affine:
        factor = factor * array(norm.weight)
    return factor, (array(norm.bias) if norm.affine else 0) - factor * mean


def pads_zeros(module: nn.Module) -> bool:
    """Whether a layer sees zeros beyond the border, where a constant is none."""
    if not isinstance(module, _ConvNd):
        return False
    if module.transposed:
        return True  # whatever its padding: at the border fewer entries of the kernel meet
    pads = module.padding == "same" or (module.padding != "valid" and any(module.padding))
    return module.padding_mode == "zeros" and pads


def dense(weight: torch.Tensor, bias: torch.Tensor | None, weight_grad: bool, bias_grad: bool) -> nn.Linear:
    """A dense layer of some values, which are copied; weight and bias may ask for gradients."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().clone(), weight_grad)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().clone(), bias_grad)
    return layer


def trained(*parameters: torch.Tensor | None) -> tuple[bool, ...]:
    """Whether each parameter asks for gradients."""
    return tuple(value is not None and value.requires_grad for value in parameters)


def is_conv1d(module: nn.Module) -> bool:
    """Whether it is the dense layer with inputs first that GPT-2 of transformers has."""
    return type(module).__module__ == "transformers.pytorch_utils" and type(module).__name__ == "Conv1D"
