"""What the layers of a model answered, so that a copy of it does not run them again on the same input.

Copies that share a layer's parameters and come to it with an equal input get the answer of the first run: the layers
before the first one that is changed. The answers are the same bit for bit. They are remembered as far as there is
memory for them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from .gpu import fits
from .trace import LAYERS, is_own

SHARE = 4  # of the free memory at most one part of so many is taken


@dataclass(frozen=True)
class _Answer:
    parameters: tuple[nn.Parameter, ...]
    given: torch.Tensor
    answered: torch.Tensor


class Recall:
    """The answers of the layers of one model, by the layer's name."""

    def __init__(self) -> None:
        self._answers: dict[str, _Answer] = {}
        self._bytes = 0

    @contextmanager
    def of(self, model: nn.Module) -> Iterator[None]:
        """Within this block the layers of a model are run where their answer is not known, which is then remembered."""
        layers = {name: part for name, part in model.named_modules() if isinstance(part, LAYERS) and is_own(part)}
        try:
            for name, layer in layers.items():
                layer.forward = partial(self._forward, name, tuple(layer.parameters()), layer.forward)
            yield
        finally:
            for layer in layers.values():
                vars(layer).pop("forward", None)

    def _forward(
        self,
        name: str,
        parameters: tuple[nn.Parameter, ...],
        forward: Callable[..., torch.Tensor],
        *args: Any,
        **named: Any,
    ) -> torch.Tensor:
        if named or len(args) != 1:
            return forward(*args, **named)
        known, given = self._answers.get(name), args[0]
        if known is None:
            return self._remembered(name, parameters, given, forward(given))
        shared = [*map(id, parameters)] == [*map(id, known.parameters)]
        if shared and given.shape == known.given.shape and torch.equal(given, known.given):
            return known.answered.clone()  # what comes next may write into it
        return forward(given)

    def _remembered(
        self, name: str, parameters: tuple[nn.Parameter, ...], given: torch.Tensor, answered: torch.Tensor
    ) -> torch.Tensor:
        needed = self._bytes + given.nbytes + answered.nbytes
        if fits(SHARE * needed, given.device):
            self._bytes = needed
            self._answers[name] = _Answer(parameters, given.clone(), answered.clone())
        return answered
