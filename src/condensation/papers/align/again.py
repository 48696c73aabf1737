r"""Small weights align again at the first saddle (Kumar and Haupt).

When one neuron of a network of homogeneity 3 has grown, the others are still of order $\delta$, and the loss is at a
saddle. There they follow the gradient of a neural correlation whose labels are the residual: they stay small, turn to
its KKT points, and need a time of order $1/\delta$ for it, as at the start.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...networks import Dense
from ...optimizers import GradientFlow
from ...runs import Trajectory
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._counts import stack_columns
from .._figure import Drawing, PaperFigure
from .._tables import Table
from ..saddle._growth import GROWN, unit_norms
from ._correlation import ALIGNED, between, gradients, line, reached, relu2, sine, time_at, two_neurons, vectors

SCALES = {"quick": (1e-3, 1e-4), "paper": (3e-3, 1e-3, 3e-4, 1e-4)}
WIDTH, STEPS, TIME, ENOUGH = 20, 2000, 60, 0.01
WHERE = "Kumar and Haupt 2025"


@dataclass(frozen=True)
class Second:
    """The second alignment in one seed.

    Attributes:
        time: over the run.
        loss: over the run, over the first.
        sines: of the small weights and the gradient of the correlation with the residual, over the run.
        norms: of the small weights, over the run.
        first, saddle: columns at which the first neuron has grown, and half-way to the second one.
        grown: the column at which a second neuron has grown; None where none has.
    """

    time: np.ndarray
    loss: np.ndarray
    sines: np.ndarray
    norms: np.ndarray
    first: int = 0
    saddle: int = 0
    grown: int | None = None

    @property
    def place(self) -> float:
        """Where, among the saved steps after the first growth, they are aligned again."""
        return float("nan") if self.grown is None else reached(self.sines, ALIGNED, self.first)

    @property
    def wait(self) -> float:
        """The time from the first growth to the second alignment."""
        return time_at(self.time, self.sines, self.place) - float(self.time[self.first])

    @property
    def leaving(self) -> int:
        """The last column before 1% of the saddle's loss is gone."""
        return self.saddle + int(np.argmax(self.loss[self.saddle :] <= 0.99 * self.loss[self.saddle])) - 1


def second_alignment(run: Trajectory, k: int) -> Second:
    """The small weights of a seed at its first saddle: those of all neurons but the one that grows first."""
    time, loss, units = run.curves["time"][k], run.loss[k] / run.loss[k, 0], unit_norms(run)[k]
    blank = np.full(len(time), np.nan)
    largest = units.max(1) >= GROWN
    if not largest.any():
        return Second(time, loss, blank, blank)
    first = int(largest.argmax())
    small = np.arange(units.shape[1]) != units[first].argmax()
    others = units[:, small].max(1) >= GROWN
    if not others.any():
        return Second(time, loss, blank, blank, first, len(time) - 1)
    grown = int(others.argmax())
    saddle = (first + grown) // 2
    x, y = run.data(run.seeds[k])
    residual = y - run.model(int(run.saved[saddle]), run.seeds[k])(x)
    theirs = np.concatenate([np.repeat(small, x.shape[1]), small])  # of the input and of the output weights
    weights, gradient = vectors(run, k)[:, theirs], gradients(run, k, residual)[:, theirs]
    return Second(time, loss, sine(weights, gradient), np.linalg.norm(weights, axis=1), first, saddle, grown)


