"""The picture of the phases."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE

if TYPE_CHECKING:
    from .phases import Phases

ANSWERS = {"symmetric": COLOURS[0], "reasoning": COLOURS[1], "accuracy": FAINT}
CALLED = {"accuracy": "training"}


def draw_phases(figure: "Phases") -> Figure:
    """Two rows of three panels: over gamma, and over time."""
    from .phases import LARGE, SMALL

    with look():
        picture = Figure(figsize=(PAGE, 4.2), layout="constrained")
        above, below = picture.subplots(2, 3)
        for axes, name in zip(above, ("depth2", "depth3"), strict=False):
            for quantity, colour in ANSWERS.items():
                values = figure.over_gamma(name, quantity)
                axes.plot(figure.gammas(name), np.median(values, axis=1), color=colour, label=_called(quantity))
                axes.plot(figure.gammas(name), values, ".", color=colour, markersize=4)
            axes.set(title=figure.titles[name], xlabel="γ", ylim=(-0.03, 1.05))
        above[0].set_ylabel("share of the answers")
        above[0].legend(fontsize="x-small")
        for name, colour in zip(("depth2", "depth3"), COLOURS[2:4], strict=True):
            ratio = figure.over_gamma(name, "k_eff") / figure.over_gamma(name, "chance")
            above[2].plot(figure.gammas(name), ratio, ".-", color=colour, linewidth=0.9)
            above[2].plot([], [], color=colour, label=figure.titles[name])
        above[2].set(title="$k_{eff}$ of $W_Q$ over chance", xlabel="γ", ylim=(0, 1.08))
        above[2].legend(fontsize="x-small")
        _answers_over_time(below[0], figure)
        for axes, gamma in zip(below[1:], (SMALL, LARGE), strict=True):
            steps, values = figure.table("depth2").steps, figure.values(gamma)
            for k, own in enumerate(values[:, 0]):
                axes.plot(steps, own, color=COLOURS[k % len(COLOURS)], linewidth=0.9)
            axes.set(title=f"embedding's singular values, γ = {gamma:g}", xlabel="step", ylim=(0, None))
            axes.set_xlim(0, steps[-1])
    return picture


def _called(quantity: str) -> str:
    return CALLED.get(quantity, quantity)


def _answers_over_time(axes: Axes, figure: "Phases") -> None:
    """Reasoning and symmetric answers of the first seed, at both gammas."""
    from .phases import LARGE, SMALL

    table, gammas = figure.table("depth2"), figure.gammas("depth2")
    for gamma, style in ((SMALL, ":"), (LARGE, "-")):
        place = int(np.abs(gammas - gamma).argmin())
        for quantity, colour in ANSWERS.items():
            axes.plot(table.steps, table.array(quantity)[place, 0], style, color=colour, linewidth=0.9)
        axes.plot([], [], style, color="black", label=f"γ = {gamma:g}")
    axes.set(title="answers, 2 blocks", xlabel="step", ylim=(-0.03, 1.05))
    axes.set_xlim(0, table.steps[-1])
    axes.legend(fontsize="x-small")
