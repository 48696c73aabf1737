"""The networks of ``cnn-reset``: how they are trained, how they look at a saved step, and how similar they are."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from ...data import Images
from ...experiment import Experiment
from ...initialization import Glorot, Init, Normal
from ...measure import cosine_similarity
from ...optimizers import GD
from ...prediction._kernels import dynamics_at_zero
from ...runs import Trajectory
from ...saving import At
from ...seeds import Seed
from ...theory import KernelDynamics
from .._counts import relative_loss
from .._trainings import require
from .experiments import QUICK_GD_SAMPLES, SAMPLES, descent

LEFT = 0.97  # of the first loss: a network is looked at where its loss is last at least that
WHEN = f"where L/L₀ is last at least {LEFT:g}"
SIZES = {"smaller": 0.1, "captioned": 1.0, "larger": 10.0}
IMAGES, TEST_IMAGES = {"quick": 100, "paper": 500}, {"quick": 200, "paper": 1000}
QUICK_CHANNELS = 16
# times in units of 1 / lambda_1: when about 3% of the loss is gone, and what is saved before and around that
LEAVES, EARLY, AROUND = 6.6, (1.0, 2.0, 4.0, 6.0), (-1.0, -0.5, 0.0, 0.5)
COMMON_TIMES, COMMON_RATE = (0.02, 0.04, 0.06, 0.08, 0.1), 0.1


def experiments(scale: str) -> dict[str, Experiment]:
    """Three sizes of the captioned initial weights, and common ones, all on one draw of images."""
    data = Images("cifar10", n=IMAGES[scale], drawn_by=0)
    test = Images("cifar10", n=TEST_IMAGES[scale], split="test", drawn_by=0)
    require(data, test)
    captioned = descent(scale) if scale == "paper" else descent(scale, channels=QUICK_CHANNELS)
    assert isinstance(captioned.optimizer, GD)
    captioned_images = SAMPLES if scale == "paper" else QUICK_GD_SAMPLES
    rate = captioned.optimizer.learning_rate * captioned_images / IMAGES[scale]  # the same on the mean loss
    on_these = captioned.replace(data=data, test=test, optimizer=GD(rate), kept_layers=None)
    pace = rate * linear_dynamics(on_these).values[0]
    sizes = {}
    for name, factor in SIZES.items():
        leaves = LEAVES - np.log(factor)
        times = [*(early for early in EARLY if early < leaves), *(leaves + around for around in AROUND)]
        sizes[name] = _saved_at(on_these.replace(init=_scaled(captioned, factor)), times, pace)
    slower = on_these.replace(init=Init(Glorot()), optimizer=GD(rate * COMMON_RATE))
    return sizes | {"common": _saved_at(slower, COMMON_TIMES, pace * COMMON_RATE)}


def _scaled(experiment: Experiment, factor: float) -> Init:
    """The experiment's initialization with all stds times a factor."""
    network = experiment.network
    assert isinstance(experiment.init, Init)
    laws = zip(network.layers, experiment.init.laws(network), strict=True)
    convolution, output = (Normal(factor * law.std_of(layer, layer.weight[0])) for layer, law in laws)
    return Init(output, convolution=convolution)


def _saved_at(experiment: Experiment, times: Sequence[float], pace: float) -> Experiment:
    """The experiment up to the last of some times, saved at each; a step takes ``pace`` of them."""
    steps = [max(1, round(time / pace)) for time in times]
    return experiment.replace(steps=max(steps), save=At(tuple(steps)), record=At(tuple(steps)))


def linear_dynamics(experiment: Experiment) -> KernelDynamics:
    """The linear dynamics of the images that all networks see."""
    x, y = experiment.data.draw(Seed(0, 0))
    return dynamics_at_zero(experiment.network, x, y, experiment.loss)


class Snapshot(NamedTuple):
    """The networks of one initialization, each at one saved step of its own.

    Attributes:
        steps, loss: of each seed, and L/L0 there.
        filters: seeds x filters x columns.
        lines: the leading right singular vector of each network's filters.
        functions, held_out: outputs on the training and on the test images, mean removed.
    """

    steps: np.ndarray
    loss: np.ndarray
    filters: np.ndarray
    lines: np.ndarray
    functions: np.ndarray
    held_out: np.ndarray

    @staticmethod
    def of(run: Trajectory, column: np.ndarray | int) -> "Snapshot":
        """The networks at a position among the saved steps, or each at its own."""
        seeds, column = np.arange(len(run.seeds)), np.broadcast_to(column, len(run.seeds))
        assert run.experiment.test is not None
        images = run.data(run.seeds[0])[0], run.experiment.test.draw(run.seeds[0])[0]
        filters = run.history("conv1", view="filter")[seeds, column]
        lines = np.linalg.svd(filters.astype(float), full_matrices=False)[2][:, 0]
        outputs = (_centred_outputs(run, x, run.saved[column]) for x in images)
        return Snapshot(run.saved[column], relative_loss(run)[seeds, column], filters, lines, *outputs)

    @property
    def sizes(self) -> Float[np.ndarray, " seeds"]:
        """Standard deviation of the outputs on the training images."""
        return self.functions.std(axis=1)


def _centred_outputs(run: Trajectory, x: np.ndarray, steps: np.ndarray) -> Float[np.ndarray, "seeds outputs"]:
    pairs = zip(steps, run.seeds, strict=True)
    outputs = np.stack([run.output(x, int(step), seed).ravel() for step, seed in pairs]).astype(float)
    return outputs - outputs.mean(axis=1, keepdims=True)


def column_looked_at(run: Trajectory) -> Int[np.ndarray, " seeds"]:
    """For each seed the position of the last saved step before the loss falls below 97% of the first one."""
    return np.logical_and.accumulate(relative_loss(run) >= LEFT, axis=1).sum(axis=1) - 1


def similarity(snapshots: Iterable[Snapshot], part: str) -> Float[np.ndarray, "networks networks"]:
    """Of all pairs of networks the correlation of outputs, or |cos| of leading lines."""
    cosines = cosine_similarity(np.concatenate([getattr(snapshot, part) for snapshot in snapshots]))
    return np.abs(cosines) if part == "lines" else cosines
