"""CNN Sec. 4 and Fig. 12: what v1 and the spectral gap are on real images, over 50 draws of 500."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Images
from ...drawing import draw_spectrum, look
from ...drawing._style import COLOURS, PAGE
from ...losses import Loss
from ...seeds import Seed
from ...theory import KernelDynamics
from .._claims import PerSeed, Rule
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement, columns_of
from .._tables import Table
from .._trainings import require
from .._variant import Variant
from .experiments import GD_KERNEL, GD_LOSS, SAMPLES
from .words import SETS

DRAWS = 50
PAPER = ((0.9891, 0.0349), (0.9982, 0.0009), (0.9992, 0.0003))  # mean and spread of the parts of v1 against 1
CHANNELS = ("red", "green", "blue")
LABELS = {"integer": "integer labels (they give the paper's numbers)", "residual": "the residual that Fig. 2 trains on"}


@lru_cache(maxsize=8)
def draws(data: str, labels: str) -> tuple[KernelDynamics, ...]:
    """The linear dynamics of 50 draws of 500 images, with integer labels or the residual of Fig. 2's loss."""
    images = Images(data, n=SAMPLES, target="index" if labels == "integer" else "one_hot")
    require(images)
    loss = Loss() if labels == "integer" else Loss(GD_LOSS.name)
    found = []
    for k in range(DRAWS):
        x, y = images.draw(Seed(k, k))
        found.append(KernelDynamics.of(x, y, GD_KERNEL, loss))
    return tuple(found)


def _parts(labels: str) -> np.ndarray:
    return np.stack([one.channel_cosines for one in draws("cifar10", labels)])


def _statement(
    key: str, figure: str, where: str, text: str, quantity: str, rule: Rule, ours: bool = False
) -> Statement:
    return Statement(f"{figure}-{key}", figure, where, text, quantity, rule, trained=False, paper="CNN", ours=ours)


TABLE = (
    *(
        _statement(
            f"{colour}-mean",
            "cnn-table",
            "Sec. 4",
            f"the {colour} part of v1 against 1 is {mean} on average over 50 draws (integer labels; within its "
            f"stated spread of {spread})",
            f"|mean over {DRAWS} draws - {mean}|",
            Rule("at most", spread),
        )
        for colour, (mean, spread) in zip(CHANNELS, PAPER, strict=True)
    ),
    *(
        _statement(
            f"{key}-ones",
            "cnn-table",
            "Sec. 4",
            f"{said}: the parts of v1 are nearly the kernel of ones",
            "smallest of the three parts against 1",
            Rule("at least", 0.95),
        )
        for key, said in LABELS.items()
    ),
    _statement(
        "integer-kernel",
        "cnn-table",
        "ours, of Sec. 4",
        "the kernels, not the bias, are where filters condense to (integer labels)",
        "|bias part| of v1",
        Rule("at most", 0.5),
        ours=True,
    ),
    _statement(
        "residual-kernel",
        "cnn-table",
        "ours, of Sec. 4",
        "the same with the residual that Fig. 2 trains on",
        "|bias part| of v1",
        Rule("at most", 0.5),
        ours=True,
    ),
    *(
        _statement(
            f"{key}-gap",
            "cnn-table",
            "Assumption 4",
            f"{said}: there is a clear spectral gap (read as: at least 30%)",
            "(λ1 - λ2) / λ1",
            Rule("at least", 0.3),
        )
        for key, said in LABELS.items()
    ),
    _statement(
        "rank",
        "cnn-table",
        "Sec. 4",
        "Z has as many singular values as it can: C₀ m² + 1 = 28",
        "rank of Z (residual of Fig. 2)",
        Rule("exactly", 28),
    ),
)
FIG12 = (
    *(
        _statement(
            f"{key}-gap",
            "cnn-fig12",
            "Fig. 12",
            f"MNIST, {said}: there is a clear spectral gap (read as: at least 30%)",
            "(λ1 - λ2) / λ1",
            Rule("at least", 0.3),
        )
        for key, said in LABELS.items()
    ),
)


def no_experiments(scale: str) -> Mapping:
    """Nothing is trained."""
    return {}


