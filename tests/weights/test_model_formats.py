"""Models of other frameworks: the units that a file gives are those that its layers compute with."""

import json
import tarfile
import zipfile

import foreign
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from condensation import InputError
from condensation.weights import measure_listed, measure_path, open_model_file

STREAM = np.random.default_rng(3)


def normal(*shape):
    return STREAM.normal(size=shape).astype(np.float32)


def units_in(path, **options):
    return {own.name: own for own in open_model_file(path).units(**options) if not own.reason}


NAMES = {
    "m.onnx": ("conv.weight", "dense.weight"),
    "m.tflite": ("conv.kernel", "dense.half"),
    "m.keras": ("conv2d.kernel", "dense.kernel"),
}


@pytest.mark.parametrize("name", ["m.onnx", "m.h5", "m.keras", "m.pb", "c.index", "model.json", "m.tflite"])
@pytest.mark.parametrize("called", [None, "wrong.pt"])
def test_all_formats_give_the_units_of_one_network(tmp_path, name, called):
    """Whatever the file is called; quantised weights to half a step."""
    content = foreign.all_files(tmp_path)[name]
    path = tmp_path / (called if called and name not in ("c.index", "model.json") else name)
    path.write_bytes(content)
    found = units_in(path)
    conv, dense = NAMES.get(name, ("conv.kernel", "dense.kernel"))
    last = "output" if name in ("m.onnx", "m.tflite") else "neuron"  # their graphs tell
    assert {conv: "filter", dense: last} == {own.name: own.kind for own in found.values()}
    steps = {"m.tflite": (np.abs(foreign.CONV).max() / 254, 2e-3), "model.json": (0, np.ptp(foreign.DENSE) / 510)}
    for own, expected, step in zip((conv, dense), foreign.UNITS.values(), steps.get(name, (0, 0)), strict=True):
        np.testing.assert_allclose(found[own].weights(), expected, atol=step + 1e-6)
    kernels = units_in(path, view="kernel")[conv]
    assert (kernels.units, kernels.inputs) == (18, 4)
    np.testing.assert_allclose(kernels.weights(), foreign.CONV.reshape(18, 4), atol=steps.get(name, (0,))[0] + 1e-6)
    rows = measure_path(path).rows
    assert {row.layer: row.units for row in rows if not row.reason} == {conv: 6, dense: 5}


def test_gguf_is_dequantised_and_tells_its_heads(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(foreign.gguf_file(tmp_path))
    found = units_in(path, heads=True)
    assert found["token_embd.weight"].kind == "embedding"
    assert found["blk.0.attn_q.weight[head 3]"].units == 16
    step = np.abs(foreign.GGUF_UP.reshape(32, 2, 32)).max(axis=2) / 127
    error = np.abs(found["blk.0.ffn_up.weight"].weights() - foreign.GGUF_UP).reshape(32, 2, 32).max(axis=2)
    assert (error <= 0.51 * step + 1e-3).all()
    assert open_model_file(path).config["model_type"] == "llama"


LAYERS = {  # nodes that give y = W x + b, the constants, the name of W
    "Gemm": ([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], {"w": normal(7, 5), "b": normal(5)}),
    "Gemm, turned": ([helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)], {"w": normal(5, 7), "b": normal(5)}),
    "MatMul and Add": (
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["b", "h"], ["y"])],
        {"w": normal(7, 5), "b": normal(5)},
    ),
    "MatMul of a transposed weight": (
        [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["x", "t"], ["y"])],
        {"w": normal(5, 7)},
    ),
    "a square MatMul": ([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": normal(7, 7)}),
    "one scale": (
        [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]), helper.make_node("MatMul", ["x", "d"], ["y"])],
        {"w": STREAM.integers(0, 255, (7, 5)).astype(np.uint8), "s": np.float32(0.1), "z": np.uint8(120)},
    ),
    "a scale for each unit": (
        [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0),
         helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)],
        {"w": STREAM.integers(-9, 9, (5, 7)).astype(np.int8), "s": np.abs(normal(5)), "z": np.zeros(5, np.int8)},
    ),
    "a constant node": (
        [helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(normal(7, 5))),
         helper.make_node("MatMul", ["x", "w"], ["y"])],
        {},
    ),
    "an integer product": (
        [helper.make_node("Cast", ["x"], ["i"], to=TensorProto.UINT8),
         helper.make_node("MatMulInteger", ["i", "w_quantized", "", "z"], ["p"]),
         helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
         helper.make_node("Mul", ["f", "w_scale"], ["y"])],
        {"w_quantized": STREAM.integers(0, 255, (7, 5)).astype(np.uint8), "z": np.uint8(128),
         "w_scale": np.float32(0.2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("layer", LAYERS)
def test_the_units_of_an_onnx_layer_compute_what_its_graph_computes(tmp_path, layer):
    nodes, constants = LAYERS[layer]
    model = foreign.as_onnx(nodes, constants, 7)
    onnx.save(model, tmp_path / "m.onnx")
    (units,) = units_in(tmp_path / "m.onnx").values()
    weights = units.weights()
    x = STREAM.integers(0, 9, (1, 7)).astype(np.float32)
    (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    inputs = np.concatenate([x[0], np.ones(1)])[: weights.shape[1]]
    np.testing.assert_allclose(weights @ inputs, np.asarray(y)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_groups_of_an_onnx_convolution(tmp_path, groups):
    """Each group's units read their own channels; a depthwise layer's filters are compared with each other."""
    weight, bias = normal(8 if groups < 4 else 4, 4 // groups, 3, 3), normal(8 if groups < 4 else 4)
    model = foreign.as_onnx(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], group=groups)], {"w": weight, "b": bias}, [1, 4, 3, 3]
    )
    onnx.save(model, tmp_path / "m.onnx")
    found = list(units_in(tmp_path / "m.onnx").values())
    x = normal(1, 4, 3, 3)
    (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert len(found) == (2 if groups == 2 else 1)
    given = []
    for k, own in enumerate(found):
        for filter_ in own.weights():
            part = x[0, 2 * k : 2 * k + 2] if groups == 2 else x[0] if groups == 1 else x[0, len(given)]
            given.append(filter_ @ np.concatenate([part.reshape(-1), np.ones(1)]))
    np.testing.assert_allclose(given, np.asarray(y)[0, :, 0, 0], rtol=1e-4)


def test_recurrent_layers_embeddings_and_graphs_inside_nodes(tmp_path):
    inputs, states, table = normal(2, 16, 3), normal(2, 16, 4), normal(9, 3)
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["e", "inner"], ["o"])],
        "inner",
        [],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(normal(3, 6), "inner")],
    )
    nodes = [
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "i"], ["e"]),
        helper.make_node("LSTM", ["e", "W", "R"], ["y"], hidden_size=4, direction="bidirectional"),
        helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner),
        helper.make_node("Mul", ["y", "mask"], ["v"]),
        helper.make_node("Split", ["rnn.weight_hh"], ["u", "t"], axis=0, num_outputs=2),
    ]
    constants = {"W": inputs, "R": states, "table": table, "mask": normal(4, 4), "rnn.weight_hh": states[0]}
    onnx.save(foreign.as_onnx(nodes, constants, [2, 1]), tmp_path / "m.onnx")
    found = units_in(tmp_path / "m.onnx")
    assert found["table"].kind == "embedding"
    np.testing.assert_array_equal(found["W.reverse[forget]"].weights(), inputs[1, 8:12])
    np.testing.assert_array_equal(found["R.forward[output]"].weights(), states[0, 4:8])
    assert found["inner"].units == 6
    np.testing.assert_array_equal(found["rnn.weight_hh[forget]"].weights(), states[0, 4:8])  # in PyTorch's order
    reasons = {own.name: own.reason for own in open_model_file(tmp_path / "m.onnx").units() if own.reason}
    assert reasons["mask"] == "no layer of the graph reads it as weights, but Mul"


def test_values_beside_an_onnx_model_are_read_from_its_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    content = b"12345678" + foreign.DENSE.T.tobytes()
    (folder / "m.onnx.data").write_bytes(content)
    (folder / "m.onnx").write_bytes(foreign.external_onnx("m.onnx.data", 8))
    np.testing.assert_array_equal(units_in(folder / "m.onnx")["w"].weights(), foreign.DENSE)
    assert {file.name for file in open_model_file(folder / "m.onnx").files} == {"m.onnx", "m.onnx.data"}
    (tmp_path / "secret").write_bytes(content)
    (folder / "link").symlink_to(tmp_path / "secret")
    for location in ("../secret", str(tmp_path / "secret"), "link", "a/../../secret", ""):
        (folder / "m.onnx").write_bytes(foreign.external_onnx(location, 8))
        (own,) = open_model_file(folder / "m.onnx").units()
        assert "which is not in the model's folder" in own.reason
    (folder / "m.onnx.data").write_bytes(content[:-1])
    (folder / "m.onnx").write_bytes(foreign.external_onnx("m.onnx.data", 8))
    (row,) = measure_listed(open_model_file(folder / "m.onnx").units())
    assert "truncated" in row.reason
    (folder / "m.onnx").write_bytes(foreign.external_onnx("gone", 8))
    (own,) = open_model_file(folder / "m.onnx").units()
    assert "its values are missing" in own.reason


def test_a_checkpoint_of_tensorflow_is_found_by_prefix_and_in_a_saved_model(tmp_path):
    index, data = foreign.bundle_files()
    (tmp_path / "ckpt-3.index").write_bytes(index)
    (tmp_path / "ckpt-3.data-00000-of-00001").write_bytes(data)
    expected = list(units_in(tmp_path / "ckpt-3"))
    assert expected == ["conv.kernel", "dense.kernel"]
    variables = tmp_path / "saved" / "variables"
    variables.mkdir(parents=True)
    (variables / "variables.index").write_bytes(index)
    (variables / "variables.data-00000-of-00001").write_bytes(data)
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"\x08\x01\x12\x00")
    assert list(units_in(tmp_path / "saved")) == expected
    (variables / "variables.data-00000-of-00001").write_bytes(data[:-1])
    rows = {row.layer: row for row in measure_path(tmp_path / "saved").rows}
    assert "is truncated" in rows["dense.kernel"].reason
    assert rows["conv.kernel"].units == 6


def test_models_in_archives_and_folders(tmp_path):
    folder = tmp_path / "package" / "pkg" / "data"
    folder.mkdir(parents=True)
    for name, content in foreign.tfjs_files().items():
        (folder / name).write_bytes(content)
    expected = list(units_in(folder / "model.json"))
    with zipfile.ZipFile(tmp_path / "one.whl", "w") as archive:
        archive.write(tmp_path / "package" / "pkg", "pkg/__init__.py")
        for file in folder.iterdir():
            archive.write(file, f"pkg/data/{file.name}")
    with tarfile.open(tmp_path / "one.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    for path in ("one.whl", "one.tgz", "one.whl/pkg/data/model.json", "one.tgz/package/pkg/data/model.json", "package"):
        found = measure_path(tmp_path / path)
        assert {row.layer for row in found.rows if not row.reason} == {own.name for own in found.units} == set(expected)
        assert found.units[0].weights().size  # also when the file that was opened is gone
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(tmp_path / "one.tgz", "inner.tar")
    assert list(units_in(tmp_path / "outer.zip")) == expected
    (folder / "m.onnx").write_bytes(foreign.onnx_file())
    with pytest.raises(InputError, match=r"holds 2 .*pkg/data/m\.onnx, pkg/data/model\.json.*name one"):
        measure_path(tmp_path / "package")
    with tarfile.open(tmp_path / "two.tar", "w") as archive:
        archive.add(tmp_path / "package", "package")
    with pytest.raises(InputError, match=r"holds 2 models .*name one, such as .*two\.tar/package/pkg/data/m"):
        open_model_file(tmp_path / "two.tar")
    with pytest.raises(InputError, match=r"two\.tar holds no file gone\.onnx; its models: package/pkg"):
        open_model_file(tmp_path / "two.tar" / "gone.onnx")


def test_steps_of_training_may_be_of_any_format(tmp_path):
    for step in (10, 200):
        (tmp_path / f"step_{step}.onnx").write_bytes(foreign.onnx_file())
    assert list(measure_path(tmp_path).steps) == [10, 200]


def test_keras_layers_with_orders_of_their_own(tmp_path):
    import h5py

    depth, back, gru = normal(3, 3, 4, 2), normal(2, 2, 5, 4), normal(3, 12)
    states, heads, table = normal(4, 12), normal(6, 2, 4), normal(9, 3)
    with h5py.File(tmp_path / "m.weights.h5", "w") as file:
        file["layers/depthwise_conv2d/vars/0"] = depth
        file["layers/conv2d_transpose/vars/0"] = back
        file["layers/gru/cell/vars/0"], file["layers/gru/cell/vars/1"] = gru, states
        file["layers/gru/cell/vars/2"] = normal(2, 12)
        file["layers/multi_head_attention/query_dense/vars/0"] = normal(6, 6)
        file["layers/embedding/vars/0"] = table
        file["layers/attention/query/kernel"], file["layers/attention/query/bias"] = heads, normal(2, 4)
    found = units_in(tmp_path / "m.weights.h5")
    np.testing.assert_array_equal(
        found["depthwise_conv2d.depthwise_kernel"].weights(), depth.transpose(2, 3, 0, 1).reshape(8, 9)
    )
    np.testing.assert_array_equal(found["conv2d_transpose.kernel"].weights(), back.transpose(2, 3, 0, 1).reshape(5, 16))
    np.testing.assert_array_equal(found["gru.cell.recurrent_kernel[reset]"].weights(), states[:, 4:8].T)
    np.testing.assert_array_equal(found["gru.cell.kernel[update]"].weights(), gru[:, :4].T)
    assert found["embedding.embeddings"].kind == "embedding"
    query = found["layers.attention.query.kernel"]
    assert (query.kind, query.units, query.inputs) == ("query", 8, 7)


def test_a_recurrent_layer_of_keras_whatever_it_is_called(tmp_path):
    """Its kernel for the state tells it, and the two biases of a unit are no weights."""
    import h5py

    kernel, states = normal(3, 12), normal(4, 12)
    with h5py.File(tmp_path / "m.weights.h5", "w") as file:
        for k, values in enumerate((kernel, states, normal(2, 12))):
            file[f"layers/bidirectional/forward_layer/cell/vars/{k}"] = values
    cell = "bidirectional.forward_layer.cell"
    listed = {own.name: own for own in open_model_file(tmp_path / "m.weights.h5").units()}
    np.testing.assert_array_equal(listed[f"{cell}.kernel[new]"].weights(), kernel[:, 8:].T)
    np.testing.assert_array_equal(listed[f"{cell}.recurrent_kernel[update]"].weights(), states[:, :4].T)
    assert listed[f"{cell}.bias"].reason.startswith("biases of a recurrent layer")


def test_a_graph_tells_whose_units_are_outputs(tmp_path):
    """What no other layer reads, through nodes without weights; not what is read on, or given by a graph inside."""
    nodes = [
        helper.make_node("Conv", ["x", "stem"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "boxes"], ["c"]),
        helper.make_node("Conv", ["b", "scores"], ["d"]),
        helper.make_node("Sigmoid", ["d"], ["e"]),
        helper.make_node("Concat", ["c", "e"], ["y"], axis=1),
        helper.make_node("Conv", ["b", "unused"], ["f"]),
        helper.make_node("Split", ["b"], ["g", "h"], axis=1),
        helper.make_node("Conv", ["g", "branch"], ["i"]),
        helper.make_node("Conv", ["i", "last"], ["z"]),
    ]
    constants = {name: normal(6, 6, 1, 1) for name in ("stem", "boxes", "scores", "unused")}
    constants |= {"branch": normal(6, 3, 1, 1), "last": normal(2, 6, 1, 1)}
    model = foreign.as_onnx(nodes, constants, [1, 6, 4, 4])
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    onnx.save(model, tmp_path / "m.onnx")
    kinds = {name: own.kind for name, own in units_in(tmp_path / "m.onnx").items()}
    ends = ("boxes", "scores", "last")
    assert kinds == {name: "output" if name in ends else "filter" for name in constants}


def test_arrays_in_a_plain_hdf5_file(tmp_path):
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["net/fc.weight"], file["net/fc.bias"], file["text"] = normal(5, 3), normal(5), "a"
        file["net/packed"] = normal(4, 4).astype(">f8")
    found = units_in(tmp_path / "a.h5")
    assert {name: own.inputs for name, own in found.items()} == {"net.fc.weight": 4, "net.packed": 4}


def test_the_configuration_of_a_manifest_is_not_a_model(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"layers": []}))
    with pytest.raises(InputError, match=r"is no list of TensorFlow\.js"):
        open_model_file(tmp_path / "model.json")


def test_kernels_of_haiku_have_their_units_last(tmp_path):
    import pickle

    state = {"net/~/linear": {"w": foreign.DENSE.T, "b": foreign.DENSE_BIAS}, "net/~/norm": {"scale": np.ones(5)}}
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"params": state}))
    found = units_in(tmp_path / "m.pkl")
    np.testing.assert_array_equal(found["w"].weights(), foreign.UNITS["dense"])
