"""The picture of the plateaus: losses, neurons before and after one, prediction against training."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, FAINT, INK, PAGE, note

if TYPE_CHECKING:
    from .saddles import Saddles

SHADE = "#f1e2c4"


def draw_saddles(figure: "Saddles") -> Figure:
    """Three rows of three panels."""
    with look():
        picture = Figure(figsize=(PAGE, 6.2), layout="constrained")
        top, middle, bottom = picture.subplots(3, 3)
        for k, name in enumerate(figure.runs):
            _losses(top[k], figure, name, COLOURS[k])
            _neurons(middle[k], figure, name, COLOURS[k])
        for axes in top[1:]:
            axes.sharey(top[0])
        top[0].set_ylabel("loss over the first")
        middle[0].set_ylabel("$|a||w|$")
        _pairs(bottom[0], figure, "time", "steps to leave", "predicted", "found")
        _pairs(bottom[1], figure, "rate", "rate of leaving", "$-\\lambda_{min}$ of the Hessian", "found")
        _critical(bottom[2], figure)
        picture.legend(*bottom[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return picture


def _losses(axes: Axes, figure: "Saddles", name: str, colour: str) -> None:
    run, shown = figure.runs[name], figure.shown(name)
    loss = run.loss / run.loss[:, :1]
    for k in range(len(loss)):
        axes.loglog(run.recorded[1:], loss[k, 1:], color=colour, alpha=0.25, linewidth=0.6)
    axes.loglog(run.recorded[1:], loss[shown, 1:], color=INK, linewidth=1.2)
    widths = figure.widths[name][shown]
    for one, width in zip(figure.standings[name][shown], widths, strict=False):
        axes.axvspan(run.saved[one.first], run.saved[one.last], color=SHADE, zorder=0, linewidth=0)
        note(axes, f"{width}", (run.saved[one.column], loss[shown, one.column]), (0, 5), ha="center")
    note(axes, f"{widths[-1]}", (run.saved[-1], loss[shown, -1]), (-2, 6), ha="right")
    axes.set(title=figure.titles[name], xlabel="step")


def _neurons(axes: Axes, figure: "Saddles", name: str, colour: str) -> None:
    own = figure.standings[name][figure.shown(name)]
    axes.set(xlabel="angle of $(w, b)$ as a line", xlim=(-np.pi / 2, np.pi / 2))
    axes.set_xticks([-np.pi / 2, 0, np.pi / 2], ["$-\\pi/2$", "0", "$\\pi/2$"])
    if not own:
        axes.text(0.5, 0.5, "no plateau", ha="center", transform=axes.transAxes)
        return
    one = own[0]
    assert one.left is not None
    for model, style in ((one.model, FAINT), (one.at(one.left), colour)):
        weights, a = model.weights(1), np.abs(model.parameters["output.weight"][0])
        angle = np.arctan(weights[:, 1] / np.where(weights[:, 0] == 0, 1e-300, weights[:, 0]))
        axes.scatter(angle, a * np.linalg.norm(weights, axis=1), s=9, color=style, linewidth=0, alpha=0.8)
    axes.set_yscale("log")
    values = np.abs(one.directions.values[one.directions.attracts])
    for line, value in zip(one.lines, values, strict=True):
        faint = 0.25 + 0.75 * float(value / values.max())
        axes.axvline(np.arctan(line[1] / line[0]), color=INK, linestyle="--", linewidth=0.9, zorder=0, alpha=faint)


def _pairs(axes: Axes, figure: "Saddles", key: str, title: str, x: str, y: str) -> None:
    every = []
    for k, (name, rows) in enumerate(figure.rows.items()):
        points = np.array([(row[key], row[f"{key}_found"]) for row in rows]).reshape(-1, 2)
        axes.scatter(*points.T, s=12, color=COLOURS[k], linewidth=0, alpha=0.8, label=figure.titles[name])
        every.append(points[np.isfinite(points).all(axis=1)])
    seen = np.concatenate(every)
    axes.set(xscale="log", yscale="log", title=title, xlabel=x, ylabel=y)
    if len(seen):
        ends = np.array([seen.min() / 1.5, seen.max() * 1.5])
        axes.plot(ends, ends, color=FAINT, linewidth=0.8, zorder=0)
        axes.fill_between(ends, ends / 2, ends * 2, color=FAINT, alpha=0.25, linewidth=0, zorder=0)


def _critical(axes: Axes, figure: "Saddles") -> None:
    stream = np.random.default_rng(0)
    for k, (name, rows) in enumerate(figure.rows.items()):
        values = [row["critical"] for row in rows]
        shift = stream.uniform(-0.15, 0.15, len(values))
        axes.scatter(k + shift, values, s=12, color=COLOURS[k], linewidth=0, alpha=0.8, label=figure.titles[name])
    axes.axhline(0.1, color=FAINT, linestyle=":", linewidth=0.8)
    axes.set_xticks(range(len(figure.rows)), [figure.titles[name] for name in figure.rows])
    if not any(figure.rows.values()):
        axes.set_ylim(0.01, 1)
    axes.set(yscale="log", title="gradient of the reduced network", ylabel="plateau over descent", xlim=(-0.5, 2.5))
