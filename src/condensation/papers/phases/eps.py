"""Adam's eps against the start: where it matters, and what it does to condensation.

There are two lines in the map. Where eps is the start's gradient, Adam ceases to be sign descent: beyond, it is descent
of the rate/eps. That alone costs no time, as this rate is huge; only where eps is larger than the start's gradient by
as much as the weights at which learning begins are larger than the start (p = 2) learning is late (``growing``).
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...data import Data
from ...drawing import Boundary, Mark, draw_phase_maps
from ...measure._similarity import norms
from ...optimizers import Adam
from ...runs import INITIAL_STAGE, Trajectory
from ...saving import At, Geometric
from ...seeds import Seed, as_seeds
from ...sweeps import Sweep, SweepTable, logspace
from ..claims import Claim, Rule, Seeds, Statement
from ..fc.experiments import fig3
from ..lab import Lab
from ..recipe import Findings, Recipe, Table, Tables
from ..variant import Variant
from .crossing import crossing, factor
from .growing import Scales, doubling, outgrowing, pull, scales, with_bias

NAME, TITLE = "phase-eps", "Adam's eps against the start"
ACTIVATIONS = ("tanh", "x_tanh", "x2_tanh")
INPUTS = 6
RATE = 1e-3
LAST = 2048
SAVED = tuple(2**k for k in range(12))
BEGUN = 0.99  # of the first loss: learning has begun
SMALL = 1e-3  # starts up to this std are small: Adam's weights have outgrown them when learning begins
CAPTION = Mark(1e-8, 0.005, "FC Fig. 3")
FEW = 5.0  # k_eff up to which a layer is on few lines
APART = 3.0  # cells within this factor of a boundary are of neither side; so far boundaries may be off


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(f"{NAME}-{key}", NAME, TITLE, text, quantity, rule, paper="PHASES", ours=True)


STATEMENTS = (
    _statement(
        "first",
        "Adam's first step is half of its learning rate where eps is the mean gradient of the start, which goes with "
        "std^p",
        "largest factor between that eps and the one predicted from the data, over activations and small starts",
        Rule("at most", APART),
    ),
    _statement(
        "same",
        "a gradient below eps alone changes nothing: between the two lines (a factor 10 from both) networks condense "
        "as far and learn as soon as with the least eps",
        "share of these cells with k_eff and the step at which learning begins at most 1.5 times those",
        Rule("at least", 0.9),
    ),
    _statement(
        "delay",
        "eps delays learning by eps I_p/(ηΛ) steps: a time that depends on the start by its logarithm (p = 1), goes "
        "with its inverse (p = 2), with its inverse square (p = 3)",
        "largest factor between found and predicted delay, over the cells of small starts where it is predicted to be "
        "longer than Adam's own time and within half of the training",
        Rule("at most", APART),
    ),
    _statement(
        "doubled",
        "so learning begins twice as late where eps is Λ(W - std)/I_p",
        "largest factor between that eps and the predicted one, over activations and small starts",
        Rule("at most", APART),
    ),
    _statement(
        "side",
        "small starts condense where the weights outgrow them within the training by the same law, and only there",
        "share of the cells, those near that line left out, with k_eff at most 5 on one side, above on the other",
        Rule("at least", 0.9),
    ),
    _statement(
        "line",
        "it is not the same line (tanh): the signs of z where eps is below the gradients at which learning begins, in "
        "each coordinate and by a factor 10, z itself where it is above them",
        "share of these cells whose neurons are nearer to theirs, at a mean |cos| of 0.95",
        Rule("at least", 0.9),
    ),
    _statement(
        "few",
        "where eps delays x tanh x and x² tanh x by more than three times Adam's own time, few neurons take all the "
        "norm, as in gradient flow",
        "participation ratio of the 50 neurons, median of these cells",
        Rule("at most", 10),
    ),
)


def growth(trajectory: Trajectory, step: int) -> Mapping[str, float]:
    """How far the weights of one seed have moved until a step, when learning began, and on which line they are.

    ``moved`` is the root mean square over the hidden layer's weights, ``begun`` the step (NaN where it is still to
    come), ``on_z`` and ``on_signs`` the mean |cos| with z and with its signs, by norm.
    """
    seed = trajectory.seeds[0]
    weights = trajectory.weights("dense1", step, seed)
    inputs, y = with_bias(*trajectory.data(seed))
    z = pull(inputs, y)
    below = (trajectory.loss[0] < BEGUN * trajectory.loss[0, 0]) & (trajectory.recorded <= step)
    mass = norms(weights).sum()
    return {
        "moved": float(np.sqrt(np.mean((weights - trajectory.weights("dense1", 0, seed)) ** 2))),
        "begun": float(trajectory.recorded[below.argmax()]) if below.any() else float("nan"),
        "on_z": float(np.abs(weights @ z).sum() / np.linalg.norm(z) / mass),
        "on_signs": float(np.abs(weights @ np.sign(z)).sum() / np.sqrt(len(z)) / mass),
    }


@lru_cache(maxsize=256)
def _scales_of(data: Data, seed: Seed, activation: str) -> Scales:
    return scales(*with_bias(*data.draw(seed)), activation)


def sweeps(size: int = 9, seeds: int = 3) -> Mapping[str, Sweep]:
    """The diagram as a sweep of size x size cells for each activation."""
    base = fig3("tanh").replace(steps=LAST, save=At((0, *SAVED)), record=Geometric(20), optimizer=Adam(RATE))
    axes = {
        "network.activation": ACTIVATIONS,
        "optimizer.eps": logspace(1e-11, 10, size),
        "init.hidden.std": logspace(1e-6, 0.1, size),
    }
    return {NAME: Sweep(base, axes, {}, as_seeds(seeds), ("lines", "rank", growth), at="saved")}


def experiments(scale: str) -> Mapping[str, Sweep]:
    """9 x 9 cells and three seeds, at the paper's scale 17 x 17 and five."""
    return sweeps() if scale == "quick" else sweeps(17, 5)


