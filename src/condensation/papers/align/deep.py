r"""How long networks of any homogeneity take to align (Kumar and Haupt).

A network of homogeneity L from weights $\delta w_0$ follows $\dot w = \nabla N(w)$ while it is small. In the time
$\delta^{L-2} t$ and with weights over $\delta$ this is the same flow for all $\delta$: directions that converge do so
in a time of order $\delta^{-(L-2)}$, at a norm of order $\delta$. For L = 2 that time does not depend on $\delta$, and
the weights stay small for a time of order $\ln(1/\delta)$.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...activations import Activation
from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...networks import Dense
from ...optimizers import GradientFlow
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most
from .._counts import stack_columns
from .._figure import Drawing, PaperFigure
from .._tables import Table
from ._correlation import ALIGNED, between, gradients, line, reached, relu2, relu3, sine, time_at, two_neurons, vectors

SCALES = {"quick": (1e-3, 1e-4, 1e-5), "paper": (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)}
GONE = 0.99
STEPS = 1000
ABOVE, TWO = "Kumar and Haupt 2024, L > 2", "Kumar and Haupt 2024, L = 2"


@dataclass(frozen=True)
class Kind:
    """A network: its title, hidden widths, activation and homogeneity, how long it is followed and how exactly."""

    title: str
    widths: tuple[int, ...]
    activation: Activation
    power: int
    time: float  # over δ^-(L-2)
    rtol: float = 1e-8

    def start(self, scale: float) -> Experiment:
        """The network from weights of a scale, until 1% of the loss is gone."""
        step = self.time * scale ** (2 - self.power) / STEPS
        return Experiment(
            Dense((3, *self.widths, 1), self.activation, bias=False), Init(Normal(scale)), Drawn(two_neurons),
            GradientFlow(step, stop_ratio=GONE, rtol=self.rtol), STEPS, save=Evenly(STEPS + 1),
            record=Evenly(STEPS + 1),
        )  # fmt: skip


KINDS = {
    "relu": Kind("relu, L = 2", (20,), "relu", 2, 300, 1e-4),
    "relu2": Kind("relu², L = 3", (20,), relu2, 3, 16),
    "relu3": Kind("relu³, L = 4", (20,), relu3, 4, 4),
    "deep": Kind("two hidden layers of relu, L = 3", (10, 10), "relu", 3, 24, 1e-4),
}


def _claims(name: str) -> "tuple[Claim[Deep], ...]":
    kind, ours = KINDS[name], name == "deep"
    where = "additional question" if ours else ABOVE if kind.power > 2 else TWO
    return (
        Claim(
            f"{name}-time", where, f"{kind.title}: directions align in a time of order δ^-(L-2)",
            f"slope of the logarithm of that time against that of δ, its distance from {2 - kind.power}, "
            "over the scales at which it aligns",
            at_most(0.05), lambda figure: PerSeed(np.abs(figure.powers(name, "times") + kind.power - 2)),
            lambda figure: figure.in_words(name), ours=ours,
        ),
        Claim(
            f"{name}-norm", where, f"{kind.title}: the weights are still of order δ then",
            "slope of the logarithm of their norm at that time against that of δ, over the scales at which it aligns",
            at_least(0.95),
            lambda figure: PerSeed(figure.powers(name, "norms")), lambda figure: figure.in_words(name), ours=ours,
        ),
        Claim(
            f"{name}-kkt", where, f"{kind.title}: the direction comes to a KKT point of the neural correlation",
            "sine of the angle of w and its gradient when 1% of the loss is gone, at the smallest δ", at_most(0.05),
            lambda figure: PerSeed(figure.last[name][-1], valid=figure.left[name][-1]),
            lambda figure: figure.in_words(name), ours=ours,
        ),
    )  # fmt: skip


class Deep(PaperFigure):
    """Networks of homogeneity 2, 3 and 4 under gradient flow from ever smaller weights."""

    name, title, paper = "align-deep", "Homogeneity above two: alignment in a time of order δ^-(L-2)", "ALIGN"
    has_variants, on_request = False, True
    seed_count: ClassVar = 10
    chosen = (
        "all settings: 30 samples on the unit sphere of three dimensions with the outputs of two neurons of relu "
        "squared, 20 neurons (10 and 10 in two layers), weights N(0, δ²); aligned is a sine of 0.1. A seed has the "
        "same weights over δ at all scales. Times, tolerances and widths are those of trials with five seeds; from "
        "δ = 0.01, in a first run, 1% of the loss was gone before any seed was aligned, so that the largest scale is "
        "0.001. The "
        "theorem asks for gradients that are Lipschitz, which a network of several layers of relu has not: that one is "
        "an additional question. Relu and its kinks are integrated to 1e-4, the others to 1e-8"
    )
    titles: ClassVar = {f"{name}, {scale:g}": f"{kind.title}, δ = {scale:g}"
                        for name, kind in KINDS.items() for scale in SCALES["paper"]}  # fmt: skip
    claims = (
        *(claim for name in KINDS for claim in _claims(name)),
        Claim(
            "relu-logarithm", TWO, "relu, L = 2: the weights stay small for a time of order ln(1/δ)",
            "R² of a straight line through the time until 1% of the loss is gone, against ln(1/δ)", at_least(0.99),
            lambda figure: PerSeed(figure.straightness), lambda figure: figure.in_words("relu"),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Each network at each scale of the start, the largest first."""
        return {f"{name}, {size:g}": kind.start(size) for name, kind in KINDS.items() for size in SCALES[scale]}

    @property
    def sizes(self) -> Float[np.ndarray, " scales"]:
        """The scales of the start."""
        return np.array(SCALES[self.scale])

    @cached_property
    def courses(self) -> dict[str, list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]]]:
        """Time, sine and norm along the run, by network, scale and seed."""
        found = {}
        for name in KINDS:
            found[name] = []
            for size in SCALES[self.scale]:
                run = self.runs[f"{name}, {size:g}"]
                weights = [vectors(run, k) for k in range(len(run.seeds))]
                found[name].append(
                    [
                        (run.curves["time"][k], sine(own, gradients(run, k)), np.linalg.norm(own, axis=1))
                        for k, own in enumerate(weights)
                    ]
                )
        return found

    @cached_property
    def aligned(self) -> dict[str, Float[np.ndarray, "2 scales seeds"]]:
        """When the sine is first 0.1, and the norm then; NaN where it never is."""
        found = {}
        for name, each in self.courses.items():
            power, rows = max(KINDS[name].power - 2, 1), []
            for time, sines, norms in (course for own in each for course in own):
                place = reached(sines, ALIGNED)
                rows.append((time_at(time, sines, place, power), between(norms, place)))
            found[name] = np.array(rows).reshape(len(each), -1, 2).transpose(2, 0, 1)
        return found

    @cached_property
    def last(self) -> dict[str, Float[np.ndarray, "scales seeds"]]:
        """The sine at the end."""
        return {name: np.array([[sines[-1] for _, sines, _ in own] for own in each])
                for name, each in self.courses.items()}  # fmt: skip

    @cached_property
    def left(self) -> dict[str, np.ndarray]:
        """Whether 1% of the loss is gone at the end: scales x seeds."""
        return {
            name: np.array(
                [[loss[-1] < (1 + GONE) / 2 * loss[0] for loss in self.runs[f"{name}, {size:g}"].loss]
                 for size in SCALES[self.scale]]
            )
            for name in KINDS
        }  # fmt: skip

    def powers(self, name: str, what: str) -> Float[np.ndarray, " seeds"]:
        """The power of δ that times, or norms, of alignment follow, over the scales that have one, at least two."""
        found = []
        for own in self.aligned[name][("times", "norms").index(what)].T:
            known = np.isfinite(own)
            found.append(line(np.log(self.sizes[known]), np.log(own[known]))[0])
        return np.array(found)

    @cached_property
    def straightness(self) -> Float[np.ndarray, " seeds"]:
        """R² of the time until 1% of relu's loss is gone against ln(1/δ); NaN where that never comes."""
        ends = np.array([[time[-1] for time, _, _ in own] for own in self.courses["relu"]])
        ends[~self.left["relu"]] = np.nan
        return np.array([line(-np.log(self.sizes), own)[1] for own in ends.T])

    def in_words(self, name: str) -> str:
        """Medians of one network."""
        times, norms = self.aligned[name]
        aligned = np.isfinite(times).sum(1)
        parts = (
            f"δ = {size:g}: time times δ^(L-2) {np.nanmedian(time) * size ** (KINDS[name].power - 2):.4g}, norm over δ "
            f"{np.nanmedian(norm) / size:.3g}, last sine {np.median(end):.2g} ({count} seeds aligned)"
            if count
            else f"δ = {size:g}: never aligned, last sine {np.median(end):.2g}"
            for size, time, norm, end, count in zip(self.sizes, times, norms, self.last[name], aligned, strict=True)
        )
        return f"Medians. {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """Times and norms by the scale of the start, and sines along the run."""
        with look():
            picture = Figure(figsize=(PAGE, 2.6), layout="constrained")
            left, middle, right = picture.subplots(1, 3)
            for (name, kind), colour in zip(KINDS.items(), COLOURS, strict=False):
                times, norms = self.aligned[name]
                for axes, values, power in ((left, times, 2 - kind.power), (middle, norms, 1)):
                    axes.loglog(self.sizes, values, ".-", color=colour, alpha=0.4, linewidth=0.7)
                    if np.isfinite(values[0]).any():
                        theory = np.nanmedian(values[0]) * (self.sizes / self.sizes[0]) ** power
                        axes.plot(self.sizes, theory, color=FAINT, linestyle=":")
                left.plot([], [], color=colour, label=kind.title)
            left.set(xlabel="scale δ of the start", ylabel="time of alignment")
            middle.set(xlabel="scale δ of the start", ylabel="norm of the weights then")
            self._sines(right)
            picture.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return Drawing(
            caption="Networks of homogeneity L under gradient flow from weights of scale δ, until 1% of the loss is "
            "gone. Left and middle: when the angle of the weights and the gradient of the neural correlation has "
            "a sine of 0.1, and the norm of the weights then, each seed (dotted: δ^-(L-2), and δ). Right: this sine "
            "over the norm of the weights, each seed at the smallest δ (dotted: 0.1).",
            pictures={"": picture},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={"aligned": f"a sine of {ALIGNED:g}"},
        )

    def _sines(self, axes: Axes) -> None:
        for courses, colour in zip(self.courses.values(), COLOURS, strict=False):
            for _, sines, norms in courses[-1]:
                axes.loglog(norms / norms[0], sines, color=colour, alpha=0.4, linewidth=0.7)
        axes.axhline(ALIGNED, color=FAINT, linestyle=":")
        axes.set(xlabel="norm over that of the start", ylabel="sine to a KKT point")

    def _table(self) -> Table:
        rows = [
            (
                KINDS[name].title, f"{size:g}", f"{np.isfinite(times[k]).sum()} of {times.shape[1]}",
                *(f"{np.nanmedian(own):.3g}" if np.isfinite(own).any() else "–" for own in (times[k], norms[k] / size)),
                f"{np.median(self.last[name][k]):.2g}",
            )
            for name, (times, norms) in self.aligned.items() for k, size in enumerate(self.sizes)
        ]  # fmt: skip
        header = "network", "δ", "aligned seeds", "time of alignment", "norm then over δ", "last sine"
        return Table("By network and scale, medians", header, tuple(rows))

    def _data(self) -> dict[str, np.ndarray]:
        return stack_columns(
            {
                f"{name}, {size:g}": {
                    "seed": np.arange(times.shape[1]), "time": times[k], "norm": norms[k], "sine": self.last[name][k],
                }
                for name, (times, norms) in self.aligned.items() for k, size in enumerate(self.sizes)
            },
            "network",
        )  # fmt: skip
