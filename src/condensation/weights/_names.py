"""The layouts of a checkpoint's arrays, told by their names and shapes alone: no model, no framework."""

import re
from collections.abc import Mapping
from typing import Any

from ._attention import Heads, projection, queries_of
from ._layout import Shape, UnitLayout
from ._roles import RECURRENT, with_depthwise

_EMBEDDING = re.compile(
    r"embed|relative_attention_bias|(^|[._])(wte|wpe|shared|emb)(\.|$)"
    r"|(^|\.)rel(ative)?_pos(ition)?(_bias)?(_table|_[hwt])?(\.weight)?$",
    re.IGNORECASE,
)
_NORM = re.compile(r"norm|(^|\.)(ln|bn)(_?\w+)?(\.|$)|rms", re.IGNORECASE)
_BUFFER = re.compile(r"(running_mean|running_var|num_batches_tracked|inv_freq|position_ids|token_type_ids)$")
_MADE_FROM = re.compile(r"(^|\.)parametrizations\.|weight_(orig|mask|g|v)$")
_RECURRENT = re.compile(r"(weight|bias)_(ih|hh|hr)(_l\d+)?(_reverse)?$")
_GATES = {1: (), 3: ("reset", "update", "new"), 4: ("input", "forget", "cell", "output")}
_INPUTS_FIRST = re.compile(r"(^|\.)(c_attn|c_fc|c_proj|q_attn)\.weight$")
_EXPERTS = re.compile(r"expert|_exps\b")
_PLACES = {"in_proj_weight": 0, "q_proj_weight": 0, "k_proj_weight": 1, "v_proj_weight": 2}  # in in_proj_bias

NORM = "a norm's scale or shift: one number a channel is no direction"


def layouts(
    shapes: Mapping[str, Shape],
    config: Mapping[str, Any] | None = None,
    told: Mapping[str, UnitLayout | str] | None = None,
) -> dict[str, UnitLayout | str]:
    """The layout of each array of a checkpoint, or why it has no units; of some it may be ``told`` by the file.

    >>> known = layouts({"fc.weight": (50, 5), "fc.bias": (50,), "norm.weight": (50,)})
    >>> known["fc.weight"].bias, known["norm.weight"]
    (('fc.bias', 0), "a norm's scale or shift: one number a channel is no direction")
    """
    heads = Heads.of(config or {})
    conv1d = any(_inputs_first(name, shapes) for name in shapes if _INPUTS_FIRST.search(name))
    known: dict[str, UnitLayout | str] = {}
    for name, shape in shapes.items():
        own = (told or {}).get(name)
        if isinstance(own, UnitLayout) and 0 not in shape:
            known[name] = matrix(name, shape, 0, own.bias, heads) if own == UnitLayout(bias=own.bias) else own
        elif isinstance(own, str):
            known[name] = own
        elif len(shape) < 2 or 0 in shape or _BUFFER.search(name) or _MADE_FROM.search(name):
            known[name] = why_not(name, shape, shapes)
        elif _RECURRENT.search(name):
            known[name] = recurrent(name, shapes)
        else:
            known[name] = _layout(name, shapes, heads, conv1d and bool(_INPUTS_FIRST.search(name)))
    return with_depthwise(known, shapes)


def why_not(name: str, shape: Shape, shapes: Mapping[str, Shape]) -> str:
    """Why an array has no units."""
    if _BUFFER.search(name):
        return "a buffer: it is not trained"
    if _MADE_FROM.search(name):
        return (
            "a weight is made from it and others (a parametrization, a mask): save the model without, or list its units"
        )
    if 0 in shape:
        return f"empty: of shape {shape}"
    if not shape:
        return "a single number"
    if _NORM.search(name):
        return NORM
    weight = re.sub(r"bias(\w*)$", r"weight\1", name)
    if weight != name and weight not in shapes and not name.endswith(("in_proj_bias", "bias_k", "bias_v")):
        return f"a bias whose {weight} is missing"
    return "a vector: one number a channel is no direction"


def bias_of(name: str, units: int, shapes: Mapping[str, Shape]) -> tuple[str, int] | None:
    """The bias that belongs to a weight, if there is one that fits."""
    *path, own = name.split(".")
    bias = ".".join([*path, own.replace("weight", "bias")])
    return (bias, 0) if bias != name and shapes.get(bias) == (units,) else None


def bias_in_attention(name: str, shapes: Mapping[str, Shape]) -> tuple[str, int] | None:
    """The bias of a projection of PyTorch's MultiheadAttention: a part of what queries, keys and values share."""
    own = name.rpartition(".")[2]
    bias = f"{name.removesuffix(own)}in_proj_bias"
    place = _PLACES.get(own)
    return None if place is None or bias not in shapes else (bias, place * (shapes[bias][0] // 3))


def recurrent(name: str, shapes: Mapping[str, Shape]) -> UnitLayout:
    """The layout of a recurrent layer's weight: a part for each gate."""
    shape = shapes[name]
    hidden = shapes.get(re.sub(r"weight_(ih|hr)", "weight_hh", name), shape)
    state = shapes.get(re.sub(r"weight_(ih|hh)", "weight_hr", name))
    size = state[1] if state else hidden[1]  # with a projection the state is smaller than the layer
    if "weight_hr" in name:
        return UnitLayout("neuron")
    gates = _GATES.get(shape[0] // size if shape[0] % size == 0 else 0, ())
    return UnitLayout(RECURRENT, parts=tuple((gate, size) for gate in gates), bias=bias_of(name, shape[0], shapes))


def _inputs_first(name: str, shapes: Mapping[str, Shape]) -> bool:
    """Whether the bias fits the second axis only."""
    shape = shapes[name]
    bias = shapes.get(name.removesuffix("weight") + "bias")
    return len(shape) > 1 and bias == (shape[1],) and shape[0] != shape[1]


def _layout(name: str, shapes: Mapping[str, Shape], heads: Heads, conv1d: bool) -> UnitLayout:
    shape = shapes[name]
    axis = int(conv1d or _inputs_first(name, shapes))
    bias = bias_of(name, shape[axis], shapes) or bias_in_attention(name, shapes)
    if len(shape) == 2:
        queries = queries_of(name, shapes)
        if _in_attention(name, shapes):
            return matrix(name, shape, axis, bias, heads, True, queries)
        if not axis and _EMBEDDING.search(name) and bias is None:
            return UnitLayout("embedding")
        return matrix(name, shape, axis, bias, heads, queries=queries)
    if len(shape) == 3 and _EXPERTS.search(name):
        return _experts(name, shapes)
    if not name.endswith("weight"):
        return UnitLayout("row")
    return UnitLayout("filter", axis, bias=bias)


def _in_attention(name: str, shapes: Mapping[str, Shape]) -> bool:
    """Whether it is one of the weights of PyTorch's MultiheadAttention, whatever that is called."""
    own = next((own for own in ("in_proj_weight", "out_proj.weight") if re.search(rf"(^|\.){own}$", name)), "")
    above = name.removesuffix(own)
    return bool(own) and (f"{above}in_proj_weight" in shapes or f"{above}q_proj_weight" in shapes)


def _experts(name: str, shapes: Mapping[str, Shape]) -> UnitLayout:
    """The layout of many matrices in one: units stand first unless the layer before or behind tells otherwise."""
    before = shapes.get(name.replace("down_proj", "gate_up_proj"), ())
    behind = shapes.get(name.replace("gate_up_proj", "down_proj"), ())
    if len(before) == len(behind) == 3 and before != behind and before[1] == behind[2] and before[2] != behind[1]:
        return UnitLayout(axis=1, stacked=True)
    gated = "gate_up_proj" in name and shapes[name][1] % 2 == 0
    half = shapes[name][1] // 2
    return UnitLayout(stacked=True, parts=(("gate", half), ("up", half)) if gated else ())


def matrix(
    name: str,
    shape: Shape,
    axis: int,
    bias: tuple[str, int] | None,
    heads: Heads,
    attention: bool = False,
    queries: int = 0,
) -> UnitLayout:
    """The layout of a dense layer's weight, which may be a projection of an attention, or two layers in one."""
    units, inputs = shape[axis], shape[1 - axis]
    own: dict[str, Any] = projection(name, units, inputs, heads, attention, queries)
    if not own and re.search(r"gate_up_proj(\.weight)?$", name) and units % 2 == 0:
        own = {"parts": (("gate", units // 2), ("up", units // 2))}
    return UnitLayout(axis=axis, bias=bias, **own)
