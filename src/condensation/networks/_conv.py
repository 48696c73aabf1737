r"""Convolutional networks: H convolution layers, dense hidden layers behind them or none, and an output layer.

$x^{[l]}_{uv\beta} = \sigma(\sum_\alpha \sum_{pq} x^{[l-1]}_{su+p,sv+q,\alpha} W^{[l]}_{pq\alpha\beta} + b^{[l]}_\beta)$
with the stride s; images are channels x height x width. Pooling stands behind the activation: the largest value, the
mean or the sum of each window.
"""

from __future__ import annotations

import math
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
from ..errors import InputError, check_whole, one_of
from ._arrangement import Patches, patch_numbers
from ._dense import DenseNetwork, check_dropout, dense_layers, describe_head
from ._geometry import PADDINGS, POOLINGS, WHOLE, Geometry, Sides, as_image
from ._layer import LayerShape
from ._norm import NormShape

Padding = Annotated[int, partial(check_whole, least=0)] | Annotated[str, one_of("padding", PADDINGS)]
Pooling = Annotated[str, one_of("pooling", POOLINGS)]
PoolSize = Count | Annotated[str, one_of("pool size", (WHOLE,))]


def convolve(
    x: Float[Array, "samples ..."],
    weight: Float[Array, "outputs inputs m n"],
    padding: tuple[Sides, Sides],
    stride: Sides = (1, 1),
    axes: tuple[str, str] = ("NCHW", "NCHW"),
) -> Float[Array, "samples ..."]:
    """All kernels over all images, ``padding`` zeros at their sides; ``axes`` are the images' before and after."""
    layout = (axes[0], "OIHW", axes[1])
    return lax.conv_general_dilated(x, weight, stride, padding, dimension_numbers=layout)


class Convolution(eqx.Module):
    """The map of a convolution layer, before the activation."""

    weight: Float[Array | np.ndarray, "outputs inputs *kernel"]
    bias: Float[Array | np.ndarray, " outputs"]
    geometry: Geometry = eqx.field(static=True)

    def __call__(self, x: Float[Array | np.ndarray, "samples inputs h w"]) -> Float[Array, "samples outputs h2 w2"]:
        """Weight convolved with a batch of images, plus bias."""
        return self._on(jnp.asarray(x), ("NCHW", "NCHW")) + self.bias[:, None, None]

    def on_last(self, x: Float[Array, "samples h w inputs"] | Patches, turn: bool) -> Float[Array, "samples ..."]:
        """The same for images whose channels stand last, or for their patches; ``turn`` puts them first again."""
        bias = jnp.asarray(self.bias)
        if isinstance(x, Patches):
            weight = jnp.asarray(self.weight)
            filters = jnp.concatenate([jnp.reshape(weight, (len(weight), -1)), bias[:, None]], 1)
            values = jnp.asarray(x.values)
            return jnp.swapaxes(jnp.tensordot(filters, values, (1, 3)), 0, 1) if turn else values @ filters.T
        axes = ("NHWC", "NCHW" if turn else "NHWC")
        return self._on(x, axes) + (bias[:, None, None] if turn else bias)

    def _on(self, x: Float[Array, "samples ..."], axes: tuple[str, str]) -> Float[Array, "samples ..."]:
        geometry, weight = self.geometry, jnp.asarray(self.weight)
        if weight.ndim == 3:  # outputs x inputs x length
            weight = weight[:, :, None]
        return convolve(x, weight, geometry.padding, geometry.stride, axes)


