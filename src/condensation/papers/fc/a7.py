"""FC App. A.7: simple data: a low-frequency target, MNIST, CIFAR-100."""

from collections.abc import Mapping

import numpy as np

from ...activations import label
from ...experiment import Experiment
from .._claims import PerSeed
from .._counts import Counts, count, stack_columns
from .._legacy import Claim, Findings, Lab, Recipe, Runs
from .._panels import draw_maps
from .._tables import Table
from .._variant import Variant
from .experiments import FIG3_EPOCH, FIG3_RATES, LINES, fig3, low_frequency, resnet
from .statements import A7

IMAGES = {"mnist": "MNIST", "cifar100": "CIFAR-100"}
CIFAR10 = "cifar10"
HIGHER = ("x_tanh", "x2_tanh")
REDUCED = (
    "the images as in Fig. 2 at quick scale (640, of CIFAR-100 1,000 balanced images, the small network, 64 steps at "
    "rate 1e-3)"
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 3's network on both targets, and Fig. 2's x tanh x network on two other sets of images."""
    return {
        **{f"low-{name}": low_frequency(name) for name in FIG3_RATES},
        **{f"fig3-{name}": fig3(name) for name in HIGHER},
        **{data: resnet("x_tanh", scale, data) for data in (CIFAR10, *IMAGES)},
    }


def _counts(runs: Runs, variant: Variant) -> dict[str, Counts]:
    return {
        name: count(run, "dense1", None if name in (CIFAR10, *IMAGES) else FIG3_EPOCH, variant)
        for name, run in runs.items()
    }


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Differences of lines, seed by seed, and lines on images."""
    counts = _counts(runs, variant)
    pairs = {f"low-{name}": (f"low-{name}", f"fig3-{name}") for name in HIGHER} | {
        data: (data, CIFAR10) for data in IMAGES
    }
    found = {}
    for key, (simple, other) in pairs.items():
        if {simple, other} <= counts.keys():
            low, high = counts[simple], counts[other]
            found[f"fc-a7-{key}"] = PerSeed(low.lines - high.lines, low.condensed & high.condensed)
    return found


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Heat maps and counts on the low-frequency target and on images."""
    counts = _counts(runs, lab.variant)
    titles = {f"low-{name}": f"low\n{label(name)}" for name in FIG3_RATES}
    titles |= {data: f"{said}\nx tanh x" for data, said in (IMAGES | {CIFAR10: "CIFAR-10"}).items()}
    chosen = {titles[key]: found for key, found in counts.items() if key in titles}
    expected = {titles[f"low-{name}"]: LINES[name] for name in FIG3_RATES}
    expected |= {titles[data]: LINES["x_tanh"] for data in (CIFAR10, *IMAGES)}
    rows = tuple(
        (label(name), *(" ".join(map(str, counts[f"{part}-{name}"].lines.tolist())) for part in ("low", "fig3")))
        for name in HIGHER
    )
    why = {}
    for name in HIGHER:
        low, high = (np.median(counts[f"{part}-{name}"].lines) for part in ("low", "fig3"))
        why[f"fc-a7-low-{name}"] = (
            f"The median is {low:g} lines on the simple target and {high:g} on Fig. 3's, but it does not fall in "
            f"every seed: of the {len(counts[f'low-{name}'].lines)} seeds some are not condensed on one of the two "
            "(see the table)."
        )
    for data in IMAGES:
        if {data, CIFAR10} <= counts.keys():
            simple, other = (", ".join(map(str, counts[key].lines.tolist())) for key in (data, CIFAR10))
            lost = sum(int((~counts[key].condensed).sum()) for key in (data, CIFAR10))
            why[f"fc-a7-{data}"] = (
                f"Lines of the seeds: {simple}; on CIFAR-10: {other}; {lost} of these are not condensed."
            )
    return Findings(
        caption=(
            f"The networks of Fig. 3 on the low-frequency target at epoch {FIG3_EPOCH}, and that of Fig. 2 with x "
            "tanh x on simpler images: cosine similarity (top, median seed) and lines over the seeds (bottom; "
            "orange: p lines)."
        ),
        settings={
            "low frequency": "Fig. 3 with the target sum 3.5 sin(2 x_k + 1)",
            "images": "Fig. 2's network with x tanh x, where it is most condensed within the initial stage; the text "
            "names the data only, the rest is our choice",
        },
        pictures={"fc-a7": draw_maps(chosen, expected)},
        tables=(Table("Lines at epoch 100, seed by seed", ("activation", "low frequency", "Fig. 3's target"), rows),),
        data=stack_columns({key: found.columns() for key, found in counts.items()}, "experiment"),
        why={key: text for key, text in why.items() if claims[key].verdict not in ("reproduced", "not run")},
    )


RECIPE = Recipe("fc-a7", "FC App. A.7: simple data", A7, experiments, measure, show, REDUCED)