def measure_table(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Parts of v1, its bias part, gap and rank."""
    means = _parts("integer").mean(axis=0)
    found = {
        f"{colour}-mean": PerSeed([abs(float(mean) - paper)])
        for colour, mean, (paper, _) in zip(CHANNELS, means, PAPER, strict=True)
    }
    for key in LABELS:
        chosen = draws("cifar10", key)
        found[f"{key}-ones"] = PerSeed(_parts(key).min(axis=1))
        found[f"{key}-kernel"] = PerSeed([one.bias_part for one in chosen])
        found[f"{key}-gap"] = PerSeed([one.gap for one in chosen])
    found["rank"] = PerSeed([one.rank for one in draws("cifar10", "residual")])
    return {f"cnn-table-{key}": value for key, value in found.items()}


def show_table(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Both matrices: the parts of v1 over the draws, and v1 itself."""
    with look():
        figure = Figure(figsize=(PAGE, 2.6), layout="constrained")
        left, *kernels, right = figure.subplots(1, 4, width_ratios=(1.5, 1, 1, 1.4))
        for (key, said), colour, shift in zip(LABELS.items(), COLOURS, (-0.12, 0.12), strict=False):
            parts = _parts(key)
            middle, low, high = parts.mean(axis=0), parts.min(axis=0), parts.max(axis=0)
            left.errorbar(
                np.arange(3) + shift,
                1 - middle,
                [high - middle, middle - low],
                fmt="o",
                color=colour,
                markersize=3,
                linewidth=0.8,
                label=said,
            )
        paper = np.array(PAPER)
        left.plot(np.arange(3), 1 - paper[:, 0], "x", color=COLOURS[2], label="the paper's means")
        left.set_yscale("log")
        left.set_xticks(range(3), CHANNELS)
        left.set(ylabel="1 - cosine with 1", xlim=(-0.4, 2.4), title="(a) mean and range of 50 draws")
        for axes, (key, said), letter in zip(
            kernels, (("integer", "v1, integer"), ("residual", "v1, Fig. 2")), "bc", strict=True
        ):
            v = draws("cifar10", key)[0].v1
            _draw_filter(axes, v, f"({letter}) {said}")
        for (key, said), colour in zip(LABELS.items(), COLOURS, strict=False):
            right.hist(
                [one.bias_part for one in draws("cifar10", key)], bins=np.linspace(0, 1, 41), color=colour, label=said
            )
        right.set(xlabel="|bias part| of v1", ylabel="draws", title="(d) the bias takes its share")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    rows = []
    for key, said in LABELS.items():
        parts, chosen = _parts(key), draws("cifar10", key)
        rows.append(
            (
                said,
                *(
                    f"{mean:.4f} ± {spread:.4f}"
                    for mean, spread in zip(parts.mean(axis=0), parts.std(axis=0), strict=True)
                ),
                f"{np.mean([one.bias_part for one in chosen]):.2f}",
                f"{np.mean([one.gap for one in chosen]):.2f}",
            )
        )
    rows.append(("the paper", *(f"{mean} ± {spread}" for mean, spread in PAPER), "", ""))
    return Findings(
        caption=f"The leading singular vector v1 of Z over {DRAWS} draws of {SAMPLES} images of CIFAR-10, with the "
        "integer class numbers as labels (which give the paper's numbers) and with the residual of the loss that "
        "Fig. 2 trains on: two different matrices. (b), (c): v1 of the first draw as an image of 3 x 3 pixels by "
        "input channel.",
        settings={
            "images": f"{SAMPLES} of CIFAR-10 drawn at random, pixels in [-1, 1], kernels 3 x 3",
            "integer labels": "y is the class number, one output, residual y",
            "residual of Fig. 2": "ten outputs, (one-hot - 1/10)/10, stacked",
        },
        pictures={"cnn-table": figure},
        tables=(
            Table(
                "Parts of v1 against 1 (mean ± standard deviation), bias part and gap",
                ("labels", *CHANNELS, "bias part", "gap"),
                tuple(rows),
            ),
        ),
        data=columns_of(claims),
        why=_why(claims),
    )


def _why(claims: Mapping[str, Claim]) -> dict[str, str]:
    share = np.median([one.bias_part for one in draws("cifar10", "integer")])
    mean = float(Images("cifar10", n=SAMPLES, target="index").draw(Seed(0, 0))[1].mean())
    why = {
        "cnn-table-integer-kernel": "Class numbers from 0 to 9 have a mean of about "
        f"{mean:.1f}: with integer labels Z is mostly its bias column, and the bias entry of v1 is {share:.2f}. The "
        "paper's table looks at the rest. Fig. 2 trains on classes, where the bias part is small."
    }
    return {key: text for key, text in why.items() if claims[key].verdict != "reproduced"}


def _draw_filter(axes: Axes, v: np.ndarray, title: str) -> None:
    """A filter as small squares of its three input channels and the bias."""
    parts = v[:-1].reshape(3, -1)
    side = round(parts.shape[1] ** 0.5)
    whole = np.full((3 * (side + 1) - 1, side + 2), np.nan)
    for k, part in enumerate(parts):
        whole[k * (side + 1) : k * (side + 1) + side, :side] = part.reshape(side, side)
    whole[side + 1 + side // 2, side + 1] = v[-1]
    top = np.abs(v).max()
    axes.imshow(whole, cmap="PuOr_r", vmin=-top, vmax=top)
    for k, colour in enumerate(CHANNELS):
        axes.annotate(
            colour, (-0.8, k * (side + 1) + side // 2), ha="right", va="center", fontsize=7, annotation_clip=False
        )
    axes.annotate("bias", (side + 1, side + 2.2 + side // 2), ha="center", va="top", fontsize=7)
    axes.set_title(title)
    axes.axis("off")


def measure_spectrum(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """The gap on MNIST."""
    return {f"cnn-fig12-{key}-gap": PerSeed([one.gap for one in draws("mnist", key)]) for key in LABELS}


def show_spectrum(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """The spectrum on MNIST, with both labels."""
    with look():
        figure = Figure(figsize=(PAGE * 0.75, 2.3), layout="constrained")
        for axes, (key, said) in zip(figure.subplots(1, 2, sharey=True), LABELS.items(), strict=True):
            draw_spectrum(np.stack([one.values for one in draws("mnist", key)]), axes, title=said)
            if key == "residual":
                axes.set_ylabel("")
    return Findings(
        caption=f"The eigenvalues of ZᵀZ on {SETS['mnist']} over {DRAWS} draws of {SAMPLES} images (thin) and their "
        f"median.",
        settings={
            "images": f"{SAMPLES} of MNIST drawn at random, pixels in [-1, 1], kernels 3 x 3",
            "chosen by us": "the caption is not in the text: both labels are shown",
        },
        pictures={"cnn-fig12": figure},
        data=columns_of(claims),
    )


RECIPE = Recipe(
    "cnn-table",
    "CNN Sec. 4: the direction v1 on CIFAR-10",
    TABLE,
    no_experiments,
    measure_table,
    show_table,
    has_variants=False,
)
SPECTRUM = Recipe(
    "cnn-fig12",
    "CNN Fig. 12: the spectrum of Z on MNIST",
    FIG12,
    no_experiments,
    measure_spectrum,
    show_spectrum,
    has_variants=False,
)
