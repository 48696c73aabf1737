"""Adam's eps against the size of the initialization: where eps matters, and what it does to condensation.

There are two lines in the map. Where eps is the initial gradient, Adam ceases to be sign descent: beyond, it is descent
of the rate/eps. That alone costs no time, as this rate is huge; only where eps is larger than the initial gradient by
as much as the weights at which learning begins are larger than the initial ones (p = 2) learning is late (the theory
is in ``theory._adam_growth``).
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ...activations import label
from ...drawing import Boundary, Mark, draw_phase_maps
from ...measure._crossing import crossing, factor
from ...measure._similarity import norms
from ...optimizers import Adam
from ...runs import INITIAL_STAGE, Trajectory
from ...saving import At, Geometric
from ...seeds import as_seeds
from ...sweeps import Sweep, SweepTable, logspace
from ...theory._adam_growth import Scales, doubling, outgrowing, pull, scales, with_bias
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing
from .._tables import Table
from ..fc.experiments import fig3
from ._diagram import PhaseDiagram

WHERE = "Adam's eps against the start"
ACTIVATIONS = ("tanh", "x_tanh", "x2_tanh")
INPUTS = 6
RATE = 1e-3
LAST = 2048
SAVED = tuple(2**k for k in range(12))
BEGUN = 0.99  # of the first loss: learning has begun
SMALL = 1e-3  # initial weights up to this std are small: Adam has outgrown them when learning begins
CAPTION = Mark(1e-8, 0.005, "FC Fig. 3")
FEW = 5.0  # k_eff up to which a layer is on few lines
APART = 3.0  # cells within this factor of a boundary are of neither side; so far boundaries may be off


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


def _over(reduce: Callable[[np.ndarray], Any], values: np.ndarray, chosen: np.ndarray) -> PerSeed:
    """In each seed (axis 2) a reduction of the values of the chosen cells, NaN where none are."""
    cells = [(np.take(values, k, 2), np.take(chosen, k, 2)) for k in range(values.shape[2])]
    return PerSeed([float(reduce(own[where])) if where.any() else float("nan") for own, where in cells])


def _at(values: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Values at a step of each cell and seed, eps last."""
    return np.moveaxis(np.take_along_axis(values, step[..., None], -1)[..., 0], 1, -1)


