"""Quantised models of ONNX Runtime's kinds, and layers whose biases or groups the graph tells."""

import foreign
import numpy as np
import onnx
import pytest
from onnx import helper

from condensation.weights import measure_path, open_model_file

STREAM = np.random.default_rng(5)


def normal(*shape):
    return STREAM.normal(size=shape).astype(np.float32)


def units_of(path, nodes, constants, inputs):
    onnx.save(foreign.as_onnx(nodes, constants, inputs), path)
    return {own.name: own for own in open_model_file(path).units() if not own.reason}


STEPS = np.array([0.01, 0.02, 0.03, 0.04, 0.05], np.float32)
WHOLE, WHOLE_BIAS = STREAM.integers(-99, 99, (5, 5)).astype(np.int8), STREAM.integers(-(10**6), 10**6, 5).astype("i4")
REST = {"s": STEPS, "z": np.zeros(5, np.int8), "one": np.float32(0.002), "none": np.int8(0)}
BEHIND = [
    helper.make_node("Cast", ["p"], ["f"], to=1),
    helper.make_node("Mul", ["f", "w_scale"], ["m"]),
    helper.make_node("Add", ["m", "b"], ["y"]),
]
KINDS = {  # the nodes of a square layer with a scale for each unit
    "QGemm": ([helper.make_node("QGemm", ["x", "one", "none", "w", "s", "z", "c"], ["y"], transB=1)], 0),
    "QDQ": (
        [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0),
         helper.make_node("DequantizeLinear", ["c", "r"], ["e"], axis=0),
         helper.make_node("Gemm", ["x", "d", "e"], ["y"], transB=1)],
        0,
    ),
    "QLinearConv": (
        [helper.make_node("QLinearConv", ["x", "one", "none", "w", "s", "z", "one", "none", "c"], ["y"])],
        0,
    ),
    "MatMulInteger": ([helper.make_node("MatMulInteger", ["x", "w_quantized"], ["p"]), *BEHIND], 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_for_each_unit_and_a_bias_of_whole_numbers(tmp_path, kind):
    """The bias of whole numbers has the scale of inputs times weights, and a square weight the scales of its units."""
    nodes, axis = KINDS[kind]
    whole = WHOLE[:, :, None, None] if "Conv" in kind else WHOLE.T.copy() if axis else WHOLE
    bias = (WHOLE_BIAS * STEPS * 0.002).astype(np.float32)
    constants = {"w": whole, "w_quantized": whole, "w_scale": STEPS, "c": WHOLE_BIAS, "b": bias, **REST}
    used = {name for node in nodes for name in node.input} | {"w_scale"}
    constants = {name: own for name, own in constants.items() if name in used} | {"r": 0.002 * STEPS}
    (own,) = units_of(tmp_path / "m.onnx", nodes, constants, [1, 5, 1, 1] if "Conv" in kind else 5).values()
    expected = np.concatenate([WHOLE * STEPS[:, None], bias[:, None]], axis=1)
    np.testing.assert_allclose(own.weights(), expected, rtol=1e-5)


@pytest.mark.parametrize("quantised", [False, True])
def test_recurrent_layers_have_their_biases_and_scales(tmp_path, quantised):
    whole, state = STREAM.integers(-99, 99, (2, 16, 3)).astype("i1"), STREAM.integers(-99, 99, (2, 16, 4)).astype("i1")
    scales, bias, none = np.abs(normal(2, 16)), normal(2, 32), np.zeros((2, 16), np.int8)
    real, real_state = whole * scales[:, :, None], state * scales[:, :, None]
    constants = {"W": real, "R": real_state, "B": bias}
    node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], hidden_size=4, direction="bidirectional")
    if quantised:
        constants = {
            "W": whole.swapaxes(1, 2).copy(),
            "R": state.swapaxes(1, 2).copy(),
            "B": bias,
            "s": scales,
            "z": none,
        }
        names = ["x", "W", "R", "B", "", "", "", "", "s", "z", "s", "z"]
        node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], hidden_size=4, direction="bidirectional")
    found = units_of(tmp_path / "m.onnx", [node], constants, [2, 1, 3])
    forget = found["W.reverse[forget]"].weights()
    np.testing.assert_allclose(forget, np.column_stack([real[1, 8:12], bias[1, 8:12]]), rtol=1e-6)
    cell = found["R.forward[cell]"].weights()
    np.testing.assert_allclose(cell, np.column_stack([real_state[0, 12:], bias[0, 28:]]), rtol=1e-6)
    assert not [own.name for own in open_model_file(tmp_path / "m.onnx").units() if own.reason]


def test_the_filters_of_a_transposed_convolution_in_groups(tmp_path):
    """Each group has filters of its own channels: (inputs, filters of a group, ...) in the file."""
    weight, bias = normal(6, 4, 3), normal(8)
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], group=2)
    found = units_of(tmp_path / "m.onnx", [node], {"w": weight, "b": bias}, [1, 6, 9])
    assert [(own.name, own.units, own.inputs) for own in found.values()] == [
        ("w[group 0]", 4, 10),
        ("w[group 1]", 4, 10),
    ]
    expected = np.column_stack([weight[3:, 2].reshape(-1)[None], bias[6:7]])
    np.testing.assert_array_equal(found["w[group 1]"].weights()[2:3], expected)


def test_scales_that_do_not_fit_are_the_reason(tmp_path):
    node = helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0)
    nodes = [node, helper.make_node("MatMul", ["x", "d"], ["y"])]
    units_of(tmp_path / "m.onnx", nodes, {"w": WHOLE, "s": STEPS[:3]}, 5)
    reasons = {row.layer: row.reason for row in measure_path(tmp_path / "m.onnx").rows}
    assert reasons["w"] == "quantised, and its scales do not fit"
    blocks = normal(5, 2)  # the first has three inputs, the second two
    (own,) = units_of(tmp_path / "m.onnx", [_of_blocks(), nodes[1]], {"w": WHOLE, "s": blocks}, 5).values()
    np.testing.assert_allclose(own.weights(), (WHOLE * np.repeat(blocks, 3, axis=1)[:, :5]).T, rtol=1e-6)


def _of_blocks():
    return helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=1, block_size=3)
