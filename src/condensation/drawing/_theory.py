"""Pictures of the theory: where weight and bias of a neuron move, lines predicted beside lines found, a spectrum."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..activations import Activation, multiplicity
from ..measure import nearest_lines
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import as_weights, norms
from ..theory import Directions, field, stationary_directions, velocity
from ..theory._field import Order
from ..theory._tensor import unit
from ._style import COLOURS, FAINT, INK, figure_of, look, new_axes, note

ARROWS = 19  # on each side of the field
SHOWN = 15  # eigenvalues


def draw_field(
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    axes: Axes | None = None,
    *,
    weights: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    directions: Directions | None = None,
    size: float | None = None,
    order: Order = "exact",
    title: str = "",
) -> Axes:
    """The field of (weight, bias) at output weight 1 (FC Fig. 6), its stationary lines, and neurons that move.

    Full lines attract neurons (of one sign of the output weight a, where the colour says so), dotted ones none. All
    arrows have one length: they are directions.

    Args:
        x: inputs, samples x 2, the bias's 1 last.
        residual: y - f, one for each sample.
        activation: of the hidden layer.
        axes: where to draw; a new figure has a legend, too.
        weights: the neurons, units x 2.
        outputs: their output weights; a neuron's arrow shows its own velocity, the field times its output weight.
        directions: the stationary lines; computed from the data if not given and there is a multiplicity.
        size: half the side of the picture; the largest neuron's, or 1.
        order: ``"exact"`` or ``"leading"``.
    """
    with look():
        alone = axes is None
        axes = axes or new_axes(height=3.4)
        neurons = np.zeros((0, 2)) if weights is None else np.asarray(weights, float)
        half = size or (1.15 * float(np.abs(neurons).max()) if neurons.size else 1.0)
        ticks = np.linspace(-half, half, ARROWS)
        grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
        arrows = unit(field(grid, x, residual, activation, order=order))
        axes.quiver(*grid.T, *arrows.T, color=FAINT, pivot="mid", scale=1.25 * ARROWS, width=0.004, zorder=1)
        p = multiplicity(activation)
        if directions is None and p is not None:
            directions = stationary_directions(x, residual, p)
        if directions is not None:
            _draw_lines(axes, directions, half)
        if len(neurons):
            axes.scatter(*neurons.T, s=9, color=COLOURS[2], linewidth=0, zorder=4, label="neurons")
            if outputs is not None:
                moving = unit(velocity(neurons, outputs, x, residual, activation, order=order))
                axes.quiver(*neurons.T, *moving.T, color=COLOURS[4], scale=1.1 * ARROWS, width=0.005, zorder=5)
        axes.set(xlim=(-half, half), ylim=(-half, half), aspect="equal")
        axes.set(xlabel="weight $w$", ylabel="bias $b$", title=title)
        axes.locator_params(nbins=5)
        if alone:
            figure_of(axes).legend(loc="outside lower center", ncols=3, handletextpad=0.4)
    return axes


def _draw_lines(axes: Axes, directions: Directions, half: float) -> None:
    """Each stationary line through the origin, its kind named once in the legend."""
    up, down = directions.attracts_positive, directions.attracts_negative
    kinds = {
        "attracts": (up & down, {"color": COLOURS[0], "linewidth": 1.6}),
        "attracts $ac > 0$": (up & ~down, {"color": COLOURS[5], "linewidth": 1.6}),
        "attracts $ac < 0$": (down & ~up, {"color": COLOURS[3], "linewidth": 1.6}),
        "stationary only": (~directions.attracts, {"color": INK, "linewidth": 0.8, "linestyle": ":"}),
    }
    for name, (chosen, style) in kinds.items():
        for k, u in enumerate(directions.directions[chosen]):
            ends = 2 * half * np.array([0.0 if directions.oriented else -1.0, 1.0])
            axes.plot(ends * u[0], ends * u[1], zorder=2, label=name if k == 0 else None, **style)  # type: ignore[arg-type]


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
