"""Lines against the start and the step: when a network condenses, and for how long.

Condensation begins when Adam has outweighed the start, which theory tells from the std alone (``growing``), and passes.
From starts that are not outweighed when the linear part of the targets is learnt it never comes to one line.
"""

from collections.abc import Mapping

import numpy as np

from ...activations import label
from ...drawing import Boundary, Mark, draw_phase_maps
from ...optimizers import Adam
from ...runs import INITIAL_STAGE
from ...saving import At
from ...seeds import as_seeds
from ...sweeps import Sweep, SweepTable, logspace
from ..claims import Claim, Rule, Seeds, Statement
from ..fc.experiments import fig3
from ..lab import Lab
from ..recipe import Findings, Recipe, Table, Tables
from ..variant import Variant
from .crossing import crossing, factor
from .growing import learnt, outweighed, with_bias

NAME, TITLE = "phase-lines", "Lines against start and step"
ACTIVATIONS = ("tanh", "sigmoid", "softplus", "x_tanh", "x2_tanh", "relu")
RATE = 1e-3
INPUTS, UNITS = 6, 50
MOST = 7  # lines that the picture tells apart
FIRST, LAST = 2, 1000  # steps
SMALL = 1e-3  # starts up to this std are small: within the first steps the weights have grown beyond it
ONE = 1.5  # k_eff up to which it is one line
HALF = 2.0  # k_eff where half of the pairs of neurons are on a line
CAPTION = Mark(0.005, 100, "FC Fig. 3")


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(f"{NAME}-{key}", NAME, TITLE, text, quantity, rule, paper="PHASES", ours=True)


STATEMENTS = (
    _statement(
        "small",
        f"from small starts (std up to {SMALL:g}) tanh networks condense on one line",
        "k_eff at its least over the steps, the largest of these starts",
        Rule("at most", ONE),
    ),
    _statement(
        "ordinary",
        "from a start of std 1 networks of all six activations learn and do not condense",
        "least k_eff of 50 neurons at the steps with less than 70% of the loss, over the activations",
        Rule("at least", 25),
    ),
    _statement(
        "transient",
        "condensation passes: the lines of tanh networks from small starts are more again later",
        "k_eff at the last step over its least, the smallest of these starts",
        Rule("at least", 2),
    ),
    _statement(
        "inside",
        "condensation is of the initial stage, in which 70% of the loss are left",
        "share of the condensed cells, of all activations, that are in it",
        Rule("at least", 0.9),
    ),
    _statement(
        "onset",
        "tanh networks condense at the step 3.98 std/rate, when Adam has outweighed the start",
        "largest factor between the step at which half of the pairs are on a line and this one, over the starts",
        Rule("at most", 2),
    ),
    _statement(
        "edge",
        "the largest start that condenses (tanh) is the one outweighed just when the linear part of the targets is "
        "learnt",
        "factor between the std at which the least k_eff is twice that of the smallest start, and the one predicted "
        "from the data",
        Rule("at most", 2),
    ),
)


def sweeps(size: int = 9, seeds: int = 10) -> Mapping[str, Sweep]:
    """The diagram as a sweep: ``size`` starts, measured at as many steps, for each activation."""
    shown = tuple(int(step) for step in np.rint(np.geomspace(FIRST, LAST, size)))
    base = fig3("tanh").replace(steps=LAST, save=At((0, *shown)), record=At((0, *shown)), optimizer=Adam(RATE))
    axes = {"network.activation": ACTIVATIONS, "init.hidden.std": logspace(1e-4, 1, size)}
    return {NAME: Sweep(base, axes, {}, as_seeds(seeds), ("lines",), at="saved")}


def experiments(scale: str) -> Mapping[str, Sweep]:
    """9 starts x 9 steps, at the paper's scale 17 x 17."""
    return sweeps() if scale == "quick" else sweeps(17)


