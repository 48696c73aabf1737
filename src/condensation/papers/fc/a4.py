"""FC App. A.4: the ResNet18-like network from the small initialization and from a common one: which performs better?"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ..._phrases import plural
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from .._claims import Claim, PerSeed, at_least
from .._figure import Available, Drawing, PaperFigure
from .experiments import resnet_from


class A4(PaperFigure):
    """Losses and accuracies from both initializations."""

    name, title, paper = "fc-a4", "FC App. A.4: small against common initialization", "FC"
    chosen = "optimizer, steps and the margin of 2 percentage points: the text has none"
    titles: ClassVar = {"small": "small initialization", "common": "common initialization"}
    claims = (
        Claim(
            "accuracy", "Sec. 4.2, App. A.4",
            "ResNet18-like, tanh: the small initialization performs as the common one does",
            "test accuracy from the small initialization minus that from the common one", at_least(-0.02),
            lambda figure: PerSeed(figure.accuracies["small"] - figure.accuracies["common"]),
            lambda figure: f"Test accuracy: {figure.medians()} (medians).", trained=False,
        ),
        Claim(
            "learned", "App. A.4", "the network with the small initialization is trained well beyond chance",
            "test accuracy from the small initialization", at_least(0.3),
            lambda figure: PerSeed(figure.accuracies["small"]),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Both initializations."""
        return {name: resnet_from(name, scale) for name in cls.titles}

    @cached_property
    def accuracies(self) -> Available[np.ndarray]:
        """Test accuracies at the end, in each seed."""
        return self.runs.each(lambda name, run: run.curves["test_accuracy"][:, -1])

    def medians(self) -> str:
        """The medians of the accuracies in words."""
        return ", ".join(f"{title} {np.median(self.accuracies[name]):.1%}" for name, title in self.titles.items())

    def draw(self) -> Drawing:
        """Loss and test accuracy against time."""
        with look():
            figure = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, right = figure.subplots(1, 2)
            laws = "N(0, 1/m_out³)", "Glorot normal"
            for (name, title), law, colour in zip(self.titles.items(), laws, COLOURS, strict=False):
                run = self.runs[name]
                for axes, curve in ((left, run.loss), (right, run.curves["test_accuracy"])):
                    axes.plot(run.recorded, curve.T, color=colour, linewidth=0.6, alpha=0.5)
                    axes.plot(run.recorded, np.nanmedian(curve, axis=0), color=colour, label=f"{title}, {law}")
            left.set(xlabel="step", ylabel="training loss (cross-entropy)")
            right.set(xlabel="step", ylabel="test accuracy", ylim=(0, 1))
            right.axhline(0.1, color=COLOURS[6], linestyle=":", linewidth=0.8, label="chance")
            figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return Drawing(
            caption="Training loss and test accuracy from both initializations; thick: median of "
            f"{plural(self.seeds, 'seed')}. At the end: {self.medians()} (median test accuracy).",
            pictures={"": figure},
            data={"seed": np.arange(self.seeds)}
            | {f"test_accuracy_{name}": values for name, values in self.accuracies.items()},
        )