class ConvNetwork(eqx.Module):
    """One convolutional network: a value that can be called on images."""

    convolutions: tuple[Convolution, ...]
    activations: tuple[Function, ...] = eqx.field(static=True)
    dense: DenseNetwork
    image: tuple[int, int, int] = eqx.field(static=True)  # channels, height, width

    def __call__(
        self, x: Float[Array | np.ndarray, "samples ..."] | Patches, key: Any = None
    ) -> Float[Array, "samples outputs"]:
        """The outputs for a batch of images, or of their patches; with a key, dropout is active.

        Channels stand last inside: a CPU's convolutions want that, and a GPU's keep them so whatever is said. The
        dense layers want them first; either their weights are turned or the images, whichever are less.
        """
        samples = len(x.values if isinstance(x, Patches) else x)
        turn_weights = self.dense.layers[0].weight.shape[0] < samples
        if not isinstance(x, Patches) and x.ndim < 4:
            x = jnp.reshape(jnp.asarray(x), (samples, *self.image))
        h: Any = x if isinstance(x, Patches) or not on_cpu() else jnp.moveaxis(jnp.asarray(x), 1, -1)
        for layer, activation in zip(self.convolutions, self.activations, strict=True):
            turn = layer is self.convolutions[-1] and not turn_weights
            h = activation(layer.on_last(h, turn) if on_cpu() else layer(h))
            h = layer.geometry.pool(h, (2, 3) if turn or not on_cpu() else (1, 2))
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

    A convolution of one dimension, whose output is the sum over the places of one kernel, on samples of 5 coordinates:
    ``Conv((5,), channels=(50,), kernel=3, outputs=1, pooling="sum", pool_size="all")``.

    Args:
        image: channels, height and width of a sample; channels and length, or a length alone, for one dimension.
        channels: output channels of each convolution layer.
        kernel: side m of the m x m kernels, or the length of those of one dimension; for all layers, or one for each.
        outputs: number of outputs d.
        hidden: widths of dense hidden layers between convolutions and output.
        activation: of the convolution layers, one name or function for all, or one for each.
        dense_activation: of the dense hidden layers.
        padding: zeros added at each side of an image, or ``"valid"`` for none, or ``"same"`` for as many as keep its
            size at stride 1 (m - 1 together, of an odd number one more behind); for all layers, or one for each.
        output_bias: the output layer has a bias.
        dropout: share of the dense hidden neurons that a training step leaves out.
        stride: distance of the places of a kernel, 1 if not given; for all layers, or one for each.
        pooling: ``"max"``, ``"average"`` or ``"sum"`` of the values in each window, behind the activation; for all
            layers, or one for each.
        pool_size: side of these windows, 2 if not given; they do not overlap, and what is left over at the end is in
            none. ``"all"`` is the whole image: the next layer then sees no places. 1 is no pooling. For all layers, or
            one for each.
    """

    norms: ClassVar[tuple[NormShape, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()

    image: tuple[Count, ...]
    channels: tuple[Count, ...]
    kernel: Count | tuple[Count, ...]
    outputs: Count
    hidden: tuple[Count, ...] = ()
    activation: Activation | tuple[Activation, ...] = "tanh"
    dense_activation: Activation = "relu"
    padding: Padding | tuple[Padding, ...] = 0
    output_bias: bool = False
    dropout: float = 0.0
    stride: Count | tuple[Count, ...] | None = None
    pooling: Pooling | tuple[Pooling, ...] | None = None
    pool_size: PoolSize | tuple[PoolSize, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.image) <= 3:
            raise InputError(
                f"image is channels, height and width, or channels and length, or a length, not {self.image}"
            )
        if not self.channels:
            raise InputError("a convolutional network needs at least one convolution layer, not channels=()")
        if self.pool_size is not None and self.pooling is None:
            raise InputError(f"pool_size = {self.pool_size!r} needs a pooling, one of {', '.join(POOLINGS)}")
        check_dropout(self.dropout, self.hidden)
        if any(min(*one.places, *one.pooled) < 1 for one in self.geometry):
            layers, (_, height, width) = counted(len(self.channels), "layer"), as_image(self.image)
            image = f"an image of {height} x {width}" if len(self.image) == 3 else f"a sample of length {width}"
            what = f"{layers} of {', '.join(self._describe_geometry())}"
            raise InputError(f"{what} leave{'s' * (len(self.channels) == 1)} nothing of {image}")
        for activation in self.activations:
            get_activation(activation)

    def _each(self, field: str) -> tuple[Any, ...]:
        """A field's value for each convolution layer."""
        value, count = getattr(self, field), len(self.channels)
        if isinstance(value, tuple) and len(value) != count:
            many = f"{field}s" if field in ("activation", "kernel", "stride") else f"values of {field}"
            layers = counted(count, "convolution layer")
            raise InputError(f"{len(value)} {many} were given for {layers}: give one for all, or one for each")
        return value if isinstance(value, tuple) else (value,) * count

    @property
    def geometry(self) -> tuple[Geometry, ...]:
        """Where the kernels of each convolution layer lie, and what is pooled behind it."""
        shape, found = self.image, []
        for each in zip(*map(self._each, ("kernel", "stride", "padding", "pooling", "pool_size")), strict=True):
            found.append(Geometry.of(shape, *each))
            shape = (1, *found[-1].pooled) if len(self.image) == 3 else found[-1].pooled[1:]  # channels do not matter
        return tuple(found)

    def sides(self) -> list[tuple[int, int]]:
        """Height and width of the input and after each convolution layer, pooling included."""
        return [as_image(self.image)[1:], *(one.pooled for one in self.geometry)]

    @property
    def passed_on(self) -> int:
        """Numbers that all layers together give for one sample."""
        images = zip(self.channels, self.geometry, strict=True)
        numbers = [
            channels * (math.prod(one.places) + (math.prod(one.pooled) if one.pools else 0)) for channels, one in images
        ]
        return sum(numbers) + sum(self.hidden) + self.outputs

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.image

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The activation of each hidden layer, convolutions first."""
        return (*self._each("activation"), *(self.dense_activation,) * len(self.hidden))

    @property
    def layers(self) -> tuple[LayerShape, ...]:
        """Name and shape of each layer with weights: conv1, ..., dense1, ..., output.

        >>> [(layer.name, layer.weight) for layer in Conv((3, 8, 8), channels=(4,), kernel=3, outputs=10).layers]
        [('conv1', (4, 3, 3, 3)), ('output', (10, 144))]
        """
        ins = (as_image(self.image)[0], *self.channels)
        convolutions = [
            LayerShape(f"conv{k + 1}", (out, ins[k], *one.kernel[0 if len(self.image) == 3 else 1 :]), True)
            for k, (out, one) in enumerate(zip(self.channels, self.geometry, strict=True))
        ]
        height, width = self.geometry[-1].pooled
        widths = (self.channels[-1] * height * width, *self.hidden, self.outputs)
        return (*convolutions, *dense_layers(widths, True, self.output_bias))

    def patch_numbers(self, samples: int, itemsize: int) -> int:
        """Numbers in the patches that are made of so many images; 0 where none are made."""
        return patch_numbers(samples, as_image(self.image)[0], self.geometry[0], itemsize)

    def arrange(self, x: Float[np.ndarray, "samples ..."]) -> Any:
        """Images of a whole training as the network reads them fastest on this device."""
        if not self.patch_numbers(len(x), x.itemsize):
            return x
        return Patches.of(x.reshape(len(x), *as_image(self.image)), self.geometry[0])

    def describe(self) -> str:
        """The network in words; its layers have a bias where nothing is said.

        >>> Conv((3, 32, 32), (32,) * 3, kernel=5, outputs=10, hidden=(1024,), output_bias=True).describe()
        '3 convolution layers of 32 channels, 5 x 5 kernels, tanh; dense 1024 (relu); 10 outputs'
        >>> Conv((5,), (50,), 3, 1, pooling="sum", pool_size="all").describe()
        'one convolution layer of 50 channels, kernels of length 3, tanh, sum of all places; one output, no output bias'
        """
        count = len(self.channels)
        channels = (
            counted(self.channels[0], "channel") if len({*self.channels}) == 1 else f"{listed(self.channels)} channels"
        )
        activations = describe_activations(self.activations[:count])
        head = describe_head(self.hidden, self.activations[count:], self.outputs, self.output_bias, self.dropout)
        kernels, *pooling = self._describe_geometry()
        layers = f"{counted(count, 'convolution layer')} of {channels}"
        return f"{', '.join([layers, kernels, activations, *pooling])}; {head}"

    def _describe_geometry(self) -> list[str]:
        """Kernels with stride and padding in words; behind them the pooling, if there is any."""
        flat = len(self.image) < 3

        def tell(values: tuple[Any, ...]) -> str:
            return str(values[0]) if len(set(values)) == 1 else listed(values)

        sides = tell(self._each("kernel") if flat else tuple(f"{m} x {m}" for m in self._each("kernel")))
        phrases = [f"kernels of length {sides}" if flat else f"{sides} kernels"]
        if self.stride not in (None, 1):
            phrases.append(f"stride {tell(self._each('stride'))}")
        if self.padding not in (0, "valid"):
            phrases.append(f"padding {tell(self._each('padding'))}")
        described = [", ".join(phrases)]
        if self.pooling is not None:
            pairs = zip(self._each("pooling"), self._each("pool_size"), strict=True)
            described.append(tell(tuple(_describe_pooling(pooling, size or 2, flat) for pooling, size in pairs)))
        return described

    def assemble(self, parameters: dict[str, Any]) -> ConvNetwork:
        """The network with the given parameters, by name (``conv1.weight``, ``conv1.bias``, ...)."""
        count = len(self.channels)
        first, behind = self.layers[:count], self.layers[count:]
        return ConvNetwork(
            tuple(
                Convolution(parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"], geometry)
                for layer, geometry in zip(first, self.geometry, strict=True)
            ),
            tuple(map(get_activation, self.activations[:count])),
            DenseNetwork.of(behind, parameters, self.activations[count:], False, self.dropout),
            as_image(self.image),
        )


def _describe_pooling(pooling: str, size: int | str, flat: bool) -> str:
    if size == WHOLE:
        return f"{pooling} of all places"
    if size == 1:
        return "no pooling"
    return f"{pooling} pooling of {size if flat else f'{size} x {size}'}"
