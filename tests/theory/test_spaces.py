"""Equal values: neurons come to a space, each in a direction of its own; and several outputs at multiplicity 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from condensation import InputError
from condensation.theory import compare_fates, cube_directions, cube_fates, fates, stationary_directions


def of_diagonal(*values):
    """Inputs and residuals whose tensor of order 2 is diagonal."""
    return np.eye(len(values)), len(values) * np.array(values, float)


def neurons(count, inputs, seed=0, outputs=None):
    stream = np.random.default_rng(seed)
    return stream.normal(size=(count, inputs)), stream.normal(size=count if outputs is None else (count, outputs))


def test_a_double_eigenvalue_attracts_to_its_plane():
    x, r = of_diagonal(2, 2, -1)
    w, a = neurons(40, 3)
    a[:20] = np.abs(a[:20]) + np.linalg.norm(w[:20], axis=1)  # keep their sign
    ends = fates(w, a, x, r, "x_tanh")
    (plane,) = ends.directions.spaces
    np.testing.assert_allclose(plane.basis @ plane.basis.T, np.diag([1, 1, 0]), atol=1e-12)
    assert (plane.value, plane.serves) == (pytest.approx(2), (1,))
    assert (ends.spaces[:20] == 0).all()
    assert (ends.lines[:20] == -1).all()
    assert not ends.flips[:20].any()
    projected = w[:20] * [1, 1, 0]
    np.testing.assert_allclose(
        ends.orientations[:20], projected / np.linalg.norm(projected, axis=1, keepdims=True), atol=1e-6
    )
    third = np.flatnonzero(ends.directions.attracts_negative)[0]
    assert set(ends.lines[20:]) <= {-1, third}
    assert ((ends.spaces >= 0) ^ (ends.lines >= 0)).all()


def test_no_line_serves_a_neuron_whose_maximum_is_negative():
    x, r = of_diagonal(-1, -2, -3)  # nothing attracts a > 0
    w, a = neurons(10, 3)
    a = np.abs(a) + 3 * np.linalg.norm(w, axis=1)
    ends = fates(w, a, x, r, "x_tanh")
    assert (ends.lines == -1).all()
    assert not ends.orientations.any()
    with pytest.raises(InputError, match="nothing to compare"):
        compare_fates(ends, w)


@pytest.mark.parametrize("value", [1.5, -1.5])
def test_a_multiple_of_the_identity_leaves_every_direction(value):
    x, r = of_diagonal(*[value] * 4)
    w, a = neurons(12, 4)
    a = np.sign(value) * (np.abs(a) + 3 * np.linalg.norm(w, axis=1))
    ends = fates(w, a, x, r, "x_tanh")
    assert [space.basis.shape for space in ends.directions.spaces] == [(4, 4)]
    assert (ends.spaces == 0).all()
    np.testing.assert_allclose(ends.orientations, w / np.linalg.norm(w, axis=1, keepdims=True), atol=1e-6)
    assert "4-fold" in ends.directions.note
    assert not ends.directions.certified


def test_simple_values_have_no_spaces():
    assert stationary_directions(*of_diagonal(3, 2, -1), 2).spaces == ()
    assert stationary_directions(*of_diagonal(3, 2, -1), 3).spaces == ()


@pytest.mark.trials
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 5))
def test_several_outputs_end_as_the_matrix_exponential_says(seed, outputs, inputs):
    stream = np.random.default_rng(seed)
    x, r = stream.normal(size=(12, inputs)), stream.normal(size=(12, outputs))
    w, a = neurons(6, inputs, seed, outputs)
    g = r.T @ x / 12
    values = np.linalg.svd(g)[1]
    ends = fates(w, a, x, r, "tanh")
    late = 25 / (values[0] - values[1])
    if late * values[0] > 600:
        return
    block = np.block([[np.zeros((inputs,) * 2), g.T], [g, np.zeros((outputs,) * 2)]])
    end = (np.c_[w, a] @ expm(late * block).T)[:, :inputs]
    cosine = np.einsum("jd,jd->j", end, ends.orientations) / np.linalg.norm(end, axis=1)
    np.testing.assert_allclose(cosine, 1, atol=1e-6)
    chosen = (ends.times > 0) & np.isfinite(ends.times)
    for k in np.flatnonzero(chosen):
        there = (np.r_[w[k], a[k]] @ expm(ends.times[k] * block).T)[:inputs]
        assert there @ ends.orientations[k] / np.linalg.norm(there) == pytest.approx(np.cos(0.01), abs=1e-5)


def test_equal_singular_values_attract_to_their_space():
    x, r = np.eye(3), 3 * np.array([[2.0, 0], [0, 2], [0, 0]])
    w, a = neurons(20, 3, outputs=2)
    ends = fates(w, a, x, r, "tanh")
    (space,) = ends.directions.spaces
    np.testing.assert_allclose(space.basis @ space.basis.T, np.diag([1, 1, 0]), atol=1e-12)
    assert (ends.spaces == 0).all()
    expected = np.c_[(w[:, :2] + a) / 2, np.zeros(20)]
    np.testing.assert_allclose(ends.orientations, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-9)


def test_what_is_not_known_of_several_outputs_is_refused():
    x, r = np.eye(3), np.ones((3, 2))
    w, a = neurons(4, 3, outputs=2)
    for activation in ("x_tanh", "sigmoid"):
        with pytest.raises(InputError, match="multiplicity 1 that are zero at 0"):
            fates(w, a, x, r, activation)
    with pytest.raises(InputError, match="4 units x 2 outputs, not of shape"):
        fates(w, a[:, 0], x, r, "tanh")
    with pytest.raises(InputError, match="1 of 4 units hold NaN or Inf, first unit 0"):
        fates(w, np.where(np.arange(4)[:, None] == 0, np.nan, a), x, r, "tanh")
    with pytest.raises(InputError, match="the angle of arrival"):
        fates(w, a, x, r, "tanh", angle=2.0)


def test_lines_of_another_number_of_outputs_are_refused():
    x, r = np.eye(3), np.array([[3.0, 0], [0, 2], [0, 1]])
    w, a = neurons(4, 3)
    with pytest.raises(InputError, match="3 inputs and 2 outputs, the network has p = 1, 3 inputs and 1 output"):
        fates(w, a, x, r[:, 0], "tanh", directions=stationary_directions(x, r, 1))
    with pytest.raises(InputError, match="and 2 outputs, the network has"):
        cube_fates(w, a, x, r[:, 0] + 1, "tanh", directions=cube_directions(x, r, 1))
