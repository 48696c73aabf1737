"""Additional question: what is the final test accuracy of Fig. 3's network?"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Glorot, Init
from ...optimizers import Adam
from ...saving import Evenly
from .._claims import PerSeed, at_least, question
from .._figure import Available, Drawing, PaperFigure
from .experiments import FIG3_RATE, QUICK_FIG3_RATE, deep_to_the_end

FITTED = 0.95  # training accuracy from which on test accuracies are compared
SHORTER = 4  # from the common initialization the images are fitted sooner


class FinalAccuracy(PaperFigure):
    """Test against training accuracy of Fig. 3's network, from a small and from a common initialization."""

    name, title, paper = "cnn-accuracy", "How well does Fig. 3's network generalise?", "CNN"
    chosen = f"Glorot, with {SHORTER} times Adam's rate and a quarter of the steps there"
    has_variants = False
    titles: ClassVar = {"small": "small initial weights", "common": "Glorot initial weights"}
    claims = (
        question(
            "learned",
            "Fig. 3's network, fitted to its images, has learned something general (read as: at least twice chance)",
            "test accuracy at the end", at_least(0.2), lambda figure: PerSeed(figure.test["small"]),
            lambda figure: figure.medians_and_lines(),
        ),
        question(
            "common",
            "condensation does not cost accuracy: the test accuracy is at most 2 percentage points below that from a "
            "common start", "test accuracy minus that from the common start, at the end", at_least(-0.02),
            lambda figure: figure.difference(), lambda figure: figure.medians_and_lines(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 3's network from its small initialization, and from a common one."""
        small = deep_to_the_end(scale)
        rate = FIG3_RATE if scale == "paper" else QUICK_FIG3_RATE
        common = small.replace(
            init=Init(Glorot(), convolution=Glorot()), optimizer=Adam(rate * SHORTER), steps=small.steps // SHORTER,
            save=Evenly(2), record=Evenly(21 if scale == "paper" else 9), kept_layers=("conv1",),
        )  # fmt: skip
        return {"small": small, "common": common}

    @cached_property
    def test(self) -> Available[np.ndarray]:
        """Test accuracies at the end, of each seed."""
        return self.runs.each(lambda name, run: run.curves["test_accuracy"][:, -1])

    def difference(self) -> PerSeed:
        """The test accuracy minus that from the common initialization, which counts where both fit their images."""
        fitted = np.min([run.accuracy[:, -1] for run in self.runs.values()], axis=0) >= FITTED
        return PerSeed(self.test["small"] - self.test["common"], fitted)

    def _medians(self) -> str:
        return "; ".join(
            f"{self.titles[name]}: {np.median(self.test[name]):.1%} (training {np.median(run.accuracy[:, -1]):.0%})"
            for name, run in self.runs.items()
        )

    def medians_and_lines(self) -> str:
        """Median accuracies, and how condensed the first layer is at the end."""
        run = self.runs["small"]
        lines = self.count(run, "conv1", int(run.saved[-1]), view="filter")
        return f"Medians of the seeds: {self._medians()}. Filters of conv1 from small initial weights: {lines}."

    def draw(self) -> Drawing:
        """Test accuracy against training accuracy, from both initializations."""
        with look():
            figure = Figure(figsize=(PAGE * 0.62, 2.6), layout="constrained")
            axes = figure.subplots()
            for (name, title), colour in zip(self.titles.items(), COLOURS, strict=False):
                train, test = self.runs[name].accuracy.T, self.runs[name].curves["test_accuracy"].T
                axes.plot(train, test, ".-", color=colour, linewidth=0.5, markersize=3, alpha=0.6)
                axes.plot([], [], ".-", color=colour, label=title)
            axes.axhline(0.1, color=COLOURS[6], linestyle=":", linewidth=0.8, label="chance")
            axes.set(xlabel="training accuracy", ylabel="test accuracy", xlim=(0, 1.02), ylim=(0, None))
            figure.legend(loc="outside lower center", ncols=3)
        return Drawing(
            caption=f"While Fig. 3's network trains; a line a seed. At the end: {self._medians()}.",
            pictures={"": figure},
            data={"seed": np.arange(self.seeds)} | {f"test_accuracy_{name}": own for name, own in self.test.items()},
        )
