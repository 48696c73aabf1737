"""tanh against x tanh x (Zhang, Saxe and Latham): all units on one line, or one unit at a time."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...activations import label
from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...measure import count_lines
from ...networks import Dense
from ...optimizers import GD, GradientFlow
from ...saving import Evenly, Geometric
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Available, Drawing, PaperFigure
from ._growth import exponents, other_units, unit_norms

TARGET = "cos(3*x) + x"
SCALES = {"tanh": (1e-2, 1e-3, 1e-4), "x_tanh": (1e-3, 1e-4, 1e-5)}
SHOWN = {"tanh": 1e-4, "x_tanh": 3e-3}  # trained by descent, for longer
ROWS, LONG, STOP = 201, 20.0, 0.85  # the flow of x tanh x: rows, its time times the scale, the loss at its end
WIDTHS = {"tanh": 50, "x_tanh": 10}
GONE = 0.9
WHERE = "Zhang, Saxe and Latham 2025"


class Units(PaperFigure):
    """Two activations on one target, from ever smaller weights."""

    name, title, paper = "saddle-units", "tanh and x tanh x: a line of units, or one unit at a time", "SADDLE"
    has_variants = False
    seed_count: ClassVar = 10
    chosen = (
        f"all settings but the widths 50 and 10: the target {TARGET} at 40 points, rate 0.1, scales; who takes part is "
        "counted by the participation number of |a||w| when 10% of the loss is gone. The scales of x tanh x over which "
        "its other units are compared were 0.03 to 0.003 in a first run, at which units begin too large; the smaller "
        "ones are followed by gradient flow, which takes as long whatever the scale"
    )
    claims = (
        Claim(
            "x_tanh-one", WHERE, "x tanh x: the first drop is that of one unit",
            f"participation number of |a||w| when 10% of the loss is gone, ε = {SHOWN['x_tanh']:g}", at_most(1.5),
            lambda figure: PerSeed(figure.taking_part["x_tanh"]), lambda figure: figure.in_words(),
        ),
        Claim(
            "x_tanh-others", WHERE, "x tanh x: the other units are then of order ε",
            "exponent of the second largest unit over three scales ε of the start, its distance from 1", at_most(0.05),
            lambda figure: PerSeed(np.abs(figure.powers["x_tanh"] - 1)), lambda figure: figure.in_words(),
        ),
        Claim(
            "tanh-line", WHERE, "tanh: it condenses first, on one line, and many units take part",
            "participation number where k_eff is at most 2, else 0, when 10% of the loss is gone", at_least(5),
            lambda figure: PerSeed(np.where(figure.k_eff["tanh"] <= 2, figure.taking_part["tanh"], 0)),
            lambda figure: figure.in_words(),
        ),
        question(
            "tanh-others", "tanh: its second largest unit is as large as the first, whatever ε",
            "exponent of the second largest unit, its size", at_most(0.1),
            lambda figure: PerSeed(np.abs(figure.powers["tanh"])), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Each activation at each scale."""
        often, few, data = Geometric(60), Evenly(ROWS), Expression(TARGET, dim=1, n=40, low=-1, high=1)

        def trained(name: str, eps: float) -> Experiment:
            steps = {"tanh": 2000, "x_tanh": 30_000}[name]
            network, init = Dense((1, WIDTHS[name], 1), name), Init(Normal(eps))
            return Experiment(network, init, data, GD(0.1), steps, save=often, record=often)

        def flow(eps: float) -> Experiment:
            changes = {"optimizer": GradientFlow(LONG / eps / (ROWS - 1), stop_ratio=STOP, rtol=1e-6)}
            return trained("x_tanh", eps).replace(steps=ROWS - 1, save=few, record=few, **changes)

        return (
            {f"tanh, {eps:g}": trained("tanh", eps) for eps in SCALES["tanh"]}
            | {f"x_tanh, {SHOWN['x_tanh']:g}": trained("x_tanh", SHOWN["x_tanh"])}
            | {f"x_tanh, {eps:g}": flow(eps) for eps in SCALES["x_tanh"]}
        )

    @cached_property
    def columns(self) -> Available[np.ndarray]:
        """The saved step at which 10% of the loss is gone, by its place; the last where it never is."""

        def place(_: str, run) -> np.ndarray:
            loss = run.loss[:, np.searchsorted(run.recorded, run.saved)]
            gone = loss <= GONE * loss[:, :1]
            return np.where(gone.any(1), gone.argmax(1), len(run.saved) - 1)

        return self.runs.each(place)

    @cached_property
    def taking_part(self) -> dict[str, Float[np.ndarray, " seeds"]]:
        """The participation number of |a||w| at that step."""
        found = {}
        for name in SCALES:
            run, columns = self.runs[_shown(name)], self.columns[_shown(name)]
            sizes = np.linalg.norm(run.history(1), axis=-1) * np.abs(run.parameters["output.weight"][:, :, 0])
            found[name] = np.array(
                [own[c].sum() ** 2 / (own[c] ** 2).sum() for own, c in zip(sizes, columns, strict=True)]
            )
        return found

    @cached_property
    def k_eff(self) -> dict[str, Float[np.ndarray, " seeds"]]:
        """The effective number of lines at that step."""
        found = {}
        for name in SCALES:
            run, columns = self.runs[_shown(name)], self.columns[_shown(name)]
            found[name] = count_lines(run.history(1)[np.arange(len(columns)), columns][:, None]).k_eff[:, 0]
        return found

    @cached_property
    def powers(self) -> dict[str, Float[np.ndarray, " seeds"]]:
        """The exponent of the second largest unit when the largest has grown."""
        return {
            name: exponents(np.array(each), np.array([other_units(self.runs[f"{name}, {eps:g}"]) for eps in each]))
            for name, each in SCALES.items()
        }

    def in_words(self) -> str:
        """Medians of both."""
        parts = (
            f"{label(name)}: {np.median(self.taking_part[name]):.3g} of {WIDTHS[name]} units take part on "
            f"{np.median(self.k_eff[name]):.3g} lines, exponent of the second largest "
            f"{np.median(self.powers[name]):.3g}"
            for name in SCALES
        )
        each = ", ".join(f"{power:.3g}" for power in self.powers["x_tanh"])
        return f"Medians. {'; '.join(parts)}. Exponents of x tanh x, seed by seed: {each}."

    def draw(self) -> Drawing:
        """Units of a seed over time."""
        with look():
            picture = Figure(figsize=(PAGE, 2.4), layout="constrained")
            for axes, name, colour in zip(picture.subplots(1, 2), SCALES, COLOURS, strict=False):
                run = self.runs[_shown(name)]
                axes.loglog(run.saved[1:], unit_norms(run)[0, 1:], color=colour, alpha=0.6, linewidth=0.7)
                axes.axvline(run.saved[self.columns[_shown(name)][0]], color="black", linestyle=":", linewidth=0.8)
                axes.set(title=label(name), xlabel="step", ylabel="norm of each unit")
        return Drawing(
            caption="All units of a network of tanh (left, 50) and of x tanh x (right, 10) while it trains, first "
            "seed; dotted: 10% of the loss is gone.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )


def _shown(name: str) -> str:
    return f"{name}, {SHOWN[name]:g}"
