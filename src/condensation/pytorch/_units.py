"""The units of every parameter of a PyTorch model."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from ..errors import InputError
from ..weights import Units
from ..weights import _names as names
from ..weights._attention import Heads
from ..weights._layout import Read, UnitLayout, list_units
from ..weights._roles import DEPTHWISE, with_roles
from ._copies import parameter
from ._processes import is_dtensor

NOT_INITIALISED = "not initialised: the model has to see a batch first"
_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
_WRAPPERS = {
    **dict.fromkeys(("DistributedDataParallel", "DataParallel", "AveragedModel"), "module"),
    "OptimizedModule": "_orig_mod",
}


def units(model: nn.Module, *, heads: bool = True, view: str = "filter") -> list[Units]:
    """The units of every parameter, by name; what has none is listed with the reason.

    Args:
        model: any model, also inside DistributedDataParallel or compiled; it is only read.
        heads: cut the projections of attention layers into their heads.
        view: the units of convolution layers: ``"filter"``, all input channels of an output channel with its bias, or
            ``"kernel"``, one a pair of channels.

    >>> model = nn.Sequential(nn.Linear(5, 50), nn.ReLU(), nn.LayerNorm(50))
    >>> [(u.name, u.kind, u.units, u.inputs, u.reason) for u in units(model)][0]
    ('0.weight', 'neuron', 50, 6, '')
    """
    return listed(model, heads=heads, view=view)


def listed(model: nn.Module, *, heads: bool, view: str, sharded: bool = False) -> list[Units]:
    """The units; those of parameters that are spread over processes only where all processes will read them."""
    model = unwrapped(model)
    reads: dict[str, tuple[tuple[int, ...], Read]] = {}
    layouts: dict[str, UnitLayout | str] = {}
    seen: dict[tuple[Any, ...], str] = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        where = "".join(f"{part}." for part in prefix.split(".") if part not in ("", "_orig_mod"))
        own = {where + name: (name, value) for name, value in _parameters(module)}
        shapes = {name: () if is_lazy(value) else tuple(value.shape) for name, (_, value) in own.items()}
        for name, (short, value) in own.items():
            reads[name] = (shapes[name], partial(_read, model, prefix, short))
            key = _place(value)
            if key in seen:
                layouts[name] = f"tied: it is {seen[key]}"
                continue
            if key is not None:
                seen[key] = name
            reason = _unreadable(prefix, short, module, value, sharded)
            layouts[name] = reason or _layout(name, model, prefix, module, shapes)
    if not layouts:
        raise InputError(f"the model {type(model).__name__} has no parameters")
    layouts = with_roles(layouts, {name: shape for name, (shape, _) in reads.items()})
    return list_units(reads, layouts, heads=heads, view=view)


def unwrapped(model: nn.Module) -> nn.Module:
    """The user's own model, out of DistributedDataParallel, torch.compile and a moving average (AveragedModel)."""
    if not isinstance(model, nn.Module):
        saved = "; measure_arrays of condensation.weights takes arrays by name" if isinstance(model, Mapping) else ""
        raise InputError(f"a model must be a torch.nn.Module, not {type(model).__name__}{saved}")
    while isinstance(inner := getattr(model, _WRAPPERS.get(type(model).__name__, ""), None), nn.Module):
        model = inner
    if isinstance(model, torch.jit.ScriptModule):
        raise InputError(
            "the model is compiled by TorchScript: pass the nn.Module it was made from, or measure its file"
        )
    return model


def _parameters(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The module's own parameters; a parametrized one as the weight that it makes."""
    for name in (*(getattr(module, "parametrizations", None) or ()), *_hooks(module)):
        yield name, _made(module, name)
    yield from module.named_parameters(recurse=False, remove_duplicate=False)
    if type(module).__module__.startswith("torch.ao.nn."):  # a quantised layer has methods in place of parameters
        for name in ("weight", "bias"):
            method = getattr(module, name, None)
            value = method() if callable(method) else None
            if isinstance(value, torch.Tensor):
                yield name, value


def _read(model: nn.Module, prefix: str, name: str) -> np.ndarray:
    return as_array(parameter(model, prefix, name, _made))


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's values, copied to the CPU; half precision as float32. All processes gather one that they share."""
    values = tensor.detach()
    if is_dtensor(values):
        values = values.full_tensor()  # pyright: ignore[reportAttributeAccessIssue]
    if values.is_quantized:
        values = values.dequantize()
    if values.dtype not in (torch.float32, torch.float64):
        values = values.to(torch.float32)
    return values.cpu().numpy()


def _made(module: nn.Module, name: str) -> Any:
    """A parameter as it is now; one that is made from others without moving what a training step would move."""
    made, hooks = getattr(module, "parametrizations", None) or {}, _hooks(module)
    if name not in made and name not in hooks:
        return getattr(module, name)
    parts = list(made[name].modules()) if name in made else []
    modes = [part.training for part in parts]
    gpus = sorted({value.device.index for value in module.parameters() if value.is_cuda})
    try:
        for part in parts:
            part.training = False  # spectral norm takes a step of its power iteration at each look in training
        with torch.no_grad(), torch.random.fork_rng(gpus):  # what makes it may draw
            # not by its name: within parametrize.cached() that would keep it, without gradients
            return made[name]() if name in made else hooks[name]()
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


def _hooks(module: nn.Module) -> dict[str, Callable[[], torch.Tensor]]:
    """What makes a weight before each forward pass, by the weight's name: pruning, and norms of the older kind."""
    makers: dict[str, Callable[[], torch.Tensor]] = {}
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm):
            makers[hook.name] = partial(hook.compute_weight, module)
        elif isinstance(hook, SpectralNorm):
            makers[hook.name] = partial(hook.compute_weight, module, do_power_iteration=False)
        elif isinstance(hook, BasePruningMethod):
            makers[hook._tensor_name] = partial(hook.apply_mask, module)
    return makers


