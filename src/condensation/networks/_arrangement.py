"""Samples that do not change during a training, arranged once as the first layer's product reads them on a CPU.

A dense layer reads *columns*. A convolution is a product with *patches*: for each place of a kernel the pixels under
it, and a last 1 for the bias, as in a filter's input weight. Forward and backward through the layer then take half of
the time of XLA's convolutions. Patches hold kernel² times as many numbers as the images, so they are made only where
they take at most ``PATCH_BYTES``: 500 images of CIFAR-10 and 5 x 5 kernels are 119 MB, all 50,000 would be 12 GB.
"""

import math
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Float

from .._device import on_cpu

PATCH_BYTES = 2**28


class Columns(eqx.Module):
    """Samples that stand as columns."""

    T: Float[Array | np.ndarray, "inputs samples"]


class Patches(eqx.Module):
    """Images as the pixels under each place of a kernel, and a 1."""

    values: Float[Array | np.ndarray, "samples h2 w2 pixels_and_1"]

    @staticmethod
    def of(x: Float[np.ndarray, "samples inputs h w"], kernel: int, padding: int) -> "Patches":
        """The patches of some images.

        >>> Patches.of(np.arange(4.0).reshape(1, 1, 2, 2), kernel=1, padding=0).values.tolist()
        [[[[0.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [3.0, 1.0]]]]
        """
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        under = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        samples, inputs, height, width = under.shape[:4]
        values = np.ones((samples, height, width, inputs * kernel**2 + 1), x.dtype)
        pixels = values[..., :-1].reshape(samples, height, width, inputs, kernel, kernel, copy=False)
        pixels[:] = under.transpose(0, 2, 3, 1, 4, 5)
        return Patches(values)


def patch_numbers(samples: int, sides: tuple[int, int], inputs: int, kernel: int, itemsize: int) -> int:
    """Numbers in the patches of a first convolution layer with outputs of some sides; 0 where they are not made."""
    count = samples * math.prod(sides) * (inputs * kernel**2 + 1)
    return count if on_cpu() and count * itemsize <= PATCH_BYTES else 0


def in_columns(x: Float[np.ndarray, "samples inputs"]) -> Any:
    """Samples as columns on a CPU, else as they are."""
    return Columns(np.ascontiguousarray(x.T)) if on_cpu() else x
