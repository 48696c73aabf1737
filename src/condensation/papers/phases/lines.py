"""Lines against the size of the initialization and the step: when a network condenses, and for how long.

Condensation begins when Adam has outweighed the initial weights, which ``theory._adam_growth`` tells from their std
alone, and passes. From initial weights that are not outweighed when the linear part of the targets is learnt, a
network never comes to one line.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from ...activations import label
from ...drawing import Boundary, Mark, draw_phase_maps
from ...measure._crossing import crossing, factor
from ...optimizers import Adam
from ...runs import INITIAL_STAGE
from ...saving import At
from ...seeds import as_seeds
from ...sweeps import Sweep, SweepTable, logspace
from ...theory._adam_growth import learnt, outweighed, with_bias
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing
from .._tables import Table
from ..fc.experiments import fig3
from ._diagram import PhaseDiagram

WHERE = "Lines against start and step"
ACTIVATIONS = ("tanh", "sigmoid", "softplus", "x_tanh", "x2_tanh", "relu")
RATE = 1e-3
INPUTS, UNITS = 6, 50
MOST = 7  # lines that the picture tells apart
FIRST, LAST = 2, 1000  # steps
SMALL = 1e-3  # initial weights up to this std are small: within the first steps they have grown beyond it
ONE = 1.5  # k_eff up to which it is one line
HALF = 2.0  # k_eff where half of the pairs of neurons are on a line
CAPTION = Mark(0.005, 100, "FC Fig. 3")


class _LinesMap:
    """The table as arrays, activations x stds x seeds x steps, step 0 left out."""

    def __init__(self, table: SweepTable) -> None:
        self.names = table.sweep.axes["network.activation"]
        self.stds, self.steps = np.array(table.sweep.axes["init.hidden.std"], float), table.steps[1:].astype(float)
        self.k_eff, self.lines = (table.array(f"dense1.{name}")[..., 1:] for name in ("k_eff", "lines"))
        self.condensed = table.array("dense1.condensed")[..., 1:] == 1
        loss = table.array("loss")
        self.left = loss[..., 1:] / loss[..., :1]
        samples = [with_bias(*table.sweep.experiment.data.draw(seed)) for seed in table.seeds]
        self.learnt = np.array([learnt(*sample, UNITS, RATE) for sample in samples])
        self.is_small = self.stds <= SMALL * (1 + 1e-9)
        self.small = self.k_eff[0][self.is_small]  # of tanh: stds x seeds x steps
        self.onset = outweighed(INPUTS) * self.stds / RATE  # the step at which theory has initial weights outweighed
        self.edge = RATE * self.learnt / outweighed(INPUTS)  # the largest std that theory has condense, in each seed
        least = np.moveaxis(np.log(self.k_eff.min(axis=-1)), 1, -1)  # the found one doubles the least k_eff
        self.edge_found = np.exp(crossing(np.log(self.stds), least - least[..., :1], np.log(2)))  # activations x seeds

    def ordinary(self) -> PerSeed:
        late = np.where(self.left[:, -1] < INITIAL_STAGE, self.k_eff[:, -1], np.inf).min(axis=-1)  # activations x seeds
        return PerSeed(np.where(np.isfinite(late).all(axis=0), late.min(axis=0), np.nan))

    def inside(self) -> PerSeed:
        with np.errstate(invalid="ignore"):
            initial = (self.condensed & (self.left >= INITIAL_STAGE)).sum(axis=(0, 1, 3))
            return PerSeed(initial / self.condensed.sum(axis=(0, 1, 3)))

    def onset_error(self) -> PerSeed:
        half = np.exp(crossing(np.log(self.steps), np.log(self.k_eff[0]), np.log(HALF), falling=True))
        errors = factor(half, self.onset[:, None])
        counted = (self.onset[:, None] > self.steps[0]) & (self.stds[:, None] < self.edge)
        return PerSeed(np.where(counted.any(axis=0), np.where(counted, errors, 1.0).max(axis=0), np.nan))


class LinesDiagram(PhaseDiagram):
    """k_eff over std and step, for six activations."""

    name, title = "phase-lines", "Lines against initialization and step"
    sizes: ClassVar = {"quick": (9, 10), "paper": (17, 10)}
    claims = (
        Claim(
            "small", WHERE, f"from small starts (std up to {SMALL:g}) tanh networks condense on one line",
            "k_eff at its least over the steps, the largest of these starts", at_most(ONE),
            lambda figure: PerSeed(figure.map.small.min(axis=-1).max(axis=0)), ours=True,
        ),
        Claim(
            "ordinary", WHERE, "from a start of std 1 networks of all six activations learn and do not condense",
            "least k_eff of 50 neurons at the steps with less than 70% of the loss, over the activations",
            at_least(25), lambda figure: figure.map.ordinary(), ours=True,
        ),
        Claim(
            "transient", WHERE,
            "condensation passes: the lines of tanh networks from small starts are more again later",
            "k_eff at the last step over its least, the smallest of these starts", at_least(2),
            lambda figure: PerSeed((figure.map.small[..., -1] / figure.map.small.min(axis=-1)).min(axis=0)), ours=True,
        ),
        Claim(
            "inside", WHERE, "condensation is of the initial stage, in which 70% of the loss are left",
            "share of the condensed cells, of all activations, that are in it", at_least(0.9),
            lambda figure: figure.map.inside(), ours=True,
        ),
        Claim(
            "onset", WHERE, "tanh networks condense at the step 3.98 std/rate, when Adam has outweighed the start",
            "largest factor between the step at which half of the pairs are on a line and this one, over the starts",
            at_most(2), lambda figure: figure.map.onset_error(), ours=True,
        ),
        Claim(
            "edge", WHERE,
            "the largest start that condenses (tanh) is the one outweighed just when the linear part of the targets is "
            "learnt",
            "factor between the std at which the least k_eff is twice that of the smallest start, and the one "
            "predicted from the data",
            at_most(2), lambda figure: PerSeed(factor(figure.map.edge_found[0], figure.map.edge)), ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def sweep(cls, size: int = 9, seeds: int = 10) -> Sweep:
        """The diagram as a sweep: ``size`` stds, measured at as many steps, for each activation."""
        axes = {"network.activation": ACTIVATIONS, "init.hidden.std": logspace(1e-4, 1, size)}
        shown = tuple(int(step) for step in np.rint(np.geomspace(FIRST, LAST, size)))
        base = fig3("tanh").replace(steps=LAST, save=At((0, *shown)), record=At((0, *shown)), optimizer=Adam(RATE))
        return Sweep(base, axes, {}, as_seeds(seeds), ("lines",), at="saved")

    @cached_property
    def map(self) -> _LinesMap:
        """The table as arrays, with what theory says of them."""
        return _LinesMap(self.table)

    def boundaries(self) -> dict[str, list[Boundary]]:
        """Theory's lines, and the end of the initial stage as it was found, by panel."""
        stds = np.geomspace(self.map.stds[0], self.map.stds[-1], 200)
        onset = outweighed(INPUTS) * stds / RATE
        drawn = (onset >= self.map.steps[0]) & (onset <= self.map.steps[-1])
        outweighs = Boundary(stds[drawn], onset[drawn], "theory: initial weights outweighed")
        ends = np.exp(crossing(np.log(self.map.steps), np.median(self.map.left, axis=2), INITIAL_STAGE, falling=True))
        panels = {
            label(name): [outweighs, Boundary(self.map.stds, ends[k], "found: 70% of the loss left", found=True)]
            for k, name in enumerate(self.map.names)
        }
        last = float(np.median(self.map.learnt))
        reach = np.array([self.map.stds[0], RATE * last / outweighed(INPUTS)])
        panels[label("tanh")].append(Boundary(reach, np.full(2, last), "theory: linear part learnt (tanh)"))
        return panels

    def activations_table(self) -> Table:
        """What each activation does from small initial weights, and up to which std."""
        rows = []
        for k, name in enumerate(self.map.names):
            k_eff, edges = self.map.k_eff[k][self.map.is_small], self.map.edge_found[k]
            there = np.take_along_axis(self.map.lines[k][self.map.is_small], k_eff.argmin(axis=-1)[..., None], -1)
            known = edges[np.isfinite(edges)]
            rows.append(
                (
                    label(name),
                    f"{np.median(k_eff.min(axis=-1)):.1f}",
                    f"{np.median(there):g}",
                    f"{np.median(k_eff[..., -1]):.1f}",
                    f"{np.median(known):.2g} ({len(known)} of {len(edges)} seeds)" if len(known) else "none",
                )
            )
        header = ("activation", "least k_eff", "lines there", f"k_eff at step {LAST}", "std at which it doubles")
        return Table(f"Initial weights of std up to {SMALL:g}, medians", header, tuple(rows))

    def draw(self) -> Drawing:
        """The maps of k_eff and of the number of lines, a panel for each activation."""
        maps = {
            "": np.maximum(np.median(self.map.k_eff, axis=2), 1.0),  # rounding aside
            "count": np.median(np.where(self.map.condensed, self.map.lines, UNITS), axis=2),
        }
        looks = {
            "": {"quantity": "effective number of lines, k_eff", "limits": (1, UNITS), "logarithmic": True},
            "count": {"quantity": "number of lines; brightest: not condensed", "limits": (1, MOST)},
        }
        boundaries = self.boundaries()
        return Drawing(
            caption=f"Lines of 50 neurons over {len(self.table.seeds)} seeds (medians), from initial weights of "
            "different std, at steps of the training. First the effective number k_eff: dark is one line, 50 none at "
            "all; then the number of lines where they cover 90% of the norm, brightest elsewhere. The solid diagonal "
            "is where a neuron's weights have moved 3.98 times their initial std, enough for a cosine of 0.95; the "
            "dashed line is the end of the initial stage. In tanh's panel the horizontal line is the step at which "
            "the linear part of the targets is learnt: initial weights that are not outweighed by then never come to "
            "one line.",
            pictures={
                part: draw_phase_maps(
                    {label(name): values[k].T for k, name in enumerate(self.map.names)},
                    self.map.stds,
                    self.map.steps,
                    labels=("std of the initialization", "step"),
                    marks=(CAPTION,),
                    boundaries=boundaries,
                    **looks[part],
                )
                for part, values in maps.items()
            },
            tables=(self.activations_table(),),
            data=self.columns(
                "network.activation", "init.hidden.std", "seed_data", "seed_init", "step", "loss", "loss_first",
                "dense1.k_eff", "dense1.lines", "dense1.orientations", "dense1.cover", "dense1.condensed",
            ),
            settings_extra={
                "learning rate": "the same in all panels, so that they have one clock (the caption of FC Fig. 3 has "
                "8e-4 for sigmoid and 2.5e-4 for softplus)"
            },
        )  # fmt: skip
