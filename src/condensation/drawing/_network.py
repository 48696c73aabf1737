"""A network as nodes and lines: the strength of a line is that of its weight."""

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from ..errors import InputError
from ..networks import Dense, Model
from ._style import COLOURS, INK, look, new_axes, note

FAINTEST = 0.02  # of the largest weight: fainter lines are not drawn


def draw_network(
    model: Model, axes: Axes | None = None, *, order: Int[np.ndarray, " units"] | None = None, title: str = ""
) -> Axes:
    """The layers of a dense network side by side, inputs and bias left, a line for each weight.

    Orange weights are positive, blue ones negative; the more solid a line, the larger its weight within its layer.

    Args:
        model: a dense network with its parameters.
        order: an order of the last hidden layer's neurons, from below.
    """
    if not isinstance(model.network, Dense) or model.network.concatenated:
        raise InputError("a network is drawn whose layers are dense, each reading the one before it alone")
    with look():
        axes = axes or new_axes(height=2.8)
        layers = model.network.layers
        places = [_heights(layers[0].weight[1] + layers[0].has_bias), *(_heights(layer.weight[0]) for layer in layers)]
        if order is not None:
            moved = np.empty_like(places[-2])
            moved[order] = places[-2]
            places[-2] = moved
        for depth, layer in enumerate(layers):
            weights = model.weights(layer.name)
            left = places[depth] if not (depth and layer.has_bias) else np.append(places[depth], -0.62)
            _draw_lines(axes, depth, left, places[depth + 1], weights / max(np.abs(weights).max(), 1e-300))
        for depth, heights in enumerate(places):
            circle = {"s": min(60.0, 900 / len(heights)), "color": "white", "edgecolor": INK, "linewidth": 0.7}
            axes.scatter(np.full(len(heights), depth), heights, zorder=3, **circle)
        names = [f"$x_{k + 1}$" for k in range(layers[0].weight[1])] + ["1"] * layers[0].has_bias
        for name, height in zip(names, places[0], strict=True):
            note(axes, name, (0, height), (-7, 0), ha="right", va="center")
        note(axes, "f", (len(layers), 0), (7, 0), va="center", fontsize=8)
        axes.set(xlim=(-0.22, len(layers) + 0.16), ylim=(-0.56, 0.56), title=title)
        axes.axis("off")
    return axes


def _heights(count: int) -> np.ndarray:
    """Where the nodes of a layer stand: closer together where there are more."""
    reach = 0.5 * min(1.0, (count - 1) / 8)
    return np.linspace(reach, -reach, count) if count > 1 else np.zeros(1)


def _draw_lines(axes: Axes, depth: int, left: np.ndarray, right: np.ndarray, weights: np.ndarray) -> None:
    units, inputs = np.nonzero(np.abs(weights) >= FAINTEST)
    drawn = np.argsort(np.abs(weights[units, inputs]))
    units, inputs = units[drawn], inputs[drawn]
    ends = [np.array([(depth, left[i]), (depth + 1, right[j])]) for j, i in zip(units, inputs, strict=True)]
    colours = [(*to_rgb(COLOURS[1] if w > 0 else COLOURS[0]), min(1.0, abs(w))) for w in weights[units, inputs]]
    axes.add_collection(LineCollection(ends, colors=colours, linewidths=0.5 if len(ends) > 100 else 1.1, zorder=1))
