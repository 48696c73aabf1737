"""CNN Sec. 4: dense against convolutional networks: the rank of Z, its gap, and which units condense.

A dense network is a convolution whose kernel is the whole image: its Z has one position, so a row for each output.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Images
from ...drawing import draw_bar, draw_similarity, look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...measure import count_lines, share_along
from ...networks import Conv, Dense
from ...optimizers import GD
from ...runs import Trajectory
from ...saving import At
from ...seeds import Seed, as_seeds
from ...theory import patch_matrix, residual_at_zero
from ...theory._kernels import RANK as ROUNDING
from ..claims import Claim, Rule, Seeds, Statement
from ..counts import median_seed, relative_loss, stack_columns
from ..lab import Lab
from ..recipe import Findings, Recipe, Runs, Table
from ..variant import NotRun, Variant
from .experiments import CHANNELS, CROSS_ENTROPY, GD_KERNEL
from .reset import WHEN, column_looked_at

NAME = "cnn-dense"
SETS, CLASSES, NEURONS, STD, DRAWS = "cifar10", (0, 1), 50, 1e-6, 10
IMAGES = {"quick": 200, "paper": 500}
QUICK_CHANNELS = 16
FINER = {"quick": 1, "paper": 10}  # so many times as many and as short steps
TITLES = {"dense": "dense, one output", "cnn": "convolutional, one output", "outputs": "dense, ten outputs"}
# learning rate on the mean loss, first and last saved step after the start, at the quick scale
PACES = {"dense": (0.065, 15, 33), "cnn": (0.021, 15, 33), "outputs": (0.2, 18, 42)}
BETWEEN = 3
LEAST_GAP = 0.3  # by 10 / lambda_1 the second direction is then behind by a factor of exp(3) = 20
CHANNELS_IN = 3
RANK = CHANNELS_IN * GD_KERNEL**2 + 1
REDUCED = (
    f"{IMAGES['quick']} images instead of {IMAGES['paper']}, {QUICK_CHANNELS} channels instead of {CHANNELS}, a tenth "
    "of the steps, ten times as long"
)

DENSE = (
    Statement(
        "cnn-dense-rank-bound",
        NAME,
        "Sec. 4",
        f"for a convolutional network the rank of Z is at most min(W₁H₁, C₀m² + 1) = {RANK} (three channels, m = 3)",
        "rank of Z in each draw of images",
        Rule("at most", RANK),
        trained=False,
        paper="CNN",
    ),
    Statement(
        "cnn-dense-rank-full",
        NAME,
        "Sec. 4",
        "and real images reach it: all singular values are above zero",
        "rank of Z in each draw of images",
        Rule("exactly", RANK),
        trained=False,
        paper="CNN",
    ),
    Statement(
        "cnn-dense-rank-one",
        NAME,
        "Sec. 4",
        "for a dense two-layer network Z degenerates to the vector z: its rank is 1",
        "rank of the dense network's Z in each draw of images",
        Rule("exactly", 1),
        trained=False,
        paper="CNN",
    ),
    Statement(
        "cnn-dense-gap",
        NAME,
        "Sec. 4, Assumption 4",
        "the convolutional network's Z has a gap between its first two singular values too",
        f"1 - λ₂/λ₁ in each draw of images (from {LEAST_GAP:g} on, v₂ is 20 times behind v₁ after 10/λ₁)",
        Rule("at least", LEAST_GAP),
        trained=False,
        paper="CNN",
    ),
    Statement(
        "cnn-dense-neurons",
        NAME,
        "Sec. 4",
        "in a dense network the neurons of a layer condense: they come to one line",
        f"lines of neurons {WHEN}",
        Rule("exactly", 1),
        paper="CNN",
    ),
    Statement(
        "cnn-dense-neurons-z",
        NAME,
        "Sec. 4",
        "the neurons' line is that of z",
        f"share of the neurons' norm along z (with the mean label for the bias) {WHEN}",
        Rule("at least", 0.99),
        paper="CNN",
    ),
    Statement(
        "cnn-dense-kernels",
        NAME,
        "Sec. 4",
        "in a convolutional network the kernels of a layer condense: they come to one line",
        f"lines of kernels {WHEN}",
        Rule("exactly", 1),
        paper="CNN",
    ),
    Statement(
        "cnn-dense-filters-v1",
        NAME,
        "Sec. 4, Theorem 1",
        "the filters' line is that of v₁ of Z",
        f"share of the filters' norm along v₁ {WHEN}",
        Rule("at least", 0.99),
        paper="CNN",
    ),
    Statement(
        "cnn-dense-outputs-rank",
        NAME,
        "Sec. 4",
        "taken beyond its one output: the rank of a dense network's Z is at most 1 with ten outputs too",
        "rank of Z with ten classes and cross-entropy in each draw of images",
        Rule("at most", 1),
        trained=False,
        paper="CNN",
        ours=True,
    ),
    Statement(
        "cnn-dense-outputs-gap",
        NAME,
        "Sec. 4",
        "taken beyond its one output: the gap of a dense network's Z is there with ten outputs too",
        "1 - λ₂/λ₁ with ten classes and cross-entropy in each draw of images",
        Rule("at least", LEAST_GAP),
        trained=False,
        paper="CNN",
        ours=True,
    ),
    Statement(
        "cnn-dense-outputs-neurons",
        NAME,
        "Sec. 4",
        "with ten outputs the neurons of a dense network come to one line too",
        f"lines of neurons {WHEN}",
        Rule("exactly", 1),
        paper="CNN",
        ours=True,
    ),
    Statement(
        "cnn-dense-outputs-v1",
        NAME,
        "Sec. 4",
        "with ten outputs the neurons' line is that of v₁ of Z",
        f"share of the neurons' norm along v₁ {WHEN}",
        Rule("at least", 0.99),
        paper="CNN",
        ours=True,
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """A dense and a convolutional network on the same images of two classes, and a dense one with ten outputs."""
    two = Images(SETS, n=IMAGES[scale], classes=CLASSES, target="sign")
    flat = Images(SETS, n=IMAGES[scale], classes=CLASSES, target="sign", flat=True)
    ten = Images(SETS, n=IMAGES[scale], flat=True)
    pixels = flat.input_shape[0]
    one, channels = Normal(STD), CHANNELS if scale == "paper" else QUICK_CHANNELS
    return {
        "dense": _experiment("dense", scale, Dense((pixels, NEURONS, 1)), Init(one), flat, Loss()),
        "cnn": _experiment(
            "cnn", scale, Conv(two.shape, (channels,), GD_KERNEL, 1), Init(one, convolution=one), two, Loss()
        ),
        "outputs": _experiment("outputs", scale, Dense((pixels, NEURONS, 10)), Init(one), ten, CROSS_ENTROPY),
    }


def _experiment(name: str, scale: str, network: Dense | Conv, start: Init, data: Images, loss: Loss) -> Experiment:
    rate, first, last = PACES[name]
    finer = FINER[scale]
    saved = At(tuple(finer * step for step in range(first, last + 1, BETWEEN)))
    return Experiment(
        network=network,
        init=start,
        data=data,
        optimizer=GD(rate / finer),
        steps=finer * last,
        loss=loss,
        save=saved,
        record=saved,
        dtype="float32",
        kept_layers=(network.layers[0].name,),
    )


@dataclass(frozen=True)
class _Spectrum:
    """What is needed of Z."""

    values: Float[np.ndarray, " values"]
    v1: Float[np.ndarray, " columns"]

    @property
    def rank(self) -> int:
        """Singular values above rounding."""
        return int((self.values > ROUNDING * self.values[0]).sum()) if self.values[0] > 0 else 0

    @property
    def gap(self) -> float:
        """The gap between the first two over the first; 1 where there is but one."""
        return float(1 - self.values[1] / self.values[0]) if len(self.values) > 1 else 1.0

    @property
    def constant(self) -> float:
        """How constant v1 is within each colour: the least |cos| of a channel's part with the vector of ones."""
        parts = self.v1[:-1].reshape(CHANNELS_IN, -1)
        return float(np.min(np.abs(parts.sum(axis=1)) / np.linalg.norm(parts, axis=1)) / parts.shape[1] ** 0.5)

    @property
    def shares(self) -> Float[np.ndarray, " values"]:
        """Singular values over the largest."""
        return self.values / self.values[0]


