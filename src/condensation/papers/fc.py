"""The fully connected paper: its figures by name, with the captioned hyperparameters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..activations import label, multiplicity
from ..data import sine_sum
from ..drawing.history import draw_history
from ..drawing.loss import draw_loss
from ..drawing.similarity import draw_bar, draw_similarity
from ..drawing.style import COLOURS, FAINT, PAGE, look
from ..experiment import Experiment
from ..measure import LineHistory, count_lines
from ..networks import Dense
from ..starts import Normal, Start
from ..training.optimizers import Adam
from ..training.progress import Reporter
from ..training.schedule import At, Geometric
from ..training.train import train
from ..training.trajectory import Trajectory
from .claims import Claim


@dataclass(frozen=True)
class Findings:
    """What reproducing one figure gives: pictures by file name, claims, and the words that go with them."""

    title: str
    caption: str
    settings: dict[str, str]
    pictures: dict[str, Figure]
    claims: tuple[Claim, ...]


FIG3_EPOCH = 100
FIG3_LAST = 600  # beyond the caption's epoch, to show that condensation is transient
FIG3_PANELS = {  # activation: learning rate, lines the paper shows
    "tanh": (1e-3, 1),
    "x_tanh": (1e-3, 2),
    "x2_tanh": (1e-3, 3),
    "sigmoid": (8e-4, 1),
    "softplus": (2.5e-4, 1),
}


def fig3_experiment(activation: str) -> Experiment:
    """FC Fig. 3: a 5-50-1 network on 80 points of sum 3.5 sin(5 x_k + 1)."""
    return Experiment(
        network=Dense((5, 50, 1), activation),
        start=Start(Normal(std=0.005)),
        data=sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2),
        optimizer=Adam(FIG3_PANELS[activation][0]),
        steps=FIG3_LAST,
        save=At((*Geometric(12).steps(FIG3_LAST), FIG3_EPOCH)),
    )


def fig3(seeds: int, progress: Reporter | None = None) -> Findings:
    """Train the five panels over all seeds, count lines at epoch 100, and hold them against the caption."""
    runs = {name: train(fig3_experiment(name), seeds, progress=progress or False) for name in FIG3_PANELS}
    histories = {name: count_lines(run.history("dense1")) for name, run in runs.items()}
    return Findings(
        title="FC Fig. 3: condensation of two-layer networks",
        caption=(
            f"Cosine similarity of all pairs of the 50 neurons' input weights at epoch {FIG3_EPOCH} (top; the seed "
            f"shown is the median one by number of lines), and the number of lines over {seeds} seeds of data and "
            "start (bottom; the paper's number is orange, hatched bars are seeds that are not condensed)."
        ),
        settings={
            "network": "5-50-1, no output bias, float64",
            "data": "80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]",
            "start": "N(0, 0.005^2)",
            "optimizer": "Adam, full batch, eps 1e-8; learning rate "
            + ", ".join(f"{rate:g} ({label(name)})" for name, (rate, _) in FIG3_PANELS.items()),
            "loss": "1/(2n) sum of squares",
            "a line": "2 neurons and 5% of the norm within a cosine of 0.95; condensed: 90% of the norm on lines",
        },
        pictures={
            "fc-fig3": _fig3_picture(runs, histories),
            "fc-fig3-time": _time_picture(runs, histories),
            "fc-fig3-loss": _loss_picture(runs),
        },
        claims=tuple(_fig3_claim(name, runs[name], histories[name]) for name in FIG3_PANELS),
    )


def _at_epoch(run: Trajectory, history: LineHistory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines, k_eff and whether condensed, for each seed at the caption's epoch."""
    column = int(np.flatnonzero(run.saved == FIG3_EPOCH)[0])
    return history.lines[:, column], history.k_eff[:, column], history.condensed[:, column]


def fig3_claim(name: str, lines: np.ndarray, condensed: np.ndarray, remark: str) -> Claim:
    """The claim of one panel, from the lines of each seed at the caption's epoch and whether they are condensed."""
    expected = FIG3_PANELS[name][1]
    return Claim(
        id=f"fc-fig3-{name}",
        paper="FC",
        where="Fig. 3",
        statement=f"{label(name)} (multiplicity {multiplicity(name)}): input weights condense on {expected} "
        f"line{'s' if expected > 1 else ''} by epoch {FIG3_EPOCH}",
        expected=expected,
        measured=tuple(int(k) for k in lines),
        holds=tuple(bool(h) for h in condensed & (lines == expected)),
        scale="paper",
        figure="fc-fig3",
        remark=remark,
    )