class _Map:
    """A table as arrays: activations x starts x seeds x eps; theory's the same without the eps."""

    def __init__(self, table: SweepTable) -> None:
        self.names = table.sweep.axes["network.activation"]
        self.eps, self.stds = (np.array(table.sweep.axes[n], float) for n in ("optimizer.eps", "init.hidden.std"))
        loss, k_eff = table.array("loss"), table.array("dense1.k_eff")
        left = loss / loss[..., :1]
        most = np.where(left >= INITIAL_STAGE, k_eff, np.inf)[..., 1:].argmin(axis=-1) + 1  # the most condensed step
        before = (left >= BEGUN).sum(axis=-1) - 1  # the last one before learning begins
        self.k_eff, self.spread = (_at(table.array(f"dense1.{name}"), most) for name in ("k_eff", "participation"))
        self.on_z, self.on_signs = (_at(table.array(name), before) for name in ("on_z", "on_signs"))
        self.first = np.moveaxis(table.array("moved")[..., 1], 1, -1) / RATE
        self.begun = np.moveaxis(table.array("begun")[..., -1], 1, -1)
        self.small = self.stds <= SMALL * (1 + 1e-9)
        self.own = np.median(self.begun[..., 0][:, self.small], axis=1)  # Adam's own time: activations x seeds
        self.z = np.abs([pull(*with_bias(*table.sweep.experiment.data.draw(seed))) for seed in table.seeds]).T
        self.scales = [[_scales_of(table.sweep.experiment.data, s, name) for s in table.seeds] for name in self.names]

    def gradient(self) -> np.ndarray:
        """Theory's mean gradient of the start."""
        return self._theory(lambda found, own: found.gradient * self.stds**found.p)

    def doubled(self) -> np.ndarray:
        """Theory's eps with which learning begins twice as late."""
        return self._theory(lambda found, own: doubling(self.stds, own, found, RATE))

    def outgrown(self) -> np.ndarray:
        """Theory's eps with which the weights just outgrow their start within the training."""
        return self._theory(lambda found, own: outgrowing(self.stds, LAST, found, INPUTS, RATE))

    def _theory(self, of: Callable[[Scales, float], np.ndarray]) -> np.ndarray:
        each = [
            [of(found, own) for found, own in zip(*row, strict=True)] for row in zip(self.scales, self.own, strict=True)
        ]
        return np.swapaxes(np.array(each), 1, 2)

    def found_gradient(self) -> np.ndarray:
        """The eps with which Adam's first step is half of its learning rate."""
        return np.exp(crossing(np.log(self.eps), self.first, 0.5, falling=True))

    def found_doubled(self) -> np.ndarray:
        """The eps with which learning begins twice as late as Adam's own time."""
        own = np.fmin(self.own[:, None], self.begun[..., 0])[..., None]
        return np.exp(crossing(np.log(self.eps), np.log(np.maximum(self.begun / own - 1, 1e-3)), 0.0))


