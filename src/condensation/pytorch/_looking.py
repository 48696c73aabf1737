"""A look at a model that leaves it, and the training around it, as they are."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

from ..errors import InputError
from ..measure import measure_units
from ..measure._table import NAN


@cache
def threads() -> ThreadpoolController:
    """The libraries with threads of their own, looked for once, after all that a measurement needs was imported."""
    measure_units("", np.ones((4, 3)))
    return ThreadpoolController()


def versions(parameters: Sequence[torch.Tensor]) -> list[int]:
    """How often each parameter was changed; none where PyTorch does not count that."""
    try:
        return [value._version for value in parameters]
    except RuntimeError:  # of inference mode
        return []


@contextmanager
def undisturbed() -> Iterator[None]:
    """Neither gradients nor autocast, whose cache of weights must not meet one that was made without gradients."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for kind in ("cpu", "cuda", "xpu", "mps"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def as_float(loss: Any) -> float:
    """A loss as a number, NaN where none was told."""
    if loss is None:
        return NAN
    try:
        return float(loss.detach() if isinstance(loss, torch.Tensor) else loss)
    except (TypeError, ValueError, RuntimeError):
        given = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
        raise InputError(f"the loss must be one number, not {given}") from None
