"""The three panels of Proposition 1's figure."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import draw_predicted, look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...measure import nearest_lines
from ...runs import Trajectory
from ...theory import Directions, stationary_directions


def draw_panels(
    one_input: Mapping[int, Sequence[Directions]],
    cosines: Sequence[tuple[Sequence[float], Sequence[float]]],
    solved: Trajectory,
    p: int,
) -> Figure:
    """The figure.

    Args:
        one_input: the directions of several data sets by multiplicity.
        cosines: of MSE and of cross-entropy, the neurons' to the sum of the outputs and to the top singular vector.
        solved: the run with solved labels.
        p: its multiplicity.
    """
    with look():
        figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
        _draw_counts(left, one_input)
        _draw_outputs(middle, cosines)
        _draw_solved(right, solved, p)
    return figure


def _draw_counts(axes: Axes, one_input: Mapping[int, Sequence[Directions]]) -> None:
    stream = np.random.default_rng(0)
    for p, every in one_input.items():
        for values, colour, name, shift in (
            ([2 * each.count for each in every], FAINT, "stationary", -0.13),
            ([2 * int(each.attracts.sum()) for each in every], COLOURS[0], "attracting", 0.13),
        ):
            places = p + shift + stream.uniform(-0.07, 0.07, len(every))
            axes.scatter(places, values, s=7, color=colour, linewidth=0, label=name if p == 1 else None)
    axes.plot(list(one_input), [2 * p for p in one_input], color=COLOURS[1], label="2p")
    axes.set(xlabel="multiplicity p", ylabel="orientations", title="one-dimensional input", ylim=(0, None))
    axes.legend(loc="upper left")


def _draw_outputs(axes: Axes, cosines: Sequence[tuple[Sequence[float], Sequence[float]]]) -> None:
    names = {"sum of the outputs": (-0.16, COLOURS[1]), "top singular vector": (0.16, COLOURS[0])}
    for place, pair in enumerate(cosines):
        for values, (name, (shift, colour)) in zip(pair, names.items(), strict=True):
            places, name = np.full(len(values), place + shift), None if place else name
            axes.scatter(places, values, s=9, color=colour, alpha=0.7, linewidth=0, label=name)
    axes.set(xlim=(-0.6, 1.6), ylim=(0, 1.03), ylabel="median |cos| of the neurons", title="ten outputs")
    axes.set_xticks([0, 1], ["MSE", "cross-entropy"])
    axes.legend(loc="center left")


def _draw_solved(axes: Axes, run: Trajectory, p: int) -> None:
    x, y = run.data(run.seeds[0])
    weights, predicted = run.weights(1, int(run.saved[-1]), run.seeds[0]), stationary_directions(x, y[:, 0], p)
    title = f"p = {p}, D = {x.shape[1]}: {predicted.attracts.sum()} lines, not {p}"
    draw_predicted(weights, predicted, axes, title=title)
    legend = axes.get_legend()
    assert legend is not None
    legend.remove()
    nearest = np.bincount(nearest_lines(weights, predicted.directions[predicted.attracts])[0])
    for end, size in zip(np.cumsum(nearest), nearest, strict=True):
        axes.annotate(str(size), (end - size / 2, 0.05), ha="center", color="white")