def _at(values: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Values at a step of each cell and seed, eps last."""
    return np.moveaxis(np.take_along_axis(values, step[..., None], -1)[..., 0], 1, -1)


def _over(reduce: Callable[[np.ndarray], Any], values: np.ndarray, asked: np.ndarray) -> Seeds:
    """In each seed (axis 2) a reduction of the values of the cells that are asked for, NaN where none are."""
    cells = [(np.take(values, k, 2), np.take(asked, k, 2)) for k in range(values.shape[2])]
    return Seeds([float(reduce(own[chosen])) if chosen.any() else float("nan") for own, chosen in cells])


def measure(tables: Tables, variant: Variant) -> Mapping[str, Seeds]:
    """What is asked of the map, in each seed."""
    found = _Map(tables[NAME])
    gradient, doubled, outgrown = (line[..., None] for line in (found.gradient(), found.doubled(), found.outgrown()))
    eps, own, small = found.eps, found.own[:, None, :, None], found.small[:, None, None] & np.ones_like(doubled, bool)
    between = small & (eps >= 10 * gradient) & (eps <= doubled / 10)
    as_good = (found.k_eff <= 1.5 * found.k_eff[..., :1]) & (found.begun <= 1.5 * own)
    delay = own * eps / doubled
    late = small & (delay >= own) & (own + delay <= LAST / 2)
    inside, outside = small & (eps <= outgrown / APART), small & (eps >= outgrown * APART)
    low, high = (RATE * own * size[:, None] for size in (found.z.min(axis=0), np.linalg.norm(found.z, axis=0)))
    signs, flow = (small & (eps <= low / 10))[:1], (inside & (eps >= high))[:1]
    on_signs, on_z = found.on_signs[:1], found.on_z[:1]
    on_own = np.where(signs, on_signs > np.maximum(on_z, 0.95), on_z > np.maximum(on_signs, 0.95))
    taken = small & (delay >= APART * own) & np.isfinite(found.begun)
    return {
        f"{NAME}-first": _over(
            np.max, factor(found.found_gradient()[..., None], gradient), small & (gradient > APART * eps[0])
        ),
        f"{NAME}-same": _over(np.mean, as_good, between),
        f"{NAME}-delay": _over(np.max, factor(found.begun - own, delay), late),
        f"{NAME}-doubled": _over(np.max, factor(found.found_doubled()[..., None], doubled), small),
        f"{NAME}-side": _over(np.mean, (found.k_eff <= FEW) == inside, inside | outside),
        f"{NAME}-line": _over(np.mean, on_own, signs | flow),
        f"{NAME}-few": _over(np.median, found.spread[1:], taken[1:]),
    }


def _boundaries(found: _Map) -> dict[str, dict[str, Boundary]]:
    """Theory's lines and those that were found, medians over the seeds, by panel and name."""
    stds = np.geomspace(found.stds[0], found.stds[-1], 200)
    halved, twice = (np.median(line, axis=2) for line in (found.found_gradient(), found.found_doubled()))
    panels = {}
    for k, name in enumerate(found.names):
        each, own = found.scales[k], found.own[k]
        theory = {
            "gradient": [one.gradient * stds**one.p for one in each],
            "doubled": [doubling(stds, time, one, RATE) for one, time in zip(each, own, strict=True)],
            "outgrown": [outgrowing(stds, LAST, one, INPUTS, RATE) for one in each],
        }
        said = {
            "gradient": "theory: gradient of the start = eps",
            "doubled": "theory: learning twice as late",
            "outgrown": f"theory: start outgrown by step {LAST}",
        }
        panels[label(name)] = {
            key: Boundary(np.median(eps, axis=0), stds, said[key]) for key, eps in theory.items()
        } | {
            "halved": Boundary(halved[k], found.stds, "found: first step halved", found=True),
            "twice": Boundary(twice[k], found.stds, "found: learning twice as late", found=True),
        }
    return panels


def _table(found: _Map) -> Table:
    """The powers of std with which eps goes along the lines, over small starts."""
    stds = np.log(found.stds[found.small])

    def power(eps: np.ndarray) -> str:
        line = np.log(np.median(eps[found.small], axis=1))
        known = np.isfinite(line)
        return f"{np.polyfit(stds[known], line[known], 1)[0]:.2f}" if known.sum() > 1 else "-"

    lines = (found.gradient(), found.found_gradient(), found.doubled(), found.found_doubled())
    rows = tuple(
        (label(name), f"{np.median(found.own[k]):.0f}", *(power(line[k]) for line in lines))
        for k, name in enumerate(found.names)
    )
    header = ("activation", "Adam's own time", "halved: predicted", "halved: found", "late: predicted", "late: found")
    return Table(
        "Steps until learning begins with the least eps, and the powers of std with which the eps goes that halves the "
        "first step, and the one that makes learning twice as late",
        header,
        rows,
    )


def _why(found: _Map, claims: Mapping[str, Claim]) -> dict[str, str]:
    """Why the line of twice the time is off where it is."""
    key = f"{NAME}-doubled"
    if key not in claims or claims[key].verdict == "reproduced":
        return {}
    off = (found.found_doubled() / found.doubled())[:, found.small]
    return {
        key: f"The eps that doubles the time is {np.nanmin(off):.2f} to {np.nanmax(off):.2f} of the predicted one. The "
        "law is of neurons of one size on the fastest line and leaves out Adam's moments; a start has neurons of all "
        f"sizes. Where the delay is longer than Adam's own time, the law holds ({NAME}-delay)."
    }


def show(lab: Lab, tables: Tables, claims: Mapping[str, Claim]) -> Findings:
    """Maps of k_eff, of the step at which learning begins, and of how many neurons take the norm."""
    table = tables[NAME]
    found = _Map(table)
    lines = _boundaries(found)
    axes = {"x": found.eps, "y": found.stds, "labels": ("Adam's eps", "std of the start"), "marks": (CAPTION,)}

    def maps(values: np.ndarray, quantity: str, high: float, names: tuple[str, ...]) -> Figure:
        middle = np.clip(np.median(values, axis=2), 1.0, high)
        panels = {label(name): middle[k] for k, name in enumerate(found.names)}
        drawn = {panel: [own[name] for name in names] for panel, own in lines.items()}
        return draw_phase_maps(panels, quantity=quantity, boundaries=drawn, limits=(1, high), logarithmic=True, **axes)

    begun = np.where(np.isnan(found.begun), LAST, found.begun)
    return Findings(
        caption=f"Adam's eps against the start, medians over {len(table.seeds)} seeds. First the effective number of "
        f"lines at the most condensed saved step of the initial stage; then the step at which 1% of the loss is gone "
        f"({LAST} where it is not by then); then how many neurons the norm is spread over (participation ratio), at "
        "the step of the first map. Right of the first line gradients of the start are below eps; nothing comes of it "
        "until the second one, where learning takes twice as long. Beyond, Adam is gradient descent: tanh condenses "
        "on z instead of its signs, of x tanh x and x² tanh x few neurons take all the norm, and further right the "
        "weights do not outgrow their start in these steps.",
        settings={
            "network": "5-50-1, no output bias, float64",
            "data": "80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]",
            "start": "all weights N(0, std²)",
            "optimizer": f"Adam, full batch, learning rate {RATE:g}, {LAST} steps",
            "theory": "Adam's own time T (least eps, median of the starts up to 0.001) is measured, W = std + rate T; "
            "all else is from the data",
        },
        pictures={
            NAME: maps(found.k_eff, "least k_eff", 50, ("gradient", "halved", "outgrown")),
            f"{NAME}-time": maps(begun, "step at which learning begins", LAST, ("gradient", "doubled", "twice")),
            f"{NAME}-few": maps(found.spread, "participation ratio", 50, ("gradient", "doubled")),
        },
        tables=(_table(found),),
        data={
            name.split(".")[-1]: table.column(name)
            for name in (
                "network.activation", "optimizer.eps", "init.hidden.std", "seed_data", "seed_init", "step", "loss",
                "loss_first", "dense1.k_eff", "dense1.lines", "dense1.condensed", "dense1.participation", "moved",
                "begun", "on_z", "on_signs",
            )
        },
        why=_why(found, claims),
    )  # fmt: skip


RECIPE = Recipe(
    NAME,
    TITLE,
    STATEMENTS,
    experiments,
    measure,
    show,
    "9 x 9 cells and three seeds instead of 17 x 17 and five",
    has_variants=False,
)
