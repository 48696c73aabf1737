import numpy as np
import pytest
from tensors import same_lines

from condensation.theory import Tensor, stationary_directions
from condensation.theory._power import search_attracting


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("p", "dim"), [(3, 3), (3, 6), (3, 8), (4, 4), (4, 5), (5, 4), (6, 3)])
def test_power_iterations_find_what_the_homotopy_certifies(p, dim):
    for seed in range(3):
        stream = np.random.default_rng(seed)
        x, r = stream.normal(size=(80, dim)), stream.normal(size=80)
        every = stationary_directions(x, r, p)
        found = stationary_directions(x, r, p, most_paths=0)
        assert every.certified
        assert (found.method, found.certified) == ("power iteration", False)
        assert (found.starts, found.hits.sum()) == (1000, 1000)
        assert same_lines(found.directions, every.directions[every.attracts]) < 1e-10
        np.testing.assert_allclose(found.values, every.values[every.attracts], rtol=1e-10)
        np.testing.assert_array_equal(found.attracts_positive, every.attracts_positive[every.attracts])
        np.testing.assert_array_equal(found.attracts_negative, every.attracts_negative[every.attracts])
        np.testing.assert_allclose(found.eigenvalues, every.eigenvalues[every.attracts], atol=1e-9 * every.growth.max())


def test_twenty_dimensions_are_searched():
    stream = np.random.default_rng(0)
    x, r = stream.normal(size=(200, 20)), stream.normal(size=200)
    found = stationary_directions(x, r, 3)
    assert (found.method, found.certified, found.generic_count) == ("power iteration", False, 2**20 - 1)
    assert found.complex_count is None
    assert found.attracts.all()
    assert (found.hits == 1).sum() < 0.01 * found.starts
    again = stationary_directions(x, r, 3, starts=4000)
    assert same_lines(found.directions, again.directions) < 1e-10


def test_hits_tell_of_lines_that_may_be_missing():
    """In 200 dimensions there are many more maxima than 50 starts can find."""
    stream = np.random.default_rng(0)
    found = stationary_directions(stream.normal(size=(300, 200)), stream.normal(size=300), 3, starts=50)
    assert (found.hits == 1).sum() > 0.1 * found.starts
    assert found.hits.sum() == 50


@pytest.mark.parametrize("p", [2, 3, 4])
def test_pairs_of_several_outputs_are_local_maxima(p):
    stream = np.random.default_rng(p)
    x, r = stream.normal(size=(100, 5)), stream.normal(size=(100, 3))
    found = stationary_directions(x, r, p)
    assert (found.method, found.certified, found.generic_count) == ("power iteration", False, None)
    assert found.attracts.all()
    assert found.eigenvalues.shape == (found.count, 4 + 2)

    def joint(u, v):
        return np.einsum("lk,lk->l", (u @ x.T) ** p @ r / 100, v)

    for u, v, value in zip(found.directions, found.outputs, found.values, strict=True):
        assert joint(u[None], v[None])[0] == pytest.approx(value)
        near_u, near_v = u + 1e-3 * stream.normal(size=(500, 5)), v + 1e-3 * stream.normal(size=(500, 3))
        near_u /= np.linalg.norm(near_u, axis=1, keepdims=True)
        near_v /= np.linalg.norm(near_v, axis=1, keepdims=True)
        assert (joint(near_u, near_v) < value).all()
    np.testing.assert_allclose(found.orientations(1), found.orientations(-1))


@pytest.mark.trials
@pytest.mark.parametrize("p", [2, 3])
def test_neurons_with_several_outputs_end_in_the_pairs(p):
    """Explicit Euler steps of (w, a) of the two-layer network at leading order, rescaled to a common speed."""
    stream = np.random.default_rng(p)
    x, r = stream.normal(size=(60, 4)), stream.normal(size=(60, 2))
    found = stationary_directions(x, r, p)
    w, a = stream.normal(size=(100, 4)), 0.2 * stream.normal(size=(100, 2))
    for _ in range(5000):
        z = w @ x.T
        dw, da = (z ** (p - 1) * (a @ r.T)) @ x / 60, z**p @ r / 60 / p
        speed = np.linalg.norm(np.concatenate([dw, da], axis=1), axis=1, keepdims=True)
        size = np.linalg.norm(np.concatenate([w, a], axis=1), axis=1, keepdims=True)
        w, a = (w + 0.05 * dw / speed * size) / size, (a + 0.05 * da / speed * size) / size
    u, v = w / np.linalg.norm(w, axis=1, keepdims=True), a / np.linalg.norm(a, axis=1, keepdims=True)
    pairs = np.concatenate([found.directions, found.outputs], axis=1)
    turned = pairs * np.array([-1] * 4 + [(-1) ** p] * 2)
    away = np.abs(np.concatenate([u, v], axis=1)[:, None] - np.concatenate([pairs, turned])).max(axis=2).min(axis=1)
    assert away.max() < 1e-2


def test_few_samples_in_many_dimensions_and_many_samples_in_few_agree():
    """The sums and the tensor written out are two ways to the same numbers."""
    stream = np.random.default_rng(0)
    x, w = stream.normal(size=(500, 4)), stream.normal(size=(500, 1)) / 500
    formed, _, _ = search_attracting(Tensor(x, w, 3), 200)
    padded, _, _ = search_attracting(Tensor(np.concatenate([x, np.zeros((500, 30))], axis=1), w, 3), 200)
    assert same_lines(formed, padded[:, :4]) < 1e-10