class _Map:
    """A table as arrays: activations x starts x seeds x steps, step 0 left out."""

    def __init__(self, table: SweepTable) -> None:
        self.names = table.sweep.axes["network.activation"]
        self.stds, self.steps = np.array(table.sweep.axes["init.hidden.std"], float), table.steps[1:].astype(float)
        self.k_eff, self.lines, self.condensed = (
            table.array(f"dense1.{name}")[..., 1:] for name in ("k_eff", "lines", "condensed")
        )
        loss = table.array("loss")
        self.left = loss[..., 1:] / loss[..., :1]
        self.learnt = np.array(
            [learnt(*with_bias(*table.sweep.experiment.data.draw(seed)), UNITS, RATE) for seed in table.seeds]
        )

    @property
    def onset(self) -> np.ndarray:
        """The step at which theory has each start outweighed."""
        return outweighed(INPUTS) * self.stds / RATE

    @property
    def edge(self) -> np.ndarray:
        """The largest start that theory has condense, in each seed."""
        return RATE * self.learnt / outweighed(INPUTS)

    def found_onset(self) -> np.ndarray:
        """The step at which half of the pairs of tanh neurons are on a line: starts x seeds."""
        return np.exp(crossing(np.log(self.steps), np.log(self.k_eff[0]), np.log(HALF), falling=True))

    def found_edge(self) -> np.ndarray:
        """The start at which the least k_eff over the steps is twice the smallest start's: activations x seeds."""
        least = np.moveaxis(np.log(self.k_eff.min(axis=-1)), 1, -1)
        return np.exp(crossing(np.log(self.stds), least - least[..., :1], np.log(2)))


def measure(tables: Tables, variant: Variant) -> Mapping[str, Seeds]:
    """What is asked of the map, in each seed."""
    found = _Map(tables[NAME])
    tanh = found.k_eff[0]  # starts x seeds x steps
    small = tanh[found.stds <= SMALL * (1 + 1e-9)]
    late = np.where(found.left[:, -1] < INITIAL_STAGE, found.k_eff[:, -1], np.inf).min(axis=-1)  # activations x seeds
    condensed = found.condensed == 1
    with np.errstate(invalid="ignore"):
        inside = (condensed & (found.left >= INITIAL_STAGE)).sum(axis=(0, 1, 3)) / condensed.sum(axis=(0, 1, 3))
    onset = factor(found.found_onset(), found.onset[:, None])
    asked = (found.onset[:, None] > found.steps[0]) & (found.stds[:, None] < found.edge)
    return {
        f"{NAME}-small": Seeds(small.min(axis=-1).max(axis=0)),
        f"{NAME}-ordinary": Seeds(np.where(np.isfinite(late).all(axis=0), late.min(axis=0), np.nan)),
        f"{NAME}-transient": Seeds((small[..., -1] / small.min(axis=-1)).min(axis=0)),
        f"{NAME}-inside": Seeds(inside),
        f"{NAME}-onset": Seeds(np.where(asked.any(axis=0), np.where(asked, onset, 1.0).max(axis=0), np.nan)),
        f"{NAME}-edge": Seeds(factor(found.found_edge()[0], found.edge)),
    }


def _boundaries(found: _Map) -> dict[str, list[Boundary]]:
    """Theory's lines, and the end of the initial stage as it was found, by panel."""
    stds = np.geomspace(found.stds[0], found.stds[-1], 200)
    onset = outweighed(INPUTS) * stds / RATE
    drawn = (onset >= found.steps[0]) & (onset <= found.steps[-1])
    outweighs = Boundary(stds[drawn], onset[drawn], "theory: the start is outweighed")
    ends = np.exp(crossing(np.log(found.steps), np.median(found.left, axis=2), INITIAL_STAGE, falling=True))
    panels = {
        label(name): [outweighs, Boundary(found.stds, ends[k], "found: 70% of the loss left", found=True)]
        for k, name in enumerate(found.names)
    }
    last = float(np.median(found.learnt))
    reach = np.array([found.stds[0], RATE * last / outweighed(INPUTS)])
    panels[label("tanh")].append(Boundary(reach, np.full(2, last), "theory: linear part learnt (tanh)"))
    return panels


