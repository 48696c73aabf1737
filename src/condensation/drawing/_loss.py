"""The loss against the step, with the end of the initial stage."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..runs import INITIAL_STAGE, Run
from ._style import COLOURS, FAINT, INK, look, new_axes, note


def draw_loss(trajectory: Run, axes: Axes | None = None, *, title: str = "", fraction: float = INITIAL_STAGE) -> Axes:
    """Each seed's loss over its first value (thin), their median, and the line at 70% that ends the initial stage."""
    with look():
        axes = axes or new_axes()
        relative = trajectory.loss_ratio
        known = ~np.isnan(relative).all(axis=0)
        axes.plot(trajectory.recorded, relative.T, color=FAINT, linewidth=0.6)
        median = np.nanmedian(relative[:, known], axis=0)
        axes.plot(trajectory.recorded[known], median, color=COLOURS[0], label="median of seeds")
        axes.axhline(fraction, color=COLOURS[1], linestyle="--", linewidth=0.8)
        below: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "top", "color": COLOURS[1]}
        note(axes, f"{fraction:.0%}", (0, fraction), (3, -3), **below)
        ends = [end for end in trajectory.initial_stage_end(fraction) if end is not None]
        if len(ends) > len(trajectory.seeds) / 2:
            middle = float(np.median(ends))
            axes.axvline(middle, color=INK, linestyle=":", linewidth=0.8, label="end of the initial stage")
        axes.set(xlabel="step", ylabel="loss / first loss", title=title)
        if np.nanmin(relative) < 0.01:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, 1.05 * np.nanmax(relative))
        axes.legend(loc="lower left")
    return axes
