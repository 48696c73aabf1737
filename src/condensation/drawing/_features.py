"""The orientation-amplitude picture of a layer with one-dimensional input."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..measure import find_lines, orientation_amplitude
from ._style import COLOURS, FAINT, look, new_axes


def draw_features(
    weights: ArrayLike, output: ArrayLike | None = None, axes: Axes | None = None, *, title: str = ""
) -> Axes:
    """Each neuron at its angle and amplitude, coloured by its line (grey: on no line).

    Args:
        weights: units x 2, weight and bias.
        output: output weights; the amplitude is then |a| |w| instead of |w|.
    """
    with look():
        axes = axes or new_axes()
        angle, amplitude = orientation_amplitude(weights, output)
        labels = find_lines(weights).labels
        for line in (-1, *range(labels.max(initial=-1) + 1)):
            chosen = labels == line
            if chosen.any():
                name = f"line {line + 1}" if line >= 0 else "no line"
                colour = COLOURS[line % len(COLOURS)] if line >= 0 else FAINT
                axes.scatter(angle[chosen], amplitude[chosen], s=8, color=colour, linewidth=0, label=name)
        axes.set(xlabel="orientation (angle of weight and bias)", xlim=(-np.pi, np.pi), title=title)
        axes.set_ylabel("amplitude $|w|$" if output is None else "amplitude $|a||w|$")
        axes.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["$-\\pi$", "$-\\pi/2$", "0", "$\\pi/2$", "$\\pi$"])
        axes.set_ylim(bottom=0)
        axes.legend(loc="best", handletextpad=0.2)
    return axes
