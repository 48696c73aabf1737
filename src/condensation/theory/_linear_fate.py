r"""The fate of each neuron in closed form, for activations of multiplicity 1.

With $g = \frac1n \sum_i r_i x_i$, $v = w \cdot g/|g|$, $s = \mathrm{sign}(c)$ and $\kappa = |c| |g|$, the equations
$\dot v = s \kappa a$, $\dot a = s \kappa v$ give

$$v \pm s a = (v_0 \pm s a_0)\, e^{\pm \kappa t}, \qquad w - v\,g/|g| = \text{const},$$

so every neuron comes to the line of g, along it if $v_0 + s a_0 > 0$ and against it if not. Several outputs have the
matrix $G = \frac1n \sum_i r_i x_i^T$ in place of g: the same holds along each of its singular vectors, and the first
one wins.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..activations import Activation, derivatives_at_zero, label, multiplicity
from ..errors import InputError
from ._directions import Directions, stationary_directions
from ._ends import Fates
from ._leading import as_neurons, coefficient
from ._paths import NOWHERE
from ._tensor import as_samples, unit


def linear_fates(
    w: np.ndarray, a: np.ndarray, directions: Directions, c: float, constant: float, angle: float, noise: float
) -> Fates:
    r"""The closed form for p = 1; a constant drift of a, $\dot a = s\kappa v + d$, only shifts v by $d/(s\kappa)$."""
    g, s, rate = directions.directions[0], np.sign(c), abs(c) * directions.values[0]
    shift = constant / (s * rate)
    v = w @ g
    rises, falls = (v + shift + s * a) / 2, (v + shift - s * a) / 2
    side = np.where(rises < 0, -1, 1)
    across = np.linalg.norm(w - v[:, None] * g, axis=1)
    # the later of the two times at which |v| = across / tan(angle); before the first one v is not growing
    need, grow, fall = across / np.tan(angle) + side * shift, np.abs(rises), side * falls
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = (need + np.sqrt(np.maximum(need**2 - 4 * grow * fall, 0))) / (2 * grow)
    factor = np.where(need**2 < 4 * grow * fall, 1, factor)
    lost = rises == 0
    spread = noise * np.sqrt((w**2).mean(axis=1) + a**2)
    signs = np.where(lost, 0, side)
    return Fates(
        directions=directions,
        lines=np.where(lost, NOWHERE, 0),
        signs=signs,
        orientations=signs[:, None] * g,
        flips=~lost & (a * s * side < 0),
        times=np.where(lost, np.inf, np.log(np.maximum(factor, 1)) / rate),
        blow_up=np.full(len(w), np.inf),
        confidence=ndtr(2 * grow / np.maximum(spread, 1e-300)),
        drift=np.zeros(len(w)),
        spaces=np.full(len(w), NOWHERE),
    )


def output_fates(
    weights: ArrayLike, outputs: ArrayLike, x: ArrayLike, residual: ArrayLike, activation: Activation,
    directions: Directions | None, angle: float, noise: float,
) -> Fates:  # fmt: skip
    r"""The closed form for p = 1 and several outputs: $w \cdot u_k \pm s\, a \cdot v_k$ go as $e^{\pm |c| F_k t}$."""
    points, r = as_samples(x, residual)
    w, a = as_neurons(weights, outputs, points.shape[1], r.shape[1])
    if multiplicity(activation) != 1 or derivatives_at_zero(activation, 0)[0]:
        raise InputError(
            "with several outputs the fates of neurons are known for activations of multiplicity 1 that are zero at 0: "
            f"{label(activation)} is none"
        )
    _, c = coefficient(activation)
    directions = stationary_directions(points, r, 1) if directions is None else directions
    directions.check_network(1, points.shape[1], r.shape[1])
    s, u, v, values = np.sign(c), directions.directions, directions.outputs, directions.values
    assert v is not None
    along, back = w @ u.T, s * a @ v.T
    rises, falls = (
        (along + back) / 2,
        (along - back) / 2,
    )  # units x lines: w = sum of rises e^(rate t) + falls e^(-rate t)
    rest, rates = w - along @ u, abs(c) * values
    top = values > values[0] * (1 - 1e-9)
    grown = np.where(top, rises, 0) @ u
    lost = np.asarray(~grown.any(axis=1))
    space = 0 if top.sum() > 1 else NOWHERE

    def angles(time: np.ndarray) -> np.ndarray:
        """The angle between each neuron at a time of its own and its end."""
        fade = np.exp(-np.outer(time, rates[:1]) + np.outer(time, rates))  # relative to the growth of the first
        now = (rises * fade + falls * np.exp(-np.outer(time, rates + rates[0]))) @ u
        now += rest * np.exp(-rates[0] * time)[:, None]
        return np.arccos(np.clip(np.einsum("jd,jd->j", unit(now), unit(grown)), -1, 1))

    gap = rates[0] - (rates[~top][0] if (~top).any() else 0)
    times = _last_time(angles, angle, 60 / gap, len(w))
    spread = noise * np.sqrt((w**2).mean(axis=1) + (a**2).mean(axis=1))
    signs = np.where(lost | (space >= 0), 0, np.where(rises[:, 0] < 0, -1, 1))
    return Fates(
        directions=directions,
        lines=np.where(signs == 0, NOWHERE, 0),
        signs=signs,
        orientations=np.where(lost[:, None], 0, unit(grown)),
        flips=~lost & (s * (a @ v[0]) * rises[:, 0] < 0),
        times=np.where(lost, np.inf, times),
        blow_up=np.full(len(w), np.inf),
        confidence=ndtr(2 * np.linalg.norm(grown, axis=1) / np.maximum(spread, 1e-300)),
        drift=np.zeros(len(w)),
        spaces=np.where(lost, NOWHERE, space),
    )


def _last_time(angles: Callable[[np.ndarray], np.ndarray], angle: float, longest: float, units: int) -> np.ndarray:
    """The time of each unit after which its angle stays below a bound, looked for up to ``longest``."""
    grid = np.concatenate([[0], np.geomspace(1e-4 * longest, longest, 200)])
    above = np.array([angles(np.full(units, time)) > angle for time in grid])
    last = len(grid) - 1 - above[::-1].argmax(axis=0)  # of the grid's times above the bound
    low, high = grid[last], grid[np.minimum(last + 1, len(grid) - 1)]
    for _ in range(40):
        middle = (low + high) / 2
        too_far = angles(middle) > angle
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return np.where(above.any(axis=0), np.where(above[-1], np.inf, high), 0.0)
