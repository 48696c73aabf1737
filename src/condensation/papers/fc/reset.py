"""FC Sec. 1: does initial condensation reset a dense network, whatever its small initial weights, to one simple state?

All networks see the same data and differ in the initial weights alone. Those of one seed at two sizes are proportional:
across starts only different seeds are compared.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ...data import Arrays
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE, SIMILARITY
from ...experiment import Experiment
from ...initialization import Glorot, Init, Normal, Uniform
from ...measure import count_lines, similarity_to_others
from ...runs import INITIAL_STAGE, Trajectory
from ...saving import At, Geometric
from ...seeds import Seed
from .._claims import Claim, PerSeed, at_least, at_most, exactly, question
from .._counts import relative_loss
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .._variant import NotRun
from .experiments import FIG3_LAST, fig3

STD, EARLY = 0.005, 50  # Fig. 3's; a step at which the neurons have turned and the loss has hardly moved
LEFT = 0.95  # of the first loss: a network is looked at where its loss is last at least that
WHEN = f"where L/L₀ is last at least {LEFT:g}"
LEVELS = (0.999, 0.99, 0.98, 0.97, 0.95, 0.9, 0.85, 0.8, 0.75, INITIAL_STAGE)
STARTS = {
    "smaller": Normal(STD / 10), "captioned": Normal(STD), "uniform": Uniform(STD * 3**0.5), "larger": Normal(10 * STD),
    "common": Glorot(),
}  # fmt: skip
TITLES = {
    "smaller": "a tenth", "captioned": "captioned", "uniform": "uniform", "larger": "ten times", "common": "Glorot",
}  # fmt: skip
SMALL = ("smaller", "captioned", "uniform")
PAIRS = tuple(combinations_with_replacement(SMALL, 2))
PAIRS_NEEDED = "pairs of seeds are compared: at least two are needed"
DISTANCE = "distance of two networks' outputs on the data, relative to their size"


class Snapshot(NamedTuple):
    """The networks of one start, each at one saved step of its own: outputs, weights and the leading line of these."""

    outputs: Float[np.ndarray, "seeds samples"]
    weights: Float[np.ndarray, "seeds units inputs"]
    lines: Float[np.ndarray, "seeds inputs"]

    @staticmethod
    def of(run: Trajectory, column: Int[np.ndarray, " seeds"] | int) -> "Snapshot":
        """The networks at a position among the saved steps, or each at its own."""
        seeds, columns = np.arange(len(run.seeds)), np.broadcast_to(column, len(run.seeds))
        x, weights = run.data(run.seeds[0])[0], run.history(1)[seeds, columns]
        pairs = zip(run.saved[columns], run.seeds, strict=True)
        outputs = np.stack([run.output(x, int(step), seed)[:, 0] for step, seed in pairs])
        return Snapshot(outputs, weights, np.linalg.svd(weights, full_matrices=False)[2][:, 0])


def column_last_above(run: Trajectory, left: float) -> Int[np.ndarray, " seeds"]:
    """For each seed the position of the last saved step before the loss falls below a share of the first one."""
    return np.logical_and.accumulate(relative_loss(run) >= left, axis=1).sum(axis=1) - 1


def distances(
    one: Float[np.ndarray, "networks samples"], other: Float[np.ndarray, "others samples"]
) -> Float[np.ndarray, "networks others"]:
    """The distance |f - g| of all pairs of outputs, relative to the root mean square of |f| and |g|.

    >>> distances(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])).round(3)
    array([[0.   , 1.414, 2.   ]])
    """
    apart = np.linalg.norm(one[:, None] - other, axis=2)
    return apart / np.sqrt((one**2).sum(axis=1)[:, None] / 2 + (other**2).sum(axis=1) / 2)


def _simple(name: str) -> "Claim[Reset]":
    return Claim(
        f"simple-{name}", "Sec. 1",
        f"initial condensation resets the network to a simple state: all neurons on one line, from {TITLES[name]} "
        f"initial weights ({STARTS[name].describe()})",
        f"lines of neurons {WHEN}", exactly(1), lambda figure: figure.count_of(name),
    )  # fmt: skip


class Reset(PaperFigure):
    """Outputs of networks of different starts, before training and after, and against the loss."""

    name, title, paper = "fc-reset", "FC Sec. 1: condensation resets dense networks", "FC"
    has_variants = False
    chosen = "starts, one draw of Fig. 3's data for all networks, moment, measures and thresholds"
    titles: ClassVar = {name: f"tanh, {title}" for name, title in TITLES.items()} | {"x_tanh": "x tanh x"}
    claims = (
        *map(_simple, SMALL),
        question(
            "directions", "the simple state is the same: different small starts condense on the same line",
            f"|cos| of the leading lines of two networks {WHEN}: median over the other seeds, least of the six pairs "
            "of starts", at_least(0.99), lambda figure: figure.lines_alike(),
        ),
        question(
            "functions", "the simple state is the same: networks of different small starts have one output",
            f"{DISTANCE}, {WHEN}: median over the other seeds, largest of the six pairs of starts", at_most(0.1),
            lambda figure: figure.apart(PAIRS),
        ),
        question(
            "step", "under Adam they have one output, size included, at the same step",
            f"the same at step {EARLY}", at_most(0.1), lambda figure: figure.apart_early(),
        ),
        question(
            "higher", "multiplicity 2 (x tanh x): from different captioned weights, too, the output is the same",
            f"{DISTANCE}, {WHEN}: median over the other seeds", at_most(0.1),
            lambda figure: figure.apart([("x_tanh", "x_tanh")]), lambda figure: figure.several_lines(),
        ),
        question(
            "common", "the control: from a common start (Glorot normal) the outputs differ at the same loss",
            f"{DISTANCE}, {WHEN}: median over the other seeds", at_least(0.5),
            lambda figure: figure.apart([("common", "common")]), trained=False,
        ),
        question(
            "larger", "beyond the small regime: from ten times the captioned weights, which do not condense on one "
            "line, the outputs are the same, too", f"{DISTANCE}, {WHEN}: median over the other seeds", at_most(0.1),
            lambda figure: figure.apart([("larger", "larger")]), lambda figure: figure.between(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 3's network with tanh from five starts and with x tanh x, all on the data of seed 0."""
        steps = At((*Geometric(20).steps(FIG3_LAST), EARLY))
        networks = {name: fig3(name).replace(save=steps, record=steps) for name in ("tanh", "x_tanh")}
        data = Arrays(*networks["tanh"].data.draw(Seed(0, 0)))
        starts = {name: networks["tanh"].replace(data=data, init=Init(law)) for name, law in STARTS.items()}
        return starts | {"x_tanh": networks["x_tanh"].replace(data=data)}

    @cached_property
    def before(self) -> Available[Snapshot]:
        """All networks before training."""
        return self.runs.each(lambda _, run: Snapshot.of(run, 0))

    @cached_property
    def after(self) -> Available[Snapshot]:
        """Each network where it is looked at."""
        if self.seeds < 2:
            raise NotRun(PAIRS_NEEDED)
        return self.runs.each(lambda _, run: Snapshot.of(run, column_last_above(run, LEFT)))

    def count_of(self, name: str) -> PerSeed:
        """Lines of the neurons, which mean something where they are condensed."""
        counts = count_lines(self.after[name].weights[:, None])
        return PerSeed(counts.lines[:, 0], counts.condensed[:, 0])

    def lines_alike(self) -> PerSeed:
        """For each seed the median |cos| of its line to those of other seeds, the least over pairs of starts."""
        pairs = (np.abs(self.after[a].lines @ self.after[b].lines.T) for a, b in PAIRS)
        return PerSeed(np.min([similarity_to_others(pair) for pair in pairs], axis=0))

    def apart(self, pairs: Sequence[tuple[str, str]]) -> PerSeed:
        """For each seed the median distance to outputs of other seeds, the largest over pairs of starts."""
        return PerSeed(_largest([(self.after[a], self.after[b]) for a, b in pairs]))

    def apart_early(self) -> PerSeed:
        """The same at one step for all."""
        saved = self.runs["captioned"].saved
        early = self.runs.each(lambda _, run: Snapshot.of(run, int(np.flatnonzero(saved == EARLY)[0])))
        return PerSeed(_largest([(early[a], early[b]) for a, b in PAIRS]))

    def between(self) -> str:
        """How alike the networks of all starts are, and how many of them are on one line."""
        parts = []
        for name, title in TITLES.items():
            lines = self.count_of(name)
            single = lines.holds(exactly(1)).count(True)
            parts.append(f"{title} {_median_distance(self.after[name]):.2f} ({single})")
        return f"Median distance (seeds of {self.seeds} on one line): {', '.join(parts)}."

    def several_lines(self) -> str:
        """Why outputs at multiplicity 2 differ: how many lines there are, and how alike they are but for size."""
        lines, outputs = self.count_of("x_tanh"), self.after["x_tanh"].outputs
        others = ~np.eye(len(outputs), dtype=bool)
        return (
            f"There are several lines ({', '.join(f'{line:g}' for line in lines.values)} in the seeds), and the "
            "initial weights decide how many neurons come to each. The outputs' correlation is "
            f"{np.median(np.corrcoef(outputs)[others]):.2f} (median)."
        )

    def draw(self) -> Drawing:
        """Correlations before and after as matrices, and distances against the loss."""
        with look():
            figure = Figure(figsize=(PAGE, 2.7), layout="constrained")
            left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
            _draw_matrix(left, self.before, "before training")
            image = _draw_matrix(middle, self.after, f"$L/L_0$ last at least {LEFT:g}")
            bar = figure.colorbar(image, ax=[left, middle], ticks=[-1, 0, 1], fraction=0.03, pad=0.02, shrink=0.75)
            bar.set_label("correlation of outputs")
            bar.outline.set_visible(False)  # type: ignore[operator]
            for colour, name in zip((*COLOURS[:4], FAINT), TITLES, strict=True):
                each = [_median_distance(Snapshot.of(self.runs[name], column)) for column in self._levels(name)]
                right.plot(LEVELS, each, "o-", color=colour, markersize=3, label=TITLES[name])
            right.set(xlabel="$L/L_0$", ylabel="distance of two outputs", yscale="log", title="against the loss")
            right.invert_xaxis()
            figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=len(TITLES))
        return Drawing(
            caption=f"Correlation of the outputs of all pairs of networks, {self.seeds} seeds of each start (beige: "
            f"the same output but for its size), before training and {WHEN}; and the relative distance of two outputs "
            "at equal loss, median over pairs of seeds of a start. All networks see the same data. Before training the "
            "networks of one seed with normal weights are nearly proportional (beige diagonals).",
            pictures={"": figure}, tables=(self._table(),), data=self.columns_of_claims(),
        )  # fmt: skip

    def _levels(self, name: str) -> list[np.ndarray]:
        return [column_last_above(self.runs[name], level) for level in LEVELS]

    def _table(self) -> Table:
        rows = []
        for name, own in self.after.items():
            run, lines = self.runs[name], self.count_of(name)
            shown = [self.before[name], own, Snapshot.of(run, column_last_above(run, INITIAL_STAGE))]
            step = np.median(run.saved[column_last_above(run, LEFT)])
            counted = f"{lines.median:g} ({sum(lines.counted)} of {self.seeds})"
            rows.append((self.titles[name], f"{step:g}", counted, *(f"{_median_distance(each):.3f}" for each in shown)))
        header = (
            "initial weights", "step looked at", "lines there (condensed)", "distance before training", "there",
            f"where L/L₀ is last at least {INITIAL_STAGE:g}",
        )  # fmt: skip
        return Table("Relative distance of two networks' outputs, medians", header, tuple(rows))


