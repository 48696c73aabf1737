import jax
import numpy as np
import pytest

from condensation import InputError
from condensation._precision import precision
from condensation.networks import Dense
from condensation.theory import (
    coefficient,
    field,
    polar_velocity,
    stationary_directions,
    velocity,
)
from condensation.theory._field import project
from condensation.theory._leading import evaluate

ACTIVATIONS = ["tanh", "x_tanh", "x2_tanh", "sigmoid", "relu"]


def case(size=0.3, seed=0, units=8, dim=3):
    stream = np.random.default_rng(seed)
    x, y = stream.uniform(-2, 2, (25, dim)), stream.normal(size=25)
    w, a = size * stream.normal(size=(units, dim + 1)), size * stream.normal(size=units)
    return np.concatenate([x, np.ones((25, 1))], axis=1), y, w, a


def residual_of(x, y, w, a, activation):
    return y - evaluate(activation, x @ w.T) @ a


def gradient(x, y, w, a, activation):
    """Gradient of the loss by JAX on the network itself."""
    network = Dense((x.shape[1] - 1, len(w), 1), activation)

    def loss(weight, bias):
        out = network.assemble({"dense1.weight": weight, "dense1.bias": bias, "output.weight": a[None]})(x[:, :-1])
        return ((out[:, 0] - y) ** 2).mean() / 2

    with precision("float64"):
        parts = jax.grad(loss, (0, 1))(w[:, :-1], w[:, -1])
        return np.concatenate([np.asarray(parts[0]), np.asarray(parts[1])[:, None]], axis=1)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_velocity_is_minus_the_gradient_of_the_loss(activation):
    x, y, w, a = case()
    r = residual_of(x, y, w, a, activation)
    np.testing.assert_allclose(velocity(w, a, x, r, activation), -gradient(x, y, w, a, activation), atol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "x_tanh"])
def test_amplitude_and_orientation_change_as_along_a_small_step_of_gradient_flow(activation):
    x, y, w, a = case()
    r = residual_of(x, y, w, a, activation)
    growing, turning = polar_velocity(w, a, x, r, activation)
    h = 1e-5
    ahead, behind = (w - s * h * gradient(x, y, w, a, activation) for s in (1, -1))
    norm = lambda v: np.linalg.norm(v, axis=1)  # noqa: E731
    np.testing.assert_allclose(growing, (norm(ahead) - norm(behind)) / (2 * h), rtol=1e-6, atol=1e-8)
    turned = (ahead / norm(ahead)[:, None] - behind / norm(behind)[:, None]) / (2 * h)
    np.testing.assert_allclose(turning, turned, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("activation", ["tanh", "x_tanh", "x2_tanh", "sigmoid"])
def test_exact_field_comes_to_the_leading_one_as_weights_shrink(activation):
    x, y, w, _ = case(size=1.0)
    off = []
    for size in (1e-2, 1e-3):
        exact, leading = (field(size * w, x, y, activation, order=order) for order in ("exact", "leading"))
        off.append(np.linalg.norm(exact - leading) / np.linalg.norm(leading))
    assert off[1] < 1e-4
    assert off[0] / off[1] == pytest.approx(100, rel=0.2)  # all of them err at second order


@pytest.mark.parametrize("activation", ["tanh", "x_tanh", "x2_tanh"])
def test_nothing_turns_on_the_stationary_lines_at_leading_order(activation):
    x, y, w, a = case()
    p, _ = coefficient(activation)
    lines = stationary_directions(x, y, p).directions
    _, still = polar_velocity(0.1 * lines, np.ones(len(lines)), x, y, activation, order="leading")
    assert np.abs(still).max() < 1e-11
    assert np.abs(polar_velocity(w, a, x, y, activation, order="leading")[1]).max() > 1e-4
    exact, leading = (polar_velocity(1e-4 * w, a, x, y, activation, order=order)[1] for order in ("exact", "leading"))
    np.testing.assert_allclose(exact, leading, rtol=1e-3, atol=1e-8)


def test_projection_leaves_nothing_along_the_weight():
    _, _, w, _ = case()
    v = np.random.default_rng(1).normal(size=w.shape)
    assert np.abs(np.einsum("jd,jd->j", project(v, w), w)).max() < 1e-15
    np.testing.assert_allclose(project(project(v, w), w), project(v, w))


def test_what_does_not_fit_is_refused_in_a_sentence(unchecked):
    x, y, w, a = case()
    with pytest.raises(InputError, match=r"omega must be points x 4 inputs, not of shape \(8, 3\)"):
        field(w[:, :3], x, y, "tanh")
    with pytest.raises(InputError, match=r"unknown order 'first'; .*exact, leading"):
        field(w, x, y, "tanh", order="first")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"one residual for each sample is needed, not 2; pass residual @ v"):
        field(w, x, np.stack([y, y], axis=1), "tanh")
    with pytest.raises(InputError, match="units have norm zero and no orientation, first 2"):
        polar_velocity(np.where(np.arange(8)[:, None] == 2, 0, w), a, x, y, "tanh")
    with pytest.raises(InputError, match="multiplicity of relu is undefined"):
        field(w, x, y, "relu", order="leading")
