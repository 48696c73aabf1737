"""All layers of a model in one picture, a layer beside its null, and layers against the steps of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..errors import InputError
from ..measure import Row, permuted
from ..measure._similarity import as_weights, norms
from ._similarity import draw_bar, draw_similarity
from ._style import COLOURS, FAINT, INK, PAGE, look, new_axes, note

MOST_UNITS = 200
QUANTITIES = {"lines": "lines", "k_eff": "$k_{eff}$ / units", "effective_rank": "effective rank", "change": "RD"}
RING: dict[str, Any] = {"markersize": 6.2, "markerfacecolor": "none"}
_MARKS = "osD^vPX*<>hp"


def _look_of(number: int) -> dict[str, Any]:
    """The colour and the mark of the kind or layer with a number."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": _MARKS[number % len(_MARKS)]}


def draw_layers(
    rows: Sequence[Row], axes: Axes | None = None, *, title: str = "", numbered: Sequence[str] = ()
) -> Axes:
    """k_eff over the number of units, layer after layer, beside what chance leaves.

    Filled marks: the weights as they are; rings: with the mean of the units removed; grey bars: their null, permuted
    entries. A ring on its bar is a layer as chance has it, one far below it a condensed one. Kinds of units have
    colours and shapes of their own.

    Args:
        rows: of the layers, in the order of the model; what was not measured is left out.
        numbered: layers beside whose marks 1, 2, 3, ... stand.
    """
    measured = [row for row in rows if not row.reason]
    if not measured:
        raise InputError("no layer was measured: there is nothing to draw")
    kinds = list(dict.fromkeys(row.kind or "unit" for row in measured))
    with look():
        axes = axes or new_axes(PAGE, 2.9)
        places = np.arange(1, len(measured) + 1)
        null = np.array([row.null_k_eff / row.units for row in measured])
        axes.hlines(null, places - 0.4, places + 0.4, color=FAINT, linewidth=2.2, zorder=1)
        for number, kind in enumerate(kinds):
            own = [k for k, row in enumerate(measured) if (row.kind or "unit") == kind]
            centred = [measured[k].centred_k_eff / measured[k].units for k in own]
            plain = [measured[k].k_eff / measured[k].units for k in own]
            marks: dict[str, Any] = {"linestyle": ""} | _look_of(number)
            axes.plot(places[own], plain, markersize=3.2, zorder=3, **marks)
            axes.plot(places[own], centred, **RING, markeredgewidth=0.8, zorder=2, **marks)
        lowest = np.nanmin([[row.k_eff / row.units, row.centred_k_eff / row.units] for row in measured])
        axes.set(yscale="log", ylim=(min(0.09, 0.6 * lowest), 1.6), xlim=(0, len(measured) + 1))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for place, row in zip(places, measured, strict=True):
            if row.layer in numbered:
                note(axes, str(numbered.index(row.layer) + 1), (place, row.k_eff / row.units), (5, -2))
        axes.set(xlabel="layer, in the order of the model", ylabel="$k_{eff}$ / units", title=title)
        handles = _legend(kinds, with_null=bool(np.isfinite(null).any()))
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return axes


def _legend(kinds: Sequence[str], with_null: bool) -> list[Line2D]:
    own: dict[str, Any] = {"linestyle": "", "color": INK, "marker": "o"}
    known = [
        Line2D([], [], markersize=3.2, label="as it is", **own),
        Line2D([], [], **RING, label="mean removed", **own),
        Line2D([], [], color=FAINT, linewidth=2.2, label="its null"),
    ][: None if with_null else 0]
    return known + [
        Line2D([], [], linestyle="", markersize=4, label=kind, **_look_of(number)) for number, kind in enumerate(kinds)
    ]


def draw_beside_null(weights: ArrayLike, *, title: str = "", seed: int = 0) -> Figure:
    """Heat maps of the units' cosines in block order: the layer, and the same with entries permuted.

    Of more than 200 units, 200 are drawn at random; units of norm zero are left out.

    Args:
        weights: units x inputs.
        seed: of the permutation, and of the choice among many units.
    """
    array = as_weights(weights)
    alive = np.flatnonzero(norms(array) > 0)
    if not len(alive):
        raise InputError("all weights are zero: there is no direction")
    drawn = np.random.default_rng(seed).choice(alive, min(len(alive), MOST_UNITS), replace=False)
    null = permuted(array[alive], seed, MOST_UNITS)
    null = null[norms(null) > 0]
    with look():
        figure = Figure(figsize=(PAGE * 0.72, 2.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_similarity(array[drawn], left, title=title, bar=False)
        draw_similarity(null, right, title="its null: entries permuted", bar=False)
        draw_bar(left.images[0], [left, right])
    return figure


def draw_steps(history: Mapping[str, Mapping[int, Row]], *, title: str = "") -> Figure:
    """Lines, k_eff over units, effective rank and change of layers against the step, from rows by layer and step."""
    if not history:
        raise InputError("no layer was given: there is nothing to draw")
    with look():
        figure = Figure(figsize=(PAGE, 4.2), layout="constrained")
        if title:
            figure.suptitle(title, fontsize=8)
        for axes, (quantity, name) in zip(figure.subplots(2, 2).flat, QUANTITIES.items(), strict=True):
            for number, (layer, rows) in enumerate(history.items()):
                known = {step: row for step, row in rows.items() if not row.reason}
                values = [getattr(row, quantity) / (row.units if quantity == "k_eff" else 1) for row in known.values()]
                axes.plot(list(known), values, markersize=3, label=layer, **_look_of(number))
            axes.set_xscale("symlog", linthresh=1)
            axes.set(xlabel="step", ylabel=name)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=quantity == "lines"))
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure
