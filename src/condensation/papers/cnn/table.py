"""CNN Sec. 4 and Fig. 12: what v1 and the spectral gap are on real images, over 50 draws of 500."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Images
from ...drawing import draw_spectrum, look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...losses import Loss
from ...seeds import Seed
from ...theory import KernelDynamics, patch_matrix
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .._trainings import require
from .experiments import GD_KERNEL, GD_LOSS, SAMPLES

DRAWS, MANY, SETS = 50, 1000, 2000  # draws of the paper, many more, and sets of the paper's number out of these
TAIL, DIGITS = 0.025, 4  # of a range that holds 95%, and digits of the paper's numbers
PAPER = ((0.9891, 0.0349), (0.9982, 0.0009), (0.9992, 0.0003))  # mean and spread of the parts of v1 against 1
COLOURS_IN = ("red", "green", "blue")
LABELS = {"integer": "integer labels (they give the paper's numbers)", "residual": "the residual that Fig. 2 trains on"}


def _mean(k: int) -> "Claim[ImageTable]":
    colour, (mean, spread) = COLOURS_IN[k], PAPER[k]
    return Claim(
        f"{colour}-mean", "Sec. 4",
        f"the {colour} part of v1 against 1 is {mean} on average over 50 draws (integer labels; within its stated "
        f"spread of {spread})",
        f"|mean over {DRAWS} draws - {mean}|", at_most(spread),
        lambda figure: PerSeed([abs(figure.each("integer", "channel_cosines")[:, k].mean() - mean)]), trained=False,
    )  # fmt: skip


def _spread(k: int) -> "Claim[ImageTable]":
    colour, (_, spread) = COLOURS_IN[k], PAPER[k]
    return Claim(
        f"{colour}-spread", "Sec. 4",
        f"the {colour} part of v1 against 1 has a spread of {spread} over 50 draws (integer labels; read as: the "
        "standard deviation, which is one of those that 50 draws give)",
        f"the smaller of two shares of {SETS} sets of {DRAWS} out of {MANY} draws: a spread (to {DIGITS} digits) of at "
        f"most {spread}, and of at least {spread}", at_least(TAIL),
        lambda figure: PerSeed([figure.tail_of_spread(k)]), note=lambda figure: figure.range_of_spread(k),
        trained=False,
    )  # fmt: skip


def _ones(labels: str) -> "Claim[ImageTable]":
    return Claim(
        f"{labels}-ones", "Sec. 4", f"{LABELS[labels]}: the parts of v1 are nearly the kernel of ones",
        "smallest of the three parts against 1", at_least(0.95),
        lambda figure: PerSeed(figure.each(labels, "channel_cosines").min(axis=1)), trained=False,
    )  # fmt: skip


def _kernel(labels: str, text: str) -> "Claim[ImageTable]":
    return Claim(
        f"{labels}-kernel", "ours, of Sec. 4", text, "|bias part| of v1", at_most(0.5),
        lambda figure: PerSeed(figure.each(labels, "bias_part")),
        lambda figure: figure._mostly_bias() if labels == "integer" else "", trained=False, ours=True,
    )  # fmt: skip


def _gap(labels: str, where: str, images: str = "") -> "Claim[Draws]":
    return Claim(
        f"{labels}-gap", where, f"{images}{LABELS[labels]}: there is a clear spectral gap (read as: at least 30%)",
        "(λ1 - λ2) / λ1", at_least(0.3), lambda figure: PerSeed(figure.each(labels, "gap")), trained=False,
    )  # fmt: skip


class Draws(PaperFigure):
    """The matrix Z in draws of images, with integer labels and with the residual of Fig. 2's loss, without training."""

    paper, has_variants = "CNN", False
    data: ClassVar[str]

    @classmethod
    def images(cls, labels: str) -> Images:
        """The images that are drawn, with their labels."""
        return Images(cls.data, n=SAMPLES, target="index" if labels == "integer" else "one_hot")

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """None; but the images must be there."""
        require(cls.images("integer"))
        return {}

    @cached_property
    def draws(self) -> dict[str, list[KernelDynamics]]:
        """The linear dynamics of each draw, by the labels."""
        losses = {"integer": Loss(), "residual": Loss(GD_LOSS.name)}
        return {
            labels: [KernelDynamics.of(*images.draw(Seed(k, k)), GD_KERNEL, losses[labels]) for k in range(DRAWS)]
            for labels, images in ((labels, self.images(labels)) for labels in LABELS)
        }

    def each(self, labels: str, quantity: str) -> np.ndarray:
        """A quantity of Z in each draw, by its name in ``KernelDynamics``."""
        return np.array([getattr(z, quantity) for z in self.draws[labels]])

    def settings(self) -> dict[str, str]:
        """What is drawn, in words."""
        integer, residual = (self.images(labels).describe() for labels in LABELS)
        return {
            "kernels": f"{GD_KERNEL} x {GD_KERNEL}",
            "integer labels": f"{integer}; one output, residual y",
            "residual of Fig. 2": f"{residual}; ten outputs, (one-hot - 1/10)/10, stacked",
        }


