r"""The network as small weights see it: a polynomial of one degree.

An activation of multiplicity p is $\sigma(z) = \sigma(0) + \frac cp z^p + O(z^q)$ near 0, with
$c = \sigma^{(p)}(0)/(p-1)!$ and q the order of its next non-zero derivative. In the initial stage the network
$f(x) = \sum_j a_j \sigma(w_j \cdot x)$ is therefore

$$f(x) \approx \sigma(0) \sum_j a_j + \frac cp \sum_j a_j (w_j \cdot x)^p,$$

with a relative error that shrinks like $\max |w \cdot x|^{q-p}$. An output bias would be a constant more.
"""

from functools import lru_cache
from math import factorial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._precision import precision
from ..activations import Activation, derivatives_at_zero, get_activation, label, multiplicity
from ..errors import InputError
from ..measure._similarity import as_floats
from ._tensor import Samples, as_samples

LEAST_LENGTH = 1024  # of the arrays that an activation is compiled for
Weights = Float[np.ndarray, "units inputs"]


@lru_cache(maxsize=64)
def coefficient(activation: Activation) -> tuple[int, float]:
    r"""Multiplicity p and $c = \sigma^{(p)}(0)/(p-1)!$, so that $\sigma'(z) \approx c z^{p-1}$ near 0.

    >>> coefficient("tanh"), coefficient("x2_tanh")
    ((1, 1.0), (3, 3.0))
    """
    p = multiplicity(activation)
    if p is None:
        raise InputError(
            f"the multiplicity of {label(activation)} is undefined, so it has no leading order; for relu and leaky "
            "relu, which are homogeneous, use extremal_directions, and for others an activation with a Taylor series"
        )
    return p, derivatives_at_zero(activation, p)[p] / factorial(p - 1)


def evaluate(activation: Activation, z: Float[np.ndarray, "*shape"], order: Literal[0, 1] = 0) -> np.ndarray:
    r"""$\sigma(z)$, or $\sigma'(z)$ with ``order=1``, entry by entry in float64."""
    flat = np.ravel(np.asarray(z, float))
    length = max(LEAST_LENGTH, 1 << max(len(flat) - 1, 0).bit_length())  # few lengths, so that few are compiled
    with precision("float64"):
        values = _compiled(activation, order)(np.pad(flat, (0, length - len(flat))))
        return np.asarray(values)[: len(flat)].reshape(np.shape(z))


@lru_cache(maxsize=256)
def _compiled(activation: Activation, order: int) -> Any:
    function = get_activation(activation)
    return jax.jit((lambda at: jax.jvp(function, (at,), (jnp.ones_like(at),))[1]) if order else function)


def as_neurons(
    weights: ArrayLike, outputs: ArrayLike, inputs: int, count: int = 1
) -> tuple[Weights, Float[np.ndarray, "units *outputs"]]:
    """Input weights as units x inputs, and an output weight of each unit, or ``count`` of them; refused if unfit."""
    w, a = as_floats("weights", weights).astype(float), as_floats("output weights", outputs).astype(float)
    if w.ndim != 2 or w.shape[1] != inputs or not len(w):
        raise InputError(f"weights must be units x {inputs} inputs (the bias last), not of shape {w.shape}")
    if count == 1 and (a.size != len(w) or a.shape not in {(len(w),), (1, len(w)), (len(w), 1)}):
        raise InputError(f"one output weight for each of {len(w)} units is needed, not an array of shape {a.shape}")
    if count > 1 and a.shape != (len(w), count):
        raise InputError(f"output weights must be {len(w)} units x {count} outputs, not of shape {a.shape}")
    finite = np.isfinite(w).all(axis=1) & np.isfinite(a.reshape(len(w), -1)).all(axis=1)
    if not finite.all():
        raise InputError(f"{(~finite).sum()} of {len(w)} units hold NaN or Inf, first unit {finite.argmin()}")
    return w, a.ravel() if count == 1 else a


def as_single_output(x: ArrayLike, residual: ArrayLike) -> tuple[Samples, Float[np.ndarray, " samples"]]:
    """Inputs as samples x inputs and one residual for each; several outputs are to be contracted by the caller."""
    points, residuals = as_samples(x, residual)
    if residuals.shape[1] > 1:
        raise InputError(
            f"one residual for each sample is needed, not {residuals.shape[1]}; pass residual @ v with the direction v "
            "of a neuron's output weights"
        )
    return points, residuals[:, 0]
