"""A run in one picture: its loss, and k_eff of its layers over the steps."""

import numpy as np
from matplotlib.figure import Figure

from .._phrases import printable
from ..runs import Run
from ._curves import K_EFF
from ._layer_curves import layer_curves, medians
from ._style import COLOURS, FAINT, PAGE, look

MOST_LAYERS = 12  # with a name in the legend


def draw_run(run: Run) -> Figure:
    """The loss of each seed with its median, and beside it k_eff of each layer, the median over the seeds.

    Of a trajectory, ten seeds at 24 saved steps are counted at most, and fewer of wide layers.
    """
    with look():
        figure = Figure(figsize=(PAGE, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(run.recorded, run.loss.T, color=FAINT, linewidth=0.6)
        left.plot(run.recorded, medians(run.loss), color=COLOURS[0])
        left.set(xlabel="step", ylabel="loss")
        known = run.loss[np.isfinite(run.loss)]
        if len(known) and known.min() > 0 and known.max() > 100 * known.min():
            left.set_yscale("log")
        curves = layer_curves(run)
        for number, (name, curve) in enumerate(curves.items()):
            label = printable(name).replace("$", r"\$") if number < MOST_LAYERS else None
            right.plot(curve.steps, curve.middle, color=COLOURS[number % len(COLOURS)], label=label)
        right.set(xlabel="step", ylabel=K_EFF)
        if any(np.isfinite(curve.middle).any() for curve in curves.values()):
            right.set_yscale("log")
            right.legend(loc="best", fontsize=6)
    return figure
