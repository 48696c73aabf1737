"""Two classes of samples in opposite cones (Min, Mallada and Vidal): each neuron turns to one of them or dies."""

from functools import cached_property
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...measure import stable_rank
from ...networks import Dense
from ...optimizers import GD
from ...saving import Geometric
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Drawing, PaperFigure
from ._cone import two_cones

WIDTH, RATE, SCALE = 50, 0.1, 1e-4
STEPS = {"quick": 30_000, "paper": 300_000}
WHERE = "Min et al. 2024"


def exponential(outputs: Any, targets: Any) -> Any:
    """The exponential loss of a sample with target 1 or -1."""
    return jnp.exp(-jnp.sum(outputs * targets))


class Classes(PaperFigure):
    """A network on two classes, from small balanced weights."""

    name, title, paper = "align-classes", "Two classes: alignment before the loss falls, stable rank two", "ALIGN"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        "all settings: 20 samples of ten coordinates in two opposite cones, 50 neurons, the scale 1e-4, the "
        "exponential loss, rate 0.1. "
        "The constant of the alignment time O(log n/√μ) is not known to us, so the moment at which 10% of the loss is "
        "gone takes its place; MNIST was left out, as its numbers could not be read"
    )
    claims = (
        Claim(
            "aligned", WHERE, "before the loss falls each neuron is active on one class only, or dead",
            "share of the neurons that are, when 10% of the loss is gone", at_least(0.99),
            lambda figure: PerSeed(figure.sorted_at(figure.leaving), valid=figure.left),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "rank", WHERE, "the weights stay near rank two", "stable rank at the end", at_most(2),
            lambda figure: PerSeed(figure.ranks), lambda figure: figure.in_words(),
        ),
        Claim(
            "rate", WHERE, "the loss falls at least as fast as 1/t",
            "slope of its logarithm against that of time over the last three quarters of the training", at_most(-0.95),
            lambda figure: PerSeed(figure.decay), lambda figure: figure.in_words(),
        ),
        question(
            "rate-exact", "and not faster", "the same slope", at_least(-1.2),
            lambda figure: PerSeed(figure.decay, valid=figure.left), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """One network."""
        often = Geometric(30)
        return {
            "classes": Experiment(
                Dense((10, WIDTH, 1), "relu", bias=False), Init(Normal(SCALE / WIDTH**0.5), balance="balanced"),
                Drawn(two_cones), GD(RATE), STEPS[scale], Loss(exponential), save=often, record=often,
            )
        }  # fmt: skip

    @property
    def run(self) -> Any:
        """The run."""
        return self.runs["classes"]

    @property
    def left(self) -> np.ndarray:
        """Whether 10% of the loss is gone at the end."""
        return self.run.loss[:, -1] <= 0.9 * self.run.loss[:, 0]

    @property
    def leaving(self) -> np.ndarray:
        """The saved step at which 10% of the loss is gone, by its place."""
        at = np.searchsorted(self.run.recorded, self.run.saved)
        return (self.run.loss[:, at] <= 0.9 * self.run.loss[:, :1]).argmax(1)

    def sorted_at(self, columns: np.ndarray) -> Float[np.ndarray, " seeds"]:
        """The share of the neurons that are active on one class alone, on all of it, or on nothing."""
        found = []
        for k, column in enumerate(columns):
            x, y = self.run.data(self.run.seeds[k])
            active = self.run.history(1)[k, column] @ x.T > 0
            one, other = active[:, y[:, 0] > 0], active[:, y[:, 0] < 0]
            empty = ~active.any(1)
            found.append(np.mean(empty | (one.all(1) & ~other.any(1)) | (other.all(1) & ~one.any(1))))
        return np.array(found)

    @cached_property
    def ranks(self) -> Float[np.ndarray, " seeds"]:
        """The stable rank of the input weights at the end."""
        return np.array([stable_rank(weights) for weights in self.run.history(1)[:, -1]])

    @cached_property
    def decay(self) -> Float[np.ndarray, " seeds"]:
        """The slope of log loss against log time over the last three quarters of the training."""
        late = self.run.recorded >= self.run.recorded[-1] / 4
        time = np.log(self.run.recorded[late] * RATE)
        return np.array([np.polyfit(time, np.log(loss[late]), 1)[0] for loss in self.run.loss])

    def in_words(self) -> str:
        """What was found."""
        ends = np.full(len(self.run.seeds), len(self.run.saved) - 1)
        return (
            f"Medians: {np.median(self.sorted_at(self.leaving)):.2g} of the neurons are on one class when 10% of the "
            f"loss "
            f"is gone, {np.median(self.sorted_at(ends)):.2g} at the end; stable rank {np.median(self.ranks):.3g}; "
            f"the loss "
            f"falls as time to the power {np.median(self.decay):.3g}."
        )

    def draw(self) -> Drawing:
        """Loss, and neurons on one class, over time."""
        run = self.run
        at = np.searchsorted(run.recorded, run.saved)
        shares = np.array([self.sorted_at(np.full(len(run.seeds), c)) for c in range(len(run.saved))])
        with look():
            picture = Figure(figsize=(PAGE, 2.2), layout="constrained")
            left, right = picture.subplots(1, 2)
            time = run.recorded[1:] * RATE
            left.loglog(time, run.loss[:, 1:].T, color=COLOURS[0], alpha=0.4, linewidth=0.8)
            left.plot(time, np.minimum(1, time[-1] * np.median(run.loss[:, -1]) / time), color=FAINT, linestyle=":")
            left.set(xlabel="time (rate x steps)", ylabel="loss")
            relative = run.loss[:, at[1:]] / run.loss[:, :1]
            right.semilogx(run.saved[1:] * RATE, shares[1:], color=COLOURS[1], alpha=0.4, linewidth=0.8)
            right.plot(run.saved[1:] * RATE, relative.T, color=FAINT, alpha=0.4, linewidth=0.8)
            right.set(xlabel="time (rate x steps)", ylabel="share of the neurons", ylim=(0, 1.05))
        return Drawing(
            caption="A relu network on two classes of samples in opposite cones, by the exponential loss. Left: loss "
            "of "
            "each seed (dotted: 1/t). Right: share of the neurons that are active on all of one class and on nothing "
            "of "
            "the other, or dead (grey: the loss over the first).",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