@lru_cache(maxsize=128)
def _spectrum(data: Images, loss: Loss, seed: Seed) -> _Spectrum:
    """Z of a draw of images; of flat ones that of a dense network, whose kernel is the whole image."""
    x, y = data.draw(seed)
    kernel = data.shape[1] if data.flat else GD_KERNEL
    z = patch_matrix(x.reshape(-1, *data.shape), residual_at_zero(y, loss), kernel)
    _, values, rows = np.linalg.svd(z, full_matrices=False)
    v1 = rows[0]
    side = z[0] @ v1 if len(z) == 1 else v1[:-1].sum()  # the vector z itself; else a positive sum of entries
    return _Spectrum(values, v1 if side >= 0 else -v1)


def _of(run: Trajectory, seeds: Sequence[Seed]) -> list[_Spectrum]:
    """Z in some draws of a run's images."""
    experiment = run.experiment
    assert isinstance(experiment.data, Images)
    return [_spectrum(experiment.data, experiment.loss, seed) for seed in seeds]


def _draws(run: Trajectory) -> list[_Spectrum]:
    """Z in ten draws of images, or in as many as were trained on."""
    return _of(run, as_seeds(max(DRAWS, len(run.seeds))))


def _units(run: Trajectory, view: str | None = None) -> Float[np.ndarray, "seeds units inputs"]:
    """The first layer's units of each seed, where it is looked at."""
    return run.history(1, view=view)[np.arange(len(run.seeds)), column_looked_at(run)]


