"""Additional question: does condensation need as few as 500 images? From 100 to 5000."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Images
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...optimizers import GD
from ...prediction._kernels import cosine_to_v1, dynamics
from ...theory import KernelDynamics
from .._claims import Claim, PerSeed, at_least, exactly, question
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .experiments import CHANNELS, GD_RATE, QUICK_GD_RATE, QUICK_GD_SAMPLES, SAMPLES, descent

NUMBERS = (100, 500, 5000)
FASTER = 4  # a larger step on the mean loss: at 5000 images the captioned one takes long
QUICK_CHANNELS, QUICK_FASTER, QUICK_STEPS = 6, 4, 16


def _claims(n: int) -> "tuple[Claim[Samples], ...]":
    return (
        question(
            f"{n}", f"with {n} images the kernels condense on one line", "lines of kernels at the end", exactly(1),
            lambda figure: figure.counts[f"{n}"].lines_found(),
        ),
        question(
            f"{n}-v1", f"with {n} images the filters condense on v1", "median |cos| with v1 at the end",
            at_least(0.99), lambda figure: PerSeed(figure.turned[f"{n}"][:, -1]),
        ),
        question(
            f"{n}-gap", f"with {n} images Z has a gap of at least 30%", "(λ1 - λ2) / λ1", at_least(0.3),
            lambda figure: PerSeed([z.gap for z in figure.dynamics[f"{n}"]]), trained=False,
        ),
    )  # fmt: skip


class Samples(PaperFigure):
    """Direction of filters against time, and the spectrum of Z, for each number of images."""

    name, title, paper = "cnn-samples", "Does it need only 500 images?", "CNN"
    chosen = (
        f"steps of {FASTER * SAMPLES * GD_RATE:g} on the mean loss, {FASTER} times Fig. 2's and so fewer; at the quick "
        "scale fewer channels: at leading order filters do not influence each other"
    )
    has_variants = False
    titles: ClassVar = {f"{n}": f"{n} images" for n in NUMBERS}
    claims = (*(claim for same in zip(*map(_claims, NUMBERS), strict=True) for claim in same),)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 2's network on so many images, at the same rate on the mean loss."""
        paper = scale == "paper"
        base = descent(scale, channels=CHANNELS if paper else QUICK_CHANNELS)
        mean_rate = GD_RATE * SAMPLES * FASTER if paper else QUICK_GD_RATE * QUICK_GD_SAMPLES * QUICK_FASTER
        steps = base.steps // FASTER if paper else QUICK_STEPS
        images = {n: Images("cifar10", n=n) for n in NUMBERS}
        return {f"{n}": base.replace(data=images[n], optimizer=GD(mean_rate / n), steps=steps) for n in NUMBERS}

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines of kernels at the last step."""
        return self.runs.each(lambda name, run: self.count(run, "conv1", int(run.saved[-1])))

    @cached_property
    def turned(self) -> Available[np.ndarray]:
        """The median |cos| of filters with v1, seeds x saved."""
        return self.runs.each(lambda name, run: cosine_to_v1(run))

    @cached_property
    def dynamics(self) -> Available[list[KernelDynamics]]:
        """The linear dynamics of each seed's images."""
        return self.runs.each(lambda name, run: [dynamics(run, k) for k in range(len(run.seeds))])

    def draw(self) -> Drawing:
        """Direction against time for each number of images, and the spectrum's first values against it."""
        rows = []
        for name, counts in self.counts.items():
            turned, gap = np.median(self.turned[name][:, -1]), np.median([z.gap for z in self.dynamics[name]])
            rows.append((name, str(counts), f"{turned:.4f}", f"{gap:.2f}", f"{np.median(counts.loss):.3f}"))
        header = ("images", "lines of kernels", "median |cos| with v1", "gap", "loss / first loss")
        return Drawing(
            caption="Fig. 2's network on 100, 500 and 5000 images of CIFAR-10; median and range over "
            f"{self.seeds} seeds. Left: filters turn to v1. Right: with more images the noise in Z falls; the leading "
            "value converges and the others fall further. Condensation does not need a small number of images.",
            pictures={"": self._picture()},
            tables=(Table("At the last step", header, tuple(rows)),),
            data=stack_columns(self.counts.each(lambda name, counts: counts.columns()), "images"),
        )

    def _picture(self) -> Figure:
        with look():
            figure = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, right = figure.subplots(1, 2)
            for (name, turned), colour in zip(self.turned.items(), COLOURS, strict=False):
                _draw_range(left, self.runs[name].saved, turned, color=colour, label=self.titles[name])
            left.set(xlabel="step", ylabel="median |cos| of filters with v1", ylim=(0, 1.02))
            left.legend(loc="lower right")
            numbers = [int(name) for name in self.dynamics]
            for k, colour in zip(range(3), COLOURS, strict=False):
                values = np.array([[z.values[k] for z in draws] for draws in self.dynamics.values()])
                label = rf"$\lambda_{k + 1}$"
                _draw_range(right, numbers, values.T, color=colour, marker="o", markersize=3, label=label)
            right.set(xlabel="images", ylabel="singular value of Z", xscale="log", ylim=(0, None))
            right.legend()
        return figure


def _draw_range(axes: Axes, places: Sequence[int] | np.ndarray, values: np.ndarray, color: str, **style: Any) -> None:
    """The median of the seeds, in a band from the least to the largest."""
    axes.fill_between(places, values.min(axis=0), values.max(axis=0), color=color, alpha=0.18, linewidth=0)
    axes.plot(places, np.median(values, axis=0), color=color, **style)
