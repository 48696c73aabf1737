r"""Residual convolutional networks: ResNet18's convolution part, then dense layers.

The stem is a 7 x 7 convolution with stride 2, batch norm, relu and a 3 x 3 maximum with stride 2 (or, for small
images, a 3 x 3 convolution with stride 1). Each stage is a number of blocks
$h \mapsto \mathrm{relu}(N_2(C_2\, \mathrm{relu}(N_1(C_1 h))) + S h)$ with 3 x 3 convolutions $C$ and batch norms $N$;
the first block of each stage but the first halves the image, and where the shape changes the skip $S$ is a 1 x 1
convolution with batch norm, else the identity. The mean over the image goes to the dense layers. Without batch norms
each convolution has a bias instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from .._memory import in_digits, require
from .._phrases import counted, listed
from .._serialization import Count, Part
from ..activations import Activation, get_activation
from ..errors import InputError, one_of
from ._conv import convolve
from ._dense import DenseNetwork, check_dropout, dense_layers, describe_head
from ._layer import LayerShape
from ._norm import NormShape, batch_norm

BLOCK = 2000  # bytes that describe a residual block
STEMS = {"large": (7, 2), "small": (3, 1)}  # side of the kernel, stride


@dataclass(frozen=True)
class ConvNorm:
    """One convolution of the convolution part, a batch norm behind it, or a bias."""

    name: str
    channels: tuple[int, int]
    kernel: int
    stride: int
    normed: bool = True

    @property
    def layer(self) -> LayerShape:
        """Its weight; a batch norm makes a bias needless."""
        return LayerShape(self.name, (self.channels[1], self.channels[0], self.kernel, self.kernel), not self.normed)

    @property
    def norm(self) -> NormShape:
        """The batch norm behind it, named ``<name>.norm``."""
        return NormShape(f"{self.name}.norm", self.channels[1])


@dataclass(frozen=True)
class ResidualBlock:
    """Two convolutions and the skip beside them, a convolution where the shape changes."""

    first: ConvNorm
    second: ConvNorm
    skip: ConvNorm | None


class ResNetwork(eqx.Module):
    """One residual network: a value that can be called on images."""

    parameters: dict[str, Array | np.ndarray]
    network: ResNet = eqx.field(static=True)

    def __call__(
        self, x: Float[Array | np.ndarray, "samples channels h w"], key: Any = None
    ) -> Float[Array, "samples outputs"]:
        """The outputs for a batch of images as after training, with the running statistics (dropout with a key)."""
        return self._forward(x, key, training=False)[0]

    def learn(
        self, x: Float[Array | np.ndarray, "samples channels h w"], key: Any = None
    ) -> tuple[Float[Array, "samples outputs"], dict[str, Array]]:
        """The outputs as in a training step, with the batch's own statistics, and the running statistics after it."""
        return self._forward(x, key, training=True)

    def _forward(self, x: Any, key: Any, training: bool) -> tuple[Array, dict[str, Array]]:
        values = {name: jnp.asarray(value) for name, value in self.parameters.items()}
        statistics: dict[str, Array] = {}

        def apply(conv: ConvNorm, h: Array) -> Array:
            around = (conv.kernel // 2, conv.kernel // 2)
            h = convolve(h, values[f"{conv.name}.weight"], (around, around), (conv.stride, conv.stride))
            if not conv.normed:
                return h + values[f"{conv.name}.bias"][:, None, None]
            h, after = batch_norm(h, conv.norm.name, values, training)
            statistics.update(after)
            return h

        network = self.network
        h = jax.nn.relu(apply(network.first, jnp.asarray(x)))
        if network.stem == "large":
            h = lax.reduce_window(h, -np.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), [(0, 0), (0, 0), (1, 1), (1, 1)])
        for block in network.blocks:
            inner = apply(block.second, jax.nn.relu(apply(block.first, h)))
            h = jax.nn.relu(inner + (h if block.skip is None else apply(block.skip, h)))
        return network.head(values)(jnp.mean(h, (2, 3)), key), statistics


