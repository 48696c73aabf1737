"""FC Fig. 6: direction fields of networks with one-dimensional input, their lines, and the neurons on them."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...activations import label, multiplicity
from ...drawing import draw_features, draw_field, look
from ...drawing._panels import only_outer
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure import nearest_lines
from ...runs import Trajectory
from ...theory import Directions, stationary_directions
from .._claims import Claim, PerSeed, at_least, exactly
from .._figure import Available, Drawing
from .._tables import Table
from .._variant import Variant
from .experiments import EVEN, FIG5_ACTIVATIONS, FIG6_EPOCH, LINES, ONE_INPUT, READING, data_with_bias, one_input
from .fig5 import column_begun
from .wording import (
    ONE_INPUT_TITLES,
    LinesByActivation,
    at_most_2p,
    by_kind,
    in_initial_stage,
    lines_in_words,
    title_of_reading,
)

NEAR = np.deg2rad(10)
LEARNED = 0.05  # of the field's first strength: what is left by then is another field
NORMALISED = Variant(optimizer="normalised_gd", init_scale=0.1)  # follows the field's own paths
Field = tuple[np.ndarray, np.ndarray, Directions]  # inputs with the bias's 1, residuals at a step, lines


def _claims(name: str) -> "tuple[Claim[Fig6] | None, ...]":
    activation, title, other = ONE_INPUT[name][0], title_of_reading(name), name.endswith(EVEN)
    lines = LINES[activation]
    return Claim(
        f"{name}-field", "Fig. 6",
        f"{title}: the direction field has {lines_in_words(activation)} on which a weight keeps its direction",
        f"stationary lines at epoch {FIG6_EPOCH}", exactly(lines),
        lambda figure: PerSeed([each.count for _, _, each in figure.fields[name]]),
        trained=False,  # the field comes from the data, so that an untrained network has it too
        ours=other,
    ), Claim(
        f"{name}-on", "Fig. 6", f"{title}: the neurons lie on the lines of the field",
        f"share of neurons within 10 degrees of such a line at epoch {FIG6_EPOCH}", at_least(0.8),
        lambda figure: PerSeed(
            shares_on(figure.runs[name], figure.counts[name].column, figure.fields[name]), figure.counts[name].condensed
        ),
        lambda figure: figure.off_the_lines(name), ours=True,
    ), Claim(
        name, "Fig. 6, Sec. 4.4",
        f"{title}: with one-dimensional input the neurons condense on {lines_in_words(activation)}",
        f"lines at epoch {FIG6_EPOCH}", exactly(lines), lambda figure: figure.counts[name].lines_found(),
        "The seeds that fail are not condensed, or have not as many lines as their field (see the table).",
        ours=other,
    ), at_most_2p(name, "Fig. 6", title, lines, lambda figure: figure.counts[name], ours=other), in_initial_stage(
        f"{name}-stage", title, FIG6_EPOCH, lambda figure: figure.counts[name].loss, ours=True
    ) if other else None  # fmt: skip


def fields_of(run: Trajectory, steps: np.ndarray | None = None) -> list[Field]:
    """The field of each seed, at a step of its own or at initialization."""
    p = multiplicity(run.experiment.network.activations[0])
    assert p is not None
    fields = []
    for seed, step in zip(run.seeds, [0] * len(run.seeds) if steps is None else steps.tolist(), strict=True):
        inputs, y = data_with_bias(run, seed)
        residual = (y - run.output(inputs[:, :-1], step, seed))[:, 0]
        fields.append((inputs, residual, stationary_directions(inputs, residual, p)))
    return fields


def shares_on(run: Trajectory, column: np.ndarray, fields: list[Field]) -> list[float]:
    """In each seed the share of neurons near a line of its field, at a saved step of its own."""
    weights = (run.weights(1, int(run.saved[at]), seed) for at, seed in zip(column, run.seeds, strict=True))
    cosines = (nearest_lines(w, lines.directions)[1] for w, (_, _, lines) in zip(weights, fields, strict=True))
    return [float(np.mean(cosine >= np.cos(NEAR))) for cosine in cosines]


class Fig6(LinesByActivation):
    """The direction field of weight and bias with the neurons, an activation a panel."""

    name, title, epoch = "fc-fig6", "FC Fig. 6: direction fields", FIG6_EPOCH
    chosen = READING
    titles: ClassVar = ONE_INPUT_TITLES
    claims = (*by_kind(_claims, FIG5_ACTIVATIONS), *by_kind(_claims, (f"{name}{EVEN}" for name in FIG5_ACTIVATIONS)))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The networks of Fig. 5."""
        return {name: one_input(*reading) for name, reading in ONE_INPUT.items()}

    @classmethod
    def evidence(cls, scale: str) -> dict[str, Experiment]:
        """The networks under a descent that follows the field."""
        return {
            f"{name}, {NORMALISED}": NORMALISED.apply(experiment) for name, experiment in cls.experiments(scale).items()
        }

    @cached_property
    def fields(self) -> Available[list[Field]]:
        """The field of each seed at the captioned epoch."""
        return self.runs.each(lambda name, run: fields_of(run, self.counts[name].steps))

    @cached_property
    def on_lines(self) -> Available[list[float]]:
        """Medians of shares of neurons on lines, and of the strength of the field: the columns of the second table."""
        return self.runs.each(self._on_lines)

    def _on_lines(self, name: str, run: Trajectory) -> list[float]:
        first, follower = fields_of(run), self.others[f"{name}, {NORMALISED}"]
        now, before = ([np.abs(lines.values).max() for _, _, lines in fields] for fields in (self.fields[name], first))
        quantities = (
            self.measured(f"{name}-on").values, np.divide(now, before), shares_on(run, column_begun(run), first),
            shares_on(follower, column_begun(follower), fields_of(follower)),
        )  # fmt: skip
        return [float(np.median(values)) for values in quantities]

    def off_the_lines(self, name: str) -> str:
        """Why neurons are not on the lines of the field."""
        now, strength, adam, descent = self.on_lines[name]
        learned = f"By epoch {FIG6_EPOCH} the field has {strength:.1%} of its first strength (median): what the "
        learned += "leading order can learn is learned, and its lines are those of the rest. "
        return learned * (strength < LEARNED) + (
            f"{now:.0%} of the neurons (median) are within 10 degrees of a line of the field of epoch {FIG6_EPOCH}. "
            f"When 1% of the loss is gone, {adam:.0%} of Adam's are near a line of the first field, and {descent:.0%} "
            "under normalised descent, which follows it; Adam moves all coordinates equally fast to lines of its own."
        )

    def _draw(self, spacing: str) -> tuple[Figure, Figure]:
        """The fields with the neurons of the median seed, and the neurons' features."""
        names = [name for name in self.runs if ONE_INPUT[name][1] == spacing]
        with look():
            figure, features = (Figure(figsize=(PAGE, height), layout="constrained") for height in (2.9, 2.2))
            panels = (each.subplots(1, len(names)) for each in (figure, features))
            for name, axes, below in zip(names, *panels, strict=True):
                run, own, k = self.runs[name], self.counts[name], self.counts[name].median_seed
                outputs = run.model(int(own.steps[k]), run.seeds[k]).parameters["output.weight"]
                inputs, residual, lines = self.fields[name][k]
                activation = ONE_INPUT[name][0]
                shown = {"weights": own.shown, "outputs": outputs, "title": label(activation)}
                draw_field(inputs, residual, activation, axes, directions=lines, **shown)
                draw_features(own.shown, outputs, below, title=label(activation)).set_xlabel("angle of $(w, b)$")
            for each in (figure, features):
                only_outer(each, each.axes)
        return figure, features

    def draw(self) -> Drawing:
        """The fields in both readings of the data, the neurons' features, and lines against time."""
        (figure, features), (even, _) = self._draw("random"), self._draw("even")
        return Drawing(
            caption=f"The direction field of weight and bias at epoch {FIG6_EPOCH} (grey, lengths left out), its "
            "stationary lines, and the 100 neurons (green) with their own velocities (yellow), for the median seed by "
            "number of lines. Below: the neurons' orientations and amplitudes, lines against time, and the fields "
            "of equally spaced points.",
            pictures={"": figure, "features": features, "time": self._draw_times(FIG5_ACTIVATIONS), "even": even},
            tables=self._tables(), data=self._columns(),
            settings_extra={"lines of neurons": "modes of a density on the circle"},
        )  # fmt: skip

    def _tables(self) -> tuple[Table, ...]:
        header = "activation", "stationary lines of the field", "of them attracting", "lines of the neurons"
        rows = []
        for name, fields in self.fields.items():
            stationary = [(lines.count, lines.attracts.sum()) for _, _, lines in fields]
            numbers = *zip(*stationary, strict=True), self.counts[name].lines
            rows.append((self.titles[name], *(" ".join(f"{value:g}" for value in each) for each in numbers)))
        counted = Table(f"Lines at epoch {FIG6_EPOCH}, seed by seed", header, tuple(rows))
        if not self.others:
            return (counted,)
        header = (
            "activation", f"Adam, epoch {FIG6_EPOCH}, field then", "strength of that field over the first",
            "Adam, 1% gone, field at initialization", "normalised GD, the same",
        )  # fmt: skip
        medians = tuple(
            (self.titles[name], *(f"{value:.2f}" for value in each)) for name, each in self.on_lines.items()
        )
        title = "Share of neurons within 10 degrees of a line of the field, median of the seeds"
        return counted, Table(title, header, medians)
