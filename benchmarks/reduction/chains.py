"""Which units are left out: those of a layer that only one other layer reads, named with the norm between the two."""

from collections.abc import Mapping
from copy import deepcopy
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


class Link(NamedTuple):
    """A layer that makes units, the batch norm behind it (or ""), and the layer that reads them."""

    makes: str
    norm: str
    reads: str


def links(name: str, network: nn.Module) -> list[Link]:
    """The links of a network, front to back. Of ResNet-56 those inside the blocks: residual streams stay whole."""
    if name == "resnet56":
        return [Link(f"blocks.{k}.conv1", f"blocks.{k}.bn1", f"blocks.{k}.conv2") for k in range(27)]
    layers = [(key, layer) for key, layer in network.named_modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    norms = {int(key): key for key, layer in network.named_modules() if isinstance(layer, nn.BatchNorm2d)}
    return [Link(a, norms.get(int(a) + 1, ""), b) for (a, _), (b, _) in pairwise(layers)]


def counts(network: nn.Module, chain: list[Link], removed: float) -> dict[str, int]:
    """How many units each layer keeps when a share of them is removed (rounded down as Torch-Pruning does)."""
    return {link.makes: max(1, int(units(network, link) * (1 - removed) + 1e-9)) for link in chain}


def units(network: nn.Module, link: Link) -> int:
    """Number of units that a link's layer makes."""
    return len(network.get_submodule(link.makes).weight)  # pyright: ignore[reportArgumentType]


class Change(NamedTuple):
    """What a link becomes: rows of the maker (new x old), and of each old unit how the new ones make it up."""

    rows: Tensor
    combine: Tensor
    scale: Tensor | None = None  # of the norm, where rows are means of the rows times it


def changed(network: nn.Module, changes: Mapping[Link, Change]) -> nn.Module:
    """A copy of the network with the changes made."""
    small = deepcopy(network).eval()
    with torch.no_grad():
        for link, change in changes.items():
            maker, reader = small.get_submodule(link.makes), small.get_submodule(link.reads)
            assert isinstance(maker, nn.Conv2d | nn.Linear) and isinstance(reader, nn.Conv2d | nn.Linear)
            _set(maker, "weight", torch.tensordot(change.rows, maker.weight, 1))
            if maker.bias is not None:
                _set(maker, "bias", change.rows @ maker.bias)
            if link.norm:
                norm = small.get_submodule(link.norm)
                assert isinstance(norm, nn.BatchNorm2d)
                _change_norm(norm, change)
            old = reader.weight
            split = old.reshape(len(old), len(change.combine), -1)
            made = torch.einsum("oup,un->onp", split, change.combine)
            _set(reader, "weight", made.reshape(len(old), -1, *old.shape[2:]))
            _resize(maker, reader)
    return small


def _change_norm(norm: nn.BatchNorm2d, change: Change) -> None:
    """A norm's rows. With a scale they are means of what the norm gives: its statistics are then those of the mean."""
    means = (change.rows != 0).float()
    means /= means.sum(1, keepdim=True)
    assert norm.running_mean is not None and norm.running_var is not None
    shift, variance = change.rows @ norm.running_mean, means @ norm.running_var
    if change.scale is not None:
        variance = torch.full_like(shift, 1 - norm.eps)
    _set(norm, "weight", means @ norm.weight if change.scale is None else change.scale)
    _set(norm, "bias", means @ norm.bias)
    norm.running_mean, norm.running_var, norm.num_features = shift, variance, len(shift)


def _set(layer: nn.Module, name: str, value: Tensor) -> None:
    setattr(layer, name, nn.Parameter(value.contiguous()))


def _resize(maker: nn.Conv2d | nn.Linear, reader: nn.Conv2d | nn.Linear) -> None:
    for layer, names in ((maker, ("out_channels", "out_features")), (reader, ("in_channels", "in_features"))):
        name = names[isinstance(layer, nn.Linear)]
        setattr(layer, name, layer.weight.shape[0 if layer is maker else 1])


def operations(network: nn.Module, x: Tensor) -> int:
    """Multiply-adds of convolutions and dense layers for one sample."""
    total = 0

    def count(layer: nn.Module, _: tuple[Tensor, ...], out: Tensor) -> None:
        nonlocal total
        weight = layer.weight
        assert isinstance(weight, Tensor)
        total += weight[0].numel() * out[0].numel()

    layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(count) for layer in layers]
    with torch.no_grad():
        network.eval()(x[:1])
    for hook in hooks:
        hook.remove()
    return total


def parameters(network: nn.Module) -> int:
    """Number of parameters."""
    return sum(value.numel() for value in network.parameters())


def recalibrate(network: nn.Module, x: Tensor, batch: int = 250) -> nn.Module:
    """The same network with the statistics of all batch norms taken from these images."""
    norms = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
    if norms:
        kept = [norm.momentum for norm in norms]
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        network.train()
        with torch.no_grad():
            for part in x.split(batch):
                network(part)
        for norm, momentum in zip(norms, kept, strict=True):
            norm.momentum = momentum
    return network.eval()


def indicator(labels: np.ndarray | Tensor, count: int) -> Tensor:
    """Old units x groups: 1 where a unit is of a group."""
    return nn.functional.one_hot(torch.as_tensor(labels).long(), count).float()
