"""What a model takes: parameters, multiply-adds of one sample, seconds of one batch on this machine."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from .samples import length
from .trace import ModelInputs, call, mapped

REPEATS = 5
LONG = 1.0  # seconds after which a batch is not run again to be timed


@dataclass(frozen=True)
class Cost:
    """Of one model; None where it cannot be counted."""

    parameters: int
    operations: int | None
    seconds: float


def cost(model: nn.Module, inputs: ModelInputs) -> Cost:
    """Count and time a model on a batch; operations are those of matrix products, convolutions and attention."""
    return Cost(count_parameters(model), operations(model, inputs), seconds(model, inputs))


def count_parameters(model: nn.Module) -> int:
    """Number of parameters; one that is shared counts once."""
    return sum(value.numel() for value in model.parameters())


def operations(model: nn.Module, inputs: ModelInputs) -> int | None:
    """Multiply-adds of one sample, counted on two where the model runs on so few."""
    size = length(inputs) or 1
    few = _flops(model, mapped(inputs, lambda value: value[:2])) if size > 2 else None
    if few is not None:
        return few // 2 // 2
    every = _flops(model, inputs)
    return None if every is None else every // 2 // size


def _flops(model: nn.Module, inputs: ModelInputs) -> int | None:
    counter: Any = FlopCounterMode(display=False)
    try:
        with torch.no_grad(), counter:
            call(model, inputs)
    except Exception:  # a model may use what cannot be counted
        return None
    return int(counter.get_total_flops())


def seconds(model: nn.Module, inputs: ModelInputs) -> float:
    """The least of a few runs, the first of which warms up."""
    device = next((value.device for value in model.parameters()), torch.device("cpu"))
    best = total = float("inf")
    with torch.no_grad():
        for k in range(REPEATS + 1):
            began = time.perf_counter()
            call(model, inputs)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            took = time.perf_counter() - began
            total = took if k == 0 else total + took
            best = took if k < 2 else min(best, took)
            if total > LONG:
                break
    return best
