"""Predicted fates on trial: the same starts trained by four optimizers, and how many neurons went as predicted.

The theory is that of gradient flow. Gradient descent imitates it; neuron-normalised gradient descent follows the same
paths at equal speeds, so that all neurons arrive and not only the fastest (p >= 2); Adam has other paths and lines.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..experiment import Experiment
from ..networks import Dense
from ..seeds import Seed, as_seeds
from ..training.optimizers import GD, Adam, GradientFlow, NormalisedGD, Optimizer
from ..training.rates import Warmup
from ..training.schedule import Evenly
from ..training.train import Diverged, train
from ..training.trajectory import Trajectory
from .constant import effective_residual
from .fate import Accuracy, Fates, accuracy, fates
from .growth import predict_growth
from .leading import coefficient

STEPS = 2000
SAVED = Evenly(401)


@dataclass(frozen=True)
class Trial:
    """One seed under one optimizer.

    Attributes:
        optimizer: its kind.
        seed: the seed.
        loss_ratio: L/L0 where the weights were compared; L0 without the constant where that is learned first.
        accuracy: how many neurons went as predicted.
    """

    optimizer: str
    seed: Seed
    loss_ratio: float
    accuracy: Accuracy


def compare_optimizers(
    experiment: Experiment,
    seeds: int | Iterable[int | Seed] = 10,
    *,
    loss_ratio: float = 0.99,
    threshold: float = 0.95,
    steps: int = STEPS,
) -> list[Trial]:
    """Train an experiment's starts with gradient flow, gradient descent, neuron-normalised descent and Adam.

    Rates are chosen from the predicted time and amplitude at which the loss moves; the experiment's own optimizer and
    steps do not count. Weights are compared at the last saved step at which the loss is at least ``loss_ratio`` of its
    first value. Gradient flow is left out for relu: neurons that stay at a kink stall the integrator.

    Args:
        experiment: a dense network with one hidden layer and one output, from small weights.
        seeds: how many (0, 1, ...), or which.
        loss_ratio: where the weights are compared.
        threshold: the cosine from which on a neuron is where it was predicted to be.
        steps: steps of each optimizer.

    Returns:
        A row for each optimizer and seed.
    """
    network = experiment.network
    if not isinstance(network, Dense) or len(network.hidden) != 1 or network.outputs != 1:
        raise InputError("fates are of dense networks with one hidden layer and one output, not of this network")
    if not 0 < loss_ratio < 1:
        raise InputError(f"the loss ratio is a share between 0 and 1, not {loss_ratio!r}")
    rows = []
    for seed in as_seeds(seeds):
        case = _Case.of(experiment, seed, loss_ratio)
        for optimizer in case.optimizers(steps):
            changed = experiment.replace(optimizer=optimizer, steps=steps, save=SAVED, record=SAVED)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Diverged)  # what comes after the loss has moved is not looked at
                rows.append(case.judge(train(changed, [seed]), threshold))
    return rows


@dataclass(frozen=True, eq=False)
class _Case:
    """What is known of one seed before training: the fates, and at which time and amplitude the loss moves."""

    seed: Seed
    fates: Fates
    first_loss: float
    loss_ratio: float
    constant_first: bool
    time: float
    amplitude: float

    @staticmethod
    def of(experiment: Experiment, seed: Seed, loss_ratio: float) -> "_Case":
        network = experiment.network
        assert isinstance(network, Dense)
        activation, hidden = network.activations[0], network.layers[0]
        x, y = experiment.data.draw(seed)
        points = np.concatenate([x, np.ones((len(x), int(network.bias)))], axis=1)
        drawn = experiment.start.draw(network, seed.start_stream())
        effective = effective_residual(points, y, activation, network.hidden[0])
        start = (hidden.units(drawn), effective.outputs(drawn["output.weight"]), points, effective.residual, activation)
        ends = fates(*start, perturbations=0)
        loss, p = float((effective.residual**2).mean() / 2), ends.directions.p
        growth = np.abs(ends.directions.values[ends.lines[ends.lines >= 0]]).mean()
        c = 1.0 if ends.directions.oriented else abs(coefficient(activation)[1])
        # all neurons on their lines and balanced: the loss falls by m |c| F r^(p+1) / p^1.5
        amplitude = ((1 - loss_ratio) * loss * p**1.5 / (len(ends.lines) * c * growth)) ** (1 / (p + 1))
        time = predict_growth(*start, loss_ratio=loss_ratio).loss_time
        return _Case(seed, ends, loss, loss_ratio, effective.learned_first, time, float(amplitude))

    def optimizers(self, steps: int) -> tuple[Optimizer, ...]:
        """The four optimizers, with rates that bring them beyond the point where the loss moves."""
        p, inputs = self.fates.directions.p, self.fates.directions.directions.shape[1]
        rate = (3.0 if p == 1 else 1.3) * self.time / steps
        length = 4 * self.amplitude / steps  # the mean rate of a warm-up, in which the first steps are short, is half
        stop = None if self.constant_first else self.loss_ratio
        flow = () if self.fates.directions.oriented else (GradientFlow(rate, stop_ratio=stop, atol=1e-20),)
        return (
            *flow,
            GD(rate),
            NormalisedGD(length * np.sqrt(1 + 1 / p), rate=Warmup(steps)),
            Adam(length / np.sqrt(inputs), eps=1e-30, rate=Warmup(steps)),
        )

    def judge(self, run: Trajectory, threshold: float) -> Trial:
        """Compare at the last saved step before the loss has moved further."""
        ratios = run.loss[0] / self.first_loss
        before = (ratios >= self.loss_ratio * (1 - 1e-6)) & (ratios <= 1.001 * ratios[0])
        last = int(np.append(before, False).argmin()) - 1
        found = run.weights(1, int(run.recorded[last]), self.seed)
        kind = run.experiment.optimizer.kind
        return Trial(kind, self.seed, float(ratios[last]), accuracy(self.fates, found, threshold=threshold))
