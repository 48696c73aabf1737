"""The picture of the anchor task, and of text."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, INK, PAGE
from ._anchor_course import AnchorCourse

if TYPE_CHECKING:
    from .anchor import Anchor
    from .text import AttentionText

PARTS = {"value": "$W_V$", "up": "$W_1$", "down": "$W_2$", "query": "$W_Q$", "key": "$W_K$"}
BLOCKS = ("-", "--", ":")  # the first block, the second, those behind it


def draw_anchor(figure: "Anchor | AttentionText", legend: int = 2) -> Figure:
    """A row of four panels for each model; the legend stands in one of the first row."""
    with look():
        rows = len(figure.courses)
        picture = Figure(figsize=(PAGE, 2.1 * rows + 0.3), layout="constrained")
        panels = picture.subplots(rows, 4, squeeze=False, sharex=True)
        for (name, courses), row in zip(figure.courses.items(), panels, strict=True):
            for one in courses:
                _draw_seed(one, row)
            row[0].set(ylabel=figure.titles[name])
            row[1].axhline(1, color=INK, linewidth=0.6, linestyle=":")
            row[1].set(yscale="log", ylim=(1e-3, 30))
            row[2].set(ylim=(0, 1.05))
            row[3].set(ylim=(0, 1.05))
        titles = ("loss", "change, $W_Q$ and $W_K$ / outer", "effective rank", "|cosine|, next step")
        for axes, title in zip(panels[0], titles, strict=True):
            axes.set(title=title)
        for axes in panels[-1]:
            axes.set(xlabel="step")
        for part, colour in zip(PARTS.values(), COLOURS, strict=False):
            panels[0][legend].plot([], [], color=colour, label=part)
        panels[0][legend].legend(fontsize="x-small")
    return picture


def _draw_seed(one: AnchorCourse, row: np.ndarray) -> None:
    loss, ratio, ranks, turns = row
    thin = {"linewidth": 0.7, "alpha": 0.6}
    steps = one.run.saved
    loss.plot(one.run.recorded, one.run.loss[one.seed], color=INK, **thin)
    loss.axhline(one.plateau, color=INK, linestyle="--", linewidth=0.6)
    ratio.plot(steps[1:], one.attention_over_outer, color=INK, **thin)
    for part in (*one.outer, *one.attention):
        style = {"color": dict(zip(PARTS, COLOURS, strict=False))[part.rstrip("0123456789")], **thin}
        style["linestyle"] = BLOCKS[min(int(part.lstrip("abcdefghijklmnopqrstuvwxyz")), len(BLOCKS)) - 1]
        ranks.plot(steps, one.ranks(part) / one.ranks(part)[0], **style)
        turns.plot(steps[1:], one.turns((part,)), **style)
    if one.stage_1 is not None:
        for axes in row:
            axes.axvspan(0, steps[one.stage_1], color=INK, alpha=0.04, linewidth=0)
