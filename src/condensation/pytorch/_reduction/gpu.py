"""What a GPU does otherwise than a CPU: it may round what is multiplied to ten bits, and has a memory of its own."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch

from ..._memory import fits as fits_the_machine

_DEFAULT: ContextVar[torch.device | None] = ContextVar("default", default=None)  # where the user has new tensors


@contextmanager
def drawn_on_the_cpu() -> Iterator[None]:
    """Within this block new tensors are on the CPU where ``torch.set_default_device`` has chosen another device."""
    default = torch.get_default_device()
    if default.type == "cpu":
        yield
        return
    token = _DEFAULT.set(default)
    try:
        with torch.device("cpu"):
            yield
    finally:
        _DEFAULT.reset(token)


def as_the_user_has_it() -> AbstractContextManager[Any]:
    """Where a model runs within that block: the tensors that its own code makes are on the user's device."""
    default = _DEFAULT.get()
    return nullcontext() if default is None else torch.device(default)


@contextmanager
def exact_products() -> Iterator[None]:
    """Within this block float32 products are not rounded to TF32, which would be errors of a part in a thousand."""
    parts: tuple[Any, ...] = (torch.backends.cudnn, torch.backends.cuda.matmul)
    try:
        before = [part.allow_tf32 for part in parts]
    except RuntimeError:  # set by PyTorch's newer fp32_precision: the user has chosen
        yield
        return
    try:
        for part in parts:
            part.allow_tf32 = False
        yield
    finally:
        for part, allowed in zip(parts, before, strict=True):
            part.allow_tf32 = allowed


def fits(needed: float, device: torch.device) -> bool:
    """Whether so many bytes can be had where a model is, as far as that is known."""
    if device.type != "cuda":
        return fits_the_machine(needed)
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return needed <= free + unused
