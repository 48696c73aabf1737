"""Modules whose layers are hidden in one parameter or in the wrong order, laid open as dense layers, and back.

``nn.LSTM``, ``nn.GRU``, ``nn.RNN``, ``nn.MultiheadAttention`` and GPT-2's ``Conv1D``. All else then sees dense layers
only. What is opened must compute what it did; what does not is left as it was, with the reason.
"""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import nn

from .attention import OpenAttention, keep_padding
from .matrix import dense, is_conv1d, trained
from .recurrent import OpenRecurrent
from .trace import ModelInputs, call, tensors

ERRORS = (RuntimeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, AttributeError)


def opened(model: nn.Module, inputs: ModelInputs) -> tuple[nn.Module, dict[str, str]]:
    """A copy in which all is opened that can be, or the model where nothing is; and what cannot be, with the reason."""
    if all(isinstance(_opener(module), str) for module in model.modules()):
        return model, {name: reason for name, module in model.named_modules() if (reason := _reason(module))}
    model, reasons = deepcopy(model), {}
    before = None
    for name, module in list(model.named_modules()):
        make = _opener(module)
        if isinstance(make, str) or not name:
            problem = make if isinstance(make, str) else "it is the model itself: put it into a module"
            reasons |= {name: problem} if problem else {}
            continue
        if shared := _shared(module, model):
            reasons[name] = f"its {shared} is shared"
            continue
        before = _answers(model, inputs) if before is None else before
        replace_module(model, name, make(module))
        problem = ""
        try:
            after = _answers(model, inputs)
            near = 1e-3 if any(value.dtype.itemsize < 4 for value in before) else 1e-5
            same = len(after) == len(before) and all(
                one.shape == other.shape and _close(one, other, near) for one, other in zip(before, after, strict=True)
            )
            problem = "" if same else "as dense layers it computes something else"
        except ERRORS as error:
            problem = f"it is used in a way that is not followed ({type(error).__name__}: {error})"
        if problem:
            replace_module(model, name, module)
            reasons[name] = problem
    return model, reasons


def drop_values(model: nn.Module) -> None:
    """Leave out the values of attention heads that the output does not tell apart; nothing is lost."""
    for module in model.modules():
        if isinstance(module, OpenAttention):
            module.fewer_values()


def closed(model: nn.Module, given: nn.Module) -> nn.Module:
    """The model with its modules as they were in the given one, as far as they have room for what is left of them."""
    originals = dict(given.named_modules())
    for name, module in list(model.named_modules()):
        before = originals.get(name)
        if isinstance(module, OpenRecurrent):
            replace_module(model, name, module.folded())
        elif isinstance(module, OpenAttention):
            replace_module(model, name, module.folded(before) if isinstance(before, nn.MultiheadAttention) else module)
        elif isinstance(module, nn.Linear) and before is not None and is_conv1d(before):
            replace_module(model, name, _conv1d(module, before))
    keep_padding(model)
    return model


def replace_module(model: nn.Module, name: str, module: nn.Module) -> None:
    """Put a module in the place of another."""
    above, _, own = name.rpartition(".")
    setattr(model.get_submodule(above), own, module)


def same_answers(given: nn.Module, other: nn.Module, inputs: ModelInputs) -> bool:
    """Whether two models answer the same up to rounding, of which deep ones have much."""
    pairs = zip(_answers(given, inputs), _answers(other, inputs), strict=True)
    return all(_close(one, two, torch.finfo(one.dtype).eps ** 0.5) for one, two in pairs)


def _opener(module: nn.Module) -> Callable[..., nn.Module] | str:
    """What opens a module; or why it cannot be opened; or nothing."""
    if isinstance(module, nn.RNNBase):
        own = type(module) in (nn.LSTM, nn.GRU, nn.RNN)
        reason = "" if own else f"{type(module).__name__} has a forward of its own"
        return reason or ("it projects its states (proj_size)" if module.proj_size else OpenRecurrent)
    if isinstance(module, nn.MultiheadAttention):
        if type(module) is not nn.MultiheadAttention:
            return f"{type(module).__name__} has a forward of its own"
        extra = module.bias_k is not None or module.add_zero_attn
        return "it adds keys of its own (add_bias_kv, add_zero_attn)" if extra else OpenAttention
    return _linear if is_conv1d(module) else ""


def _reason(module: nn.Module) -> str:
    reason = _opener(module)
    return reason if isinstance(reason, str) else ""


def _linear(module: nn.Module) -> nn.Linear:
    weight, bias = (module.get_parameter(name) for name in ("weight", "bias"))
    return dense(weight.T, bias, *trained(weight, bias))


def _conv1d(layer: nn.Linear, before: nn.Module) -> nn.Module:
    new = type(before)(layer.out_features, layer.in_features)
    new.weight = nn.Parameter(layer.weight.detach().T.contiguous(), layer.weight.requires_grad)
    new.bias = nn.Parameter(layer.bias.detach().clone(), layer.bias.requires_grad)
    return new


def _shared(module: nn.Module, model: nn.Module) -> str:
    for name, value in module.named_parameters():
        if sum(other is value for _, other in model.named_parameters(remove_duplicate=False)) > 1:
            return name
    return ""


def _answers(model: nn.Module, inputs: ModelInputs) -> list[torch.Tensor]:
    torch.manual_seed(0)
    with torch.no_grad():
        return [value.detach().clone() for value in tensors(call(model, inputs))]


def _close(one: torch.Tensor, other: torch.Tensor, near: float) -> bool:
    one, other = (value.double().nan_to_num() for value in (one, other))
    return not one.numel() or float((one - other).abs().max()) <= near * max(float(one.abs().max()), 1e-6)
