"""FC App. A.4: the ResNet18-like network from the small start and from a common one: which performs better?"""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from .._claims import PerSeed
from .._legacy import Claim, Findings, Lab, Recipe, Runs
from .._variant import NotRun, Variant
from .experiments import resnet_start
from .statements import A4

REDUCED = (
    "2,000 balanced images instead of 50,000, 1,000 test images instead of 10,000, batches of 64; one stage of one "
    "block with 16 channels; dense layers 128-128-10; learning rate 3e-3 for 200 steps (6 epochs) instead of 1e-3 "
    "for 20 epochs"
)
STARTS = {"small": "small start, N(0, 1/m_out³)", "common": "common start, Glorot normal"}


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Both starts."""
    return {name: resnet_start(name == "common", scale) for name in STARTS}


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Test accuracies at the end."""
    if not runs.keys() >= STARTS.keys():
        raise NotRun("both starts are needed, and one of them cannot be changed so")
    small, common = (runs[name].curves["test_accuracy"][:, -1] for name in STARTS)
    return {"fc-a4-accuracy": PerSeed(small - common), "fc-a4-learned": PerSeed(small)}


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Loss and test accuracy against time, both starts."""
    with look():
        figure = Figure(figsize=(PAGE, 2.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for (name, said), colour in zip(STARTS.items(), COLOURS, strict=False):
            run = runs[name]
            for axes, curve in ((left, run.loss), (right, run.curves["test_accuracy"])):
                axes.plot(run.recorded, curve.T, color=colour, linewidth=0.6, alpha=0.5)
                axes.plot(run.recorded, np.nanmedian(curve, axis=0), color=colour, label=said)
        left.set(xlabel="step", ylabel="training loss (cross-entropy)")
        right.set(xlabel="step", ylabel="test accuracy", ylim=(0, 1))
        right.axhline(0.1, color=COLOURS[6], linestyle=":", linewidth=0.8, label="chance")
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    seeds = len(runs["small"].seeds)
    ends = {name: runs[name].curves["test_accuracy"][:, -1] for name in STARTS}
    said = ", ".join(f"{name} start {np.median(value):.1%}" for name, value in ends.items())
    return Findings(
        caption=f"Training loss and test accuracy from both starts; thick: median of {seeds} "
        f"seed{'s' * (seeds > 1)}. At the end: {said} (median test accuracy).",
        settings={
            "network": "that of Fig. 2 with tanh",
            "small start": "dense layers N(0, 1/m_out³), convolutions Glorot normal",
            "common start": "all layers Glorot normal",
            "optimizer": "Adam, learning rate 1e-3, batches of 128, cross-entropy; the text gives no settings for "
            "this appendix, they are our choice, as is the margin of 2 percentage points",
        },
        pictures={"fc-a4": figure},
        data={"seed": np.arange(seeds)} | {f"test_accuracy_{name}": value for name, value in ends.items()},
        why={"fc-a4-accuracy": f"Test accuracy: {said} (medians)."}
        if claims["fc-a4-accuracy"].verdict != "reproduced"
        else {},
    )


RECIPE = Recipe("fc-a4", "FC App. A.4: small against common start", A4, experiments, measure, show, REDUCED)
