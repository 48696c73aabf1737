"""Curves against the step: the loss, with the end of the initial stage, and the number of lines."""

from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ..measure import LineHistory
from ..runs import INITIAL_STAGE, Run
from ._style import COLOURS, FAINT, INK, look, new_axes, note

K_EFF = "$k_{eff}$"


def draw_loss(trajectory: Run, axes: Axes | None = None, *, title: str = "", fraction: float = INITIAL_STAGE) -> Axes:
    """Each seed's loss over its first value (thin), their median, and the line at 70% that ends the initial stage."""
    with look():
        axes = axes or new_axes()
        relative = trajectory.loss_ratio
        known = ~np.isnan(relative).all(axis=0)
        axes.plot(trajectory.recorded, relative.T, color=FAINT, linewidth=0.6)
        median = np.nanmedian(relative[:, known], axis=0)
        told = f" ({len(trajectory.diverged)} of {len(relative)} diverged)" if trajectory.diverged else ""
        axes.plot(trajectory.recorded[known], median, color=COLOURS[0], label=f"median of seeds{told}")
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


def draw_history(
    steps: Int[np.ndarray, " steps"], history: LineHistory, axes: Axes | None = None, *, title: str = ""
) -> Axes:
    """Lines and k_eff at the saved steps: median over seeds, with the range of the middle 80% shaded.

    Filled circles mark steps at which at least half of the seeds are condensed.
    """
    with look():
        axes = axes or new_axes()
        gone = int(np.isnan(history.lines).any(axis=1).sum())
        told = f" ({gone} of {len(history.lines)} seeds diverged)" if gone else ""
        known = ~np.isnan(history.lines).all(axis=0)
        for values, colour, name in ((history.lines, COLOURS[0], f"lines{told}"), (history.k_eff, COLOURS[1], K_EFF)):
            low, middle, high = np.full((3, len(steps)), np.nan)
            low[known], middle[known], high[known] = np.nanquantile(values[:, known], [0.1, 0.5, 0.9], axis=0)
            axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(steps, middle, color=colour, label=name)
        condensed = history.condensed.mean(axis=0) >= 0.5
        middle = np.nanmedian(history.lines[:, condensed], axis=0)
        axes.plot(steps[condensed], middle, "o", color=COLOURS[0], markersize=3, label="condensed")
        axes.set_xscale("symlog", linthresh=1)
        decades = range(int(np.log10(max(steps[-1], 1))) + 1)
        axes.set_xticks([0, *(10**k for k in decades[:: 1 if len(decades) < 4 else 2])])
        axes.set(yscale="log", xlabel="step", ylabel="number", title=title)
        top = max(10.0, float(np.nanmax(history.k_eff)) * 1.2)
        few = (1, 2, 3, 5, 10, 20, 50) if top < 100 else (1, 2, 5, 10, 100, 1000)
        ticks = [k for k in few if k <= top]
        axes.set_yticks(ticks, [str(k) for k in ticks])
        axes.set_ylim(0.8, top)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.legend(loc="center left")
    return axes