@dataclass(frozen=True)
class ResNet(Part, kind="resnet"):
    """Describes a ResNet18-like network: ``ResNet((3, 32, 32), outputs=10, activation="tanh")`` is FC Fig. 2's.

    Args:
        image: channels, height and width of a sample.
        outputs: number of outputs.
        hidden: widths of the dense hidden layers.
        activation: of the dense hidden layers; the convolution part has relu.
        channels: of each stage.
        depth: blocks in each stage.
        stem: ``"large"`` is ResNet18's; ``"small"`` keeps the size of small images.
        output_bias: the output layer has a bias.
        dropout: share of the dense hidden neurons that a training step leaves out.
        batch_norm: a batch norm stands behind each convolution; else each convolution has a bias.
    """

    fixed: ClassVar[tuple[str, ...]] = ()

    image: tuple[Count, Count, Count]
    outputs: Count
    hidden: tuple[Count, ...] = (1024, 1024)
    activation: Activation = "tanh"
    channels: tuple[Count, ...] = (64, 128, 256, 512)
    depth: Count = 2
    stem: Annotated[str, one_of("stem", STEMS)] = "large"
    output_bias: bool = False
    dropout: float = 0.0
    batch_norm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.channels:
            raise InputError("a residual network needs at least one stage, not channels=()")
        blocks = self.depth * len(self.channels)
        require(blocks * BLOCK, f"a list of {in_digits(blocks)} residual blocks", "a smaller depth would fit")
        check_dropout(self.dropout, self.hidden)
        get_activation(self.activation)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample: channels, height, width."""
        return self.image

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The activation of each dense hidden layer."""
        return (self.activation,) * len(self.hidden)

    @property
    def first(self) -> ConvNorm:
        """The convolution of the stem, which reads the image."""
        kernel, stride = STEMS[self.stem]
        return ConvNorm("stem", (self.image[0], self.channels[0]), kernel, stride, self.batch_norm)

    @property
    def blocks(self) -> tuple[ResidualBlock, ...]:
        """The blocks of all stages, one after the other."""
        made = []
        before = self.channels[0]
        for stage, channels in enumerate(self.channels):
            for k in range(self.depth):
                stride = 2 if stage and not k else 1
                name = f"stage{stage + 1}.block{k + 1}"
                first = ConvNorm(f"{name}.conv1", (before, channels), 3, stride, self.batch_norm)
                second = ConvNorm(f"{name}.conv2", (channels, channels), 3, 1, self.batch_norm)
                skip = ConvNorm(f"{name}.skip", (before, channels), 1, stride, self.batch_norm)
                made.append(ResidualBlock(first, second, None if stride == 1 and before == channels else skip))
                before = channels
        return tuple(made)

    @property
    def passed_on(self) -> int:
        """Numbers that all convolutions and dense layers together give for one sample."""
        height, width = self.image[1:]
        total = 0
        for conv in self.convolutions:
            if not conv.name.endswith("skip"):  # which reads what the block reads
                height, width = -(-height // conv.stride), -(-width // conv.stride)
            total += conv.channels[1] * height * width
            if conv is self.first and self.stem == "large":
                height, width = -(-height // 2), -(-width // 2)
        return total + sum(self.hidden) + self.outputs

    @property
    def convolutions(self) -> tuple[ConvNorm, ...]:
        """All convolutions in the order of their parameters."""
        inside = (conv for block in self.blocks for conv in (block.first, block.second, block.skip) if conv is not None)
        return (self.first, *inside)

    @property
    def layers(self) -> tuple[LayerShape, ...]:
        """Name and shape of each layer with weights: stem, stage1.block1.conv1, ..., dense1, dense2, output.

        >>> [layer.name for layer in ResNet((3, 8, 8), 10, hidden=(16,), channels=(4,), depth=1).layers]
        ['stem', 'stage1.block1.conv1', 'stage1.block1.conv2', 'dense1', 'output']
        """
        widths = (self.channels[-1], *self.hidden, self.outputs)
        return (*(conv.layer for conv in self.convolutions), *dense_layers(widths, True, self.output_bias))

    @property
    def norms(self) -> tuple[NormShape, ...]:
        """The batch norms, one behind each convolution."""
        return tuple(conv.norm for conv in self.convolutions if conv.normed)

    def head(self, parameters: dict[str, Any]) -> DenseNetwork:
        """The dense layers with the given parameters."""
        dense = [layer for layer in self.layers if not layer.is_convolution]
        return DenseNetwork.of(dense, parameters, self.activations, False, self.dropout)

    def arrange(self, x: Float[np.ndarray, "samples channels h w"]) -> Any:
        """Images of a whole training as the network reads them fastest: as they are."""
        return x

    def describe(self) -> str:
        """The network in words; its dense layers have a bias where nothing is said.

        >>> ResNet((3, 32, 32), 10).describe()
        'the convolution part of ResNet18 (relu, batch norm); dense 1024-1024 (tanh); 10 outputs, no output bias'
        """
        head = describe_head(self.hidden, self.activations, self.outputs, self.output_bias, self.dropout)
        parts = "relu, batch norm" if self.batch_norm else "relu, no batch norm"
        if (self.channels, self.depth, self.stem) == (type(self).channels, type(self).depth, type(self).stem):
            return f"the convolution part of ResNet18 ({parts}); {head}"
        stages = f"{counted(len(self.channels), 'stage')} of {counted(self.depth, 'residual block')}"
        stem = f"{self.first.kernel} x {self.first.kernel} stem of stride {self.first.stride}"
        return f"{stages}, {listed(self.channels)} channels, {stem} ({parts}); {head}"

    def assemble(self, parameters: dict[str, Any]) -> ResNetwork:
        """The network with the given parameters and statistics, by name (``stem.weight``, ``stem.norm.mean``, ...)."""
        return ResNetwork(parameters, self)
