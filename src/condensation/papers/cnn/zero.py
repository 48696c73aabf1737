"""Additional question: what if the output layer is zero at initialization?"""

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Zeros
from ...prediction._kernels import cosine_to_v1, cosines_to, dynamics, predicted_sides
from .._claims import PerSeed, at_least, exactly, question
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .experiments import descent, shallow

TURNED = 0.9  # |cos| with v1 from which on the side that a filter went to means something

LABELS = {
    "captioned": "Fig. 2, output layer N(0, 0.0001²)",
    "zero": "Fig. 2, output layer at zero",
    "dense": "Fig. 4 (tanh), output layer at zero",
}


class ZeroOutput(PaperFigure):
    """Direction and amplitude of filters against time, with and without an output layer of zeros."""

    name, title, paper = "cnn-zero", "What if the last layer starts at zero?", "CNN"
    has_variants = False
    titles: ClassVar = {"captioned": "Fig. 2", "zero": "Fig. 2 with zeros", "dense": "Fig. 4 with zeros"}
    claims = (
        question(
            "line", "Fig. 2's network with an output layer of zeros condenses on one line too",
            "lines of kernels at the end", exactly(1), lambda figure: figure.counts["zero"].lines_found(),
        ),
        question(
            "v1", "it condenses on v1", "median |cos| of filters with v1 at the end", at_least(0.99),
            lambda figure: PerSeed(figure.along_v1),
        ),
        question(
            "predicted", "each filter goes to the side of v1 that it starts on",
            "share of filters on the predicted side", at_least(0.95),
            lambda figure: PerSeed(figure.on_predicted_side(), figure.along_v1 >= TURNED),
        ),
        question(
            "dense", "Fig. 4's network (tanh) with an output layer of zeros condenses on one line too",
            "lines of kernels at the captioned epoch (quick: at the end)", exactly(1),
            lambda figure: figure.counts["dense"].lines_found(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 2's network as captioned and with zeros, and Fig. 4's with zeros."""
        fig2, fig4 = descent(scale), shallow(scale, "tanh")
        return {
            "captioned": fig2,
            "zero": fig2.replace(init=replace(fig2.init, hidden=(), output=Zeros())),
            "dense": fig4.replace(init=replace(fig4.init, output=Zeros())),
        }

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines of kernels at the last step."""
        return self.runs.each(lambda name, run: self.count(run, "conv1", int(run.saved[-1])))

    @cached_property
    def along_v1(self) -> np.ndarray:
        """For each seed the median |cos| of filters with v1 at the end, from an output layer of zeros."""
        return cosine_to_v1(self.runs["zero"])[:, -1]

    def on_predicted_side(self) -> list[float]:
        """For each seed the share of filters that went to the side of v1 that the linear dynamics predict."""
        run = self.runs["zero"]
        last = run.history("conv1", view="filter")[:, -1].astype(float)
        sides = [np.sign(cosines_to(filters, dynamics(run, k).v1)) for k, filters in enumerate(last)]
        return [float(np.mean(side == predicted_sides(run, k))) for k, side in enumerate(sides)]

    def draw(self) -> Drawing:
        """Direction and amplitude against time, with and without zeros."""
        filters = {name: self.runs[name].history("conv1", view="filter") for name in ("captioned", "zero")}
        sizes = {name: np.linalg.norm(each.astype(float), axis=-1) for name, each in filters.items()}
        ratio = np.median(sizes["zero"][:, -1]) / np.median(sizes["captioned"][:, -1])
        counts = self.counts.renamed(LABELS)
        rows = tuple((title, str(each), f"{np.median(each.loss):.4f}") for title, each in counts.items())
        return Drawing(
            caption="Fig. 2's network with its captioned initialization and with an output layer of zeros (thick: "
            "median of the seeds). The captioned output weights are far larger than the filters and pull them to "
            "their side at once. From zeros the filters turn by themselves and later, end on the same line, and are "
            f"{ratio:.0e} times as long.",
            pictures={"": self._picture({name: np.median(each, axis=-1) for name, each in sizes.items()})},
            tables=(Table("Kernels at the last step", ("initialization", "lines", "loss / first loss"), rows),),
            data=stack_columns(self.counts.each(lambda name, counts: counts.columns()), "start"),
        )

    def _picture(self, sizes: dict[str, np.ndarray]) -> Figure:
        with look():
            figure = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, right = figure.subplots(1, 2)
            for (name, size), colour in zip(sizes.items(), COLOURS, strict=False):
                run = self.runs[name]
                for axes, values in ((left, cosine_to_v1(run)), (right, size)):
                    axes.plot(run.saved, values.T, color=colour, linewidth=0.5, alpha=0.5)
                    axes.plot(run.saved, np.median(values, axis=0), color=colour, label=LABELS[name])
            left.set(xlabel="step", ylabel="median |cos| of filters with v1", ylim=(0, 1.02))
            right.set(xlabel="step", ylabel="median amplitude of filters", yscale="log")
            figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure
