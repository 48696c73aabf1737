"""The given model: a copy of it to work on, and the sets of its channels, or a sentence about why there are none."""

import warnings
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from ...errors import InputError
from .._units import NOT_INITIALISED, unwrapped
from .channels import ChannelSet
from .graph import build_graph
from .samples import length
from .trace import ModelInputs, Trace, call, mapped, tensors


def checked_model(model: Any) -> nn.Module:
    """The user's own model, out of its wrappers; refused where its channels cannot be cut."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a torch.nn.Module, not a {type(model).__name__}")
    model = unwrapped(model)
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.modules()):
        raise InputError(
            "the model is compiled by TorchScript, whose shapes cannot be changed: pass the nn.Module it was made from"
        )
    if lazy := [name for name, value in model.named_parameters() if is_lazy(value)]:
        raise InputError(f"{lazy[0]} is {NOT_INITIALISED}")
    if not any(value.numel() for value in model.parameters()):
        quantised = any("quantized" in type(part).__module__ for part in model.modules())
        more = ": what is quantised is none, so reduce the model before it is quantised" if quantised else ""
        raise InputError(f"this {type(model).__name__} has no parameters, of which some could be left out{more}")
    if any(value.is_meta for value in (*model.parameters(), *model.buffers())):
        raise InputError("the model is on the meta device, where weights have no values: load them first")
    return model


def own_copy(model: nn.Module, inputs: ModelInputs) -> nn.Module:
    """The model in evaluation mode without gradients and without hooks, which must not change its answer."""
    made = [value for part in model.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)]
    try:  # a weight that was made from others (pruned, normed) can only be copied without its gradient function
        copy = deepcopy(model, {id(value): value.detach().clone() for value in made if not value.is_leaf}).eval()
    except Exception as problem:
        raise InputError(
            f"this {type(model).__name__} cannot be copied (copy.deepcopy: {type(problem).__name__}: {problem}), "
            "which keeps the given model as it is"
        ) from problem
    for value in copy.parameters():
        value.grad = None
    hooked = [(hooks, key) for module in copy.modules() for hooks in _hooks(module) for key in hooks]
    before = _answer(copy, inputs)
    if hooked:
        for hooks, key in hooked:
            del hooks[key]
        after = _answer(copy, inputs)
        shapes = [[value.shape for value in values] for values in (before, after)]
        if shapes[0] != shapes[1] or not all(map(partial(torch.allclose, equal_nan=True), before, after)):
            raise InputError(
                "forward hooks change what this model computes, and a reduced model has none: write it into its forward"
            )
    return copy


def _hooks(module: nn.Module) -> list[dict[int, Any]]:
    """The hooks of a module, those of PyTorch's own weight norm and its like left out."""
    every = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    own = "torch.nn."
    return [hooks for hooks in every if not any(type(hook).__module__.startswith(own) for hook in hooks.values())]


def _answer(model: nn.Module, inputs: ModelInputs, seed: int = 0) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    with torch.no_grad():
        return tensors(_run(model, inputs))


def _run(model: nn.Module, inputs: ModelInputs) -> Any:
    try:
        return call(model, inputs)
    except Exception as problem:
        raise InputError(
            f"the model cannot be run on its inputs (inputs= takes others): {type(problem).__name__}: {problem}"
        ) from problem


def mixes_samples(model: nn.Module, batch: ModelInputs) -> bool:
    """Whether the answer to the second sample of a batch depends on the first one's being there.

    So it does where the first axis is not that of samples (a recurrent layer wants it to be time), or where norms take
    the statistics of the batch. Nothing is said of a model that draws random numbers.
    """
    if (length(batch) or 0) < 2:
        return False
    both, alone = (mapped(batch, lambda value, first=first: value[first:2]) for first in (0, 1))
    try:
        before, again, after = _answer(model, both), _answer(model, both, 1), _answer(model, alone)
    except InputError:  # it takes other numbers of samples alone
        return False
    pairs = [(x[1:], y) for x, y in zip(before, after, strict=False) if x.ndim and len(x) == 2 and len(y) == 1]
    steady = all(map(partial(torch.allclose, equal_nan=True), before, again))
    return steady and any(
        float((x - y).abs().max()) > torch.finfo(x.dtype).eps ** 0.5 * float(x.abs().max()) for x, y in pairs if len(x)
    )


def channel_sets(given: nn.Module, inputs: ModelInputs) -> tuple[dict[str, ChannelSet], Trace, dict[str, str]]:
    """The sets of a model, traced on a copy all of whose parameters ask for gradients."""
    traced = deepcopy(given)
    for value in traced.parameters():
        if value.is_floating_point() or value.is_complex():
            value.requires_grad_(True)
    with torch.enable_grad():
        answer = _run(traced, inputs)
        if not any(tensor.requires_grad for tensor in tensors(answer)):
            raise InputError(
                "the model cannot be traced: autograd sees no way from its layers to its output (is there a "
                "torch.no_grad, a detach, or an output that is no tensor?)"
            )
        with warnings.catch_warnings(action="ignore"):  # the model has just been heard once
            return build_graph(traced, inputs)


def not_finite(coupled: ChannelSet, model: nn.Module) -> str:
    for name in (*coupled.channels, *coupled.columns):
        module = model.get_submodule(name)
        for value in (*module._parameters.values(), *module._buffers.values()):
            if value is not None and not bool(torch.isfinite(value).all()):
                holder = "it" if name == coupled.name else f"{name}, which belongs to it,"
                return f"{holder} holds NaN or Inf"
    return ""
