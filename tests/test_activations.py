import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from condensation import InputError, derivatives_at_zero, multiplicity
from condensation.activations import get_activation


@pytest.mark.parametrize(
    ("name", "p"),
    [
        ("tanh", 1), ("sigmoid", 1), ("softplus", 1), ("gelu", 1), ("swish", 1), ("silu", 1), ("linear", 1),
        ("quadratic", 2), ("x_tanh", 2), ("x2_tanh", 3),
        ("relu", None), ("leaky_relu", None),
    ],
)  # fmt: skip
def test_multiplicity_of_named_activations(name, p):
    assert multiplicity(name) == p


@pytest.mark.parametrize(
    "scaled", [lambda x: 1e-12 * jnp.tanh(x), lambda x: 1e12 * jnp.tanh(x), lambda x: jnp.tanh(x) + 1e9]
)
def test_multiplicity_does_not_depend_on_scale_or_constant(scaled):
    assert multiplicity(scaled) == 1


@pytest.mark.trials
@settings(max_examples=6)
@given(st.integers(1, 3), st.floats(0.1, 100), st.floats(-5, 5), st.sampled_from([1, -1]))
@example(4, 1.0, 0.0, 1)  # from here on ten derivatives are taken, which is slow
@example(6, 2.0, -1.0, -1)
def test_multiplicity_of_a_polynomial_is_its_lowest_order(p, scale, constant, sign):
    assert multiplicity(lambda x: constant + sign * scale * x**p + x ** (p + 1)) == p


@pytest.mark.parametrize(
    "kinked",
    [jnp.abs, lambda x: x * jnp.abs(x), lambda x: jax.nn.relu(x) ** 2, lambda x: jnp.where(x >= 0, x**2, 0.0),
     lambda x: 0.0 * x],
)  # fmt: skip
def test_multiplicity_is_undefined_where_the_taylor_term_does_not_hold(kinked):
    assert multiplicity(kinked) is None


def test_a_kink_in_a_higher_derivative_does_not_matter():
    assert multiplicity(jax.nn.elu) == 1


def test_derivatives_agree_with_closed_forms():
    np.testing.assert_allclose(derivatives_at_zero("sigmoid", 3), [0.5, 0.25, 0, -0.125], atol=1e-15)
    np.testing.assert_allclose(derivatives_at_zero("softplus", 2), [np.log(2), 0.5, 0.25], atol=1e-15)
    np.testing.assert_allclose(derivatives_at_zero("tanh", 5), [0, 1, 0, -2, 0, 16], atol=1e-13)


def test_an_unknown_name_lists_the_known_and_the_nearest():
    with pytest.raises(InputError, match=r"unknown activation 'tahn'; did you mean 'tanh'\? Known: tanh, sigmoid"):
        get_activation("tahn")


@pytest.mark.parametrize("bad", [lambda x: np.tanh(float(x)), lambda x: jnp.ones(3), lambda x: 1 / x, jnp.log])
def test_a_function_that_is_no_activation_is_refused_in_one_sentence(bad):
    with pytest.raises(InputError, match="activation"):
        multiplicity(bad)
