"""Where the kernels of a convolution layer lie on an image, and what is pooled behind its activation.

Inside, all samples are images of channels x height x width; one of channels x length has the height 1.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import lax

Sides = tuple[int, int]  # of height and width
POOLINGS = ("max", "average", "sum")
PADDINGS = ("same", "valid")
WHOLE = "all"  # a window as large as the image


@dataclass(frozen=True)
class Geometry:
    """The kernels of one layer on images of some sides, and the windows of its pooling, which do not overlap.

    >>> Geometry((28, 28), (5, 5), stride=(2, 2)).places
    (12, 12)
    >>> Geometry((1, 9), (1, 3), pooling="max", window=(1, 2)).pooled  # 7 places; the last one is in no window
    (1, 3)
    """

    image: Sides
    kernel: Sides
    stride: Sides = (1, 1)
    padding: tuple[Sides, Sides] = ((0, 0), (0, 0))  # zeros before and behind, of rows and of columns
    pooling: str | None = None
    window: Sides = (1, 1)

    @staticmethod
    def of(
        shape: tuple[int, ...],
        kernel: int,
        stride: int | None,
        padding: int | str,
        pooling: str | None,
        pool_size: int | str | None,
    ) -> "Geometry":
        """The geometry on samples of a shape (``as_image``) by sides; ``None`` is stride 1, and a window of 2."""
        flat, image = len(shape) < 3, as_image(shape)[1:]

        def both(side: int) -> Sides:
            return (1, side) if flat else (side, side)

        number = 0 if isinstance(padding, str) else padding
        zeros = ((kernel - 1) // 2, kernel // 2) if padding == "same" else (number, number)
        around = ((0, 0) if flat else zeros, zeros)
        bare = Geometry(image, both(kernel), both(stride or 1), around)
        if pooling is None or min(bare.places) < 1:
            return bare
        window = bare.places if pool_size == WHOLE else both(int(pool_size or 2))
        return Geometry(image, bare.kernel, bare.stride, around, pooling, window)

    @property
    def places(self) -> Sides:
        """How many places a kernel has, by height and width."""
        image, kernel, stride, padding = self.image, self.kernel, self.stride, self.padding
        high, wide = ((image[k] + sum(padding[k]) - kernel[k]) // stride[k] + 1 for k in (0, 1))
        return high, wide

    @property
    def pooled(self) -> Sides:
        """Height and width of what the layer gives."""
        high, wide = (places // window for places, window in zip(self.places, self.window, strict=True))
        return high, wide

    @property
    def pools(self) -> bool:
        """Whether a window has more than one place."""
        return self.pooling is not None and self.window != (1, 1)

    @property
    def summed(self) -> int:
        """By what pooling multiplies a constant: the size of its windows where these are summed."""
        return math.prod(self.window) if self.pooling == "sum" else 1

    def pool(self, h: Any, axes: Sides) -> Any:
        """Images pooled along the axes of height and width; what is left over at the end is in no window.

        >>> Geometry((1, 4), (1, 1), pooling="sum", window=(1, 3)).pool(np.arange(4.0)[None], (0, 1))
        array([[3.]])
        """
        if not self.pools:
            return h
        if self.pooling == "max":
            sides = dict(zip(axes, self.window, strict=True))
            window = tuple(sides.get(axis, 1) for axis in range(h.ndim))
            return lax.reduce_window(h, -np.inf, lax.max, window, window, "VALID")
        for axis, count, side in zip(axes, self.pooled, self.window, strict=True):
            whole = h[(slice(None),) * axis + (slice(count * side),)]
            h = whole.reshape(*h.shape[:axis], count, side, *h.shape[axis + 1 :]).sum(axis + 1)
        return h / math.prod(self.window) if self.pooling == "average" else h


def as_image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels, height and width of a sample: given so, or as channels and length, or as a length alone.

    >>> as_image((3, 8, 8)), as_image((2, 9)), as_image((5,))
    ((3, 8, 8), (2, 1, 9), (1, 1, 5))
    """
    if len(shape) == 3:
        return shape[0], shape[1], shape[2]
    return (1 if len(shape) == 1 else shape[0]), 1, shape[-1]
