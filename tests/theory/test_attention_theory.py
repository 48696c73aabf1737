"""Attention from small weights: v, F and the levels of regression in context, against brute force."""

import re

import numpy as np
import pytest

import condensation as c
from condensation.derivatives import gradient
from condensation.prediction import predict, predict_model, predict_next
from condensation.theory import (
    context_gradient,
    context_loss,
    context_losses,
    context_weights,
    plateau_amplitude,
    query_key_matrix,
    value_direction,
)

STREAM = np.random.default_rng(3)
X, Y = STREAM.normal(size=(30, 5, 6)), STREAM.choice([-1.0, 1.0], size=30)
NETWORK = c.Attention(5, 6, 1, projection=False, hidden=(6,))


def experiment(**changes) -> c.Experiment:
    own = c.Experiment(NETWORK, c.Init(c.Normal(1e-3)), c.Arrays(X, Y), c.GradientFlow(1.0), 2, c.Loss("exponential"))
    return own.replace(**changes)


def test_the_gradient_at_small_weights_is_that_of_the_energy():
    model = experiment().initial_model()
    moved = gradient(model, X, Y[:, None], c.Loss("exponential"))
    v, rate = value_direction(X, Y)
    w1, w2 = model.parameters["dense1.weight"], model.parameters["output.weight"][0]
    expected = -rate * np.outer(w1.T @ w2, v)
    np.testing.assert_allclose(moved["value1.weight"], expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    assert np.abs(moved["query1.weight"]).max() < 1e-2 * np.abs(expected).max()


def test_f_is_the_velocity_of_queries_and_keys():
    """With a linear readout and tiny queries and keys."""
    network, g = c.Attention(5, 6, 1, projection=False), STREAM.normal(size=6)
    query, key = 1e-4 * STREAM.normal(size=(2, 6, 6))
    parameters = {"query1.weight": query, "key1.weight": key, "value1.weight": np.eye(6), "output.weight": g[None]}
    moved = gradient(c.Model(network, parameters), X, Y[:, None], c.Loss("exponential"))
    f = query_key_matrix(X, Y, g, 6**-0.5)
    for name, expected in (("query1.weight", key @ f.T), ("key1.weight", query @ f)):
        np.testing.assert_allclose(-moved[name], expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_the_plateau_is_where_the_loss_is_least():
    v, _ = value_direction(X, Y)
    margins = Y * (X.mean(axis=1) @ v)
    slope = (margins * np.exp(-plateau_amplitude(X, Y) * margins)).mean()
    assert abs(slope) < 1e-5 * np.abs(margins).mean()
    assert plateau_amplitude(X, np.sign(X.mean(axis=1) @ v)) is None or (margins < 0).any()
    assert plateau_amplitude(np.ones((2, 3, 4)), np.ones(2)) is None
    with pytest.raises(c.InputError, match="add up to zero"):
        value_direction(np.ones((2, 3, 4)), np.array([1, -1]))


def test_the_plateau_is_that_of_labels_of_any_size():
    assert plateau_amplitude(X, 2 * Y) == pytest.approx(plateau_amplitude(X, Y) / 2, rel=1e-4)


def test_what_rounding_leaves_of_zero_is_no_line():
    turned = STREAM.permutation(60)
    both, opposite = np.concatenate([X, X])[turned], np.repeat([1.0, -1.0], 30)[turned]
    with pytest.raises(c.InputError, match="add up to zero"):
        value_direction(both, opposite)
    with pytest.raises(c.InputError, match="add up to zero"):  # tokens of each sequence that do so themselves
        value_direction(X - X.mean(axis=1, keepdims=True), Y)
    equal = np.repeat(X[:, :1], 5, axis=1)
    assert not query_key_matrix(equal, Y, np.ones(6), 1.0).any()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"data": c.Arrays(np.repeat(X[:, :1], 5, axis=1), Y)}, "the matrix F, which they follow, is zero"),
        ({"data": c.Arrays(X[:, :1], Y), "network.length": 1}, "the matrix F, which they follow, is zero"),
        ({"network.fixed": ("query1",)}, "theory trains all layers, and fixed are query1"),
        ({"network.fixed": ("output",)}, "theory trains all layers, and fixed are output"),
    ],
)
def test_values_have_their_line_where_queries_and_keys_have_none(changes, why):
    own = experiment().replace(**changes)
    found = predict(own)
    assert list(found) == ["value1"]
    assert why in found["value1"].note
    x, y = own.data.draw(c.Seed(0, 0))
    v, _ = value_direction(x, Y)
    assert abs(found["value1"].directions.directions[0] @ v) == pytest.approx(1)
    with pytest.raises(c.InputError, match=why):
        predict_model(own.initial_model(), x, y, own.loss, layers=["query1"])


