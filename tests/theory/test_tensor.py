import numpy as np
import pytest
from tensors import rotation

from condensation import InputError
from condensation.theory import Tensor
from condensation.theory._tensor import flow_eigenvalues, group_lines, restrict_to_span, tangents, unit


def written_out(points, weights, p):
    """The tensor as an array of D^p numbers."""
    total = 0
    for x, w in zip(points, weights, strict=True):
        term = w
        for _ in range(p):
            term = np.multiply.outer(term, x)
        total = total + term
    return total


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("samples", [3, 400])
@pytest.mark.parametrize("number", [float, complex])
def test_contractions_are_those_of_the_tensor_written_out(p, samples, number):
    """With few samples the sums are taken, with many the tensor is formed."""
    stream = np.random.default_rng(p)
    points, weights = stream.normal(size=(samples, 3)), stream.normal(size=(samples, 2)) / samples
    tensor, v = Tensor(points, weights, p), stream.normal(size=(4, 2))
    u = stream.normal(size=(4, 3)) + (1j * stream.normal(size=(4, 3)) if number is complex else 0)
    for row in range(4):
        seen = written_out(points, weights @ v[row], p)
        for _ in range(p - 2):
            seen = seen @ u[row]
        if p > 1:
            np.testing.assert_allclose(tensor.matrix(u, v)[row], seen, atol=1e-10)
            seen = seen @ u[row]
        np.testing.assert_allclose(tensor.field(u, v)[row], seen, atol=1e-10)
        assert tensor.value(u)[row] @ v[row] == pytest.approx(seen @ u[row], abs=1e-10)
    whole = written_out(points, weights[:, 0], p)
    assert Tensor(points, weights[:, :1], p).norm == pytest.approx(np.linalg.norm(whole))


def test_tangents_are_orthonormal_and_orthogonal():
    u = unit(np.random.default_rng(0).normal(size=(20, 5)))
    basis = np.concatenate([u[:, :, None], tangents(u)], axis=2)
    np.testing.assert_allclose(basis.mT @ basis, np.broadcast_to(np.eye(5), (20, 5, 5)), atol=1e-14)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_eigenvalues_are_those_of_the_flow_by_finite_differences(p):
    """At a point that is made stationary: an axis, of a tensor whose field there is along the axis."""
    stream = np.random.default_rng(p)
    points, weights = stream.normal(size=(60, 4)), stream.normal(size=(60, 1)) / 60
    u = unit(stream.normal(size=(1, 4)))
    across = tangents(u)[0]
    terms = (points @ u[0]) ** (p - 1) * (points @ across).T
    weights -= np.linalg.pinv(terms) @ (terms @ weights)
    tensor = Tensor(points, weights, p)

    def velocity(coordinates):
        turned = unit(u + coordinates @ across.T)
        field = tensor.field(turned)
        return (field - (field * turned).sum(axis=1, keepdims=True) * turned) @ across

    h = 1e-5
    jacobian = [(velocity(h * e[None]) - velocity(-h * e[None]))[0] / (2 * h) for e in np.eye(3)]
    expected = np.sort(np.linalg.eigvals(np.array(jacobian)).real)
    np.testing.assert_allclose(flow_eigenvalues(tensor, u, np.ones((1, 1)))[0], expected, atol=1e-8)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_eigenvalues_of_several_outputs_are_those_of_weights_and_output_weights_together(p):
    """dw/dt and da/dt of the two-layer network at leading order, |w|^2 = p |a|^2, by finite differences."""
    stream = np.random.default_rng(p)
    points, weights = stream.normal(size=(80, 3)), stream.normal(size=(80, 2)) / 80
    u, v = unit(stream.normal(size=(1, 3))), unit(stream.normal(size=(1, 2)))
    along_u, along_v = tangents(u)[0], tangents(v)[0]
    z = points @ u[0]
    rows = [z ** (p - 1) * (points @ t) for t in along_u.T]  # fields across u and values across v must vanish
    conditions = np.concatenate([np.einsum("ci,k->cik", rows, v[0]), np.einsum("i,kc->cik", z**p, along_v)]).reshape(
        len(rows) + along_v.shape[1], -1
    )
    weights -= (np.linalg.pinv(conditions) @ (conditions @ weights.ravel())).reshape(weights.shape)

    def velocity(coordinates):
        direction = unit(u[0] + along_u @ coordinates[:2])
        w, a = direction, unit(v[0] + along_v @ coordinates[2:]) / np.sqrt(p)
        dw = points.T @ ((points @ w) ** (p - 1) * (weights @ a))
        da = weights.T @ (points @ w) ** p / p
        return np.concatenate([along_u.T @ (dw - (dw @ w) * w), along_v.T @ (da - (da @ a) * a * p) * np.sqrt(p)])

    h = 1e-5
    jacobian = [(velocity(h * e) - velocity(-h * e)) / (2 * h) for e in np.eye(3)]
    expected = np.sort(np.linalg.eigvals(np.array(jacobian)).real) * np.sqrt(p)
    np.testing.assert_allclose(flow_eigenvalues(Tensor(points, weights, p), u, v)[0], expected, atol=1e-8)


@pytest.mark.parametrize("p", [2, 3, 4])
def test_the_tensor_is_restricted_to_where_it_lives(p):
    stream = np.random.default_rng(p)
    turn = rotation(6, p)
    x = np.concatenate([stream.normal(size=(50, 3)), np.zeros((50, 3))], axis=1)
    x[0] = stream.normal(size=6)
    residual = stream.normal(size=(50, 1))
    residual[0] = 0  # the only sample outside
    restricted = restrict_to_span(x @ turn.T, residual, p)
    assert restricted.basis.shape == (6, 3)
    np.testing.assert_allclose(restricted.basis @ restricted.basis.T, turn[:, :3] @ turn[:, :3].T, atol=1e-12)
    u = stream.normal(size=(5, 3))
    full = Tensor(x @ turn.T, residual / 50, p).value(u @ restricted.basis.T)
    np.testing.assert_allclose(restricted.tensor.value(u) * restricted.scale, full, rtol=1e-10)


def test_a_field_that_cancels_is_refused():
    x = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 1.0]])
    with pytest.raises(InputError, match="zero for every u"):
        restrict_to_span(x, np.array([[1.0], [-1.0], [0.0]]), 3)
    odd = np.concatenate([x, -x])
    with pytest.raises(InputError, match="p = 3"):
        restrict_to_span(odd, np.ones((6, 1)), 3)
    assert restrict_to_span(odd, np.ones((6, 1)), 2).basis.shape == (2, 2)


def test_lines_are_grouped_without_their_phase():
    stream = np.random.default_rng(0)
    lines = unit(stream.normal(size=(7, 3)) + 1j * stream.normal(size=(7, 3)))
    labels = stream.integers(7, size=50)
    labels[:7] = np.arange(7)
    first, found = group_lines(lines[labels] * np.exp(2j * np.pi * stream.random((50, 1))))
    np.testing.assert_array_equal(first, np.arange(7))
    np.testing.assert_array_equal(found, labels)
