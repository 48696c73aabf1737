"""Rows of pictures that several figures are composed of."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .._phrases import plural
from ..measure import LineHistory
from ..runs import Run
from ._curves import draw_history
from ._similarity import draw_bar, draw_similarity
from ._style import COLOURS, FAINT, PAGE, look

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@runtime_checkable
class _LineCounts(Protocol):
    """Lines of a layer over the seeds, whether it is condensed, the weights of one seed, and lines over time."""

    @property
    def lines(self) -> np.ndarray: ...
    @property
    def condensed(self) -> np.ndarray: ...
    @property
    def shown(self) -> np.ndarray: ...
    @property
    def history(self) -> LineHistory: ...


def draw_maps(
    counts: Mapping[str, _LineCounts], expected: Mapping[str, int], weights: Mapping[str, np.ndarray] | None = None
) -> Figure:
    """Heat maps of one seed in a row, and below each how many lines all seeds have.

    Args:
        counts: lines over the seeds, by the title of their panel.
        expected: the paper's number of lines.
        weights: those that are shown; by default of each panel's median seed.
    """
    with look():
        figure = Figure(figsize=(PAGE, 3.2), layout="constrained")
        top, bottom = figure.subplots(2, len(counts), height_ratios=(1.35, 1), squeeze=False)
        most = max(2, *(int(np.nan_to_num(own.lines).max()) for own in counts.values()))
        for column, (title, own) in enumerate(counts.items()):
            shown = own.shown if weights is None else weights[title]
            draw_similarity(shown, top[column], title=f"({LETTERS[column]}) {title}", bar=False)
            top[column].set(xlabel="", ylabel="", xticks=[], yticks=[])
            draw_distribution(bottom[column], own, expected[title], most)
            if column:
                bottom[column].set(ylabel="", yticklabels=[])
        draw_bar(top[-1].images[0], list(top))
        handles = [
            Patch(color=COLOURS[1], label="the paper's number"),
            Patch(color=COLOURS[0], label="another number"),
            Patch(facecolor="white", edgecolor=FAINT, hatch="/////", label="not condensed"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def draw_distribution(axes: Axes, counts: _LineCounts, expected: int, most: int) -> Axes:
    """Bars of the share of seeds that have so many lines; a seed that diverged has none of them."""
    places = np.arange(most + 1)
    lines, diverged = counts.lines, np.isnan(counts.lines)
    yes, no = (
        np.bincount(lines[chosen & ~diverged].astype(int), minlength=most + 1) / len(lines)
        for chosen in (counts.condensed, ~counts.condensed)
    )
    colours = [COLOURS[1] if place == expected else COLOURS[0] for place in places]
    axes.bar(places, yes, color=colours, width=0.8)
    axes.bar(places, no, bottom=yes, color="white", edgecolor=FAINT, hatch="/////", width=0.8, linewidth=0.5)
    axes.set(xlabel="lines", ylabel="share of seeds", ylim=(0, 1), xlim=(-0.6, most + 0.6), yticks=[0, 0.5, 1])
    axes.set_xticks(places[:: 1 if most < 6 else 2])
    axes.annotate(
        plural(len(lines), "seed") + (f", {diverged.sum()} diverged" if diverged.any() else ""),
        (1, 1),
        xycoords="axes fraction",
        xytext=(-2, -1),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=6,
        color=FAINT,
    )
    return axes


def draw_times(runs: Mapping[str, Run], counts: Mapping[str, _LineCounts], epochs: Mapping[str, int]) -> Figure:
    """Lines against time, a panel a run; the dotted line is the captioned epoch."""
    with look():
        figure, row = _row(list(runs))
        for name, axes in row.items():
            draw_history(runs[name].saved, counts[name].history, axes, title=name)
            axes.axvline(epochs[name], color=FAINT, linestyle=":", linewidth=0.8)
        only_outer(figure, list(row.values()))
    return figure


def _row(names: list[str], height: float = 2.1) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one picture for each name, side by side."""
    figure = Figure(figsize=(PAGE, height), layout="constrained")
    return figure, dict(zip(names, figure.subplots(1, len(names), sharey=True, squeeze=False)[0], strict=True))


def only_outer(figure: Figure, row: Sequence[Axes]) -> None:
    """Keep the axis label of the first picture only, and put one legend below all."""
    named = {}
    for axes in row:
        handles, names = axes.get_legend_handles_labels()
        named |= dict(zip(names, handles, strict=True))
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
        if axes is not row[0]:
            axes.set_ylabel("")
    if named:
        figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=len(named))