class ImageTable(Draws):
    """The direction v1: its parts, its bias, its gap."""

    name, title, data = "cnn-table", "CNN Sec. 4: the direction v1 on CIFAR-10", "cifar10"
    claims = (
        *map(_mean, range(3)),
        *map(_spread, range(3)),
        *map(_ones, LABELS),
        _kernel("integer", "the kernels, not the bias, are where filters condense to (integer labels)"),
        _kernel("residual", "the same with the residual that Fig. 2 trains on"),
        *(_gap(labels, "Assumption 4") for labels in LABELS),
        Claim(
            "rank", "Sec. 4", "Z has as many singular values as it can: C₀ m² + 1 = 28",
            "rank of Z (residual of Fig. 2)", exactly(28),
            lambda figure: PerSeed(figure.each("residual", "rank")), trained=False,
        ),
    )  # fmt: skip

    @cached_property
    def spreads(self) -> np.ndarray:
        """The spread of the parts of v1 in each set of 50 draws with integer labels, sets x colours."""
        images = self.images("integer")
        parts = np.array([_parts_of_v1(*images.draw(Seed(k, k))) for k in range(MANY)])
        return parts[np.random.default_rng(0).integers(0, MANY, (SETS, DRAWS))].std(axis=1)

    def tail_of_spread(self, k: int) -> float:
        """The smaller of the shares of sets whose spread is at most, and at least, the paper's."""
        spreads, paper = self.spreads[:, k].round(DIGITS), PAPER[k][1]
        return float(min((spreads <= paper).mean(), (spreads >= paper).mean()))

    def range_of_spread(self, k: int) -> str:
        """The middle of the spreads of a colour and where 95% of them are."""
        low, middle, high = np.quantile(self.spreads[:, k], (TAIL, 0.5, 1 - TAIL))
        return f"Sets of {DRAWS} draws have a spread of {middle:.4f} (median; 95%: {low:.4f} to {high:.4f})."

    def _mostly_bias(self) -> str:
        mean, part = self.images("integer").draw(Seed(0, 0))[1].mean(), np.median(self.each("integer", "bias_part"))
        return (
            f"Class numbers from 0 to 9 have a mean of about {mean:.1f}: Z is mostly its bias column, and the bias "
            f"entry of v1 is {part:.2f}. The paper's table looks at the rest."
        )

    def draw(self) -> Drawing:
        """Both matrices: the parts of v1 over the draws, and v1 itself."""
        rows = []
        with look():
            figure = Figure(figsize=(PAGE, 2.6), layout="constrained")
            left, *kernels, right = figure.subplots(1, 4, width_ratios=(1.5, 1, 1, 1.4))
            titles = ("(b) v1, integer", "(c) v1, Fig. 2")
            for k, (labels, text) in enumerate(LABELS.items()):
                parts, bias = self.each(labels, "channel_cosines"), self.each(labels, "bias_part")
                mean, low, high = parts.mean(axis=0), parts.min(axis=0), parts.max(axis=0)
                spreads = (f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, parts.std(axis=0), strict=True))
                rows.append((text, *spreads, f"{bias.mean():.2f}", f"{self.each(labels, 'gap').mean():.2f}"))
                left.errorbar(
                    np.arange(3) + 0.24 * k - 0.12, 1 - mean, [high - mean, mean - low], fmt="o", color=COLOURS[k],
                    markersize=3, linewidth=0.8, label=text,
                )  # fmt: skip
                right.hist(bias, bins=np.linspace(0, 1, 41), color=COLOURS[k])
                _draw_filter(kernels[k], self.draws[labels][0].v1, titles[k])
            left.plot(np.arange(3), 1 - np.array(PAPER)[:, 0], "x", color=COLOURS[2], label="the paper's means")
            left.set(yscale="log", xlim=(-0.4, 2.4), ylabel="1 - cosine with 1", title="(a) mean and range of 50 draws")
            left.set_xticks(range(3), COLOURS_IN)
            right.set(xlabel="|bias part| of v1", ylabel="draws", title="(d) the bias takes its share")
            figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        rows.append(("the paper", *(f"{mean} ± {spread}" for mean, spread in PAPER), "", ""))
        many = (
            f"± {', '.join(f'{q:.4f}' for q in np.quantile(each, (TAIL, 0.5, 1 - TAIL)))}" for each in self.spreads.T
        )
        rows.append(
            (f"integer labels, sets of {DRAWS} of {MANY} draws: 2.5%, 50%, 97.5% of the spreads", *many, "", "")
        )
        header = ("labels", *COLOURS_IN, "bias part", "gap")
        return Drawing(
            caption=f"The leading singular vector v1 of Z over {DRAWS} draws of {SAMPLES} images of CIFAR-10, with the "
            "class numbers as labels and with the residual that Fig. 2 trains on. (b), (c): v1 of the first draw as "
            "an image of 3 x 3 pixels by input channel.",
            pictures={"": figure},
            tables=(
                Table("Parts of v1 against 1 (mean ± standard deviation), bias part and gap", header, tuple(rows)),
            ),
            data=self.columns_of_claims(),
            settings_extra=self.settings(),
        )