def _largest(pairs: Sequence[tuple[Snapshot, Snapshot]]) -> Float[np.ndarray, " seeds"]:
    """For each seed the median distance to outputs of other seeds, the largest over pairs of starts."""
    if len(pairs[0][0].outputs) < 2:
        raise NotRun(PAIRS_NEEDED)
    return np.max([similarity_to_others(distances(one.outputs, other.outputs)) for one, other in pairs], axis=0)


def _median_distance(snapshot: Snapshot) -> float:
    outputs = snapshot.outputs
    return float(np.median(distances(outputs, outputs)[~np.eye(len(outputs), dtype=bool)]))


def _draw_matrix(axes: Axes, snapshots: Available[Snapshot], title: str) -> AxesImage:
    """Correlations of the outputs of all pairs, a block for each pair of starts."""
    outputs = np.concatenate([snapshots[name].outputs for name in TITLES])
    image = axes.imshow(np.corrcoef(outputs), cmap=SIMILARITY, vmin=-1, vmax=1, interpolation="nearest")
    seeds = len(outputs) // len(TITLES)
    for k in range(1, len(TITLES)):
        for draw_line in (axes.axhline, axes.axvline):
            draw_line(k * seeds - 0.5, color="white", linewidth=1)
    middles = (np.arange(len(TITLES)) + 0.5) * seeds - 0.5
    axes.set_xticks(middles, list(TITLES.values()), rotation=60)
    axes.set_yticks(middles, list(TITLES.values()))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title)
    return image
