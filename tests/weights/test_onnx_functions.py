"""Functions that a model of ONNX brings along, as modules are exported, and its sparse constants."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from condensation.errors import InputError
from condensation.weights import open_model_file

STREAM = np.random.default_rng(0)
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def normal(*shape):
    return STREAM.normal(size=shape).astype(np.float32)


def function(name, inputs, nodes, attributes=()):
    return helper.make_function("own", name, inputs, ["y"], nodes, OPSETS, attributes)


def save(path, nodes, constants, functions, sparse=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 20])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
        sparse_initializer=list(sparse),
    )
    onnx.save(helper.make_model(graph, opset_imports=OPSETS, functions=functions), path)
    return path


def units_in(path):
    return {own.name: (own.kind, own.weights()) for own in open_model_file(path).units() if not own.reason}


def turned() -> onnx.NodeProto:
    """A node whose attribute is that of the function around it."""
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    node.attribute.append(onnx.AttributeProto(name="transB", ref_attr_name="turn", type=onnx.AttributeProto.INT))
    return node


LINEAR = function("Linear", ["x", "w", "b"], [turned()], ["turn"])
BLOCK = function(
    "Block",
    ["x", "w", "b"],
    [helper.make_node("Linear", ["x", "w", "b"], ["h"], domain="own", turn=1), helper.make_node("Relu", ["h"], ["y"])],
)


def test_weights_are_read_through_the_functions_that_get_them(tmp_path):
    first, bias, second, shift = normal(64, 20), normal(64), normal(64, 64), normal(64)
    inside, last = normal(64, 30), normal(30, 5)
    held = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(inside))
    nodes = [
        helper.make_node("Block", ["x", "fc1.w", "fc1.b"], ["h1"], domain="own"),
        helper.make_node("Block", ["h1", "fc2.w", "fc2.b"], ["h2"], domain="own"),
        helper.make_node("Held", ["h2"], ["h3"], "third", domain="own"),
        helper.make_node("Linear", ["h3", "fc4.w", ""], ["out"], domain="own", turn=0),
    ]
    constants = {"fc1.w": first, "fc1.b": bias, "fc2.w": second, "fc2.b": shift, "fc4.w": last}
    functions = [LINEAR, BLOCK, function("Held", ["x"], [held, helper.make_node("MatMul", ["x", "c"], ["y"])])]
    found = list(units_in(save(tmp_path / "m.onnx", nodes, constants, functions)).values())
    expected = [
        np.concatenate([first, bias[:, None]], axis=1),
        np.concatenate([second, shift[:, None]], axis=1),
        inside.T,
        last.T,
    ]
    assert [kind for kind, _ in found] == ["neuron", "neuron", "neuron", "output"]
    for (_, own), wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, wanted)


def test_a_model_whose_weights_are_all_in_a_function_has_them_once_a_call(tmp_path):
    held = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(weights := normal(20, 20)))
    own = function("Held", ["x"], [held, helper.make_node("MatMul", ["x", "c"], ["y"])])
    nodes = [helper.make_node("Held", [a], [b], domain="own") for a, b in (("x", "h"), ("h", "out"))]
    found = units_in(save(tmp_path / "m.onnx", nodes, {}, [own]))
    assert len(found) == 2
    for _, values in found.values():
        np.testing.assert_array_equal(values, weights.T)


@pytest.mark.parametrize("calls", [1, 2])
def test_functions_that_call_themselves_are_refused(tmp_path, calls):
    again = [helper.make_node("F", ["x"], [f"h{k}"], domain="own") for k in range(calls)]
    own = function("F", ["x"], [*again, helper.make_node("Relu", ["h0"], ["y"])])
    path = save(tmp_path / "m.onnx", [helper.make_node("F", ["x"], ["out"], domain="own")], {}, [own])
    with pytest.raises(InputError, match="graphs in each other"):
        open_model_file(path)
    doubled = [
        function(f"F{k}", ["x"], [helper.make_node(f"F{k + 1}", [a], [b], domain="own") for a, b in ("xh", "hy")])
        for k in range(60)
    ]
    path = save(
        tmp_path / "d.onnx", [helper.make_node("F0", ["x"], ["out"], domain="own")], {"w": normal(3, 3)}, doubled
    )
    with pytest.raises(InputError, match="graphs in each other"):
        open_model_file(path)


def test_sparse_constants_are_listed_with_the_reason(tmp_path):
    entries = [
        numpy_helper.from_array(normal(3), "w"),
        numpy_helper.from_array(np.array([[0, 1], [2, 3], [4, 5]]), "at"),
    ]
    sparse = helper.make_sparse_tensor(*entries, [20, 64])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "v"], ["out"])]
    path = save(tmp_path / "m.onnx", nodes, {"v": normal(64, 5)}, [], [sparse])
    reasons = {own.name: own.reason for own in open_model_file(path).units()}
    assert reasons == {"v": "", "w": "a sparse tensor: it has to be made dense first"}
