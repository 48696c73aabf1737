r"""Kinks of a relu network under R1 and dropout (Zhang and Xu, Theorem 1).

The target is $\frac12\sigma(-x - \frac13) + \frac12\sigma(x - \frac13)$. A network is a chain of straight pieces,
with a kink at $-b_j/w_j$ whose change of slope is $a_j |w_j|$. R1 should merge the kinks between two neighbouring
samples, and leave fewer changes between convex and concave.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Init, WidthPower
from ...networks import Dense
from ...optimizers import Adam
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_most, exactly, question
from .._counts import relative_loss
from .._figure import Available, Drawing, PaperFigure
from ._noise import WHERE

TARGET = "0.5 * relu(-x - 1/3) + 0.5 * relu(x - 1/3)"
SIZES = {"quick": (50, 10_000), "paper": (100, 100_000)}  # width, steps
POINTS = 20
LARGE = 0.02  # a change of slope that counts; the target's are 1/2
APART = 0.05  # of an interval between samples: kinks that are further apart than that are two
SHARE = 0.1
FITTED = 0.01
KINDS = {"none": "no noise", "dropout": "dropout 10%", "penalty": "R1 alone"}


def merged(places: np.ndarray, jumps: np.ndarray, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Kinks, from left to right, those no further apart than that as one.

    >>> merged(np.array([0.5, 0.0, 0.51]), np.array([1.0, 2.0, -0.5]), 0.1)
    (array([0. , 0.5]), array([2. , 0.5]))
    """
    order = np.argsort(places)
    places, jumps = places[order], jumps[order]
    begins = np.flatnonzero(np.diff(places, prepend=-np.inf) > apart)
    return places[begins], np.add.reduceat(jumps, begins) if len(begins) else jumps


def sign_changes(values: np.ndarray) -> int:
    """How often the sign changes in a row of numbers.

    >>> sign_changes(np.array([1.0, 2.0, -1.0, 3.0])), sign_changes(np.array([]))
    (2, 0)
    """
    return int((np.sign(values[1:]) != np.sign(values[:-1])).sum())


