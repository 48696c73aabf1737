"""Where neurons end under gradient flow, as predicted, and how that compares with where they were trained to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from .._display import Shown, short_number
from .._phrases import plural
from ..errors import InputError
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import as_weights
from ._cube_fate import CubeFates
from ._destinations import count_fates, fates_picture
from ._directions import Directions
from ._tensor import unit


@dataclass(frozen=True, eq=False)
class Fates(Shown):
    r"""Where neurons under $\dot w = a c\, T w^{p-1}$, $\dot a = \frac cp T w^p$ end, one entry for each.

    Attributes:
        directions: the stationary directions that ``lines`` counts.
        lines: the number of the neuron's line, or -1 for one that comes to none: its amplitude shrinks, its field is
            zero, no line attracts neurons of its sign, or (relu) it is on no line yet, within 0.1 radians, when the
            fastest neurons have grown e^40-fold.
        signs: +1 where it ends along the line's direction, -1 where against it, 0 where it comes to none.
        orientations: the unit vector in which it ends, on its line or in its space; zero where there is none.
        flips: whether its output weight changes sign on the way.
        times: time of gradient flow until its direction is within the angle of its end, or it has grown e^40-fold.
        blow_up: time at which its leading-order amplitude is infinite; infinity for p = 1.
        confidence: share of slightly changed initial weights with the same fate: low near the boundary of two fates.
        drift: change of the conserved $|w|^2 - p a^2$ on the way, relative to the last $|w|^2 + a^2$.
        spaces: the number of the attracting space (``directions.spaces``) that a neuron without a line comes to, or -1.
    """

    directions: Directions
    lines: Int[np.ndarray, " units"]
    signs: Int[np.ndarray, " units"]
    orientations: Float[np.ndarray, "units inputs"]
    flips: Bool[np.ndarray, " units"]
    times: Float[np.ndarray, " units"]
    blow_up: Float[np.ndarray, " units"]
    confidence: Float[np.ndarray, " units"]
    drift: Float[np.ndarray, " units"]
    spaces: Int[np.ndarray, " units"]

    def _title(self) -> str:
        return f"Fates of {plural(len(self.lines), 'neuron')}"

    def _facts(self) -> dict[str, str]:
        known = self.times[np.isfinite(self.times)]
        return count_fates(self.lines, self.signs, self.flips) | {
            "time": f"median {short_number(float(np.median(known)))}" if len(known) else "",
            "confidence": f"least {short_number(self.confidence.min())}" if len(self.confidence) else "",
        }

    def _picture(self) -> str:
        return fates_picture(self.lines, self.directions)


@dataclass(frozen=True)
class FateAgreement:
    """How many neurons ended as predicted; those predicted to come to no line are left out.

    Attributes:
        lines: share of neurons within the threshold of the predicted line, |cos| >= threshold.
        orientations: share of neurons within the threshold of the predicted orientation, cos >= threshold.
        nearest: share of neurons to which, of all orientations that attract, the predicted one is nearest, however
            near: for p = 1 the share on the predicted side.
        cosine: median |cos| to the predicted line.
        units: number of neurons with a prediction.
    """

    lines: float
    orientations: float
    nearest: float
    cosine: float
    units: int


def compare_fates(
    predicted: Fates | CubeFates, weights: ArrayLike, *, threshold: float = LEAST_COSINE
) -> FateAgreement:
    """Compare predicted fates with trained input weights, units x inputs.

    >>> from condensation.theory import fates
    >>> two = fates([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], np.eye(2), [2.0, 0.0], "tanh")
    >>> compare_fates(two, [[5.0, 0.0], [-3.0, 0.0]])
    FateAgreement(lines=1.0, orientations=0.5, nearest=0.5, cosine=1.0, units=2)
    """
    w = as_weights(weights)
    if w.shape != predicted.orientations.shape:
        raise InputError(f"weights of shape {predicted.orientations.shape} are needed, not of {w.shape}")
    counted = predicted.lines >= 0
    if not counted.any():
        raise InputError("no neuron was predicted to come to a line: there is nothing to compare")
    u, predicted_u = unit(w.astype(float))[counted], predicted.orientations[counted]
    cosine = np.einsum("jd,jd->j", u, predicted_u)
    lines = unit(predicted.directions.directions[predicted.directions.attracts])
    best = u @ lines.T if predicted.directions.oriented else np.abs(u @ lines.T)
    return FateAgreement(
        lines=float((np.abs(cosine) >= threshold).mean()),
        orientations=float((cosine >= threshold).mean()),
        nearest=float((cosine >= best.max(axis=1) - 1e-12).mean()),
        cosine=float(np.median(np.abs(cosine))),
        units=int(counted.sum()),
    )
