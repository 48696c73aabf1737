"""How the layers of an ONNX graph read their weights."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._files import Stored
from .._roles import DEPTHWISE, OUTPUT
from .opened import final_values, turned

if TYPE_CHECKING:
    from .onnxs import Graph

_GATES = {"LSTM": ("input", "output", "forget", "cell"), "GRU": ("update", "reset", "new"), "RNN": ("",)}
_WEIGHT = {  # which input is the weight, its scale, its zero point and the bias; -1: none
    "Conv": (1, -1, -1, 2),
    "ConvTranspose": (1, -1, -1, 2),
    "Gemm": (1, -1, -1, 2),
    "MatMul": (1, -1, -1, -1),
    "FusedMatMul": (1, -1, -1, -1),
    "FusedGemm": (1, -1, -1, 2),
    "FusedConv": (1, -1, -1, 2),
    "ConvInteger": (1, -1, 3, -1),
    "MatMulInteger": (1, -1, 3, -1),
    "QLinearConv": (3, 4, 5, -1),
    "QLinearMatMul": (3, 4, 5, -1),
    "QGemm": (3, 4, 5, -1),
    "DynamicQuantizeMatMul": (1, 2, 3, 4),
    "MatMulIntegerToFloat": (1, 3, 5, 6),
    "Attention": (1, -1, -1, 2),
    "QAttention": (1, 4, 7, -1),
}
_GIVES_ON = ("Einsum", "If", "Loop", "Scan", "DynamicQuantizeLSTM")  # that have weights or graphs in them, too
_THROUGH = ("Identity", "Cast", "Transpose", "DequantizeLinear")
_FARTHEST = 8  # nodes between a constant and its layer


@dataclass(frozen=True)
class Reading:
    """A weight as a layer reads it.

    Attributes:
        name: of the weight.
        source: the constant that it is.
        stored: its values, units first.
        layer: the name of the node.
        kind: of its units.
        groups: of a convolution.
        parts: of a recurrent layer or an attention.
        bias: the constant that is its bias.
        beside: constants that belong to it: scales and zero points.
    """

    name: str
    source: str
    stored: Stored
    layer: str
    kind: str = "neuron"
    groups: int = 1
    parts: tuple[tuple[str, int], ...] = ()
    bias: str | None = None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reader:
    """Finds the weights that the nodes of a graph read."""

    graph: "Graph"
    arrays: Mapping[str, Stored]
    outputs: Collection[str] = ()  # of the graph

    def readings(self) -> Iterator[Reading]:
        """The weights in the order of the layers."""
        nodes = [(_has_weights(node.op_type), node.input, node.output) for node in self.graph.nodes]
        final = final_values(nodes, self.outputs)
        for node in self.graph.nodes:
            if node.op_type in _GATES or node.op_type == "DynamicQuantizeLSTM":
                yield from self._recurrent(node)
            elif node.op_type == "Gather" and node.input:
                found = self._constant(node.input[0])
                if found and len(found[1].shape) == 2 and self._constant(node.input[-1]) is None:
                    yield Reading(found[0], found[0], found[1], node.name, "embedding", beside=found[2])
            elif node.op_type in _WEIGHT:
                for found in self._weight(node):
                    ends = found.kind != DEPTHWISE and not found.parts and node.output[:1] and node.output[0] in final
                    yield replace(found, kind=OUTPUT) if ends else found

    def _weight(self, node: Any) -> Iterator[Reading]:
        place, scale, zero, bias = _WEIGHT[node.op_type]
        first = node.op_type in ("MatMul", "Gemm") and self._constant(_input(node, place)) is None
        found = self._constant(_input(node, 0 if first else place))
        if found is None or len(found[1].shape) < 2:
            return
        source, stored, beside = found
        own = [self._constant(_input(node, k)) for k in (scale, zero)]
        names = [self._named_scale(source) if node.op_type.endswith("Integer") else None, None]
        parts = [part[0] if part else name for part, name in zip(own, names, strict=True)]
        convolution = "Conv" in node.op_type
        units = 0 if convolution else len(stored.shape) - 1
        if any(parts):
            stored = self._scaled(stored, parts[0], parts[1], units)
        beside = (*beside, *(part for part in parts if part))
        axes, groups, turns = len(stored.shape), 1, False
        if node.op_type == "ConvTranspose":
            turns = _attribute(node, "group", 1) == 1
        elif convolution:
            groups = _groups(_attribute(node, "group", 1), stored.shape)
        elif node.op_type in ("Gemm", "FusedGemm", "QGemm"):
            turns = bool(_attribute(node, "transA" if first else "transB", 0)) == first
        else:
            turns = not first
        if not convolution and axes != 2:
            return
        if turns:
            stored = turned(stored, (1, 0, *range(2, axes)))
        thirds: tuple[tuple[str, int], ...] = ()
        if "Attention" in node.op_type and stored.shape[0] % 3 == 0:
            thirds = tuple((part, stored.shape[0] // 3) for part in "qkv")
        name = self._bias(node, bias, stored.shape[0])
        kind = "filter" if convolution else "neuron"
        if convolution and 1 < _attribute(node, "group", 1) == stored.shape[0]:
            kind = DEPTHWISE
        yield Reading(source, source, stored, node.name, kind, groups, thirds, name, beside)

    def _constant(self, name: str) -> tuple[str, Stored, tuple[str, ...]] | None:
        """The constant behind a value, turned and scaled as the nodes between say, and the scales that they read."""
        path = []
        for _ in range(_FARTHEST):
            if name in self.arrays:
                break
            node = self.graph.producers.get(name)
            if node is None or node.op_type not in _THROUGH or not node.input:
                return None
            path.append(node)
            name = node.input[0]
        stored = self.arrays.get(name)
        if stored is None or stored.reason:
            return None
        beside: tuple[str, ...] = ()
        for node in reversed(path):
            if node.op_type == "Transpose":
                axes = tuple(_attribute(node, "perm", ())) or tuple(reversed(range(len(stored.shape))))
                if sorted(axes) != list(range(len(stored.shape))):
                    return None
                stored = turned(stored, axes)
            elif node.op_type == "DequantizeLinear":
                scale, zero = (own if own in self.arrays else None for own in (_input(node, 1), _input(node, 2)))
                stored = self._scaled(stored, scale, zero, _attribute(node, "axis", 1))
                beside = (*beside, *(own for own in (scale, zero) if own))
        return name, stored, beside

    def _scaled(self, stored: Stored, scale: str | None, zero: str | None, axis: int) -> Stored:
        """Values less their zero point, times their scale: one of the whole, or one along an axis."""
        factors = [self.arrays[name] if name else None for name in (scale, zero)]
        axis = axis + len(stored.shape) if axis < 0 else axis

        def spread(factor: Stored | None, default: float) -> np.ndarray:
            if factor is None:
                return np.float32(default)  # type: ignore[return-value]
            values = factor.load().astype(np.float32)
            if values.size == 1:
                return values.reshape(())
            shape = [1] * len(stored.shape)
            if values.ndim != 1 or axis >= len(shape) or len(values) != stored.shape[axis]:
                return np.float32(np.nan)  # type: ignore[return-value]
            shape[axis] = -1
            return values.reshape(shape)

        def load() -> np.ndarray:
            return (stored.load().astype(np.float32) - spread(factors[1], 0)) * spread(factors[0], 1)

        return Stored(stored.shape, f"float32 from {stored.dtype}", load)

    def _named_scale(self, name: str) -> str | None:
        """The scale of a weight of an integer product, which the graph applies later: known by its name."""
        scale = f"{name.removesuffix('_quantized')}_scale"
        return scale if scale in self.arrays else None

    def _bias(self, node: Any, place: int, units: int) -> str | None:
        """The constant vector that is added to what a layer gives: by the layer, or by the node behind it."""
        if place >= 0:
            found = self._constant(_input(node, place))
            return found[0] if found and found[1].shape == (units,) else None
        behind = self.graph.consumers.get(node.output[0], ()) if node.output else ()
        for other in behind:
            if other.op_type == "Add" and len(behind) == 1:
                for name in other.input:
                    if name in self.arrays and self.arrays[name].shape == (units,) and self.arrays[name].floating:
                        return name
        return None

    def _recurrent(self, node: Any) -> Iterator[Reading]:
        """The weights of a recurrent layer, for inputs and for its state, in each direction."""
        gates = _GATES.get(node.op_type, _GATES["LSTM"])
        for place in (1, 2):
            found = self._constant(_input(node, place))
            if found is None or len(found[1].shape) != 3:
                continue
            source, stored, beside = found
            if node.op_type == "DynamicQuantizeLSTM":
                scale, zero = (9, 10) if place == 1 else (11, 12)
                own = [self._constant(_input(node, k)) for k in (scale, zero)]
                stored = self._scaled(stored, own[0][0] if own[0] else None, own[1][0] if own[1] else None, 2)
                stored = turned(stored, (0, 2, 1))
            directions, units, inputs = stored.shape
            size = units // len(gates)
            parts = tuple((gate, size) for gate in gates) if len(gates) > 1 and units % len(gates) == 0 else ()
            for k in range(directions):
                one = _slice(stored, k, (units, inputs))
                name = source if directions == 1 else f"{source}.{('forward', 'reverse')[k % 2]}"
                yield Reading(name, source, one, node.name, parts=parts, beside=beside)


def _has_weights(operation: str) -> bool:
    """Whether what a node reads may meet weights in it."""
    known = operation in _WEIGHT or operation in _GATES or operation in _GIVES_ON
    return known or "MatMul" in operation or "Attention" in operation


def _slice(stored: Stored, k: int, shape: tuple[int, ...]) -> Stored:
    return Stored(shape, stored.dtype, lambda: stored.load()[k])


def _groups(groups: int, shape: tuple[int, ...]) -> int:
    """The groups of a convolution; a depthwise one's filters are compared with each other."""
    return groups if 1 < groups < shape[0] and shape[0] % groups == 0 else 1


def _input(node: Any, place: int) -> str:
    return node.input[place] if 0 <= place < len(node.input) else ""


def _attribute(node: Any, name: str, default: Any) -> Any:
    """A whole number or several, of a node."""
    found = next((own for own in node.attribute if own.name == name), None)
    if found is None:
        return default
    return list(found.ints) if isinstance(default, tuple) else int(found.i)
