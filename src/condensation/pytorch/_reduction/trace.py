"""What a model computes between its layers, as plain values: read from the autograd graph of one forward pass.

Each operation gets a *kind* that says what it does to the channels of a layer:

- ``module``: a layer or a norm of the model, by name.
- ``same``: the entries of each channel in another layout (flatten).
- ``linear``: the same linear map for every channel that leaves a constant as it is (average pooling, a slice).
- ``moves``: a linear map that does not (a sum, padding).
- ``pool``: a map of each channel that commutes with positive factors only (max pooling).
- ``add``, ``scale``: sums with signs, a factor.
- ``cat``: channels side by side.
- ``activation``: a function of each entry, with its number (a slope, an exponent).
- ``mix``: channels are mixed (softmax, attention); ``unknown``: anything else; ``constant``: no unit is behind it.

What an operation's name cannot tell (which axes a mean runs over, the value of padding) the trial of ``probe`` finds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.utils._pytree import tree_leaves, tree_map_only

from ...activations import Function
from ...errors import InputError

ModelInputs = torch.Tensor | Sequence[Any] | Mapping[str, Any]
LAYERS = (nn.Linear, _ConvNd)
MIXING = (nn.LayerNorm, nn.GroupNorm, _InstanceNorm, nn.MultiheadAttention, nn.RNNBase, nn.RMSNorm, nn.Bilinear)
HOOKED = (*LAYERS, _BatchNorm, nn.PReLU, nn.Embedding, *MIXING)

_SAME = {
    "View", "Reshape", "ReshapeAlias", "UnsafeView", "Squeeze", "Unsqueeze", "Permute", "Transpose", "T", "Clone",
    "Alias", "ToCopy",
}  # fmt: skip
_LINEAR = {
    "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "MkldnnAdaptiveAvgPool2D", "Mean",
    "UpsampleNearest1D", "UpsampleNearest2D", "UpsampleNearest3D", "UpsampleLinear1D", "UpsampleBilinear2D",
    "UpsampleBicubic2D", "UpsampleTrilinear3D", "ReflectionPad1D", "ReflectionPad2D", "ReflectionPad3D",
    "ReplicationPad1D", "ReplicationPad2D", "ReplicationPad3D", "Slice", "Select", "Index", "Expand",
}  # fmt: skip
_POOL = {
    "MaxPool2DWithIndices", "MaxPool3DWithIndices", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "Amax", "Max",
}  # fmt: skip
_MOVES = {"Sum", "ConstantPadNd", "AvgPool2D", "AvgPool3D"}
_MIX = {
    "Softmax": "softmax",
    "LogSoftmax": "softmax",
    "NativeLayerNorm": "layer norm",
    "FusedRmsNorm": "layer norm",
    "NativeGroupNorm": "group norm",
    "Mm": "a matrix product outside of a layer",
    "Bmm": "a matrix product outside of a layer",
    "Addmm": "a matrix product outside of a layer",
    "Baddbmm": "a matrix product outside of a layer",
    "Mv": "a matrix product outside of a layer",
    "Convolution": "a convolution outside of a layer",
    "Glu": "a gated linear unit",
    "Cumsum": "a cumulative sum",
    "Sort": "sorting",
}
_ACTIVATIONS = {
    "Relu": ("relu",),
    "LeakyRelu": ("leaky_relu", "negative_slope"),
    "Tanh": ("tanh",),
    "Sigmoid": ("sigmoid",),
    "Silu": ("silu",),
    "Softplus": ("softplus", "beta"),
    "Elu": ("elu", "alpha", "scale", "input_scale"),
    "Celu": ("celu", "alpha"),
    "Mish": ("mish",),
    "Hardtanh": ("hardtanh", "min_val", "max_val"),
    "Hardswish": ("hardswish",),
    "Hardsigmoid": ("hardsigmoid",),
    "LogSigmoid": ("log_sigmoid",),
    "Sin": ("sin",),
    "Erf": ("erf",),
    "Abs": ("abs",),
    "Pow": ("pow", "exponent"),
}


@dataclass(frozen=True)
class Op:
    """An operation: its kind, its name, numbers that belong to it, and the places of its inputs in the trace."""

    kind: str
    name: str = ""
    numbers: tuple[float, ...] = ()
    inputs: tuple[int, ...] = ()


@dataclass
class Trace:
    """A forward pass. ``entries`` are the inputs of each module that ran, in the order in which they ran."""

    ops: list[Op] = field(default_factory=list)
    entries: dict[str, tuple[int, ...]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    outputs: tuple[int, ...] = ()


def call(model: nn.Module, inputs: ModelInputs) -> Any:
    """The model's answer to a tensor, a sequence of arguments, or a mapping of named ones."""
    if isinstance(inputs, torch.Tensor):
        return model(inputs)
    return model(**inputs) if isinstance(inputs, Mapping) else model(*inputs)


