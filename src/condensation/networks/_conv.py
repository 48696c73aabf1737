r"""Convolutional networks: H convolution layers, dense hidden layers behind them or none, and an output layer.

$x^{[l]}_{uv\beta} = \sigma(\sum_\alpha \sum_{pq} x^{[l-1]}_{u+p,v+q,\alpha} W^{[l]}_{pq\alpha\beta} + b^{[l]}_\beta)$,
stride 1; images are channels x height x width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from .._device import on_cpu
from .._phrases import counted, listed
from .._serialization import Count, Part
from ..activations import Activation, Function, describe_activations, get_activation
from ..errors import InputError, check_whole
from ._arrangement import Patches, patch_numbers
from ._dense import DenseNetwork, check_dropout, dense_layers, describe_head
from ._layer import LayerShape
from ._norm import NormShape


def convolve(
    x: Float[Array, "samples ..."],
    weight: Float[Array, "outputs inputs m m"],
    padding: int,
    stride: int = 1,
    axes: tuple[str, str] = ("NCHW", "NCHW"),
) -> Float[Array, "samples ..."]:
    """All kernels over all images, ``padding`` zeros at each side; ``axes`` are the images' before and after."""
    layout = (axes[0], "OIHW", axes[1])
    return lax.conv_general_dilated(x, weight, (stride, stride), [(padding, padding)] * 2, dimension_numbers=layout)


class Convolution(eqx.Module):
    """The map of a convolution layer, before the activation."""

    weight: Float[Array | np.ndarray, "outputs inputs m m"]
    bias: Float[Array | np.ndarray, " outputs"]
    padding: int = eqx.field(static=True)

    def __call__(self, x: Float[Array | np.ndarray, "samples inputs h w"]) -> Float[Array, "samples outputs h2 w2"]:
        """Weight convolved with a batch of images, plus bias."""
        return convolve(jnp.asarray(x), jnp.asarray(self.weight), self.padding) + self.bias[:, None, None]

    def on_last(self, x: Float[Array, "samples h w inputs"] | Patches, turn: bool) -> Float[Array, "samples ..."]:
        """The same for images whose channels stand last, or for their patches; ``turn`` puts them first again."""
        weight, bias = jnp.asarray(self.weight), jnp.asarray(self.bias)
        if isinstance(x, Patches):
            filters = jnp.concatenate([jnp.reshape(weight, (len(weight), -1)), bias[:, None]], 1)
            values = jnp.asarray(x.values)
            return jnp.swapaxes(jnp.tensordot(filters, values, (1, 3)), 0, 1) if turn else values @ filters.T
        axes = ("NHWC", "NCHW" if turn else "NHWC")
        return convolve(x, weight, self.padding, axes=axes) + (bias[:, None, None] if turn else bias)


class ConvNetwork(eqx.Module):
    """One convolutional network: a value that can be called on images."""

    convolutions: tuple[Convolution, ...]
    activations: tuple[Function, ...] = eqx.field(static=True)
    dense: DenseNetwork

    def __call__(
        self, x: Float[Array | np.ndarray, "samples channels h w"] | Patches, key: Any = None
    ) -> Float[Array, "samples outputs"]:
        """The outputs for a batch of images, or of their patches; with a key, dropout is active.

        Channels stand last inside: a CPU's convolutions want that, and a GPU's keep them so whatever is said. The
        dense layers want them first; either their weights are turned or the images, whichever are less.
        """
        samples = len(x.values if isinstance(x, Patches) else x)
        turn_weights = self.dense.layers[0].weight.shape[0] < samples
        h: Any = x if isinstance(x, Patches) or not on_cpu() else jnp.moveaxis(jnp.asarray(x), 1, -1)
        for layer, activation in zip(self.convolutions, self.activations, strict=True):
            turn = layer is self.convolutions[-1] and not turn_weights
            h = activation(layer.on_last(h, turn) if on_cpu() else layer(h))
        if not turn_weights:
            return self.dense(jnp.reshape(h, (samples, -1)), key)
        h = h if on_cpu() else jnp.moveaxis(h, 1, -1)
        return _turn_inputs(self.dense, (h.shape[3], *h.shape[1:3]))(jnp.reshape(h, (samples, -1)), key)


def _turn_inputs(dense: DenseNetwork, image: tuple[int, ...]) -> DenseNetwork:
    """The network, its first weights reordered for images whose channels stand last."""
    weight = jnp.asarray(dense.layers[0].weight)
    turned = jnp.moveaxis(jnp.reshape(weight, (len(weight), *image)), 1, -1)
    return eqx.tree_at(lambda network: network.layers[0].weight, dense, jnp.reshape(turned, weight.shape))


