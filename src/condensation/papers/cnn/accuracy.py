"""Careful readers' question: what is the final test accuracy of Fig. 3's network?"""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Glorot, Init
from ...optimizers import Adam
from ...saving import Evenly
from .._claims import PerSeed, Rule
from .._counts import count
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._variant import Variant
from .experiments import FIG3_RATE, FIG3_STEPS, QUICK_FIG3_RATE, QUICK_FIG3_STEPS, deep_to_the_end
from .fig3 import REDUCED, SETTINGS

STARTS = {"small": "small start, as captioned", "common": "common start, Glorot normal"}
FITTED = 0.95  # training accuracy from which on test accuracies are compared
SHORTER = 4  # from the common start the images are fitted sooner


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(
        f"cnn-accuracy-{key}", "cnn-accuracy", "question of readers", text, quantity, rule, paper="CNN", ours=True
    )


STATEMENTS = (
    _statement(
        "learned",
        "Fig. 3's network, fitted to its images, has learned something general (read as: at least twice chance)",
        "test accuracy at the end",
        Rule("at least", 0.2),
    ),
    _statement(
        "common",
        "condensation does not cost accuracy: the test accuracy is at most 2 percentage points below that from a "
        "common start",
        "test accuracy minus that from the common start, at the end",
        Rule("at least", -0.02),
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 3's network from its small start, and from a common one."""
    small = deep_to_the_end(scale)
    steps = small.steps // SHORTER
    rate = FIG3_RATE if scale == "paper" else QUICK_FIG3_RATE
    common = small.replace(
        init=Init(Glorot(), convolution=Glorot()),
        optimizer=Adam(rate * SHORTER),
        steps=steps,
        save=Evenly(2),
        record=Evenly(21 if scale == "paper" else 9),
        kept_layers=("conv1",),
    )
    return {"small": small, "common": common}


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Test accuracies at the end; they are compared where both networks fit their images."""
    fitted = np.min([run.accuracy[:, -1] for run in runs.values()], axis=0) >= FITTED
    ends = {name: run.curves["test_accuracy"][:, -1] for name, run in runs.items()}
    return {
        "cnn-accuracy-learned": PerSeed(ends["small"]),
        "cnn-accuracy-common": PerSeed(ends["small"] - ends["common"], fitted),
    }


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Test accuracy against training accuracy, from both starts."""
    with look():
        figure = Figure(figsize=(PAGE * 0.62, 2.6), layout="constrained")
        axes = figure.subplots()
        for (name, said), colour in zip(STARTS.items(), COLOURS, strict=False):
            run = runs[name]
            axes.plot(
                run.accuracy.T,
                run.curves["test_accuracy"].T,
                ".-",
                color=colour,
                linewidth=0.5,
                markersize=3,
                alpha=0.6,
            )
            axes.plot([], [], ".-", color=colour, label=said)
        axes.axhline(0.1, color=COLOURS[6], linestyle=":", linewidth=0.8, label="chance")
        axes.set(xlabel="training accuracy", ylabel="test accuracy", xlim=(0, 1.02), ylim=(0, None))
        figure.legend(loc="outside lower center", ncols=3)
    ends = {name: run.curves["test_accuracy"][:, -1] for name, run in runs.items()}
    fits = {name: run.accuracy[:, -1] for name, run in runs.items()}
    said = "; ".join(
        f"{STARTS[name]}: {np.median(ends[name]):.1%} (training {np.median(fits[name]):.0%})" for name in runs
    )
    lines = count(runs["small"], "conv1", int(runs["small"].saved[-1]), view="filter")
    why = f"Medians of the seeds: {said}. From the small start the first layer's filters have, at the end: {lines}."
    return Findings(
        caption=f"Test against training accuracy while Fig. 3's network trains; a line a seed. At the end: {said}.",
        settings=SETTINGS
        | {
            "common start": f"all layers Glorot normal, Adam with {SHORTER} times the rate, a quarter of the "
            f"{FIG3_STEPS} steps (quick: of {QUICK_FIG3_STEPS}); our choice"
        },
        pictures={"cnn-accuracy": figure},
        data={"seed": np.arange(len(ends["small"]))} | {f"test_accuracy_{name}": value for name, value in ends.items()},
        why={key: why for key, claim in claims.items() if claim.verdict != "reproduced"},
    )


RECIPE = Recipe(
    "cnn-accuracy",
    "How well does Fig. 3's network generalise?",
    STATEMENTS,
    experiments,
    measure,
    show,
    REDUCED,
    has_variants=False,
)
