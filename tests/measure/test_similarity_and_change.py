import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import InputError
from condensation.measure import (  # fmt: skip
    block_order,
    cosine_similarity,
    directions,
    effective_rank,
    orientation_amplitude,
    participation_ratio,
    relative_change,
    share_along,
    similarity_to_others,
)


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 10**6), st.floats(1e-150, 1e150))
def test_cosines_are_those_of_a_plain_loop_at_any_scale(units, dim, seed, scale):
    weights = np.random.default_rng(seed).normal(size=(units, dim))
    found = cosine_similarity(weights * scale)
    for i, u in enumerate(weights):
        for j, v in enumerate(weights):
            assert found[i, j] == pytest.approx(u @ v / np.sqrt((u @ u) * (v @ v)), abs=1e-12)


def test_blocks_stand_together():
    stream = np.random.default_rng(0)
    labels = stream.integers(3, size=60)
    weights = np.eye(5)[labels] * stream.choice([-1.0, 1.0], (60, 1)) + 0.02 * stream.normal(size=(60, 5))
    order = block_order(weights)
    assert sorted(order) == list(range(60))
    orientation = labels * 2 + (weights[np.arange(60), labels] > 0)
    changes = np.count_nonzero(np.diff(orientation[order]))
    assert changes == 5, "six orientations, five borders"


def test_effective_numbers_of_known_cases():
    stream = np.random.default_rng(0)
    u, v = (np.linalg.qr(stream.normal(size=(n, n)))[0] for n in (7, 9))
    assert effective_rank(u[:, :4] @ v[:4]) == pytest.approx(4)
    assert effective_rank(np.outer(u[0], v[0])) == pytest.approx(1)
    assert participation_ratio(np.eye(6) * 1e-200) == pytest.approx(6)
    assert participation_ratio(np.diag([1.0, 1e-9, 1e-9])) == pytest.approx(1)
    assert relative_change(np.array([[2.0, 0], [0, 2]]), np.eye(2)) == pytest.approx(1)
    assert relative_change(np.eye(2) * 3e-200, np.eye(2) * 1e-200) == pytest.approx(2)
    assert share_along(np.eye(2) * 1e-200, np.array([1e-200, 0])) == pytest.approx(0.5**0.5)


@given(st.integers(1, 20), st.integers(1, 10), st.integers(0, 10**6))
def test_shares_along_an_orthonormal_basis_add_up(units, dim, seed):
    stream = np.random.default_rng(seed)
    weights, basis = stream.normal(size=(units, dim)), np.linalg.qr(stream.normal(size=(dim, dim)))[0]
    assert sum(share_along(weights, 3 * z) ** 2 for z in basis) == pytest.approx(1)


def test_orientation_and_amplitude_give_the_weights_back():
    weights = np.random.default_rng(0).normal(size=(50, 2))
    angle, amplitude = orientation_amplitude(weights)
    np.testing.assert_allclose(amplitude[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), weights)
    output = np.arange(50.0)
    np.testing.assert_allclose(orientation_amplitude(weights, -output)[1], amplitude * output)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cosine_similarity(np.array([[1.0, 0], [0, 0]])), "1 of 2 units have norm zero.* first unit 1"),
        (lambda: cosine_similarity(np.ones((2, 3)), np.ones((2, 4))), "3 and 4 inputs"),
        (lambda: directions(np.ones((2, 2, 2))), "units x inputs"),
        (lambda: relative_change(np.ones(2), np.ones(3)), "one shape"),
        (lambda: relative_change(np.ones(2), np.zeros(2)), "not zero"),
        (lambda: share_along(np.ones((2, 3)), np.ones(2)), "vector of 3 numbers"),
        (lambda: share_along(np.ones((2, 3)), np.array([1, np.nan, 1])), "finite and not zero"),
        (lambda: relative_change(np.ones(2), np.array([1, np.inf])), "finite start"),
        (lambda: effective_rank(np.zeros((2, 3))), "all weights are zero"),
        (lambda: participation_ratio(np.zeros((2, 3))), "all weights are zero"),
        (lambda: orientation_amplitude(np.ones((4, 3))), "units x 2"),
        (lambda: orientation_amplitude(np.ones((4, 2)), np.ones(5)), "output weights of 4 units"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_similarity_to_others_leaves_out_the_network_itself():
    """Two sets of three networks: in the second set the last one points elsewhere."""
    one, other = np.eye(3)[[0, 0, 0]], np.eye(3)[[0, 0, 1]]
    np.testing.assert_array_equal(similarity_to_others(cosine_similarity(one)), [1, 1, 1])
    np.testing.assert_array_equal(similarity_to_others(cosine_similarity(one, other)), [1, 1, 0.5])
    hidden = cosine_similarity(one) - 7 * np.eye(3)
    np.testing.assert_array_equal(similarity_to_others(hidden), [1, 1, 1])


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4,)])
def test_similarity_to_others_needs_pairs(shape):
    with pytest.raises(InputError, match="of two networks or more"):
        similarity_to_others(np.ones(shape))