def test_the_lines_of_queries_tell_a_small_gap():
    """Sequences turned by 0 to 3 right angles in a plane that they are stretched along: two equal singular values."""
    turn, x = np.array([[0.0, 1.0], [-1.0, 0.0]]), []
    for k in range(4):
        x.append(np.concatenate([4 * X[..., :2] @ np.linalg.matrix_power(turn, k), X[..., 2:]], axis=2))
    both = np.concatenate(x)
    (space,) = predict(experiment(data=c.Arrays(both, np.tile(Y, 4))))["query1"].directions.spaces
    assert space.basis.shape == (6, 2)
    moved = both * [1.05, 1, 1, 1, 1, 1]
    found = predict(experiment(data=c.Arrays(moved, np.tile(Y, 4))))["query1"]
    sizes = found.directions.values
    assert f"grows {1 - sizes[1] / sizes[0]:.0%} faster than the second" in found.note
    assert 0.01 < 1 - sizes[1] / sizes[0] < 0.3


def test_large_weights_and_later_steps_are_not_predicted_without_a_word():
    large = experiment(init=c.Init(c.Normal(1.0)))
    assert all("the weights are not small: outputs reach" in own.note for own in predict(large).values())
    assert not any("not small" in own.note for own in predict(experiment()).values())
    with pytest.raises(c.InputError, match="at a later step they are not known"):
        predict_next(c.train(experiment(), 1), 2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("std", "hidden"), [(0.3, ()), (1.0, (6,))])
def test_values_that_begin_larger_than_they_grow_are_told(std, hidden):
    """Beside small other weights; theory's share of the values off their line, and that half the way to the plateau."""
    network = c.Attention(5, 6, 1, projection=False, hidden=hidden, activation="linear")
    v, _ = value_direction(X, Y)
    plateau = np.exp(-plateau_amplitude(X, Y) * Y * (X.mean(axis=1) @ v)).mean()
    own = experiment(network=network, init=c.Init(c.Normal(1e-3), query_key=c.Normal(1e-9), value=c.Normal(std)))
    run = c.train(own.replace(steps=200, optimizer=c.GradientFlow(10.0, stop_ratio=(1 + plateau) / 2)), 1)
    values = run.weights("value1", 200, 0)
    off = np.linalg.norm(values - np.outer(values @ v, v), 2) / np.linalg.norm(values, 2)
    for prediction in predict(own).values():
        told = re.search(r"not small: off their line they begin with (\d+)%", prediction.note)
        assert told is not None
        assert float(told[1]) / 100 == pytest.approx(off, abs=0.15)


def test_f_of_the_first_moment_does_not_depend_on_the_size_of_tokens():
    """Labels that the values' line separates, so that F is that of vanishing outer weights."""
    x = X + 3 * np.sign(Y)[:, None, None]
    small, large = (predict(experiment(data=c.Arrays(size * x, Y)))["query1"].directions for size in (1.0, 1e12))
    assert "no rest" in predict(experiment(data=c.Arrays(x, Y)))["query1"].note
    np.testing.assert_allclose(small.directions[0], large.directions[0], atol=1e-6)
    np.testing.assert_allclose(small.values / small.values[0], large.values / large.values[0], atol=1e-6)


def test_weight_decay_that_small_weights_do_not_grow_against_is_told():
    decayed = experiment(optimizer=c.GD(0.1, weight_decay=0.1), steps=100)
    run = c.train(decayed, 1)
    assert np.abs(run.weights("value1", 100, 0)).max() < 0.5 * np.abs(run.weights("value1", 0, 0)).max()
    assert "weight decay is left out" in predict(decayed)["value1"].note
    assert "decay" not in predict(experiment(optimizer=c.GD(0.1)))["value1"].note


