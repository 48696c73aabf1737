"""How the layers of an ONNX graph read their weights."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._files import Stored
from ...errors import InputError
from .._roles import DEPTHWISE, OUTPUT, RECURRENT
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
    "QLinearConv": (3, 4, 5, 8),
    "QLinearMatMul": (3, 4, 5, -1),
    "QGemm": (3, 4, 5, 6),
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
        axis: that counts units.
        groups: of a convolution.
        parts: of a recurrent layer or an attention.
        bias: the constant that is its bias, or a part of one, and its values.
        beside: constants that belong to it: scales and zero points.
    """

    name: str
    source: str
    stored: Stored
    layer: str
    kind: str = "neuron"
    axis: int = 0
    groups: int = 1
    parts: tuple[tuple[str, int], ...] = ()
    bias: tuple[str, Stored] | None = None
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
        convolution, transposed = "Conv" in node.op_type, bool(_attribute(node, "transB", 0))
        axes, groups, count = len(stored.shape), 1, _attribute(node, "group", 1)
        gemm = node.op_type in ("Gemm", "FusedGemm", "QGemm")
        if any(parts):
            units = 0 if convolution or (gemm and transposed) else axes - 1
            stored = self._scaled(stored, parts[0], parts[1], units)
        beside = (*beside, *(part for part in parts if part))
        turns, axis = False, 0
        if node.op_type == "ConvTranspose":
            turns, groups = count == 1, _groups(count, stored.shape)
            axis = int(groups > 1)
        elif convolution:
            groups = _groups(count, stored.shape)
        elif gemm:
            turns = bool(_attribute(node, "transA", 0)) if first else not transposed
        else:
            turns = not first
        if not convolution and axes != 2:
            return
        if turns:
            stored = turned(stored, (1, 0, *range(2, axes)))
        thirds: tuple[tuple[str, int], ...] = ()
        if "Attention" in node.op_type and stored.shape[0] % 3 == 0:
            thirds = tuple((part, stored.shape[0] // 3) for part in "qkv")
        own = self._bias(node, bias, stored.shape[1] * groups if axis else stored.shape[0], parts[0])
        kind = "filter" if convolution else "neuron"
        if convolution and 1 < count == stored.shape[0]:
            kind = DEPTHWISE
        yield Reading(source, source, stored, node.name, kind, axis, groups, thirds, own, beside)

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
            values = np.full((), default) if factor is None else factor.load()
            axes = len(stored.shape)
            try:
                if values.size == 1:
                    values = values.reshape(())
                elif values.ndim == 1:
                    values = values.reshape([-1 if k == axis else 1 for k in range(axes)])
                elif values.ndim == axes:  # of blocks
                    values = np.repeat(values, -(-stored.shape[axis] // values.shape[axis]), axis)
                    values = values.take(range(stored.shape[axis]), axis)
                elif values.ndim == axes - 1:  # of each direction of a recurrent layer
                    values = np.expand_dims(values, 1)
                return np.broadcast_to(values.astype(np.float32), stored.shape)
            except (ValueError, IndexError, ZeroDivisionError):
                raise InputError("quantised, and its scales do not fit") from None

        def load() -> np.ndarray:
            return (stored.load().astype(np.float32) - spread(factors[1], 0)) * spread(factors[0], 1)

        return Stored(stored.shape, f"float32 from {stored.dtype}", load)

    def _named_scale(self, name: str) -> str | None:
        """The scale of a weight of an integer product, which the graph applies later: known by its name."""
        scale = f"{name.removesuffix('_quantized')}_scale"
        return scale if scale in self.arrays else None

    def _bias(self, node: Any, place: int, units: int, scale: str | None) -> tuple[str, Stored] | None:
        """The constant vector that is added to what a layer gives: by the layer, or by the node behind it.

        One of whole numbers has the scale of the layer's inputs times that of its weights.
        """
        if place < 0:
            return self._added(node, units)
        found = self._vector(_input(node, place), units)
        if found is None or found[1].floating:
            return found
        inputs = self._constant(_input(node, 1))
        if inputs is None or scale is None:
            return None
        return found[0], self._scaled(self._scaled(found[1], inputs[0], None, 0), scale, None, 0)

    def _added(self, node: Any, units: int) -> tuple[str, Stored] | None:
        """The vector that the next node adds; behind an integer product also the next but those that scale it."""
        value = _output(node)
        for _ in range(_FARTHEST):
            behind = self.graph.consumers.get(value, ())
            if len(behind) != 1:
                return None
            if behind[0].op_type == "Add":
                found = (self._vector(name, units) for name in behind[0].input if name != value)
                return next((own for own in found if own and own[1].floating), None)
            if not node.op_type.endswith("Integer") or behind[0].op_type not in ("Cast", "Mul"):
                return None
            value = _output(behind[0])
        return None

    def _vector(self, name: str, size: int) -> tuple[str, Stored] | None:
        """A constant vector of a size, which may have been given more axes."""
        node = self.graph.producers.get(name)
        name = node.input[0] if node is not None and node.op_type == "Reshape" and node.input else name
        found = self._constant(name)
        return found[:2] if found and found[1].shape == (size,) else None

    def _recurrent(self, node: Any) -> Iterator[Reading]:
        """The weights of a recurrent layer, for inputs and for its state, in each direction."""
        gates = _GATES.get(node.op_type, _GATES["LSTM"])
        for place in (1, 2):
            found = self._constant(_input(node, place))
            if found is None or len(found[1].shape) != 3:
                continue
            source, stored, beside = found
            if node.op_type == "DynamicQuantizeLSTM":
                own = [self._constant(_input(node, 6 + 2 * place + k)) for k in (0, 1)]  # scale and zero point
                stored = self._scaled(stored, own[0][0] if own[0] else None, own[1][0] if own[1] else None, 2)
                stored = turned(stored, (0, 2, 1))
                beside = (*beside, *(part[0] for part in own if part))
            directions, units, inputs = stored.shape
            size = units // len(gates)
            parts = tuple((gate, size) for gate in gates) if len(gates) > 1 and units % len(gates) == 0 else ()
            biases = self._constant(_input(node, 3))
            if biases and biases[1].shape == (directions, 2 * units):
                beside = (*beside, biases[0])
            else:
                biases = None
            for k in range(directions):
                one = _slice(stored, k, (units, inputs))
                name = source if directions == 1 else f"{source}.{('forward', 'reverse')[k % 2]}"
                bias = None
                if biases:
                    first = (place - 1) * units
                    bias = f"{name}.bias", _slice(biases[1], (k, slice(first, first + units)), (units,))
                yield Reading(name, source, one, node.name, RECURRENT, parts=parts, bias=bias, beside=beside)


def _has_weights(operation: str) -> bool:
    """Whether what a node reads may meet weights in it."""
    known = operation in _WEIGHT or operation in _GATES or operation in _GIVES_ON
    return known or "MatMul" in operation or "Attention" in operation


def _slice(stored: Stored, k: Any, shape: tuple[int, ...]) -> Stored:
    return Stored(shape, stored.dtype, lambda: stored.load()[k])


def _groups(groups: int, shape: tuple[int, ...]) -> int:
    """The groups of a convolution; a depthwise one's filters are compared with each other."""
    return groups if 1 < groups < shape[0] and shape[0] % groups == 0 else 1


def _input(node: Any, place: int) -> str:
    return node.input[place] if 0 <= place < len(node.input) else ""


def _output(node: Any) -> str:
    return node.output[0] if node.output else ""


def _attribute(node: Any, name: str, default: Any) -> Any:
    """A whole number or several, of a node."""
    found = node.attribute.get(name)
    if found is None:
        return default
    return list(found.ints) if isinstance(default, tuple) else int(found.i)
