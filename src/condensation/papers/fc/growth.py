"""FC Secs. 1 and 6: do orientations increase gradually after the initial condensation, and the output's complexity?"""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from ..._phrases import joined
from ...activations import label
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Glorot, Init
from ...measure import fit_polynomial
from ...saving import Geometric
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._counts import Counts, in_stage, relative_loss, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .experiments import fig3, one_input
from .fig5 import BEGUN, POINTS
from .wording import by_kind

STEPS = {"quick": 8000, "paper": 20_000}
LEAST = 3  # moments that a rank correlation needs
LEFT = (0.7, 0.3, 0.1, 0.01)  # of the first loss: the initial stage ends at 70%
MOMENTS = ("most condensed", *(f"{left:.0%} left" for left in LEFT), "end")
AFTER = MOMENTS[1:]
TICKS = ("condensed", *(f"{left:.0%}" for left in LEFT), "end")
ACTIVATIONS = "tanh", "x_tanh"
INPUTS = {"5d": "Fig. 3's network", "1d": "Fig. 5's network"}
COMMON = "5d-common"
NETWORKS = [f"{dim}-{name}" for dim in INPUTS for name in ACTIVATIONS]
RISES, POLYNOMIAL, HIGHEST = 0.6, 0.05, 20
AGAINST_MOMENTS = f"rank correlation with the moments ({', '.join(AFTER)})"


def _title(name: str) -> str:
    dim, _, activation = name.partition("-")
    return f"{INPUTS[dim]}, {label(activation)}"


def _claims(name: str) -> "tuple[Claim[Growth] | None, ...]":
    return Claim(
        f"{name}-orientations", "Sec. 1",
        f"{_title(name)}: the number of condensed orientations grows while the layer stays condensed",
        "orientations at the last saved step at which the layer is condensed, minus those where it is most condensed",
        at_least(1), lambda figure: figure.more_orientations(name), lambda figure: figure.in_words(name),
    ), Claim(
        f"{name}-more", "Sec. 6",
        f"{_title(name)}: during the training the network increases its capacity: there are more directions of neurons "
        "at the end than at the end of the initial stage",
        "k_eff (effective number of lines) at the end minus that at 70% of the loss", at_least(1),
        lambda figure: figure.after(name, figure.lines[name][:, -1] - figure.lines[name][:, 1]),
        lambda figure: figure.in_words(name), lambda figure: figure.no_longer(name),
    ), Claim(
        f"{name}-gradual", "Sec. 1", f"{_title(name)}: after the initial stage they increase gradually",
        f"k_eff: {AGAINST_MOMENTS}", at_least(RISES),
        lambda figure: figure.after(name, rises(figure.lines[name][:, 1:])),
        lambda figure: figure.in_words(name), lambda figure: figure.no_longer(name),
    ), None if name.startswith("5d") else Claim(
        f"{name}-output", "Sec. 1", f"{_title(name)}: the output evolves from simple to complex",
        f"least order of a polynomial within {POLYNOMIAL:.0%} of the output: rank correlation with all six moments",
        at_least(RISES), lambda figure: PerSeed(rises(figure.orders[name])),
        lambda figure: f"Medians at the six moments: {joined(np.nanmedian(figure.orders[name], axis=0), 'g')}.",
    )  # fmt: skip


def rises(values: Float[np.ndarray, "seeds moments"]) -> list[float]:
    """In each seed Spearman's rank correlation of the values with their order; NaN where fewer than three are known.

    >>> rises(np.array([[1.0, 2, 4, 5], [3, np.nan, 2, 1], [1, 2, np.nan, np.nan]]))
    [1.0, -1.0, nan]
    >>> rises(np.ones((1, 3)))  # what stays as it is does not rise
    [0.0]
    """
    return [_rank_correlation(own[np.isfinite(own)]) for own in values]


def _rank_correlation(values: Float[np.ndarray, " moments"]) -> float:
    if len(values) < LEAST:
        return float("nan")
    return float(spearmanr(np.arange(len(values)), values).statistic) if np.ptp(values) > 0 else 0.0  # type: ignore


def order_needed(outputs: Float[np.ndarray, " points"]) -> float:
    """The least order of a polynomial within 5% of outputs on POINTS; NaN where none of order 20 is."""
    orders = (order for order in range(HIGHEST + 1) if fit_polynomial(POINTS, outputs, order)[1] <= POLYNOMIAL)
    return float(next(orders, np.nan))