def test_prediction_gives_v_and_the_vectors_of_f_before_training():
    found = predict(experiment())
    v, _ = value_direction(X, Y)
    f = query_key_matrix(X, Y, plateau_amplitude(X, Y) * v, 6**-0.5)
    left, _, right = np.linalg.svd(f)
    for name, expected in (("value1", v), ("query1", left[:, 0]), ("key1", right[0])):
        lines = found[name].directions
        (attracting,) = lines.directions[lines.attracts]
        assert abs(attracting @ expected) == pytest.approx(1, abs=1e-9), name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network": c.Attention(5, 6, 1, heads=2, head_width=3)}, "one head"),
        ({"loss": c.Loss("mse")}, "exponential loss"),
        ({"optimizer": c.Adam(1e-3)}, "not for Adam"),
        ({"network.activation": "x_tanh"}, "multiplicity 1"),
        ({"network.fixed": ("value1",)}, "here value1 is fixed"),
    ],
)
def test_what_is_not_predicted_is_said(changes, words):
    with pytest.raises(c.InputError, match=words):
        predict(experiment(**changes))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: query_key_matrix(X, Y, np.ones(5), 1.0), "each of the 6 coordinates, not (5,)"),
        (lambda: value_direction(X * np.nan, Y), "finite"),
        (lambda: plateau_amplitude(X[:0], Y[:0]), "at least one sample"),
        (lambda: context_losses([0.4, -0.1], 31), "positive numbers, at least one, not [0.4, -0.1]"),
        (lambda: context_weights([], 31), "at least one"),
        (lambda: context_losses([0.4], 0), "context must be a whole number of at least 1, not 0"),
        (lambda: context_loss(np.eye(3), [0.4, 0.1], 31), "not (3, 3)"),
    ],
)
def test_what_theory_cannot_read_is_said(call, words):
    with pytest.raises(c.InputError, match=re.escape(words)):
        call()


def test_the_levels_of_regression_in_context_are_those_of_the_best_heads():
    """The least squared error of sum over d <= m of w_d beta_d x_d, from moments of many sequences."""
    values, context = (0.7, 0.3), 8
    x, y = c.InContextRegression(200_000, values, context).draw(c.Seed(1, 0))
    features = np.einsum("njd,nj->nd", x[:, :-1, :2], x[:, :-1, 2]) / context * x[:, -1, :2]
    for m in (1, 2):
        weights, *_ = np.linalg.lstsq(features[:, :m], y[:, 0], rcond=None)
        np.testing.assert_allclose(weights, context_weights(values, context)[:m], rtol=0.02)
        assert ((y[:, 0] - features[:, :m] @ weights) ** 2).mean() == pytest.approx(
            context_losses(values, context)[m], rel=0.02
        )
    assert context_losses(values, context)[0] == pytest.approx(1)


def test_the_best_weights_stand_in_the_order_of_the_eigenvalues():
    for values in ((0.3, 0.7), (0.7, 0.3)):
        best = np.diag(context_weights(values, 8))
        np.testing.assert_allclose(context_gradient(best, values, 8), 0, atol=1e-12)
        assert context_loss(best, values, 8) == pytest.approx(context_losses(values, 8)[-1])


def test_the_expected_loss_of_any_heads_is_the_mean_over_many_sequences():
    values, context = np.array([0.7, 0.3]), 8
    matrix = np.array([[0.9, -0.4], [0.2, 1.1]])
    x, y = c.InContextRegression(400_000, tuple(values), context).draw(c.Seed(2, 0))
    read = np.einsum("njd,nj->nd", x[:, :-1, :2], x[:, :-1, 2]) / context
    errors = (y[:, 0] - np.einsum("nd,de,ne->n", read, matrix, x[:, -1, :2])) ** 2
    assert context_loss(matrix, values, context) == pytest.approx(
        errors.mean(), abs=4 * errors.std() / len(errors) ** 0.5
    )
    step = 1e-6 * np.eye(4).reshape(4, 2, 2)
    slopes = [
        (context_loss(matrix + own, values, context) - context_loss(matrix - own, values, context)) / 2e-6
        for own in step
    ]
    np.testing.assert_allclose(context_gradient(matrix, values, context).ravel(), slopes, rtol=1e-6)
