"""One plateau of one seed between two drops: the network there, what theory says comes next, and what comes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import spearmanr

from ...derivatives import HessianSpectrum, as_vector, gradient, hessian_spectrum, loss_of
from ...errors import InputError
from ...measure import cosine_similarity, find_plateaus
from ...networks import Model
from ...prediction import layer_fields
from ...prediction._lines import layer_lines
from ...reduction import reduce
from ...runs import Trajectory
from ...theory import CubeDirections, Directions, Growth, predict_growth
from ...theory._leading import evaluate
from ._critical import gradient_share, to_minimum

LEFT = 0.9  # of the plateau's loss: training has left it
IDLE = 0.01  # of the output: a neuron that adds less is idle
WITHIN = 0.1  # of the residual: how near the reduced network's output is
SAME = 0.95  # cosine of one line
EFFECTIVE = 0.05  # of the output: the error of the network whose width counts as the effective one


@dataclass(frozen=True, eq=False)
class Standing:
    """A plateau between two drops.

    Attributes:
        run: saved and recorded at the same steps.
        k: position of the seed.
        first, last: columns of its first and last step.
        until: column of the next plateau's first step, or of the last step.
    """

    run: Trajectory
    k: int
    first: int
    last: int
    until: int

    @cached_property
    def column(self) -> int:
        """The step of least gradient: the one nearest to the critical point."""
        return self.first + int(np.argmin([self._slope(c) for c in range(self.first, self.last + 1)]))

    @cached_property
    def left(self) -> int | None:
        """The first step at which a tenth of the plateau's loss is gone; none if the training ends before."""
        below = np.flatnonzero(self.loss[self.column :] <= LEFT * self.loss[self.column])
        return self.column + int(below[0]) if len(below) else None

    @property
    def loss(self) -> Float[np.ndarray, " saved"]:
        """Loss at all saved steps."""
        return self.run.loss[self.k]

    @property
    def rate(self) -> float:
        """Time of gradient flow in one step."""
        return float(self.run.experiment.optimizer.learning_rate)  # type: ignore[union-attr]

    @cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Samples and targets."""
        return self.run.data(self.run.seeds[self.k])

    def at(self, column: int) -> Model:
        """The network at a saved step."""
        return self.run.model(int(self.run.saved[column]), self.run.seeds[self.k])

    @cached_property
    def model(self) -> Model:
        """The network at the plateau."""
        return self.at(self.column)

    def _slope(self, column: int) -> float:
        return float(np.linalg.norm(as_vector(gradient(self.at(column), *self.data))))

    def reduced(self, column: int) -> Model:
        """The smallest network, by merging, whose output is within a tenth of the residual of a step's."""
        model, (x, y) = self.at(column), self.data
        outputs = model(x)
        size = np.linalg.norm(outputs - outputs.mean(axis=0))  # what the error of a reduction is relative to
        return reduce(model, x, error=WITHIN * float(np.linalg.norm(y - outputs) / size)).model

    @cached_property
    def narrow(self) -> Model:
        """The reduced network of the plateau."""
        return self.reduced(self.column)

    @cached_property
    def fastest(self) -> int:
        """The step at which the loss falls fastest afterwards."""
        fall = -np.diff(np.log(self.loss[self.column : self.until + 1])) / np.diff(self._times)
        return self.column + 1 + int(np.argmax(fall))

    @cached_property
    def stillness(self) -> float:
        """The gradient share over that where the loss falls fastest afterwards."""
        return gradient_share(self.model, *self.data) / gradient_share(self.at(self.fastest), *self.data)

    @cached_property
    def criticality(self) -> float:
        """The same of the reduced networks."""
        return gradient_share(self.narrow, *self.data) / gradient_share(self.reduced(self.fastest), *self.data)

    @cached_property
    def still_to_gain(self) -> float:
        """The loss of the local minimum of the reduced network, over the plateau's."""
        return loss_of(to_minimum(self.narrow, *self.data), *self.data) / float(self.loss[self.column])

    @cached_property
    def spectrum(self) -> HessianSpectrum:
        """The whole spectrum of the Hessian at the plateau."""
        return hessian_spectrum(self.model, *self.data, smallest=10**6, largest=0)

    @property
    def _times(self) -> np.ndarray:
        return self.run.saved[self.column : self.until + 1] * self.rate

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The rate by the most negative eigenvalue, and the fastest at which the gradient grows on the way out."""
        assert self.left is not None
        sizes = np.array([self._slope(c) for c in range(self.column, self.left + 1)])
        found = np.max(np.diff(np.log(sizes)) / np.diff(self._times[: len(sizes)]))
        return float(-self.spectrum.values[0]), float(found)

    @cached_property
    def idle(self) -> Bool[np.ndarray, " units"]:
        """The neurons that add next to nothing to the output."""
        each = np.abs(self.outputs) * np.sqrt((evaluate(self.activation, self.weights @ self.inputs.T) ** 2).mean(1))
        return each <= IDLE * np.sqrt((self.model(self.data[0]) ** 2).mean())

    @property
    def activation(self) -> str:
        """The activation's name."""
        return str(self.run.experiment.network.activations[0])

    @property
    def inputs(self) -> np.ndarray:
        """Samples with the bias's 1."""
        return np.c_[self.data[0], np.ones(len(self.data[0]))]

    @property
    def weights(self) -> np.ndarray:
        """Input weights at the plateau."""
        return self.model.weights(1)

    @property
    def outputs(self) -> np.ndarray:
        """Output weights at the plateau."""
        return self.model.parameters["output.weight"][0]

    @cached_property
    def directions(self) -> Directions | CubeDirections:
        """The lines of the residual, as ``predict_next`` has them, without the fates of neurons."""
        model, (x, y), experiment = self.model, self.data, self.run.experiment
        field = layer_fields(model, x, y, experiment.loss)["dense1"]
        return layer_lines(model, field, x, y, experiment.loss, experiment.optimizer).directions

    @property
    def lines(self) -> Float[np.ndarray, "lines inputs"]:
        """Those that attract."""
        return self.directions.directions[self.directions.attracts]

    @cached_property
    def growth(self) -> Growth | None:
        """Who of the idle neurons grows, and when a tenth of the loss is gone; none where they do not get there."""
        residual = (self.data[1] - self.model(self.data[0]))[:, 0]
        try:
            return predict_growth(
                self.weights[self.idle], self.outputs[self.idle], self.inputs, residual, self.activation,
                loss_ratio=LEFT,
            )  # fmt: skip
        except InputError:
            return None

    @cached_property
    def times(self) -> tuple[float, float]:
        """Steps until a tenth of the loss is gone: predicted from the idle neurons (infinite if never), and found."""
        assert self.left is not None
        predicted = np.inf if self.growth is None else self.growth.loss_time / self.rate
        return predicted, float(self.run.saved[self.left] - self.run.saved[self.column])

    @cached_property
    def gains(self) -> Float[np.ndarray, " units"]:
        """By how much |a||w| of each neuron has grown when a tenth of the loss is gone."""
        assert self.left is not None
        after = self.at(self.left)
        grown = np.linalg.norm(after.weights(1), axis=1) * np.abs(after.parameters["output.weight"][0])
        return np.maximum(grown - np.linalg.norm(self.weights, axis=1) * np.abs(self.outputs), 0)

    @cached_property
    def share_on_lines(self) -> float:
        """The share of these gains on a predicted line, nearer to it than to the lines that the network has."""
        assert self.left is not None
        if not len(self.lines):
            return 0.0
        weights = self.at(self.left).weights(1)
        new, old = (np.abs(cosine_similarity(weights, each)).max(1) for each in (self.lines, self.narrow.weights(1)))
        return float(self.gains[(new >= SAME) & (new > old)].sum() / self.gains.sum())

    @cached_property
    def share_of_idle(self) -> float:
        """The share of the gains that idle neurons have."""
        return float(self.gains[self.idle].sum() / self.gains.sum())

    @cached_property
    def order(self) -> float:
        """Rank correlation of the factors by which idle neurons grow, predicted and found."""
        assert self.left is not None
        if self.growth is None or self.idle.sum() < 3:
            return float("nan")
        first, found = (
            np.linalg.norm(model.weights(1)[self.idle], axis=1) for model in (self.model, self.at(self.left))
        )
        return float(spearmanr(self.growth.amplitudes / first, found / first).statistic)  # type: ignore[union-attr]