class _EpsMap:
    """The table as arrays, activations x stds x seeds x eps; lines of theory have an eps for each std, and 1 last."""

    def __init__(self, table: SweepTable) -> None:
        self.table, self.data = table, table.sweep.experiment.data
        self.names = table.sweep.axes["network.activation"]
        self.eps, self.stds = (np.array(table.sweep.axes[name], float) for name in ("optimizer.eps", "init.hidden.std"))
        loss, k_eff = table.array("loss"), table.array("dense1.k_eff")
        self.left = loss / loss[..., :1]
        most = (
            np.where(self.left >= INITIAL_STAGE, k_eff, np.inf)[..., 1:].argmin(axis=-1) + 1
        )  # the most condensed step
        self.k_eff, self.spread = (_at(table.array(f"dense1.{name}"), most) for name in ("k_eff", "participation"))
        self.begun = np.moveaxis(table.array("begun")[..., -1], 1, -1)
        self.small = self.stds <= SMALL * (1 + 1e-9)
        self.own = np.median(self.begun[..., 0][:, self.small], axis=1)  # Adam's own time: activations x seeds
        samples = [with_bias(*self.data.draw(seed)) for seed in table.seeds]
        self.scales = [[scales(*sample, name) for sample in samples] for name in self.names]
        self.gradient = self._theory(lambda scale, own: scale.gradient * self.stds**scale.p)
        self.doubled = self._theory(lambda scale, own: doubling(self.stds, own, scale, RATE))
        self.outgrown = self._theory(lambda scale, own: outgrowing(self.stds, LAST, scale, INPUTS, RATE))
        self.own_cells = self.own[:, None, :, None]
        self.chosen = self.small[:, None, None] & np.ones_like(self.doubled, bool)  # the cells of small stds
        self.delay = self.own_cells * self.eps / self.doubled  # in steps, by theory
        self.inside = self.chosen & (self.eps <= self.outgrown / APART)
        first = np.moveaxis(table.array("moved")[..., 1], 1, -1) / RATE
        self.gradient_found = np.exp(crossing(np.log(self.eps), first, 0.5, falling=True))
        least = np.fmin(self.own[:, None], self.begun[..., 0])[..., None]
        late = np.log(np.maximum(self.begun / least - 1, 1e-3))
        self.doubled_found = np.exp(crossing(np.log(self.eps), late, 0.0))

    def _theory(self, line: Callable[[Scales, float], np.ndarray]) -> np.ndarray:
        pairs = [zip(*row, strict=True) for row in zip(self.scales, self.own, strict=True)]
        return np.swapaxes(np.array([[line(*pair) for pair in row] for row in pairs]), 1, 2)[..., None]

    def first_step_error(self) -> PerSeed:
        chosen = self.chosen & (self.gradient > APART * self.eps[0])
        return _over(np.max, factor(self.gradient_found[..., None], self.gradient), chosen)

    def as_good_between(self) -> PerSeed:
        between = self.chosen & (self.eps >= 10 * self.gradient) & (self.eps <= self.doubled / 10)
        as_good = (self.k_eff <= 1.5 * self.k_eff[..., :1]) & (self.begun <= 1.5 * self.own_cells)
        return _over(np.mean, as_good, between)

    def delay_error(self) -> PerSeed:
        late = self.chosen & (self.delay >= self.own_cells) & (self.own_cells + self.delay <= LAST / 2)
        return _over(np.max, factor(self.begun - self.own_cells, self.delay), late)

    def doubled_error(self) -> PerSeed:
        return _over(np.max, factor(self.doubled_found[..., None], self.doubled), self.chosen)

    def few_inside(self) -> PerSeed:
        outside = self.chosen & (self.eps >= self.outgrown * APART)
        return _over(np.mean, (self.k_eff <= FEW) == self.inside, self.inside | outside)

    def on_their_line(self) -> PerSeed:
        before = (self.left >= BEGUN).sum(axis=-1) - 1  # the last step before learning begins
        on_z, on_signs = (_at(self.table.array(name), before)[:1] for name in ("on_z", "on_signs"))
        z = np.abs([pull(*with_bias(*self.data.draw(seed))) for seed in self.table.seeds]).T
        low, high = (RATE * self.own_cells * size[:, None] for size in (z.min(axis=0), np.linalg.norm(z, axis=0)))
        signs, flow = (self.chosen & (self.eps <= low / 10))[:1], (self.inside & (self.eps >= high))[:1]
        on_own = np.where(signs, on_signs > np.maximum(on_z, 0.95), on_z > np.maximum(on_signs, 0.95))
        return _over(np.mean, on_own, signs | flow)

    def spread_where_late(self) -> PerSeed:
        taken = self.chosen & (self.delay >= APART * self.own_cells) & np.isfinite(self.begun)
        return _over(np.median, self.spread[1:], taken[1:])

    def doubling_off(self) -> str:
        off = (self.doubled_found / self.doubled[..., 0])[:, self.small]
        return (
            f"The eps that doubles the time is {np.nanmin(off):.2f} to {np.nanmax(off):.2f} of the predicted one. The "
            "law is of neurons of one size on the fastest line and leaves out Adam's moments; an initialization has "
            "neurons of all sizes. Where the delay is longer than Adam's own time, the law holds (phase-eps-delay)."
        )