def _fig3_claim(name: str, run: Trajectory, history: LineHistory) -> Claim:
    lines, _, condensed = _at_epoch(run, history)
    ends = [end for end in run.initial_stage_end() if end is not None]
    inside = f"the initial stage ends at step {np.median(ends):.0f} (median)" if ends else "the loss stays above 70%"
    return fig3_claim(name, lines, condensed, f"condensed in {condensed.sum()} of {len(condensed)} seeds; {inside}")


def median_seed(lines: np.ndarray, k_eff: np.ndarray) -> int:
    """The position of the seed that a figure shows: the middle one when sorted by lines, then by k_eff.

    >>> median_seed(np.array([3, 1, 2]), np.array([3.0, 1.0, 2.0]))
    2
    """
    return int(np.lexsort((k_eff, lines))[len(lines) // 2])


def _fig3_picture(runs: dict[str, Trajectory], histories: dict[str, LineHistory]) -> Figure:
    with look():
        figure = Figure(figsize=(PAGE, 3.1), layout="constrained")
        top, bottom = figure.subplots(2, len(runs), height_ratios=(1.35, 1))
        most = int(max(_at_epoch(runs[name], histories[name])[0].max() for name in runs))
        for column, (name, run) in enumerate(runs.items()):
            lines, k_eff, condensed = _at_epoch(run, histories[name])
            seed = run.seeds[median_seed(lines, k_eff)]
            weights = run.weights("dense1", FIG3_EPOCH, seed)
            draw_similarity(weights, top[column], title=f"({'abcde'[column]}) {label(name)}", bar=False)
            top[column].set(xlabel="", ylabel="", xticks=[], yticks=[])
            _draw_distribution(bottom[column], lines, condensed, FIG3_PANELS[name][1], most)
            if column:
                bottom[column].set(ylabel="", yticklabels=[])
        draw_bar(top[-1].images[0], list(top))
    return figure


def _draw_distribution(axes: Axes, lines: np.ndarray, condensed: np.ndarray, expected: int, most: int) -> None:
    """Bars of how many seeds have how many lines."""
    places = np.arange(most + 1)
    yes, no = (np.bincount(np.maximum(lines[chosen], 0), minlength=most + 1) for chosen in (condensed, ~condensed))
    colours = [COLOURS[1] if place == expected else COLOURS[0] for place in places]
    axes.bar(places, yes, color=colours, width=0.8)
    axes.bar(places, no, bottom=yes, color="white", edgecolor=FAINT, hatch="/////", width=0.8, linewidth=0.5)
    axes.set(xlabel="lines", ylabel="seeds", ylim=(0, len(lines)), xlim=(-0.6, most + 0.6))
    axes.set_xticks(places[:: 1 if most < 6 else 2])


def _row(runs: dict[str, Trajectory]) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one picture for each run, side by side."""
    figure = Figure(figsize=(PAGE, 2.1), layout="constrained")
    return figure, dict(zip(runs, figure.subplots(1, len(runs), sharey=True), strict=True))


def _time_picture(runs: dict[str, Trajectory], histories: dict[str, LineHistory]) -> Figure:
    with look():
        figure, row = _row(runs)
        for name, axes in row.items():
            draw_history(runs[name].saved, histories[name], axes, title=label(name))
            axes.axvline(FIG3_EPOCH, color=FAINT, linestyle=":", linewidth=0.8)
        _only_outer(figure, row)
    return figure


def _loss_picture(runs: dict[str, Trajectory]) -> Figure:
    with look():
        figure, row = _row(runs)
        for name, axes in row.items():
            draw_loss(runs[name], axes, title=label(name))
        _only_outer(figure, row)
    return figure


def _only_outer(figure: Figure, row: dict[str, Axes]) -> None:
    """Keep the axis label of the first picture only, and put one legend below all."""
    named = {}
    for axes in row.values():
        handles, names = axes.get_legend_handles_labels()
        named |= dict(zip(names, handles, strict=True))
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
        if axes is not next(iter(row.values())):
            axes.set_ylabel("")
    figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=len(named))


FIGURES: dict[str, Callable[[int, Reporter | None], Findings]] = {"fc-fig3": fig3}