@dataclass(frozen=True)
class Conv(Part, kind="conv"):
    """Describes a convolutional network: ``Conv((3, 32, 32), channels=(32,), kernel=3, outputs=10)``.

    Args:
        image: channels, height and width of a sample.
        channels: output channels of each convolution layer.
        kernel: side m of the m x m kernels.
        outputs: number of outputs d.
        hidden: widths of dense hidden layers between convolutions and output.
        activation: of the convolution layers, one name or function for all, or one for each.
        dense_activation: of the dense hidden layers.
        padding: zeros added at each side of an image.
        output_bias: the output layer has a bias.
        dropout: share of the dense hidden neurons that a training step leaves out.
    """

    norms: ClassVar[tuple[NormShape, ...]] = ()

    image: tuple[Count, Count, Count]
    channels: tuple[Count, ...]
    kernel: Count
    outputs: Count
    hidden: tuple[Count, ...] = ()
    activation: Activation | tuple[Activation, ...] = "tanh"
    dense_activation: Activation = "relu"
    padding: Annotated[int, partial(check_whole, least=0)] = 0
    output_bias: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.channels:
            raise InputError("a convolutional network needs at least one convolution layer, not channels=()")
        check_dropout(self.dropout, self.hidden)
        if min(self.sides()[-1]) < 1:
            raise InputError(
                f"{len(self.channels)} layers of {self.kernel} x {self.kernel} kernels leave nothing of an image "
                f"of {self.image[1]} x {self.image[2]}"
            )
        if isinstance(self.activation, tuple) and len(self.activation) != len(self.channels):
            raise InputError(
                f"{len(self.activation)} activations were given for {len(self.channels)} convolution layers: "
                "give one name for all, or one for each"
            )
        for activation in self.activations:
            get_activation(activation)

    def sides(self) -> list[tuple[int, int]]:
        """Height and width of the input and after each convolution layer."""
        shrink = self.kernel - 1 - 2 * self.padding
        return [(self.image[1] - k * shrink, self.image[2] - k * shrink) for k in range(len(self.channels) + 1)]

    @property
    def passed_on(self) -> int:
        """Numbers that all layers together give for one sample."""
        images = zip(self.channels, self.sides()[1:], strict=True)
        return sum(channels * height * width for channels, (height, width) in images) + sum(self.hidden) + self.outputs

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample: channels, height, width."""
        return self.image

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The activation of each hidden layer, convolutions first."""
        single = not isinstance(self.activation, tuple)
        first = (self.activation,) * len(self.channels) if single else self.activation
        return (*first, *(self.dense_activation,) * len(self.hidden))  # type: ignore[misc]

    @property
    def layers(self) -> tuple[LayerShape, ...]:
        """Name and shape of each layer with weights: conv1, ..., dense1, ..., output.

        >>> [(layer.name, layer.weight) for layer in Conv((3, 8, 8), channels=(4,), kernel=3, outputs=10).layers]
        [('conv1', (4, 3, 3, 3)), ('output', (10, 144))]
        """
        ins = (self.image[0], *self.channels)
        convolutions = [
            LayerShape(f"conv{k + 1}", (out, ins[k], self.kernel, self.kernel), True)
            for k, out in enumerate(self.channels)
        ]
        height, width = self.sides()[-1]
        widths = (self.channels[-1] * height * width, *self.hidden, self.outputs)
        return (*convolutions, *dense_layers(widths, True, self.output_bias))

    def patch_numbers(self, samples: int, itemsize: int) -> int:
        """Numbers in the patches that are made of so many images; 0 where none are made."""
        return patch_numbers(samples, self.sides()[1], self.image[0], self.kernel, itemsize)

    def arrange(self, x: Float[np.ndarray, "samples channels h w"]) -> Any:
        """Images of a whole training as the network reads them fastest on this device."""
        return Patches.of(x, self.kernel, self.padding) if self.patch_numbers(len(x), x.itemsize) else x

    def describe(self) -> str:
        """The network in words; its layers have a bias where nothing is said.

        >>> Conv((3, 32, 32), (32,) * 3, kernel=5, outputs=10, hidden=(1024,), output_bias=True).describe()
        '3 convolution layers of 32 channels, 5 x 5 kernels, tanh; dense 1024 (relu); 10 outputs'
        """
        count = len(self.channels)
        channels = (
            counted(self.channels[0], "channel") if len({*self.channels}) == 1 else f"{listed(self.channels)} channels"
        )
        padding = f", padding {self.padding}" if self.padding else ""
        activations = describe_activations(self.activations[:count])
        head = describe_head(self.hidden, self.activations[count:], self.outputs, self.output_bias, self.dropout)
        return (
            f"{counted(count, 'convolution layer')} of {channels}, {self.kernel} x {self.kernel} kernels{padding}, "
            f"{activations}; {head}"
        )

    def assemble(self, parameters: dict[str, Any]) -> ConvNetwork:
        """The network with the given parameters, by name (``conv1.weight``, ``conv1.bias``, ...)."""
        count = len(self.channels)
        first, behind = self.layers[:count], self.layers[count:]
        return ConvNetwork(
            tuple(
                Convolution(parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"], self.padding)
                for layer in first
            ),
            tuple(map(get_activation, self.activations[:count])),
            DenseNetwork.of(behind, parameters, self.activations[count:], False, self.dropout),
        )
