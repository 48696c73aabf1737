"""Networks from an ordinary start under kinds of noise, and how many lines they end on."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from ...measure import LineHistory, count_lines
from ...runs import Trajectory
from .._claims import PerSeed
from .._counts import relative_loss
from .._figure import Available, PaperFigure

FITTED = 0.01  # of the first loss
WHERE = "Zhang and Xu 2024"


class UnderNoise(PaperFigure):
    """A figure whose runs differ in the noise alone."""

    paper, has_variants = "DROPOUT", False
    seed_count: ClassVar = 10
    titles: ClassVar[Mapping[str, str]] = {
        "none": "no noise", "dropout": "dropout", "penalty": "R1 alone", "batches": "batches of 2",
        "labels": "label noise", "decay": "weight decay",
    }  # fmt: skip

    @cached_property
    def histories(self) -> Available[LineHistory]:
        """The lines of the hidden layer at the saved steps."""
        return self.runs.each(lambda _, run: count_lines(run.history(1)))

    def k_eff(self, name: str) -> Float[np.ndarray, " seeds"]:
        """The effective number of lines at the end."""
        return self.histories[name].k_eff[:, -1]

    def ended(self, name: str) -> PerSeed:
        """The same; a network whose loss is not at 1% of the first does not count."""
        return PerSeed(self.k_eff(name), valid=self.fitted(name))

    def kept(self, name: str) -> PerSeed:
        """The effective number of lines at the end over that at the start, where the data are fitted."""
        return PerSeed(self.k_eff(name) / self.histories[name].k_eff[:, 0], valid=self.fitted(name))

    def orientations(self, name: str) -> PerSeed:
        """The number of orientations at the end, where the layer is condensed."""
        own = self.histories[name]
        return PerSeed(own.orientations[:, -1], valid=own.condensed[:, -1] & self.fitted(name))

    @cached_property
    def carried(self) -> Available[LineHistory]:
        """Lines at the end of neurons that are weighed by what they add, |a||w|."""

        def of(_: str, run: Trajectory) -> LineHistory:
            sizes = np.abs(run.parameters["output.weight"][:, -1:, 0, :, None])
            return count_lines(sizes * run.history(1)[:, -1:])

        return self.runs.each(of)

    def carriers(self, name: str) -> PerSeed:
        """The number of orientations of what carries the output, where it is condensed."""
        own = self.carried[name]
        return PerSeed(own.orientations[:, -1], valid=own.condensed[:, -1] & self.fitted(name))

    def covered_in_words(self, name: str) -> str:
        """The orientations at the end and the share of the neurons, by |w|, that the lines have, seed by seed."""
        own = self.histories[name]
        pairs = zip(own.orientations[:, -1], own.cover[:, -1], strict=True)
        return f"Orientations, and the share of their lines: {', '.join(f'{n:g} ({has:.0%})' for n, has in pairs)}."

    def fitted(self, name: str) -> np.ndarray:
        """Whether the loss at the end is at most 1% of the first."""
        return relative_loss(self.runs[name])[:, -1] <= FITTED

    def in_words(self) -> str:
        """Medians of all runs."""
        parts = (
            f"{self.titles[name]} {np.median(own.k_eff[:, -1]):.3g} (from {np.median(own.k_eff[:, 0]):.3g}; "
            f"{int(own.condensed[:, -1].sum())} of {len(own.condensed)} condensed, loss over the first "
            f"{np.median(relative_loss(self.runs[name])[:, -1]):.2g})"
            for name, own in self.histories.items()
        )
        return f"k_eff at the end, medians: {'; '.join(parts)}."
