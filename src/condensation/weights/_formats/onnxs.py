"""ONNX, through its library: initializers and constants, and what the graph tells of their units. Nothing is run.

Layers say how they read a weight: which axis counts units, in how many groups, with which bias. Quantised weights are
given back their scale and zero point. Values beside the file are read only from its own folder.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ...errors import InputError, brief
from .._layout import UnitLayout
from .layers import Reader, Reading
from .opened import Opened, check_shape, free_name, library, without_values

_ANONYMOUS = re.compile(r"(onnx::|ortshared|const_|_v_)?[A-Za-z]*_?\d+|.*::\w+_\d+|val_\d+|Constant\w*|.*_output_0")
_WEIGHT = re.compile(r"weight(_(ih|hh)(_l\d+)?(_reverse)?)?$")
_MOVES = ("Slice", "Split", "Concat", "Unsqueeze", "Squeeze", "Reshape")
_EXTERNAL = 1  # TensorProto.DataLocation
_MOST_GRAPHS, _MOST_NODES, _DEEPEST = 10_000, 1_000_000, 100
_Key = tuple[str, str, str]  # of a function: domain, name and overload
_LARGEST = 2**31  # bytes of a message of Protocol Buffers


@dataclass(frozen=True)
class Node:
    """A node of a graph, its names as text."""

    op_type: str
    name: str
    input: tuple[str, ...]
    output: tuple[str, ...]
    attribute: Mapping[str, Any]


_SPARSE = "a sparse tensor: it has to be made dense first"


def _key(own: Any, name: str | None = None) -> _Key:
    """Which function a node calls, or one is."""
    return _text(own.domain), _text(own.op_type if name is None else name), _text(getattr(own, "overload", ""))


def _dims(tensor: Any) -> tuple[int, ...]:
    """The shape of a sparse tensor, where there can be such an array."""
    try:
        return check_shape(tensor.dims)
    except InputError:
        return ()


def _text(name: str | bytes) -> str:
    """A name, which may be of other bytes than UTF-8."""
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class _Scope:
    """What names mean in a graph, or in the body of a function where it is called.

    Attributes:
        functions: of the model.
        values: outside, which the inputs and outputs of the function stand for.
        attributes: that the function was called with, or has by default.
        prefix: of all other values of the function.
        depth: how many graphs and functions are around it.
    """

    functions: Mapping[_Key, Any]
    values: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    depth: int = 0

    def called(self, name: str | bytes) -> str:
        """A value's name in the model."""
        name = _text(name)
        return self.values.get(name, f"{self.prefix}{name}" if name else "")

    def told(self, attributes: Iterable[Any]) -> dict[str, Any]:
        """Attributes by name, with those of the function where they refer to them."""
        pairs = ((own.name, self.attributes.get(own.ref_attr_name) if own.ref_attr_name else own) for own in attributes)
        return {_text(name): own for name, own in pairs if own is not None}

    def inside(self, node: Node, function: Any, call: int) -> "_Scope":
        """What names mean in the function that a node calls."""
        values: dict[str, str] = {}
        for names, outside in ((function.input, node.input), (function.output, node.output)):
            values |= dict(zip(map(_text, names), (*outside, *[""] * len(names)), strict=False))
        attributes = {own.name: own for own in function.attribute_proto} | dict(node.attribute)
        prefix = f"{node.name or node.op_type}.{call}."
        return replace(self, values=values, attributes=attributes, prefix=prefix, depth=self.depth + 1)


