r"""Samples in a cone with the outputs of one relu neuron (Chistikov, Englert and Lazic).

A balanced neuron of positive output weight that is active on all samples turns to $\gamma = \frac1n \sum_i y_i x_i$ by
$\tan(\theta/2) \propto e^{-|\gamma| t}$ while the network is small, whatever its own size: the time is that of the
growth from the scale $\lambda$ to 1, $\ln(1/\lambda)/|\gamma|$, of which a part $\epsilon$ is needed to come within
$\lambda^\epsilon$.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...networks import Dense
from ...optimizers import GD
from ...runs import Trajectory
from ...saving import Geometric
from .._claims import Claim, PerSeed, at_least, at_most, exactly, question
from .._counts import stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._cone import DIM, better, cone, cone_above, dual_maximum, teacher_of

POWERS = {"quick": (1, 5, 9, 13), "paper": (1, 3, 5, 7, 9, 11, 13)}  # of 1/4
SETTINGS = {"quick": (50, 0.1, 30_000), "paper": (200, 0.1, 200_000)}  # width, rate, steps
PART = 0.25  # epsilon
EARLY, EARLY_STEPS = "early 4^-45", 600  # a scale at which alignment alone is seen, and the steps for it
SLOW = (
    "Four samples in a cone are nearly dependent in some seeds: the loss has parts that fall at very different "
    "rates, and "
    "what is left of the slowest at the end bends its logarithm and keeps neurons from the teacher, whatever λ is."
)
WHERE, SMALL = "Chistikov et al. 2023", "λ = 4^-45"
LATER = (
    "alignment is asked of a short training at λ = 4^-45, as the theorem is of small λ: a first run asked it at 4^-13, "
    "the least of the text's; between saved steps it is read off by the logarithm of 1 - cos"
)


class Cone(PaperFigure):
    """Networks on a cone from ever smaller weights."""

    name, title, paper = "align-cone", "One relu neuron's data: alignment, dead neurons, rank one", "ALIGN"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        "four inputs, the least of the text's; the samples' law (unit vectors, their angle from the teacher uniform "
        "up to 45 degrees; for M > 0 drawn again until the teacher is not of least norm and no singular value is below "
        "0.03); a teacher of norm 1; rate 0.1; ε = 1/4; and what counts as exponential and as rank one; "
        f"{LATER}"
    )
    claims = (
        Claim(
            "aligned", WHERE, "neurons of positive output weight come within λ^ε of γ by the time ε ln(1/λ)/|γ|",
            f"largest 1 - cos of those active at first, over λ^ε, at that time, {SMALL}", at_most(1),
            lambda figure: PerSeed(figure.early_gaps), lambda figure: figure.in_words(),
        ),
        Claim(
            "negative", WHERE, "those of negative output weight die",
            "share of those active at first that are active on any sample at the end, at the smallest λ", exactly(0),
            lambda figure: PerSeed(figure.survivors[-1]), lambda figure: figure.in_words(),
        ),
        Claim(
            "exponential", WHERE, "the loss then falls exponentially",
            "R² of a straight line through its logarithm from 1% of the first loss on, at the smallest "
            "λ", at_least(0.95),
            lambda figure: figure.straightness, lambda figure: figure.in_words(),
        ),
        Claim(
            "rank", WHERE, "as λ goes to 0 the network becomes one neuron, the teacher",
            "largest angle of an active neuron to the teacher at the end, in degrees, at the smallest λ", at_most(1),
            lambda figure: PerSeed(figure.angles[-1]), lambda figure: figure.in_words(),
        ),
        Claim(
            "falls", WHERE, "the largest angle falls with λ",
            "rank correlation of λ and the largest angle at the end", at_least(0.999),
            lambda figure: PerSeed([rank_correlation(figure.scales, own) for own in figure.angles.T]),
            lambda figure: figure.in_words(),
        ),
        question(
            "time", "the time until the loss falls grows with ln(1/λ) as 1/|γ|",
            "slope of the time at which 30% of the loss is gone against ln(1/λ), times |γ|, less 1, its size",
            at_most(0.1), lambda figure: PerSeed(np.abs(figure.slopes - 1)), lambda figure: figure.in_words(),
        ),
        Claim(
            "not-least", WHERE, "where M > 0, the interpolation of rank one is not that of least norm",
            "sum of |a||w| of two neurons that interpolate, over the teacher's", at_most(1 - 1e-6),
            lambda figure: PerSeed(figure.least), note="M itself could not be read: the statement is put to draws of "
            "the "
            "samples for which duality says that there is a smaller norm; no network is trained on "
            "them.", trained=False,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """A network for each scale of the start, the largest first."""
        width, rate, steps = SETTINGS[scale]
        often = Geometric(40)

        def start(power: int) -> Init:
            return Init(Normal(4.0**-power / (DIM * width) ** 0.5), balance="balanced")

        each = Experiment(
            Dense((DIM, width, 1), "relu", bias=False), start(1), Drawn(cone), GD(rate), steps, save=often, record=often
        )
        short = each.replace(init=start(45), steps=EARLY_STEPS)
        return {f"4^-{power}": each.replace(init=start(power)) for power in POWERS[scale]} | {EARLY: short}

    @cached_property
    def scaled(self) -> Available[Trajectory]:
        """The whole trainings, by their scale."""
        runs = {name: run for name, run in self.runs.items() if name != EARLY}
        return Available(runs, {name: why for name, why in self.runs.missing.items() if name != EARLY})

    @property
    def early_gaps(self) -> Float[np.ndarray, " seeds"]:
        """The largest 1 - cos to γ over λ^ε at that time, from the scale of the short training."""
        return Cone(Available({EARLY.removeprefix("early "): self.runs[EARLY]}), scale=self.scale).gaps[0]

    @cached_property
    def scales(self) -> Float[np.ndarray, " scales"]:
        """The scales λ, the largest first."""
        return np.array([4.0 ** float(name.removeprefix("4^")) for name in self.scaled])

    @cached_property
    def samples(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Samples and targets of each seed."""
        run = next(iter(self.scaled.values()))
        return [(x, y[:, 0]) for x, y in map(run.data, run.seeds)]

    @cached_property
    def gamma(self) -> Float[np.ndarray, "seeds inputs"]:
        """The mean of the samples times their targets."""
        return np.array([y @ x / len(y) for x, y in self.samples])

    @property
    def rate(self) -> Float[np.ndarray, " seeds"]:
        """The size of γ."""
        return np.linalg.norm(self.gamma, axis=1)

    def active(self, name: str, column: int) -> Bool[np.ndarray, "seeds units"]:
        """Which neurons are active on any sample."""
        weights = self.scaled[name].history(1)[:, column]
        return np.array([(own @ x.T > 0).any(1) for own, (x, _) in zip(weights, self.samples, strict=True)])

    def positive(self, name: str) -> Bool[np.ndarray, "seeds units"]:
        """Which neurons have a positive output weight at the start."""
        return self.scaled[name].parameters["output.weight"][:, 0, 0] > 0

    @property
    def gaps(self) -> Float[np.ndarray, "scales seeds"]:
        """The largest 1 - cos to γ, over λ^ε, at the time ε ln(1/λ)/|γ|."""
        return np.nan_to_num(self.gaps_of_neurons).max(-1)

    @cached_property
    def gaps_of_neurons(self) -> Float[np.ndarray, "scales seeds units"]:
        """Those of each neuron; NaN where it is not active at first, or its output weight is negative."""
        found = []
        for name, scale in zip(self.scaled, self.scales, strict=True):
            run, own = self.scaled[name], self.active(name, 0) & self.positive(name)
            due = PART * np.log(1 / scale) / self.rate
            lengths = np.linalg.norm(run.history(1), axis=-1) * self.rate[:, None, None]
            cosines = np.einsum("stui,si->stu", run.history(1), self.gamma) / lengths
            each = at_times(run.saved * SETTINGS[self.scale][1], 1 - cosines, due)
            found.append(np.where(own, each, np.nan) / scale**PART)
        return np.array(found)

    @cached_property
    def survivors(self) -> Float[np.ndarray, "scales seeds"]:
        """The share of the neurons of negative output weight that stay active."""
        found = []
        for name in self.scaled:
            first = self.active(name, 0) & ~self.positive(name)
            found.append((first & self.active(name, -1)).sum(1) / np.maximum(first.sum(1), 1))
        return np.array(found)

    @cached_property
    def angles(self) -> Float[np.ndarray, "scales seeds"]:
        """The largest angle of an active neuron to the teacher at the end, in degrees."""
        teachers = np.array([teacher_of(x, y) for x, y in self.samples])
        found = []
        for name, run in self.scaled.items():
            weights = run.history(1)[:, -1]
            lengths = np.linalg.norm(weights, axis=-1) * np.linalg.norm(teachers, axis=1)[:, None]
            cosines = np.clip(np.einsum("sui,si->su", weights, teachers) / lengths, -1, 1)
            found.append(np.degrees(np.where(self.active(name, -1), np.arccos(cosines), 0).max(1)))
        return np.array(found)

    @cached_property
    def straightness(self) -> PerSeed:
        """R² of the logarithm of the loss against time; a seed whose loss never is 1% of the first has none."""
        run, found = [*self.scaled.values()][-1], []
        for loss in run.loss:
            below = (loss < 0.01 * loss[0]) & (loss > 1e-20)
            if below.sum() < 10:
                found.append(np.nan)
                continue
            seen = run.recorded[below]
            time = np.linspace(seen[0], seen[-1], 200)
            level = np.interp(time, seen, np.log(loss[below]))
            found.append(np.corrcoef(time, level)[0, 1] ** 2)
        return PerSeed(found)

    @cached_property
    def times(self) -> Float[np.ndarray, "scales seeds"]:
        """When 30% of the loss is gone; infinite where it never is."""
        found, rate = [], SETTINGS[self.scale][1]
        for run in self.scaled.values():
            gone = run.loss <= 0.7 * run.loss[:, :1]
            found.append(np.where(gone.any(1), run.recorded[gone.argmax(1)] * rate, np.inf))
        return np.array(found)

    @cached_property
    def slopes(self) -> Float[np.ndarray, " seeds"]:
        """The slope of these times against ln(1/λ), times |γ|; NaN where the loss never falls."""
        if not np.isfinite(self.times).all():
            return np.full(len(self.rate), np.nan)
        steps = [np.polyfit(np.log(1 / self.scales), own, 1)[0] for own in self.times.T]
        return np.array(steps) * self.rate

    @cached_property
    def least(self) -> Float[np.ndarray, " seeds"]:
        """The norm of two neurons that interpolate data whose teacher is not of least norm, over the teacher's."""
        found = []
        for seed in next(iter(self.scaled.values())).seeds:
            x, y = Drawn(cone_above).draw(seed)
            teacher = teacher_of(x, y[:, 0])
            found.append(better(x, teacher, dual_maximum(x, teacher)[1]))
        return np.array(found)

    @cached_property
    def norms(self) -> Float[np.ndarray, "scales seeds"]:
        """The sum of |a||w| of the active neurons at the end, over the teacher's."""
        found = []
        for name, run in self.scaled.items():
            sizes = np.abs(run.parameters["output.weight"][:, -1, 0]) * np.linalg.norm(run.history(1)[:, -1], axis=-1)
            found.append((sizes * self.active(name, -1)).sum(1))
        return np.array(found)

    @property
    def fitted(self) -> Bool[np.ndarray, "scales seeds"]:
        """Whether the loss at the end is below 1e-6 of the first."""
        return np.array([run.loss[:, -1] < 1e-6 * run.loss[:, 0] for run in self.scaled.values()])

    def in_words(self) -> str:
        """Medians by the scale of the start."""
        parts = (
            f"λ = {name}: 1 - cos over λ^ε {np.median(gap):.2g}, negative ones alive {np.median(alive):.2g}, largest "
            f"angle {np.median(angle):.2g}°"
            for name, gap, alive, angle in zip(self.scaled, self.gaps, self.survivors, self.angles, strict=True)
        )
        last = [*self.scaled.values()][-1].loss
        return (
            f"Medians. {'; '.join(parts)}. Loss at the end over the first, smallest λ: "
            f"{np.median(last[:, -1] / last[:, 0]):.1g}."
            f" Slope of the time times |γ|: {np.median(self.slopes):.3g}. {SLOW}"
        )

    def draw(self) -> Drawing:
        """Losses, times and angles by the scale of the start."""
        with look():
            picture = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, middle, right = picture.subplots(1, 3)
            for (name, run), colour in zip(self.scaled.items(), COLOURS, strict=False):
                time = run.recorded[1:] * SETTINGS[self.scale][1]
                left.loglog(time, run.loss[:, 1:].T, color=colour, alpha=0.35, linewidth=0.7)
                left.plot([], [], color=colour, label=f"λ = {name}")
            left.set(xlabel="time (rate x steps)", ylabel="loss", ylim=(1e-16, 1))
            logs = np.log(1 / self.scales)
            middle.plot(logs, self.times * self.rate, ".-", color=COLOURS[0], alpha=0.5, linewidth=0.7)
            middle.plot(logs, logs, color=FAINT, linestyle=":")
            middle.set(xlabel="ln(1/λ)", ylabel="|γ| x time to 70% of the loss")
            right.loglog(self.scales, self.angles, ".-", color=COLOURS[1], alpha=0.5, linewidth=0.7)
            right.set(xlabel="λ", ylabel="largest angle, degrees")
            picture.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=7)
        return Drawing(
            caption="Relu networks on four samples in a cone with the outputs of one neuron, from balanced weights of "
            "scale λ. Left: loss of each seed. Middle: time until 30% of it is gone, times |γ| (dotted: ln(1/λ)). "
            "Right: "
            "largest angle of an active neuron to the teacher at the end.",
            pictures={"": picture},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={"ε": f"{PART:g}"},
        )

    def _table(self) -> Table:
        return Table.of_columns(
            "By the scale of the start, medians",
            {
                "λ": self.scaled,
                "1 - cos over λ^ε": [f"{np.median(own):.2g}" for own in self.gaps],
                "negative ones alive": [f"{np.median(own):.2g}" for own in self.survivors],
                "largest angle": [f"{np.median(own):.2g}°" for own in self.angles],
                "sum of |a||w|": [f"{np.median(own):.4f}" for own in self.norms],
                "fitted": [f"{own.sum()} of {len(own)}" for own in self.fitted],
            },
        )

    def _data(self) -> dict[str, np.ndarray]:
        return stack_columns(
            {
                name: {
                    "seed": np.arange(len(self.rate)), "gap": self.gaps[k], "alive": self.survivors[k],
                    "angle": self.angles[k], "norm": self.norms[k], "time": self.times[k],
                }
                for k, name in enumerate(self.scaled)
            },
            "scale",
        )  # fmt: skip


def at_times(time: np.ndarray, values: np.ndarray, due: np.ndarray) -> Float[np.ndarray, "seeds units"]:
    """Values at a time of each seed, by their logarithms between saved steps; at the end where it ended before.

    >>> at_times(np.array([0.0, 1.0, 3.0]), np.array([[[1.0], [1e-2], [1e-4]]] * 2), np.array([2.0, 9.0])).ravel()
    array([0.001 , 0.0001])
    """
    logs, seeds = np.log(np.maximum(values, 1e-300)), np.arange(len(due))
    after = np.minimum(np.searchsorted(time, due), len(time) - 1)
    before = np.maximum(after - 1, 0)
    shares = (due - time[before]) / np.where(after > before, time[after] - time[before], 1)
    shares = np.clip(shares, 0, 1)[:, None]
    return np.exp((1 - shares) * logs[seeds, before] + shares * logs[seeds, after])


def rank_correlation(scales: np.ndarray, values: np.ndarray) -> float:
    """Spearman's rank correlation; NaN where nothing varies.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 6.0]))
    1.0
    """
    if np.ptp(values) <= 1e-9:
        return float("nan")
    return float(spearmanr(scales, values).statistic)  # type: ignore[union-attr]
