r"""Activations that are not zero at 0: the network learns a constant first.

With $\sigma(0) \ne 0$ (sigmoid, softplus) the output has a part $\sigma(0) \sum_j a_j$ that the input does not change
and is learned at the rate $m \sigma(0)^2$, the lines at $|c| |g|$. Where the first is far above the second,

1. all output weights shift by the same amount, $\sum_j a_j \to \bar y / \sigma(0)$, and the residual becomes
   $y - \bar y$, and
2. from then on the mean of the output weights is held: for p = 1, with $g = \frac1n \sum_i (y_i - \bar y) x_i$, only
   the deviations from the mean neuron grow exponentially, while the mean neuron moves along g at constant speed
   $\bar a c |g|$. As long as that is ahead, all neurons have one orientation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._display import Shown
from ..activations import Activation, derivatives_at_zero
from ..errors import check_whole
from ._leading import coefficient
from ._tensor import as_samples

FIRST = 3.0  # ratio of the rates from which on the lines are those of y - mean(y), as measured on FC Fig. 3's data


@dataclass(frozen=True, eq=False)
class EffectiveResidual(Shown):
    r"""What the neurons see once a constant, if any, is learned.

    Attributes:
        residual: $y - \bar y$ where the constant is learned first, else y.
        learned_first: whether it is.
        ratio: of the rates, $m \sigma(0)^2 / (|c| |g|)$; infinite for p >= 2, where small weights are ever slower.
        sum_of_outputs: $\bar y / \sigma(0)$, what the output weights then add up to; NaN where no constant is learned.
        note: the decision in a sentence.
    """

    residual: Float[np.ndarray, "samples *outputs"]
    learned_first: bool
    ratio: float
    sum_of_outputs: float | Float[np.ndarray, " outputs"]
    note: str

    def outputs(self, outputs: ArrayLike) -> Float[np.ndarray, "units *outputs"]:
        """The output weights once the constant is learned: all shifted by the same amount."""
        a = np.asarray(outputs, float)
        a = a.ravel() if self.residual.ndim == 1 else a
        return a + (self.sum_of_outputs - a.sum(axis=0)) / len(a) if self.learned_first else a


def effective_residual(x: ArrayLike, y: ArrayLike, activation: Activation, width: int) -> EffectiveResidual:
    r"""The residual with which to predict: $y - \bar y$ where a constant is learned before any line is, else y.

    Args:
        x: inputs, samples x inputs; with a bias the last input is 1.
        y: targets, or residuals at the initial weights, one for each sample or samples x outputs.
        activation: of the hidden layer.
        width: number of hidden units m.

    >>> x, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])  # g = 3.5: 100/4 against 3.5/4
    >>> effective = effective_residual(x, y, "sigmoid", 100)
    >>> effective.residual, effective.outputs(np.zeros(100))[0].round(6)
    (array([-1.,  1.]), np.float64(0.04))
    >>> print(effective.note)
    the constant is learned first, 29 times as fast as the lines: they are those of y - mean(y)
    """
    points, targets = as_samples(x, y)
    check_whole("width", width)
    targets = targets[:, 0] if targets.shape[1] == 1 else targets
    constant, mean = derivatives_at_zero(activation, 0)[0], targets.mean(axis=0)
    if not constant:
        note = "the activation is zero at 0: there is no constant to learn"
        return EffectiveResidual(targets, False, 0.0, np.nan, note)
    p, c = coefficient(activation)
    strongest = np.linalg.norm(targets.T @ points, 2) if targets.ndim == 2 else np.linalg.norm(targets @ points)
    lines = abs(c) * strongest / len(targets) if p == 1 else 0.0
    ratio = float(width * constant**2 / lines) if lines else np.inf
    if ratio < FIRST:
        speed = "more slowly than" if ratio < 1 / FIRST else "about as fast as"
        note = f"a constant is learned {speed} the lines ({ratio:.2g} times): they are first those of y"
        return EffectiveResidual(targets, False, ratio, np.nan, note)
    note = f"the constant is learned first, {ratio:.0f} times as fast as the lines: they are those of y - mean(y)"
    return EffectiveResidual(targets - mean, True, ratio, mean / constant, note)