@dataclass
class Graph:
    """The nodes and constants of a model, those of the graphs inside its nodes and of the functions it calls too.

    Attributes:
        nodes: that compute something.
        tensors: constants by name.
        producers: the node that makes each value.
        consumers: the nodes that read each value.
        times: how often a constant of a name came again.
        sparse: constants of which the entries that are not zero are stored.
        graphs: how many were taken in, each call of a function counted.
        calls: numbers of these calls.
    """

    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, Any] = field(default_factory=dict)
    producers: dict[str, Node] = field(default_factory=dict)
    consumers: dict[str, list[Node]] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    sparse: dict[str, Any] = field(default_factory=dict)
    graphs: int = 0
    calls: Iterator[int] = field(default_factory=count)

    def add(self, graph: Any, functions: Mapping[_Key, Any]) -> None:
        """Take in a graph, and of functions of the model as much as it calls."""
        self._add(graph, _Scope(functions))

    def _add(self, graph: Any, scope: "_Scope") -> None:
        self.graphs += 1
        if self.graphs > _MOST_GRAPHS or len(self.nodes) > _MOST_NODES or scope.depth > _DEEPEST:
            raise InputError(f"it holds more than {_MOST_GRAPHS} graphs in each other, or {_MOST_NODES:,} nodes")
        for tensor in getattr(graph, "initializer", ()):
            self.tensors[self._free(scope.called(tensor.name))] = tensor
        for tensor in getattr(graph, "sparse_initializer", ()):
            self.sparse[scope.called(tensor.values.name)] = tensor
        for each in graph.node:
            self._take(each, scope)

    def _take(self, each: Any, scope: "_Scope") -> None:
        inputs, outputs = tuple(map(scope.called, each.input)), tuple(map(scope.called, each.output))
        node = Node(_text(each.op_type), _text(each.name), inputs, outputs, scope.told(each.attribute))
        if node.op_type == "Constant" and node.output:
            for kind, values in (("value", self.tensors), ("sparse_value", self.sparse)):
                if (value := node.attribute.get(kind)) is not None and (value.HasField("t") or kind != "value"):
                    values[self._free(node.output[0])] = value.t if kind == "value" else value.sparse_tensor
            return
        if (function := scope.functions.get(_key(each))) is not None:
            self._add(function, scope.inside(node, function, next(self.calls)))
            return
        self.nodes.append(node)
        for output in node.output:
            self.producers[output] = node
        for name in node.input:
            self.consumers.setdefault(name, []).append(node)
        for attribute in node.attribute.values():
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                self._add(inner, replace(scope, depth=scope.depth + 1))

    def _free(self, name: str) -> str:
        return free_name(name, self.tensors, self.times)


def open_onnx(path: Path) -> Opened:
    """The weights of a model of ONNX."""
    onnx = library("onnx", path)
    if path.stat().st_size >= _LARGEST:
        raise InputError(f"{path} has 2 GiB or more, which ONNX cannot be read from: save its weights as external data")
    require(3 * path.stat().st_size, f"reading {path}", ADVICE)
    graph = Graph()
    try:
        model = onnx.load(path, format="protobuf", load_external_data=False)
        if not model.HasField("graph"):
            raise InputError(f"{path} cannot be read as ONNX: it has no graph, and is truncated or of another kind")
        graph.add(model.graph, {_key(own, own.name): own for own in model.functions})
    except InputError:
        raise
    except Exception as error:  # a foreign file fails in many ways
        raise InputError(f"{path} cannot be read as ONNX: it is truncated or broken") from error
    files: dict[Path, None] = {path: None}
    arrays = {name: _stored(onnx, path, name, tensor, files) for name, tensor in graph.tensors.items()}
    arrays |= {name: without_values(_dims(own), "float32", _SPARSE) for name, own in graph.sparse.items()}
    if not arrays:
        raise InputError(f"{path} is an ONNX model without weights: it has no initializers and no constants")
    readings = list(Reader(graph, arrays, [_text(own.name) for own in model.graph.output]).readings())
    return _opened(arrays, readings, graph, tuple(files))


