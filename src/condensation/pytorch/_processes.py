"""A training of several processes: who watches, and what all of them do together."""

import os
from typing import Any, TypeVar

import torch
from torch import distributed, nn

T = TypeVar("T")


def rank() -> int:
    """The number of this process among those of a distributed training; 0 if there are no others."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    number = os.environ.get("RANK", "")  # torchrun's, before torch.distributed is initialised
    return int(number) if number.isdecimal() else 0


def is_sharded(model: nn.Module) -> bool:
    """Whether parameters are spread over processes (FSDP2, tensor parallel): all of them have to read together."""
    return any(is_dtensor(value) for value in model.parameters())


def is_dtensor(value: torch.Tensor) -> bool:
    """Whether a tensor is spread over processes."""
    return hasattr(value, "full_tensor") and hasattr(value, "device_mesh")


def first_says(answer: T) -> T:
    """What the first process says, in all of them."""
    told: list[Any] = [answer]
    distributed.broadcast_object_list(told, src=0)
    return told[0]


def class_name(model: nn.Module) -> str:
    """The name of a model's class, without what FSDP2 puts before it."""
    own = type(model)
    made = [base for base in own.__bases__ if base.__name__ == "FSDPModule"]
    return next(base.__name__ for base in own.__bases__ if base not in made) if made else own.__name__
