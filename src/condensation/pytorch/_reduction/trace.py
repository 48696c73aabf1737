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

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
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
from .gpu import as_the_user_has_it

ModelInputs = torch.Tensor | Sequence[Any] | Mapping[str, Any]
LAYERS = (nn.Linear, _ConvNd)
MIXING = (nn.LayerNorm, nn.GroupNorm, _InstanceNorm, nn.MultiheadAttention, nn.RNNBase, nn.RMSNorm, nn.Bilinear)
HOOKED = (*LAYERS, _BatchNorm, nn.PReLU, nn.Embedding, *MIXING)

_TABLES = tomllib.loads(Path(__file__).with_name("operations.toml").read_text(encoding="utf-8"))
REFUSED: dict[str, str] = _TABLES["refused"]
_KINDS = {name: kind for kind in ("same", "linear", "moves", "pool", "cat") for name in _TABLES[kind]}
_ACTIVATIONS: dict[str, tuple[Callable[..., Any], *tuple[str, ...]]] = {  # and the names of their numbers
    "Relu": (jax.nn.relu,),
    "LeakyRelu": (jax.nn.leaky_relu, "negative_slope"),
    "Tanh": (jnp.tanh,),
    "Sigmoid": (jax.nn.sigmoid,),
    "Silu": (jax.nn.silu,),
    "Gelu none": (partial(jax.nn.gelu, approximate=False),),
    "Gelu tanh": (partial(jax.nn.gelu, approximate=True),),
    "Softplus": (lambda x, beta: jax.nn.softplus(beta * x) / beta, "beta"),
    "Elu": (
        lambda x, a, scale, rate: scale * jnp.where(x > 0, x, a * jnp.expm1(rate * jnp.where(x > 0, 0, x))),
        *("alpha", "scale", "input_scale"),
    ),
    "Celu": (jax.nn.celu, "alpha"),
    "Mish": (lambda x: x * jnp.tanh(jax.nn.softplus(x)),),
    "Hardtanh": (jnp.clip, "min_val", "max_val"),
    "Hardswish": (jax.nn.hard_swish,),
    "Hardsigmoid": (jax.nn.hard_sigmoid,),
    "LogSigmoid": (jax.nn.log_sigmoid,),
    "Sin": (jnp.sin,),
    "Erf": (jax.scipy.special.erf,),
    "Abs": (jnp.abs,),
    "Pow": (lambda x, exponent: x ** (int(exponent) if exponent.is_integer() else exponent), "exponent"),
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
    with as_the_user_has_it():
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
    ends: dict[Any, tuple[Op, list[Any]]] = {}  # a module may run several times

    def enter(name: str, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        starts[name] = [tensor.grad_fn for tensor in tensors((*args, *kwargs.values()))]

    def leave(name: str, module: nn.Module, _: Any, answer: Any) -> None:
        traced.calls[name] = traced.calls.get(name, 0) + 1
        op = Op("mix", type(module).__name__) if isinstance(module, MIXING) else Op("module", name)
        ends.update((tensor.grad_fn, (op, starts[name])) for tensor in tensors(answer))

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, HOOKED) and is_own(module):
                hooks.enter_context(module.register_forward_pre_hook(partial(enter, name), with_kwargs=True))
                hooks.enter_context(module.register_forward_hook(partial(leave, name)))
        answer = call(model, inputs)
    ends.pop(None, None)
    places: dict[Any, int] = {}
    for name in traced.calls:
        traced.entries[name] = tuple(_place(fn, traced.ops, places, ends) for fn in starts[name])
    traced.outputs = tuple(_place(tensor.grad_fn, traced.ops, places, ends) for tensor in tensors(answer))
    return traced


def _place(root: Any, ops: list[Op], places: dict[Any, int], ends: dict[Any, tuple[Op, list[Any]]]) -> int:
    """The place of a gradient function among the operations, which it is appended to behind its inputs."""
    stack = [root]
    while stack:
        fn = stack[-1]
        before = ends[fn][1] if fn in ends else [] if fn is None else [g for g, _ in fn.next_functions]
        missing = [g for g in before if g not in places] if fn not in places else []
        if missing:
            stack += missing
            continue
        stack.pop()
        if fn not in places:
            places[fn] = len(ops)
            op = ends[fn][0] if fn in ends else _operation(fn)
            ops.append(replace(op, inputs=tuple(places[g] for g in before)))
    return places[root]


def _operation(fn: Any) -> Op:
    """The kind of a gradient function."""
    if fn is None or "AccumulateGrad" in fn.name():
        return Op("constant")
    name = fn.name().rstrip("0123456789").removesuffix("Backward")
    constant = [g is None for g, _ in fn.next_functions]
    if name.startswith("AvgPool") and not any(fn._saved_padding) and fn._saved_divisor_override is None:
        return Op("linear", name)
    if name in _KINDS:
        return Op(_KINDS[name], name)
    if name in ("Add", "Sub") and not any(constant):
        sign = float(fn._saved_alpha) * (-1 if name == "Sub" else 1)
        return Op("add", name, (1.0, sign))
    if name in ("Mul", "Div") and constant == [False, True] and fn._saved_other.ndim == 0:
        factor = float(fn._saved_other)
        return Op("scale", name, (factor if name == "Mul" else 1 / factor,))
    if name == "Neg":
        return Op("scale", name, (-1.0,))
    if name.startswith("Clamp") and getattr(fn, "_saved_min", None) == 0 and getattr(fn, "_saved_max", None) is None:
        return Op("activation", "Relu")
    function = f"Gelu {fn._saved_approximate}" if name == "Gelu" else name
    if function in _ACTIVATIONS:
        numbers = [getattr(fn, f"_saved_{field}") for field in _ACTIVATIONS[function][1:]]
        known = all(isinstance(number, int | float) for number in numbers)
        if known and (function != "Pow" or numbers[0] in range(1, 10)):  # the others have no derivative at 0
            return Op("activation", function, tuple(float(number) for number in numbers))
    if name in _TABLES["mix"] or "Attention" in name:
        return Op("mix", _TABLES["mix"].get(name, "attention"))
    return Op("unknown", name)


@lru_cache(maxsize=256)
def activation(name: str, numbers: tuple[float, ...]) -> Function:
    """The function of an activation in the trace, for the rule by which its units merge."""
    function = _ACTIVATIONS[name][0]
    return (lambda x: function(x, *numbers)) if numbers else function
