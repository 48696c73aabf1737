"""Sizes that a model's code has as numbers: ``x.view(-1, 256)`` does not follow when there are fewer channels."""

import math
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


class Views(TorchFunctionMode):
    """Writes down all views within a block."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[View] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note a view, and go on."""
        name = getattr(func, "__name__", "")
        if name in NAMES and args and isinstance(args[0], torch.Tensor):
            asked = (kwargs or {}).get("shape", args[1] if len(args) == 2 else args[1:])
            asked = (asked,) if isinstance(asked, int) else asked
            with suppress(TypeError, ValueError):  # a view as another type
                self.seen.append(View(name, tuple(int(size) for size in asked), tuple(args[0].shape)))
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