class Eps(PhaseDiagram):
    """Condensation over eps and std, for three activations."""

    name, title = "phase-eps", "Adam's eps against the initialization"
    claims = (
        Claim(
            "first", WHERE,
            "Adam's first step is half of its learning rate where eps is the mean gradient of the start, which goes "
            "with std^p",
            "largest factor between that eps and the one predicted from the data, over activations and small starts",
            at_most(APART), lambda figure: figure.map.first_step_error(), ours=True,
        ),
        Claim(
            "same", WHERE,
            "a gradient below eps alone changes nothing: between the two lines (a factor 10 from both) networks "
            "condense as far and learn as soon as with the least eps",
            "share of these cells with k_eff and the step at which learning begins at most 1.5 times those",
            at_least(0.9), lambda figure: figure.map.as_good_between(), ours=True,
        ),
        Claim(
            "delay", WHERE,
            "eps delays learning by eps I_p/(ηΛ) steps: a time that depends on the start by its logarithm (p = 1), "
            "goes with its inverse (p = 2), with its inverse square (p = 3)",
            "largest factor between found and predicted delay, over the cells of small starts where it is predicted to "
            "be longer than Adam's own time and within half of the training",
            at_most(APART), lambda figure: figure.map.delay_error(), ours=True,
        ),
        Claim(
            "doubled", WHERE, "so learning begins twice as late where eps is Λ(W - std)/I_p",
            "largest factor between that eps and the predicted one, over activations and small starts", at_most(APART),
            lambda figure: figure.map.doubled_error(), why=lambda figure: figure.map.doubling_off(), ours=True,
        ),
        Claim(
            "side", WHERE,
            "small starts condense where the weights outgrow them within the training by the same law, and only there",
            "share of the cells, those near that line left out, with k_eff at most 5 on one side, above on the other",
            at_least(0.9), lambda figure: figure.map.few_inside(), ours=True,
        ),
        Claim(
            "line", WHERE,
            "it is not the same line (tanh): the signs of z where eps is below the gradients at which learning begins, "
            "in each coordinate and by a factor 10, z itself where it is above them",
            "share of these cells whose neurons are nearer to theirs, at a mean |cos| of 0.95", at_least(0.9),
            lambda figure: figure.map.on_their_line(), ours=True,
        ),
        Claim(
            "few", WHERE,
            "where eps delays x tanh x and x² tanh x by more than three times Adam's own time, few neurons take all "
            "the norm, as in gradient flow",
            "participation ratio of the 50 neurons, median of these cells", at_most(10),
            lambda figure: figure.map.spread_where_late(), ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def sweep(cls, size: int = 9, seeds: int = 3) -> Sweep:
        """The diagram as a sweep of size x size cells for each activation."""
        base = fig3("tanh").replace(steps=LAST, save=At((0, *SAVED)), record=Geometric(20), optimizer=Adam(RATE))
        axes = {
            "network.activation": ACTIVATIONS,
            "optimizer.eps": logspace(1e-11, 10, size),
            "init.hidden.std": logspace(1e-6, 0.1, size),
        }
        return Sweep(base, axes, {}, as_seeds(seeds), ("lines", "rank", growth), at="saved")

    @cached_property
    def map(self) -> _EpsMap:
        """The table as arrays, with theory's lines and those that were found."""
        return _EpsMap(self.table)

    def boundaries(self) -> dict[str, dict[str, Boundary]]:
        """Theory's lines and those that were found, medians over the seeds, by panel and name."""
        stds = np.geomspace(self.map.stds[0], self.map.stds[-1], 200)
        halved, twice = (np.median(line, axis=2) for line in (self.map.gradient_found, self.map.doubled_found))
        panels = {}
        for k, name in enumerate(self.map.names):
            pairs = list(zip(self.map.scales[k], self.map.own[k], strict=True))
            lines = {
                "gradient": ("theory: initial gradient = eps", [each.gradient * stds**each.p for each, _ in pairs]),
                "doubled": ("theory: learning twice as late", [doubling(stds, own, each, RATE) for each, own in pairs]),
                "outgrown": (
                    f"theory: initial weights outgrown by step {LAST}",
                    [outgrowing(stds, LAST, each, INPUTS, RATE) for each, _ in pairs],
                ),
            }
            panels[label(name)] = {
                key: Boundary(np.median(eps, axis=0), stds, text) for key, (text, eps) in lines.items()
            } | {
                "halved": Boundary(halved[k], self.map.stds, "found: first step halved", found=True),
                "twice": Boundary(twice[k], self.map.stds, "found: learning twice as late", found=True),
            }
        return panels

    def powers_table(self) -> Table:
        """The powers of std with which eps goes along the lines, over small initial weights."""
        stds = np.log(self.map.stds[self.map.small])

        def power(eps: np.ndarray) -> str:
            line = np.log(np.median(eps[self.map.small], axis=1))
            known = np.isfinite(line)
            return f"{np.polyfit(stds[known], line[known], 1)[0]:.2f}" if known.sum() > 1 else "-"

        lines = (self.map.gradient[..., 0], self.map.gradient_found, self.map.doubled[..., 0], self.map.doubled_found)
        header = ("Adam's own time", "halved: predicted", "halved: found", "late: predicted", "late: found")
        return Table(
            "Steps until learning begins with the least eps, and the powers of std with which the eps goes that halves "
            "the first step, and the one that makes learning twice as late",
            ("activation", *header),
            tuple(
                (label(name), f"{np.median(self.map.own[k]):.0f}", *(power(line[k]) for line in lines))
                for k, name in enumerate(self.map.names)
            ),
        )

    def draw(self) -> Drawing:
        """Maps of k_eff, of the step at which learning begins, and of how many neurons take the norm."""
        begun = np.where(np.isnan(self.map.begun), LAST, self.map.begun)
        boundaries = self.boundaries()
        maps = {
            "": (self.map.k_eff, "least k_eff", 50, ("gradient", "halved", "outgrown")),
            "time": (begun, "step at which learning begins", LAST, ("gradient", "doubled", "twice")),
            "few": (self.map.spread, "participation ratio", 50, ("gradient", "doubled")),
        }
        pictures = {}
        for part, (values, quantity, high, names) in maps.items():
            middle = np.clip(np.median(values, axis=2), 1.0, high)
            pictures[part] = draw_phase_maps(
                {label(name): middle[k] for k, name in enumerate(self.map.names)},
                self.map.eps,
                self.map.stds,
                quantity=quantity,
                labels=("Adam's eps", "std of the initialization"),
                marks=(CAPTION,),
                boundaries={panel: [lines[name] for name in names] for panel, lines in boundaries.items()},
                limits=(1, high),
                logarithmic=True,
            )
        return Drawing(
            caption=f"Adam's eps against the std of the initialization, medians over {len(self.table.seeds)} seeds. "
            "First the effective number of lines at the most condensed saved step of the initial stage; then the step "
            f"at which 1% of the loss is gone ({LAST} where it is not by then); then how many neurons the norm is "
            "spread over (participation ratio), at the step of the first map. Right of the first line the initial "
            "gradients are below eps; nothing comes of it until the second one, where learning takes twice as long. "
            "Beyond, Adam is gradient descent: tanh condenses on z instead of its signs, of x tanh x and x² tanh x few "
            "neurons take all the norm, and further right the weights do not outgrow their initial size in these "
            "steps.",
            pictures=pictures,
            tables=(self.powers_table(),),
            data=self.columns(
                "network.activation", "optimizer.eps", "init.hidden.std", "seed_data", "seed_init", "step", "loss",
                "loss_first", "dense1.k_eff", "dense1.lines", "dense1.condensed", "dense1.participation", "moved",
                "begun", "on_z", "on_signs",
            ),
            settings_extra={
                "theory": "Adam's own time T (least eps, median of the stds up to 0.001) is measured, W = std + rate "
                "T; all else is from the data"
            },
        )  # fmt: skip
