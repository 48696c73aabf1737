"""Arrays of frames, small and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation.playground._tracks import DERIVED, LEVELS, WEIGHT_BITS, decode, encode


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 5), st.floats(-12, 12))
def test_weights_come_back_to_their_bits(seed, frames, units, power):
    rng = np.random.default_rng(seed)
    made = [{"w": (rng.normal(size=(units, 3)) * 10**power).astype(np.float32)} for _ in range(frames)]
    for frame, back in zip(made, decode(*encode(made)), strict=True):
        assert back["w"].dtype == np.float32
        np.testing.assert_allclose(back["w"], frame["w"], rtol=2.0 ** -(WEIGHT_BITS + 1), atol=0)


@given(st.integers(0, 2**32 - 1), st.sampled_from([(9,), (4, 5)]), st.floats(-30, 30))
def test_outputs_come_back_to_their_levels(seed, shape, power):
    rng = np.random.default_rng(seed)
    made = [{"f": (rng.normal(size=shape) * 10**power).astype(np.float32)} for _ in range(4)]
    for frame, back in zip(made, decode(*encode(made)), strict=True):
        assert np.abs(back["f"] - frame["f"]).max() <= 0.51 * np.abs(frame["f"]).max() / LEVELS


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_whole_numbers_come_back_as_they_are(dtype):
    ends = np.iinfo(dtype)
    values = np.random.default_rng(0).integers(ends.min, ends.max, size=(7, 5), dtype=dtype, endpoint=True)
    values[0], values[1] = ends.min, ends.max
    for row, back in zip(values, decode(*encode([{"n": row} for row in values])), strict=True):
        assert back["n"].dtype == row.dtype
        np.testing.assert_array_equal(back["n"], row)


@pytest.mark.parametrize("name", ["w", "f"])
def test_what_is_not_finite_stays_what_it_is(name):
    rows = [np.array([1.0, np.nan, np.inf], np.float32), np.array([3.0, -np.inf, 2.0], np.float32)]
    for row, back in zip(rows, decode(*encode([{name: row} for row in rows])), strict=True):
        np.testing.assert_array_equal(back[name], row)


def test_zeros_missing_arrays_and_arrays_that_do_not_change():
    zero, one = np.zeros(3, np.float32), np.ones(3, np.float32)
    made = [{"w": one}, {"w": one, "f": zero}, {"w": one, "f": one}, {"w": one}]
    tracks, arrays = encode(made)
    assert {track["name"]: track["rows"] for track in tracks} == {"w": [0, 0, 0, 0], "f": [-1, 0, 1, -1]}
    assert arrays["w"].size == 3 * 4  # once
    for frame, back in zip(made, decode(tracks, arrays), strict=True):
        assert {name: value.tolist() for name, value in back.items()} == {n: v.tolist() for n, v in frame.items()}


def test_derived_arrays_are_left_out():
    tracks, _ = encode([{name: np.zeros(2, np.float32) for name in (*DERIVED, "w")}])
    assert [track["name"] for track in tracks] == ["w"]


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="float64"):
        encode([{"w": np.zeros(2)}])
