import numpy as np
import pytest

from condensation import InputError
from condensation.networks import Dense, Model
from condensation.theory import coefficient, leading_error, leading_output
from condensation.theory._leading import evaluate, next_term

ORDERS = {"tanh": 2, "sigmoid": 2, "softplus": 1, "gelu": 1, "swish": 1, "x_tanh": 2, "x2_tanh": 2}


def network(size, seed=0, units=20, dim=4):
    stream = np.random.default_rng(seed)
    x = np.concatenate([stream.uniform(-2, 2, (30, dim - 1)), np.ones((30, 1))], axis=1)
    return x, size * stream.normal(size=(units, dim)), stream.normal(size=units)


@pytest.mark.parametrize(("activation", "order"), ORDERS.items())
def test_error_of_the_leading_order_shrinks_with_the_weights_at_its_order(activation, order):
    coarse, fine = (leading_error(*network(size), activation) for size in (0.02, 0.01))
    assert coarse.order == fine.order == order
    assert fine.size == pytest.approx(coarse.size / 2)
    assert fine.relative < 2 * fine.size**order
    assert np.log2(coarse.relative / fine.relative) == pytest.approx(order, abs=0.1)
    assert fine.relative == pytest.approx(fine.expected, rel=0.05)


@pytest.mark.parametrize("activation", ["tanh", "softplus", "x2_tanh"])
def test_leading_output_is_the_output_of_a_network_with_small_weights(activation):
    x, w, a = network(1e-4)
    parameters = {"dense1.weight": w[:, :-1], "dense1.bias": w[:, -1], "output.weight": a[None]}
    exact = Model(Dense((3, 20, 1), activation), parameters)(x[:, :-1])[:, 0]
    constant = float(evaluate(activation, np.zeros(1))[0]) * a.sum()
    leading = leading_output(x, w, a, activation)
    np.testing.assert_allclose(leading - constant, exact - constant, rtol=0, atol=1e-3 * np.abs(exact - constant).max())


def test_coefficients_and_next_terms_are_those_of_the_taylor_series():
    for name, (p, c) in {"sigmoid": (1, 0.25), "softplus": (1, 0.5), "gelu": (1, 0.5), "x_tanh": (2, 2.0)}.items():
        assert coefficient(name) == (p, pytest.approx(c))
    assert next_term("tanh") == (3, pytest.approx(-1 / 3))
    assert next_term("x2_tanh") == (5, pytest.approx(-1 / 3))
    assert next_term(lambda z: 3 * z**2) is None
    assert leading_error(*network(1.0), lambda z: 3 * z**2).relative < 1e-12


def test_a_kink_has_no_leading_order():
    with pytest.raises(InputError, match=r"relu is undefined.*extremal_directions"):
        leading_output(*network(1.0), "relu")


def test_what_does_not_fit_is_refused_in_a_sentence():
    x, w, a = network(1.0)
    with pytest.raises(InputError, match=r"units x 4 inputs \(the bias last\), not of shape \(20, 3\)"):
        leading_output(x, w[:, :3], a, "tanh")
    with pytest.raises(InputError, match="one output weight for each of 20 units"):
        leading_output(x, w, a[:5], "tanh")
    with pytest.raises(InputError, match="1 of 20 units hold NaN"):
        leading_output(x, w, np.where(np.arange(20) == 3, np.nan, a), "tanh")
    with pytest.raises(InputError, match="constant on these samples"):
        leading_error(x, 0 * w, a, "tanh")
