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
from ...optimizers import GD, GradientFlow
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._figure import Drawing, PaperFigure
from ._growth import (
    GROWN,
    between_drops,
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
LINEAR_SCALES, QUADRATIC_SCALES = (1e-2, 1e-3, 1e-4, 1e-5), (1e-3, 1e-4, 1e-5)
WIDTH, WIDTHS = 50, (10, 160)
SMALL = 1e-5
ROWS, LONG, SHORT, LEARNED = 1001, 6.0, 2.0, 0.01  # the flow: rows, its time times the scale, the loss at its end
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


def quadratic(data: object, scale: float, width: int = WIDTH, time: float = LONG) -> Experiment:
    """A quadratic network on the circle, by the flow: its times go as one over the scale, its drops do not."""
    often, flow = Evenly(ROWS), GradientFlow(time / scale / (ROWS - 1), stop_ratio=LEARNED, rtol=1e-6)
    return Experiment(
        Dense((2, width, 1), "quadratic", bias=False), Init(Normal(scale)), data, flow, ROWS - 1,  # type: ignore[arg-type]
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
        "on ten points of a circle for quadratic ones; widths, scales, rates; grown is half of the top mode, or a unit "
        "of norm 0.5; quadratic networks by the flow. The appendices with the figures' settings could not be read. "
        "What was changed after a first run: the scales of quadratic networks, which were 0.01 to 0.001; what a second "
        "plateau is, which was told by the waits alone; widths are compared with the median of the narrow networks, as "
        "two networks of one seed and two widths have nothing in common"
    )
    claims = (
        *map(_exponent, RATIOS),
        Claim(
            "quadratic", "Zhang, Saxe and Latham 2025, Proposition 5",
            "quadratic: when one unit has grown the others are of order ε",
            "exponent of the second largest unit over three scales ε of the start, its distance from 1", at_most(0.05),
            lambda figure: PerSeed(np.abs(figure.quadratic_exponents - 1)), lambda figure: figure.in_words(),
        ),
        Claim(
            "linear-width", PREDICTION, "width leaves the linear plateau as it is",
            f"steps from the first mode to the second with {WIDTHS[1]} neurons, over the median of those with "
            f"{WIDTHS[0]}, its distance from 1",
            at_most(0.2), lambda figure: PerSeed(np.abs(figure.wider("linear") - 1)),
            lambda figure: figure.linear_width_in_words(),
        ),
        Claim(
            "quadratic-width", PREDICTION, "width shortens the quadratic plateau",
            f"time from the first unit to the second with {WIDTHS[1]} neurons, over the median with {WIDTHS[0]}",
            at_most(0.8), lambda figure: PerSeed(figure.wider("quadratic")),
            lambda figure: figure.quadratic_width_in_words(),
        ),
        Claim(
            "linear-equal", PREDICTION, "equal singular values: a linear network has no second plateau",
            "plateaus between two drops, both modes learned", exactly(0),
            lambda figure: PerSeed(figure.plateaus_of("linear equal")), lambda figure: figure.equal_in_words(),
        ),
        Claim(
            "quadratic-equal", PREDICTION, "equal ones leave a quadratic network its second plateau",
            f"plateaus between two drops, both units learned, ε = {SMALL:g}", at_least(1),
            lambda figure: PerSeed(figure.plateaus_of("quadratic equal")), lambda figure: figure.equal_in_words(),
        ),
        Claim(
            "quadratic-shorter", PREDICTION, "which is shorter than with distinct ones",
            "time from the first unit to the second with equal ones, over that with distinct ones", at_most(0.9),
            lambda figure: PerSeed(figure.second("quadratic equal") / figure.second(f"quadratic {SMALL:g}")),
            lambda figure: figure.equal_in_words(),
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
            trained[f"linear {word}"] = linear(Drawn(half), SMALL, width)
            trained[f"quadratic {word}"] = quadratic(Drawn(two_squares), SMALL, width)
        trained["linear equal"] = linear(Drawn(equal), SMALL)
        trained["quadratic equal"] = quadratic(Drawn(equal_squares), SMALL, time=SHORT)
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
        return (last - first) * self.unit(name)

    def unit(self, name: str) -> float:
        """What a step counts for: one, or of the flow the time of a step, times the scale."""
        experiment = self.runs[name].experiment
        flow = experiment.optimizer
        return flow.time_step * experiment.init.hidden.std if isinstance(flow, GradientFlow) else 1.0  # type: ignore[union-attr]

    def wider(self, kind: str) -> np.ndarray:
        """The wait for the second in wide networks, over its median in narrow ones."""
        return self.second(f"{kind} wide") / PerSeed(self.second(f"{kind} narrow")).median

    def plateaus_of(self, name: str) -> np.ndarray:
        """Plateaus between two drops; NaN where not all is learned."""
        return between_drops(self.runs[name], 2 * LEARNED)

    @property
    def later_plateaus(self) -> list[int]:
        """Plateaus of the run near rank one; none where the first step is on one."""
        run = self.runs["near rank one"]
        each = [find_plateaus(run.recorded, loss) for loss in run.loss]
        return [0 if len(found) and found[0, 0] == 0 else len(found) for found in each]

    def in_words(self) -> str:
        """The exponents, medians."""
        found = (f"{1 - ratio:g}: {np.median(own):.3g}" for ratio, own in self.linear_exponents.items())
        return (
            f"Exponents of linear networks, by theory and found (medians): {'; '.join(found)}; of the quadratic one, "
            f"seed by seed: {_listed(self.quadratic_exponents)}."
        )

    def linear_width_in_words(self) -> str:
        """How much of the linear plateau width takes."""
        return (
            f"The wait for the second mode is {_listed(self.wider('linear'))} of that with {WIDTHS[0]} neurons: modes "
            f"begin at the square root of the width, so that it is shorter by the logarithm of that over that of "
            f"1/ε, which is gone as ε goes to 0."
        )

    def quadratic_width_in_words(self) -> str:
        """How far the waits of networks of one width are apart."""
        narrow, wide = (self.second(f"quadratic {word}") for word in ("narrow", "wide"))
        return (
            f"The wait is that for the best of the units that are left, which chance decides: times ε, it is "
            f"{_listed(narrow)} with {WIDTHS[0]} neurons and {_listed(wide)} with {WIDTHS[1]}."
        )

    def equal_in_words(self) -> str:
        """The waits with equal values, of linear networks over the first one, of quadratic ones times the scale."""
        linear = self.second("linear equal") / self.first("linear equal")
        return (
            "Wait for the second mode of linear networks with equal values over that for the first: "
            f"{_listed(linear)}; for the second unit of quadratic ones, times ε: "
            f"{_listed(self.second('quadratic equal'))}, with distinct ones "
            f"{_listed(self.second(f'quadratic {SMALL:g}'))}. Where that is short, chance has put a second unit near "
            "the direction that is left, which equal values then make no nearer."
        )

    def draw(self) -> Drawing:
        """The rest against the scale, and losses."""
        with look():
            picture = Figure(figsize=(PAGE, 4.6), layout="constrained")
            top, bottom = picture.subplots(2, 2)
            steps, times = "steps", "time, times ε"
            self._rests(top[0])
            self._losses(top[1], {f"linear {ratio:g}, 1e-05": f"linear, $s_2/s_1$ = {ratio:g}" for ratio in RATIOS} | {
                "linear equal": "linear, equal", "near rank one": "linear, near rank one"
            }, steps)  # fmt: skip
            self._losses(bottom[0], {"linear narrow": "linear, 10", "linear wide": "linear, 160"}, steps)
            names = {
                "quadratic narrow": "quadratic, 10",
                "quadratic wide": "quadratic, 160",
                "quadratic equal": "quadratic, equal",
            }
            self._losses(bottom[1], names, times)
            bottom[1].set_xlim(0, 4)
        return Drawing(
            caption="Linear and quadratic networks from small weights. Top left: what has not grown when the first "
            "mode (linear) or the first unit (quadratic) has, against the scale of the start, each seed (dotted: "
            "theory's exponents). The others: loss of each seed over the first; top right linear networks by their "
            "singular values, below the two widths.",
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
            shares = (run.loss / run.loss[:, :1]).T
            axes.plot(run.recorded * self.unit(name), shares, color=colour, alpha=0.4, linewidth=0.7)
            axes.plot([], [], color=colour, label=title)
        axes.set(xlabel=word, ylabel="loss over the first")
        axes.legend(fontsize=6)


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
