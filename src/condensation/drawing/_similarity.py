"""The papers' heat map: cosine similarity of all pairs of units, beige +1, navy -1."""

from __future__ import annotations

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..measure import block_order, cosine_similarity
from ._style import SIMILARITY, figure_of, look, new_axes


def draw_similarity(
    weights: ArrayLike, axes: Axes | None = None, *, title: str = "", ordered: bool = True, bar: bool = True
) -> Axes:
    """Heat map of D(u, v) between units, ordered so that units of one orientation stand together.

    Args:
        weights: units x inputs.
        ordered: put the units in block order; else as they are.
        bar: draw the colour bar.
    """
    with look():
        axes = axes or new_axes(height=2.9)
        cosines = cosine_similarity(weights)
        if ordered:
            order = block_order(weights)
            cosines = cosines[order][:, order]
        image = axes.imshow(cosines, cmap=SIMILARITY, vmin=-1, vmax=1, interpolation="nearest", rasterized=True)
        axes.set(xlabel="unit", ylabel="unit", title=title)
        axes.spines[:].set_visible(False)
        if bar:
            draw_bar(image, axes)
    return axes


def draw_bar(image: object, axes: Axes | list[Axes]) -> None:
    """The colour bar of cosines, from -1 to 1, beside one heat map or several."""
    first = axes if isinstance(axes, Axes) else axes[0]
    bar = figure_of(first).colorbar(image, ax=axes, ticks=[-1, 0, 1], fraction=0.05, pad=0.02)  # type: ignore[arg-type]
    bar.set_label("cosine similarity $D(u, v)$")
    bar.outline.set_visible(False)  # type: ignore[operator]