def tensors(value: Any) -> list[torch.Tensor]:
    """All floating-point tensors of an answer, however it is nested."""
    floats = []
    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
            floats.append(leaf)
        elif isinstance(leaf, Mapping):  # of a kind that PyTorch does not know
            floats += tensors(dict(leaf))
    return floats


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Inputs with each tensor changed, however they are nested."""
    if isinstance(value, Mapping):
        return {key: mapped(item, change) for key, item in value.items()}
    return tree_map_only(torch.Tensor, change, value)


def random_inputs(inputs: ModelInputs, random: torch.Generator) -> ModelInputs:
    """Other inputs of the same shapes: each floating-point tensor as normal numbers of its mean and deviation."""

    def drawn(value: torch.Tensor) -> torch.Tensor:
        if not value.is_floating_point():
            return value
        known = torch.nan_to_num(value.detach().float())
        noise = torch.randn(value.shape, generator=random, dtype=torch.float32).to(value.device)
        spread = float(known.std(correction=0)) or 1.0
        return (known.mean() + spread * noise).to(value.dtype)

    return mapped(inputs, drawn)


def is_own(module: nn.Module) -> bool:
    """Whether a layer computes what PyTorch's layer of its kind does, not what a subclass makes of it."""
    methods = (getattr(type(module), name, None) for name in ("forward", "_conv_forward"))
    known = all(method is None or method.__module__.startswith("torch.nn.modules.") for method in methods)
    return known and "forward" not in vars(module)


def steady(first: Trace, second: Trace) -> Trace:
    """A trace, in which numbers that another one of the same model on other inputs does not share are unknown."""
    if [(op.kind, op.inputs) for op in first.ops] != [(op.kind, op.inputs) for op in second.ops]:
        return first
    pairs = zip(first.ops, second.ops, strict=True)
    ops = [op if op == other else Op("unknown", op.name, (), op.inputs) for op, other in pairs]
    return replace(first, ops=ops)


