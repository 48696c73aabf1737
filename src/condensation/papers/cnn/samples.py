"""Careful readers' question: does condensation need as few as 500 images? From 100 to 5000."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from .._claims import PerSeed, Rule
from .._counts import count, stack_columns
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._variant import Variant
from .experiments import CHANNELS, GD_RATE, GD_STEPS, QUICK_GD_RATE, QUICK_GD_SAMPLES, SAMPLES, descent
from .kernels import cosine_to_v1, dynamics
from .words import GD_SETTINGS

NUMBERS = (100, 500, 5000)
FASTER = 4  # a larger step on the mean loss: at 5000 images the captioned one takes long
QUICK_CHANNELS, QUICK_FASTER, QUICK_STEPS = 6, 4, 16
REDUCED = (
    f"{QUICK_CHANNELS} channels instead of {CHANNELS} (filters do not see each other at leading order), steps of "
    f"{QUICK_FASTER * QUICK_GD_RATE * QUICK_GD_SAMPLES:g} on the mean loss"
)


def _statement(key: str, text: str, quantity: str, rule: Rule, trained: bool = True) -> Statement:
    name, where = f"cnn-samples-{key}", "question of readers"
    return Statement(name, "cnn-samples", where, text, quantity, rule, trained, "CNN", ours=True)


STATEMENTS = (
    *(
        _statement(
            f"{n}",
            f"with {n} images the kernels condense on one line",
            "lines of kernels at the end",
            Rule("exactly", 1),
        )
        for n in NUMBERS
    ),
    *(
        _statement(
            f"{n}-v1",
            f"with {n} images the filters condense on v1",
            "median |cos| with v1 at the end",
            Rule("at least", 0.99),
        )
        for n in NUMBERS
    ),
    *(
        _statement(
            f"{n}-gap", f"with {n} images Z has a gap of at least 30%", "(λ1 - λ2) / λ1", Rule("at least", 0.3), False
        )
        for n in NUMBERS
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 2's network on so many images, at the same rate on the mean loss."""
    paper = scale == "paper"
    base = descent(scale, channels=CHANNELS if paper else QUICK_CHANNELS)
    mean_rate = GD_RATE * SAMPLES * FASTER if paper else QUICK_GD_RATE * QUICK_GD_SAMPLES * QUICK_FASTER
    steps = base.steps // FASTER if paper else QUICK_STEPS
    return {
        f"{n}": base.replace(
            data=replace(base.data, n=n),  # type: ignore[type-var]
            optimizer=replace(base.optimizer, learning_rate=mean_rate / n),
            steps=steps,
        )
        for n in NUMBERS
    }


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Lines, directions and gap for each number of images."""
    found = {}
    for name, run in runs.items():
        found[f"cnn-samples-{name}"] = count(run, "conv1", int(run.saved[-1]), variant).lines_found()
        found[f"cnn-samples-{name}-v1"] = PerSeed(cosine_to_v1(run)[:, -1])
        found[f"cnn-samples-{name}-gap"] = PerSeed([dynamics(run, k).gap for k in range(len(run.seeds))])
    return found


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Direction against time for each number of images, and the spectrum's first values against it."""
    with look():
        figure = Figure(figsize=(PAGE, 2.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
            turned = cosine_to_v1(run)
            left.fill_between(run.saved, turned.min(axis=0), turned.max(axis=0), color=colour, alpha=0.18, linewidth=0)
            left.plot(run.saved, np.median(turned, axis=0), color=colour, label=f"{name} images")
        left.set(xlabel="step", ylabel="median |cos| of filters with v1", ylim=(0, 1.02))
        left.legend(loc="lower right")
        for k, said in enumerate((r"$\lambda_1$", r"$\lambda_2$", r"$\lambda_3$")):
            values = np.array([[dynamics(run, j).values[k] for j in range(len(run.seeds))] for run in runs.values()])
            numbers = [int(name) for name in runs]
            right.fill_between(
                numbers, values.min(axis=1), values.max(axis=1), color=COLOURS[k], alpha=0.18, linewidth=0
            )
            right.plot(numbers, np.median(values, axis=1), "o-", color=COLOURS[k], markersize=3, label=said)
        right.set(xlabel="images", ylabel="singular value of Z", xscale="log", ylim=(0, None))
        right.legend()
    counts = {name: count(run, "conv1", int(run.saved[-1]), lab.variant) for name, run in runs.items()}
    rows = tuple(
        (
            name,
            str(found),
            f"{np.median(cosine_to_v1(runs[name])[:, -1]):.4f}",
            f"{np.median([dynamics(runs[name], k).gap for k in range(len(runs[name].seeds))]):.2f}",
            f"{np.median(found.loss):.3f}",
        )
        for name, found in counts.items()
    )
    return Findings(
        caption="Fig. 2's network on 100, 500 and 5000 images of CIFAR-10. Left: filters turn to v1; median and range "
        f"over {len(next(iter(runs.values())).seeds)} seeds. Right: with more images the noise in Z falls; the "
        "leading value settles, the others fall further: condensation is a property of the images and labels, not "
        "of their small number.",
        settings={
            "network": "that of Fig. 2",
            **GD_SETTINGS,
            "optimizer": f"gradient descent, full batch, {GD_STEPS['cifar10'] // FASTER} steps of "
            f"{FASTER * SAMPLES * GD_RATE:g} on the mean loss: fewer and larger than Fig. 2's",
        },
        pictures={"cnn-samples": figure},
        tables=(
            Table(
                "At the last step",
                ("images", "lines of kernels", "median |cos| with v1", "gap", "loss / first loss"),
                rows,
            ),
        ),
        data=stack_columns({name: found.columns() for name, found in counts.items()}, "images"),
    )


RECIPE = Recipe(
    "cnn-samples", "Does it need only 500 images?", STATEMENTS, experiments, measure, show, REDUCED, has_variants=False
)
