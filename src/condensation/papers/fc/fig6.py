"""FC Fig. 6: direction fields of networks with one-dimensional input, their lines, and the neurons on them."""

from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from ...activations import label, multiplicity
from ...drawing import draw_features, draw_field, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure import nearest_lines
from ...runs import Trajectory
from ...theory import Directions, stationary_directions
from .._claims import Claim, PerSeed, at_least, exactly
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._panels import draw_times, only_outer
from .._tables import Table
from .._variant import Variant
from .experiments import FIG5_ACTIVATIONS, FIG6_EPOCH, LINES, data_with_bias, one_input
from .fig5 import column_begun
from .wording import at_most_2p, lines_in_words

NEAR = np.deg2rad(10)
LEARNED = 0.05  # of the field's first strength: what is left by then is another field
NORMALISED = Variant(optimizer="normalised_gd", init_scale=0.1)  # follows the field's own paths


def _field(name: str) -> "Claim[Fig6]":
    return Claim(
        f"{name}-field", "Fig. 6",
        f"{label(name)}: the direction field has {lines_in_words(name)} on which a weight keeps its direction",
        f"stationary lines at epoch {FIG6_EPOCH}", exactly(LINES[name]),
        lambda figure: PerSeed([field.lines.count for field in figure.fields[name]]),
        trained=False,  # the field comes from the data, so that an untrained network has it too
    )  # fmt: skip


def _on(name: str) -> "Claim[Fig6]":
    return Claim(
        f"{name}-on", "Fig. 6", f"{label(name)}: the neurons lie on the lines of the field",
        f"share of neurons within 10 degrees of such a line at epoch {FIG6_EPOCH}", at_least(0.8),
        lambda figure: PerSeed(
            shares_on(figure.runs[name], figure.counts[name].column, figure.fields[name]), figure.counts[name].condensed
        ),
        lambda figure: figure.off_the_lines(name),
    )  # fmt: skip


def _lines(name: str) -> "Claim[Fig6]":
    return Claim(
        name, "Fig. 6, Sec. 4.4",
        f"{label(name)}: with one-dimensional input the neurons condense on {lines_in_words(name)}",
        f"lines at epoch {FIG6_EPOCH}", exactly(LINES[name]), lambda figure: figure.counts[name].lines_found(),
        "The seeds that fail are not condensed, or their neurons are not on as many lines as their field has (the "
        "table has both).",
    )  # fmt: skip


def _most(name: str) -> "Claim[Fig6]":
    return at_most_2p(name, "Fig. 6", label(name), name, lambda figure: figure.counts[name])


class Field(NamedTuple):
    """Inputs with the bias's 1, residuals at a step, and the lines of their field."""

    inputs: np.ndarray
    residual: np.ndarray
    lines: Directions


def fields_of(run: Trajectory, steps: np.ndarray | None = None) -> list[Field]:
    """The field of each seed, at a step of its own or at initialization."""
    p = multiplicity(run.experiment.network.activations[0])
    assert p is not None
    fields = []
    for seed, step in zip(run.seeds, [0] * len(run.seeds) if steps is None else steps.tolist(), strict=True):
        inputs, y = data_with_bias(run, seed)
        residual = (y - run.output(inputs[:, :-1], step, seed))[:, 0]
        fields.append(Field(inputs, residual, stationary_directions(inputs, residual, p)))
    return fields


def shares_on(run: Trajectory, column: np.ndarray, fields: list[Field]) -> list[float]:
    """In each seed the share of neurons near a line of its field, at a saved step of its own."""
    weights = (run.weights(1, int(run.saved[at]), seed) for at, seed in zip(column, run.seeds, strict=True))
    cosines = (nearest_lines(w, field.lines.directions)[1] for w, field in zip(weights, fields, strict=True))
    return [float(np.mean(cosine >= np.cos(NEAR))) for cosine in cosines]


