"""What the types, names and order of a stranger's arrays tell of their units, and what they do not."""

import numpy as np
import pytest

from condensation.weights import measure_path


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", ">f8"])
def test_no_type_of_numpy_is_taken_for_few_levels(tmp_path, kind):
    weights = np.concatenate([normal(20, 30)] * 2).astype(kind)
    np.savez(tmp_path / "m.npz", weight=weights)
    [row] = measure_path(tmp_path / "m.npz").rows
    assert not row.quantised
    assert row.reading.endswith("reduce: up to 20 of 40 units can go, 600 of 1,200 parameters")
