r"""How the predicted line turns while the residual is learned (p = 1, one output).

At leading order all neurons $z_j = (w_j, a_j)$ obey one linear equation, $\dot z = K(t) z$ with

$$K = c \begin{pmatrix} 0 & g \\ g^T & 0 \end{pmatrix}, \quad g(t) = \frac1n \sum_i r_i(t)\, x_i, \quad
r_i = y_i - c\, \beta \cdot x_i, \quad \beta = \sum_j a_j w_j .$$

So $z_j(t) = \Phi(t) z_j(0)$ with one matrix for all, and $\beta$ is a block of $\Phi S \Phi^T$,
$S = \sum_j z_j z_j^T$ at time 0: the whole initial stage is an equation for D + 1 by D + 1 numbers, whatever the
width. While r stands still the line is that of g; where 1% of the loss is a large part of what a straight line can
learn, it turns noticeably before the loss has moved by that much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from .._display import Shown
from ..activations import Activation, derivatives_at_zero, label
from ..errors import InputError
from ._leading import as_neurons, as_single_output, coefficient
from ._tensor import unit

PATIENCE = 200  # of the time in which weights grow e-fold


@dataclass(frozen=True, eq=False)
class MovingLine(Shown):
    """The leading order at the moment when the loss has fallen to a share of its first value.

    Attributes:
        direction: the line, unit vector.
        weights: every neuron's input weight there.
        outputs: every neuron's output weight there.
        time: of gradient flow, with the mean loss.
        turned: angle, in radians, from the line predicted at time 0.
    """

    direction: Float[np.ndarray, " inputs"]
    weights: Float[np.ndarray, "units inputs"]
    outputs: Float[np.ndarray, " units"]
    time: float
    turned: float


def moving_line(
    x: ArrayLike, y: ArrayLike, weights: ArrayLike, outputs: ArrayLike, activation: Activation, *, ratio: float = 0.99
) -> MovingLine:
    r"""Follow the leading order, the residual moving, until the loss is at a share of its first value.

    Args:
        x, weights, outputs: as for ``fates``, the weights initial ones.
        y: targets, one for each sample.
        activation: of multiplicity 1 and zero at 0.
        ratio: the share L/L0 of half the mean squared error.

    >>> x, y = np.eye(2), np.array([1.0, 1.0])  # both inputs are learned alike, so that the line stays that of g
    >>> moved = moving_line(x, y, [[0.01, 0.01], [-0.02, -0.02]], [0.01, -0.01], "tanh")
    >>> moved.direction.round(6), round(moved.turned, 6)
    (array([0.707107, 0.707107]), 0.0)
    """
    points, targets = as_single_output(x, y)
    w, a = as_neurons(weights, outputs, points.shape[1])
    p, c = coefficient(activation)
    if p != 1 or derivatives_at_zero(activation, 0)[0] != 0:
        raise InputError(
            f"the moving line is for activations of multiplicity 1 that are 0 at 0, not {label(activation)}"
        )
    if not 0 < ratio < 1:
        raise InputError(f"ratio is a share of the loss between 0 and 1, not {ratio!r}")
    size, start = points.shape[1] + 1, np.concatenate([w, a[:, None]], axis=1)
    moment = start.T @ start

    def residual(flat: np.ndarray) -> np.ndarray:
        phi = flat.reshape(size, size)
        return targets - c * points @ (phi @ moment @ phi[-1])[:-1]

    def move(_: float, flat: np.ndarray) -> np.ndarray:
        g = c * residual(flat) @ points / len(points)
        phi = flat.reshape(size, size)
        return np.concatenate([g[:, None] * phi[-1:], (g @ phi[:-1])[None]]).ravel()

    first = np.mean(residual(np.eye(size).ravel()) ** 2)

    def above(_: float, flat: np.ndarray) -> float:
        return float(np.mean(residual(flat) ** 2) / first - ratio)

    above.terminal = True  # type: ignore[attr-defined]
    g = residual(np.eye(size).ravel()) @ points / len(points)
    rate = abs(c) * np.linalg.norm(g)
    if not rate > 0:
        raise InputError("the mean of residual times input is zero: there is no line at multiplicity 1")
    path = solve_ivp(move, (0, PATIENCE / rate), np.eye(size).ravel(), "DOP853", events=above, rtol=1e-9, atol=1e-12)
    if not len(path.t_events[0]):
        raise InputError(f"a straight line cannot bring the loss of these data down to {ratio} of its first value")
    phi = path.y[:, -1].reshape(size, size)
    after = start @ phi.T
    line = np.linalg.svd(unit(after[:, :-1]))[2][0]
    line *= -1.0 if line @ g < 0 else 1.0
    turned = float(np.arccos(np.clip(line @ g / np.linalg.norm(g), -1, 1)))
    return MovingLine(line, after[:, :-1], after[:, -1], float(path.t[-1]), turned)
