"""Small model files of other frameworks, made with the libraries of their fields or by hand, all of one network."""

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import flatbuffers
import gguf
import h5py
import numpy as np
import tflite
from onnx import TensorProto, helper, numpy_helper

STREAM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return STREAM.normal(size=shape).astype(np.float32)


CONV, CONV_BIAS = normal(6, 3, 2, 2), normal(6)  # filters first, as in PyTorch
DENSE, DENSE_BIAS = normal(5, 7), normal(5)  # units first
UNITS = {
    "conv": np.concatenate([CONV.reshape(6, -1), CONV_BIAS[:, None]], axis=1),
    "dense": np.concatenate([DENSE, DENSE_BIAS[:, None]], axis=1),
}


# ONNX


def as_onnx(nodes: list[Any], constants: dict[str, np.ndarray], inputs: int | list[int], outputs: str = "y") -> Any:
    """A model of some nodes that reads ``x`` and gives ``y``."""
    shape = [1, inputs] if isinstance(inputs, int) else inputs
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(outputs, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def onnx_file() -> bytes:
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["h"], "conv"),
        helper.make_node("Gemm", ["a", "dense.weight", "dense.bias"], ["y"], "dense", transB=1),
    ]
    constants = {"conv.weight": CONV, "conv.bias": CONV_BIAS, "dense.weight": DENSE, "dense.bias": DENSE_BIAS}
    return as_onnx(nodes, constants, [1, 3, 2, 2]).SerializeToString()


def external_onnx(location: str, offset: int = 0) -> bytes:
    """A model whose one weight is said to lie in another file."""
    model = as_onnx([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": DENSE.T.copy()}, 7)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": str(offset), "length": str(DENSE.nbytes)}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return model.SerializeToString()


# Keras


def keras_arrays() -> dict[str, np.ndarray]:
    """The kernels in the order of Keras."""
    return {"conv/kernel:0": CONV.transpose(2, 3, 1, 0), "conv/bias:0": CONV_BIAS,
            "dense/kernel:0": DENSE.T, "dense/bias:0": DENSE_BIAS}  # fmt: skip


def hdf5_file() -> bytes:
    """As Keras wrote before its third version."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        config = {"class_name": "Sequential", "config": {"layers": [
            {"class_name": "Conv2D", "config": {"name": "conv", "activation": "relu"}},
            {"class_name": "Dense", "config": {"name": "dense"}}]}}  # fmt: skip
        file.attrs["keras_version"], file.attrs["model_config"] = "2.9.0", json.dumps(config)
        for name, array in keras_arrays().items():
            file[f"model_weights/{name.split('/')[0]}/{name}"] = array
        file["optimizer_weights/Adam/dense/kernel/m:0"] = np.zeros((7, 5))
    return buffer.getvalue()


def keras_file() -> bytes:
    """As Keras writes from its third version on."""
    weights, buffer = io.BytesIO(), io.BytesIO()
    with h5py.File(weights, "w") as file:
        for name, array in keras_arrays().items():
            layer, _, own = name.partition("/")
            file[f"layers/{'conv2d' if layer == 'conv' else layer}/vars/{int('bias' in own)}"] = array
        file["optimizer/vars/1"] = np.zeros((7, 5))
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.3.0"}))
        archive.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {}}))
        archive.writestr("model.weights.h5", weights.getvalue())
    return buffer.getvalue()


# TensorFlow


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a message of Protocol Buffers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def shape_message(shape: tuple[int, ...]) -> bytes:
    return b"".join(field(2, field(1, size)) for size in shape)


def graph_file() -> bytes:
    """A frozen graph."""

    def node(name: str, op: str, *inputs: str, **attributes: bytes) -> bytes:
        parts = [field(1, name.encode()), field(2, op.encode()), *(field(3, own.encode()) for own in inputs)]
        parts += [field(5, field(1, key.encode()) + field(2, value)) for key, value in attributes.items()]
        return field(1, b"".join(parts))

    def constant(name: str, array: np.ndarray) -> bytes:
        tensor = field(1, 1) + field(2, shape_message(array.shape)) + field(4, array.astype("<f4").tobytes())
        return node(name, "Const", value=field(8, tensor))

    return b"".join([
        node("x", "Placeholder"),
        constant("conv/kernel", CONV.transpose(2, 3, 1, 0)), constant("conv/bias", CONV_BIAS),
        constant("dense/kernel", DENSE.T), constant("dense/bias", DENSE_BIAS), constant("mask", np.ones((7, 7))),
        node("conv/read", "Identity", "conv/kernel"), node("conv", "Conv2D", "x", "conv/read"),
        node("conv/add", "BiasAdd", "conv", "conv/bias"), node("dense", "MatMul", "conv/add", "dense/kernel"),
        node("dense/add", "BiasAdd", "dense", "dense/bias"), node("masked", "Mul", "dense/add", "mask"),
    ])  # fmt: skip


def bundle_files() -> tuple[bytes, bytes]:
    """The index and the data of a checkpoint: a sorted table of one block."""
    entries, data = [(b"", field(1, 1))], b""
    for name, array in sorted(keras_arrays().items()):
        content = array.astype("<f4").tobytes()
        entry = field(1, 1) + field(2, shape_message(array.shape)) + field(4, len(data)) + field(5, len(content))
        entries.append((f"{name[:-2]}/.ATTRIBUTES/VARIABLE_VALUE".encode(), entry))
        data += content
    block, last = b"", b""
    for key, value in entries:
        shared = next((k for k in range(min(len(last), len(key))) if last[k] != key[k]), min(len(last), len(key)))
        block += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    first = block + struct.pack("<II", 0, 1)
    handle = varint(0) + varint(len(first))
    second = varint(0) + varint(1) + varint(len(handle)) + b"z" + handle + struct.pack("<II", 0, 1)
    empty = struct.pack("<II", 0, 1)
    content = first + b"\0" * 5 + second + b"\0" * 5
    footer = varint(len(content)) + varint(len(empty)) + varint(len(first) + 5) + varint(len(second))
    return content + empty + b"\0" * 5 + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db"), data


def tfjs_files(paths: tuple[str, ...] = ("shard1.bin", "shard2.bin")) -> dict[str, bytes]:
    """A list of weights and two shards, of which one weight lies in both and one is quantised to bytes."""
    weights, content = [], b""
    for name, array in keras_arrays().items():
        entry: dict[str, Any] = {"name": name[:-2], "shape": list(array.shape), "dtype": "float32"}
        if name == "dense/kernel:0":
            least, scale = float(array.min()), float(np.ptp(array)) / 255
            array = np.rint((array - least) / scale).astype(np.uint8)
            entry["quantization"] = {"dtype": "uint8", "scale": scale, "min": least}
        weights.append(entry)
        content += np.ascontiguousarray(array).tobytes()
    listed = {"format": "layers-model", "weightsManifest": [{"paths": list(paths), "weights": weights}]}
    return {"model.json": json.dumps(listed).encode(), paths[0]: content[:100], paths[-1]: content[100:]}


def tflite_file() -> bytes:
    """A convolution of bytes with a scale for each filter, a dense layer of halves behind a node that widens them."""
    builder = flatbuffers.Builder(1024)
    scales = (np.abs(CONV).max(axis=(1, 2, 3)) / 127).astype(np.float32)
    kernel = np.rint(CONV / scales[:, None, None, None]).astype(np.int8).transpose(0, 2, 3, 1)
    tensors = [  # name, shape, type, content, scales
        ("x", (1, 2, 2, 3), 0, None, None), ("conv/kernel", kernel.shape, 9, kernel, scales),
        ("conv/bias", (6,), 0, CONV_BIAS, None), ("h", (1, 7), 0, None, None),
        ("dense/half", DENSE.shape, 1, DENSE.astype(np.float16), None), ("dense/kernel", DENSE.shape, 0, None, None),
        ("dense/bias", (5,), 0, DENSE_BIAS, None), ("y", (1, 5), 0, None, None),
        ("pad", (4, 2), 2, np.zeros((4, 2), "i4"), None),
    ]  # fmt: skip
    nodes = [(3, (0, 1, 2), (3,)), (6, (4,), (5,)), (9, (3, 5, 6), (7,))]

    def vector(start: Any, parts: list[int]) -> int:
        start(builder, len(parts))
        for part in reversed(parts):
            builder.PrependUOffsetTRelative(part)
        return builder.EndVector()

    def numbers(values: Any, dtype: str) -> int:
        return builder.CreateNumpyVector(np.asarray(values, dtype))

    buffers, made, operators, codes = [], [], [], []
    for content in (None, *(own[3] for own in tensors)):
        raw = None if content is None else np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
        data = 0 if raw is None else numbers(raw, "u1")
        tflite.BufferStart(builder)
        if data:
            tflite.BufferAddData(builder, data)
        buffers.append(tflite.BufferEnd(builder))
    for k, (name, shape, kind, _, scale) in enumerate(tensors):
        text, sizes, about = builder.CreateString(name), numbers(shape, "i4"), 0
        if scale is not None:
            factors, zeros = numbers(scale, "f4"), numbers(np.zeros(len(scale)), "i8")
            tflite.QuantizationParametersStart(builder)
            tflite.QuantizationParametersAddScale(builder, factors)
            tflite.QuantizationParametersAddZeroPoint(builder, zeros)
            about = tflite.QuantizationParametersEnd(builder)
        tflite.TensorStart(builder)
        tflite.TensorAddName(builder, text)
        tflite.TensorAddShape(builder, sizes)
        tflite.TensorAddType(builder, kind)
        tflite.TensorAddBuffer(builder, k + 1)
        if about:
            tflite.TensorAddQuantization(builder, about)
        made.append(tflite.TensorEnd(builder))
    for k, (code, inputs, outputs) in enumerate(nodes):
        before, behind = numbers(inputs, "i4"), numbers(outputs, "i4")
        tflite.OperatorStart(builder)
        tflite.OperatorAddOpcodeIndex(builder, k)
        tflite.OperatorAddInputs(builder, before)
        tflite.OperatorAddOutputs(builder, behind)
        operators.append(tflite.OperatorEnd(builder))
        tflite.OperatorCodeStart(builder)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, code)
        tflite.OperatorCodeAddBuiltinCode(builder, code)
        codes.append(tflite.OperatorCodeEnd(builder))
    lists = vector(tflite.SubGraphStartTensorsVector, made), vector(tflite.SubGraphStartOperatorsVector, operators)
    outputs = numbers([7], "i4")
    tflite.SubGraphStart(builder)
    tflite.SubGraphAddOutputs(builder, outputs)
    tflite.SubGraphAddTensors(builder, lists[0])
    tflite.SubGraphAddOperators(builder, lists[1])
    graph = tflite.SubGraphEnd(builder)
    parts = [vector(start, own) for start, own in ((tflite.ModelStartOperatorCodesVector, codes),
             (tflite.ModelStartSubgraphsVector, [graph]), (tflite.ModelStartBuffersVector, buffers))]  # fmt: skip
    tflite.ModelStart(builder)
    tflite.ModelAddVersion(builder, 3)
    tflite.ModelAddOperatorCodes(builder, parts[0])
    tflite.ModelAddSubgraphs(builder, parts[1])
    tflite.ModelAddBuffers(builder, parts[2])
    builder.Finish(tflite.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


# GGUF


def gguf_file(folder: Path) -> bytes:
    """A block of a language model, one tensor quantised by blocks of 32."""
    path = folder / "made.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    stream = np.random.default_rng(1)
    writer.add_tensor("token_embd.weight", stream.normal(size=(9, 64)).astype(np.float32))
    writer.add_tensor("blk.0.attn_q.weight", stream.normal(size=(64, 64)).astype(np.float16))
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("blk.0.ffn_up.weight", gguf.quants.quantize(GGUF_UP, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


GGUF_UP = np.random.default_rng(2).normal(size=(32, 64)).astype(np.float32)


def all_files(folder: Path) -> dict[str, bytes]:
    """A file of each kind by its name; what belongs to one lies beside it already."""
    index, data = bundle_files()
    (folder / "c.data-00000-of-00001").write_bytes(data)
    lists = tfjs_files()
    for name in ("shard1.bin", "shard2.bin"):
        (folder / name).write_bytes(lists[name])
    return {
        "m.onnx": onnx_file(), "m.h5": hdf5_file(), "m.keras": keras_file(), "m.pb": graph_file(), "c.index": index,
        "model.json": lists["model.json"], "m.tflite": tflite_file(), "m.gguf": gguf_file(folder),
    }  # fmt: skip
