"""Lines predicted beside lines found."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..measure import nearest_lines
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import as_weights, norms
from ..theory import Directions
from ._style import COLOURS, FAINT, look, new_axes


def draw_predicted(weights: ArrayLike, predicted: Directions, axes: Axes | None = None, *, title: str = "") -> Axes:
    """For each neuron its cosine to the nearest attracting line, by line in ascending order, and how many are on it.

    Args:
        weights: units x inputs, the bias last.
        predicted: the stationary directions; only attracting ones count.
    """
    with look():
        axes = axes or new_axes()
        array = as_weights(weights)
        array = array[norms(array) > 0]
        lines = predicted.directions[predicted.attracts]
        place, on = 0, 0
        if len(lines):
            nearest, cosine = nearest_lines(array, lines)
            for line in range(len(lines)):
                values = np.sort(cosine[nearest == line])
                colour = COLOURS[line % len(COLOURS)]
                here = int((values >= LEAST_COSINE).sum())
                on += here
                spots = np.arange(place, place + len(values))
                axes.vlines(spots, 0, values, color=colour, linewidth=1, label=f"line {line + 1}: {here}")
                place += len(values)
        axes.axhline(LEAST_COSINE, color=FAINT, linewidth=0.8, zorder=0)
        axes.set(ylim=(0, 1.02), xlim=(-1, len(array)), xlabel="neuron, by predicted line", title=title)
        axes.set_ylabel("|cos| to the nearest predicted line")
        summary = f"{on} of {len(array)} neurons on a predicted line" if len(lines) else "no line attracts"
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, title=summary, title_fontsize=7)
    return axes