def standings(run: Trajectory, k: int) -> list[Standing]:
    """The plateaus of a seed between two drops: after the first, and before training leaves them."""
    loss = run.loss[k]
    found = np.searchsorted(run.recorded, find_plateaus(run.recorded, loss))
    begins = [*found[1:, 0], len(loss) - 1]
    pairs = zip(found.tolist(), begins, strict=False)
    each = (Standing(run, k, first, last, int(until)) for (first, last), until in pairs if first > 0)
    return [one for one in each if one.last < len(loss) - 1 and one.left is not None]


def effective_width(run: Trajectory, column: int, k: int) -> int:
    """Neurons of the smallest network whose output is within 5% of a step's; none that is needed counts as one."""
    model, x = run.model(int(run.saved[column]), run.seeds[k]), run.data(run.seeds[k])[0]
    return len(reduce(model, x, error=EFFECTIVE).model.weights(1))


def apart(first: float, second: float) -> float:
    """How many times one of two numbers is the other, whichever is larger; infinite where one is not positive.

    >>> apart(2.0, 8.0), apart(8.0, 2.0), apart(np.inf, 1.0), apart(-1.0, 2.0)
    (4.0, 4.0, inf, inf)
    """
    return float(max(first, second) / min(first, second)) if min(first, second) > 0 else float("inf")


def worst(values: Sequence[float], least: bool) -> float:
    """The value of the plateau that speaks most against a claim; NaN where there is none.

    >>> worst([0.2, 0.9], least=True), worst([0.2, 0.9], least=False), worst([], least=True)
    (0.2, 0.9, nan)
    """
    return float("nan") if not len(values) else float(np.min(values) if least else np.max(values))
