"""CNN Sec. 4: dense against convolutional networks: the rank of Z, its gap, and which units condense.

A dense network is a convolution whose kernel is the whole image: its Z has one position, so a row for each output.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._phrases import joined, least_to_most
from ...data import Images
from ...drawing import draw_bar, draw_similarity, look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...measure import LineHistory, count_lines, share_along
from ...networks import Conv, Dense
from ...optimizers import GD
from ...saving import At
from ...seeds import as_seeds
from ...theory import KernelDynamics
from .._claims import Claim, PerSeed, Rule, at_least, at_most, exactly
from .._counts import median_seed, relative_loss, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table, in_brackets
from .experiments import CHANNELS, CROSS_ENTROPY, GD_KERNEL
from .fig1 import draw_filters
from .reset import WHEN, column_looked_at

SETS, CLASSES, NEURONS, STD, DRAWS = "cifar10", (0, 1), 50, 1e-6, 10
IMAGES = {"quick": 200, "paper": 500}
QUICK_CHANNELS = 16
FINER = {"quick": 1, "paper": 10}  # so many times as many and as short steps
# learning rate on the mean loss, first and last saved step after the start, at the quick scale
PACES = {"dense": (0.065, 15, 33), "cnn": (0.021, 15, 33), "outputs": (0.2, 18, 42)}
BETWEEN = 3
LEAST_GAP = 0.3  # by 10 / lambda_1 the second direction is then behind by a factor of exp(3) = 20
CHANNELS_IN = 3
IN_DRAWS = "in each draw of images"
RANK = CHANNELS_IN * GD_KERNEL**2 + 1


def _claim(
    network: str, part: str, key: str, text: str, quantity: str, rule: Rule, where: str = "Sec. 4", why: Any = ""
) -> "Claim[DenseAgainstConv]":
    """A claim on the matrix Z of a network (rank, gap), or on its trained units (lines, along)."""
    return Claim(
        key, where, text, quantity, rule, lambda figure: figure.of_network(network, part), why,
        trained=part in ("lines", "along"), ours=network == "outputs",
    )  # fmt: skip


class DenseAgainstConv(PaperFigure):
    """Spectra of Z, similarity of the units, and the directions that are predicted and found."""

    name, title, paper = "cnn-dense", "CNN Sec. 4: dense against convolutional networks", "CNN"
    chosen = "all settings: the paper compares the two in theory only"
    titles: ClassVar = {
        "dense": "dense, one output", "cnn": "convolutional, one output", "outputs": "dense, ten outputs",
    }  # fmt: skip
    claims = (
        _claim(
            "cnn", "rank", "rank-bound", "for a convolutional network the rank of Z is at most min(W₁H₁, C₀m² + 1) = "
            f"{RANK} (three channels, m = 3)", f"rank of Z {IN_DRAWS}", at_most(RANK),
        ),
        _claim(
            "cnn", "rank", "rank-full", "and real images reach it: all singular values are above zero",
            f"rank of Z {IN_DRAWS}", exactly(RANK), why=lambda figure: figure._balanced_by_chance(),
        ),
        _claim(
            "dense", "rank", "rank-one", "for a dense two-layer network Z degenerates to the vector z: its rank is 1",
            f"rank of the dense network's Z {IN_DRAWS}", exactly(1),
        ),
        _claim(
            "dense", "rank-zero", "rank-zero", "and even 0 if z = 0", "rank of the dense network's Z where each "
            "image of a draw has both labels, so that z = 0", exactly(0),
        ),
        _claim(
            "cnn", "gap", "gap", "the convolutional network's Z has a gap between its first two singular values too",
            f"1 - λ₂/λ₁ {IN_DRAWS} (from {LEAST_GAP:g} on, v₂ is 20 times behind v₁ after 10/λ₁)",
            at_least(LEAST_GAP), "Sec. 4, Assumption 4",
        ),
        _claim(
            "dense", "lines", "neurons", "in a dense network the neurons of a layer condense: they come to one line",
            f"lines of neurons {WHEN}", exactly(1),
        ),
        _claim(
            "dense", "along", "neurons-z", "the neurons' line is that of z",
            f"share of the neurons' norm along z (with the mean label for the bias) {WHEN}", at_least(0.99),
        ),
        _claim(
            "cnn", "lines", "kernels", "in a convolutional network the kernels of a layer condense: they come to one "
            "line", f"lines of kernels {WHEN}", exactly(1),
        ),
        _claim(
            "cnn", "along", "filters-v1", "the filters' line is that of v₁ of Z",
            f"share of the filters' norm along v₁ {WHEN}", at_least(0.99), "Sec. 4, Theorem 1",
        ),
        _claim(
            "outputs", "rank", "outputs-rank", "taken beyond its one output: the rank of a dense network's Z is at "
            "most 1 with ten outputs too", f"rank of Z with ten classes and cross-entropy {IN_DRAWS}", at_most(1),
            why=lambda figure: figure._a_row_a_class(),
        ),
        _claim(
            "outputs", "gap", "outputs-gap", "taken beyond its one output: the gap of a dense network's Z is there "
            "with ten outputs too", f"1 - λ₂/λ₁ with ten classes and cross-entropy {IN_DRAWS}", at_least(LEAST_GAP),
        ),
        _claim(
            "outputs", "lines", "outputs-neurons", "with ten outputs the neurons of a dense network come to one line "
            "too", f"lines of neurons {WHEN}", exactly(1),
        ),
        _claim(
            "outputs", "along", "outputs-v1", "with ten outputs the neurons' line is that of v₁ of Z",
            f"share of the neurons' norm along v₁ {WHEN}", at_least(0.99),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """A dense and a convolutional network on the same images of two classes, and a dense one with ten outputs."""
        two = Images(SETS, n=IMAGES[scale], classes=CLASSES, target="sign")
        ten = Images(SETS, n=IMAGES[scale], flat=True)
        pixels, law = ten.input_shape[0], Normal(STD)
        conv = Conv(two.shape, (CHANNELS if scale == "paper" else QUICK_CHANNELS,), GD_KERNEL, 1)
        parts = {
            "dense": (Dense((pixels, NEURONS, 1)), Init(law), replace(two, flat=True), Loss()),
            "cnn": (conv, Init(law, convolution=law), two, Loss()),
            "outputs": (Dense((pixels, NEURONS, 10)), Init(law), ten, CROSS_ENTROPY),
        }
        return {name: _experiment(name, FINER[scale], *each) for name, each in parts.items()}

    @cached_property
    def draws(self) -> Available[list[KernelDynamics]]:
        """Z in ten draws of images, or in as many as were trained on, whose draws are the first."""
        counts = self.runs.each(lambda name, run: range(max(DRAWS, len(run.seeds))))
        return counts.each(lambda name, draws: [_dynamics(self.runs[name].experiment, k) for k in draws])

    @cached_property
    def columns(self) -> Available[dict[str, np.ndarray]]:
        """What is told of Z, a row for each draw of images."""
        return self.draws.each(lambda name, draws: _columns(draws))

    def units(self, name: str, view: str | None = None) -> Float[np.ndarray, "seeds units inputs"]:
        """The first layer's units of each seed, where it is looked at; of a convolution its filters without a view."""
        run, view = self.runs[name], view or ("filter" if name == "cnn" else None)
        return run.history(1, view=view)[np.arange(len(run.seeds)), column_looked_at(run)]

    def of_network(self, name: str, part: str) -> PerSeed:
        """The rank or gap of Z in each draw, or the number of lines or the share along v₁ in each seed."""
        if part == "rank-zero":
            both = (_dynamics(self.runs[name].experiment, k, both_labels=True) for k in range(len(self.draws[name])))
            return PerSeed([z.rank for z in both])
        if part == "lines":
            return self._lines(name, "kernel" if name == "cnn" else None)
        return PerSeed(self.along[name] if part == "along" else self.columns[name][part])

    def _lines(self, name: str, view: str | None) -> PerSeed:
        counted = self._counted(name, view)
        return PerSeed(counted.lines[:, 0], counted.condensed[:, 0])

    def _counted(self, name: str, view: str | None = None) -> LineHistory:
        return count_lines(self.units(name, view)[:, None], threshold=self.variant.threshold)

    @cached_property
    def along(self) -> Available[np.ndarray]:
        """For each seed the share of the units' norm along v₁ of its own Z."""
        pairs = self.runs.each(lambda name, run: zip(self.units(name), self.draws[name], strict=False))
        return pairs.each(lambda name, each: np.array([share_along(units, z.v1) for units, z in each]))

    def _balanced_by_chance(self) -> str:
        ranks, data = self.columns["cnn"]["rank"], self.runs["cnn"].experiment.data
        zero = sum(float(np.mean(data.draw(seed)[1])) == 0 for seed in as_seeds(len(ranks)))
        return (
            f"The rank is {least_to_most(ranks)}; in {zero} of {len(ranks)} draws the mean label is exactly zero, and "
            "with it the column of the bias."
        )

    def _a_row_a_class(self) -> str:
        ten = self.columns["outputs"]
        return (
            "With ten outputs Z has ten rows, one for each class; the residuals of a sample (y - 1/10) add up to zero, "
            f"and the rank is {least_to_most(ten['rank'])}. A single line then needs a gap: here 1 - λ₂/λ₁ is "
            f"{ten['gap'].min():.2f} to {ten['gap'].max():.2f}."
        )

    def draw(self) -> Drawing:
        """Spectra, heat maps, and the directions as pictures."""
        return Drawing(
            caption=f"Top: singular values of Z over the largest, median and range of {len(self.draws['cnn'])} draws "
            f"of images; cosine similarity of units {WHEN} (median seed). Bottom, as pictures in which grey is zero: "
            "the direction that the images predict, and the mean of the units, each turned to its side; under it the "
            "|cos| of the two, bias included.",
            pictures={"": _draw(self)}, tables=(_draw_table(self), _seed_table(self)),
            data=stack_columns(self.columns, "network"),
        )  # fmt: skip