class Kinks(PaperFigure):
    """A relu network on a target with two kinks, without noise, with dropout, and with R1."""

    name, title, paper = "dropout-kinks", "R1 merges the kinks of a relu network", "DROPOUT"
    has_variants, on_request = False, True
    seed_count: ClassVar = 10
    titles: ClassVar = KINDS
    chosen = (
        "20 points evenly spaced on [-1, 1], 50 or 100 neurons from std m^-0.2, Adam at 1e-3, 10% left out, float64, "
        "the steps. A kink counts if its change of slope is at least 0.02 (the target's are 1/2), and two no further "
        "apart than 5% of the distance of the points are one"
    )
    claims = (
        Claim(
            "convexity", f"{WHERE}, Theorem 1", "R1 lowers the number of changes between convex and concave",
            "changes with R1 less those without, the loss at 1% of the first", at_most(-1),
            lambda figure: figure.fewer("changes", "penalty"), lambda figure: figure.in_words(),
        ),
        question(
            "convexity-dropout", "and so does dropout itself", "changes with dropout less those without, the loss at "
            "1% "
            "of the first", at_most(-1),
            lambda figure: figure.fewer("changes", "dropout"), lambda figure: figure.in_words(),
        ),
        Claim(
            "one", f"{WHERE}, Theorem 1", "R1 merges the kinks of one interval",
            "most kinks between two neighbouring points, the loss at 1% of the first", exactly(1),
            lambda figure: PerSeed(figure.crowded["penalty"], valid=figure.fitted("penalty")),
            lambda figure: figure.in_words(),
        ),
        question(
            "fewer", "with R1 there are fewer kinks than without", "kinks with R1 over those without, the loss at 1% "
            "of "
            "the first", at_most(0.8),
            lambda figure: PerSeed(figure.number["penalty"] / figure.number["none"], valid=figure.fitted("penalty")),
            lambda figure: figure.in_words(),
        ),
        question(
            "convex", "with R1 the network is convex, as the target is", "changes between convex and concave, the loss "
            "at 1% of the first", exactly(0),
            lambda figure: PerSeed(figure.changes["penalty"], valid=figure.fitted("penalty")),
            lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network without noise, with dropout, and with R1."""
        width, steps = SIZES[scale]
        plain = Experiment(
            Dense((1, width, 1), "relu"), Init(WidthPower(0.2)),
            Expression(TARGET, dim=1, n=POINTS, low=-1, high=1, spacing="even"), Adam(1e-3), steps,
            save=Evenly(2), record=Evenly(21),
        )  # fmt: skip
        return {
            "none": plain,
            "dropout": plain.replace(**{"network.dropout": SHARE}),
            "penalty": plain.replace(dropout_penalty=SHARE),
        }

    def kinks(self, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Places and changes of slope of the kinks among the points that count at the end."""
        run = self.runs[name]
        weights, a = run.history(1)[seed, -1], run.parameters["output.weight"][seed, -1, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            places = -weights[:, 1] / weights[:, 0]
        inside = np.abs(places) < 1
        places, jumps = merged(places[inside], (a * np.abs(weights[:, 0]))[inside], APART * 2 / (POINTS - 1))
        return places[np.abs(jumps) >= LARGE], jumps[np.abs(jumps) >= LARGE]

    def _each(self, function) -> Available[Float[np.ndarray, " seeds"]]:
        return self.runs.each(
            lambda name, run: np.array([function(*self.kinks(name, k)) for k in range(len(run.seeds))], float)
        )

    @cached_property
    def number(self) -> Available[Float[np.ndarray, " seeds"]]:
        """How many kinks there are."""
        return self._each(lambda places, _: len(places))

    @cached_property
    def changes(self) -> Available[Float[np.ndarray, " seeds"]]:
        """How often the network changes between convex and concave."""
        return self._each(lambda _, jumps: sign_changes(jumps))

    @cached_property
    def crowded(self) -> Available[Float[np.ndarray, " seeds"]]:
        """The most kinks between two neighbouring points."""
        points = np.linspace(-1, 1, POINTS)
        return self._each(lambda places, _: np.histogram(places, points)[0].max())

    def fitted(self, name: str) -> np.ndarray:
        """Whether the loss at the end is at most 1% of the first."""
        return relative_loss(self.runs[name])[:, -1] <= FITTED

    def fewer(self, what: str, name: str) -> PerSeed:
        """A number less that without noise, where both have fitted the data."""
        own = getattr(self, what)
        return PerSeed(own[name] - own["none"], valid=self.fitted(name) & self.fitted("none"))

    def in_words(self) -> str:
        """Medians of all three."""
        parts = (
            f"{title}: {np.median(self.number[name]):g} kinks, at most {np.median(self.crowded[name]):g} between two "
            f"points, {np.median(self.changes[name]):g} changes between convex and concave, loss "
            f"{np.median(relative_loss(self.runs[name])[:, -1]):.2g} of the first"
            for name, title in KINDS.items()
        )
        return f"Medians. {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """Networks of the first seed with their kinks, and the numbers of all seeds."""
        with look():
            picture = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, right = picture.subplots(1, 2, width_ratios=(2, 1))
            grid = np.linspace(-1, 1, 801)[:, None]
            for (name, title), colour, shift in zip(KINDS.items(), COLOURS, (0.1, 0.0, -0.1), strict=False):
                run = self.runs[name]
                last, seed = int(run.saved[-1]), run.seeds[0]
                left.plot(grid, run.output(grid, last, seed) + shift, color=colour, linewidth=0.9, label=title)
                places = self.kinks(name, 0)[0][:, None]
                left.plot(places, run.output(places, last, seed) + shift, "o", color=colour, markersize=3)
                right.plot(self.number[name], self.changes[name], "o", color=colour, markersize=4, alpha=0.6)
            left.set(xlabel="x", ylabel="output, shifted")
            left.legend(fontsize=6)
            right.set(xlabel="kinks", ylabel="changes of convexity")
        return Drawing(
            caption="Relu networks on a target of two kinks, without noise, with dropout, and with R1 in its place. "
            "Left: the networks of the first seed, shifted, and their kinks. Right: kinks, and changes between "
            "convex and "
            "concave, of each seed.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
