"""Neuron pursuit on its authors' example (Kumar and Haupt): a three-layer relu network of a neuron more at a time."""

from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import He, Init
from ...networks import Dense
from ...optimizers import GD
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_most, question
from .._figure import Drawing, PaperFigure
from .._tables import Table
from ._pursuit import EXACT, LENGTHS, SIZE, STARTS, Iteration, error_on, pursue

DIM, SAMPLES, FIVE = 20, 1000, 5
RATE, STEPS = 0.02, {"quick": 20_000, "paper": 50_000}
WHERE = "Kumar and Haupt 2025, neuron pursuit"


def target(x: Float[np.ndarray, "samples inputs"]) -> Float[np.ndarray, " samples"]:
    """The authors' example: two neurons on four, of the first four coordinates."""

    def relu(z: Any) -> Any:
        return np.maximum(z, 0)

    first, second, third, fourth = x.T[:4]
    return 2 * relu(relu(2 * first + third) - relu(third - second)) - relu(
        relu(2 * second + fourth) + relu(fourth + third)
    )


def example(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A thousand samples of signs and their targets."""
    x = rng.choice([-1.0, 1.0], (SAMPLES, DIM))
    return x, target(x)


class NeuronPursuit(PaperFigure):
    """The example, by pursuit, with its neurons at random directions, and trained as a whole."""

    name, title, paper = "align-pursuit", "Neuron pursuit: a network that grows by a neuron at a time", "ALIGN"
    has_variants, on_request = False, True
    seed_count: ClassVar = {"quick": 3, "paper": 10}
    chosen = (
        f"the inputs uniform; the search of each sphere from {STARTS} random directions by {len(LENGTHS)} steps of "
        f"normalised ascent, of length {LENGTHS[0]:g} down to {LENGTHS[-1]:g}; which layer grows (the one of the "
        "larger "
        f"correlation; at first one neuron of each layer); new weights of norm {SIZE:g}; gradient descent at {RATE:g}, "
        "all samples at a time, until the gradient is zero or for 50,000 steps (20,000 at the quick scale); exact is "
        "a mean squared error of 1e-6 of the mean square of the targets; at most seven iterations. In trials with "
        "seeds of their own the fit was not exact after five iterations in four seeds of eight with new weights of "
        "norm 0.1, in one of five with 0.01"
    )
    titles: ClassVar = {"whole": "the same widths, trained as a whole"}
    claims = (
        Claim(
            "five", WHERE, "the example is fitted exactly in five iterations",
            f"iterations until the training error is {EXACT:g} of the targets' mean square, seven at most",
            at_most(FIVE), lambda figure: PerSeed(figure.iterations), lambda figure: figure.in_words(),
            trained=False, note="No network of a fixed size is trained: random directions are the control.",
        ),
        Claim(
            "exact", WHERE, "and so are new samples", "test error after five iterations over the targets' mean square",
            at_most(EXACT), lambda figure: PerSeed(figure.tested), lambda figure: figure.in_words(), trained=False,
        ),
        question(
            "random", "small neurons at random directions, in the same layers, do it as well",
            "training error after five iterations, or as many as the pursuit took if fewer, over the targets' mean "
            "square", at_most(EXACT),
            lambda figure: PerSeed(figure.at_random), lambda figure: figure.in_words(), trained=False,
        ),
        question(
            "whole", "a network of four and two neurons from an ordinary start fits the example exactly",
            "training error after as many steps as five iterations have, over the targets' mean square",
            at_most(EXACT), lambda figure: PerSeed(figure.whole), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network of the target's widths; the others grow from its samples."""
        few = Evenly(26)
        return {
            "whole": Experiment(
                Dense((DIM, 4, 2, 1), "relu", bias=False), Init(He()), Drawn(example), GD(RATE), FIVE * STEPS[scale],
                save=Evenly(2), record=few, test=Drawn(example),
            )
        }  # fmt: skip

    @property
    def samples(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Samples and targets of each seed."""
        run = self.runs["whole"]
        return [(x, y[:, 0]) for x, y in map(run.data, run.seeds)]

    def _grown(self, k: int, layers: tuple[str, ...] | None = None) -> list[Iteration]:
        x, y = self.samples[k]
        rng = np.random.default_rng([self.runs["whole"].seeds[k].init, 3, layers is not None])
        return pursue(x, y, rng, RATE, STEPS[self.scale], layers)

    @cached_property
    def found(self) -> list[list[Iteration]]:
        """The iterations of each seed."""
        return [self._grown(k) for k in range(self.seeds)]

    @cached_property
    def random(self) -> list[list[Iteration]]:
        """As many with random directions, in the same layers."""
        return [self._grown(k, _layers(own)) for k, own in enumerate(self.found)]

    @property
    def at_random(self) -> list[float]:
        """The training error of these after five iterations, or where they ended before."""
        return [own[:FIVE][-1].error for own in self.random]

    @cached_property
    def iterations(self) -> list[float]:
        """How many it takes; NaN where it is never exact."""
        return [len(own) if own[-1].error <= EXACT else np.nan for own in self.found]

    @cached_property
    def tested(self) -> list[float]:
        """The test error after five iterations, or where it ended before."""
        nets = [own[min(FIVE, len(own)) - 1].net for own in self.found]
        run = self.runs["whole"]
        others = [run.experiment.samples(seed, held_out=True) for seed in run.seeds]
        return [error_on(net, x, y[:, 0]) for net, (x, y) in zip(nets, others, strict=True)]

    @cached_property
    def whole(self) -> Float[np.ndarray, " seeds"]:
        """The training error of the network that is trained as a whole."""
        squares = np.array([np.mean(y**2) for _, y in self.samples])
        return 2 * self.runs["whole"].loss[:, -1] / squares

    def in_words(self) -> str:
        """How many iterations it took, and what the controls leave."""
        counts = ", ".join("never" if np.isnan(each) else f"{each:g}" for each in self.iterations)
        late = [own[FIVE - 1] for own in self.found if len(own) > FIVE or own[-1].error > EXACT]
        left = (
            f" Where five are not enough the error after them is {np.median([each.error for each in late]):.2g} "
            f"(median): training has come to another critical point, and the fifth neuron was put where the "
            f"correlation is {np.median([each.correlation for each in late]):.1g} at most."
            if late
            else ""
        )
        return (
            f"Iterations until exact, seed by seed: {counts}.{left} Errors of as many random neurons, median "
            f"{np.median(self.at_random):.2g}; of four and two neurons trained as a whole, {np.median(self.whole):.2g}."
        )

    def draw(self) -> Drawing:
        """Errors by iteration, and how many iterations were needed."""
        with look():
            picture = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, right = picture.subplots(1, 2)
            for runs, colour, title in (
                (self.found, COLOURS[0], "pursuit"), (self.random, COLOURS[1], "random directions")
            ):  # fmt: skip
                for own in runs:
                    left.semilogy(
                        np.arange(len(own)) + 1, [max(each.error, 1e-20) for each in own], ".-", color=colour,
                        alpha=0.5, linewidth=0.8,
                    )  # fmt: skip
                left.plot([], [], ".-", color=colour, label=title)
            left.axhline(EXACT, color=FAINT, linestyle=":")
            left.set(xlabel="iteration", ylabel="training error over the mean square")
            left.legend(fontsize=6)
            self._numbers(right)
        return Drawing(
            caption="A three-layer relu network that grows by a neuron in each iteration, at the direction of the "
            "largest neural correlation with the residual, and is trained to the end each time. Left: training error "
            "of each seed by iteration, and with the new neurons in random directions (dotted: what counts as exact). "
            "Right: how many seeds are exact after how many iterations.",
            pictures={"": picture},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={"exact": f"a mean squared error of {EXACT:g} of the mean square of the targets"},
        )

    def _numbers(self, axes: Axes) -> None:
        words = [*map(str, range(3, 8)), "never"]
        needed = ["never" if np.isnan(each) else f"{each:g}" for each in self.iterations]
        axes.bar(words, [needed.count(word) for word in words], color=COLOURS[0])
        axes.set(xlabel="iterations until exact", ylabel="seeds")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))

    def _table(self) -> Table:
        rows = []
        for k, own in enumerate(self.found):
            widths = ", ".join(f"{first}-{second}" for first, second in (each.widths for each in own))
            rows.append(
                (f"{k}", widths, f"{own[-1].error:.1e}", f"{self.tested[k]:.1e}", f"{self.at_random[k]:.1e}",
                 f"{self.whole[k]:.1e}")
            )  # fmt: skip
        header = (
            "seed", "neurons of both layers by iteration", "training error at the end", "test error after five",
            "random, training error after five", "as a whole, training error",
        )  # fmt: skip
        return Table("Seed by seed", header, tuple(rows))

    def _data(self) -> dict[str, np.ndarray]:
        rows = [
            (kind, k, place + 1, *each.widths, each.error, each.correlation, each.steps)
            for kind, runs in (("pursuit", self.found), ("random", self.random))
            for k, own in enumerate(runs)
            for place, each in enumerate(own)
        ]
        names = ("kind", "seed", "iteration", "first", "second", "error", "correlation", "steps")
        return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _layers(own: list[Iteration]) -> tuple[str, ...]:
    """Which layer grew in each iteration after the first."""
    return tuple("first" if later.widths[0] > earlier.widths[0] else "second" for earlier, later in pairwise(own))
