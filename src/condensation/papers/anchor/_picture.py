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
    """Two rows of panels: over gamma, and over time."""
    from .phases import LARGE, SMALL

    with look():
        picture = Figure(figsize=(PAGE, 4.2), layout="constrained")
        depths = [name for name in ("depth2", "depth3") if name in figure.shown]
        grid, wide = picture.add_gridspec(2, 6), 6 // (len(depths) + 1)
        above = [picture.add_subplot(grid[0, k : k + wide]) for k in range(0, 6, wide)]
        below = [picture.add_subplot(grid[1, k : k + 2]) for k in (0, 2, 4)]
        for axes, name in zip(above, depths, strict=False):
            for quantity, colour in ANSWERS.items():
                values = figure.over_gamma(name, quantity)
                axes.plot(figure.gammas(name), np.median(values, axis=1), color=colour, label=_called(quantity))
                axes.plot(figure.gammas(name), values, ".", color=colour, markersize=4)
            axes.set(title=figure.titles[name], xlabel="γ", ylim=(-0.03, 1.05))
        above[0].set_ylabel("share of the answers")
        above[0].legend(fontsize="x-small")
        for name, colour in zip(depths, COLOURS[2:4], strict=False):
            ratio = figure.over_gamma(name, "k_eff") / figure.over_gamma(name, "chance")
            above[-1].plot(figure.gammas(name), ratio, ".-", color=colour, linewidth=0.9)
            above[-1].plot([], [], color=colour, label=figure.titles[name])
        above[-1].set(title="$k_{eff}$ of $W_Q$ over chance", xlabel="γ", ylim=(0, 1.08))
        above[-1].legend(fontsize="x-small")
        _answers_over_time(below[0], figure)
        for axes, gamma in zip(below[1:], (SMALL, LARGE), strict=True):
            steps, values = figure.table("depth2").steps, figure.values(gamma)
            for k, own in enumerate(values[:, 0]):
                axes.plot(steps, own, color=COLOURS[k % len(COLOURS)], linewidth=0.9)
            axes.set(title=f"values of the embedding, γ = {gamma:g}", xlabel="step", ylim=(0, None))
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
