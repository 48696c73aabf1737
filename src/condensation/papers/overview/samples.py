r"""How many samples does a target of three neurons need, whatever the width (Zhang et al., few samples)?

The target is $\sum_{s=1}^3 \tanh(0.6 x_s + 0.8 x_{s+1} + x_{s+2})$. A dense network of three neurons that gives it has
21 parameters, a convolution with one kernel 7: from so few samples a condensed network of any width should find it.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ..._phrases import plural
from ...data import Gaussian, Teacher
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...networks import Conv, Dense, Model
from ...optimizers import GD
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Available, Drawing, PaperFigure

SAMPLES = {"dense": (14, 24, 40), "conv": (5, 8, 14)}
NEEDED = {"dense": 21, "conv": 7}
WIDTHS = {"dense": (3, 30), "conv": (1, 10)}
MORE_WIDTHS = {"quick": {"dense": (), "conv": ()}, "paper": {"dense": (9, 102, 300), "conv": (3, 34, 100)}}
STEPS = {"quick": {"dense": 12_000, "conv": 4000}, "paper": {"dense": 60_000, "conv": 20_000}}
VANISHED, LEFT, FITTED = 1e-3, 1e-2, 1e-4
WHERE = "Zhang et al. 2023, few samples"
NARROW = "A network as narrow as the target ends, in the seeds that fail, at other minima above the samples."
WIDE = "A network with more parameters than samples fits them with another function."
NEAR = "What fits these samples is near the target already, though not at it."


def target() -> Model:
    """The target as a network of three neurons."""
    weights = np.zeros((3, 5))
    for place in range(3):
        weights[place, place : place + 3] = 0.6, 0.8, 1.0
    return Model(Dense((5, 3, 1), "tanh", bias=False), {"dense1.weight": weights, "output.weight": np.ones((1, 3))})


def widths(kind: str, scale: str) -> tuple[int, ...]:
    """The widths of a kind of network at a scale.

    >>> widths("dense", "quick"), widths("conv", "paper")
    ((3, 30), (1, 3, 10, 34, 100))
    """
    return tuple(sorted(WIDTHS[kind] + MORE_WIDTHS[scale][kind]))


def _claims(kind: str, width: int) -> "tuple[Claim[Samples], ...]":
    few, enough, more = SAMPLES[kind]
    what = f"{width} neurons" if kind == "dense" else "one kernel" if width == 1 else f"{width} kernels"

    def name(n: int) -> str:
        return f"{kind}, {width}, {n}"

    quantity = "test error at the end over that at the start"
    reason = NARROW if width == WIDTHS[kind][0] else WIDE
    return (
        Claim(
            f"{kind}-{width}-enough", WHERE,
            f"{what}: {enough} samples are enough, as from {NEEDED[kind]} on the test error vanishes",
            quantity, at_most(VANISHED), lambda figure: PerSeed(figure.errors[name(enough)]),
            lambda figure: f"{reason} {figure.in_words()}",
        ),
        Claim(
            f"{kind}-{width}-few", WHERE, f"{what}: {few} samples are not enough, though they are fitted",
            quantity, at_least(LEFT),
            lambda figure: PerSeed(figure.errors[name(few)], decided=figure.fitted(name(few))),
            lambda figure: f"{NEAR} {figure.in_words()}",
        ),
        question(
            f"{kind}-{width}-more", f"{what}: {more} samples are enough", quantity, at_most(VANISHED),
            lambda figure: PerSeed(figure.errors[name(more)]), lambda figure: f"{reason} {figure.in_words()}",
        ),
    )  # fmt: skip


def _whatever(kind: str) -> "tuple[Claim[Samples], ...]":
    """What is said of all widths at once."""
    _, enough, more = SAMPLES[kind]
    units = "neurons" if kind == "dense" else "kernels"
    quantity = f"largest test error over the widths of {WIDTHS[kind][1]} {units} and more, over that at the start"

    def largest(n: int) -> "Callable[[Samples], PerSeed]":
        return lambda figure: PerSeed(figure.largest(kind, n))

    return (
        Claim(
            f"{kind}-whatever", WHERE, f"{kind}: {enough} samples are enough whatever the width", quantity,
            at_most(VANISHED), largest(enough), lambda figure: f"{WIDE} {figure.in_words()}",
        ),
        question(
            f"{kind}-whatever-more", f"{kind}: {more} samples are enough whatever the width", quantity,
            at_most(VANISHED), largest(more), lambda figure: f"{WIDE} {figure.in_words()}",
        ),
    )  # fmt: skip


class Samples(PaperFigure):
    """Dense and convolutional networks of two widths, on few samples and on more."""

    name, title, paper = "overview-samples", "How many samples a target of three neurons needs", "OVERVIEW"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        "at the quick scale widths 3 and 30 (1 and 10 kernels) of the text's 3 to 300; three numbers of samples "
        "each, below and above "
        "21 and 7, and about twice as many; rate 0.2 of the text's 0.05 to 0.5, the steps, 500 test samples; "
        "vanished is "
        "1e-3 of the first error. Trials with four seeds had been seen before the rules were written; the larger "
        "widths and what is asked of all at "
        "once were added after a run with the first two"
    )
    claims = (
        *(claim for kind in SAMPLES for width in WIDTHS[kind] for claim in _claims(kind, width)),
        *(claim for kind in SAMPLES for claim in _whatever(kind)),
    )

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Each kind of network, width and number of samples."""
        teacher, trained = target(), {}
        for kind, numbers in SAMPLES.items():
            for width in widths(kind, scale):
                network = (
                    Dense((5, width, 1), "tanh")
                    if kind == "dense"
                    else Conv((5,), channels=(width,), kernel=3, outputs=1, activation="tanh", padding="valid")
                )
                for n in numbers:
                    trained[f"{kind}, {width}, {n}"] = Experiment(
                        network, Init(Normal(1e-10)), Teacher(teacher, Gaussian(5, n)), GD(0.2), STEPS[scale][kind],
                        save=Evenly(2), record=Evenly(21), test=Teacher(teacher, Gaussian(5, 500)),
                    )  # fmt: skip
        return trained

    @cached_property
    def errors(self) -> Available[Float[np.ndarray, " seeds"]]:
        """The test error at the end over that at the start."""
        return self.runs.each(lambda _, run: run.curves["test_loss"][:, -1] / run.curves["test_loss"][:, 0])

    def largest(self, kind: str, n: int) -> Float[np.ndarray, " seeds"]:
        """The largest test error over the widths but the least ones."""
        wide = [width for width in widths(kind, self.scale) if width >= WIDTHS[kind][1]]
        return np.max([self.errors[f"{kind}, {width}, {n}"] for width in wide], axis=0)

    def fitted(self, name: str) -> np.ndarray:
        """Whether the training loss is at most 1e-4 of the first."""
        loss = self.runs[name].loss
        return loss[:, -1] <= FITTED * loss[:, 0]

    def in_words(self) -> str:
        """Medians of the test and training errors."""
        parts = (
            f"{name}: {np.median(own):.2g} ({np.median(self.runs[name].loss[:, -1] / self.runs[name].loss[:, 0]):.1g})"
            for name, own in self.errors.items()
        )
        return f"Kind, width, samples: median test error over the first (training error): {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """Test errors against the number of samples."""
        with look():
            picture = Figure(figsize=(PAGE, 2.3), layout="constrained")
            for axes, (kind, numbers) in zip(picture.subplots(1, 2, sharey=True), SAMPLES.items(), strict=True):
                for width, colour in zip(widths(kind, self.scale), COLOURS, strict=False):
                    errors = np.array([self.errors[f"{kind}, {width}, {n}"] for n in numbers])
                    axes.semilogy(numbers, np.maximum(errors, 1e-9), ".-", color=colour, alpha=0.4, linewidth=0.7)
                    axes.plot([], [], color=colour, label=plural(width, "neuron" if kind == "dense" else "kernel"))
                axes.axvline(NEEDED[kind], color=FAINT, linestyle=":")
                axes.set(title=kind, xlabel="samples")
                axes.legend(fontsize=6)
            picture.axes[0].set_ylabel("test error over the first")
        return Drawing(
            caption="Test error of networks from very small weights on samples of three tanh neurons, over that at the "
            "start, each seed; dotted: the parameters of the smallest network that gives the target. Errors below 1e-9 "
            "are drawn there.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
