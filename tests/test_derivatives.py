"""Derivatives of models, held against finite differences, PyTorch and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy.optimize import minimize

import condensation as c
from condensation import Conv, Dense, Init, InputError, Loss, Model, Normal, ResNet, derivatives

NETWORKS = {
    "dense": Dense((3, 4, 2)),
    "deep": Dense((3, 4, 4, 2), ("x_tanh", "softplus"), residual=True, output_bias=True),
    "dropout": Dense((3, 4, 2), dropout=0.5),
    "conv": Conv((2, 5, 5), channels=(3,), kernel=3, outputs=2, hidden=(4,)),
    "resnet": ResNet((1, 8, 8), 2, (4,), "tanh", channels=(2,), depth=1, stem="small"),
}
LOSSES = {"mse": Loss(), "summed": Loss("mse", "sum"), "cross_entropy": Loss("cross_entropy")}


def drawn(network, dtype=float):
    stream = np.random.default_rng(1)
    parameters = Init(Normal(0.4)).draw(network, stream)
    for norm in network.norms:  # with biases of zero, relu would stand at its kink wherever it has read zeros
        parameters |= {name: value + 0.1 * stream.normal(size=value.shape) for name, value in norm.parameters.items()}
    x = stream.normal(size=(6, *network.input_shape))
    y = np.eye(network.outputs)[stream.integers(network.outputs, size=6)]
    return Model(network, {name: value.astype(dtype) for name, value in parameters.items()}), x, y


def moved(model, vector):
    return Model(model.network, model.parameters | derivatives.as_parameters(model, vector))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", NETWORKS)
def test_the_gradient_is_that_of_finite_differences(kind, loss):
    model, x, y = drawn(NETWORKS[kind])
    at = derivatives.as_vector(derivatives.trained_parameters(model))
    found = derivatives.as_vector(derivatives.gradient(model, x, y, LOSSES[loss]))
    stream, h = np.random.default_rng(2), 1e-6
    for _ in range(5):
        way = stream.normal(size=at.size)
        up, down = (derivatives.loss_of(moved(model, at + s * h * way), x, y, LOSSES[loss]) for s in (1, -1))
        assert found @ way == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", NETWORKS)
def test_the_jacobian_and_the_residuals_make_the_gradient(kind):
    model, x, y = drawn(NETWORKS[kind])
    parts = derivatives.jacobian(model, x)
    for loss in LOSSES.values():
        r = derivatives.residuals(model, x, y, loss)
        share = len(x) if loss.reduction == "mean" else 1
        for name, found in derivatives.gradient(model, x, y, loss).items():
            np.testing.assert_allclose(found, -np.tensordot(r, parts[name], 2) / share, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(derivatives.residuals(model, x, y), y - model(x), atol=1e-12)


def in_torch(model, x, y, loss):
    """The loss of a two-layer tanh network as a function of the vector of its parameters, in PyTorch."""
    hidden, inputs = model.parameters["dense1.weight"].shape
    outputs = len(model.parameters["output.weight"])
    x, y = torch.tensor(x), torch.tensor(y)

    def f(v):
        w, b, a = torch.split(v, [hidden * inputs, hidden, outputs * hidden])
        return torch.tanh(x @ w.reshape(hidden, inputs).T + b) @ a.reshape(outputs, hidden).T

    def total(v):
        if loss.name == "mse":
            return 0.5 * ((f(v) - y) ** 2).sum() / (len(x) if loss.reduction == "mean" else 1)
        return -(y * torch.log_softmax(f(v), 1)).sum() / len(x)

    return f, total


@pytest.mark.parametrize("loss", LOSSES)
def test_hessian_and_kernel_are_pytorchs(loss):
    model, x, y = drawn(NETWORKS["dense"])
    at = torch.tensor(derivatives.as_vector(model.parameters))
    f, total = in_torch(model, x, y, LOSSES[loss])
    matrix = derivatives.hessian(model, x, y, LOSSES[loss])
    np.testing.assert_allclose(matrix, torch.autograd.functional.hessian(total, at).numpy(), atol=1e-12)
    rows = torch.autograd.functional.jacobian(f, at).reshape(len(x) * 2, -1)
    np.testing.assert_allclose(derivatives.ntk(model, x).reshape(len(rows), -1), (rows @ rows.T).numpy(), atol=1e-12)
    np.testing.assert_allclose(derivatives.ntk(model, x[:2], x[2:]), derivatives.ntk(model, x)[:2, :, 2:], atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "conv"])
def test_a_jacobian_in_parts_is_the_same(kind, monkeypatch):
    model, x, _ = drawn(NETWORKS[kind])
    whole, kernel = derivatives.jacobian(model, x), derivatives.ntk(model, x)
    monkeypatch.setattr(derivatives, "SMALL", 1)
    for name, part in derivatives.jacobian(model, x).items():
        np.testing.assert_allclose(part, whole[name], atol=1e-13)
    np.testing.assert_allclose(derivatives.ntk(model, x, x), kernel, atol=1e-12)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", NETWORKS)
def test_products_and_spectrum_are_those_of_the_matrix(kind, monkeypatch):
    model, x, y = drawn(NETWORKS[kind])
    matrix = derivatives.hessian(model, x, y)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-11 * np.abs(matrix).max())
    vector = np.random.default_rng(3).normal(size=len(matrix))
    np.testing.assert_allclose(derivatives.hessian_product(model, vector, x, y), matrix @ vector, atol=1e-10)
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    for most in (derivatives.DENSE, 0):  # as a whole, and by Lanczos' method
        monkeypatch.setattr(derivatives, "DENSE", most)
        found = derivatives.hessian_spectrum(model, x, y, smallest=2, largest=3)
        np.testing.assert_allclose(found.values, [*values[:2], *values[-3:]], atol=1e-9 * np.abs(values).max())
        assert found.error < 1e-9 * np.abs(values).max()
        assert found.size == len(matrix)
        assert found.escapes == (found.values < -1e-9 * np.abs(values).max()).sum()
    whole = derivatives.hessian_spectrum(model, x, y, smallest=len(matrix), largest=1)
    np.testing.assert_allclose(whole.values, values, atol=1e-10 * np.abs(values).max())


def test_a_model_of_single_precision_is_differentiated_in_double():
    model, x, y = drawn(NETWORKS["dense"], np.float32)
    double = Model(model.network, {name: value.astype(float) for name, value in model.parameters.items()})
    for name, found in derivatives.gradient(model, x, y).items():
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, derivatives.gradient(double, x, y)[name])
    assert jnp.zeros(1).dtype == jnp.float32  # the user's JAX is as before


def test_a_split_neuron_adds_a_flat_direction_and_stays_critical():
    """The embedding principle: whatever the shares, the loss is the same along them, and its gradient is zero."""
    stream = np.random.default_rng(0)
    x = stream.uniform(-2, 2, (20, 1))
    y = np.tanh(1.5 * x + 0.5) + 0.3 * stream.normal(size=x.shape)
    model, _, _ = drawn(Dense((1, 1, 1)))
    best = minimize(
        lambda v: derivatives.loss_of(moved(model, v), x, y),
        derivatives.as_vector(model.parameters),
        jac=lambda v: derivatives.as_vector(derivatives.gradient(moved(model, v), x, y)),
        method="BFGS",
    ).x
    for _ in range(5):  # Newton's steps to the very point
        g = derivatives.as_vector(derivatives.gradient(moved(model, best), x, y))
        best = best - np.linalg.solve(derivatives.hessian(moved(model, best), x, y), g)
    narrow = moved(model, best)
    wide = c.embed(narrow, "dense1", 0, (0.3, 0.7))
    assert np.abs(derivatives.as_vector(derivatives.gradient(wide, x, y))).max() < 1e-9
    assert derivatives.loss_of(wide, x, y) == pytest.approx(derivatives.loss_of(narrow, x, y), rel=1e-12)
    before, after = (derivatives.hessian_spectrum(m, x, y, smallest=9).values for m in (narrow, wide))
    assert before.min() > 1e-3  # a minimum of the narrow network
    assert len(after) == 6
    assert (np.abs(after) < 1e-8).sum() == 1
    flat = derivatives.as_parameters(wide, np.zeros(6)) | {"output.weight": np.array([[1.0, -1.0]])}
    np.testing.assert_allclose(derivatives.hessian_product(wide, derivatives.as_vector(flat), x, y), 0, atol=1e-9)


def test_jax_differentiates_a_model_by_its_parameters():
    model, x, y = drawn(NETWORKS["dense"])
    with jax.enable_x64(True):
        found = jax.grad(lambda own: Loss()(model.apply(own, jnp.asarray(x)), jnp.asarray(y)))(model.parameters)
    for name, value in derivatives.gradient(model, x, y).items():
        np.testing.assert_allclose(found[name], value, atol=1e-14)
    np.testing.assert_allclose(model.apply(model.parameters, x), model(x), atol=1e-6)  # JAX's usual single precision


def test_bad_input_gets_one_sentence():
    model, x, y = drawn(NETWORKS["dense"])
    for call, said in (
        (lambda: derivatives.gradient(model, x[:, :2], y), r"samples of shape \(3,\) are needed"),
        (lambda: derivatives.gradient(model, x[:0], y[:0]), "at least one"),
        (lambda: derivatives.gradient(model, x, y[:, :1]), r"targets of shape 6 x 2 \(samples x outputs\) are needed"),
        (lambda: derivatives.hessian_product(model, np.ones(3), x, y), "the model has 24 trained parameters"),
        (lambda: derivatives.hessian_spectrum(model, x, y, smallest=0, largest=0), "at least one eigenvalue"),
        (lambda: derivatives.hessian_spectrum(model, x, y, smallest=-1), "smallest"),
    ):
        with pytest.raises(InputError, match=said):
            call()
    large = Model(Dense((3, 40_000, 1)), Init(Normal(1)).draw(Dense((3, 40_000, 1)), np.random.default_rng(0)))
    with pytest.raises(InputError, match=r"the Hessian of 200,000 parameters takes .* hessian_spectrum do without it"):
        derivatives.hessian(large, x, y[:, :1])
