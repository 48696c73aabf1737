"""TensorFlow Lite, through the schema of the package ``tflite``: constants, their scales, and what layers read them."""

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..._files import ADVICE, Stored
from ..._memory import require
from ...errors import InputError
from .._layout import UnitLayout
from .._roles import DEPTHWISE, OUTPUT
from .opened import Opened, check_shape, final_values, free_name, library, turned, without_values

_TYPES = {
    0: "float32",
    1: "float16",
    2: "int32",
    3: "uint8",
    4: "int64",
    6: "bool",
    7: "int16",
    9: "int8",
    10: "float64",
}
_PASSED = ("DEQUANTIZE", "DENSIFY")
_LAYERS = {  # the inputs of a layer that are weights, each with its kind of units and its bias; -1: none
    "CONV_2D": ((1, "conv", 2),),
    "CONV_3D": ((1, "conv3d", 2),),
    "TRANSPOSE_CONV": ((1, "conv", 3),),
    "DEPTHWISE_CONV_2D": ((1, "depthwise", 2),),
    "FULLY_CONNECTED": ((1, "dense", 2),),
    "SVDF": ((1, "dense", 3), (2, "dense", -1)),
    "GATHER": ((0, "embedding", -1),),
    "EMBEDDING_LOOKUP": ((1, "embedding", -1),),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": tuple((place, "dense", -1) for place in range(1, 9)),
    "LSTM": tuple((place, "dense", -1) for place in range(1, 9)),
    "BATCH_MATMUL": ((1, "product", -1),),
}
_GIVES_ON = ("IF", "WHILE", "CALL", "CALL_ONCE")  # that have graphs in them
_ENDS = ("CONV_2D", "CONV_3D", "TRANSPOSE_CONV", "FULLY_CONNECTED")  # whose units may be outputs of the model


def open_tflite(path: Path) -> Opened:
    """The constants of a model of TensorFlow Lite."""
    schema = library("tflite", path)
    size = path.stat().st_size
    require(2 * size, f"reading {path}", ADVICE)
    try:
        content = path.read_bytes()
        model = schema.Model.GetRootAs(content, 0)
        names = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
        codes = [
            names.get(max(own.BuiltinCode(), own.DeprecatedBuiltinCode()), "CUSTOM")
            for own in (model.OperatorCodes(k) for k in range(_count(model.OperatorCodesLength(), size)))
        ]
        arrays: dict[str, Stored] = {}
        layouts: dict[str, UnitLayout | str] = {}
        graphs = [model.Subgraphs(k) for k in range(_count(model.SubgraphsLength(), size))]
        for entries in ("TensorsLength", "OperatorsLength"):  # offsets may lead to one list again and again
            _count(sum(getattr(graph, entries)() for graph in graphs), size)
        for graph in graphs:  # the first one is the model
            outputs = _whole(graph.OutputsAsNumpy()) if graph is graphs[0] else ()
            _graph(model, graph, outputs, codes, size, arrays, layouts)
    except InputError:
        raise
    except Exception as error:  # offsets that lead nowhere fail in many ways
        raise InputError(f"{path} cannot be read as TensorFlow Lite: it is truncated or broken") from error
    if not arrays:
        raise InputError(f"{path} is a TensorFlow Lite model without constants")
    return Opened(arrays, layouts)


def _count(number: int, size: int) -> int:
    """A number of entries, each of which takes at least four bytes of the file."""
    if number < 0 or 4 * number > size:
        raise InputError("it is truncated or broken: its lists are longer than the file")
    return number