def _own(run: Trajectory) -> Float[np.ndarray, "seeds units inputs"]:
    """Neurons of a dense network, filters of a convolutional one."""
    return _units(run, "filter" if isinstance(run.experiment.network, Conv) else None)


def _along(run: Trajectory) -> np.ndarray:
    """For each seed the share of the units' norm along v1 of its own Z."""
    return np.array([share_along(one, z.v1) for one, z in zip(_own(run), _of(run, run.seeds), strict=True)])


def _lines(units: Float[np.ndarray, "seeds units inputs"], variant: Variant) -> Seeds:
    """The number of lines, which means something where the layer is condensed."""
    found = count_lines(units[:, None], threshold=variant.threshold)
    return Seeds(found.lines[:, 0], found.condensed[:, 0])


def measure(runs: Runs, variant: Variant) -> Mapping[str, Seeds]:
    """Ranks and gaps over draws of images; lines and their directions over the seeds."""
    if not runs.keys() >= TITLES.keys():
        raise NotRun("all three networks are needed, and one of them cannot be changed so")
    draws = {name: _draws(runs[name]) for name in TITLES}
    ranks = {name: Seeds([z.rank for z in found]) for name, found in draws.items()}
    gaps = {name: Seeds([z.gap for z in found]) for name, found in draws.items()}
    return {
        "cnn-dense-rank-bound": ranks["cnn"],
        "cnn-dense-rank-full": ranks["cnn"],
        "cnn-dense-rank-one": ranks["dense"],
        "cnn-dense-gap": gaps["cnn"],
        "cnn-dense-neurons": _lines(_units(runs["dense"]), variant),
        "cnn-dense-neurons-z": Seeds(_along(runs["dense"])),
        "cnn-dense-kernels": _lines(_units(runs["cnn"], "kernel"), variant),
        "cnn-dense-filters-v1": Seeds(_along(runs["cnn"])),
        "cnn-dense-outputs-rank": ranks["outputs"],
        "cnn-dense-outputs-gap": gaps["outputs"],
        "cnn-dense-outputs-neurons": _lines(_units(runs["outputs"]), variant),
        "cnn-dense-outputs-v1": Seeds(_along(runs["outputs"])),
    }


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Spectra, heat maps, and the directions as pictures."""
    count = len(_draws(runs["cnn"]))
    n, channels = runs["cnn"].experiment.data.n, runs["cnn"].experiment.network.layers[0].weight[0]
    pixels = runs["dense"].experiment.network.layers[0].weight[1]
    rates = ", ".join(f"{rate / FINER[lab.scale]:g} ({TITLES[name]})" for name, (rate, _, _) in PACES.items())
    return Findings(
        caption=(
            f"Top: singular values of Z over the largest, median and range of {count} draws of images; cosine "
            f"similarity of the dense network's neurons and of the convolutional one's kernels {WHEN} (one output, "
            "the median seed). Bottom, as pictures in which grey is zero: what the images predict and what was "
            "found, the mean over the units, each turned to the side of the prediction; under it the |cos| of the "
            "two, bias included."
        ),
        settings={
            "networks": f"dense {pixels}-{NEURONS}-1 and {pixels}-{NEURONS}-10; {channels} channels of 3 x 3 kernels "
            f"with one output; tanh, no output bias, {runs['cnn'].experiment.dtype}",
            "data": f"{n} images of CIFAR-10 drawn at random, pixels in [-1, 1]; one output: airplanes -1, automobiles "
            "+1, the same images for both networks; ten outputs: all classes, one-hot",
            "start": f"N(0, ({STD:g})²), all layers and biases",
            "optimizer": f"gradient descent, full batch, learning rate {rates}",
            "loss": "1/(2n) sum of squares; with ten outputs cross-entropy",
            "chosen by us": "all settings: the paper compares the two in theory only. Draws in which both classes come "
            "equally often have a mean label of zero, so that the bias drops out of Z",
        },
        pictures={NAME: _draw(runs, lab.variant)},
        tables=(_draw_table(runs), _seed_table(runs, lab.variant)),
        data=stack_columns({name: _columns(_draws(runs[name])) for name in TITLES}, "network"),
        why=_why(runs, claims),
    )


def _columns(draws: list[_Spectrum]) -> dict[str, np.ndarray]:
    """A row for each draw of images."""
    return {
        "seed": np.arange(len(draws)),
        "rank": np.array([z.rank for z in draws]),
        "gap": np.array([z.gap for z in draws]),
        "lambda1": np.array([z.values[0] for z in draws]),
        "lambda2": np.array([z.values[1] if len(z.values) > 1 else 0.0 for z in draws]),
        "bias_part": np.array([abs(z.v1[-1]) for z in draws]),
        "constant": np.array([z.constant for z in draws]),
    }


def _draw(runs: Runs, variant: Variant) -> Figure:
    """Spectra and heat maps above, directions as pictures below."""
    with look():
        figure = Figure(figsize=(PAGE, 4.6), layout="constrained")
        grid = figure.add_gridspec(2, 12, height_ratios=(1.25, 1))
        spectra, neurons, kernels = (figure.add_subplot(grid[0, k : k + 4]) for k in (0, 4, 8))
        _draw_spectra(spectra, runs)
        shown = {name: _shown_seed(runs[name], variant) for name in ("dense", "cnn")}
        draw_similarity(_units(runs["dense"])[shown["dense"]], neurons, title="(b) neurons, dense", bar=False)
        draw_similarity(
            _units(runs["cnn"], "kernel")[shown["cnn"]], kernels, title="(c) kernels, convolutional", bar=False
        )
        for axes in (neurons, kernels):
            axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
        draw_bar(kernels.images[0], [neurons, kernels])
        below = [figure.add_subplot(grid[1, k : k + 3]) for k in (0, 3, 6, 9)]
        titles = ("(d) $z$ of the images", "(e) neurons found", "(f) $v_1$ of $Z$", "(g) filters found")
        _draw_pair(below[:2], runs["dense"], shown["dense"], titles[:2])
        _draw_pair(below[2:], runs["cnn"], shown["cnn"], titles[2:])
        figure.legend(*spectra.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _shown_seed(run: Trajectory, variant: Variant) -> int:
    """The median seed by number of lines."""
    found = count_lines(_own(run)[:, None], threshold=variant.threshold)
    return median_seed(found.lines[:, 0], found.k_eff[:, 0])


def _draw_spectra(axes: Axes, runs: Runs) -> None:
    """Singular values over the largest: median and range over the draws."""
    for colour, (name, title) in zip(COLOURS, TITLES.items(), strict=False):
        draws = _draws(runs[name])
        shares = np.stack([z.shares[: max(one.rank for one in draws)] for z in draws])
        places = np.arange(1, shares.shape[1] + 1)
        axes.fill_between(places, shares.min(axis=0), shares.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        single = shares.shape[1] == 1
        axes.plot(
            places,
            np.median(shares, axis=0),
            "s" if single else "o-",
            color=colour,
            markersize=6 if single else 2,
            markerfacecolor="none" if single else colour,
            linewidth=0.9,
            label=title,
            zorder=3 if single else 2,
        )
    axes.set(yscale="log", xlabel="$k$", ylabel="$\\lambda_k / \\lambda_1$", title="(a) singular values of $Z$")
    axes.axvline(RANK, color=FAINT, linestyle=":", linewidth=0.8)
    axes.annotate(
        f"bound {RANK}",
        (RANK, 1),
        xytext=(-3, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=7,
        color=FAINT,
    )


def _draw_pair(pair: list[Axes], run: Trajectory, k: int, titles: Sequence[str]) -> None:
    """The direction that the images predict, and the mean of the units found, each turned to its side."""
    predicted, units = _of(run, run.seeds)[k].v1, _own(run)[k].astype(float)
    found = np.mean(units * np.sign(units @ predicted)[:, None], axis=0)
    cosine = found @ predicted / np.linalg.norm(found)
    for axes, vector, title in zip(pair, (predicted, found), titles, strict=True):
        entries = vector[:-1]
        side = round((len(entries) / CHANNELS_IN) ** 0.5)
        picture = (entries / np.abs(entries).max()).reshape(CHANNELS_IN, side, side).transpose(1, 2, 0)
        axes.imshow(0.5 + 0.5 * picture, interpolation="nearest")
        axes.set(xticks=[], yticks=[], title=title)
        axes.spines[:].set_visible(False)
    pair[1].set_xlabel(f"|cos| {abs(cosine):.4f}", fontsize=7)


def _draw_table(runs: Runs) -> Table:
    """Ranks and gaps over the draws."""
    rows = []
    for name, title in TITLES.items():
        found = _columns(_draws(runs[name]))
        rows.append(
            (
                title,
                " x ".join(map(str, _shape(runs[name]))),
                ", ".join(map(str, found["rank"])),
                *(
                    f"{np.median(found[part]):.4g} ({found[part].min():.4g} to {found[part].max():.4g})"
                    for part in ("gap", "lambda1", "bias_part", "constant")
                ),
            )
        )
    header = (
        "network",
        "Z",
        "rank in each draw",
        "gap 1 - λ₂/λ₁",
        "λ₁",
        "|bias part| of v₁",
        "least |cos| of a colour's part of v₁ with 1",
    )
    return Table("Z over the draws of images: median and range", header, tuple(rows))


def _shape(run: Trajectory) -> tuple[int, int]:
    """Rows and columns of Z."""
    network, columns = run.experiment.network, len(_draws(run)[0].v1)
    positions = int(np.prod(network.sides()[-1])) if isinstance(network, Conv) else 1
    return network.outputs * positions, columns


def _seed_table(runs: Runs, variant: Variant) -> Table:
    """Lines and directions of the trained networks."""
    views = {
        "dense": {"neurons": None},
        "cnn": {"kernels": "kernel", "filters": "filter"},
        "outputs": {"neurons": None},
    }
    rows = []
    for name, each in views.items():
        run = runs[name]
        seeds, column = np.arange(len(run.seeds)), column_looked_at(run)
        for said, view in each.items():
            found = _lines(_units(run, view), variant)
            assert found.valid is not None
            counts = [str(c) if ok else f"({c})" for c, ok in zip(found.values, found.valid, strict=True)]
            along = ", ".join(f"{share:.4f}" for share in _along(run)) if said != "kernels" else ""
            losses = ", ".join(f"{value:.3f}" for value in relative_loss(run)[seeds, column])
            rows.append((f"{TITLES[name]}: {said}", ", ".join(counts), along, losses))
    header = ("units", "lines (in brackets: not condensed)", "share of the norm along z or v₁", "L/L₀ there")
    return Table("The trained networks, seed by seed", header, tuple(rows))


def _why(runs: Runs, claims: Mapping[str, Claim]) -> dict[str, str]:
    """What the numbers say of the claims that fail."""
    ten, cnn = (_columns(_draws(runs[name])) for name in ("outputs", "cnn"))
    means = [float(np.mean(runs["cnn"].experiment.data.draw(seed)[1])) for seed in as_seeds(len(cnn["rank"]))]
    zero = sum(mean == 0 for mean in means)
    found = {
        "cnn-dense-outputs-rank": f"With ten outputs Z has ten rows, one for each class; the residuals of a sample "
        f"(y - 1/10) add up to zero, and the rank is {_range(ten['rank'])}. A single line then needs a gap as it "
        f"does for kernels: here 1 - λ₂/λ₁ is {ten['gap'].min():.2f} to {ten['gap'].max():.2f}. The statement is "
        "true of one output.",
        "cnn-dense-rank-full": f"The rank is {_range(cnn['rank'])}; in {zero} of {len(means)} draws the mean label is "
        "exactly zero, and with it the column of the bias.",
    }
    return {key: text for key, text in found.items() if claims[key].verdict != "reproduced"}


def _range(values: np.ndarray) -> str:
    """Least to most.

    >>> _range(np.array([9, 9])), _range(np.array([27, 28]))
    ('9', '27 to 28')
    """
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


RECIPE = Recipe(NAME, "CNN Sec. 4: dense against convolutional networks", DENSE, experiments, measure, show, REDUCED)
