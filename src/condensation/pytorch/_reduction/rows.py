"""What a layer sees and gives, as rows of a regression: one row a sample and place, of which some are drawn.

A convolution is a dense layer of the patches of its input. ``places`` number the entries of a layer's output, channels
apart, sample by sample.
"""

import zlib
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import nn
from torch.nn.modules.conv import _ConvNd

from .matrix import groups_of

WORK = 4e9  # multiply-adds of a Gram matrix, where rows are not needed to determine it
CHEAP, ENOUGH = 5e8, 64  # no more rows than cost so little, or than so many times the columns,
DEAR, FEW = 2e9, 8  # nor, beyond such a cost, than so many times
ENTRIES = 2e7  # of the rows of all groups, likewise: a depthwise convolution has as many groups as channels
MOST, LEAST = 65_536, 2048
WIDE = 3000  # columns beyond which there are fewer rows than columns

Places = Int[torch.Tensor, " rows"]


def columns_of(layer: nn.Module) -> int:
    """Number of columns that each output of a layer reads."""
    weight = cast(torch.Tensor, layer.weight)
    return weight[0].numel()


def drawn(name: str, batch: int, batches: int, entries: int, columns: int, groups: int = 1) -> Places:
    """Places of a layer's output in one of some batches: the same for every model."""
    enough = max(CHEAP / columns**2, min(ENOUGH * columns, max(DEAR / columns**2, FEW * columns)))
    most = int(min(MOST, WORK / columns**2, ENTRIES / (columns * groups), enough))
    wanted = LEAST if columns > WIDE else max(2 * columns, most, LEAST)
    wanted = -(-wanted // batches)
    if entries <= wanted:
        return torch.arange(entries)
    random = torch.Generator().manual_seed(zlib.crc32(f"{name} {batch}".encode()))
    return torch.randperm(entries, generator=random)[:wanted].sort().values


def entries_of(layer: nn.Module, output: torch.Tensor) -> int:
    """Number of places of an output."""
    return output.numel() // output.shape[_axis(layer, output)]


def given(layer: nn.Module, output: torch.Tensor, places: Places) -> Float[torch.Tensor, "rows outputs"]:
    """A layer's output at some places."""
    axis = _axis(layer, output)
    return output.movedim(axis, -1).reshape(-1, output.shape[axis])[places.to(output.device)]


def seen(layer: nn.Module, x: torch.Tensor, places: Places) -> Float[torch.Tensor, "groups rows columns"]:
    """What a layer sees at some places of its output, for each group of a convolution; columns as in ``matrix``."""
    places = places.to(x.device)
    if not isinstance(layer, _ConvNd):
        return x.reshape(-1, x.shape[-1])[places][None]
    rank = len(layer.kernel_size)
    x = x if x.ndim == rank + 2 else x[None]
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    x = F.pad(x, cast(list[int], layer._reversed_padding_repeated_twice), mode=mode).movedim(1, -1).contiguous()
    axes = list(zip(x.shape[1:-1], layer.kernel_size, layer.stride, layer.dilation, strict=True))
    n, *where = torch.unravel_index(
        places, (len(x), *((all_ - gap * (k - 1) - 1) // step + 1 for all_, k, step, gap in axes))
    )
    corner, entry = n, torch.zeros(1, dtype=torch.long, device=x.device)
    for first, (size, kernel, stride, gap) in zip(where, axes, strict=True):
        corner = corner * size + first * stride
        entry = (entry[:, None] * size + gap * torch.arange(kernel, device=x.device)).reshape(-1)
    patches = x.reshape(-1, x.shape[-1])[(corner[:, None] + entry).reshape(-1)]
    groups = groups_of(layer)
    return patches.reshape(len(places), len(entry), groups, -1).movedim(2, 0).reshape(groups, len(places), -1)


def matrix(layer: nn.Module) -> Float[torch.Tensor, "groups outputs columns"]:
    """A layer's weight for what it sees: of a convolution the channels of each entry of its kernel together."""
    weight, groups = cast(torch.Tensor, layer.weight).detach(), groups_of(layer)
    cut = weight.reshape(groups, len(weight) // groups, weight.shape[1], -1)
    return cut.movedim(3, 2).reshape(*cut.shape[:2], -1)


def to_weight(values: Float[torch.Tensor, "groups outputs columns"], layer: nn.Module) -> torch.Tensor:
    """Such a matrix in the shape of the layer's weight."""
    shape = cast(torch.Tensor, layer.weight).shape
    return values.reshape(*values.shape[:2], -1, shape[1]).movedim(3, 2).reshape(shape)


def _axis(layer: nn.Module, output: torch.Tensor) -> int:
    if not isinstance(layer, _ConvNd):
        return output.ndim - 1
    return output.ndim - 1 - len(layer.kernel_size)
