"""The picture of both stages of attention."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, INK, PAGE
from ...measure import effective_rank
from ._course import STAGE_1

if TYPE_CHECKING:
    from .stages import Stages


def draw_stages(figure: "Stages") -> Figure:
    """Two rows of three panels."""
    with look():
        picture = Figure(figsize=(PAGE, 4.4), layout="constrained")
        (energy, shares, columns), (values, queries, spectrum) = picture.subplots(2, 3)
        for k, (name, courses) in enumerate(figure.courses.items()):
            for one in courses:
                style = {"color": COLOURS[k], "linewidth": 0.7, "alpha": 0.6}
                end = one.before(STAGE_1)
                left = one.time[end] - one.time[: end + 1]
                energy.plot(left, np.where(one.energy > 0, one.energy, np.nan)[: end + 1] ** (-1 / 3), **style)
                shares.plot(left, one.shares[: end + 1], **style)
                some = np.unique(np.linspace(0, len(one.loss) - 1, 1500).astype(int))
                progress = np.maximum(1 - one.loss[some], 1e-9)
                _over(columns, progress, _cosines(one)[some], style)
                for axes, layer in ((values, "value1"), (queries, "query1")):
                    weights = one.weights(layer)
                    thinned = _thin(progress)
                    _over(axes, progress[thinned], [effective_rank(weights[some[j]]) for j in thinned], style)
            energy.plot([], [], color=COLOURS[k], label=figure.titles[name])
        line = np.array([0, 0.5])
        energy.plot(line, line, color=INK, linestyle="--", linewidth=0.8)
        energy.set(xlabel="time left to the blow-up", title="$E^{-1/3}$", ylim=(0, 1))
        energy.legend(fontsize="x-small")
        shares.set(xlabel="time left to the blow-up", title="share of Assumption 1")
        for axes, title in ((columns, "|cosine| of $W_V$'s columns, $v$"), (values, "effective rank of $W_V$"),
                            (queries, "effective rank of $W_Q$")):  # fmt: skip
            axes.set(xscale="log", xlabel="1 − loss over the first", title=title)
        for axes in (energy, shares):
            axes.invert_xaxis()
        _spectra(spectrum, figure)
    return picture


def _over(axes: Axes, progress: np.ndarray, values: object, style: dict[str, object]) -> None:
    axes.plot(progress, np.asarray(values), **style)  # type: ignore[arg-type]


def _thin(progress: np.ndarray) -> np.ndarray:
    """Places about evenly spaced on the logarithm of the progress."""
    wanted = np.geomspace(max(progress[0], 1e-9), progress.max(), 60)
    return np.unique(np.searchsorted(np.maximum.accumulate(progress), wanted).clip(0, len(progress) - 1))


def _cosines(one: object) -> np.ndarray:
    """Median cosine of W_V's columns with v at all saved steps."""
    from ...theory import value_direction

    values, (v, _) = one.weights("value1"), value_direction(*one.data)  # type: ignore[attr-defined]
    return np.median(np.abs(values @ v) / np.linalg.norm(values, axis=2), axis=1)


def _spectra(axes: Axes, figure: "Stages") -> None:
    for k, name in enumerate(("one", "two")):
        for seed in range(len(figure.runs[name].seeds)):
            found = np.linalg.svd(figure.at_rank(name, seed), compute_uv=False)
            shift = 0.12 * (2 * k - 1)
            axes.semilogy(np.arange(1, 9) + shift, found / found[0], ".", color=COLOURS[k + 2], alpha=0.6, markersize=4)
        axes.plot([], [], ".", color=COLOURS[k + 2], label=f"F: {name} on top")
    axes.set(title="singular values of $W_Q$, frozen", xlabel="number", ylim=(1e-4, 2))
    axes.legend(fontsize="x-small")
