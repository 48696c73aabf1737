"""What the types, names and order of a stranger's arrays tell of their units, and what they do not."""

import numpy as np
import pytest

from condensation.weights import measure_path, units_of_arrays


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
