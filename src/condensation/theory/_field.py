r"""The direction field: how fast, and where to, a neuron of input weight $\omega$ moves at output weight 1.

Gradient flow moves neuron j by $\dot w_j = a_j\, \Omega(w_j)$ with the field that all neurons share (FC, Sec. 4.4)

$$\Omega(\omega) = \frac1n \sum_i r_i \sigma'(\omega \cdot x_i)\, x_i \;\approx\; c\, T \omega^{p-1},$$

r the residuals and the right-hand side its leading order. In amplitude and orientation, w = r u, this is
$\dot r = u \cdot \dot w$ and $\dot u = \mathcal P w / r$ (eq. 8), where $\mathcal P w = \dot w - (\dot w \cdot u) u$ is
the part of the velocity that turns the neuron. Directions that stay are those where it vanishes at leading order
(eq. 9).
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..activations import Activation
from ..errors import InputError, unknown_name
from ..measure._similarity import as_floats, norms
from ._leading import Weights, as_neurons, as_single_output, coefficient, evaluate
from ._tensor import Tensor

Order = Literal["exact", "leading"]


def field(
    omega: ArrayLike, x: ArrayLike, residual: ArrayLike, activation: Activation, *, order: Order = "exact"
) -> Float[np.ndarray, "points inputs"]:
    r"""The velocity of an input weight $\omega$ at output weight 1.

    Args:
        omega: where, points x inputs (the bias last), for instance a grid or the neurons themselves.
        x: inputs, samples x inputs; with a bias the last input is 1.
        residual: $r_i = y_i - f(x_i)$, one for each sample; of several outputs ``residual @ v``, v the output weight.
        activation: of the hidden layer.
        order: ``"exact"`` for $\frac1n \sum_i r_i \sigma'(\omega \cdot x_i) x_i$, ``"leading"`` for $c\,T\omega^{p-1}$.

    >>> x, r = np.array([[1.0, 1.0], [2.0, 1.0]]), np.array([2.0, 4.0])
    >>> field([[0.5, 0.0]], x, r, "x_tanh", order="leading")  # c = 2: sum r_i (omega.x_i) x_i
    array([[9., 5.]])
    """
    points, r = as_single_output(x, residual)
    w = as_floats("omega", omega).astype(float)
    if w.ndim != 2 or w.shape[1] != points.shape[1]:
        raise InputError(f"omega must be points x {points.shape[1]} inputs, not of shape {w.shape}")
    if order not in get_args(Order):
        raise unknown_name("order", order, get_args(Order))
    if order == "exact":
        return evaluate(activation, w @ points.T, order=1) * r / len(r) @ points
    p, c = coefficient(activation)
    return c * Tensor(points, r[:, None] / len(r), p).field(w)


def velocity(
    weights: ArrayLike,
    outputs: ArrayLike,
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    *,
    order: Order = "exact",
) -> Weights:
    r"""$\dot w_j = a_j\, \Omega(w_j)$ of every neuron: minus the gradient of the loss $\frac1{2n} \sum_i r_i^2$."""
    w, a = as_neurons(weights, outputs, as_single_output(x, residual)[0].shape[1])
    return a[:, None] * field(w, x, residual, activation, order=order)


def project(velocity: Weights, weights: Weights) -> Weights:
    r"""The part $v - (v \cdot u) u$ of a velocity that turns the neuron, u = w/|w|."""
    u = weights / _amplitudes(weights)[:, None]
    return velocity - np.einsum("jd,jd->j", velocity, u)[:, None] * u


def polar_velocity(
    weights: ArrayLike,
    outputs: ArrayLike,
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    *,
    order: Order = "exact",
) -> tuple[Float[np.ndarray, " units"], Weights]:
    r"""How fast the amplitude and the orientation of every neuron change: $\dot r = u \cdot \dot w$, $\dot u$ (eq. 8).

    >>> growing, turning = polar_velocity([[0.0, 2.0]], [3.0], np.eye(2), [2.0, 4.0], "tanh", order="leading")
    >>> growing, turning
    (array([6.]), array([[1.5, 0. ]]))
    """
    moving, w = velocity(weights, outputs, x, residual, activation, order=order), np.asarray(weights, float)
    r = _amplitudes(w)
    return np.einsum("jd,jd->j", moving, w) / r, project(moving, w) / r[:, None]


def _amplitudes(weights: np.ndarray) -> np.ndarray:
    r = norms(weights)
    if not (r > 0).all():
        raise InputError(f"{(r == 0).sum()} of {len(r)} units have norm zero and no orientation, first {r.argmin()}")
    return r
