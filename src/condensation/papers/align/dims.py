"""One relu neuron's data with more inputs (Chistikov, Englert and Lazic): alignment, dead neurons, one direction.

With n = d samples in a cone the least singular values are far below 0.01, and the loss would take millions of steps for
its end. What the theory says of the time until it falls is seen in a thousand.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...data import Drawn
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...networks import Dense
from ...optimizers import GD
from ...saving import Geometric
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._counts import stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._cone import cone16, cone64
from .cone import EARLY, EARLY_STEPS, LATER, PART, SETTINGS, SMALL, WHERE, Cone, rank_correlation

DATA = {16: cone16, 64: cone64}
POWERS, STEPS = (5, 9, 13), 1000


def _claims(dim: int) -> "tuple[Claim[Dims], ...]":
    return (
        Claim(
            f"{dim}-aligned", WHERE,
            f"{dim} inputs: neurons of positive output weight come within λ^ε of γ by the time ε ln(1/λ)/|γ|",
            f"largest 1 - cos of those active at first, over λ^ε, at that time, {SMALL}", at_most(1),
            lambda figure: PerSeed(figure.cones[dim].early_gaps), lambda figure: figure.in_words(dim),
        ),
        Claim(
            f"{dim}-negative", WHERE, f"{dim} inputs: those of negative output weight die",
            "share of those active at first that are active on any sample at the end, at the smallest λ", exactly(0),
            lambda figure: PerSeed(figure.cones[dim].survivors[-1], valid=figure.fallen[dim][-1]),
            lambda figure: figure.in_words(dim),
        ),
        Claim(
            f"{dim}-one", WHERE, f"{dim} inputs: as λ goes to 0 the network becomes one neuron",
            "largest angle of an active neuron to the mean of all, in degrees, at the end and the smallest λ",
            at_most(1), lambda figure: PerSeed(figure.spread[dim][-1], valid=figure.fallen[dim][-1]),
            lambda figure: figure.in_words(dim),
        ),
        Claim(
            f"{dim}-falls", WHERE, f"{dim} inputs: the largest angle falls with λ",
            "rank correlation of λ and this angle", at_least(0.999),
            lambda figure: PerSeed([rank_correlation(figure.scales, own) for own in figure.spread[dim].T]),
            lambda figure: figure.in_words(dim),
        ),
    )  # fmt: skip


class Dims(PaperFigure):
    """The networks of align-cone on 16 and on 64 inputs."""

    name, title, paper = "align-cone-dims", "One relu neuron's data, 16 and 64 inputs", "ALIGN"
    has_variants, on_request = False, True
    seed_count: ClassVar = 10
    chosen = (
        "16 and 64 of the text's 4 to 1024 inputs, the samples' law as in align-cone; rate 0.1, and 1000 steps in "
        "place of up to 2e7: a time of 100, in which the loss falls and all neurons have turned or died, and not to "
        f"the end of training; what counts as one neuron; {LATER}"
    )
    claims = tuple(claim for dim in DATA for claim in _claims(dim))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Both numbers of inputs at each scale of the start, the largest first."""
        width, rate, _ = SETTINGS[scale]
        often = Geometric(60)
        steps = {f"4^-{power}": STEPS for power in POWERS} | {EARLY: EARLY_STEPS}
        return {
            f"{dim}, {name}": Experiment(
                Dense((dim, width, 1), "relu", bias=False),
                Init(Normal(4.0 ** int(name.split("^")[1]) / (dim * width) ** 0.5), balance="balanced"), Drawn(data),
                GD(rate), steps[name], save=often, record=often,
            )
            for dim, data in DATA.items() for name in steps
        }  # fmt: skip

    @cached_property
    def cones(self) -> dict[int, Cone]:
        """The runs of each number of inputs, measured as those of four."""
        names = [*(f"4^-{power}" for power in POWERS), EARLY]
        own = {dim: {name: self.runs[f"{dim}, {name}"] for name in names} for dim in DATA}
        return {dim: Cone(Available(runs), scale=self.scale) for dim, runs in own.items()}

    @property
    def scales(self) -> Float[np.ndarray, " scales"]:
        """The scales λ, the largest first."""
        return 4.0 ** -np.array(POWERS)

    @cached_property
    def fallen(self) -> dict[int, np.ndarray]:
        """Whether 90% of the loss is gone at the end: scales x seeds."""
        return {dim: np.array([run.loss[:, -1] < 0.1 * run.loss[:, 0] for run in cone.scaled.values()])
                for dim, cone in self.cones.items()}  # fmt: skip

    @cached_property
    def spread(self) -> dict[int, Float[np.ndarray, "scales seeds"]]:
        """The largest angle of an active neuron to the mean of all, by |a|w, in degrees, at the end."""
        found = {}
        for dim, cone in self.cones.items():
            rows = []
            for name, run in cone.scaled.items():
                active = cone.active(name, -1)
                weights = np.where(active[..., None], run.history(1)[:, -1], 0)
                sizes = np.abs(run.parameters["output.weight"][:, -1, 0])
                mean = np.einsum("su,sui->si", sizes, weights)
                lengths = np.linalg.norm(weights, axis=-1) * np.linalg.norm(mean, axis=-1)[:, None]
                products = np.einsum("sui,si->su", weights, mean)
                cosines = np.clip(products / np.where(lengths > 0, lengths, 1), -1, 1)
                rows.append(np.degrees(np.where(active, np.arccos(cosines), 0).max(1)))
            found[dim] = np.array(rows)
        return found

    @cached_property
    def due(self) -> dict[int, Float[np.ndarray, "scales seeds"]]:
        """The share of these neurons that are within λ^ε at that time."""
        each = {dim: cone.gaps_of_neurons for dim, cone in self.cones.items()}
        return {dim: (gaps <= 1).sum(-1) / np.isfinite(gaps).sum(-1) for dim, gaps in each.items()}

    def in_words(self, dim: int) -> str:
        """Medians by the scale of the start."""
        cone = self.cones[dim]
        parts = (
            f"λ = {name}: largest 1 - cos over λ^ε {np.median(gap):.2g}, {np.median(due):.0%} of the neurons within, "
            f"negative ones alive {np.median(alive):.2g}, largest angle {np.median(angle):.2g}°"
            for name, gap, due, alive, angle in zip(
                cone.scaled, cone.gaps, self.due[dim], cone.survivors, self.spread[dim], strict=True
            )
        )
        return (
            f"Medians. {'; '.join(parts)}. Neurons that are active on few samples at first turn later, by a time that "
            "does not depend on λ; some of them still do when the loss, and with it their pace, is gone. Largest 1 - "
            f"cos over λ^ε at {SMALL}: {', '.join(f'{gap:.2g}' for gap in cone.early_gaps)}."
        )

    def draw(self) -> Drawing:
        """Losses, gaps and angles."""
        with look():
            picture = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, middle, right = picture.subplots(1, 3)
            for (dim, cone), colour in zip(self.cones.items(), COLOURS, strict=False):
                for run in cone.scaled.values():
                    time = run.recorded[1:] * SETTINGS[self.scale][1]
                    curves = (run.loss / run.loss[:, :1])[:, 1:]
                    left.loglog(time, curves.T, color=colour, alpha=0.3, linewidth=0.7)
                left.plot([], [], color=colour, label=f"{dim} inputs")
                middle.semilogx(self.scales, cone.gaps, ".-", color=colour, alpha=0.4, linewidth=0.7)
                right.loglog(self.scales, self.spread[dim], ".-", color=colour, alpha=0.4, linewidth=0.7)
            middle.axhline(1, color=FAINT, linestyle=":")
            left.set(xlabel="time (rate x steps)", ylabel="loss over the first")
            middle.set(xlabel="λ", ylabel="(1 - cos) / λ^ε when due", yscale="log")
            right.set(xlabel="λ", ylabel="largest angle, degrees")
            picture.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return Drawing(
            caption="Relu networks on as many samples as inputs, in a cone, with the outputs of one neuron, from "
            "balanced weights of three scales λ. Left: loss of each seed. Middle: the largest 1 - cos to γ at the time "
            "that theory tells, over what it allows (dotted). Right: largest angle of an active neuron to the mean of "
            "all at the end.",
            pictures={"": picture},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={"ε": f"{PART:g}"},
        )

    def _table(self) -> Table:
        rows = [
            (
                f"{dim}", name, f"{np.median(cone.gaps[k]):.2g}", f"{np.median(self.due[dim][k]):.2f}",
                f"{np.median(cone.survivors[k]):.2g}",
                f"{np.median(self.spread[dim][k]):.2g}°",
            )
            for dim, cone in self.cones.items() for k, name in enumerate(cone.scaled)
        ]  # fmt: skip
        header = "inputs", "λ", "1 - cos over λ^ε", "share of neurons within", "negative ones alive", "largest angle"
        return Table("By inputs and scale, medians", header, tuple(rows))

    def _data(self) -> dict[str, np.ndarray]:
        return stack_columns(
            {
                f"{dim}, {name}": {
                    "seed": np.arange(self.seeds), "gap": cone.gaps[k], "alive": cone.survivors[k],
                    "angle": self.spread[dim][k],
                }
                for dim, cone in self.cones.items() for k, name in enumerate(cone.scaled)
            },
            "network",
        )  # fmt: skip