def _table(found: _Map) -> Table:
    """What each activation does from small starts, and up to which start."""
    small = found.stds <= SMALL * (1 + 1e-9)
    edge = found.found_edge()
    rows = []
    for k, name in enumerate(found.names):
        k_eff = found.k_eff[k][small]
        at = k_eff.argmin(axis=-1)[..., None]
        lines = np.take_along_axis(found.lines[k][small], at, -1)
        known = edge[k][np.isfinite(edge[k])]
        rows.append(
            (
                label(name),
                f"{np.median(k_eff.min(axis=-1)):.1f}",
                f"{np.median(lines):g}",
                f"{np.median(k_eff[..., -1]):.1f}",
                f"{np.median(known):.2g} ({len(known)} of {edge.shape[1]} seeds)" if len(known) else "none",
            )
        )
    header = ("activation", "least k_eff", "lines there", f"k_eff at step {LAST}", "std at which it doubles")
    return Table(f"Starts of std up to {SMALL:g}, medians", header, tuple(rows))


def show(lab: Lab, tables: Tables, claims: Mapping[str, Claim]) -> Findings:
    """The maps of k_eff and of the number of lines, a panel an activation."""
    table = tables[NAME]
    found = _Map(table)
    boundaries = _boundaries(found)
    k_eff = np.maximum(np.median(found.k_eff, axis=2), 1.0)  # rounding aside
    lines = np.median(np.where(found.condensed == 1, found.lines, UNITS), axis=2)
    axes = {"x": found.stds, "y": found.steps, "labels": ("std of the start", "step"), "marks": (CAPTION,)}
    return Findings(
        caption=f"Lines of 50 neurons over {len(table.seeds)} seeds (medians), from starts of different std, at steps "
        "of the training. First the effective number k_eff: dark is one line, 50 none at all; then the number of lines "
        "where they cover 90% of the norm, brightest elsewhere. The solid diagonal is where a neuron's weights have "
        "moved 3.98 times their start, enough for a cosine of 0.95; the dashed line is the end of the initial stage. "
        "In tanh's panel the horizontal line is the step at which the linear part of the targets is learnt: starts "
        "that are not outweighed by then never come to one line.",
        settings={
            "network": "5-50-1, no output bias, float64",
            "data": "80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]",
            "start": "all weights N(0, std²)",
            "optimizer": f"Adam, full batch, eps 1e-8, learning rate {RATE:g} in all panels, so that they have one "
            "clock (the caption of FC Fig. 3 has 8e-4 for sigmoid and 2.5e-4 for softplus)",
        },
        pictures={
            NAME: draw_phase_maps(
                {label(name): k_eff[k].T for k, name in enumerate(found.names)},
                quantity="effective number of lines, k_eff",
                boundaries=boundaries,
                limits=(1, UNITS),
                logarithmic=True,
                **axes,
            ),
            f"{NAME}-count": draw_phase_maps(
                {label(name): lines[k].T for k, name in enumerate(found.names)},
                quantity="number of lines; brightest: not condensed",
                boundaries=boundaries,
                limits=(1, MOST),
                **axes,
            ),
        },
        tables=(_table(found),),
        data={
            name.split(".")[-1]: table.column(name)
            for name in (
                "network.activation", "init.hidden.std", "seed_data", "seed_init", "step", "loss", "loss_first",
                "dense1.k_eff", "dense1.lines", "dense1.orientations", "dense1.cover", "dense1.condensed",
            )
        },
    )  # fmt: skip


RECIPE = Recipe(
    NAME,
    TITLE,
    STATEMENTS,
    experiments,
    measure,
    show,
    "9 starts x 9 steps instead of 17 x 17",
    has_variants=False,
)
