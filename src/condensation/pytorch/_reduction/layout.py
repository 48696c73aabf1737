"""Images with the channels of each pixel side by side, in which convolutions and their patches are faster on a CPU.

What layers make of such images is laid out likewise, and its values are the same up to rounding.
"""

from functools import partial

import torch
from torch import nn

from .samples import Part, Parts, length
from .trace import ModelInputs, call, mapped, tensors


def by_pixels(model: nn.Module, parts: Parts) -> Parts:
    """All batches so laid out, where a model has convolutions of images and its code runs on them with the same answer.

    A model that calls ``view`` on what a convolution gave does not.
    """
    images = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    if (
        not images
        or any(layer.weight.device.type != "cpu" for layer in images)
        or not _runs(model, parts.fit.batches[0])
    ):
        return parts
    return Parts(*(_laid_out(part) for part in (parts.fit, parts.choose, parts.judge)), notes=parts.notes)


def plain(batch: ModelInputs) -> ModelInputs:
    """A batch in the layout of a fresh tensor."""
    return mapped(batch, torch.Tensor.contiguous)


def _laid_out(part: Part) -> Part:
    return Part([mapped(batch, _pixels) for batch in part.batches], part.labels, part.fresh)


def _pixels(value: torch.Tensor) -> torch.Tensor:
    images = value.ndim == 4 and value.is_floating_point()
    return value.contiguous(memory_format=torch.channels_last) if images else value


def _runs(model: nn.Module, batch: ModelInputs) -> bool:
    some = mapped(batch, lambda value: value[:2]) if length(batch) else batch
    try:
        with torch.no_grad():
            before, after = (tensors(call(model, inputs)) for inputs in (some, mapped(some, _pixels)))
    except Exception:  # what is wrong with the data itself the judge says
        return False
    near = partial(torch.allclose, rtol=1e-3, atol=1e-4, equal_nan=True)
    return len(before) == len(after) and all(
        a.shape == b.shape and near(a, b) for a, b in zip(before, after, strict=True)
    )
