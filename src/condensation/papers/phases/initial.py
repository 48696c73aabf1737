r"""The phase diagram of initial condensation in two-layer networks (Chen et al. 2023).

$f = \sum_k a_k \tanh(w_k x)$ with the initialization of ``two_layer``: std of a
$\beta_1 = m^{-(\gamma + \gamma')/2}$, of w and its bias $\beta_2 = m^{-(\gamma - \gamma')/2}$. The map shows the share
$|\theta_{w,z}|/|\theta_w|$ of the input weights along $z = \frac1n \sum_i y_i x_i$ (the bias's input is 1) when 70% of
the loss is left.

While weights are small, $\dot w = a z$ and $\dot a = z \cdot w$: with s = sinh and c = cosh of the time (in units of
1/|z|), w's part along z becomes $v c + a s$ and a becomes $a c + v s$ from their initial values v and a, and the rest
of w, of D - 1 inputs, stays. The output grows along z by $\sum a v = m (\beta_1^2 + \beta_2^2) s c$ from an
antisymmetric initialization, and the stage ends where that is a number F of the data alone. So with
$\rho = \beta_1^2/\beta_2^2$

$$ \text{share}^2 = \frac{q}{q + D - 1}, \quad q = c^2 + \rho s^2, \quad s c = \frac{F}{m \beta_2^2 (1 + \rho)}, $$

from 1/D, where nothing has moved, to 1. For large m q goes to 1 below the edge $\gamma = 1 + \max(\gamma', 0)$ and to
infinity above it: the edge of the condensed regime of relu networks. At finite m the share is half-way at the edge plus
something in 1/log m: the transition is sharp in the limit, but comes to it slowly.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from ...data import Synthetic
from ...drawing import Boundary, Regime, draw_phase_map, look
from ...drawing._style import PAGE, figure_of, new_axes
from ...experiment import Experiment
from ...initialization import Init, WidthPower
from ...measure._crossing import zeros
from ...networks import Dense
from ...optimizers import GradientFlow
from ...runs import INITIAL_STAGE
from ...saving import At
from ...seeds import as_seeds
from ...sweeps import Sweep, linspace
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing
from .._tables import Table
from ._diagram import ExponentDiagram, by_cell
from .two_layer import FIELDS, edge

WIDTHS = (100, 1000, 10000)
LONG = 1000  # time after which a flow that has not come there is left
Numbers = np.ndarray | float
DEEP, OFF = 0.5, 0.2  # distances from the edge: safely inside the condensed regime, safely outside
WHERE = "Chen et al. 2023"


def needed(x: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """F, how much of $\\sum a_k v_k$ leaves 70% of the loss, and the number of inputs with the bias."""
    inputs = np.c_[x, np.ones(len(x))]
    z = inputs.T @ y
    along = inputs @ (z / np.linalg.norm(z))
    half, square = y @ along / (along @ along), y @ y / (along @ along)
    return float(half - np.sqrt(half**2 - (1 - INITIAL_STAGE) * square)), inputs.shape[1]


def predicted(enough: float, inputs: int, gamma: Numbers, prime: Numbers, m: float) -> Numbers:
    """The share at the end of the initial stage, by linear dynamics."""
    both = 1 + m ** (-2 * prime)  # 1 + rho
    product = enough * m ** (gamma - prime - 1) / both
    square = 2 * product**2 / (1 + np.sqrt(1 + 4 * product**2))  # of s, from s c
    q = 1 + square * both
    return np.sqrt(q / (q + inputs - 1))


def level(inputs: int, part: float = 0.5) -> float:
    """The share that is a part of the way from that of random weights to 1."""
    return inputs**-0.5 + part * (1 - inputs**-0.5)


def contour(enough: float, inputs: int, prime: np.ndarray, m: float) -> np.ndarray:
    """The gamma at which the predicted share is half-way."""
    both, half = 1 + m ** (-2 * prime), level(inputs) ** 2
    square = ((inputs - 1) * half / (1 - half) - 1) / both
    return 1 + prime + np.log(np.sqrt(square * (1 + square)) * both / enough) / np.log(m)


def contours(gamma: np.ndarray, share: np.ndarray, inputs: int, part: float = 0.5) -> np.ndarray:
    """The gamma at which shares (gamma x gamma' x m x ...) are a part of the way to 1."""
    return zeros(gamma, share - level(inputs, part))


def limits(lines: np.ndarray, m: np.ndarray) -> np.ndarray:
    """What contours (gamma' x m x ...) tend to with the width: where a straight line in 1/log m meets zero."""
    x = 1 / np.log(m)
    weights = 1 / len(m) - x.mean() * (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return np.einsum("m,pm...->p...", weights, lines)


class Initial(ExponentDiagram):
    """How much of the weights lies along z when the initial stage ends."""

    name, title = "phase-initial", "Phase diagram of initial condensation"
    sizes: ClassVar = {"quick": (9, 5), "paper": (17, 5)}
    claims = (
        Claim(
            "condensed", WHERE,
            "in the condensed regime nearly all of the input weights lie along z when the initial stage ends",
            f"smallest share at m = {WIDTHS[-1]}, over the cells with γ at least {DEEP:g} above the edge 1 + "
            "max(γ', 0)",
            at_least(0.95),
            lambda figure: PerSeed(figure.shares[figure.beyond >= DEEP - 1e-9][:, -1, :, -1].min(axis=0)),
        ),
        Claim(
            "linear", WHERE, "in the linear regime the loss falls before the input weights turn",
            f"largest change of the share at m = {WIDTHS[-1]} while the loss falls to {INITIAL_STAGE:.0%}, over the "
            f"cells with γ at least {OFF:g} below the edge",
            at_most(0.05), lambda figure: figure.turned(),
        ),
        Claim(
            "edge", WHERE, "for wide networks the two meet at γ = 1 + max(γ', 0), as far as linear dynamics tell",
            "largest distance from there, over γ', of the γ at which the share is half-way to 1, continued to infinite "
            "width by a straight line in 1/log m",
            at_most(0.1), lambda figure: figure.distance(),
            note="The paper's own text was not at hand: the edge is what linear dynamics give.", ours=True,
        ),
        Claim(
            "sharpens", WHERE, "the transition sharpens with the width like 1/log m, to a half from m = 100 to 10000",
            "distance in γ between the shares that are a quarter and three quarters of the way to 1, mean over γ', at "
            f"m = {WIDTHS[-1]} relative to m = {WIDTHS[0]}",
            at_most(0.67), lambda figure: figure.sharpening(), ours=True,
        ),
        Claim(
            "dynamics", WHERE, "linear dynamics give the share itself, in all cells",
            f"largest error of the share at m = {WIDTHS[-1]}", at_most(0.05), lambda figure: figure.share_error(),
            ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def sweep(cls, size: int = 9, seeds: int = 5) -> Sweep:
        """The diagram as a sweep of size x size cells, three widths in each.

        The samples are the corners of a cube, where inputs and bias are uncorrelated: z keeps its direction as the
        loss falls.
        """
        base = Experiment(
            network=Dense((4, WIDTHS[0], 1), "tanh"), init=Init(WidthPower(0.5), WidthPower(0.5), antisymmetric=True),
            data=Synthetic(((3.5, 5, 1),), dim=4, n=16, low=-1, high=1, spacing="even"),
            optimizer=GradientFlow(1.0, stop_ratio=INITIAL_STAGE, rtol=1e-4, atol=1e-12), steps=LONG,
            save=At((0, LONG)), record=At((0, LONG)),
        )  # fmt: skip
        axes = {"gamma": linspace(0.5, 2.5, size), "gamma_prime": linspace(-0.8, 0.8, size), "m": WIDTHS}
        return Sweep(base, axes, FIELDS, as_seeds(seeds), ("share",), at="saved")

    @cached_property
    def needed(self) -> tuple[float, int]:
        """F and D of the sweep's samples, which are the same for all seeds."""
        x, y = self.table.sweep.experiment.data.draw(self.table.seeds[0])
        return needed(x, y[:, 0])

    @cached_property
    def shares(self) -> np.ndarray:
        """The share along z: gamma x gamma' x m x seeds x steps."""
        return self.table.array("dense1.share")

    @cached_property
    def beyond(self) -> np.ndarray:
        """How far gamma is above theory's edge: gamma x gamma'."""
        gamma, prime, _ = self.exponents
        return gamma[:, None] - edge(prime)

    def turned(self) -> PerSeed:
        """The largest change of the share below the edge; it counts where the loss has fallen there."""
        below, loss = self.beyond <= 1e-9 - OFF, self.table.array("loss")
        fell = np.all((loss[..., -1] <= (INITIAL_STAGE + 1e-3) * loss[..., 0])[below], axis=(0, 1))
        change = np.abs(self.shares[..., -1] - self.shares[..., 0])
        return PerSeed(change[below][:, -1].max(axis=0), fell)

    def distance(self) -> PerSeed:
        """How far the half-way line, continued to infinite width, is from the edge."""
        gamma, prime, m = self.exponents
        ends = limits(contours(gamma, self.shares[..., -1], self.needed[1]), m)
        return PerSeed(np.abs(ends - edge(prime)[:, None]).max(axis=0))

    def sharpening(self) -> PerSeed:
        """How wide the transition is at the largest width relative to the smallest."""
        low, high = (contours(self.exponents[0], self.shares[..., -1], self.needed[1], part) for part in (0.25, 0.75))
        width = (high - low).mean(axis=0)  # m, seeds
        return PerSeed(width[-1] / width[0])

    def share_error(self) -> PerSeed:
        """The largest error of the share that linear dynamics give."""
        gamma, prime, m = self.exponents
        theory = np.asarray(predicted(*self.needed, gamma[:, None], prime, m[-1]))
        return PerSeed(np.abs(self.shares[:, :, -1, :, -1] - theory[..., None]).max(axis=(0, 1)))

    def draw(self) -> Drawing:
        """The map at the largest width, with theory's edge, and the half-way lines of theory and as found."""
        gamma, prime, m = self.exponents
        enough, inputs = self.needed
        every = self.shares[..., -1]
        share = np.median(every, axis=-1)  # gamma, gamma', m
        halfway = contours(gamma, share, inputs)  # gamma', m
        fine = np.linspace(prime[0], prime[-1], 200)
        widest = f"m = {WIDTHS[-1]}"
        with look():
            axes = draw_phase_map(
                share[..., -1].T,
                gamma,
                prime,
                new_axes(PAGE * 0.72, 4.2),
                quantity=f"share of the weights along z, {widest}",
                labels=("γ", "γ'"),
                limits=(inputs**-0.5, 1.0),
                boundaries=(
                    Boundary(edge(fine), fine, "theory: edge, infinite width"),
                    Boundary(contour(enough, inputs, fine, m[-1]), fine, f"theory: half-way, {widest}"),
                    Boundary(halfway[:, -1], prime, f"found: half-way, {widest}", found=True),
                    Boundary(limits(halfway, m), prime, "found: half-way, m → ∞", found=True),
                ),
                regimes=(Regime(0.75, -0.5, "linear"), Regime(1.0, 0.62, "linear"), Regime(2.0, -0.3, "condensed")),
            )
        cells = by_cell(gamma=gamma, gamma_prime=prime, m=m, seed=range(every.shape[-1]))
        return Drawing(
            caption="How much of the input weights of two-layer tanh networks lies along z = (1/n) Σ y x when the "
            f"initial stage ends: median over the seeds at {widest}. Random weights have {inputs**-0.5:.2f}. The line "
            "half-way to 1 comes nearer to the edge with the width, but only like 1/log m.",
            pictures={"": figure_of(axes)},
            tables=(_distances(prime, m, halfway, enough, inputs),),
            data=cells | {"share": every.ravel()},
        )


def _distances(prime: np.ndarray, m: np.ndarray, halfway: np.ndarray, enough: float, inputs: int) -> Table:
    """How far the half-way lines are from the edge, by width: as found, and by linear dynamics in brackets."""
    theory = np.stack([contour(enough, inputs, prime, width) for width in m], axis=1)
    rows = [
        (
            f"{prime[p]:g}",
            *(f"{halfway[p, k] - edge(prime)[p]:.2f} ({theory[p, k] - edge(prime)[p]:.2f})" for k in range(len(m))),
        )
        for p in range(len(prime))
    ]
    ends = limits(halfway, m) - edge(prime)
    return Table(
        "γ at which the share is half-way, less that of the edge (in brackets by linear dynamics)",
        ("γ'", *(f"m = {width:g}" for width in m), "infinite width"),
        tuple((*row, f"{end:.2f}") for row, end in zip(rows, ends, strict=True)),
    )
