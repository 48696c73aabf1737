"""Plain data as the field at a dotted path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import condensation as c
from condensation._serialization import replace_at, to_plain, value_at
from condensation.activations import x_tanh

BASE = c.Experiment(
    c.Dense((5, 50, 20, 1), ("tanh", "relu")),
    c.Init((c.Normal(0.1), c.WidthPower(0.5))),
    c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2),
    c.Adam(1e-3, schedule=c.StepDecay((5, 7))),
    100,
)
TABLE = {"kind": "cosine", "steps": 9}


@pytest.mark.parametrize(
    ("path", "plain", "expected"),
    [
        ("steps", 7, 7),
        ("steps", 7.0, 7),
        ("batch_size", 8.0, 8),
        ("batch_size", None, None),
        ("network.widths.1", 30.0, 30),
        ("network.widths", [5, 6, 7, 1], (5, 6, 7, 1)),
        ("network.widths", (5, 6, 7, 1), (5, 6, 7, 1)),
        ("network.activation", "relu", "relu"),
        ("network.activation", "condensation.activations:x_tanh", x_tanh),
        ("network.activation", x_tanh, x_tanh),
        ("network.activation", ["relu", x_tanh], ("relu", x_tanh)),
        ("network.activation.1", "tanh", "tanh"),
        ("network.residual", True, True),
        ("init.hidden.0.std", 1, 1.0),
        ("init.hidden.1.gamma", -0.0, 0.0),
        ("init.hidden.1", {"kind": "normal", "std": 2}, c.Normal(2.0)),
        ("init.hidden", [{"kind": "normal", "std": 2}, c.Normal(3.0)], (c.Normal(2.0), c.Normal(3.0))),
        ("init.output", c.Normal(0.5), c.Normal(0.5)),
        ("init.output", None, None),
        ("data.terms.0.1", 7, 7.0),
        ("data.terms", [[1, 2, 3]], ((1.0, 2.0, 3.0),)),
        ("optimizer", {"kind": "adam", "learning_rate": 1, "schedule": TABLE}, c.Adam(1.0, schedule=c.Cosine(9))),
        ("optimizer", c.GD(0.1), c.GD(0.1)),
        ("optimizer.schedule", TABLE, c.Cosine(9)),
        ("optimizer.schedule.at.1", 9.0, 9),
        ("save", {"kind": "evenly", "count": 3}, c.Evenly(3)),
        ("kept_layers", ["dense1"], ("dense1",)),
    ],
)
def test_plain_data_stands_for_a_field(path, plain, expected):
    found = value_at(BASE, path, plain)
    assert found == expected
    assert type(found) is type(expected)
    assert str(found) == str(expected)  # minus zero is not zero


@pytest.mark.parametrize(
    ("path", "plain", "said"),
    [
        ("stepz", 1, "unknown field of Experiment 'stepz'; did you mean 'steps'"),
        ("", 1, "unknown field of Experiment ''"),
        ("optimizer.lr", 1, "unknown field of Adam 'lr'"),
        ("optimizer.schedule.at.2", 1, "unknown field of tuple '2'; known: 0, 1"),
        ("network.widths.-1", 1, "unknown field of tuple '-1'; did you mean '1'"),
        ("network.widths.²", 1, "unknown field of tuple '²'"),
        ("init.output.std", 1, "the field 'std' is looked for in None, which has no fields"),
        ("steps.more", 1, "the field 'more' is looked for in 100, which has no fields"),
        ("steps", 7.5, "steps must be a whole number, not 7.5"),
        ("steps", float("inf"), "steps must be a whole number, not inf"),
        ("steps", True, "steps must be a whole number, not True"),
        ("optimizer.eps", "small", "optimizer.eps must be a number, not 'small'"),
        ("optimizer.eps", None, "optimizer.eps must be a number, not None"),
        ("optimizer", c.Normal(1.0), "optimizer must be GD or Momentum or RMSprop or Adam"),
        ("optimizer", c.Adam, "optimizer must be GD or Momentum or RMSprop or Adam"),
        ("optimizer", {"kind": "adam"}, "missing in optimizer: learning_rate"),
        ("optimizer", {"kind": "adam", "learning_rate": -1}, "optimizer.learning_rate must be a positive"),
        ("network.activation", "nothing:here", "the function 'nothing:here' cannot be imported"),
        ("network.residual", 1, "network.residual must be true or false, not 1"),
        ("data.terms.0", [1, 2], r"data.terms.0 must be a list of 3, not of 2"),
        ("steps", {"linspace": [1, 2, 3]}, "steps must be a whole number, not a table"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(path, plain, said):
    with pytest.raises(c.InputError, match=said):
        value_at(BASE, path, plain)


def test_files_are_relative_to_the_folder(tmp_path):
    np.savez(tmp_path / "own.npz", x=np.ones((3, 5)), y=np.ones(3))
    found = value_at(BASE, "data", {"kind": "arrays", "file": "own.npz"}, tmp_path)
    assert found == c.Arrays(np.ones((3, 5)), np.ones(3))
    with pytest.raises(c.InputError, match="there is no file"):
        value_at(BASE, "data", {"kind": "arrays", "file": "own.npz"}, tmp_path / "elsewhere")


@given(
    st.sampled_from(["network", "init", "data", "optimizer", "save", "init.hidden.1", "optimizer.schedule", "steps"])
)
def test_a_field_comes_back_from_its_own_plain_data(path):
    own = BASE
    for name in path.split("."):
        own = own[int(name)] if isinstance(own, tuple) else getattr(own, name)
    assert value_at(BASE, path, to_plain(own)) == own
    assert replace_at(BASE, {path: value_at(BASE, path, own)}) == BASE
