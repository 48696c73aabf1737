"""Samples that do not change during a training, arranged once as the first layer's product reads them on a CPU.

A dense layer reads *columns*. A convolution is a product with *patches*: for each place of a kernel the pixels under
it, and a last 1 for the bias, as in a filter's input weight. Forward and backward through the layer then take half of
the time of XLA's convolutions. Patches hold kernel² times as many numbers as the images, so they are made only where
they take at most ``PATCH_BYTES``: 500 images of CIFAR-10 and 5 x 5 kernels are 119 MB, all 50,000 would be 12 GB.
One block of linear attention reads a sequence as its last token and a matrix of *moments*.
"""

import math
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from .._device import on_cpu
from ._geometry import Geometry

PATCH_BYTES = 2**28


class Columns(eqx.Module):
    """Samples that stand as columns."""

    T: Float[Array | np.ndarray, "inputs samples"]


class Patches(eqx.Module):
    """Images as the pixels under each place of a kernel, and a 1."""

    values: Float[Array | np.ndarray, "samples h2 w2 pixels_and_1"]

    @staticmethod
    def of(x: Float[np.ndarray, "samples inputs h w"], geometry: Geometry) -> "Patches":
        """The patches of some images.

        >>> Patches.of(np.arange(4.0).reshape(1, 1, 2, 2), Geometry((2, 2), kernel=(1, 1))).values.tolist()
        [[[[0.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [3.0, 1.0]]]]
        """
        under = windows(x, geometry)
        samples, inputs, height, width = under.shape[:4]
        values = np.ones((samples, height, width, inputs * math.prod(geometry.kernel) + 1), x.dtype)
        pixels = values[..., :-1].reshape(samples, height, width, inputs, *geometry.kernel, copy=False)
        pixels[:] = under.transpose(0, 2, 3, 1, 4, 5)
        return Patches(values)


class Moments(eqx.Module):
    """Sequences as linear attention reads them at their last token."""

    last: Float[Array | np.ndarray, "samples width"]
    products: Float[Array | np.ndarray, "samples keys values"]  # of keys' and values' inputs, summed over the tokens

    @staticmethod
    def of(x: Float[np.ndarray, "samples length width"], keys: int, value_from: int) -> "Moments":
        """The moments of some sequences, whose keys read the first coordinates, whose values those from another on.

        >>> Moments.of(np.array([[[1.0, 2.0], [3.0, 4.0]]]), 1, 1).products.tolist()  # 1 * 2 + 3 * 4
        [[[14.0]]]
        """
        return Moments(x[:, -1], np.einsum("njk,njv->nkv", x[..., :keys], x[..., value_from:]))


def windows(x: Float[np.ndarray, "samples inputs h w"], geometry: Geometry) -> Float[np.ndarray, "..."]:
    """What lies under a kernel: samples x inputs x its places (height, width) x its entries (height, width)."""
    padded = np.pad(x, ((0, 0), (0, 0), *geometry.padding))
    down, across = geometry.stride
    return np.lib.stride_tricks.sliding_window_view(padded, geometry.kernel, (2, 3))[:, :, ::down, ::across]


def patch_numbers(samples: int, inputs: int, geometry: Geometry, itemsize: int) -> int:
    """Numbers in the patches of a first convolution layer; 0 where they are not made."""
    count = samples * math.prod(geometry.places) * (inputs * math.prod(geometry.kernel) + 1)
    return count if on_cpu() and count * itemsize <= PATCH_BYTES else 0


def in_columns(x: Float[np.ndarray, "samples inputs"]) -> Any:
    """Samples as columns on a CPU, else as they are."""
    return Columns(np.ascontiguousarray(x.T)) if on_cpu() else x
