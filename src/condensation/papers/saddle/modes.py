r"""Linear against quadratic networks (Zhang, Saxe and Latham).

From weights of size $\epsilon$ a linear network learns one singular mode after the other. Mode k grows as
$\epsilon e^{s_k t}$, so the second is at $\epsilon^{1 - s_2/s_1}$ when the first has come to 1: all neurons take part,
and the rank is low. A quadratic unit grows as its own size allows, and blows up after a time $\propto 1/\epsilon$:
when the first one is large all others are still at $\epsilon$, and the network is sparse.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Given, Init, Normal
from ...measure import find_plateaus
from ...networks import Dense
from ...optimizers import GD
from ...saving import Evenly, Geometric
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing, PaperFigure
from ._growth import (
    GROWN,
    equal,
    exponents,
    half,
    linear_rest,
    modes,
    other_units,
    quarter,
    reached,
    three_quarters,
    unit_norms,
)

RATIOS = {0.25: quarter, 0.5: half, 0.75: three_quarters}
LINEAR_SCALES, QUADRATIC_SCALES = (1e-2, 1e-3, 1e-4, 1e-5), (1e-2, 3e-3, 1e-3)
WIDTH, WIDTHS = 50, (10, 160)
SMALL = {"linear": 1e-5, "quadratic": 1e-3}
WHERE, PREDICTION = "Zhang, Saxe and Latham 2025, Theorem 4", "Zhang, Saxe and Latham 2025"


def linear(data: object, scale: float, width: int = WIDTH) -> Experiment:
    """A linear network on white inputs."""
    return Experiment(
        Dense((2, width, 2), "linear", bias=False), Init(Normal(scale)), data, GD(0.02), 4000,  # type: ignore[arg-type]
        save=Evenly(401), record=Evenly(401),
    )  # fmt: skip


def circle(first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples on the unit circle whose targets are a sum of two squares."""
    angles = np.arange(10) * np.pi / 10
    x = np.c_[np.cos(angles), np.sin(angles)]
    return x, x**2 @ (first, second)


def two_squares(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x1² + x2²/2."""
    return circle(1, 0.5)


def equal_squares(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x1² + x2²."""
    return circle(1, 1)


def quadratic(data: object, scale: float, width: int = WIDTH) -> Experiment:
    """A quadratic network on the circle."""
    often = Geometric(60)
    return Experiment(
        Dense((2, width, 1), "quadratic", bias=False), Init(Normal(scale)), data, GD(0.1), 60_000,  # type: ignore[arg-type]
        save=often, record=often,
    )  # fmt: skip


def near_low_rank() -> Experiment:
    """A linear network beside one of rank one, twice as large as it should be."""
    direction = np.full(WIDTH, WIDTH**-0.5) * 2**0.5
    weights = {
        "dense1.weight": np.outer(direction, (1.0, 0.0)),
        "output.weight": np.outer((1.0, 0.0), direction),
    }
    start = linear(Drawn(half), 1e-5)
    return start.replace(init=Given(weights, drawn=Init(Normal(1e-5))))


def _exponent(ratio: float) -> "Claim[Modes]":
    return Claim(
        f"linear-{ratio:g}", WHERE,
        f"linear, s2/s1 = {ratio:g}: when the top mode has grown the rest is of order ε^{1 - ratio:g}",
        "exponent of the rest over four scales ε of the start, its distance from theory's", at_most(0.05),
        lambda figure: PerSeed(np.abs(figure.linear_exponents[ratio] - (1 - ratio))),
        lambda figure: figure.in_words(),
    )  # fmt: skip


class Modes(PaperFigure):
    """Linear and quadratic networks from ever smaller weights, of two widths, with equal and with distinct modes."""

    name, title, paper = "saddle-modes", "Linear and quadratic networks: exponents, width, equal modes", "SADDLE"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        "all settings: two white inputs and outputs with singular values 1 and s2 for linear networks, two squares "
        "on ten "
        "points of a circle for quadratic ones; widths, scales, rates; grown is half of the top mode, or a unit of "
        "norm "
        "0.5. The appendices with the figures' settings could not be read"
    )
    claims = (
        *map(_exponent, RATIOS),
        Claim(
            "quadratic", "Zhang, Saxe and Latham 2025, Proposition 5",
            "quadratic: when one unit has grown the others are of order ε",
            "exponent of the second largest unit over three scales ε of the start", at_least(0.9),
            lambda figure: PerSeed(figure.quadratic_exponents), lambda figure: figure.in_words(),
        ),
        Claim(
            "linear-width", PREDICTION, "width leaves the linear plateau as it is",
            f"steps from the first mode to the second with {WIDTHS[1]} neurons, over those with {WIDTHS[0]}",
            at_least(0.8), lambda figure: PerSeed(figure.second("linear wide") / figure.second("linear narrow")),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "quadratic-width", PREDICTION, "width shortens the quadratic plateau",
            f"steps from the first unit to the second with {WIDTHS[1]} neurons, over those with {WIDTHS[0]}",
            at_most(0.8), lambda figure: PerSeed(figure.second("quadratic wide") / figure.second("quadratic narrow")),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "linear-equal", PREDICTION, "equal singular values: a linear network has no second plateau",
            "steps from the first mode to the second, over those to the first", at_most(0.2),
            lambda figure: PerSeed(figure.second("linear equal") / figure.first("linear equal")),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "quadratic-equal", PREDICTION, "equal ones leave a quadratic network its second plateau",
            "steps from the first unit to the second, over those to the first", at_least(0.2),
            lambda figure: PerSeed(figure.second("quadratic equal") / figure.first("quadratic equal")),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "quadratic-shorter", PREDICTION, "which is shorter than with distinct ones",
            "steps from the first unit to the second with equal ones, over those with distinct ones", at_most(0.9),
            lambda figure: PerSeed(figure.second("quadratic equal") / figure.second("quadratic 0.001")),
            lambda figure: figure.in_words(),
        ),
        Claim(
            "low-rank", PREDICTION, "near a manifold of low rank, far from saddles, the loss falls at once, then "
            "stands still",
            "plateaus, none of them at the first step", at_least(1),
            lambda figure: PerSeed(figure.later_plateaus), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Both networks at all scales, widths and with equal modes."""
        trained = {
            f"linear {ratio:g}, {eps:g}": linear(Drawn(data), eps)
            for ratio, data in RATIOS.items()
            for eps in LINEAR_SCALES
        }
        trained |= {f"quadratic {eps:g}": quadratic(Drawn(two_squares), eps) for eps in QUADRATIC_SCALES}
        for width, word in zip(WIDTHS, ("narrow", "wide"), strict=True):
            trained[f"linear {word}"] = linear(Drawn(half), SMALL["linear"], width)
            trained[f"quadratic {word}"] = quadratic(Drawn(two_squares), SMALL["quadratic"], width)
        trained["linear equal"] = linear(Drawn(equal), SMALL["linear"])
        trained["quadratic equal"] = quadratic(Drawn(equal_squares), SMALL["quadratic"])
        return trained | {"near rank one": near_low_rank()}

    @cached_property
    def linear_exponents(self) -> dict[float, np.ndarray]:
        """The exponents of the rest, by s2/s1."""
        scales = np.array(LINEAR_SCALES)
        return {
            ratio: exponents(scales, np.array([linear_rest(self.runs[f"linear {ratio:g}, {eps:g}"]) for eps in scales]))
            for ratio in RATIOS
        }

    @cached_property
    def quadratic_exponents(self) -> np.ndarray:
        """The exponents of the second largest unit."""
        return exponents(np.array(QUADRATIC_SCALES), self.other_units)

    @cached_property
    def other_units(self) -> np.ndarray:
        """The norm of the second largest quadratic unit when the largest has grown, by the scale of the start."""
        return np.array([other_units(self.runs[f"quadratic {eps:g}"]) for eps in QUADRATIC_SCALES])

    def grown(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """When the first and when the second mode, or unit, has grown."""
        run = self.runs[name]
        if name.startswith("linear"):
            gains, second = modes(run), 1.0 if "equal" in name else 0.5
            times = [reached(run, gains[..., 0], GROWN), reached(run, gains[..., 1], GROWN * second)]
            first, last = np.sort(times, axis=0)
            return first, last
        ordered = np.sort(unit_norms(run), axis=-1)
        return reached(run, ordered[..., -1], GROWN), reached(run, ordered[..., -2], GROWN)

    def first(self, name: str) -> np.ndarray:
        """Steps until the first has grown."""
        return self.grown(name)[0]

    def second(self, name: str) -> np.ndarray:
        """Steps from then until the second has."""
        first, last = self.grown(name)
        return last - first

    @property
    def later_plateaus(self) -> list[int]:
        """Plateaus of the run near rank one; none where the first step is on one."""
        run = self.runs["near rank one"]
        each = [find_plateaus(run.recorded, loss) for loss in run.loss]
        return [0 if len(found) and found[0, 0] == 0 else len(found) for found in each]

    def in_words(self) -> str:
        """All medians."""
        found = (f"{1 - ratio:g}: {np.median(own):.3g}" for ratio, own in self.linear_exponents.items())
        lengths = (
            f"{name}: {np.median(self.first(name)):.3g} and {np.median(self.second(name)):.3g}"
            for name in self.runs
            if any(word in name for word in ("narrow", "wide", "equal", "quadratic"))
        )
        late = exponents(np.array(QUADRATIC_SCALES[-2:]), self.other_units[-2:])
        return (
            f"Medians. Exponents of linear networks, by theory and found: {'; '.join(found)}; of the quadratic one "
            f"{np.median(self.quadratic_exponents):.3g}, and {np.median(late):.3g} between the two smallest scales: "
            f"where two units start nearly alike it comes to 1 only as ε falls further. Steps to the first and from "
            f"it to the second: "
            f"{'; '.join(lengths)}."
        )

    def draw(self) -> Drawing:
        """The rest against the scale, and losses."""
        with look():
            picture = Figure(figsize=(PAGE, 4.6), layout="constrained")
            top, bottom = picture.subplots(2, 2)
            self._rests(top[0])
            self._losses(top[1], {f"linear {ratio:g}, 1e-05": f"linear, $s_2/s_1$ = {ratio:g}" for ratio in RATIOS} | {
                "linear equal": "linear, equal", "near rank one": "linear, near rank one"
            }, "steps")  # fmt: skip
            self._losses(bottom[0], {"linear narrow": "linear, 10", "linear wide": "linear, 160"}, "steps")
            names = {
                "quadratic narrow": "quadratic, 10",
                "quadratic wide": "quadratic, 160",
                "quadratic equal": "equal",
            }
            self._losses(bottom[1], names, "steps")
            bottom[1].set_xscale("log")
        return Drawing(
            caption="Linear and quadratic networks from small weights. Top left: what has not grown when the first "
            "mode "
            "(linear) or the first unit (quadratic) has, against the scale of the start, each seed (dotted: theory's "
            "exponents). The others: loss of each seed over the first; top right linear networks by their singular "
            "values, "
            "below the two widths.",
            pictures={"": picture},
            data=self.columns_of_claims(),
            settings_extra={"grown": f"half of a mode; a unit of norm {GROWN:g}"},
        )

    def _rests(self, axes: Axes) -> None:
        scales = np.array(LINEAR_SCALES)
        for ratio, colour in zip(RATIOS, COLOURS, strict=False):
            rest = np.array([linear_rest(self.runs[f"linear {ratio:g}, {eps:g}"]) for eps in scales])
            axes.loglog(scales, rest, ".-", color=colour, alpha=0.4, linewidth=0.7)
            axes.plot([], [], color=colour, label=f"linear, $s_2/s_1$ = {ratio:g}")
            axes.plot(scales, np.median(rest[0]) * (scales / scales[0]) ** (1 - ratio), color=FAINT, linestyle=":")
        small = np.array(QUADRATIC_SCALES)
        axes.plot(small, self.other_units, ".-", color=COLOURS[3], alpha=0.4, linewidth=0.7)
        axes.plot([], [], color=COLOURS[3], label="quadratic")
        axes.set(xlabel="scale ε of the start", ylabel="the rest")
        axes.legend(fontsize=6)

    def _losses(self, axes: Axes, names: dict[str, str], word: str) -> None:
        for (name, title), colour in zip(names.items(), COLOURS, strict=False):
            run = self.runs[name]
            axes.plot(run.recorded, (run.loss / run.loss[:, :1]).T, color=colour, alpha=0.4, linewidth=0.7)
            axes.plot([], [], color=colour, label=title)
        axes.set(xlabel=word, ylabel="loss over the first")
        axes.legend(fontsize=6)
