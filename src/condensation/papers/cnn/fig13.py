"""CNN Fig. 13: the training loss of each experiment."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...runs import Trajectory
from .._claims import PerSeed, Rule
from .._counts import STAGE
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement, columns_of
from .._variant import Variant
from . import fig2, fig3, fig4, fig6

SOURCES = {
    "2": (fig2.RECIPE, "descent", "GD, CIFAR-10"),
    "3": (fig3.RECIPE, "deep", "three layers, CIFAR-10"),
    "4-relu": (fig4.RECIPE, "relu", "relu, CIFAR-10"),
    "4-sigmoid": (fig4.RECIPE, "sigmoid", "sigmoid, CIFAR-10"),
    "4-tanh": (fig4.RECIPE, "tanh", "tanh, CIFAR-10"),
    "6": (fig6.AFTER_SOFTMAX, "deep", "MSE after softmax"),
    "7": (fig6.WITHOUT_SOFTMAX, "deep", "MSE"),
    "8-relu": (fig4.MNIST, "relu", "relu, MNIST"),
    "8-sigmoid": (fig4.MNIST, "sigmoid", "sigmoid, MNIST"),
    "8-tanh": (fig4.MNIST, "tanh", "tanh, MNIST"),
    "9": (fig6.MNIST, "deep", "three layers, MNIST"),
    "10": (fig2.FIG10, "descent", "GD, MNIST, 32"),
    "11": (fig2.FIG11, "descent", "GD, MNIST, 320"),
}
STATEMENTS = tuple(
    Statement(
        f"cnn-fig13-{key}",
        "cnn-fig13",
        "Fig. 13",
        f"Fig. {key.split('-')[0]} ({said}): what is shown of the initial stage is in it (loss above 70%, the fully "
        "connected paper's rule)",
        "loss over first loss at the step that is shown",
        Rule("at least", STAGE),
        trained=False,
        paper="CNN",
    )
    for key, (_, _, said) in SOURCES.items()
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """All of them, as trained for their own figures."""
    return {key: recipe.experiments(scale)[run] for key, (recipe, run, _) in SOURCES.items()}


def _shown(key: str, run: Trajectory) -> int:
    """The step of the initial stage that a figure shows."""
    return fig3.captioned(run) if key == "3" else int(run.saved[-1])


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """The loss over its first value at the step that is shown."""
    return {
        f"cnn-fig13-{key}": PerSeed(run.loss[:, np.searchsorted(run.recorded, _shown(key, run))] / run.loss[:, 0])
        for key, run in runs.items()
    }


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """The loss of each experiment against the step."""
    columns = 5
    rows = -(-len(runs) // columns)
    with look():
        figure = Figure(figsize=(PAGE, 1.35 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (key, run) in zip(grid, runs.items(), strict=False):
            relative = run.loss / run.loss[:, :1]
            axes.plot(run.recorded, relative.T, color=FAINT, linewidth=0.6)
            axes.plot(run.recorded, np.median(relative, axis=0), color=COLOURS[0])
            axes.axhline(STAGE, color=COLOURS[1], linestyle="--", linewidth=0.7)
            axes.axvline(_shown(key, run), color=COLOURS[6], linestyle=":", linewidth=0.8)
            axes.set_title(f"Fig. {key.split('-')[0]}: {SOURCES[key][2]}", fontsize=6.5)
            axes.set_ylim(0, 1.06)
            axes.tick_params(labelsize=6)
        for axes in grid[len(runs) :]:
            axes.axis("off")
        figure.supxlabel("step", fontsize=8)
        figure.supylabel("loss / first loss", fontsize=8)
    return Findings(
        caption="The training loss of every experiment (thin: seeds, thick: median). Dashed: 70% of the first loss; "
        "dotted: the step that the figure shows of the initial stage.",
        settings={"networks, data, optimizers": "those of the figures"},
        pictures={"cnn-fig13": figure},
        data=columns_of(claims),
    )


RECIPE = Recipe(
    "cnn-fig13",
    "CNN Fig. 13: the losses",
    STATEMENTS,
    experiments,
    measure,
    show,
    "as in each figure",
    has_variants=False,
)
