"""FC Fig. 2: the first dense layer of a ResNet18-like network on CIFAR-10, four activations."""

from collections.abc import Mapping

import numpy as np

from ...activations import label
from ...experiment import Experiment
from ...runs import Trajectory
from ..claims import Claim, Seeds
from ..counts import Counts, count, stack_columns
from ..lab import Lab
from ..panels import draw_maps, draw_times
from ..recipe import Findings, Recipe, Runs
from ..variant import Variant
from .experiments import FIG2_EPOCHS, FIG2_RATES, LINES, QUICK_RATES, QUICK_STEPS, resnet
from .statements import FIG2

ORIENTED = ("tanh", "sigmoid", "softplus")
REDUCED = (
    "640 balanced images instead of 50,000, batches of 64 instead of 128; one stage of one block with 16 channels "
    f"instead of ResNet18's four stages of two; dense layers 128-128-10 instead of 1024-1024-10; {QUICK_STEPS} steps; "
    "learning rate "
    + ", ".join(f"{rate:g} ({label(name)})" for name, rate in QUICK_RATES.items())
    + ", chosen on other seeds than these"
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The four panels."""
    return {name: resnet(name, scale) for name in FIG2_RATES}


def counts_of(runs: Runs, variant: Variant) -> dict[str, Counts]:
    """Lines of the first dense layer at the last step, the captioned epoch."""
    return {name: count(run, "dense1", int(run.saved[-1]), variant) for name, run in runs.items()}


def measure(runs: Runs, variant: Variant) -> Mapping[str, Seeds]:
    """Lines and orientations of each panel."""
    counts = counts_of(runs, variant)
    lines = {f"fc-fig2-{name}": found.lines_found() for name, found in counts.items()}
    return lines | {f"fc-fig2-{name}-orientations": counts[name].sides_found() for name in ORIENTED}


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Heat maps, counts, lines against time."""
    counts = counts_of(runs, lab.variant)
    named = {label(name): run for name, run in runs.items()}
    by_title = {label(name): found for name, found in counts.items()}
    quick, seeds = lab.scale == "quick", len(next(iter(runs.values())).seeds)
    epochs = ", ".join(f"{epoch} ({label(name)})" for name, epoch in FIG2_EPOCHS.items())
    return Findings(
        caption=(
            "Cosine similarity of all pairs of neurons in the first dense layer "
            + ("at the last step" if quick else f"at epochs {epochs}")
            + f" (top; the median seed), and the number of lines over {seeds} seed{'s' * (seeds > 1)} (bottom)."
        ),
        settings={
            "network": "the convolution part of ResNet18 (relu, batch norm) and dense layers 1024-1024-10",
            "data": "CIFAR-10, 50,000 images, pixels in [-1, 1]",
            "start": "dense layers N(0, 1/m_out³), convolutions Glorot normal",
            "optimizer": "Adam, batches of 128, eps 1e-8; learning rate "
            + ", ".join(f"{rate:g} ({label(name)})" for name, rate in FIG2_RATES.items()),
            "loss": "cross-entropy",
            "precision": "float32, products in TF32 on a GPU",
        },
        pictures={
            "fc-fig2": draw_maps(
                {t: c.shown for t, c in by_title.items()}, by_title, {label(n): LINES[n] for n in runs}
            ),
            "fc-fig2-time": draw_times(named, by_title, {t: int(run.saved[-1]) for t, run in named.items()}),
        },
        data=stack_columns({name: found.columns() for name, found in counts.items()}, "activation"),
        why={
            key: _why(runs[name], counts[name], quick)
            for name in runs
            for key in (f"fc-fig2-{name}", f"fc-fig2-{name}-orientations")
            if key in claims and claims[key].verdict != "reproduced"
        },
    )


def _why(run: Trajectory, counts: Counts, quick: bool) -> str:
    """What the seeds say of a panel that fails: there, and at the best moment of the initial stage."""
    best = count(run, "dense1", None)
    when, loss = "last step" if quick else "captioned epoch", np.median(counts.loss)
    there = f"At the {when}: {counts}; the loss is at {loss:.2f} of its first value."
    moment = f" Where most condensed within the initial stage (step {', '.join(map(str, best.steps))}): {best}."
    return there + moment + (" These are verdicts on the reduced network, not on the paper's." if quick else "")


RECIPE = Recipe("fc-fig2", "FC Fig. 2: a ResNet18-like network on CIFAR-10", FIG2, experiments, measure, show, REDUCED)