class Growth(PaperFigure):
    """Effective number of lines and complexity of the output at moments by the loss, to the end of training."""

    name, title, paper = "fc-growth", "FC Secs. 1 and 6: from simple to complex", "FC"
    has_variants = False
    chosen = "networks, steps, moments, measures and thresholds: the text shows no training beyond the initial stage"
    titles: ClassVar = {name: _title(name) for name in NETWORKS} | {COMMON: f"{_title('5d-tanh')}, Glorot normal"}
    claims = (
        *by_kind(_claims, NETWORKS),
        question(
            "control", "from a common start (Glorot normal) the directions of the neurons do not become more after the "
            "initial stage: only condensation leaves them to be found",
            "k_eff at the end minus that at 70% of the loss", at_most(0),
            lambda figure: PerSeed(figure.lines[COMMON][:, -1] - figure.lines[COMMON][:, 1]),
            lambda figure: figure.common_too(), trained=False,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Networks of Figs. 3 and 5 on to a small loss, and one from a common start."""
        own = {f"5d-{name}": fig3(name) for name in ACTIVATIONS} | {
            f"1d-{name}": one_input(name) for name in ACTIVATIONS
        }
        networks = own | {COMMON: fig3("tanh").replace(init=Init(Glorot()))}
        saved = Geometric(12)
        return {name: each.replace(steps=STEPS[scale], save=saved, record=saved) for name, each in networks.items()}

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines of each network at all saved steps."""
        return self.runs.each(lambda name, run: self.count(run, 1, int(run.saved[-1])))

    @cached_property
    def columns(self) -> Available[Int[np.ndarray, "seeds moments"]]:
        """The saved step of each moment: the first with so much of the loss left, or -1 where there is none."""
        return self.runs.each(lambda name, _: self._columns(name))

    def _columns(self, name: str) -> np.ndarray:
        run, loss = self.runs[name], relative_loss(self.runs[name])
        begun = in_stage(run) & (loss <= BEGUN)
        k_eff = np.where(begun, self.counts[name].history.k_eff, np.inf)
        first = [np.where((loss <= left).any(axis=1), (loss <= left).argmax(axis=1), -1) for left in LEFT]
        condensed = np.where(begun.any(axis=1), k_eff.argmin(axis=1), -1)
        return np.stack([condensed, *first, np.where(first[0] >= 0, loss.shape[1] - 1, -1)], axis=1)

    def at_moments(self, name: str, values: Float[np.ndarray, "seeds saved"]) -> Float[np.ndarray, "seeds moments"]:
        """A quantity of all saved steps at the moments; NaN at those that there are not."""
        columns = self.columns[name]
        return np.where(columns >= 0, np.take_along_axis(values.astype(float), np.maximum(columns, 0), axis=1), np.nan)

    @cached_property
    def lines(self) -> Available[Float[np.ndarray, "seeds moments"]]:
        """The effective number of lines (k_eff) at the moments."""
        return self.runs.each(lambda name, _: self.at_moments(name, self.counts[name].history.k_eff))

    @cached_property
    def orders(self) -> Available[Float[np.ndarray, "seeds moments"]]:
        """Of networks with one input, the order of a polynomial that the output needs at the moments."""
        return Available({name: self._orders(name) for name in self.runs if name.startswith("1d")}, self.runs.missing)

    def _orders(self, name: str) -> np.ndarray:
        run, columns = self.runs[name], self.columns[name]
        orders = np.full(columns.shape, np.nan)
        for k, moment in np.argwhere(columns >= 0):
            outputs = run.output(POINTS[:, None], int(run.saved[columns[k, moment]]), run.seeds[k])[:, 0]
            orders[k, moment] = order_needed(outputs)
        return orders

    def more_orientations(self, name: str) -> PerSeed:
        """By how many the orientations grow while condensed; a seed that never is decides nothing."""
        history, columns = self.counts[name].history, self.columns[name][:, 0]
        seeds, steps = np.arange(len(columns)), np.arange(history.condensed.shape[1])
        last = np.where(history.condensed, steps, -1).max(axis=1)
        started = (columns >= 0) & history.condensed[seeds, columns]
        grown = history.orientations[seeds, last] - history.orientations[seeds, columns]
        return PerSeed(np.where(started, grown, np.nan), decided=started)

    def after(self, name: str, values: Sequence[float] | np.ndarray) -> PerSeed:
        """What is measured after the initial stage; a seed that never leaves it decides nothing."""
        return PerSeed(values, decided=self.columns[name][:, 1] >= 0)

    def in_words(self, name: str) -> str:
        """Medians at the moments, and in how many seeds the layer is condensed there."""
        condensed = self.at_moments(name, self.counts[name].history.condensed)
        parts = zip(MOMENTS, np.nanmedian(self.lines[name], axis=0), np.nansum(condensed, axis=0), strict=True)
        each = "; ".join(f"{moment} {lines:.1f} ({seeds:.0f})" for moment, lines, seeds in parts)
        return f"Median k_eff (seeds of {len(condensed)} that are condensed): {each}."

    def no_longer(self, name: str) -> str:
        """What k_eff counts where a layer is no longer condensed."""
        condensed = self.counts[name].condensed
        return (
            f"At the end {condensed.sum()} of {len(condensed)} seeds are condensed; where a layer is not, k_eff counts "
            "directions of single neurons too."
        )

    def common_too(self) -> str:
        """What the directions do from a common start."""
        before, *_ = np.median(self.counts[COMMON].history.k_eff, axis=0)
        return (
            f"From a common start, too, the directions first become fewer (k_eff {before:.1f} before training) and "
            f"then more, but they are never few. {self.in_words(COMMON)}"
        )

    def draw(self) -> Drawing:
        """k_eff against the loss, cover, and the order of the polynomial that the output needs."""
        with look():
            figure = Figure(figsize=(PAGE, 2.6), layout="constrained")
            left, middle, right = figure.subplots(1, 3)
            for colour, name in zip(COLOURS, self.runs, strict=False):
                style = {"color": FAINT if name == COMMON else colour, "label": self.titles[name]}
                self._draw(left, self.lines[name], **style)
                self._draw(middle, self.at_moments(name, self.counts[name].history.cover), **style)
                if name in self.orders:
                    self._draw(right, self.orders[name], **style)
            left.set(ylabel="effective number of lines $k_{eff}$", yscale="log", title="directions")
            middle.set(ylabel="share of the norm on lines", ylim=(0, 1.03), title="are they condensed?")
            middle.axhline(0.9, color=FAINT, linestyle=":", linewidth=0.8)
            right.set(ylabel="order of the polynomial", title="the output (one input)", ylim=(0, None))
            for axes in (left, middle, right):
                axes.set_xticks(range(len(MOMENTS)), TICKS, rotation=35, ha="right", rotation_mode="anchor")
            figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return Drawing(
            caption="Networks trained on from the initial stage, at moments by the loss that is left (median and "
            f"quartiles of {self.seeds} seeds): the effective number of lines (one over the share of pairs of neurons "
            "on one line), the share of the norm on lines (a layer is condensed from 90% on), and the least order of a "
            f"polynomial that is within {POLYNOMIAL:.0%} of the output.",
            pictures={"": figure}, data=self._data(), tables=(self._table(),),
            settings_extra={"most condensed": "least k_eff between 99% and 70% of the loss"},
        )  # fmt: skip

    def _draw(self, axes: Axes, values: np.ndarray, color: str, label: str) -> None:
        there = np.isfinite(values).any(axis=0)
        low, middle, high = np.nanquantile(values[:, there], (0.25, 0.5, 0.75), axis=0)
        axes.fill_between(np.flatnonzero(there), low, high, color=color, alpha=0.15, linewidth=0)
        axes.plot(np.flatnonzero(there), middle, "o-", color=color, label=label, markersize=3)

    def _table(self) -> Table:
        rows = []
        for name in self.runs:
            history = self.counts[name].history
            for what, values, form in (
                ("step", np.broadcast_to(self.runs[name].saved, history.lines.shape), ".0f"),
                ("orientations", history.orientations, "g"), ("k_eff", history.k_eff, ".1f"),
                ("cover", history.cover, ".2f"),
            ):  # fmt: skip
                medians = np.nanmedian(self.at_moments(name, values), axis=0)
                rows.append((self.titles[name], what, *(f"{median:{form}}" for median in medians)))
        return Table("Medians of the seeds at the moments", ("network", "quantity", *MOMENTS), tuple(rows))

    def _data(self) -> dict[str, np.ndarray]:
        parts, seeds = {}, np.repeat(np.arange(self.seeds), len(MOMENTS))
        for name in self.runs:
            history = self.counts[name].history
            values = {"orientations": history.orientations, "k_eff": history.k_eff, "cover": history.cover}
            columns = {what: self.at_moments(name, each).ravel() for what, each in values.items()}
            parts[name] = {"seed": seeds, "moment": np.tile(MOMENTS, self.seeds)} | columns
        return stack_columns(parts, "network")
