"""CNN, introduction: does initial condensation reset networks of different initial weights to a similar, simple state?

All networks see the same images and differ in the initial weights alone. Those of one seed at two sizes are
proportional: across sizes only different seeds are compared.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations, permutations
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE, SIMILARITY
from ...experiment import Experiment
from ...measure import count_lines, similarity_to_others
from ...optimizers import GD
from ...prediction._kernels import initial_filters
from ...theory import KernelDynamics
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .._variant import NotRun
from .reset_networks import LEFT, SIZES, WHEN, Snapshot, column_looked_at, experiments, linear_dynamics, similarity

TITLES = {"smaller": "a tenth", "captioned": "captioned", "larger": "ten times", "common": "Glorot"}
WITHIN, ACROSS = tuple((name, name) for name in SIZES), tuple(combinations(SIZES, 2))
COMMON = (("common", "common"),)
OFF = 0.95  # a filter with a smaller |cos| is off the line
TOGETHER = 4.0  # a time, in units of 1 / lambda_1, that is saved with all sizes of initial weights


def _simple(name: str) -> "Claim[Reset]":
    return Claim(
        f"simple-{name}", "Sec. 1",
        f"the state is simple: all filters of a network are on one line, stds {SIZES[name]:g} times the captioned ones",
        f"lines of filters {WHEN}", exactly(1), lambda figure: figure.lines(name), lambda figure: figure.off_line(name),
    )  # fmt: skip


class Reset(PaperFigure):
    """Similarity of networks before training and after, against time, and what is not reset."""

    name, title, paper = "cnn-reset", "CNN Sec. 1: condensation resets different initial weights", "CNN"
    chosen = "sizes of the initial weights, moment, measures of similarity, thresholds"
    titles: ClassVar = TITLES
    claims = (
        Claim(
            "functions", "Sec. 1",
            "initial condensation resets networks of different starts to a similar state: one function on the training "
            "images, but for its size",
            f"correlation of two networks' outputs {WHEN}: median over the other seeds, least of the three sizes of "
            "start", at_least(0.95), lambda figure: figure.least("functions", WITHIN),
            lambda figure: figure.medians("functions", WITHIN),
        ),
        Claim(
            "test", "Sec. 1", "the functions are similar on images that were not trained on too",
            f"the same on test images {WHEN}", at_least(0.9), lambda figure: figure.least("held_out", WITHIN),
            lambda figure: figure.medians("held_out", WITHIN),
        ),
        Claim(
            "directions", "Sec. 1", "different starts condense on the same line",
            f"|cos| of the leading lines of two networks' filters {WHEN}: median over the other seeds, least of the "
            "three sizes of start", at_least(0.99), lambda figure: figure.least("lines", WITHIN),
            lambda figure: figure.medians("lines", WITHIN),
        ),
        *map(_simple, SIZES),
        Claim(
            "sizes", "Sec. 1",
            "condensation makes a network insensitive to its start's standard deviation: a tenth, the captioned and "
            "ten times of it lead to one function",
            f"correlation of the outputs of two networks of different sizes of start and different seeds {WHEN}: "
            "median over the others, least of the three pairs of sizes", at_least(0.95),
            lambda figure: figure.least("functions", ACROSS),
            lambda figure: figure.medians("functions", ACROSS),
        ),
        Claim(
            "amplitude", "Sec. 1",
            "read with size: at one step the outputs of networks of different sizes of start are equally large, up to "
            "a factor of 2",
            f"ratio of the outputs' standard deviations at the time {TOGETHER:g}/λ₁: median over networks of other "
            "seeds and sizes", at_most(2), lambda figure: figure.ratios(), lambda figure: figure.only_the_direction(),
            ours=True,
        ),
        Claim(
            "common", "Sec. 1",
            "the control: networks of a common start (Glorot normal) are not alike at the same loss",
            f"correlation of two such networks' outputs on the training images {WHEN}: median over the other seeds",
            at_most(0.5), lambda figure: figure.least("functions", COMMON), trained=False, ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Three sizes of the captioned initial weights, and common ones beside."""
        return experiments(scale)

    @cached_property
    def before(self) -> Available[Snapshot]:
        """All networks before training."""
        return self.runs.each(lambda name, run: Snapshot.of(run, 0))

    @cached_property
    def after(self) -> Available[Snapshot]:
        """Each network where it is looked at."""
        if self.seeds < 2:
            raise NotRun("pairs of seeds are compared: at least two are needed")
        return self.runs.each(lambda name, run: Snapshot.of(run, column_looked_at(run)))

    @cached_property
    def dynamics(self) -> KernelDynamics:
        """The linear dynamics of the images that all networks see."""
        return linear_dynamics(self.runs["captioned"].experiment)

    def pace(self, name: str) -> float:
        """The time that a step takes, in units of 1 / lambda_1."""
        optimizer = self.runs[name].experiment.optimizer
        assert isinstance(optimizer, GD)
        return optimizer.learning_rate * self.dynamics.values[0]

    @cached_property
    def together(self) -> dict[str, np.ndarray]:
        """The size of the outputs of each seed at the step that is saved with all sizes of initial weights."""
        columns = {name: int(np.abs(self.runs[name].saved * self.pace(name) - TOGETHER).argmin()) for name in SIZES}
        return {name: Snapshot.of(self.runs[name], column).sizes for name, column in columns.items()}

    def _block(self, snapshots: Available[Snapshot], part: str, a: str, b: str) -> Float[np.ndarray, "seeds seeds"]:
        return similarity((snapshots[a], snapshots[b]), part)[: self.seeds, self.seeds :]

    def least(self, part: str, pairs: Sequence[tuple[str, str]]) -> PerSeed:
        """For each seed the median similarity to networks of other seeds, the least over pairs of initializations."""
        return PerSeed(np.min([similarity_to_others(self._block(self.after, part, *pair)) for pair in pairs], axis=0))

    def medians(self, part: str, pairs: Sequence[tuple[str, str]]) -> str:
        """How similar the networks of each pair of initializations are."""
        each = (f"{_median_of_pairs(self._block(self.after, part, *pair)):.3f} ({_title(*pair)})" for pair in pairs)
        return f"Medians over the pairs of different seeds: {', '.join(each)}."

    def lines(self, name: str) -> PerSeed:
        """Lines of the filters, which mean something where they are condensed."""
        counts = count_lines(self.after[name].filters[:, None], threshold=self.variant.threshold)
        return PerSeed(counts.lines[:, 0], counts.condensed[:, 0])

    def ratios(self) -> PerSeed:
        """For each seed the median ratio of sizes to networks of other seeds and other initial sizes, at one time."""
        sizes = {name: np.log(each) for name, each in self.together.items()}
        pairs = [np.abs(sizes[a][:, None] - sizes[b]) for a, b in permutations(SIZES, 2)]
        others = [np.concatenate([np.delete(pair[k], k) for pair in pairs]) for k in range(self.seeds)]
        return PerSeed(np.exp([np.median(each) for each in others]))

    def only_the_direction(self) -> str:
        """Why the outputs are not equally large."""
        steps = {name: np.median(self.after[name].steps) for name in SIZES}
        sizes = ", ".join(f"{np.median(size):.1e} ({TITLES[name]})" for name, size in self.together.items())
        looked_at = ", ".join(f"{step:g} ({TITLES[name]})" for name, step in steps.items())
        return (
            "Only the direction is reset. While a network is linear its output stays in proportion to the square of "
            f"the size of its initial weights: {sizes} at the time {TOGETHER:g}/λ₁. That size sets the step looked at: "
            f"{looked_at}; log(10)/λ₁ is {np.log(10) / self.pace('captioned'):.0f} steps."
        )

    def off_line(self, name: str) -> str:
        """How many filters are off their network's line, and how much of them was to grow along it."""
        filters, lines = self.after[name].filters, self.after[name].lines
        lengths, along = np.linalg.norm(filters, axis=2), np.abs(np.einsum("sfc,sc->sf", filters, lines))
        far = along < OFF * lengths
        shares = np.linalg.norm(along, axis=1) / np.linalg.norm(lengths, axis=1)
        initial = [initial_filters(self.runs[name], k) for k in range(self.seeds)]
        growing = np.abs([w @ self.dynamics.v1 + a @ self.dynamics.u1 for w, a in initial])
        little = f"{np.median(growing[far]) / np.median(growing[~far]):.2f}" if far.any() else "none"
        return (
            f"{', '.join(map(str, far.sum(axis=1)))} of {far.shape[1]} filters in each seed are off the line (|cos| "
            f"below {OFF:g}). Initially their ⟨W, v₁⟩ + ⟨a, u₁⟩, which grows along it, is {little} times that of the "
            f"others (medians). Of the filters' norm {', '.join(f'{share:.3f}' for share in shares)} is on the line."
        )

    def draw(self) -> Drawing:
        """Correlations before and after, against time, and what is not reset."""
        return Drawing(
            caption="Top: correlation of the outputs on the training images between all pairs of "
            f"{len(self.after) * self.seeds} networks ({self.seeds} seeds of each initialization), before training and "
            f"{WHEN}. Before training the networks of one seed are nearly proportional (beige diagonals). Bottom: one "
            "minus the correlation of outputs, and minus |cos| of the leading lines of filters, medians over pairs of "
            "seeds; and the size of the outputs (thin: each seed). All networks see the same images.",
            pictures={"": self._picture()},
            tables=(self._similarity_table(), self._moments_table()),
            data=self._columns_of_pairs(),
        )

    def _similarity_table(self) -> Table:
        columns = {
            "functions before training": (self.before, "functions"), "functions after": (self.after, "functions"),
            "on test images": (self.after, "held_out"), "lines before training": (self.before, "lines"),
            "lines after": (self.after, "lines"),
        }  # fmt: skip
        rows = tuple(
            (_title(*pair), *(f"{_median_of_pairs(self._block(*each, *pair)):.3f}" for each in columns.values()))
            for pair in (*WITHIN, *COMMON, *ACROSS)
        )
        title = f"Median over pairs of different seeds, after: {WHEN} (correlation of functions, |cos| of lines)"
        return Table(title, ("initial weights", *columns), rows)

    def _moments_table(self) -> Table:
        rows = []
        for name, title in TITLES.items():
            networks = self.after[name]
            values = np.linalg.svd(networks.filters.astype(float), compute_uv=False)
            on_line = values[:, 0] / np.linalg.norm(values, axis=1)
            each_seed = (", ".join(f"{value:.3f}" for value in each) for each in (networks.loss, on_line))
            size = f"{np.median(self.together[name]):.2e}" if name in SIZES else ""
            time = f"{np.median(networks.steps) * self.pace(name):.2f}"
            rows.append((title, ", ".join(map(str, networks.steps)), time, *each_seed, size))
        header = (
            "initial weights", "step looked at", "time in 1/λ₁", "L/L₀ there",
            "share of the filters' norm on their leading line", f"size of outputs at {TOGETHER:g}/λ₁",
        )  # fmt: skip
        return Table("Each initialization, seed by seed", header, tuple(rows))

    def _columns_of_pairs(self) -> dict[str, np.ndarray]:
        names, seeds = np.repeat(list(self.after), self.seeds), np.tile(np.arange(self.seeds), len(self.after))
        one, other = np.triu_indices(len(names), 1)
        columns = {"start": names[one], "seed": seeds[one], "other_start": names[other], "other_seed": seeds[other]}
        for title, part in (("functions", "functions"), ("test", "held_out"), ("lines", "lines")):
            for when, snapshots in (("before", self.before), ("after", self.after)):
                columns[f"{title}_{when}"] = similarity(snapshots.values(), part)[one, other]
        return columns

    def _picture(self) -> Figure:
        """Correlations before and after as matrices; unlikeness and size against time."""
        last = f"$L/L_0$ last at least {LEFT:g}"
        with look():
            figure = Figure(figsize=(PAGE, 5.5), layout="constrained")
            top, bottom = figure.subplots(2, 2, height_ratios=(1.35, 1))
            _draw_matrix(top[0], self.before, "(a) before training")
            image = _draw_matrix(top[1], self.after, f"(b) where $L/L_0$ is last at least {LEFT:g}")
            bar = figure.colorbar(image, ax=list(top), ticks=[-1, 0, 1], fraction=0.04, pad=0.02)
            bar.set_label("correlation of outputs")
            bar.outline.set_visible(False)  # type: ignore[operator]
            for colour, name in zip(COLOURS, SIZES, strict=False):
                self._draw_times(bottom, name, colour)
            bottom[0].set(ylabel="1 - similarity of two seeds", title="(c) unlikeness within an initial size")
            bottom[1].set(ylabel="standard deviation of outputs", title="(d) size of the outputs")
            for axes in bottom:
                axes.set(xlabel="time in units of $1/\\lambda_1$", yscale="log")
            for style, label in (("-", "functions"), ("--", "lines of filters"), ("o", last)):
                bottom[0].plot([], [], style, color=FAINT, markerfacecolor="none", label=label)
            figure.legend(*bottom[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure

    def _draw_times(self, row: np.ndarray, name: str, colour: str) -> None:
        """Unlikeness and size at the saved steps; a ring where the networks are looked at."""
        run = self.runs[name]
        times = run.saved * self.pace(name)
        snapshots = [Snapshot.of(run, column) for column in range(len(times))]
        moment = int(np.median(np.searchsorted(run.saved, self.after[name].steps)))
        ring = {"color": colour, "markersize": 6, "markerfacecolor": "none"}
        for part, style, label in (("functions", "-", f"initial weights: {TITLES[name]}"), ("lines", "--", None)):
            unlike = [1 - _median_of_pairs(similarity([snapshot], part)) for snapshot in snapshots]
            row[0].plot(times, unlike, style, color=colour, label=label)
            row[0].plot(times[moment], unlike[moment], "o", **ring)
        sizes = np.stack([snapshot.sizes for snapshot in snapshots])
        row[1].plot(times, sizes, color=colour, linewidth=0.5, alpha=0.6)
        row[1].plot(times, np.median(sizes, axis=1), color=colour)
        row[1].plot(times[moment], np.median(sizes[moment]), "o", **ring)


def _title(a: str, b: str) -> str:
    return TITLES[a] if a == b else f"{TITLES[a]} against {TITLES[b]}"


def _median_of_pairs(block: Float[np.ndarray, "seeds seeds"]) -> float:  # of different seeds
    return float(np.median(block[~np.eye(len(block), dtype=bool)]))


def _draw_matrix(axes: Axes, snapshots: Mapping[str, Snapshot], title: str) -> AxesImage:
    """Correlations of all pairs, a block for each pair of initializations."""
    correlations = similarity(snapshots.values(), "functions")
    seeds, titles = len(correlations) // len(snapshots), [TITLES[name] for name in snapshots]
    image = axes.imshow(correlations, cmap=SIMILARITY, vmin=-1, vmax=1, interpolation="nearest")
    for k in range(1, len(snapshots)):
        for draw_line in (axes.axhline, axes.axvline):
            draw_line(k * seeds - 0.5, color="white", linewidth=1)
    middles = (np.arange(len(snapshots)) + 0.5) * seeds - 0.5
    axes.set_xticks(middles, titles)
    axes.set_yticks(middles, titles, rotation=90, va="center")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title)
    return image
