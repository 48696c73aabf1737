"""The matrix Z and the linear dynamics of kernels, against loops, automatic differentiation and real training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import condensation as c
from condensation import InputError
from condensation.theory import KernelDynamics, effective_time, heuristic_time, patch_matrix, residual_at_zero

LOSSES = [c.Loss("mse"), c.Loss("softmax_mse"), c.Loss("cross_entropy"), c.Loss("softmax_mse", "sum")]


def data(seed=0, n=6, channels=2, side=5, outputs=3):
    stream = np.random.default_rng(seed)
    x = stream.normal(size=(n, channels, side, side))
    return x, np.eye(outputs)[stream.integers(outputs, size=n)]


def loops(x, r, m):
    """Z by its definition."""
    n, channels, h, w = x.shape
    rows = []
    for o in range(r.shape[1]):
        for u in range(h - m + 1):
            for v in range(w - m + 1):
                row = [
                    sum(r[i, o] * x[i, k, u + p, v + q] for i in range(n)) / n
                    for k in range(channels)
                    for p in range(m)
                    for q in range(m)
                ]
                rows.append([*row, sum(r[i, o] for i in range(n)) / n])
    return np.array(rows)


def test_z_against_its_definition():
    x, y = data()
    np.testing.assert_allclose(patch_matrix(x, y, 3), loops(x, y, 3), atol=1e-14)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    np.testing.assert_allclose(patch_matrix(x, y, 3, padding=1, slope=0.25), 0.25 * loops(padded, y, 3), atol=1e-14)


def test_residuals_in_closed_form():
    y = data()[1]
    n, k = y.shape
    np.testing.assert_allclose(residual_at_zero(y), y)
    np.testing.assert_allclose(residual_at_zero(y, c.Loss("cross_entropy")), y - 1 / k, atol=1e-15)
    np.testing.assert_allclose(residual_at_zero(y, c.Loss("softmax_mse")), (y - 1 / k) / k, atol=1e-15)
    np.testing.assert_allclose(residual_at_zero(y, c.Loss("mse", "sum")), n * y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_velocity_at_small_weights_is_that_of_the_network(loss):
    x, y = data()
    network = c.Conv(x.shape[1:], (4,), 3, y.shape[1], activation="tanh")
    start = c.Init(c.Normal(1e-7)).draw(network, np.random.default_rng(1))
    with jax.enable_x64(True):
        slope = jax.grad(lambda p: loss(network.assemble(p)(x), jnp.asarray(y)))(start)
    dynamics = KernelDynamics.of(x, y, 3, loss)
    filters = np.c_[start["conv1.weight"].reshape(4, -1), start["conv1.bias"]]
    outputs = start["output.weight"].reshape(y.shape[1], 4, -1).transpose(1, 0, 2).reshape(4, -1)
    moving = -np.c_[np.asarray(slope["conv1.weight"]).reshape(4, -1), slope["conv1.bias"]]
    np.testing.assert_allclose(outputs @ dynamics.z, moving, atol=1e-6 * np.abs(moving).max())
    back = -np.asarray(slope["output.weight"]).reshape(y.shape[1], 4, -1).transpose(1, 0, 2).reshape(4, -1)
    np.testing.assert_allclose(filters @ dynamics.z.T, back, atol=1e-6 * np.abs(back).max())


@given(st.integers(0, 10**6), st.floats(0, 3))
def test_the_closed_form_against_the_matrix_exponential(seed, time):
    x, y = data(seed % 97, side=4, outputs=2)
    dynamics = KernelDynamics.of(x, y, 3)
    rows, columns = dynamics.z.shape
    stream = np.random.default_rng(seed)
    w, a = stream.normal(size=(3, columns)), stream.normal(size=(3, rows))
    matrix = np.block([[np.zeros((columns, columns)), dynamics.z.T], [dynamics.z, np.zeros((rows, rows))]])
    expected = np.c_[w, a] @ expm(time * matrix).T
    found = np.concatenate(dynamics.evolve(w, a, time), axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_singular_values_rank_gap_and_leading_vectors():
    x, y = data(n=40)
    dynamics = KernelDynamics.of(x, y, 3)
    values = np.linalg.svd(dynamics.z, compute_uv=False)
    np.testing.assert_allclose(dynamics.values, values, atol=1e-12)
    assert dynamics.rank == np.linalg.matrix_rank(dynamics.z)
    assert dynamics.gap == pytest.approx(1 - values[1] / values[0])
    np.testing.assert_allclose(dynamics.z @ dynamics.v1, values[0] * dynamics.u1, atol=1e-12)
    np.testing.assert_allclose(dynamics.z.T @ dynamics.u1, values[0] * dynamics.v1, atol=1e-12)


def test_the_sides_that_filters_go_to():
    x, y = data(n=40)
    dynamics = KernelDynamics.of(x, y, 3)
    stream = np.random.default_rng(0)
    w, a = stream.normal(size=(50, dynamics.z.shape[1])), stream.normal(size=(50, dynamics.z.shape[0]))
    later = dynamics.evolve(w, a, 60 / dynamics.values[0])[0]
    np.testing.assert_array_equal(np.sign(later @ dynamics.v1), dynamics.orientations(w, a))


def test_parts_of_the_leading_filter():
    ones = np.ones((4, 2, 5, 5))
    dynamics = KernelDynamics.of(ones, np.ones((4, 1)), 3)
    np.testing.assert_allclose(dynamics.channel_cosines, 1)
    assert dynamics.bias_part == pytest.approx(19**-0.5)
    assert (dynamics.rank, dynamics.gap) == (1, pytest.approx(1))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_without_a_field_nothing_grows_and_there_is_no_direction(rows):
    """Z = 0: labels that do not correlate with the images, and biases that cancel."""
    dynamics = KernelDynamics(np.zeros((rows, 10)))
    assert (dynamics.rank, dynamics.gap) == (0, 0.0)
    for direction in ("v1", "u1", "bias_part", "channel_cosines"):
        with pytest.raises(InputError, match="Z is zero: no filter grows"):
            getattr(dynamics, direction)
    w, a = np.ones((3, 10)), np.ones((3, rows))
    with pytest.raises(InputError, match="Z is zero: no filter grows"):
        dynamics.orientations(w, a)
    for before, after in zip((w, a), dynamics.evolve(w, a, 7.0), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("kernel", [3, 6])  # 6: a dense network, whose kernel is the whole image
@pytest.mark.parametrize("order", [1, -1])
def test_where_z_is_zero_but_for_rounding_its_rank_is_zero(kernel, order):
    """Each image has both labels; the second half may be summed in another order."""
    stream = np.random.default_rng(0)
    x, y = stream.normal(size=(57, 2, 6, 6)), stream.normal(size=(57, 1))
    both = np.concatenate([x, x[::order]]), np.concatenate([y, -y[::order]])
    dynamics = KernelDynamics.of(*both, kernel)
    assert (dynamics.rank, dynamics.gap) == (0, 0)
    nearly = KernelDynamics.of(both[0], both[1] + 1e-9, kernel)  # a true mean of a billionth is kept
    assert nearly.rank == (1 if kernel == 6 else 16)  # positions
    np.testing.assert_allclose(nearly.z[:, -1], 1e-9)
    np.testing.assert_allclose(nearly.z, KernelDynamics.of(both[0], np.full((114, 1), 1e-9), kernel).z, rtol=1e-4)


@pytest.mark.filterwarnings("error")
def test_the_smallest_field_has_a_gap_and_a_direction():
    z = np.zeros((4, 10))
    z[0, 0], z[1, 1] = 4e-300, 1e-300
    dynamics = KernelDynamics(z)
    assert (dynamics.rank, dynamics.gap) == (2, pytest.approx(0.75))
    np.testing.assert_allclose(dynamics.v1, np.eye(10)[0], atol=1e-12)
    assert np.linalg.norm(dynamics.u1) == pytest.approx(1)


@pytest.mark.trials
@pytest.mark.parametrize("loss", LOSSES[:3])
def test_linear_dynamics_against_real_training(loss):
    """Gradient flow of a two-layer CNN from std 1e-5 on real digits: below 2% at L/L0 = .999, 0.2% at .9999."""
    images = c.Images("digits", n=100, balanced=True)
    network = c.Conv(images.shape, (16,), 3, 10, activation="tanh")
    x, y = images.draw(c.Seed(0, 0))
    dynamics = KernelDynamics.of(x, y, 3, loss)
    for ratio, allowed in ((0.999, 0.02), (0.9999, 0.002)):
        flow = c.GradientFlow(0.2 / dynamics.values[0], stop_ratio=ratio)
        experiment = c.Experiment(
            network, c.Init(c.Normal(1e-5)), images, flow, 100, loss, save=c.At(()), record=c.Evenly(21)
        )
        run = c.train(experiment, seeds=1)
        assert run.loss[0, -1] / run.loss[0, 0] == pytest.approx(ratio, abs=1e-6)
        start = run.parameters_at(0, 0)
        filters = np.c_[start["conv1.weight"].reshape(16, -1), start["conv1.bias"]]
        outputs = start["output.weight"].reshape(10, 16, -1).transpose(1, 0, 2).reshape(16, -1)
        predicted = dynamics.evolve(filters, outputs, run.curves["time"][0, -1])[0]
        found = run.weights("conv1", 100, 0, view="filter")
        assert np.linalg.norm(predicted - found) / np.linalg.norm(found) < allowed


def test_times():
    assert effective_time(1.0, 4096, 1.2) < 0
    assert effective_time(2.0, 4096, 4.0) < heuristic_time(2.0, 4096, 4.0)


def test_bad_input_is_named(unchecked):
    with pytest.raises(InputError, match="smaller than a kernel"):
        patch_matrix(np.ones((2, 1, 3, 3)), np.ones((2, 1)), 4)
    with pytest.raises(InputError, match="samples x channels"):
        patch_matrix(np.ones((2, 1, 1, 3, 3)), np.ones((2, 1)), 2)
    with pytest.raises(InputError, match="gamma must be above 1"):
        effective_time(1.0, 10, 1.0)
    with pytest.raises(InputError, match="Z must be finite"):
        KernelDynamics(np.ones((4, 9)), channels=3)
    with pytest.raises(InputError, match="Z must be finite"):
        KernelDynamics(np.ones((0, 10)))
