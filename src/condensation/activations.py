r"""Activations by name, and the multiplicity of any activation.

The multiplicity of $\sigma$ is the order p of its first non-zero derivative at 0: there
$\sigma(x) - \sigma(0) \approx \sigma^{(p)}(0)\, x^p / p!$.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import factorial

from ._functions import called, described, function_at
from .errors import InputError, unknown_name

Function = Callable[[Any], Any]
Activation = str | Function


def x_tanh(x: Any) -> Any:
    r"""$x \tanh x = x^2 - x^4/3 + ...$, of multiplicity 2."""
    return x * jnp.tanh(x)


def x2_tanh(x: Any) -> Any:
    r"""$x^2 \tanh x = x^3 - x^5/3 + ...$, of multiplicity 3."""
    return x * x * jnp.tanh(x)


def linear(x: Any) -> Any:
    """X itself, of multiplicity 1: a linear network."""
    return x


def quadratic(x: Any) -> Any:
    r"""$x^2$, of multiplicity 2."""
    return x * x


ACTIVATIONS: dict[str, Function] = {
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "silu": jax.nn.silu,
    "swish": jax.nn.swish,  # another name of silu
    "linear": linear,
    "quadratic": quadratic,
    "x_tanh": x_tanh,
    "x2_tanh": x2_tanh,
}
LABELS = {"x_tanh": "x tanh x", "x2_tanh": "x² tanh x", "leaky_relu": "leaky relu", "quadratic": "x²"}
HIGHEST_ORDER = 8
FAR, NEAR = np.array([-1.0, -0.3, 0.3, 1.0]), np.geomspace(1e-1, 1e-6, 26)  # where a function is looked at


def get_activation(activation: Activation) -> Function:
    """The function of a name, or of ``module:function``; a function is returned as it is.

    >>> get_activation("tanh") is jnp.tanh
    True
    """
    if callable(activation):
        return activation
    if ":" in activation:
        return function_at(activation)
    if activation not in ACTIVATIONS:
        raise unknown_name("activation", activation, ACTIVATIONS)
    return ACTIVATIONS[activation]


@lru_cache(maxsize=256)
def check_activation(activation: Activation) -> None:
    """Refuse a function of the user that gives something else for many numbers than for each of them alone."""
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return
    function, x = get_activation(activation), jnp.asarray([[-1.0, 0.3, 0.7], [2.0, -0.4, -3.0]])
    what = f"the activation {label(activation)!r} must be a function of one number written with jax.numpy: it"
    together = np.asarray(called(what, jax.jit(function), x))
    alone = np.asarray(called(f"{what}, given one,", jax.jit(jax.vmap(jax.vmap(function))), x))
    if together.shape != x.shape:
        raise InputError(f"{what} gives an array of shape {together.shape} for one of {x.shape}")
    if not np.allclose(together, alone, rtol=1e-4, atol=1e-6, equal_nan=True):
        raise InputError(f"{what} gives a number that depends on the others beside it (on other units or samples)")


def label(activation: Activation) -> str:
    """How an activation is written in a picture.

    >>> label("x2_tanh")
    'x² tanh x'
    """
    if callable(activation):
        return getattr(activation, "__name__", "user function")
    return LABELS.get(activation, activation)


def describe_activations(activations: Iterable[Activation]) -> str:
    """The activations of some layers in words; a function of the user is called by its name.

    >>> describe_activations(("x_tanh", "x_tanh")), describe_activations(("tanh", x_tanh))
    ('x tanh x', 'activations by layer (tanh, own function x_tanh)')
    """
    phrases = [_describe(activation) for activation in activations]
    return phrases[0] if len(set(phrases)) == 1 else f"activations by layer ({', '.join(phrases)})"


def _describe(activation: Activation) -> str:
    if not callable(activation):
        return label(activation)
    return described("own function", activation)


def derivatives_at_zero(activation: Activation, orders: int) -> list[float]:
    """f(0), f'(0), ..., f^(orders)(0) by nested automatic differentiation in float64.

    >>> derivatives_at_zero("x_tanh", 2)
    [0.0, 0.0, 2.0]
    """
    return _derivatives(activation).up_to(orders)


class _Derivatives:
    """The derivatives of one activation at 0, compiled together and kept, as many as were needed so far."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.values: list[float] = []

    def up_to(self, orders: int) -> list[float]:
        if len(self.values) <= orders:
            with jax.enable_x64(True):
                derivatives = jax.jit(self._every, static_argnums=1)(jnp.zeros(()), orders)
            for order, value in enumerate(map(np.asarray, derivatives)):
                if value.shape != () or not np.isfinite(value):
                    name = label(self.activation)
                    raise InputError(f"derivative {order} of the activation {name!r} at 0 is {value}")
            self.values = [float(value) for value in derivatives]
        return self.values[: orders + 1]

    def _every(self, x: Any, orders: int) -> list[Any]:
        derivative, values = get_activation(self.activation), []
        for order in range(orders + 1):
            try:
                values.append(derivative(x))
            except Exception as error:
                raise InputError(
                    f"the activation {label(self.activation)!r} must be a function of one number written with "
                    f"jax.numpy: derivative {order} at 0 failed with {type(error).__name__}"
                ) from error
            derivative = _differentiate(derivative)
        return values


@lru_cache(maxsize=256)
def _derivatives(activation: Activation) -> _Derivatives:
    return _Derivatives(activation)


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
    derivatives = np.array(derivatives_at_zero(activation, 3))
    values = _values(activation, np.concatenate([FAR, NEAR, -NEAR]))
    scale = np.abs(values[: len(FAR)] - derivatives[0]).max()
    for highest in (1, 3, HIGHEST_ORDER):  # few derivatives suffice for most, and many take long
        derivatives = np.array(derivatives_at_zero(activation, highest + 2))
        present = np.abs(derivatives) > 1e-10 * scale * factorial(np.arange(len(derivatives)))
        if present[1 : highest + 1].any():
            p = int(present[1:].argmax()) + 1
            return p if _taylor_holds(derivatives[: p + 3], values[len(FAR) :].reshape(2, -1)) else None
    return None


def _values(activation: Activation, x: np.ndarray) -> np.ndarray:
    """The activation at some points, in float64."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(get_activation(activation)))(jnp.asarray(x)))


def _taylor_holds(derivatives: np.ndarray, values: np.ndarray) -> bool:
    """Whether f is its Taylor polynomial to 1% of the p-th term at two successive small h, on both sides of 0.

    ``derivatives`` are those up to the order p + 2, ``values`` f(h) and f(-h) for h in NEAR.
    """
    orders, p = np.arange(len(derivatives)), len(derivatives) - 3
    terms = derivatives / factorial(orders)
    error = np.abs(values - np.stack([h[:, None] ** orders @ terms for h in (NEAR, -NEAR)]))
    worst = (error / np.abs(terms[p] * NEAR**p)).max(axis=0)
    return bool(np.maximum(worst[1:], worst[:-1]).min() < 0.01)
