r"""Winner takes all: who grows first, and when the loss moves.

For p >= 2 a neuron's leading-order amplitude is infinite after a finite time, which depends on its initial weights:
$1/|a c F|$ for p = 2, on its line and at balance. Gradient flow therefore hands the norm to the few neurons whose time
comes first, however small the initial weights, while the others have hardly moved. With a far above w and p = 2 all
directions turn at constant rates, |a c| times a gap of eigenvalues, before anything grows: then the directions
condense, and only the norm concentrates. For p = 1 all neurons grow at the one rate |c g|.

The loss falls by what the neurons gain: $L_0 - L = \sum_j V(w_j, a_j)$ with $V = \frac cp a\, T w^p$, but for terms of
second order in the output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._display import Shown
from .._threads import narrow_products
from ..activations import Activation
from ..errors import InputError
from ..measure import participation_ratio
from ._fate import dynamics_of, fates
from ._leading import as_neurons, as_single_output
from ._paths import NOWHERE, ON_ITS_WAY, NeuronDynamics, NeuronStates, follow_neurons

HALVINGS = 12  # of the time in which the gain grows from a neuron's part of what is needed to all of it


@dataclass(frozen=True, eq=False)
class Growth(Shown):
    r"""Who has grown when the loss, $L_0 - \sum_j V(w_j, a_j)$ at leading order, begins to move.

    Attributes:
        blow_up: the time at which each neuron's amplitude would be infinite.
        winner: the neuron with the largest amplitude when the loss moves.
        loss_time: the time at which the loss has come down to the given share of its first value.
        amplitudes: |w| of each neuron at that time.
        participation: participation ratio of these amplitudes: how many neurons share the norm.
    """

    blow_up: Float[np.ndarray, " units"]
    winner: int
    loss_time: float
    amplitudes: Float[np.ndarray, " units"]
    participation: float


@narrow_products
def predict_growth(
    weights: ArrayLike,
    outputs: ArrayLike,
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    *,
    loss_ratio: float = 0.99,
) -> Growth:
    """Who has grown, and by when, as the loss comes down to ``loss_ratio`` of its first value.

    For the other arguments see ``fates``.

    >>> x, r = np.eye(2), np.array([2.0, 0.0])  # V = 2 a^3 and a = 0.1 / (1 - t/5) at balance, L_0 = 1
    >>> growth = predict_growth([[np.sqrt(2) / 10, 0.0], [0.01, 0.0]], [0.1, 0.01], x, r, "x_tanh")
    >>> growth.winner, growth.blow_up[0].round(12), float(round(growth.loss_time, 3))
    (0, np.float64(5.0), 2.076)
    """
    if not 0 < loss_ratio < 1:
        raise InputError(f"the loss ratio is a share between 0 and 1, not {loss_ratio!r}")
    points, r = as_single_output(x, residual)
    dynamics = dynamics_of(points, r, activation)
    start = NeuronStates.begin(dynamics, *as_neurons(weights, outputs, points.shape[1]))
    needed = float(np.log((1 - loss_ratio) * (np.asarray(residual, float) ** 2).mean() / 2))
    early, late = _bracket(dynamics, start, needed)
    end, _ = follow_neurons(dynamics, start, until=early)
    for _ in range(HALVINGS):
        middle = (early + late) / 2
        there, _ = follow_neurons(dynamics, end, until=middle)
        if np.logaddexp.reduce(_log_gain(there, dynamics.p)) >= needed:
            late = middle
        else:
            early, end = middle, there
    amplitudes, blow_up = end.amplitude * np.exp(end.log_size), np.full(len(end.z), np.inf)
    if dynamics.p > 1:
        blow_up = fates(weights, outputs, x, residual, activation, perturbations=0).blow_up
    return Growth(blow_up, int(amplitudes.argmax()), late, amplitudes, participation_ratio(amplitudes[:, None]))


def _log_gain(states: NeuronStates, p: int) -> np.ndarray:
    """Logarithm of V of each neuron, minus infinity where it is not positive."""
    gain = states.z[:, -1] * states.velocity[:, -1]
    return np.where(gain > 0, np.log(np.maximum(gain, 1e-300)) + (p + 1) * states.log_size, -np.inf)


def _bracket(dynamics: NeuronDynamics, start: NeuronStates, needed: float) -> tuple[float, float]:
    """A time at which no neuron has gained its part of what is needed, and one at which some neuron has gained all."""
    part, early, late = needed - np.log(len(start.z)), np.inf, np.inf

    def stop(active: np.ndarray, before: NeuronStates, now: NeuronStates) -> np.ndarray:
        nonlocal early, late
        gain = _log_gain(now, dynamics.p)
        early = min(early, before.time[gain >= part].min(initial=np.inf))
        late = min(late, now.time[gain >= needed].min(initial=np.inf))
        return np.where((gain >= needed) | (now.time > late), NOWHERE, ON_ITS_WAY)

    follow_neurons(dynamics, start, stop)
    if not np.isfinite(late):
        raise InputError("at leading order no neuron lowers the loss that far: nothing grows from these weights")
    return early, late