def _experiment(name: str, finer: int, network: Dense | Conv, init: Init, data: Images, loss: Loss) -> Experiment:
    rate, first, last = PACES[name]
    saved = At(tuple(finer * step for step in range(first, last + 1, BETWEEN)))
    return Experiment(
        network, init, data, GD(rate / finer), finer * last, loss, save=saved, record=saved, dtype="float32",
        kept_layers=(network.layers[0].name,),
    )  # fmt: skip


def _dynamics(experiment: Experiment, k: int, both_labels: bool = False) -> KernelDynamics:
    """Z of a draw of images; of flat ones that of a dense network, whose kernel is the whole image.

    With both labels, each image stands there twice, with y and with -y.
    """
    data = experiment.data
    assert isinstance(data, Images)
    x, y = data.draw(as_seeds(k + 1)[k])
    kernel = data.shape[1] if data.flat else GD_KERNEL
    x, y = (np.concatenate([x, x]), np.concatenate([y, -y])) if both_labels else (x, y)
    return KernelDynamics.of(x.reshape(-1, *data.shape), y, kernel, experiment.loss)


def _columns(draws: list[KernelDynamics]) -> dict[str, np.ndarray]:
    return {
        "seed": np.arange(len(draws)),
        "rank": np.array([z.rank for z in draws]),
        "gap": np.array([z.gap for z in draws]),
        "lambda1": np.array([z.values[0] for z in draws]),
        "lambda2": np.array([z.values[1] if len(z.values) > 1 else 0.0 for z in draws]),
        "bias_part": np.array([z.bias_part for z in draws]),
        "constant": np.array([np.abs(z.channel_cosines).min() for z in draws]),
    }


