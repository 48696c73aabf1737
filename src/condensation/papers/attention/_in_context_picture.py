"""The picture of the staircase."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, FAINT, INK, PAGE

if TYPE_CHECKING:
    from .in_context import InContext


def draw_in_context(figure: "InContext") -> Figure:
    """Four losses above, what is learned and when below."""
    from .in_context import DIM, EIGENVALUES, LEVELS

    with look():
        picture = Figure(figsize=(PAGE, 4.2), layout="constrained")
        grid = picture.add_gridspec(2, 4)
        for k, (name, own) in enumerate(figure.learners.items()):
            axes = picture.add_subplot(grid[0, k])
            for level in LEVELS:
                axes.axhline(level, color=FAINT, linestyle="--", linewidth=0.7)
            for one in own:
                axes.plot(one.time, one.loss, color=COLOURS[k], linewidth=0.8, alpha=0.7)
            axes.set(title=figure.titles[name], xlabel="time", ylim=(0, 1.05))
            axes.set_xscale("symlog", linthresh=10)
            axes.set_xlim(0, own[0].time[-1])
            if not k:
                axes.set_ylabel("loss")
        share, times = picture.add_subplot(grid[1, :2]), picture.add_subplot(grid[1, 2:])
        for d in range(DIM):
            for one in figure.learners["rank1"]:
                share.plot(one.time, one.learned[:, d], color=COLOURS[d], linewidth=0.8, alpha=0.6)
            share.plot([], [], color=COLOURS[d], label=f"λ = {EIGENVALUES[d]:g}")
        share.set_xscale("symlog", linthresh=10)
        share.set_xlim(0)
        share.set(title="rank 1: learned of each eigenvector", xlabel="time", ylim=(-0.1, 1.2))
        share.legend(fontsize="x-small")
        found = np.array([[one.passed(m) for m in range(DIM)] for one in figure.learners["rank1"]])
        for row in found:
            times.loglog(EIGENVALUES, row, ".-", color=COLOURS[1], linewidth=0.6, alpha=0.7)
        line = np.array(EIGENVALUES)
        if np.isfinite(found[:, 0]).any():
            times.loglog(
                line, np.nanmedian(found[:, 0]) * (line / line[0]) ** -2.0, color=INK, linestyle="--", linewidth=0.8
            )
        times.set(title="rank 1: time to learn it", xlabel="eigenvalue")
    return picture
