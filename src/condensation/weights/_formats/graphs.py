"""Frozen graphs of TensorFlow (.pb): constants, and what the nodes that read them tell of their units."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ...errors import InputError
from . import wire
from .bundles import TYPES, open_saved_model, shape_of
from .opened import Opened, without_values
from .orders import units_first
from .tensors import dtype_of

_READ: dict[str, tuple[int, str]] = {  # which input of a node is a kernel, and its kind
    **{"Conv2D": (1, "conv"), "Conv3D": (1, "conv"), "_FusedConv2D": (1, "conv"), "FusedConv2D": (1, "conv")},
    **dict.fromkeys(("DepthwiseConv2dNative", "FusedDepthwiseConv2dNative"), (1, "depthwise")),
    **{"Conv2DBackpropInput": (1, "transposed"), "MatMul": (1, "dense"), "_FusedMatMul": (1, "dense")},
    **{"GatherV2": (0, "embedding"), "Gather": (0, "embedding"), "ResourceGather": (0, "embedding")},
}
_FUSED = ("_FusedConv2D", "FusedConv2D", "FusedDepthwiseConv2dNative", "_FusedMatMul")  # whose third input is a bias
_THROUGH = ("Identity", "ReadVariableOp", "Enter")
_FLOATS = {5: "<f4", 6: "<f8"}  # fields of a tensor with values one by one


@dataclass(frozen=True)
class Node:
    """A node of a graph: its name, operation, inputs, and whether it turns its second one."""

    name: str
    op: str
    inputs: tuple[str, ...]
    turns: bool = False
    tensor: memoryview | None = field(default=None, repr=False)


def open_graph(path: Path) -> Opened:
    """The constants of a frozen graph, or the variables of a SavedModel."""
    if path.name == "saved_model.pb":
        return open_saved_model(path)
    require(3 * path.stat().st_size, f"reading {path}", ADVICE)
    try:
        content = memoryview(path.read_bytes())
        nodes = [_node(value) for number, value in wire.fields(content) if number == 1 and not isinstance(value, int)]
        constants = {node.name: node.tensor for node in nodes if node.op == "Const" and node.tensor is not None}
        arrays = {name.replace("/", "."): _stored(tensor) for name, tensor in constants.items()}
    except wire.Broken as error:
        raise InputError(f"{path} cannot be read as a TensorFlow graph: {error}") from error
    arrays = {name: stored for name, stored in arrays.items() if stored.floating}
    if not arrays:
        raise InputError(f"{path} is a TensorFlow graph without constants: its variables are kept elsewhere")
    return as_read(arrays, nodes)


def as_read(arrays: Mapping[str, Stored], nodes: Iterable[Node]) -> Opened:
    """Constants as the nodes of a graph read them; those of two axes and more that no layer reads have a reason."""
    nodes = list(nodes)
    through = {node.name: node.inputs[0] for node in nodes if node.op in _THROUGH and node.inputs}

    def constant(name: str) -> str:
        for _ in range(8):
            name = through.get(name, name)
        return name.replace("/", ".")

    made = {node.name: node for node in nodes}
    kinds: dict[str, str] = {}
    biases: dict[str, str] = {}
    for node in nodes:
        place, kind = _READ.get(node.op, (-1, ""))
        if kind and place < len(node.inputs) and (name := constant(node.inputs[place])) in arrays:
            kinds.setdefault(name, "turned" if node.turns and kind == "dense" else kind)
            if node.op in _FUSED and len(node.inputs) > 2 and (bias := constant(node.inputs[2])) in arrays:
                biases[name] = bias
        elif node.op in ("BiasAdd", "Add", "AddV2") and len(node.inputs) == 2:
            before = made.get(node.inputs[0])
            place, kind = _READ.get(before.op, (-1, "")) if before else (-1, "")
            bias = constant(node.inputs[1])
            if before and kind and place < len(before.inputs) and bias in arrays:
                biases.setdefault(constant(before.inputs[place]), bias)
    if not kinds:  # a graph of other operations: names have to do
        return units_first(arrays)
    readers = {constant(name): node.op for node in nodes for name in node.inputs if node.op not in _THROUGH}
    found = units_first(
        {name: own for name, own in arrays.items() if name in kinds or len(own.shape) < 2}, kinds, biases
    )
    others = {name: own for name, own in arrays.items() if name not in found.arrays}
    reasons = {
        name: f"no layer of the graph reads it as weights, but {readers.get(name, 'no node')}" for name in others
    }
    return Opened(dict(found.arrays) | others, dict(found.layouts) | reasons)


def _node(message: memoryview) -> Node:
    name, op, inputs, turns, tensor = "", "", [], False, None
    for number, value in wire.fields(message):
        if isinstance(value, int):
            continue
        if number == 1:
            name = wire.text(value)
        elif number == 2:
            op = wire.text(value)
        elif number == 3:
            inputs.append(wire.text(value).removesuffix(":0").removeprefix("^"))
        elif number == 5:
            key, inner = wire.text(wire.last(value, 1)), wire.last(value, 2)
            if isinstance(inner, memoryview):
                if key == "value":
                    found = wire.last(inner, 8)
                    tensor = found if isinstance(found, memoryview) else tensor
                turns |= key == "transpose_b" and wire.last(inner, 5) == 1
    return Node(name, op, tuple(inputs), turns, tensor)


def _stored(message: memoryview) -> Stored:
    """The array that a message of a tensor describes."""
    kind, shape, content, single = 0, (), None, bytearray()
    for number, value in wire.fields(message):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2 and not isinstance(value, int):
            shape = shape_of(value)
        elif number == 4 and not isinstance(value, int):
            content = value
        elif number in _FLOATS and not isinstance(value, int):
            single += value
    dtype = TYPES.get(kind, "")
    if not dtype:
        return without_values(shape, "", "of a type that is not known here")
    known = dtype_of(dtype)
    need = int(np.prod(shape, dtype=object)) * known.itemsize
    raw = content if content is not None else bytes(single)
    if raw and len(raw) == need:
        return Stored(shape, dtype, lambda: np.frombuffer(raw, known).reshape(shape))
    if raw and len(raw) == known.itemsize:
        if len(shape) > 1:
            return without_values(shape, dtype, "one number in all places: no weights that were trained")
        return Stored(shape, dtype, lambda: np.full(shape, np.frombuffer(raw, known)[0]))
    return without_values(shape, dtype, "broken: its values do not fit its shape")