def trace(model: nn.Module, inputs: ModelInputs) -> Trace:
    """Run a model once, all of whose parameters ask for gradients, and write down what it does."""
    traced = Trace()
    starts: dict[str, list[Any]] = {}
    ends: dict[Any, tuple[str, list[Any]]] = {}  # a module may run several times

    def enter(name: str) -> Any:
        def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            starts[name] = [tensor.grad_fn for tensor in tensors((*args, *kwargs.values()))]

        return hook

    def leave(name: str) -> Any:
        def hook(_: nn.Module, __: Any, answer: Any) -> None:
            traced.calls[name] = traced.calls.get(name, 0) + 1
            for tensor in tensors(answer):
                ends[tensor.grad_fn] = (name, starts[name])

        return hook

    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, HOOKED) and is_own(module):
            hooks += [module.register_forward_pre_hook(enter(name), with_kwargs=True)]
            hooks += [module.register_forward_hook(leave(name))]
    try:
        answer = call(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    ends.pop(None, None)
    modules = dict(model.named_modules())
    places: dict[Any, int] = {}
    for name in traced.calls:
        traced.entries[name] = tuple(_place(fn, traced, places, ends, modules) for fn in starts[name])
    traced.outputs = tuple(_place(t.grad_fn, traced, places, ends, modules) for t in tensors(answer))
    return traced


def _place(
    root: Any,
    traced: Trace,
    places: dict[Any, int],
    ends: dict[Any, tuple[str, list[Any]]],
    modules: dict[str, nn.Module],
) -> int:
    """The place of a gradient function among the operations, which it is appended to behind its inputs."""
    stack = [root]
    while stack:
        fn = stack[-1]
        if fn in places:
            stack.pop()
            continue
        module, before = ends.get(fn, (None, [] if fn is None else [g for g, _ in fn.next_functions]))
        missing = [g for g in before if g not in places]
        if missing:
            stack += missing
            continue
        stack.pop()
        places[fn] = len(traced.ops)
        inputs = tuple(places[g] for g in before)
        if module is not None:
            mixes = isinstance(modules[module], MIXING)
            op = Op("mix", type(modules[module]).__name__) if mixes else Op("module", module)
        else:
            op = _operation(fn)
        traced.ops.append(Op(op.kind, op.name, op.numbers, inputs))
    return places[root]


def _operation(fn: Any) -> Op:
    """The kind of a gradient function."""
    if fn is None or not hasattr(fn, "next_functions") or "AccumulateGrad" in fn.name():
        return Op("constant")
    name = fn.name().rstrip("0123456789").removesuffix("Backward")
    constant = [g is None for g, _ in fn.next_functions]
    if name in _MOVES:
        mean = name.startswith("AvgPool") and not any(fn._saved_padding) and fn._saved_divisor_override is None
        return Op("linear" if mean else "moves", name)
    for kind, names in (("same", _SAME), ("linear", _LINEAR), ("pool", _POOL)):
        if name in names:
            return Op(kind, name)
    if name in ("Add", "Sub") and not any(constant):
        sign = float(fn._saved_alpha) * (-1 if name == "Sub" else 1)
        return Op("add", name, (1.0, sign))
    if name in ("Mul", "Div") and constant == [False, True] and fn._saved_other.ndim == 0:
        factor = float(fn._saved_other)
        return Op("scale", name, (factor if name == "Mul" else 1 / factor,))
    if name == "Neg":
        return Op("scale", name, (-1.0,))
    if name == "Cat":
        return Op("cat", name)
    if name == "Gelu":
        return Op("activation", f"gelu_{fn._saved_approximate}")
    if name.startswith("Clamp") and getattr(fn, "_saved_min", None) == 0 and getattr(fn, "_saved_max", None) is None:
        return Op("activation", "relu")
    if name in _ACTIVATIONS:
        kind, *fields = _ACTIVATIONS[name]
        numbers = [getattr(fn, f"_saved_{field}") for field in fields]
        if all(isinstance(number, int | float) for number in numbers):
            return Op("activation", kind, tuple(float(number) for number in numbers))
    if name in _MIX or "Attention" in name:
        return Op("mix", _MIX.get(name, "attention"))
    return Op("unknown", name)


@lru_cache(maxsize=256)
def activation(name: str, numbers: tuple[float, ...]) -> Function:
    """The function of an activation in the trace, for the rule by which its units merge."""
    functions: dict[str, Any] = {
        "relu": jax.nn.relu,
        "leaky_relu": lambda x: jax.nn.leaky_relu(x, numbers[0]),
        "tanh": jnp.tanh,
        "sigmoid": jax.nn.sigmoid,
        "silu": jax.nn.silu,
        "gelu_none": lambda x: jax.nn.gelu(x, approximate=False),
        "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
        "softplus": lambda x: jax.nn.softplus(numbers[0] * x) / numbers[0],
        "elu": lambda x: numbers[1] * jnp.where(x > 0, x, numbers[0] * jnp.expm1(numbers[2] * jnp.where(x > 0, 0, x))),
        "celu": lambda x: jax.nn.celu(x, numbers[0]),
        "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)),
        "hardtanh": lambda x: jnp.clip(x, numbers[0], numbers[1]),
        "hardswish": jax.nn.hard_swish,
        "hardsigmoid": jax.nn.hard_sigmoid,
        "log_sigmoid": jax.nn.log_sigmoid,
        "sin": jnp.sin,
        "erf": jax.scipy.special.erf,
        "abs": jnp.abs,
        "pow": lambda x: x ** (int(numbers[0]) if numbers[0].is_integer() else numbers[0]),
    }
    if name not in functions:
        raise InputError(f"the activation {name!r} is not known")
    return functions[name]