def _draw(figure: DenseAgainstConv) -> Figure:
    """Spectra and heat maps above, directions as pictures below."""
    panels = (
        ("dense", None, "(b) neurons, dense", "(d) $z$ of the images", "(e) neurons found"),
        ("cnn", "kernel", "(c) kernels, convolutional", "(f) $v_1$ of $Z$", "(g) filters found"),
    )
    with look():
        page = Figure(figsize=(PAGE, 4.6), layout="constrained")
        grid = page.add_gridspec(2, 12, height_ratios=(1.25, 1))
        spectra, *maps = (page.add_subplot(grid[0, k : k + 4]) for k in (0, 4, 8))
        below = [page.add_subplot(grid[1, k : k + 3]) for k in (0, 3, 6, 9)]
        _draw_spectra(spectra, figure)
        for k, (name, view, title, *below_titles) in enumerate(panels):
            counted = figure._counted(name)
            seed = median_seed(counted.lines[:, 0], counted.k_eff[:, 0])
            draw_similarity(figure.units(name, view)[seed], maps[k], title=title, bar=False)
            maps[k].set(xlabel="", ylabel="", xticks=[], yticks=[])
            _draw_pair(below[2 * k :], figure.draws[name][seed], figure.units(name)[seed], below_titles)
        draw_bar(maps[1].images[0], maps)
        page.legend(*spectra.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return page


def _draw_spectra(axes: Axes, figure: DenseAgainstConv) -> None:
    """Singular values over the largest: median and range over the draws."""
    for colour, (name, draws) in zip(COLOURS, figure.draws.items(), strict=False):
        shares = np.stack([(z.values / z.values[0])[: figure.columns[name]["rank"].max()] for z in draws])
        places = np.arange(1, shares.shape[1] + 1)
        style = {"marker": "s", "linestyle": "", "markersize": 6, "markerfacecolor": "none", "zorder": 3}
        style = style if len(places) == 1 else {"marker": "o", "markersize": 2}
        axes.fill_between(places, shares.min(axis=0), shares.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        axes.plot(places, np.median(shares, axis=0), color=colour, linewidth=0.9, label=figure.titles[name], **style)
    axes.set(yscale="log", xlabel="$k$", ylabel="$\\lambda_k / \\lambda_1$", title="(a) singular values of $Z$")
    axes.axvline(RANK, color=FAINT, linestyle=":", linewidth=0.8)
    axes.annotate(
        f"bound {RANK}", (RANK, 1), xytext=(-3, 0), textcoords="offset points", ha="right", va="center", fontsize=7,
        color=FAINT,
    )  # fmt: skip


def _draw_pair(pair: list[Axes], z: KernelDynamics, units: np.ndarray, titles: Sequence[str]) -> None:
    """The direction that the images predict, and the mean of the units, each turned to its side."""
    predicted = z.v1 if len(z.z) > 1 else z.z[0] / np.linalg.norm(z.z[0])  # a single row is the direction itself
    units = units.astype(float)
    mean = np.mean(units * np.sign(units @ predicted)[:, None], axis=0)
    for axes, vector, title in zip(pair, (predicted, mean), titles, strict=False):
        draw_filters(axes, vector[None], 1, title)
    pair[1].set_xlabel(f"|cos| {abs(mean @ predicted / np.linalg.norm(mean)):.4f}", fontsize=7)


def _draw_table(figure: DenseAgainstConv) -> Table:
    """Ranks and gaps over the draws."""
    rows = []
    for name, draws in figure.draws.items():
        parts = (figure.columns[name][part] for part in ("gap", "lambda1", "bias_part", "constant"))
        spans = (f"{np.median(part):.4g} ({part.min():.4g} to {part.max():.4g})" for part in parts)
        shape = " x ".join(map(str, draws[0].z.shape))
        rows.append((figure.titles[name], shape, joined(figure.columns[name]["rank"]), *spans))
    header = (
        "network", "Z", "rank in each draw", "gap 1 - λ₂/λ₁", "λ₁", "|bias part| of v₁",
        "least |cos| of a colour's part of v₁ with 1",
    )  # fmt: skip
    return Table("Z over the draws of images: median and range", header, tuple(rows))


def _seed_table(figure: DenseAgainstConv) -> Table:
    """Lines and directions of the trained networks."""
    rows = []
    for name, units in (("dense", "neurons"), ("cnn", "kernels"), ("cnn", "filters"), ("outputs", "neurons")):
        run, view = figure.runs[name], "kernel" if units == "kernels" else None
        along = "" if view else joined(figure.along[name], ".4f")
        losses = joined(relative_loss(run)[np.arange(len(run.seeds)), column_looked_at(run)], ".3f")
        rows.append((f"{figure.titles[name]}: {units}", in_brackets(figure._lines(name, view)), along, losses))
    header = ("units", "lines (in brackets: not condensed)", "share of the norm along z or v₁", "L/L₀ there")
    return Table("The trained networks, seed by seed", header, tuple(rows))
