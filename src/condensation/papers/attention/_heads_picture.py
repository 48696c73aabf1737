"""The picture of many heads."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import draw_similarity, look
from ...drawing._style import COLOURS, INK, PAGE
from ._heads_course import PARTS, HeadsCourse

if TYPE_CHECKING:
    from .heads import Heads


def draw_heads(figure: "Heads") -> Figure:
    """Directions over the steps above, heads against heads below."""
    with look():
        picture = Figure(figsize=(PAGE, 4.4), layout="constrained")
        counts, alike = picture.subplots(2, 4)
        _draw_counts(figure, counts)
        one = figure.courses["adam"][0]
        for part, axes in zip(PARTS, alike[:3], strict=True):
            place = int(one.moments(part)[0])
            draw_similarity(one.heads(part, 1, place).reshape(one.network.heads, -1), axes, bar=False)
            axes.set(title=f"{figure.words[part]}, step {one.run.saved[place]}", xlabel="head", ylabel="")
        alike[0].set_ylabel("head")
        _draw_groups(figure, one, alike[3])
    return picture


def _draw_counts(figure: "Heads", panels: np.ndarray) -> None:
    shown = [("adam", part, figure.words[part]) for part in PARTS] + [("descent", "value", "values, descent")]
    for axes, (name, part, title) in zip(panels, shown, strict=True):
        for one in figure.courses[name]:
            for block, counts, colour in zip(one.blocks, one.counts(part), COLOURS, strict=False):
                label = {"label": f"block {block}"} if one.seed == 0 else {}
                axes.plot(one.run.saved, counts, color=colour, linewidth=0.7, alpha=0.7, **label)
            axes.set(ylim=(0.7 * one.most, 1.15 * one.network.heads))
            axes.axhline(one.most, color=INK, linestyle=":", linewidth=0.8)
        axes.set(title=title, xlabel="step", yscale="log")
        axes.set_yticks([16, 32, 64, 128], ["16", "32", "64", "128"])
        axes.minorticks_off()
    panels[0].set_ylabel("directions of heads")
    panels[0].legend(fontsize="x-small")


def _draw_groups(figure: "Heads", one: HeadsCourse, axes: Axes) -> None:
    """Sizes of the groups of the first block."""
    for part, colour, marker in zip(PARTS, COLOURS, ".x+", strict=False):
        sizes = one.sizes[part][0][int(one.moments(part)[0])]
        axes.plot(range(1, len(sizes) + 1), sizes, marker, color=colour, markersize=5, label=figure.words[part])
    axes.axvline(one.most, color=INK, linestyle=":", linewidth=0.8)
    axes.set(title="groups of block 1", xlabel="group", ylabel="heads")
    axes.legend(fontsize="x-small")
