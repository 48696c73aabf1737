"""Copies of the watched weights of one step, measured later: what a parameter is read from, the model or a copy.

On a GPU a copy keeps no step waiting. The parameters are copied within the device in the order of the training's own
work, and from there to pinned memory beside it; they are measured once they have arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..weights import Units
from ._looking import undisturbed

Key = tuple[str, str]  # the path of a module, and the name of its parameter
MOST = 2**28  # bytes of copies that wait to be measured
MANY = 8  # copies that wait


@dataclass
class Copies:
    """The parameters of one step, and the loss that was told with it."""

    step: int
    loss: Any = None
    values: dict[Key, torch.Tensor] = field(default_factory=dict)
    arrived: list[torch.cuda.Event] = field(default_factory=list)

    @property
    def ready(self) -> bool:
        """Whether all of them are there."""
        return all(event.query() for event in self.arrived)

    @contextmanager
    def read(self) -> Iterator[None]:
        """Within, units have the weights of this step."""
        for event in self.arrived:
            event.synchronize()
        token = _SOURCE.set(lambda key, _: self.values[key])
        try:
            yield
        finally:
            _SOURCE.reset(token)


_SOURCE: ContextVar[Callable[[Key, Callable[[], torch.Tensor]], torch.Tensor] | None] = ContextVar(
    "source", default=None
)


def parameter(model: nn.Module, prefix: str, name: str, made: Callable[[nn.Module, str], Any]) -> torch.Tensor:
    """A parameter as it is now, or as it was when it was copied."""

    def now() -> torch.Tensor:
        value = made(model.get_submodule(prefix), name)  # found anew each time: a module may have been replaced
        return value if isinstance(value, torch.Tensor) else value()

    source = _SOURCE.get()
    return now() if source is None else source((prefix, name), now)


class Copier:
    """Copies what some units read."""

    def __init__(self, units: Sequence[Units]) -> None:
        self._units, self._now = units, dict[Key, Callable[[], torch.Tensor]]()
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def _look(self) -> None:
        """Read all units once: that tells which parameters they are made of."""

        def noted(key: Key, now: Callable[[], torch.Tensor]) -> torch.Tensor:
            self._now[key] = now
            return now()

        token = _SOURCE.set(noted)
        try:
            for layer in self._units:
                layer.weights()
        finally:
            _SOURCE.reset(token)

    def take(self, step: int, loss: Any, waiting: int = 0) -> Copies | None:
        """The parameters as they are now; None where one cannot be copied, or as many wait as there is room for."""
        if waiting >= MANY or (waiting + 1) * sum(4 * layer.units * layer.inputs for layer in self._units) > MOST:
            return None
        try:
            with undisturbed():
                if not self._now:
                    self._look()
                copies = Copies(step, loss)
                for key, now in self._now.items():
                    copies.values[key] = self._copied(now().detach())
            for stream in self._streams.values():
                event = torch.cuda.Event()
                event.record(stream)
                copies.arrived.append(event)
        except Exception:  # a model can be changed in many ways: a measurement tells the reason of each layer
            return None
        return copies

    def _copied(self, value: torch.Tensor) -> torch.Tensor:
        # in the order of the training: the next step cannot change what is copied
        copy = value.dequantize() if value.is_quantized else value.clone()
        if not copy.is_cuda:
            return copy.cpu()
        beside = self._streams.setdefault(copy.device, torch.cuda.Stream(copy.device))
        beside.wait_stream(torch.cuda.current_stream(copy.device))
        there = torch.empty(copy.shape, dtype=copy.dtype, pin_memory=True)
        with torch.cuda.stream(beside):
            there.copy_(copy, non_blocking=True)
        copy.record_stream(beside)
        return there
