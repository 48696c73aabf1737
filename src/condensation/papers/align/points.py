r"""Three points that a relu network never fits from small weights (Boursier and Flammarion).

The targets fall and rise again, so a fit needs a kink between the points. But while the weights are small all neurons
turn to where they are active on all of them, and what is left is a straight line: the least-squares line is where
training ends, with the three points not fitted, however wide the network is.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Points
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, INK, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...networks import Dense
from ...optimizers import GD
from ...saving import Geometric
from .._claims import Claim, PerSeed, at_most, exactly, question
from .._counts import stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table

ROWS = ((-0.75, 1.1), (-0.5, 0.1), (0.125, 0.8))
SCALE = 1e-3
WIDTH = {"quick": 200, "paper": 1000}
RATE, STEPS = 0.05, 40_000  # time 2000, as in the text
STARTS = {"balanced": "balanced", "dominated": "dominated", "independent": None}
LIMIT = 0.01
UNBALANCED = (
    "A neuron whose input weight is larger than its output weight can change the sign of the latter and live on, which "
    "a balanced or dominated one cannot."
)
WHERE = "Boursier and Flammarion 2025"


def three_points(width: int, scale: float, balance: str | None) -> Experiment:
    """A network on the three points."""
    often = Geometric(12)
    return Experiment(
        Dense((1, width, 1), "relu"), Init(Normal(scale / width**0.5), balance=balance), Points(ROWS), GD(RATE), STEPS,
        save=often, record=often,
    )  # fmt: skip


def _claims(name: str) -> "tuple[Claim[ThreePoints], ...]":
    stated, reason = name != "independent", "" if name != "independent" else f"{UNBALANCED} "
    where, start = WHERE if stated else "additional question", f"from a small {name} start"
    return (
        Claim(
            f"{name}-line", where, f"{start} the three points are never fitted: training ends at the straight line",
            "loss at the end over that of the least-squares line, less 1, its size", at_most(LIMIT),
            lambda figure: PerSeed(np.abs(figure.ends[name] - 1)), lambda figure: reason + figure.in_words(name),
            ours=not stated,
        ),
        Claim(
            f"{name}-kinks", where, f"{start} no neuron is left that has its kink among the points",
            "share in the sum of |a||w| of the neurons that are active on some points only, at the end", at_most(LIMIT),
            lambda figure: PerSeed(figure.bent[name]), lambda figure: reason + figure.in_words(name), ours=not stated,
        ),
        question(
            f"{name}-dead", f"{start} the neurons of negative output weight die",
            "share of those active at the start that are still active on any point at the end", exactly(0),
            lambda figure: PerSeed(figure.alive[name]), lambda figure: reason + figure.in_words(name),
        ),
    )  # fmt: skip


class ThreePoints(PaperFigure):
    """Networks on three points from small weights of three kinds, and from large ones."""

    name, title, paper = "align-points", "Three points that a relu network never fits", "ALIGN"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        "the width, 200 or 1000 in place of 200,000, and gradient descent at 0.05 for 40,000 steps in place of 0.001 "
        "for "
        "2,000,000: the same time; which of the three kinds of small start the experiment had; the large start"
    )
    titles: ClassVar = {name: f"{name}, small" for name in STARTS} | {"large": "independent, large"}
    claims = (
        *(claim for kind in zip(*map(_claims, STARTS), strict=True) for claim in kind),
        question(
            "large-fits", "it is the small start: from a thousand times the weights the points are fitted",
            "loss at the end over that of the least-squares line", at_most(LIMIT),
            lambda figure: PerSeed(figure.ends["large"]), lambda figure: figure.in_words("large"),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The small starts and the large one."""
        small = {name: three_points(WIDTH[scale], SCALE, balance) for name, balance in STARTS.items()}
        return small | {"large": three_points(WIDTH[scale], 1.0, None)}

    @cached_property
    def line(self) -> Float[np.ndarray, " 2"]:
        """Slope and intercept of the least-squares line."""
        x, y = np.array(ROWS).T
        return np.polyfit(x, y, 1)

    @property
    def least(self) -> float:
        """The loss of that line."""
        x, y = np.array(ROWS).T
        return float(np.mean((y - np.polyval(self.line, x)) ** 2) / 2)

    @cached_property
    def ends(self) -> Available[Float[np.ndarray, " seeds"]]:
        """The loss at the end, over that of the line."""
        return self.runs.each(lambda _, run: run.loss[:, -1] / self.least)

    def active(self, name: str, column: int) -> np.ndarray:
        """Which neuron is active on which point at a saved step: seeds x neurons x points."""
        weights = self.runs[name].history(1)[:, column]
        return weights[..., :1] * np.array(ROWS)[:, 0] + weights[..., 1:] > 0

    @cached_property
    def bent(self) -> Available[Float[np.ndarray, " seeds"]]:
        """The share of the neurons that are active on some points and not on others, by |a||w|."""

        def share(name: str, run) -> np.ndarray:
            here = self.active(name, -1)
            sizes = np.abs(run.parameters["output.weight"][:, -1, 0]) * np.linalg.norm(run.history(1)[:, -1], axis=-1)
            return (sizes * (here.any(-1) & ~here.all(-1))).sum(1) / (sizes * here.any(-1)).sum(1)

        return self.runs.each(share)

    @cached_property
    def alive(self) -> Available[Float[np.ndarray, " seeds"]]:
        """Of the neurons of negative output weight that are active at the start, the share active at the end."""

        def share(name: str, run) -> np.ndarray:
            first, last = self.active(name, 0).any(-1), self.active(name, -1).any(-1)
            negative = (run.parameters["output.weight"][:, 0, 0] < 0) & first
            return (negative & last).sum(1) / negative.sum(1)

        return self.runs.each(share)

    def in_words(self, name: str) -> str:
        """What training left."""
        return (
            f"Medians: the loss ends at {np.median(self.ends[name]):.3g} of that of the least-squares line; neurons "
            f"with "
            f"a kink among the points have {np.median(self.bent[name]):.2g} of the sum of |a||w|; "
            f"{np.median(self.alive[name]):.2g} of the neurons of negative output weight are still active."
        )

    def draw(self) -> Drawing:
        """Losses, and the function at the end."""
        with look():
            picture = Figure(figsize=(PAGE, 2.5), layout="constrained")
            left, right = picture.subplots(1, 2)
            self._losses(left)
            self._functions(right)
            picture.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        return Drawing(
            caption="A relu network of one hidden layer on three points. Left: loss of each seed over that of the "
            "least-squares line. Right: the networks at the end, and the three points.",
            pictures={"": picture},
            tables=(self._table(),),
            data=stack_columns(
                {
                    name: {
                        "seed": np.arange(len(ends)),
                        "loss": ends,
                        "kinks": self.bent[name],
                        "alive": self.alive[name],
                    }
                    for name, ends in self.ends.items()
                },
                "start",
            ),
            settings_extra={"least-squares line": f"{self.line[0]:.4f} x + {self.line[1]:.4f}, loss {self.least:.5f}"},
        )

    def _losses(self, axes: Axes) -> None:
        for (name, run), colour in zip(self.runs.items(), COLOURS, strict=False):
            curves = np.maximum(run.loss[:, 1:] / self.least, 1e-12)
            axes.loglog(run.recorded[1:] * RATE, curves.T, color=colour, alpha=0.4, linewidth=0.7)
            axes.plot([], [], color=colour, label=self.titles[name])
        axes.axhline(1, color=FAINT, linestyle=":", label="least-squares line")
        axes.set(xlabel="time (rate x steps)", ylabel="loss over the line's", ylim=(1e-7, 1e2))

    def _functions(self, axes: Axes) -> None:
        grid = np.linspace(-1, 0.4, 141)[:, None]
        for run, colour in zip(self.runs.values(), COLOURS, strict=False):
            for seed in run.seeds:
                output = run.output(grid, int(run.saved[-1]), seed)
                axes.plot(grid[:, 0], output[:, 0], color=colour, alpha=0.4, linewidth=0.8)
        axes.plot(*np.array(ROWS).T, "o", color=INK, markersize=4)
        axes.plot(grid, np.polyval(self.line, grid), color=FAINT, linestyle=":")
        axes.set(xlabel="x", ylabel="output", ylim=(-0.2, 1.6))

    def _table(self) -> Table:
        columns = {"start": [self.titles[name] for name in self.runs]}
        for heading, values in (
            ("loss over the line's", self.ends),
            ("kinks", self.bent),
            ("negative, alive", self.alive),
        ):
            columns[heading] = [f"{np.median(values[name]):.3g}" for name in self.runs]
        return Table.of_columns("At the end, medians", columns)