def _parts_of_v1(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The parts of v1 against 1 from ZᵀZ, which has the same v1 and is small: the residual at zero is the label."""
    z = patch_matrix(x, y, GD_KERNEL)
    return KernelDynamics(z.T @ z, x.shape[1]).channel_cosines


def _draw_filter(axes: Axes, v: np.ndarray, title: str) -> None:
    """A filter as small squares of its three input channels and the bias."""
    parts = v[:-1].reshape(3, GD_KERNEL, GD_KERNEL)
    padded = np.pad(parts, ((0, 0), (0, 1), (0, 2)), constant_values=np.nan).reshape(-1, GD_KERNEL + 2)[:-1]
    middles = np.arange(3) * (GD_KERNEL + 1) + GD_KERNEL // 2
    padded[middles[1], -1] = v[-1]
    axes.imshow(padded, cmap="PuOr_r", vmin=-np.abs(v).max(), vmax=np.abs(v).max())
    for colour, middle in zip(COLOURS_IN, middles, strict=True):
        axes.annotate(colour, (-0.8, middle), ha="right", va="center", fontsize=7, annotation_clip=False)
    axes.annotate("bias", (GD_KERNEL + 1, GD_KERNEL + 2.2 + GD_KERNEL // 2), ha="center", va="top", fontsize=7)
    axes.set_title(title)
    axes.axis("off")


class Fig12(Draws):
    """The spectrum of Z on MNIST."""

    name, title, data = "cnn-fig12", "CNN Fig. 12: the spectrum of Z on MNIST", "mnist"
    claims = tuple(_gap(labels, "Fig. 12", "MNIST, ") for labels in LABELS)
    chosen = "the caption is not in the text: both labels are shown"

    def draw(self) -> Drawing:
        """The spectrum with both labels."""
        with look():
            figure = Figure(figsize=(PAGE * 0.75, 2.3), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=True)
            draw_spectrum(self.each("integer", "values"), left, title=LABELS["integer"])
            draw_spectrum(self.each("residual", "values"), right, title=LABELS["residual"])
            right.set_ylabel("")
        return Drawing(
            caption=f"The eigenvalues of ZᵀZ on MNIST over {DRAWS} draws of {SAMPLES} images (thin) and their median.",
            pictures={"": figure}, data=self.columns_of_claims(),
            settings_extra=self.settings(),
        )  # fmt: skip
