"""What the types, names and order of a stranger's arrays tell of their units, and what they do not."""

import itertools
import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

from condensation.weights import measure_arrays, measure_path, open_model_file, units_of_arrays


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", ">f8"])
def test_no_type_of_numpy_is_taken_for_few_levels(tmp_path, kind):
    weights = np.concatenate([normal(20, 30)] * 2).astype(kind)
    np.savez(tmp_path / "m.npz", weight=weights)
    [row] = measure_path(tmp_path / "m.npz").rows
    assert not row.quantised
    assert row.reading.endswith("reduce: up to 20 of 40 units can go, 600 of 1,200 parameters")


RESNET = {"conv1.weight": (16, 3, 3, 3), "fc.weight": (10, 32), "layer1.0.conv1.weight": (32, 16, 3, 3)}
RESNET |= {"fc.bias": (10,), "layer1.0.downsample.0.weight": (32, 16, 1, 1)}
VISION = {"embed.proj.weight": (32, 3, 4, 4), "cls_token": (1, 1, 32), "fc.weight": (5, 32), "mlp.fc1.weight": (64, 32)}
VISION |= {"mlp.fc2.weight": (32, 64), "pos": (1, 17, 32)}
LENET = {"conv.weight": (6, 1, 5, 5), "out_features.weight": (10, 864)}
TEXT = {"classes.weight": (5, 32), "embedding.weight": (300, 8), "lstm.weight_hh_l0": (64, 16)}
TEXT |= {"lstm.weight_hh_l0_reverse": (64, 16), "lstm.weight_ih_l0": (64, 8), "lstm.weight_ih_l0_reverse": (64, 8)}


@pytest.mark.parametrize(
    ("shapes", "output"),
    [(RESNET, "fc.weight"), (VISION, "fc.weight"), (LENET, "out_features.weight"), (TEXT, "classes.weight")],
)
@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
def test_the_output_is_told_by_what_is_read_whatever_the_order_of_names(shapes, output, order):
    """safetensors keeps no order: the classes of a ResNet stand before its last filters."""
    found = units_of_arrays({name: np.zeros(shapes[name]) for name in order(shapes)}, heads=False)
    assert {own.parameter for own in found if own.kind == "output"} == {output}


def test_a_bag_of_words_ends_in_outputs_as_well():
    shapes = {"embedding.weight": (300, 8), "fc.weight": (3, 8), "fc.bias": (3,)}
    kinds = [own.kind for own in units_of_arrays({name: np.zeros(shape) for name, shape in shapes.items()})]
    assert kinds == ["embedding", "output"]


def flax(biases=True):
    """A network of Flax, and the units of its layers: in the file they stand last."""
    first, conv, query, out = normal(5, 12), normal(3, 3, 4, 6), normal(12, 2, 6), normal(2, 6, 12)
    arrays = {"Dense_0.kernel": first, "Conv_0.kernel": conv, "ConvTranspose_0.kernel": conv}
    arrays |= {"mha.query.kernel": query, "mha.key.kernel": query + 1, "mha.out.kernel": out}
    units = {"Dense_0.kernel": first.T, "Conv_0.kernel": conv.transpose(3, 2, 0, 1).reshape(6, -1)}
    units |= {"ConvTranspose_0.kernel": units["Conv_0.kernel"], "mha.query.kernel": query.reshape(12, 12).T}
    units |= {"mha.key.kernel": (query + 1).reshape(12, 12).T, "mha.out.kernel": out.reshape(12, 12).T}
    for name in list(arrays) if biases else ():
        shape = arrays[name].shape[-1:] if "mha.q" not in name and "mha.k" not in name else (2, 6)
        arrays[name.replace("kernel", "bias")] = bias = normal(*shape, seed=1)
        if "key" not in name:  # the softmax cancels it
            units[name] = np.concatenate([units[name], bias.reshape(-1, 1)], axis=1)
    return arrays | {"Norm_0.scale": np.ones(5), "embed.embedding": normal(30, 5)}, units


KINDS = {"Dense_0": "neuron", "Conv_0": "filter", "ConvTranspose_0": "filter"}
KINDS |= {"mha.query": "query", "mha.key": "key", "mha.out": "attention output"}


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("name", ["m.safetensors", "m.npz", "m.pkl", "sharded", "arrays"])
def test_the_kernels_of_flax_have_their_units_last_in_every_file(tmp_path, name, biases):
    arrays, units = flax(biases)
    path = tmp_path / name
    if name == "m.pkl":
        path.write_bytes(pickle.dumps({"params": arrays}))
    elif name == "m.npz":
        np.savez(path, allow_pickle=False, **arrays)
    elif name == "sharded":
        for k, part in enumerate((list(arrays)[::2], list(arrays)[1::2])):
            save_file({own: arrays[own] for own in part}, tmp_path / f"{k}.safetensors")
        places = {own: f"{k % 2}.safetensors" for k, own in enumerate(arrays)}
        path = tmp_path / "model.safetensors.index.json"
        path.write_text(json.dumps({"weight_map": places}))
    else:
        save_file(arrays, path)
    every = units_of_arrays(arrays, heads=False) if name == "arrays" else open_model_file(path).units()
    found = {own.name: own for own in every if not own.reason}
    assert found.pop("embed.embedding").kind == "embedding"
    assert {own.removesuffix(".kernel"): about.kind for own, about in found.items()} == KINDS
    for own, expected in units.items():
        weights = found[own].weights()
        assert weights.shape == expected.shape
        np.testing.assert_allclose(np.sort(weights, axis=1), np.sort(expected, axis=1))  # inputs in any order


def test_what_is_called_a_kernel_elsewhere_stays_as_it_is(tmp_path):
    """A filter that blurs, beside weights of PyTorch; a matrix whose bias fits its first axis, or both."""
    for others in (
        {"blur.kernel": normal(4, 3), "fc.weight": normal(8, 5)},
        {"a.kernel": normal(8, 5), "a.bias": normal(8)},
        {"w": normal(5, 5), "b": normal(5)},
    ):
        save_file(others, tmp_path / "m.safetensors")
        for own in open_model_file(tmp_path / "m.safetensors").units():
            if not own.reason:
                np.testing.assert_array_equal(own.weights()[:, : others[own.name].shape[1]], others[own.name])


def test_units_of_plain_recurrent_layers_are_their_rows_for_inputs_and_state(tmp_path):
    """Equal rows for the state alone are no licence to merge; nor are they the model's outputs."""
    state = np.concatenate([normal(8, 16)] * 2)
    torch = {"rnn.weight_ih_l0": normal(16, 10), "rnn.weight_hh_l0": state}
    keras = {"rnn.kernel": normal(10, 16), "rnn.recurrent_kernel": state.T}
    for arrays in (torch, keras):
        for own in measure_arrays(arrays):
            assert own.kind == "recurrent neuron"
            assert "can go" not in own.reading


def test_the_state_of_an_optimizer_among_the_weights_is_not_measured(tmp_path):
    """It has lines, for what is not trained has no moments; and it is not what the last layer gives."""
    weights = {"model.0.weight": normal(30, 10), "model.2.weight": normal(4, 30)}
    moments = {f"optimizer.state.{k}.exp_avg": np.ones(own.shape) for k, own in enumerate(weights.values())}
    save_file(weights | moments, tmp_path / "m.safetensors")
    measured = measure_path(tmp_path / "m.safetensors")
    assert {row.layer: row.kind for row in measured.rows if not row.reason} == {
        "model.0.weight": "neuron",
        "model.2.weight": "output",
    }
    assert measured.reasons == {"of an optimizer's state, which is no weight": sorted(moments)}
    assert measured.facts["parameters"] == "420"


@pytest.mark.parametrize(
    "wrapped", ["_fsdp_wrapped_module.{}", "module.{}", "model._fsdp_wrapped_module._checkpoint_wrapped_module.{}"]
)
def test_what_wraps_a_model_is_not_in_its_names(tmp_path, wrapped):
    arrays = {wrapped.format(name): normal(5, 5) for name in ("a.weight", "b.weight")}
    save_file(arrays | {"n_averaged": np.ones(())}, tmp_path / "m.safetensors")
    inside = "model." if wrapped.startswith("model.") else ""
    assert list(open_model_file(tmp_path / "m.safetensors").arrays) == [
        f"{inside}a.weight",
        f"{inside}b.weight",
        "n_averaged",
    ]


@pytest.mark.parametrize("name", ["attn.relative_position_bias_table", "rel_pos_h", "relative_position_bias.weight"])
def test_tables_of_relative_positions_are_embeddings(name):
    """Equal rows are places at the same distance, and no units to merge."""
    [row] = measure_arrays({name: np.repeat(normal(40, 1), 3, axis=1)})
    assert (row.kind, row.read.action.value) == ("embedding", "look at this layer")


@pytest.mark.parametrize("out", ["o_proj.weight", "proj.weight", "to_out.0.weight"])
@pytest.mark.parametrize("sizes", [(64, 16, 16), (32, 32, 32), (64, 32, 32)])
def test_the_output_projection_tells_how_many_queries_a_fused_one_has(out, sizes):
    """Without a configuration: 64 queries with 16 keys are not three times 32; 64 with 32 are not keys and values."""
    arrays = {"attn.qkv_proj.weight": normal(sum(sizes), 64), f"attn.{out}": normal(64, sizes[0])}
    found = [own.units for own in units_of_arrays(arrays) if own.parameter == "attn.qkv_proj.weight"]
    assert found == list(sizes)


def test_the_second_layer_of_gpt2_for_keys_and_values_has_no_queries():
    arrays = {
        "attn.c_attn.weight": normal(64, 128),
        "attn.c_attn.bias": normal(128),
        "attn.q_attn.weight": normal(64, 64),
    }
    arrays |= {"attn.c_proj.weight": normal(64, 64)}
    found = [own.kind for own in units_of_arrays(arrays) if own.parameter == "attn.c_attn.weight"]
    assert found == ["key", "value"]


def test_separate_projections_have_their_part_of_the_shared_bias():
    arrays = {f"{part}_proj_weight": normal(12, size) for part, size in (("q", 12), ("k", 5), ("v", 7))}
    arrays |= {"in_proj_bias": np.arange(36.0), "out_proj.weight": normal(12, 12)}
    found = {own.name: own for own in units_of_arrays(arrays)}
    assert list(found["q_proj_weight"].weights()[:, -1]) == list(range(12))
    assert list(found["v_proj_weight"].weights()[:, -1]) == list(range(24, 36))
    assert found["k_proj_weight"].inputs == 5  # the softmax cancels theirs
    assert "in_proj_bias" not in found


@pytest.mark.parametrize("name", ["{}.lora_A.weight", "{}.lora_A.default.weight", "lora_unet_{}.lora_down.weight"])
def test_rows_of_an_adapter_are_added_to_those_of_a_layer(name):
    """Equal ones are no licence to merge; those of the first factor are: its columns of the second are summed."""
    second = name.replace("lora_A", "lora_B").replace("down", "up").format("q_proj")
    equal = {name.format("q_proj"): np.repeat(normal(4, 64), 2, axis=0), second: np.repeat(normal(32, 8), 2, axis=0)}
    rows = {row.layer: row for row in measure_arrays(equal)}
    assert rows[second].kind == "adapter"
    assert rows[second].read.action.value == "look at this layer"
    assert "up to 4 of 8 units can go" in rows[name.format("q_proj")].reading


ATTENDED = {"linear1": (64, 32), "linear2": (32, 64), "mix.q_proj": (32, 32), "mix.k_proj": (32, 32)}
ATTENDED |= {"mix.v_proj": (32, 32), "mix.o_proj": (32, 32)}


def block(prefix):
    return {f"{prefix}{name}.weight": shape for name, shape in ATTENDED.items()}


@pytest.mark.parametrize(("prefix", "expected"), [("", "block output"), ("h.0.", "block output"), ("a.", "neuron")])
def test_what_a_feed_forward_layer_adds_to_the_stream_of_its_block_is_not_to_be_merged(prefix, expected):
    """Equal rows of it do not make channels of the stream equal: the attention adds to them, too."""
    shapes = block("h.0." if prefix == "a." else prefix)
    name = f"{prefix}linear2.weight"
    shapes |= {name: (32, 64), "pooler.weight": (32, 32)} if prefix else {}
    arrays = {own: normal(*shape, seed=k) for k, (own, shape) in enumerate(shapes.items())}
    arrays[name][8:16] = arrays[name][:8]
    rows = {row.layer: row for row in measure_arrays(arrays)}
    assert rows[name].kind == expected
    assert rows[name].read.action == ("reduce" if expected == "neuron" else "look at this layer")
    first = name.replace("linear2", "linear1")
    assert all(rows[other].kind == "neuron" for other in (first, "pooler.weight") if other in rows)


def test_several_depthwise_filters_of_each_channel_are_told():
    shapes = {"a": (8, 3, 3, 3), "b": (16, 1, 3, 3), "c": (12, 16, 1, 1)}
    found = units_of_arrays({f"{name}.weight": normal(*shape) for name, shape in shapes.items()})
    assert [own.kind for own in found] == ["filter", "depthwise filter", "filter"]
    sound = {"a": (16, 1, 9), "b": (32, 1, 5), "c": (12, 48, 3)}  # two that read one channel of sound
    found = units_of_arrays({f"{name}.weight": normal(*shape) for name, shape in sound.items()})
    assert [own.kind for own in found] == ["filter", "filter", "filter"]


SIZES = [(64, 128, 32, 8), (784, 256, 128, 64, 8), (20, 128, 64, 4), (16, 32, 24, 4), (40, 60, 10)]


@pytest.mark.parametrize("sizes", SIZES)
def test_outputs_stay_whose_number_divides_that_of_other_inputs(sizes):
    arrays = {f"{2 * k}.weight": normal(*pair[::-1]) for k, pair in enumerate(itertools.pairwise(sizes))}
    last = list(arrays)[-1]
    arrays[last][1:3] = arrays[last][0]
    rows = {row.layer: row for row in measure_arrays(arrays)}
    assert [rows[name].kind for name in arrays] == [*["neuron"] * (len(arrays) - 1), "output"]
    assert rows[last].read.action != "reduce"


def test_a_dense_layer_that_is_flattened_before_it_is_read_is_no_output():
    shapes = {"each": (16, 20), "all": (32, 160), "last": (3, 32)}  # ten places of sixteen numbers
    found = units_of_arrays({f"{name}.weight": normal(*shape) for name, shape in shapes.items()})
    assert [own.kind for own in found] == ["neuron", "neuron", "output"]
