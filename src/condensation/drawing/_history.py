"""The number of lines against time."""

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ..measure import LineHistory
from ._style import COLOURS, look, new_axes


def draw_history(
    steps: Int[np.ndarray, " steps"], history: LineHistory, axes: Axes | None = None, *, title: str = ""
) -> Axes:
    """Lines and k_eff at the saved steps: median over seeds, with the range of the middle 80% shaded.

    Filled circles mark steps at which at least half of the seeds are condensed.
    """
    with look():
        axes = axes or new_axes()
        alive = np.where(history.lines >= 0, history.lines, np.nan)
        for values, colour, name in ((alive, COLOURS[0], "lines"), (history.k_eff, COLOURS[1], "$k_{eff}$")):
            low, middle, high = np.nanquantile(values, [0.1, 0.5, 0.9], axis=0)
            axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(steps, middle, color=colour, label=name)
        condensed = history.condensed.mean(axis=0) >= 0.5
        middle = np.nanmedian(alive, axis=0)
        axes.plot(steps[condensed], middle[condensed], "o", color=COLOURS[0], markersize=3, label="condensed")
        axes.set_xscale("symlog", linthresh=1)
        decades = range(int(np.log10(max(steps[-1], 1))) + 1)
        axes.set_xticks([0, *(10**k for k in decades[:: 1 if len(decades) < 4 else 2])])
        axes.set_yscale("log")
        axes.set(xlabel="step", ylabel="number", title=title)
        top = max(10.0, float(np.nanmax(history.k_eff)) * 1.2)
        few = (1, 2, 3, 5, 10, 20, 50) if top < 100 else (1, 2, 5, 10, 100, 1000)
        ticks = [k for k in few if k <= top]
        axes.set_yticks(ticks, [str(k) for k in ticks])
        axes.set_ylim(0.8, top)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.legend(loc="center left")
    return axes
