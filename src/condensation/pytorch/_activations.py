"""Activations as PyTorch modules, and the names of PyTorch's own."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ..activations import ACTIVATIONS, Activation, _values, label
from ..errors import InputError

TorchFunction = Callable[[torch.Tensor], torch.Tensor]
LOOKED_AT = np.linspace(-3, 3, 25)  # where an own function is compared with the one that takes its place
EQUAL = 1e-6  # times the largest value there


class Softplus(nn.Module):
    """log(1 + exp x) without the threshold of ``nn.Softplus``, beyond which that gives x."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The values."""
        return torch.logaddexp(x, torch.zeros_like(x))


class XTanh(nn.Module):
    """X tanh x."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The values."""
        return x * torch.tanh(x)


class X2Tanh(nn.Module):
    """X² tanh x."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The values."""
        return x * x * torch.tanh(x)


class Quadratic(nn.Module):
    """X²."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The values."""
        return x * x


class Own(nn.Module):
    """A function of the caller, in place of one that was written with jax.numpy."""

    def __init__(self, function: TorchFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The values."""
        return self.function(x)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "softplus": Softplus,
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "linear": nn.Identity,
    "quadratic": Quadratic,
    "x_tanh": XTanh,
    "x2_tanh": X2Tanh,
}
_NAMES = {module: name for name, module in MODULES.items() if name != "swish"} | {nn.Softplus: "softplus"}
_FIXED = {"negative_slope": 0.01, "approximate": "none", "beta": 1}  # options with which the names are used


def to_module(activation: Activation, own: Any = None) -> nn.Module:
    """The module of an activation; ``own`` takes the place of a function: one for all, or by the function."""
    name = _name_of(activation)
    if name in MODULES:
        return MODULES[name]()
    replacement = own.get(activation) if isinstance(own, Mapping) else own
    if replacement is None:
        raise InputError(
            f"PyTorch has no counterpart of the activation {label(activation)}, which is written with jax.numpy: pass "
            "the same function of tensors, to_torch(model, activation=...)"
        )
    module = replacement if isinstance(replacement, nn.Module) else Own(replacement)
    if any(True for _ in module.parameters()):
        raise InputError(f"an activation has no parameters, and {type(module).__name__} has some")
    _compare(activation, module)
    return module


def name_of_module(module: nn.Module) -> str | None:
    """The name of the activation that a module is; None where it is none of those that have a name.

    >>> name_of_module(nn.Tanh()), name_of_module(nn.GELU(approximate="tanh"))
    ('tanh', None)
    """
    usual = all(getattr(module, option, value) == value for option, value in _FIXED.items())
    return _NAMES.get(type(module)) if usual else None


def _name_of(activation: Activation) -> str | None:
    """The name of an activation; None for a function that has none."""
    if isinstance(activation, str):
        return activation
    return next((name for name, function in ACTIVATIONS.items() if function is activation), None)


def _compare(activation: Activation, module: nn.Module) -> None:
    """Refuse a function whose values are not those of the activation in whose place it stands."""
    expected = _values(activation, LOOKED_AT)
    try:
        found = np.asarray(module(torch.tensor(LOOKED_AT)).detach(), float)
    except Exception as error:
        raise InputError(f"the activation for PyTorch must be a function of a tensor: {error}") from error
    if found.shape != expected.shape:
        raise InputError(f"the activation for PyTorch gives an array of {found.shape} for one of {expected.shape}")
    off = np.abs(found - expected)
    if not off.max() <= EQUAL * max(1.0, np.abs(expected).max()):
        worst = int(np.nan_to_num(off, nan=np.inf).argmax())
        raise InputError(
            f"the activation for PyTorch is another function than {label(activation)}: at {LOOKED_AT[worst]:g} it is "
            f"{found[worst]:.6g}, not {expected[worst]:.6g}"
        )