class Again(PaperFigure):
    """Networks of relu squared under gradient flow, through their first saddle."""

    name, title, paper = "align-again", "Small weights align again at the first saddle", "ALIGN"
    has_variants, on_request = False, True
    seed_count: ClassVar = 10
    chosen = (
        "all settings: the data and the network of relu squared of align-deep, weights N(0, δ²), followed until 1% of "
        f"the loss is left or for a time of {TIME} over δ; a neuron has grown at a norm of {GROWN:g}; the saddle is "
        "half-way from the first growth to the second; aligned is a sine of 0.1. A trial with five seeds showed that "
        "neurons grow one after the other there"
    )
    claims = (
        Claim(
            "small", WHERE, "at the first saddle small weights stay small",
            "slope of the logarithm of their norm at the second alignment against that of δ", at_least(0.95),
            lambda figure: figure.powers("norm"), lambda figure: figure.in_words(),
        ),
        Claim(
            "time", WHERE, "they align again in a time of order δ^-(L-2), here 1/δ",
            "slope of the logarithm of the time from the first growth to the second alignment against that of δ, its "
            "distance from -1", at_most(0.05),
            lambda figure: figure.powers("wait", 1), lambda figure: figure.in_words(),
        ),
        Claim(
            "kkt", WHERE, "with a KKT point of the neural correlation whose labels are the residual",
            "sine of the angle of the small weights and its gradient at the last saved step before 1% of the "
            "saddle's loss is gone, at the smallest δ", at_most(0.05),
            lambda figure: PerSeed(figure.last[-1], decided=figure.decided), lambda figure: figure.in_words(),
        ),
        question(
            "turned", "it is another direction than before: at the first growth they are not aligned with it",
            "this sine at the first growth, at the smallest δ", at_least(0.3),
            lambda figure: PerSeed(figure.before[-1], decided=figure.decided), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network at each scale of the start, the largest first."""
        often = Evenly(STEPS + 1)
        return {
            f"δ = {size:g}": Experiment(
                Dense((3, WIDTH, 1), relu2, bias=False), Init(Normal(size)), Drawn(two_neurons),
                GradientFlow(TIME / size / STEPS, stop_ratio=ENOUGH), STEPS, save=often, record=often,
            )
            for size in SCALES[scale]
        }  # fmt: skip

    @property
    def sizes(self) -> Float[np.ndarray, " scales"]:
        """The scales of the start."""
        return np.array(SCALES[self.scale])

    @cached_property
    def seconds(self) -> list[list[Second]]:
        """The second alignment by scale and seed."""
        return [[second_alignment(run, k) for k in range(len(run.seeds))] for run in self.runs.values()]

    @property
    def decided(self) -> list[bool]:
        """Whether a seed's network has a second growth at all scales: without one it has no second alignment."""
        return [all(each.grown is not None for each in own) for own in zip(*self.seconds, strict=True)]

    @cached_property
    def waits(self) -> Float[np.ndarray, "scales seeds"]:
        """The times from the first growth to the second alignment."""
        return np.array([[each.wait for each in own] for own in self.seconds])

    @cached_property
    def norms(self) -> Float[np.ndarray, "scales seeds"]:
        """The norms of the small weights then."""
        return np.array([[between(each.norms, each.place) for each in own] for own in self.seconds])

    @cached_property
    def last(self) -> Float[np.ndarray, "scales seeds"]:
        """The sines before 1% of the saddle's loss is gone."""
        return np.array([[each.sines[each.leaving] for each in own] for own in self.seconds])

    @cached_property
    def before(self) -> Float[np.ndarray, "scales seeds"]:
        """The sines at the first growth."""
        return np.array([[each.sines[each.first] for each in own] for own in self.seconds])

    def powers(self, what: str, theory: int = 0) -> PerSeed:
        """The power of δ that norms follow, or the distance of that of the waits from theory's."""
        values = self.norms if what == "norm" else self.waits
        found = np.array([line(np.log(self.sizes), np.log(own))[0] for own in values.T])
        return PerSeed(np.abs(found + theory) if theory else found, decided=self.decided)

    def in_words(self) -> str:
        """Medians by scale, and how many seeds have a second growth."""
        parts = (
            f"{name}: time times δ {_median(wait * size):.3g}, norm over δ {_median(norm / size):.3g}, sine at the "
            f"first growth {_median(before):.2g} and on leaving {_median(last):.2g}"
            for name, size, wait, norm, before, last in zip(
                self.runs, self.sizes, self.waits, self.norms, self.before, self.last, strict=True
            )
        )
        return f"{sum(self.decided)} of {len(self.decided)} seeds have a second growth. Medians: {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """Losses, and sines of the small weights, over time; times and norms by the scale of the start."""
        with look():
            picture = Figure(figsize=(PAGE, 4.2), layout="constrained")
            (losses, sines), (waits, norms) = picture.subplots(2, 2)
            for each, colour in zip(self.seconds[-1], (COLOURS * 2)[: len(self.decided)], strict=False):
                self._course(losses, sines, each, colour)
            losses.set(xlabel="δ x time", ylabel="loss over the first")
            sines.axhline(ALIGNED, color=FAINT, linestyle=":")
            sines.set(xlabel="δ x time since the first growth", ylabel="sine to a KKT point")
            for axes, values, power in ((waits, self.waits, -1), (norms, self.norms, 1)):
                axes.loglog(self.sizes, values, ".-", color=COLOURS[0], alpha=0.4, linewidth=0.7)
                if np.isfinite(values[0]).any():
                    theory = _median(values[0]) * (self.sizes / self.sizes[0]) ** power
                    axes.plot(self.sizes, theory, color=FAINT, linestyle=":")
            waits.set(xlabel="scale δ of the start", ylabel="time to align again")
            norms.set(xlabel="scale δ of the start", ylabel="norm of the small weights then")
        return Drawing(
            caption="A network of relu squared under gradient flow through its first saddle. Top: loss of each seed at "
            "the smallest δ, and the sine of the angle between the weights of all neurons but the one that grew first "
            "and the gradient of the neural correlation with the residual of the saddle, from the first growth to the "
            "second. Below: when this sine is 0.1 (dotted: 1/δ), and the norm of these weights then (dotted: δ).",
            pictures={"": picture},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={"aligned": f"a sine of {ALIGNED:g}", "grown": f"a norm of {GROWN:g}"},
        )

    def _course(self, losses: Axes, sines: Axes, each: Second, colour: str) -> None:
        time = each.time * self.sizes[-1]
        losses.semilogy(time, each.loss, color=colour, alpha=0.6, linewidth=0.8)
        if each.grown is not None:
            part = slice(each.first, each.grown)
            sines.semilogy(time[part] - time[each.first], each.sines[part], color=colour, alpha=0.6, linewidth=0.8)

    def _table(self) -> Table:
        return Table.of_columns(
            "By the scale of the start, medians",
            {
                "δ": [f"{size:g}" for size in self.sizes],
                "seeds with a second growth": [
                    f"{sum(each.grown is not None for each in own)} of {len(own)}" for own in self.seconds
                ],
                "time to align again": [f"{_median(own):.3g}" for own in self.waits],
                "norm then over δ": [
                    f"{_median(own / size):.3g}" for own, size in zip(self.norms, self.sizes, strict=True)
                ],
                "sine at the first growth": [f"{_median(own):.2g}" for own in self.before],
                "sine on leaving": [f"{_median(own):.2g}" for own in self.last],
            },
        )

    def _data(self) -> dict[str, np.ndarray]:
        return stack_columns(
            {
                name: {
                    "seed": np.arange(len(self.decided)), "time": self.waits[k], "norm": self.norms[k],
                    "before": self.before[k], "sine": self.last[k],
                }
                for k, name in enumerate(self.runs)
            },
            "scale",
        )  # fmt: skip


def _median(values: np.ndarray) -> float:
    """The median of what is known; NaN where nothing is."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")