def _graph(
    model: Any,
    graph: Any,
    outputs: tuple[int, ...],
    codes: list[str],
    size: int,
    arrays: dict[str, Stored],
    layouts: dict[str, UnitLayout | str],
) -> None:
    """Take in the constants of one graph, of the model with these outputs, as its layers read them."""
    tensors = {k: graph.Tensors(k) for k in range(_count(graph.TensorsLength(), size))}
    nodes = [
        (codes[node.OpcodeIndex()], _whole(node.InputsAsNumpy()), _whole(node.OutputsAsNumpy()))
        for node in (graph.Operators(k) for k in range(_count(graph.OperatorsLength(), size)))
    ]
    passed = {outputs[0]: inputs[0] for code, inputs, outputs in nodes if code in _PASSED and inputs and outputs}
    constants = {k: own for k, tensor in tensors.items() if (own := _stored(model, tensor, size)) is not None}
    names = _names(arrays, {k: tensors[k] for k in constants})

    def constant(inputs: tuple[int, ...], place: int) -> int | None:
        k = inputs[place] if 0 <= place < len(inputs) else -1
        for _ in range(3):
            k = passed.get(k, k)
        return k if k in constants else None

    given_on = {*_LAYERS, *_GIVES_ON}
    final = final_values([(code in given_on, inputs, given) for code, inputs, given in nodes], outputs)
    last: set[int] = set()  # weights of layers whose units are outputs of the model
    readings: dict[int, tuple[str, int | None, str]] = {}
    for code, inputs, given in nodes:
        for place, kind, bias in _LAYERS.get(code, ()):
            k = constant(inputs, place)
            if k is not None:
                readings.setdefault(k, (kind, constant(inputs, bias), code))
                last |= {k} if final.intersection(given[:1]) and code in _ENDS else set()
    others = {k: code for code, inputs, _ in nodes for k in inputs}
    for k in dict.fromkeys((*readings, *constants)):  # in the order of the layers
        stored = constants[k]
        kind, bias, code = readings.get(k, ("", None, others.get(k, "no layer")))
        if not kind and not stored.floating and not stored.reason:
            continue  # shapes, paddings and the like
        own = _turned(stored, kind)
        name = names[k]
        arrays[name] = own
        if len(own.shape) < 2 or own.reason:
            continue
        if not kind or (kind == "product" and len(own.shape) != 2) or (kind == "embedding" and len(own.shape) != 2):
            layouts[name] = f"no layer of the graph reads it as weights, but {code}"
            continue
        unit = {"conv": "filter", "conv3d": "filter", "depthwise": DEPTHWISE, "embedding": "embedding"}.get(
            kind, "neuron"
        )
        unit = OUTPUT if k in last else unit
        fits = bias is not None and constants[bias].shape == (own.shape[0],)
        layouts[name] = UnitLayout(unit, bias=(names[bias], 0) if bias is not None and fits else None)


def _whole(values: Any) -> tuple[int, ...]:
    return tuple(map(int, values)) if isinstance(values, np.ndarray) else ()


def _names(taken: dict[str, Stored], tensors: dict[int, Any]) -> dict[int, str]:
    """A name for each tensor, of its own."""
    names: dict[int, str] = {}
    used, times = set(taken), dict[str, int]()
    for k, tensor in tensors.items():
        name = str(tensor.Name() or b"", "utf-8", "replace").replace("/", ".") or f"tensor{k}"
        name = name if len(name) < 200 else f"{name[:90]}...{name[-90:]}"  # fused layers have the names of all
        name = free_name(name, used, times)
        used.add(name)
        names[k] = name
    return names


def _stored(model: Any, tensor: Any, size: int) -> Stored | None:
    """The values of a tensor if it is a constant, with their scale and zero point applied."""
    if not 0 < tensor.Buffer() < _count(model.BuffersLength(), size):
        return None
    data = model.Buffers(tensor.Buffer()).DataAsNumpy()
    shape = _whole(tensor.ShapeAsNumpy())
    dtype = _TYPES.get(tensor.Type(), "")
    if not isinstance(data, np.ndarray) or not data.size:
        return None
    check_shape(shape)
    if not dtype:
        return without_values(shape, "", "of a type that is not known here")
    if tensor.Sparsity() is not None:
        return without_values(shape, dtype, "sparse: it has to be made dense first")
    if data.size != prod(shape) * np.dtype(dtype).itemsize:
        return without_values(shape, dtype, "broken: its values do not fit its shape")
    scale, zero, axis = _scale(tensor)
    if scale is None or dtype.startswith("float"):
        return Stored(shape, dtype, lambda: data.view(dtype).reshape(shape))
    spread = [1] * len(shape)
    if len(scale) > 1:
        if not 0 <= axis < len(shape) or len(scale) != shape[axis]:
            return without_values(shape, dtype, "quantised, and its scales do not fit")
        spread[axis] = -1

    def load() -> np.ndarray:
        values = data.view(dtype).reshape(shape).astype(np.float32)
        return (values - zero.reshape(spread)) * scale.reshape(spread)

    return Stored(shape, f"float32 from {dtype}", load)


def _scale(tensor: Any) -> tuple[Any, Any, int]:
    about = tensor.Quantization()
    if about is None:
        return None, None, 0
    scale = about.ScaleAsNumpy()
    if not isinstance(scale, np.ndarray) or not scale.size:
        return None, None, 0
    zero = about.ZeroPointAsNumpy()
    same = isinstance(zero, np.ndarray) and zero.size == scale.size
    return scale, zero.astype(np.float32) if same else np.zeros_like(scale), about.QuantizedDimension()


def _turned(stored: Stored, kind: str) -> Stored:
    """Values with units first; filters of TensorFlow Lite have their channels last."""
    axes = len(stored.shape)
    if kind == "conv" and axes == 4:
        return turned(stored, (0, 3, 1, 2))
    if kind == "conv3d" and axes == 5:
        return turned(stored, (4, 3, 0, 1, 2))
    if kind == "depthwise" and axes == 4:
        return turned(stored, (3, 0, 1, 2))
    return turned(stored, (1, 0)) if kind == "product" and axes == 2 else stored
