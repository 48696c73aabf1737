"""Basins against a fine integration of the flow on the sphere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condensation import InputError
from condensation.theory import basins, stationary_directions
from condensation.theory.basins import circle, sphere


@pytest.mark.parametrize(("activation", "p"), [("x_tanh", 2), ("x2_tanh", 3)])
@given(seed=st.integers(0, 10_000), sign=st.sampled_from([1, -1]))
@settings(max_examples=8)
def test_directions_go_where_the_flow_takes_them(activation, p, seed, sign):
    stream = np.random.default_rng(seed)
    x, r = stream.normal(size=(30, 3)), stream.normal(size=30)
    points = stream.normal(size=(20, 3))
    found = stationary_directions(x, r, p)
    lines, sides = basins(points, sign, x, r, activation, directions=found)
    u = points / np.linalg.norm(points, axis=1, keepdims=True)
    step = 0.02 / found.growth.max()
    for _ in range(6000):
        force = sign * (u @ x.T) ** (p - 1) * r @ x / len(x)
        u = u + step * (force - (force * u).sum(axis=1, keepdims=True) * u)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
    settled = np.abs(u @ found.directions.T).max(axis=1) > 0.9999
    attracts = found.attracts_positive if sign > 0 else found.attracts_negative
    for k in np.flatnonzero(settled):
        end = int(np.abs(u[k] @ found.directions.T).argmax())
        if attracts[end]:
            assert lines[k] == end
            assert sides[k] == np.sign(u[k] @ found.directions[end])
        else:
            assert lines[k] == -1
    assert settled.mean() > 0.7


def test_one_line_takes_all_and_signs_are_opposite():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(30, 2)), stream.normal(size=30)
    up, down = (basins(circle(90), sign, x, r, "tanh") for sign in (1, -1))
    assert set(up[0]) == set(down[0]) == {0}
    assert set(up[1]) == {1}
    assert set(down[1]) == {-1}
    np.testing.assert_allclose(np.linalg.norm(sphere(6), axis=-1), 1)


def test_bad_input_is_said():
    x, r = np.eye(2), np.array([1.0, 2.0])
    with pytest.raises(InputError, match="the sign of the output weight is 1 or -1, not 2"):
        basins(circle(4), 2, x, r, "tanh")
    with pytest.raises(InputError, match="the multiplicity of relu is undefined"):
        basins(circle(4), 1, x, r, "relu")
