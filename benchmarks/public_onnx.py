"""A small ONNX graph as a PyTorch module: convolutions, batch norm and dense layers are PyTorch's own."""

from collections.abc import Callable
from typing import Any

import onnx
import torch
from onnx import NodeProto, numpy_helper
from torch import nn
from torch.nn import functional

Value = torch.Tensor
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "Add": lambda a, b: a + b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Relu": lambda a: functional.relu(a),
    "Clip": lambda a, low=None, high=None, min=None, max=None: a.clamp(
        *(float(one) if one is not None else other for one, other in ((low, min), (high, max)))
    ),
    "HardSigmoid": lambda a, alpha=0.2, beta=0.5: (alpha * a + beta).clamp(0, 1),
    "GlobalAveragePool": lambda a: a.mean((2, 3), keepdim=True),
    "MaxPool": lambda a, kernel_shape, strides, **others: functional.max_pool2d(a, kernel_shape, strides),
    "Transpose": lambda a, perm: a.permute(*perm),
    "Unsqueeze": lambda a, axes: a.unsqueeze(axes[0]),
    "ReduceMax": lambda a, axes, keepdims=1: a.amax(axes, keepdim=bool(keepdims)),
    "Softmax": lambda a, axis=-1: a.softmax(axis),
    "Reshape": lambda a, shape: a.reshape(*map(int, shape)),
    "Identity": lambda a: a,
}


class OnnxModule(nn.Module):
    """A model of one input and one output.

    Constants are folded; what adds a constant vector to a dense or convolution layer becomes its bias; a reshape whose
    shape is computed from the input flattens.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__()
        graph = onnx.load_from_string(content).graph
        self.input, self.output = graph.input[0].name, graph.output[0].name
        self.constants = {one.name: torch.from_numpy(numpy_helper.to_array(one).copy()) for one in graph.initializer}
        self.steps: list[tuple[str, str, list[str], dict[str, Any]]] = []
        self.layers = nn.ModuleDict()
        self.made: dict[str, nn.Module] = {}  # the layer that an output comes from
        shapes: set[str] = set()  # what is computed from the input's shape
        for node in graph.node:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = torch.from_numpy(numpy_helper.to_array(node.attribute[0].t).copy())
            elif node.op_type == "Shape" or any(name in shapes for name in node.input[:1]) or node.op_type == "Cast":
                shapes.add(node.output[0])
            elif node.op_type == "Reshape" and node.input[1] not in self.constants:
                self.steps.append(("Flatten", node.output[0], [node.input[0]], {}))
            elif node.op_type != "Concat":
                self._add(node)

    def _add(self, node: NodeProto) -> None:
        inputs, name = [one for one in node.input if one], node.output[0]
        options = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        options.pop("ceil_mode", None)
        if all(one in self.constants for one in inputs):
            self.constants[name] = FUNCTIONS[node.op_type](*(self.constants[one] for one in inputs), **options)
            return
        constants = [self.constants[one] for one in inputs if one in self.constants]
        layer = self.made.get(inputs[0])
        if node.op_type == "Add" and constants and getattr(layer, "bias", constants) is None:
            layer.bias = nn.Parameter(constants[0].reshape(-1))  # type: ignore[union-attr]
            self.steps.append(("Identity", name, inputs[:1], {}))
        elif node.op_type in ("Conv", "BatchNormalization", "MatMul"):
            self.layers[str(len(self.layers))] = self.made[name] = _layer(node.op_type, constants, options)
            self.steps.append((str(len(self.layers) - 1), name, inputs[:1], {}))
        else:
            self.steps.append((node.op_type, name, inputs, options))

    def forward(self, x: Value) -> Value:
        """The graph's output."""
        values = {**self.constants, self.input: x}
        for kind, name, inputs, options in self.steps:
            given = [values[one] for one in inputs]
            if kind == "Flatten":
                values[name] = given[0].flatten(1)
            elif kind.isdigit():
                values[name] = self.layers[kind](*given)
            else:
                values[name] = FUNCTIONS[kind](*given, **options)
        return values[self.output]


def _layer(kind: str, constants: list[Value], options: dict[str, Any]) -> nn.Module:
    """A layer with its weights."""
    weight, *others = constants
    if kind == "MatMul":
        layer: Any = nn.Linear(*weight.shape, bias=False)
        layer.weight.data = weight.T.contiguous()
    elif kind == "Conv":
        groups, (top, left, bottom, right) = options.get("group", 1), options.get("pads", (0, 0, 0, 0))
        if (top, left) != (bottom, right):
            raise ValueError("a convolution pads its two sides unequally")
        if options.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
            top, left = (size // 2 for size in weight.shape[2:])
        kernel: Any = tuple(weight.shape[2:])
        layer = nn.Conv2d(
            weight.shape[1] * groups, len(weight), kernel, tuple(options.get("strides", (1, 1))),
            (top, left), tuple(options.get("dilations", (1, 1))), groups, bias=bool(others),
        )  # fmt: skip
        layer.weight.data = weight
        if others:
            layer.bias.data = others[0]
    else:
        layer = nn.BatchNorm2d(len(weight), eps=options.get("epsilon", 1e-5))
        layer.weight.data, layer.bias.data, layer.running_mean, layer.running_var = constants
    return layer
