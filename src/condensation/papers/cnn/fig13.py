"""CNN Fig. 13: the training loss of each experiment."""

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...runs import INITIAL_STAGE
from .._claims import Claim, PerSeed, at_least
from .._figure import Drawing, PaperFigure
from .fig2 import Descent, Fig2, Fig10, Fig11
from .fig3 import Fig3, captioned
from .fig4 import Activations, Fig4, Fig8
from .fig6 import Fig6, Fig7, Fig9, Layers
from .maps import last_step

COLUMNS = 5
# the figure, the experiment's name there, and what it is in words
SOURCES: dict[str, tuple[type[Descent | Fig3 | Activations | Layers], str, str]] = {
    "2": (Fig2, "descent", "GD, CIFAR-10"),
    "3": (Fig3, "deep", "three layers, CIFAR-10"),
    **{f"4-{name}": (Fig4, name, f"{name}, CIFAR-10") for name in ("relu", "sigmoid", "tanh")},
    "6": (Fig6, "deep", "MSE after softmax"),
    "7": (Fig7, "deep", "MSE"),
    **{f"8-{name}": (Fig8, name, f"{name}, MNIST") for name in ("relu", "sigmoid", "tanh")},
    "9": (Fig9, "deep", "three layers, MNIST"),
    "10": (Fig10, "descent", "GD, MNIST, 32"),
    "11": (Fig11, "descent", "GD, MNIST, 320"),
}


def _number(key: str) -> str:
    return f"Fig. {key.split('-')[0]}"


def _in_stage(key: str) -> "Claim[Fig13]":
    return Claim(
        key, "Fig. 13", f"{_number(key)} ({SOURCES[key][2]}): what is shown of the initial stage is in it (loss above "
        "70%, the fully connected paper's rule)", "loss over first loss at the step that is shown",
        at_least(INITIAL_STAGE), lambda figure: figure.loss(key), trained=False,
    )  # fmt: skip


class Fig13(PaperFigure):
    """The losses of all experiments."""

    name, title, paper = "cnn-fig13", "CNN Fig. 13: the losses", "CNN"
    has_variants, settings_of = False, "as in each figure"
    claims = tuple(_in_stage(key) for key in SOURCES if key != "8-relu")  # which is shown where it is within it

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """All of them, as trained for their own figures."""
        return {key: figure.experiments(scale)[name] for key, (figure, name, _) in SOURCES.items()}

    def shown(self, key: str) -> np.ndarray:
        """The step of the initial stage that a figure shows, of each seed."""
        run = self.runs[key]
        if key == "8-relu":  # no step of its own
            return self.count(run, "conv1", None, view="kernel").steps
        return np.full(self.seeds, (captioned if key == "3" else last_step)(run))

    def loss(self, key: str) -> PerSeed:
        """The loss over its first value at the step that is shown."""
        run = self.runs[key]
        column = np.searchsorted(run.recorded, self.shown(key))
        return PerSeed(run.loss[np.arange(len(column)), column] / run.loss[:, 0])

    def draw(self) -> Drawing:
        """The loss of each experiment against the step."""
        rows = -(-len(self.runs) // COLUMNS)
        with look():
            figure = Figure(figsize=(PAGE, 1.35 * rows), layout="constrained")
            grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
            for axes, (key, run) in zip(grid, self.runs.items(), strict=False):
                relative = run.loss / run.loss[:, :1]
                axes.plot(run.recorded, relative.T, color=FAINT, linewidth=0.6)
                axes.plot(run.recorded, np.median(relative, axis=0), color=COLOURS[0])
                axes.axhline(INITIAL_STAGE, color=COLOURS[1], linestyle="--", linewidth=0.7)
                axes.axvline(float(np.median(self.shown(key))), color=COLOURS[6], linestyle=":", linewidth=0.8)
                axes.set_title(f"{_number(key)}: {SOURCES[key][2]}", fontsize=6.5)
                axes.set_ylim(0, 1.06)
                axes.tick_params(labelsize=6)
            for axes in grid[len(self.runs) :]:
                axes.axis("off")
            figure.supxlabel("step", fontsize=8)
            figure.supylabel("loss / first loss", fontsize=8)
        return Drawing(
            caption="The training loss (thin: seeds, thick: median). Dashed: 70%; dotted: the step that is shown.",
            pictures={"": figure}, data=self.columns_of_claims(),
        )  # fmt: skip
