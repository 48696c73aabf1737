"""Does the number of orientations never fall (Xu, Zhang and Zhou, the page of examples beside their overview)?"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Init, WidthPower
from ...measure import find_lines
from ...networks import Dense
from ...optimizers import GD
from ...saving import At
from .._claims import Claim, PerSeed, at_least, question
from .._figure import Drawing, PaperFigure
from ..beyond.saddles import TARGET

EPOCHS = {"quick": (0, 100, 1000, 5000, 10_000, 12_000), "paper": (0, 100, 1000, 5000, 10_000, 12_000, 100_000)}
ACTIVE = 0.01  # of the largest |a||w|
WHERE = "Xu et al. 2025"


class Clusters(PaperFigure):
    """Orientations of a relu network at the epochs of the text."""

    name, title, paper = "overview-clusters", "The number of orientations over training", "OVERVIEW"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        "40 points, whose number is not told; a neuron is active if its |a||w| is at least 1% of the largest. The "
        "plateau "
        "as the best narrow network and the eigenvalues of the Hessian are in beyond-saddles and beyond-splitting"
    )
    claims = (
        Claim(
            "never-falls", WHERE, "from epoch 100 on the number of orientations of active neurons grows and never "
            "falls",
            "least change from one of the text's epochs to the next; -1 where there are not more at the end than first",
            at_least(0), lambda figure: PerSeed(figure.least_change), lambda figure: figure.in_words(),
        ),
        question(
            "grows", "there are more orientations at the end than at epoch 100", "difference of the two", at_least(1),
            lambda figure: PerSeed(figure.counts[:, -1] - figure.counts[:, 1]), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network of the text."""
        epochs = At(EPOCHS[scale])
        return {
            "relu": Experiment(
                Dense((1, 100, 1), "relu"), Init(WidthPower(2)),
                Expression(TARGET, dim=1, n=40, low=-1, high=1, spacing="even"), GD(0.1), EPOCHS[scale][-1],
                save=epochs, record=epochs,
            )
        }  # fmt: skip

    @cached_property
    def counts(self) -> Int[np.ndarray, "seeds epochs"]:
        """Orientations of the active neurons."""
        run = self.runs["relu"]
        found = np.zeros((len(run.seeds), len(run.saved)), int)
        for k in range(len(run.seeds)):
            for e in range(len(run.saved)):
                weights, a = run.history(1)[k, e], np.abs(run.parameters["output.weight"][k, e, 0])
                sizes = a * np.linalg.norm(weights, axis=1)
                found[k, e] = find_lines(weights[sizes >= ACTIVE * sizes.max()]).orientations
        return found

    @property
    def least_change(self) -> np.ndarray:
        """The least change after epoch 100; -1 where there are not more at the end."""
        later = self.counts[:, 1:]
        return np.where(later[:, -1] > later[:, 0], np.diff(later, axis=1).min(1), -1)

    def in_words(self) -> str:
        """The counts of each seed."""
        seeds = ("-".join(map(str, own[1:])) for own in self.counts)
        return f"Orientations at the epochs {', '.join(map(str, self.runs['relu'].saved[1:]))}: {'; '.join(seeds)}."

    def draw(self) -> Drawing:
        """Counts and losses."""
        run = self.runs["relu"]
        with look():
            picture = Figure(figsize=(PAGE, 2.2), layout="constrained")
            left, right = picture.subplots(1, 2)
            shift = np.linspace(-0.2, 0.2, len(self.counts))[:, None]
            left.plot((np.arange(1, len(run.saved)) + shift).T, self.counts[:, 1:].T, ".-", color=COLOURS[0], alpha=0.5)
            left.set_xticks(range(1, len(run.saved)), [str(step) for step in run.saved[1:]], rotation=30)
            left.set(xlabel="epoch", ylabel="orientations")
            left.yaxis.set_major_locator(MaxNLocator(integer=True))
            for e, colour in zip((1, 3, len(run.saved) - 1), COLOURS, strict=False):
                weights, a = run.history(1)[0, e], np.abs(run.parameters["output.weight"][0, e, 0])
                angles = np.degrees(np.arctan2(weights[:, 1], weights[:, 0]))
                label = f"epoch {run.saved[e]}"
                right.scatter(angles, a * np.linalg.norm(weights, axis=1), s=8, color=colour, linewidth=0, label=label)
            right.set(xlabel="angle of (w, b)", ylabel="|a||w|", yscale="log")
            right.legend(fontsize=6)
        return Drawing(
            caption="A relu network on a target of four relu neurons from small weights. Left: orientations of its "
            "active neurons at the epochs of the text, each seed. Right: the neurons of the first seed.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
