"""FC App. A.7: simple data: a low-frequency target, MNIST, CIFAR-100."""

from functools import cached_property
from typing import ClassVar

import numpy as np

from ..._phrases import joined
from ...activations import label
from ...drawing._panels import draw_maps
from ...experiment import Experiment
from .._claims import Claim, PerSeed, at_most
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .experiments import FIG3_EPOCH, FIG3_RATES, HIGHER, LINES, fig3, low_frequency, resnet

IMAGES = {"cifar10": "CIFAR-10", "mnist": "MNIST", "cifar100": "CIFAR-100"}


def _low(name: str) -> "Claim[A7]":
    return Claim(
        f"low-{name}", "Sec. 6, App. A.7",
        f"{label(name)}: there can be fewer lines on simple data: on the low-frequency target than on Fig. 3's",
        f"lines at epoch {FIG3_EPOCH}, less those of Fig. 3: the least of the seeds", at_most(-1),
        lambda figure: figure.least_difference(f"low-{name}", f"fig3-{name}"),
        lambda figure: figure.counts_in_words(f"low-{name}", f"fig3-{name}"),
    )  # fmt: skip


def _images(data: str) -> "Claim[A7]":
    return Claim(
        data, "Sec. 6, App. A.7",
        f"ResNet18-like, x tanh x: there can be fewer lines on {IMAGES[data]} than on CIFAR-10",
        "lines where most condensed within the initial stage, less those on CIFAR-10: the least of the seeds",
        at_most(-1), lambda figure: figure.least_difference(data, "cifar10"),
        lambda figure: figure.counts_in_words(data, "cifar10"),
    )  # fmt: skip


class A7(PaperFigure):
    """Lines on simple data against those on the data of Figs. 2 and 3."""

    name, title, paper = "fc-a7", "FC App. A.7: simple data", "FC"
    chosen = "the low-frequency target, and of the images step, size and network: the text names the data only"
    titles: ClassVar = {
        **{f"low-{name}": f"low, {label(name)}" for name in FIG3_RATES},
        **{f"fig3-{name}": f"Fig. 3, {label(name)}" for name in HIGHER},
        **IMAGES,
    }
    claims = *map(_low, HIGHER), *map(_images, ("mnist", "cifar100"))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 3's network on both targets, and Fig. 2's x tanh x network on three sets of images."""
        return {
            **{f"low-{name}": low_frequency(name) for name in FIG3_RATES},
            **{f"fig3-{name}": fig3(name) for name in HIGHER},
            **{data: resnet("x_tanh", scale, data) for data in IMAGES},
        }

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines at the captioned epoch, on images where the layer is most condensed."""
        return self.runs.each(lambda name, run: self.count(run, "dense1", None if name in IMAGES else FIG3_EPOCH))

    def least_difference(self, simple: str, other: str) -> PerSeed:
        """Lines on simple data less those on other data, in the seed with the least, of those condensed on both."""
        low, high = self.counts[simple], self.counts[other]
        difference = (low.lines - high.lines)[low.condensed & high.condensed]
        return PerSeed([difference.min(initial=np.inf)], decided=[len(difference) > 0])

    def counts_in_words(self, simple: str, other: str) -> str:
        """The lines on two sets of data."""
        both = self.counts[simple], self.counts[other]
        lines, others = (f"{joined(each.lines, 'g')} (median {np.median(each.lines):g})" for each in both)
        lost = sum(int((~counts.condensed).sum()) for counts in both)
        return f"Lines of the seeds: {lines}; {self.titles[other]}: {others}; {lost} of these are not condensed."

    def draw(self) -> Drawing:
        """Heat maps and counts on the low-frequency target and on images."""
        low = {f"low-{name}": f"low\n{label(name)}" for name in FIG3_RATES}
        images = {data: f"{title}\n{label('x_tanh')}" for data, title in IMAGES.items()}
        expected = {low[f"low-{name}"]: LINES[name] for name in FIG3_RATES}
        expected |= dict.fromkeys(images.values(), LINES["x_tanh"])
        pairs = {name: (self.counts[f"low-{name}"], self.counts[f"fig3-{name}"]) for name in HIGHER}
        rows = (
            (label(name), *(" ".join(f"{count:g}" for count in each.lines) for each in pair))
            for name, pair in pairs.items()
        )
        header = "activation", "low frequency", "Fig. 3's target"
        return Drawing(
            caption=f"The networks of Fig. 3 on the low-frequency target at epoch {FIG3_EPOCH}, and that of Fig. 2 "
            "with x tanh x on images: cosine similarity (top, median seed) and lines over the seeds (bottom).",
            pictures={"": draw_maps(self.counts.renamed(low | images), expected)},
            tables=(Table(f"Lines at epoch {FIG3_EPOCH}, seed by seed", header, tuple(rows)),),
            data=stack_columns(self.counts.each(lambda _, counts: counts.columns()), "experiment"),
        )
