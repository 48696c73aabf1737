r"""Manifolds that gradient flow never leaves (Zhang, Saxe and Latham, Theorem 3): what the saddles are made of.

A unit is $(u, v)$ in $f = \sum_j v_j \phi(x; u_j)$. Equal units stay equal; a unit of zero stays zero if
$\phi(\cdot; 0) = 0$; units in proportion stay so if $\phi$ is homogeneous; linear ones keep every linear dependence.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...activations import label
from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Given
from ...networks import Dense
from ...optimizers import GradientFlow
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Available, Drawing, PaperFigure
from .modes import PREDICTION

WIDTH, SIZE, STOP = 6, 0.3, 0.5
TARGET = "x1 + 0.5*x2 + 0.5*sin(3*x1)"
OFF = 1e-3  # how far from the manifold the others begin
Units = Float[np.ndarray, "... units 3"]


def equal(units: Units) -> np.ndarray:
    """The second unit less the first."""
    return units[..., 1, :] - units[..., 0, :]


def zero(units: Units) -> np.ndarray:
    """The first unit."""
    return units[..., 0, :]


def proportional(units: Units) -> np.ndarray:
    """The second unit less twice the first."""
    return units[..., 1, :] - 2 * units[..., 0, :]


def dependent(units: Units) -> np.ndarray:
    """The third unit less the sum of the first and half of the second."""
    return units[..., 2, :] - units[..., 0, :] - 0.5 * units[..., 1, :]


KINDS: dict[str, tuple[str, Callable[[Units], np.ndarray], int, str]] = {  # activation, distance, unit, words
    "equal": ("tanh", equal, 1, "two equal units stay equal"),
    "zero": ("tanh", zero, 0, "a unit of zero stays zero"),
    "proportional": ("relu", proportional, 1, "units in proportion stay so"),
    "dependent": ("linear", dependent, 2, "units that depend on each other linearly do so on"),
}


def placed(name: str, away: float) -> Units:
    """Six units, of which one is moved to where it is off its manifold by so much."""
    _, off, moved, _ = KINDS[name]
    units = SIZE * np.random.default_rng(0).standard_normal((WIDTH, 3))
    units[moved] -= off(units)
    units[moved] += away * np.array([1.0, -1.0, 1.0]) / np.sqrt(3)
    return units


def started(name: str, away: float) -> Experiment:
    """A network with its units there; seeds differ in their data."""
    units = placed(name, away)
    weights = {"dense1.weight": units[:, :2], "output.weight": units[None, :, 2]}
    often, data = Evenly(101), Expression(TARGET, dim=2, n=30, low=-1, high=1)
    return Experiment(
        Dense((2, WIDTH, 1), KINDS[name][0], bias=False), Given(weights), data,
        GradientFlow(0.3, stop_ratio=STOP), 3000, save=often, record=often,
    )  # fmt: skip


def _claim(name: str) -> "Claim[Kept]":
    activation, _, _, text = KINDS[name]
    return Claim(
        name, f"{PREDICTION}, Theorem 3", f"{label(activation)}: {text}",
        f"largest distance from there until the loss has fallen to {STOP:.0%}, over the way that the units go",
        at_most(1e-6), lambda figure: PerSeed(figure.distances[name]), lambda figure: figure.in_words(),
    )  # fmt: skip


class Kept(PaperFigure):
    """Networks on four manifolds, and beside them."""

    name, title, paper = "saddle-kept", "Manifolds that gradient flow keeps", "SADDLE"
    has_variants, on_request = False, True
    seed_count: ClassVar = 10
    titles: ClassVar = {name: text for name, (_, _, _, text) in KINDS.items()}
    chosen = (
        "all settings: six units of size 0.3 on 30 samples of a sum of a line and a sine, the flow until half of the "
        "loss "
        "is gone; beside a manifold is 1e-3 from it. Seeds differ in their samples, the first weights are the same"
    )
    claims = (
        *map(_claim, KINDS),
        question(
            "beside",
            "beside them units stay beside: the distance is not drawn to zero either",
            "least distance from a manifold at the end over that at the start, of all four",
            at_least(0.1),
            lambda figure: PerSeed(figure.beside),
            lambda figure: figure.in_words(),
        ),
    )

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """On each manifold, and beside it."""
        return {name: started(name, 0.0) for name in KINDS} | {f"{name}, beside": started(name, OFF) for name in KINDS}

    def units(self, name: str) -> Float[np.ndarray, "seeds saved units 3"]:
        """Input and output weights of each unit."""
        run = self.runs[name]
        return np.concatenate([run.history(1), run.parameters["output.weight"].swapaxes(2, 3)], axis=-1)

    def off(self, name: str) -> Float[np.ndarray, "seeds saved"]:
        """The distance from the manifold at the saved steps."""
        return np.linalg.norm(KINDS[name.split(",")[0]][1](self.units(name)), axis=-1)

    @cached_property
    def distances(self) -> Available[Float[np.ndarray, " seeds"]]:
        """The largest of them over the way that all units go; NaN where the loss has not fallen."""

        def of(name: str, run) -> np.ndarray:
            units = self.units(name)
            way = np.linalg.norm(units[:, -1] - units[:, 0], axis=(1, 2))
            fell = run.loss[:, -1] <= (STOP + 0.05) * run.loss[:, 0]
            return np.where(fell, self.off(name).max(axis=1) / np.maximum(way, 1e-300), np.nan)

        return self.runs.each(of)

    @property
    def beside(self) -> Float[np.ndarray, " seeds"]:
        """The least growth of the distance of the runs beside a manifold; NaN where a loss has not fallen."""
        found = []
        for name in KINDS:
            off, fell = self.off(f"{name}, beside"), np.isfinite(self.distances[f"{name}, beside"])
            found.append(np.where(fell, off[:, -1] / off[:, 0], np.nan))
        return np.min(found, axis=0)

    def in_words(self) -> str:
        """All medians."""
        parts = (
            f"{name}: {np.median(self.distances[name]):.1g} on it, grown {np.median(off[:, -1] / off[:, 0]):.2g} times "
            f"beside it, loss {np.median(self.runs[name].loss[:, -1] / self.runs[name].loss[:, 0]):.2g} of the first"
            for name in KINDS
            for off in (self.off(f"{name}, beside"),)
        )
        return f"Distances over the way, medians. {'; '.join(parts)}."

    def draw(self) -> Drawing:
        """Distances over the loss."""
        with look():
            picture = Figure(figsize=(PAGE, 2.3), layout="constrained")
            for axes, name in zip(picture.subplots(1, len(KINDS), sharey=True), KINDS, strict=True):
                for each, colour in zip((name, f"{name}, beside"), COLOURS, strict=False):
                    run = self.runs[each]
                    loss = run.loss[:, np.searchsorted(run.recorded, run.saved)] / run.loss[:, :1]
                    axes.semilogy(loss.T, np.maximum(self.off(each), 1e-17).T, color=colour, alpha=0.5, linewidth=0.8)
                axes.set(
                    title=f"{name}, {label(KINDS[name][0])}", xlabel="loss over the first", xlim=(1.02, STOP - 0.02)
                )
            picture.axes[0].set_ylabel("distance from the manifold")
        return Drawing(
            caption="Distance of units from four manifolds while gradient flow halves the loss, each seed: on the "
            "manifold "
            "at the start (blue; what is below 1e-17 is drawn there), and beside it.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
