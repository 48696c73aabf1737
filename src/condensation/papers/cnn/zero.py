"""Careful readers' question: and if the last layer starts at zero?"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Zeros
from .._claims import PerSeed, Rule
from .._counts import count, stack_columns
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._variant import Variant
from .experiments import descent, shallow
from .kernels import cosine_to_v1, cosines_to, dynamics, predicted_sides
from .words import GD_SETTINGS

TURNED = 0.9  # |cos| with v1 from which on the side that a filter went to means something
RUNS = {
    "captioned": "Fig. 2, output layer N(0, 0.0001²)",
    "zero": "Fig. 2, output layer at zero",
    "dense": "Fig. 4 (tanh), output layer at zero",
}


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(f"cnn-zero-{key}", "cnn-zero", "question of readers", text, quantity, rule, paper="CNN", ours=True)


STATEMENTS = (
    _statement(
        "line",
        "Fig. 2's network with an output layer of zeros condenses on one line too",
        "lines of kernels at the end",
        Rule("exactly", 1),
    ),
    _statement("v1", "it condenses on v1", "median |cos| of filters with v1 at the end", Rule("at least", 0.99)),
    _statement(
        "predicted",
        "each filter goes to the side of v1 that it starts on",
        "share of filters on the predicted side",
        Rule("at least", 0.95),
    ),
    _statement(
        "dense",
        "Fig. 4's network (tanh) with an output layer of zeros condenses on one line too",
        "lines of kernels at the captioned epoch (quick: at the end)",
        Rule("exactly", 1),
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 2's network as captioned and with zeros, and Fig. 4's with zeros."""
    one, other = descent(scale), shallow(scale, "tanh")
    return {
        "captioned": one,
        "zero": one.replace(init=replace(one.init, hidden=(), output=Zeros())),
        "dense": other.replace(init=replace(other.init, output=Zeros())),
    }


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Lines, directions and sides."""
    run = runs["zero"]
    last = run.history("conv1", view="filter")[:, -1].astype(float)
    along = cosine_to_v1(run)[:, -1]
    sides = [
        float(np.mean(np.sign(cosines_to(last[k], dynamics(run, k).v1)) == predicted_sides(run, k)))
        for k in range(len(run.seeds))
    ]
    return {
        "cnn-zero-line": count(run, "conv1", int(run.saved[-1]), variant).lines_found(),
        "cnn-zero-v1": PerSeed(along),
        "cnn-zero-predicted": PerSeed(sides, along >= TURNED),
        "cnn-zero-dense": count(runs["dense"], "conv1", int(runs["dense"].saved[-1]), variant).lines_found(),
    }


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Direction and amplitude against time, with and without zeros."""
    with look():
        figure = Figure(figsize=(PAGE, 2.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for name, colour in zip(("captioned", "zero"), COLOURS, strict=False):
            run = runs[name]
            turned = cosine_to_v1(run)
            sizes = np.median(np.linalg.norm(run.history("conv1", view="filter").astype(float), axis=-1), axis=-1)
            for axes, values in ((left, turned), (right, sizes)):
                axes.plot(run.saved, values.T, color=colour, linewidth=0.5, alpha=0.5)
                axes.plot(run.saved, np.median(values, axis=0), color=colour, label=RUNS[name])
        left.set(xlabel="step", ylabel="median |cos| of filters with v1", ylim=(0, 1.02))
        right.set(xlabel="step", ylabel="median amplitude of filters", yscale="log")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    counts = {name: count(run, "conv1", int(run.saved[-1]), lab.variant) for name, run in runs.items()}
    ends = {name: run.history("conv1", view="filter")[:, -1].astype(float) for name, run in runs.items()}
    ratio = np.median(np.linalg.norm(ends["zero"], axis=-1)) / np.median(np.linalg.norm(ends["captioned"], axis=-1))
    rows = tuple((RUNS[name], str(found), f"{np.median(found.loss):.4f}") for name, found in counts.items())
    return Findings(
        caption="Fig. 2's network with its captioned start and with an output layer of zeros. Captioned, the output "
        "weights are far larger than the filters and pull them to their side at once; from zeros the filters must "
        f"turn by themselves, later and, at the end, {ratio:.0e} times as long, and end on the same line. Thick: "
        "median of the seeds.",
        settings={"Fig. 2": "; ".join(GD_SETTINGS.values()), "Fig. 4": "all but the output layer as there, tanh"},
        pictures={"cnn-zero": figure},
        tables=(Table("Lines of kernels at the last step", ("start", "lines", "loss / first loss"), rows),),
        data=stack_columns({name: found.columns() for name, found in counts.items()}, "start"),
    )


RECIPE = Recipe(
    "cnn-zero",
    "What if the last layer starts at zero?",
    STATEMENTS,
    experiments,
    measure,
    show,
    "Figs. 2 and 4 at the quick scale",
    has_variants=False,
)
