"""FC Fig. 5: the output of networks with one-dimensional input is a polynomial whose order is the multiplicity."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...drawing import look
from ...drawing._panels import only_outer
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...measure import fit_polynomial
from ...runs import INITIAL_STAGE, Trajectory
from .._claims import Claim, PerSeed, at_least, at_most
from .._counts import relative_loss, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .experiments import (
    EVEN,
    FIG5_ACTIVATIONS,
    FIG5_EPOCH,
    HIGHER,
    LINES,
    ONE_INPUT,
    READING,
    data_with_bias,
    one_input,
)
from .wording import ONE_INPUT_TITLES, by_kind, in_initial_stage, title_of_reading

POINTS = np.linspace(-1, 1.5, 251)
BEGUN = 0.99  # of the first loss: by then something has been learned
DISTANCE = "distance of the output from its best such polynomial, relative"


def _claims(name: str) -> "tuple[Claim[Fig5] | None, ...]":
    activation, title, other = ONE_INPUT[name][0], title_of_reading(name), name.endswith(EVEN)
    order = LINES[activation]
    return Claim(
        name, "Fig. 5, Sec. 4.4",
        f"{title}: at epoch {FIG5_EPOCH} the output is a polynomial of order {order}", DISTANCE,
        at_most(0.05), lambda figure: PerSeed(figure.distances(name, figure.end(name), order), figure.begun[name] >= 0),
        lambda figure: figure.beyond_the_leading_power(name), ours=other,
    ), Claim(
        f"{name}-begin", "Sec. 4.4",
        f"{title}: in the beginning (1% of the loss gone) the output is a polynomial of order {order}",
        DISTANCE, at_most(0.05), lambda figure: PerSeed(figure.distances(name, figure.begun[name], order)), ours=other,
    ), None if activation not in HIGHER else Claim(
        f"{name}-nonlinear", "Fig. 5, Sec. 4.4", f"{title}: the output at epoch {FIG5_EPOCH} is not linear",
        f"distance of the output from its best straight line at epoch {FIG5_EPOCH}, relative", at_least(0.2),
        lambda figure: PerSeed(figure.distances(name, figure.end(name), 1)),
        lambda figure: "A polynomial in the input and the bias has a straight part too. When 1% of the loss is gone a "
        f"straight line is {np.nanmedian(figure.distances(name, figure.begun[name], 1)):.0%} away (median).",
        trained=False,  # an untrained output is not linear either
        ours=other,
    ), in_initial_stage(  # of random points App. A.3 judges it
        f"{name}-stage", title, FIG5_EPOCH, lambda figure: figure.loss_at_end(name), ours=True
    ) if other else None  # fmt: skip


def column_begun(run: Trajectory) -> np.ndarray:
    """For each seed the column of the first saved step at which 1% of the loss is gone, or -1."""
    below = relative_loss(run) <= BEGUN
    return np.where(below.any(axis=1), below.argmax(axis=1), -1)


class Fig5(PaperFigure):
    """Outputs and their polynomials, an activation a panel."""

    name, title, paper = "fc-fig5", "FC Fig. 5: the initial output is a polynomial", "FC"
    chosen = READING
    titles: ClassVar = ONE_INPUT_TITLES
    claims = (*by_kind(_claims, FIG5_ACTIVATIONS), *by_kind(_claims, (f"{name}{EVEN}" for name in FIG5_ACTIVATIONS)))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The three networks in both readings of their data, which are those of Fig. 6 too."""
        return {name: one_input(*reading) for name, reading in ONE_INPUT.items()}

    @cached_property
    def begun(self) -> Available[np.ndarray]:
        """For each seed the first saved step at which 1% of the loss is gone, or -1."""
        return self.runs.each(lambda name, run: np.r_[run.saved, -1][column_begun(run)])

    def end(self, name: str) -> np.ndarray:
        """For each seed the captioned epoch, or the last step where that means nothing."""
        run = self.runs[name]
        return np.full(len(run.seeds), FIG5_EPOCH if self.variant.by_caption else int(run.saved[-1]))

    def loss_at_end(self, name: str) -> np.ndarray:
        """In each seed the loss at that step over the first."""
        run = self.runs[name]
        return relative_loss(run)[np.arange(len(run.seeds)), np.searchsorted(run.saved, self.end(name))]

    def distances(self, name: str, steps: np.ndarray, order: int) -> list[float]:
        """In each seed the distance from a polynomial; NaN where there is no such step or the seed has diverged."""
        run, distances = self.runs[name], []
        for seed, step in zip(run.seeds, steps.tolist(), strict=True):
            there = step >= 0 and run.diverged.get(seed, step + 1) > step
            outputs = run.output(POINTS[:, None], step, seed)[:, 0] if there else None
            distances.append(float("nan") if outputs is None else fit_polynomial(POINTS, outputs, order)[1])
        return distances

    def beyond_the_leading_power(self, name: str) -> str:
        """Why the output is no polynomial any more: how far the seeds that fail have gone."""
        run, end = self.runs[name], self.end(name)
        holds, began = (self.measured(key).holds(self.claim(key).rule) for key in (name, f"{name}-begin"))
        failing = np.flatnonzero(~np.array(holds)).tolist()
        inputs = (data_with_bias(run, run.seeds[k])[0] for k in failing)
        weights = (run.weights(1, int(end[k]), run.seeds[k]) for k in failing)
        largest = [np.abs(w @ x.T).max() for w, x in zip(weights, inputs, strict=True)]
        return (
            f"In the seeds that fail, the loss at step {end[0]} is at "
            f"{np.median(self.loss_at_end(name)[failing]):.2f} of its first value (median; the initial stage ends "
            f"at {INITIAL_STAGE:g}) and |w.x| is {np.median(largest):.2g}: too large for the activation to be its "
            f"leading power. In the beginning the statement holds in {began.count(True)} of {len(holds)} seeds."
        )

    def _draw(self, spacing: str) -> Figure:
        names = [name for name in self.runs if ONE_INPUT[name][1] == spacing]
        with look():
            figure = Figure(figsize=(PAGE, 4.1), layout="constrained")
            rows = figure.subplots(2, len(names), sharex=True)
            for name, column in zip(names, rows.T, strict=True):
                run, (activation, _) = self.runs[name], ONE_INPUT[name]
                distances = np.nan_to_num(np.asarray(self.measured(name).values), nan=np.inf)
                k = int(np.argsort(distances, kind="stable")[len(distances) // 2])
                column[1].scatter(*run.data(run.seeds[k]), s=6, color=COLOURS[2], linewidth=0, label="data")
                column[1].set_xlabel("$x$")
                for axes, steps in zip(column, (self.begun[name], self.end(name)), strict=True):
                    step = int(steps[k])
                    if step < 0:
                        continue
                    outputs = run.output(POINTS[:, None], step, run.seeds[k])[:, 0]
                    fit, distance = fit_polynomial(POINTS, outputs, LINES[activation])
                    axes.plot(POINTS, outputs, color=COLOURS[0], linewidth=2, label="network")
                    axes.plot(POINTS, fit, color=COLOURS[1], linestyle="--", label="polynomial of order p")
                    axes.set_title(f"{label(activation)}, step {step}: {distance:.1%} apart")
            only_outer(figure, list(rows.ravel()))
            for axes in rows[:, 0]:
                axes.set_ylabel("output")
        return figure

    def draw(self) -> Drawing:
        """Outputs of the median seed, in the beginning and at the captioned epoch, with their polynomials."""
        return Drawing(
            caption="Outputs (blue) in the beginning, at the first saved step with 1% of the loss gone (top, at its "
            f"own scale), and at epoch {FIG5_EPOCH} (bottom), each with its best polynomial of order p (orange, "
            "dashed); the median seed by distance from it at the captioned epoch. Green: data, at random points; in a "
            "second picture at equally spaced ones.",
            pictures={"": self._draw("random"), "even": self._draw("even")},
            data=stack_columns({name: self._columns(name) for name in self.runs}, "activation"),
            settings_extra={"distance": "on 251 points, relative to the output's variation about its mean"},
        )

    def _columns(self, name: str) -> dict[str, np.ndarray]:
        end, begin = (np.asarray(self.measured(key).values) for key in (name, f"{name}-begin"))
        return {"seed": np.arange(len(end)), "distance": end, "distance_in_the_beginning": begin}