def _stored(onnx: Any, path: Path, name: str, tensor: Any, files: dict[Path, None]) -> Stored:
    """A constant that is made an array when it is asked for."""
    try:
        shape = check_shape(tensor.dims)
    except InputError as error:
        return without_values((), "float32", str(error))
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    except Exception:
        return without_values(shape, "", "of a type that is not known here")
    if dtype.hasobject:
        return without_values((), "", "no array of numbers")
    if tensor.data_location == _EXTERNAL:
        try:
            place = _beside(path, {entry.key: entry.value for entry in tensor.external_data})
        except InputError as error:
            return without_values(shape, dtype.name, str(error))
        files[place[0]] = None
        return Stored(shape, dtype.name, partial(_external, *place, dtype, shape))

    def load() -> np.ndarray:
        try:
            values = onnx.numpy_helper.to_array(tensor)
        except Exception as error:
            raise InputError(f"{name} is broken: its values do not fit its shape") from error
        return values.reshape(shape)

    return Stored(shape, dtype.name, load)


def _beside(path: Path, told: dict[str, str]) -> tuple[Path, int, int]:
    """The file with external values, which lies in the model's folder, and the place and number of their bytes."""
    location, folder = told.get("location", ""), path.parent.resolve()
    file = folder / location
    numbers = [told.get(key) or "0" for key in ("offset", "length")]
    if not location or not file.resolve().is_relative_to(folder) or not all(n.isdecimal() for n in numbers):
        raise InputError(f"its values are said to be in {brief(location)}, which is not in the model's folder")
    if not file.is_file():
        raise InputError(f"its values are missing: they are in {brief(location)} beside the model")
    return file, int(numbers[0]), int(numbers[1])


def _external(file: Path, offset: int, length: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    need = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if offset + need > file.stat().st_size or (length and length != need):
        raise InputError(f"its values in {file.name} are truncated, or of another size than its shape")
    if not need:
        return np.empty(shape, dtype)
    return np.memmap(file, np.uint8, "r", offset, need).view(dtype).reshape(shape)


def _opened(arrays: dict[str, Stored], readings: list[Reading], graph: Graph, files: tuple[Path, ...]) -> Opened:
    """The arrays as layers read them, and then the others; those that no layer reads as weights have a reason."""
    found: dict[str, Stored] = {}
    layouts: dict[str, UnitLayout | str] = {}
    used: set[str] = set()
    times: dict[str, int] = {}
    for reading in readings:
        if reading.source in used and reading.source == reading.name:
            continue
        name = _named(reading, found, times)
        layout = UnitLayout(reading.kind, reading.axis, groups=reading.groups, parts=reading.parts)
        bias = reading.bias[0] if reading.bias else None
        if reading.bias and bias and bias not in used:
            label = name.removesuffix("weight") + "bias" if name.endswith(".weight") else bias
            label = bias if label in found or (label != bias and label in arrays) else label
            found[label] = reading.bias[1]
            used.add(bias)
            layout = replace(layout, bias=(label, 0))
        found[name], layouts[name] = reading.stored, layout
        used |= {reading.source, *reading.beside}
    for name, stored in arrays.items():
        if name in used or not stored.dtype or (len(stored.shape) < 2 and not stored.floating):
            continue
        label = free_name(name, found, times)
        found[label] = stored
        if len(stored.shape) > 1 and not stored.reason:
            by = next((node.op_type for node in graph.consumers.get(name, ())), "no node")
            if by not in _MOVES or not _WEIGHT.search(name):  # a weight that is cut or joined first is told by its name
                layouts[label] = f"no layer of the graph reads it as weights, but {by}"
    return Opened(found, layouts, files=files)


def _named(reading: Reading, taken: dict[str, Stored], times: dict[str, int]) -> str:
    """The name of a weight: its own, or that of its layer where its own says nothing."""
    name = reading.name
    if _ANONYMOUS.fullmatch(reading.source) and reading.layer.count("/") > 1:
        path = reading.layer.strip("/").rpartition("/")[0].replace("/", ".")
        name = f"{path}{name.removeprefix(reading.source)}.weight"
    return free_name(name, taken, times)