def _place(value: torch.Tensor) -> tuple[Any, ...] | None:
    """Where a parameter's values lie; None for a weight that is made from others."""
    if not isinstance(value, nn.Parameter):
        return None
    if is_lazy(value) or value.is_meta or not value.numel():
        return (id(value),)
    try:
        return value.untyped_storage().data_ptr(), value.storage_offset(), tuple(value.shape), value.stride()
    except (RuntimeError, NotImplementedError):  # a subclass without a storage of its own
        return (id(value),)


def _unreadable(prefix: str, name: str, module: nn.Module, value: torch.Tensor, sharded: bool) -> str:
    raw = [f"{made}{end}" for made in _hooks(module) for end in ("_orig", "_g", "_v")]
    if ".parametrizations." in f".{prefix}." or name in raw:
        return "it makes a weight that is listed under its own name (a parametrization)"
    if is_lazy(value):
        return NOT_INITIALISED
    if value.is_meta:
        return "on the meta device: it has no values"
    if is_dtensor(value) and not sharded:
        return "sharded over processes: gather the model first"
    if value.is_complex():
        return "complex: lines are of real weights"
    if not value.is_floating_point() and not value.is_quantized:
        return f"quantised or packed as {str(value.dtype).removeprefix('torch.')}: it has to be dequantised first"
    if type(value) not in (torch.Tensor, nn.Parameter) and not is_dtensor(value):
        return f"a {type(value).__name__}: it has to be turned into an ordinary tensor first"
    return ""


def _layout(
    name: str, model: nn.Module, prefix: str, module: nn.Module, shapes: Mapping[str, tuple[int, ...]]
) -> UnitLayout | str:
    """The layout of a parameter by the type of its module; by its name where the type is not known."""
    shape, own = shapes[name], name.rsplit(".", 1)[-1]
    if isinstance(module, _NORMS):
        return names.NORM
    if len(shape) < 2 or 0 in shape:
        return names.why_not(name, shape, shapes)
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return names.recurrent(name, shapes)
    if isinstance(module, nn.MultiheadAttention) and own.endswith("proj_weight"):
        return names.matrix(name, shape, 0, names.bias_in_attention(name, shapes), _heads(model, prefix), True)
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return UnitLayout("embedding")
    if isinstance(module, nn.Bilinear):
        return UnitLayout(bias=names.bias_of(name, shape[0], shapes))
    if isinstance(module, _ConvNd):
        depthwise = module.groups == module.in_channels == module.out_channels
        axis = int(module.transposed and not depthwise)
        groups = 1 if depthwise else module.groups  # depthwise filters are kernels: they can be compared
        kind = DEPTHWISE if depthwise and module.groups > 1 else "filter"
        return UnitLayout(kind, axis, groups, bias=names.bias_of(name, module.out_channels, shapes))
    if len(shape) == 2 and own == "weight" and (isinstance(module, nn.Linear) or _is_conv1d(module, shape)):
        axis, above = int(_is_conv1d(module, shape)), prefix.rpartition(".")[0]
        attention = isinstance(model.get_submodule(above), nn.MultiheadAttention)
        bias = names.bias_of(name, shape[axis], shapes)
        root = "".join(f"{part}." for part in above.split(".") if part not in ("", "_orig_mod"))
        inside = model.get_submodule(above).named_parameters()
        beside = {f"{root}{other}": tuple(value.shape) for other, value in inside if not is_lazy(value)}
        queries = names.queries_of(name, beside)
        return names.matrix(name, shape, axis, bias, _heads(model, prefix), attention, queries)
    return names.layouts(shapes)[name]


def _is_conv1d(module: nn.Module, shape: tuple[int, ...]) -> bool:
    """Whether it is the dense layer with inputs first that GPT-2 has."""
    return type(module).__name__ == "Conv1D" and getattr(module, "nf", None) == shape[1]


def _heads(model: nn.Module, prefix: str) -> Heads:
    """The sizes of the attention that a module belongs to: told by a module above it, the nearest first."""
    path = prefix.split(".") if prefix else []
    for depth in range(len(path), -1, -1):
        module = model.get_submodule(".".join(path[:depth]))
        for about in (module, getattr(module, "config", None)):
            if about is not None:
                heads = Heads.of(about if isinstance(about, Mapping) else vars(about))
                if heads.size:
                    return heads
    return Heads()