class Fig6(PaperFigure):
    """The direction field of weight and bias with the neurons, an activation a panel."""

    name, title, paper = "fc-fig6", "FC Fig. 6: direction fields", "FC"
    titles: ClassVar = {name: label(name) for name in FIG5_ACTIVATIONS}
    claims = tuple(make(name) for make in (_field, _on, _lines, _most) for name in FIG5_ACTIVATIONS)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The three networks of Fig. 5."""
        return {name: one_input(name) for name in FIG5_ACTIVATIONS}

    @classmethod
    def evidence(cls, scale: str) -> dict[str, Experiment]:
        """The networks under a descent that follows the field."""
        return {f"{name}, {NORMALISED}": NORMALISED.apply(one_input(name)) for name in FIG5_ACTIVATIONS}

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines of the neurons at the captioned epoch."""
        return self.runs.each(lambda name, run: self.count(run, "dense1", FIG6_EPOCH))

    @cached_property
    def fields(self) -> Available[list[Field]]:
        """The field of each seed at the captioned epoch."""
        return self.runs.each(lambda name, run: fields_of(run, self.counts[name].steps))

    @cached_property
    def on_lines(self) -> Available[list[float]]:
        """Medians of the columns of ``_on_table``: shares of neurons on lines, and the strength of the field."""
        return self.runs.each(self._on_lines)

    def _on_lines(self, name: str, run: Trajectory) -> list[float]:
        first, follower = fields_of(run), self.others[f"{name}, {NORMALISED}"]
        now, before = ([np.abs(each.lines.values).max() for each in fields] for fields in (self.fields[name], first))
        quantities = (
            self.measured(f"{name}-on").values,
            np.divide(now, before),
            shares_on(run, column_begun(run), first),
            shares_on(follower, column_begun(follower), fields_of(follower)),
        )
        return [float(np.median(values)) for values in quantities]

    def off_the_lines(self, name: str) -> str:
        """Why neurons are not on the lines of the field."""
        now, strength, adam, descent = self.on_lines[name]
        learned = (
            f"By epoch {FIG6_EPOCH} what the leading order can learn is learned: its field has {strength:.1%} of its "
            "first strength (median), and its lines are those of the rest. "
            if strength < LEARNED
            else ""
        )
        return (
            f"{learned}Within 10 degrees of a line of the field of epoch {FIG6_EPOCH} are {now:.0%} of the neurons "
            f"(median of the seeds). When 1% of the loss is gone, {adam:.0%} of Adam's neurons are within 10 degrees "
            f"of a line of the field at initialization, and {descent:.0%} under neuron-normalised descent from a tenth "
            "of the initial weights, which follows the field; Adam moves all coordinates of a neuron equally fast and "
            "has lines of its own."
        )

    def draw(self) -> Drawing:
        """The fields with the neurons of the median seed, the neurons' features, and lines against time."""
        runs, counts = self.runs.renamed(self.titles), self.counts.renamed(self.titles)
        with look():
            figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
            features = Figure(figsize=(PAGE, 2.2), layout="constrained")
            panels = figure.subplots(1, len(runs)), features.subplots(1, len(runs), sharey=False)
            for name, axes, below in zip(self.runs, *panels, strict=True):
                run, own, k = self.runs[name], self.counts[name], self.counts[name].median_seed
                outputs = run.model(int(own.steps[k]), run.seeds[k]).parameters["output.weight"]
                inputs, residual, lines = self.fields[name][k]
                shown = {"weights": own.shown, "outputs": outputs, "title": label(name)}
                draw_field(inputs, residual, name, axes, directions=lines, **shown)
                draw_features(own.shown, outputs, below, title=label(name))
                below.set_xlabel("angle of $(w, b)$")
            only_outer(figure, figure.axes)
            only_outer(features, features.axes)
        times = draw_times(runs, counts, dict.fromkeys(runs, FIG6_EPOCH))
        return Drawing(
            caption=f"The direction field of weight and bias at epoch {FIG6_EPOCH} (grey, lengths left out), its "
            "stationary lines, and the 100 neurons (green) with their own velocities (yellow), for the median seed by "
            "number of lines. Below: the neurons' orientations and amplitudes, and the number of lines against time "
            "over all seeds.",
            pictures={"": figure, "features": features, "time": times},
            tables=(self._lines_table(), *([self._on_table()] if self.others else ())),
            data=stack_columns({name: counts.columns() for name, counts in self.counts.items()}, "activation"),
            settings_extra={"lines of neurons": "modes of a density on the circle"},
        )

    def _lines_table(self) -> Table:
        header = "activation", "stationary lines of the field", "of them attracting", "lines of the neurons"
        rows = []
        for name, fields in self.fields.items():
            attracting = [field.lines.attracts.sum() for field in fields]
            numbers = [field.lines.count for field in fields], attracting, self.counts[name].lines
            rows.append((label(name), *(" ".join(map(str, each)) for each in numbers)))
        return Table(f"Lines at epoch {FIG6_EPOCH}, seed by seed", header, tuple(rows))

    def _on_table(self) -> Table:
        header = (
            "activation", f"Adam, epoch {FIG6_EPOCH}, field then", "strength of that field over the first",
            "Adam, 1% gone, field at initialization", "normalised GD, the same",
        )  # fmt: skip
        rows = tuple((label(name), *(f"{value:.2f}" for value in each)) for name, each in self.on_lines.items())
        return Table("Share of neurons within 10 degrees of a line of the field, median of the seeds", header, rows)
