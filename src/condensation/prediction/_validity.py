r"""The validity clock: until which step of a run the theory of the initial stage holds.

At each saved step, for one hidden layer: the loss ratio L/L0; the largest $|w \cdot x|$; the error of the leading
order, $|\sigma(z) - \sigma_{lead}(z)| / |\sigma_{lead}(z) - \sigma(0)|$ over all neurons and samples; and the drift,
the largest angle by which an attracting line predicted at step 0 has turned, computed anew from the present residual by
the rule of the prediction (the lines of the optimizer; a constant that is learned first taken away). The
paper has two definitions of the initial stage, the Taylor expansion holding and the loss above 70%: here they stand
side by side. Its Remark 1 compares $\dot u$ with $\dot r$; fair is $|\dot u|$ against $|\dot r| / r$, two rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from .._display import Shown, short_number
from .._phrases import plural
from .._sketch import curves
from ..errors import InputError
from ..measure._similarity import norms
from ..runs import INITIAL_STAGE, Trajectory
from ..seeds import Seed, as_seed
from ..theory._field import project
from ..theory._tensor import unit
from ._deep import LayerField, layer_fields
from ._lines import LEADING_ERROR, layer_lines, leading_size

DRIFT = 0.1  # radians


@dataclass(frozen=True, eq=False)
class Validity(Shown):
    r"""The clock of one seed and layer, at the chosen saved steps.

    Attributes:
        steps: the steps.
        loss_ratio: L/L0.
        size: the largest $|w \cdot x|$.
        leading_error: relative error of the activation's leading order.
        drift: largest angle, in radians, between an attracting line predicted at the first step and the nearest now.
        share: how far one field is common to all neurons (see ``LayerField.share``).
        turning: median over neurons of $|\dot u|$.
        growing: median over neurons of $|\dot r| / r$.

    >>> steps, loss, error, drift = np.arange(4), [1.0, 0.9, 0.8, 0.5], [0.0, 0.01, 0.2, 0.3], [0.0, 0.05, 0.06, 0.5]
    >>> print(Validity(steps, *map(np.array, (loss, error, error, drift, loss, loss, loss))))
    theory valid until step 1; loss above 70% until step 2
    """

    steps: Int[np.ndarray, " steps"]
    loss_ratio: Float[np.ndarray, " steps"]
    size: Float[np.ndarray, " steps"]
    leading_error: Float[np.ndarray, " steps"]
    drift: Float[np.ndarray, " steps"]
    share: Float[np.ndarray, " steps"]
    turning: Float[np.ndarray, " steps"]
    growing: Float[np.ndarray, " steps"]

    def valid_until(self, leading_error: float = LEADING_ERROR, drift: float = DRIFT) -> int | None:
        """The last step up to which the leading order and the predicted lines hold; None if not even at the first."""
        return self._last((self.leading_error <= leading_error) & (self.drift <= drift))

    def loss_until(self, ratio: float = INITIAL_STAGE) -> int | None:
        """The last step up to which the loss is above 70% of its first value."""
        return self._last(self.loss_ratio > ratio)

    def _last(self, holds: np.ndarray) -> int | None:
        count = len(holds) if holds.all() else int(holds.argmin())
        return int(self.steps[count - 1]) if count else None

    def _title(self) -> str:
        return f"Validity at {plural(len(self.steps), 'saved step')}"

    def _facts(self) -> dict[str, str]:
        ranges = {
            name: f"{short_number(getattr(self, name)[0])} to {short_number(getattr(self, name)[-1])}"
            for name in ("loss_ratio", "size", "leading_error", "drift", "share", "turning", "growing")
        }
        return {"in short": str(self)} | (ranges if len(self.steps) else {})

    def _picture(self) -> str:
        return curves(self.steps, [self.leading_error, self.drift], label="leading error, drift")

    def __str__(self) -> str:
        until, loss = self.valid_until(), self.loss_until()
        end = int(self.steps[-1])
        phrase = lambda step: "not even at the first step" if step is None else f"until step {step}"  # noqa: E731
        more = " (the last that was looked at)" if until == end else ""
        return f"theory valid {phrase(until)}{more}; loss above {INITIAL_STAGE:.0%} {phrase(loss)}"


def validity(
    trajectory: Trajectory, seed: int | Seed = 0, *, layer: str | int = 1, steps: Sequence[int] | None = None
) -> Validity:
    """The validity clock of one seed and one hidden layer of a dense network.

    Args:
        trajectory: a run whose weights were saved at several steps.
        seed: which seed.
        layer: which hidden layer, by name or number.
        steps: saved steps to look at; all of them if not given.
    """
    chosen = [int(step) for step in (trajectory.saved if steps is None else steps)]
    experiment, (x, y) = trajectory.experiment, trajectory.data(seed)
    first, rows = None, []
    for step in chosen:
        model = trajectory.model(step, seed)
        fields = layer_fields(model, x, y, experiment.loss)
        name = model.layer(layer).name
        if name not in fields:
            raise InputError(f"the clock is for hidden layers ({', '.join(fields)}), not for {name}")
        field, weights = fields[name], model.weights(name)
        predicted = layer_lines(model, field, x, y, experiment.loss, experiment.optimizer).directions
        size = leading_size(field.inputs, weights, field.activation)
        lines = unit(predicted.directions[predicted.attracts])
        first = lines if first is None else first
        rows.append((*size, turned(first, lines), field.share, *_rates(field, weights)))
    size, error, drift, share, turning, growing = np.array(rows).T
    at = np.searchsorted(trajectory.recorded, chosen)
    loss = trajectory.loss[trajectory.seeds.index(as_seed(seed))]
    return Validity(np.array(chosen), loss[at] / loss[0], size, error, drift, share, turning, growing)


def turned(first: Float[np.ndarray, "lines inputs"], now: Float[np.ndarray, "others inputs"]) -> float:
    """The largest angle from one of the first lines to the nearest line now; a right angle if there is none."""
    if not len(first):
        return 0.0
    nearest = np.abs(first @ now.T).max(axis=1) if len(now) else np.zeros(len(first))
    return float(np.arccos(np.clip(nearest, -1, 1)).max())


def _rates(field: LayerField, weights: np.ndarray) -> tuple[float, float]:
    r"""Medians over the neurons of the two rates $|\dot u|$ and $|\dot r| / r$."""
    moving, r = field.velocity(weights), norms(weights)
    turning = np.linalg.norm(project(moving, weights), axis=1) / r
    growing = np.abs(np.einsum("jd,jd->j", moving, weights)) / r**2
    return float(np.median(turning)), float(np.median(growing))
