r"""The embedding principle: a neuron that is split leaves the loss at a critical point, now of a wider network.

Splitting neuron j with shares $\delta$, $1 - \delta$ of its output weight a adds an output weight and an input weight.
In the coordinates of what the copies have in common and of their difference the Hessian falls into parts: that of the
narrow network; one zero, the share itself; and $\delta (1 - \delta) S$ for the difference of the input weights, with

$$S = -\frac an \sum_i r_i\, \sigma''(w \cdot x_i)\, x_i x_i^T .$$

So its negative eigenvalues are those of the narrow network and of $\delta (1 - \delta) S$: whatever S is, unless it is
zero, shares in (0, 1) or shares outside make an escape direction. Of relu S is zero, and all of it is flat.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...activations import label
from ...derivatives import loss_of
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._counts import stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._split import COPIES, CRITICAL, SHARES, ZERO, Split
from .saddles import EMBEDDING, OURS, four_relus

WIDTHS = {"tanh": 1, "x_tanh": 1, "relu": 3}  # a single relu is often active on no sample
ACTIVATIONS = tuple(WIDTHS)
SMOOTH = ACTIVATIONS[:2]
STEPS = {"quick": 20_000, "paper": 100_000}
STD = 0.5
BOWL = (
    "At these minima of x tanh x the matrix S is positive: equal shares leave them minima, and only a share beyond 0 "
    "and 1 makes escape directions."
)


def _claims(name: str) -> "tuple[Claim[Splitting], ...]":
    smooth, inputs = name in SMOOTH, 2
    added = 1 if smooth else inputs + 1
    return (
        Claim(
            f"{name}-critical", EMBEDDING, f"{label(name)}: a critical point stays one when a neuron is split",
            "norm of the gradient after a split, the largest over neurons and shares", at_most(10 * CRITICAL),
            lambda figure: figure.over(name, lambda one: max(
                one.gradient_norm(one.split(u, shares)) for u in one.units for shares in SHARES
            )), lambda figure: figure.premise(name), trained=False,
        ),
        Claim(
            f"{name}-zeros", EMBEDDING if smooth else OURS,
            f"{label(name)}: each copy adds {'one zero eigenvalue' if smooth else 'flat directions only, three zeros'}",
            f"zeros of the Hessian with 2 and 3 copies, less {added} for each: largest difference", exactly(0),
            lambda figure: figure.over(name, lambda one: max(
                abs(one.zeros(values) - one.zeros(one.copied[u, 1]) - added * (count - 1))
                for (u, count), values in one.copied.items()
            )), lambda figure: figure.premise(name), trained=False, ours=not smooth,
        ),
    )  # fmt: skip


def _escapes(name: str) -> "tuple[Claim[Splitting], ...]":
    reason = f"{BOWL} " if name == "x_tanh" else ""
    return (
        Claim(
            f"{name}-escape", EMBEDDING, f"{label(name)}: a neuron in two equal copies has an escape direction",
            "negative eigenvalues that this adds, the most over the neurons", at_least(1),
            lambda figure: figure.over(name, lambda one: max(figure.added(one, u, 2) for u in one.units)),
            lambda figure: reason + figure.by_shares(name), trained=False,
        ),
        Claim(
            f"{name}-more", EMBEDDING, f"{label(name)}: a third copy adds one more, 0 to 1 to 2",
            "negative eigenvalues with three copies less those with two, the most over the neurons", exactly(1),
            lambda figure: figure.over(name, lambda one: max(
                figure.added(one, u, 3) - figure.added(one, u, 2) for u in one.units
            )), lambda figure: reason + figure.by_shares(name), trained=False,
        ),
        Claim(
            f"{name}-either", OURS,
            f"{label(name)}: of shares within (0, 1) and beyond, one at least makes an escape direction",
            "negative eigenvalues that a split adds, the most over shares, the least over neurons", at_least(1),
            lambda figure: figure.over(name, lambda one: min(
                max(one.negative(one.shared[u, s]) - one.negative(one.own) for s in SHARES) for u in one.units
            )), lambda figure: figure.premise(name), trained=False, ours=True,
        ),
        Claim(
            f"{name}-counted", OURS,
            f"{label(name)}: the escape directions are the negative eigenvalues of the product of the shares with "
            "the neuron's matrix S",
            "negative eigenvalues found less those predicted, the largest difference over neurons and shares",
            exactly(0), lambda figure: figure.over(name, lambda one: max(
                abs(one.negative(values) - one.predicted(u, shares)) for (u, shares), values in one.shared.items()
            )), lambda figure: figure.premise(name), trained=False, ours=True,
        ),
        Claim(
            f"{name}-leaves", EMBEDDING,
            f"{label(name)}: the split network goes down from there to where the narrow one could not",
            "loss at the end of the way out, over that of the critical point", at_most(0.99),
            lambda figure: figure.over(name, lambda one: one.left), lambda figure: figure.premise(name),
            trained=False,
        ),
    )  # fmt: skip


def _zero_and_negative(one: Split, values: np.ndarray) -> tuple[int, int]:
    return one.zeros(values), one.negative(values)


class Splitting(PaperFigure):
    """Spectra of narrow networks at a critical point, before and after a neuron is split."""

    name, title, paper = "beyond-splitting", "The embedding principle: what splitting a neuron adds", "BEYOND"
    has_variants = False
    seed_count: ClassVar = {"quick": 5, "paper": 10}
    chosen = (
        "all settings: narrow networks on the data of beyond-saddles, trained and taken to a critical point; the "
        "widths were chosen after a first run, in which x tanh x with two neurons came to no regular critical point"
    )
    titles: ClassVar = {name: label(name) for name in ACTIVATIONS}
    claims = tuple(
        claim for name in ACTIVATIONS for claim in (*_claims(name), *(_escapes(name) if name in SMOOTH else ()))
    )

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Narrow networks of three activations."""
        steps = STEPS[scale]
        return {
            name: four_relus(name, WIDTHS[name], STD).replace(steps=steps, save=Evenly(2), record=Evenly(2))
            for name in ACTIVATIONS
        }

    @cached_property
    def splits(self) -> Available[list[Split]]:
        """The critical point of each seed."""
        return self.runs.each(
            lambda _, run: [Split.of(run.model(int(run.saved[-1]), seed), *run.data(seed)) for seed in run.seeds]
        )

    def decides(self, name: str, one: Split) -> bool:
        """Whether a seed is at a critical point, without flat directions of its own.

        Those of relu have one for each neuron, as its input and output weight can be scaled, and three for one that is
        active on no sample: there, one neuron must be active.
        """
        return one.critical and (not one.zeros(one.own) if name in SMOOTH else bool(one.own[-1] > 0))

    def over(self, name: str, measure: Callable[[Split], float]) -> PerSeed:
        """A quantity of each seed."""
        own = self.splits[name]
        return PerSeed([float(measure(one)) for one in own], decided=[self.decides(name, one) for one in own])

    def added(self, one: Split, unit: int, copies: int) -> int:
        """How many negative eigenvalues equal copies add."""
        return one.negative(one.copied[unit, copies]) - one.negative(one.own)

    def premise(self, name: str) -> str:
        """How near to critical the narrow networks are."""
        own = self.splits[name]
        norms = [one.gradient_norm(one.model) for one in own]
        plain = sum(self.decides(name, one) for one in own)
        return (
            f"Norm of the gradient of the narrow networks: {np.median(norms):.1g} (median), {max(norms):.1g} at most; "
            f"{plain} of {len(own)} are critical without flat directions."
        )

    def by_shares(self, name: str) -> str:
        """How many escape directions each kind of share adds."""
        parts = []
        for shares in SHARES:
            adds = [
                one.negative(one.shared[unit, shares]) > one.negative(one.own)
                for one in self.splits[name]
                for unit in one.units
            ]
            parts.append(f"{shares[0]:g} and {shares[1]:g}: {np.mean(adds):.0%} of the neurons")
        return f"Shares that add an escape direction: {'; '.join(parts)}. {self.premise(name)}"

    @cached_property
    def counts(self) -> Available[Int[np.ndarray, "seeds units copies 2"]]:
        """Zero and negative eigenvalues of each seed and neuron, by the number of copies."""
        return self.splits.each(
            lambda _, own: np.array(
                [
                    [[(one.zeros(one.copied[u, n]), one.negative(one.copied[u, n])) for n in COPIES] for u in one.units]
                    for one in own
                ]
            )
        )

    def means(self, name: str) -> Float[np.ndarray, "copies 2"]:
        """Means of these over neurons and the seeds that decide something."""
        chosen = [self.decides(name, one) for one in self.splits[name]]
        return self.counts[name][chosen].mean(axis=(0, 1)) if any(chosen) else np.full((len(COPIES), 2), np.nan)

    def draw(self) -> Drawing:
        """Spectra of the middle seed, and counts of all."""
        with look():
            figure = Figure(figsize=(PAGE, 4.4), layout="constrained")
            top, bottom = figure.subplots(2, 3)
            for axes, name in zip(top, self.runs, strict=True):
                self._spectra(axes, name)
            for axes, name in zip(bottom, self.runs, strict=True):
                self._counted(axes, name)
            top[0].set_ylabel("eigenvalue of the Hessian")
            bottom[0].set_ylabel("eigenvalues, mean")
            figure.legend(*bottom[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return Drawing(
            caption="Networks of one neuron (relu: three) at a critical point, a neuron split into equal copies. Top: "
            "all eigenvalues of the Hessian of one seed against the number of copies (orange: negative, escape "
            "directions; grey: zero). Bottom: how many are zero and how many negative, mean over neurons and over the "
            "seeds at a critical point.",
            pictures={"": figure},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={
                "critical": "trained by gradient descent, then by damped least squares (trust region) to the local "
                f"minimum and by Newton's steps; zero is what is below {ZERO:g} of the largest eigenvalue"
            },
        )

    def _spectra(self, axes: Axes, name: str) -> None:
        one = next((each for each in self.splits[name] if self.decides(name, each)), self.splits[name][0])
        for place, count in enumerate(COPIES):
            values = one.copied[0, count]
            zero, negative = np.abs(values) <= ZERO * one.own[-1], values < -ZERO * one.own[-1]
            colours = np.where(zero, FAINT, np.where(negative, COLOURS[1], COLOURS[0]))
            shift = np.linspace(-0.2, 0.2, len(values))
            axes.scatter(place + shift, values, s=14, color=colours, linewidth=0)
        axes.set_yscale("symlog", linthresh=1e-4)
        axes.set_xticks(range(len(COPIES)), [str(count) for count in COPIES])
        axes.set(title=self.titles[name], xlabel="copies of a neuron")

    def _counted(self, axes: Axes, name: str) -> None:
        mean = self.means(name)
        axes.plot(COPIES, mean[:, 0], "o-", color=FAINT, label="zero", markersize=7, linewidth=3)
        axes.plot(COPIES, mean[:, 1], "o--", color=COLOURS[1], label="negative", markersize=3.5)
        axes.set(xlabel="copies of a neuron", ylim=(-0.3, None))
        axes.set_xticks(COPIES)

    def _table(self) -> Table:
        rows = []
        for name, own in self.splits.items():
            loss = np.median([loss_of(one.model, one.x, one.y) for one in own])
            means = (f"{zero:.3g}, {negative:.3g}" for zero, negative in self.means(name))
            rows.append((label(name), f"{loss:.2g}", *means))
        header = ("activation", "loss (median)", *("one copy" if count == 1 else f"{count} copies" for count in COPIES))
        return Table(
            "Zero and negative eigenvalues, means over neurons and the seeds at a critical point", header, tuple(rows)
        )

    def _data(self) -> dict[str, np.ndarray]:
        parts = {}
        for name, counts in self.counts.items():
            seeds, units, copies, _ = counts.shape
            grid = np.meshgrid(range(seeds), range(units), COPIES[:copies], indexing="ij")
            columns = dict(zip(("seed", "unit", "copies"), (each.ravel() for each in grid), strict=True))
            parts[name] = columns | {"zero": counts[..., 0].ravel(), "negative": counts[..., 1].ravel()}
        return stack_columns(parts, "activation")
