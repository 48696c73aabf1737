r"""Activations by name, and the multiplicity of any activation.

The multiplicity of $\sigma$ is the order p of its first non-zero derivative at 0: there
$\sigma(x) - \sigma(0) \approx \sigma^{(p)}(0)\, x^p / p!$.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import factorial

from .errors import InputError, unknown_name

Function = Callable[[Any], Any]
Activation = str | Function


def x_tanh(x: Any) -> Any:
    """X tanh x, of multiplicity 2."""
    return x * jnp.tanh(x)


def x2_tanh(x: Any) -> Any:
    """x^2 tanh x, of multiplicity 3."""
    return x * x * jnp.tanh(x)


ACTIVATIONS: dict[str, Function] = {
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "swish": jax.nn.swish,
    "x_tanh": x_tanh,
    "x2_tanh": x2_tanh,
}
LABELS = {"x_tanh": "x tanh x", "x2_tanh": "x² tanh x", "leaky_relu": "leaky relu"}
HIGHEST_ORDER = 8


def get_activation(activation: Activation) -> Function:
    """The function of a name; a function is returned as it is.

    >>> get_activation("tanh") is jnp.tanh
    True
    """
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise unknown_name("activation", activation, ACTIVATIONS)
    return ACTIVATIONS[activation]


def label(activation: Activation) -> str:
    """How an activation is written in a picture.

    >>> label("x2_tanh")
    'x² tanh x'
    """
    if callable(activation):
        return getattr(activation, "__name__", "user function")
    return LABELS.get(activation, activation)


def derivatives_at_zero(activation: Activation, orders: int) -> list[float]:
    """f(0), f'(0), ..., f^(orders)(0) by nested automatic differentiation in float64.

    >>> derivatives_at_zero("x_tanh", 2)
    [0.0, 0.0, 2.0]
    """
    return list(_derivatives_at_zero(activation, orders))


@lru_cache(maxsize=256)
def _derivatives_at_zero(activation: Activation, orders: int) -> tuple[float, ...]:
    derivative = get_activation(activation)
    values = []
    with jax.enable_x64(True):
        for order in range(orders + 1):
            try:
                value = np.asarray(derivative(jnp.zeros(())))
            except Exception as error:
                raise InputError(
                    f"the activation {label(activation)!r} must be a function of one number written with "
                    f"jax.numpy: derivative {order} at 0 failed with {type(error).__name__}"
                ) from error
            if value.shape != () or not np.isfinite(value):
                raise InputError(f"derivative {order} of the activation {label(activation)!r} at 0 is {value}")
            values.append(float(value))
            derivative = _differentiate(derivative)
    return tuple(values)


def _differentiate(function: Function) -> Function:
    """The derivative of a function of one number, in forward mode."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


@lru_cache(maxsize=256)
def multiplicity(activation: Activation) -> int | None:
    """Order p of the first non-zero derivative at 0, or None ("undefined") where the Taylor polynomial does not hold.

    Undefined is also a function whose first eight derivatives are all zero.

    The polynomial is compared with the function on both sides of 0: relu and leaky relu have a kink there, so their
    derivatives at 0 say nothing and the multiplicity is undefined.

    >>> [multiplicity(name) for name in ("tanh", "x_tanh", "x2_tanh", "relu")]
    [1, 2, 3, None]
    """
    function = get_activation(activation)
    constant = derivatives_at_zero(activation, 0)[0]
    with jax.enable_x64(True):
        scale = max(abs(float(function(jnp.asarray(h))) - constant) for h in (-1.0, -0.3, 0.3, 1.0))
    for order in range(1, HIGHEST_ORDER + 1):
        derivative = derivatives_at_zero(activation, order)[order]
        if abs(derivative) > 1e-10 * scale * factorial(order):
            return order if _taylor_holds(activation, order) else None
    return None


def _taylor_holds(activation: Activation, p: int) -> bool:
    """Whether f is its Taylor polynomial to 1% of the p-th term at two successive small h, on both sides of 0."""
    function = get_activation(activation)
    h = np.geomspace(1e-1, 1e-6, 26)
    with jax.enable_x64(True):
        values = np.stack([np.asarray(jax.vmap(function)(jnp.asarray(s * h))) for s in (1.0, -1.0)])
    orders = np.arange(p + 3)
    terms = np.array(derivatives_at_zero(activation, p + 2)) / factorial(orders)
    error = np.abs(values - np.stack([sign_h[:, None] ** orders @ terms for sign_h in (h, -h)]))
    worst = (error / np.abs(terms[p] * h**p)).max(axis=0)
    return bool(np.maximum(worst[1:], worst[:-1]).min() < 0.01)
