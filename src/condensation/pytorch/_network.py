"""The networks of this package as PyTorch modules: the same layers under the same names."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d, pad, relu

from ..networks import Conv, Dense, LayerShape, Network, ResNet
from ..networks._geometry import as_image
from ..networks._norm import EPS, PACE
from ..networks._resnet import ConvNorm, ResidualBlock
from ._activations import to_module


class TorchNetwork(nn.Module):
    """A network as a PyTorch module, which ``to_torch`` makes and ``from_torch`` takes back.

    Layers are called as in ``network.layers``: ``module.dense1`` is an ``nn.Linear``. It is in evaluation mode at
    first; ``module.train()`` makes dropout and batch norms what they are in training.

    Attributes:
        network: the description of the network.
    """

    def __init__(self, network: Network, own: Any = None) -> None:
        super().__init__()
        self.network = network
        self.activations = nn.ModuleList(to_module(activation, own) for activation in network.activations)
        self.drop = nn.Dropout(network.dropout) if network.dropout else nn.Identity()
        self._dense = [layer.name for layer in network.layers if not layer.is_convolution]
        for layer in network.layers:
            if not layer.is_convolution:
                self.add_module(layer.name, nn.Linear(layer.weight[1], layer.weight[0], bias=layer.has_bias))

    def through_dense(self, h: torch.Tensor, residual: bool = False, concatenated: bool = False) -> torch.Tensor:
        """The outputs from what the first dense layer reads."""
        *hidden, last = self._dense
        activations = self.activations[len(self.activations) - len(hidden) :]
        for depth, (name, activation) in enumerate(zip(hidden, activations, strict=True)):
            new = self.drop(activation(self.get_submodule(name)(h)))
            if depth and concatenated:
                new = torch.cat([h, new], 1)
            h = new + h if depth and residual else new
        return self.get_submodule(last)(h)

    def names(self) -> dict[str, str]:
        """The name of each tensor in ``state_dict``, by the name of the parameter or the statistic that it is."""
        inside = ".conv" if isinstance(self.network, ResNet) else ""
        found = {}
        for layer in self.network.layers:
            place = layer.name + (inside if layer.is_convolution else "")
            found |= {name: f"{place}.{name.rpartition('.')[2]}" for name in layer.parameters}
        parts = {"scale": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}
        return found | {f"{norm.name}.{a}": f"{norm.name}.{b}" for norm in self.network.norms for a, b in parts.items()}


class TorchDense(TorchNetwork):
    """A dense network."""

    network: Dense

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs for samples x inputs."""
        return self.through_dense(x, self.network.residual, bool(self.network.concatenated))


class TorchConv(TorchNetwork):
    """A convolutional network, in one or two dimensions."""

    network: Conv

    def __init__(self, network: Conv, own: Any = None) -> None:
        super().__init__(network, own)
        flat = len(network.image) < 3
        self._image = (as_image(network.image)[0], *as_image(network.image)[2 if flat else 1 :])
        shapes = [layer for layer in network.layers if layer.is_convolution]
        self._convolutions = [layer.name for layer in shapes]
        pads, pools = [], []
        for layer, one in zip(shapes, network.geometry, strict=True):
            zeros = one.padding[1:] if flat else one.padding
            even = all(before == behind for before, behind in zeros)
            pads.append(nn.Identity() if even else Zeros([side for pair in reversed(zeros) for side in pair]))
            padding = tuple(before for before, _ in zeros) if even else (0,) * len(zeros)
            stride = one.stride[1:] if flat else one.stride
            make: Any = nn.Conv1d if flat else nn.Conv2d
            outputs, inputs, *kernel = layer.weight
            self.add_module(layer.name, make(inputs, outputs, tuple(kernel), stride=stride, padding=padding))
            pools.append(Pool(str(one.pooling), one.window[1:] if flat else one.window) if one.pools else nn.Identity())
        self.pads, self.pools = nn.ModuleList(pads), nn.ModuleList(pools)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs for samples x channels x height x width, or x channels x length, or x length."""
        h = x.reshape(len(x), *self._image)
        parts = zip(self._convolutions, self.pads, self.activations, self.pools, strict=False)
        for name, padded, activation, pool in parts:
            h = pool(activation(self.get_submodule(name)(padded(h))))
        return self.through_dense(torch.flatten(h, 1))


class Zeros(nn.Module):
    """Zeros around an image, not as many before it as behind it."""

    def __init__(self, sides: Sequence[int]) -> None:
        super().__init__()
        self.sides = list(sides)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """The larger image."""
        return pad(h, self.sides)


class Pool(nn.Module):
    """The largest value, the mean or the sum of each window; what is left over at the end is in none."""

    def __init__(self, pooling: str, window: tuple[int, ...]) -> None:
        super().__init__()
        self.pooling, self.window = pooling, window

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """What the windows give."""
        flat = len(self.window) == 1
        if self.pooling == "max":
            return (max_pool1d if flat else max_pool2d)(h, self.window)
        mean = (avg_pool1d if flat else avg_pool2d)(h, self.window)
        return mean * math.prod(self.window) if self.pooling == "sum" else mean


class TorchResNet(TorchNetwork):
    """A residual convolutional network."""

    network: ResNet

    def __init__(self, network: ResNet, own: Any = None) -> None:
        super().__init__(network, own)
        self.stem = _normed(network.first)
        self.pool = nn.MaxPool2d(3, 2, 1) if network.stem == "large" else nn.Identity()
        self._stages = [f"stage{k + 1}" for k in range(len(network.channels))]
        blocks = iter(network.blocks)
        for stage in self._stages:
            own_blocks = {f"block{k + 1}": Block(next(blocks)) for k in range(network.depth)}
            self.add_module(stage, nn.Sequential(OrderedDict(own_blocks)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs for samples x channels x height x width."""
        h = self.pool(relu(self.stem(x)))
        for stage in self._stages:
            h = self.get_submodule(stage)(h)
        return self.through_dense(h.mean((2, 3)))


class Block(nn.Module):
    """A residual block: two convolutions and the skip beside them."""

    def __init__(self, block: ResidualBlock) -> None:
        super().__init__()
        self.conv1, self.conv2 = _normed(block.first), _normed(block.second)
        self.skip = nn.Identity() if block.skip is None else _normed(block.skip)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """What the next block reads."""
        return relu(self.conv2(relu(self.conv1(h))) + self.skip(h))


def _normed(conv: ConvNorm) -> nn.Sequential:
    """A convolution, and the batch norm behind it where there is one."""
    parts: dict[str, nn.Module] = {"conv": convolution(conv.layer, conv.kernel // 2, conv.stride)}
    if conv.normed:
        parts["norm"] = nn.BatchNorm2d(conv.channels[1], eps=EPS, momentum=PACE)
    return nn.Sequential(OrderedDict(parts))


def convolution(layer: LayerShape, padding: int, stride: int = 1) -> nn.Conv2d:
    """The convolution of a layer."""
    outputs, inputs, high, wide = layer.weight
    return nn.Conv2d(inputs, outputs, (high, wide), stride=stride, padding=padding, bias=layer.has_bias)
