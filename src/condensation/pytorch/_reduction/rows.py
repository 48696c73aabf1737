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
    most = int(min(MOST, WORK / columns**2, ENTRIES / (columns * groups)))
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
    """What a layer sees at some places of its output, for each group of a convolution."""
    places = places.to(x.device)
    if not isinstance(layer, _ConvNd):
        return x.reshape(-1, x.shape[-1])[places][None]
    rank = len(layer.kernel_size)
    x = x if x.ndim == rank + 2 else x[None]
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    view = F.pad(x, cast(list[int], layer._reversed_padding_repeated_twice), mode=mode)
    for axis, (size, stride, gap) in enumerate(zip(layer.kernel_size, layer.stride, layer.dilation, strict=True)):
        view = view.unfold(2 + axis, gap * (size - 1) + 1, stride)[..., ::gap]
    n, *where = torch.unravel_index(places, (len(x), *view.shape[2 : 2 + rank]))
    patches = view[(n, slice(None), *where)]
    groups = groups_of(layer)
    return patches.reshape(len(places), groups, -1).movedim(0, 1)


def _axis(layer: nn.Module, output: torch.Tensor) -> int:
    if not isinstance(layer, _ConvNd):
        return output.ndim - 1
    return output.ndim - 1 - len(layer.kernel_size)
