"""The spectrum of Z, with its gap."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ._style import COLOURS, FAINT, INK, look, new_axes, note

SHOWN = 15


def draw_spectrum(values: Float[np.ndarray, "draws values"], axes: Axes | None = None, *, title: str = "") -> Axes:
    r"""The largest 15 eigenvalues $\lambda_k^2$ of $Z^T Z$ over the largest, and the gap between the first two.

    Args:
        values: singular values of Z in descending order, a row for each draw of the data.
    """
    with look():
        axes = axes or new_axes()
        shares = (np.atleast_2d(values) / np.atleast_2d(values)[:, :1])[:, :SHOWN] ** 2
        places = np.arange(1, shares.shape[1] + 1)
        for row in shares:
            axes.plot(places, row, color=FAINT, linewidth=0.5, zorder=1)
        middle = np.median(shares, axis=0)
        axes.plot(places, middle, "o-", color=COLOURS[0], markersize=3, linewidth=0.8, zorder=2)
        if len(middle) > 1:
            arrow = {"arrowstyle": "<->", "color": COLOURS[1], "linewidth": 0.9}
            axes.annotate("", (1.6, middle[1]), (1.6, 1.0), arrowprops=arrow)
            axes.plot([1, 2], [1.0, 1.0], color=INK, linewidth=0.4, linestyle=":")
            gap = rf"$(\lambda_1 - \lambda_2)/\lambda_1$ = {1 - middle[1] ** 0.5:.0%}"
            note(axes, gap, (1.6, (1 + middle[1]) / 2), (5, 0), va="center", color=COLOURS[1])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="$k$", ylabel=r"eigenvalue of $Z^T Z$ / largest", ylim=(0, 1.05), title=title)
    return axes
