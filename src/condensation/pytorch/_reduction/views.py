"""Sizes that a model's code has as numbers: ``x.view(-1, 256)`` does not follow when there are fewer channels."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

NAMES = ("view", "reshape")


@dataclass(frozen=True)
class View:
    """A call of ``view`` or ``reshape``: the shape that was asked for, and that of what it was asked of."""

    name: str
    asked: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def given(self) -> tuple[float, ...]:
        """The shape that it makes, with the size that is left open; that is no whole number where it does not fit."""
        known = math.prod(size for size in self.asked if size != -1)
        return tuple(math.prod(self.shape) / max(known, 1) if size == -1 else size for size in self.asked)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.asked))})"


def asked_sizes(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[torch.Tensor, list[Any]] | None:
    """The tensor and the sizes of a call, where that is a view, however they are passed."""
    if getattr(func, "__name__", "") not in NAMES:
        return None
    tensor = args[0] if args else kwargs.get("input")
    sizes = args[1:] or (kwargs.get("shape", kwargs.get("size")),)
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        sizes = sizes[0]
    return (tensor, list(sizes)) if isinstance(tensor, torch.Tensor) else None


class Views(TorchFunctionMode):
    """Writes down all views within a block."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[View] = []

    def note(self, view: View) -> None:
        """Write down a view."""
        self.seen.append(view)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note a view, and go on."""
        if (called := asked_sizes(func, args, kwargs or {})) is not None:
            tensor, sizes = called
            with suppress(TypeError, ValueError):  # a view as another type
                self.note(View(func.__name__, tuple(int(size) for size in sizes), tuple(tensor.shape)))
        return func(*args, **(kwargs or {}))


def fixed_view(before: list[View], after: list[View]) -> str:
    """Why a model does not run with fewer channels, where it is a view that asks for as many as before; or nothing."""
    for old, new in zip(before, after, strict=False):
        if old.name != new.name:
            return ""
        fewer = math.prod(new.shape) != math.prod(old.shape)
        if fewer and old.asked == new.asked:
            broken = math.prod(new.given) != math.prod(new.shape) or new.given[0] != old.given[0]
            if broken or any(size != int(size) for size in new.given):
                flat = f"flatten(1) or {new.name}(x.size(0), -1)"
                better = flat if len(new.asked) == 2 else "one that is taken from the tensor"
                return f"the model's code has its size as a number, {new}: {better} would follow"
    return ""
