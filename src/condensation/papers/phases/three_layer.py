r"""The phase diagram of three-layer relu networks, layer by layer (after Zhou et al. 2022).

$f = a^T \sigma(W_2\, \sigma(W_1 x))$ with two hidden layers of m units, and stds $\beta_1, \beta_2, \beta_3$ of $W_1$,
$W_2$ and a. Without biases the network is homogeneous in each layer, and exponents of m fix its flow but for the time.
The usual initializations have $\beta_2 \sim \beta_3$, which leaves two exponents:
$\gamma = -\log(\beta_1 \beta_2 \beta_3)/\log m$ (the paper's $\gamma_3$) and
$\gamma' = -\log(\beta_3/\beta_1)/\log m$ (defined here, as for two layers). RD of a layer is $|W - W(0)|/|W(0)|$ at the
end of training, and the maps show the slope of log RD against log m.

What scaling says. A layer's size, its largest singular value, starts at $e_l \sim \sqrt m\, \beta_l$. Training adds a
part of rank one to each layer, and the differences of squares $|W_1|^2 - |W_2|^2$ and $|W_2|^2 - |a|^2$ are conserved.
So layers end like vessels filled to one level E: those that start below end at E, the others stay about where they are,
and the product of the three sizes is then of order 1. A layer that is filled has RD $E/e_l$; of one that starts above,
$e_l^2$ changes by as much as the smallest's square, and RD is $E \max(E, e_{min})/e_l^2$. As the initial norm of
$W_2$ is not $e_2$ but $\sqrt m\, e_2$, its RD is smaller by $\sqrt m$, and it condenses later.

The initialization is not antisymmetric: units in pairs with opposite output weights pass nothing back to the first
layer until they part, which changes its RD. Instead $\gamma > 1$, where the first output is below the targets.
"""

from functools import cached_property

import numpy as np

from ...data import Synthetic
from ...drawing import Boundary, Mark, Regime, draw_phase_maps
from ...experiment import Experiment
from ...initialization import Init, WidthPower
from ...measure._crossing import zeros
from ...networks import Dense
from ...optimizers import GradientFlow
from ...saving import At
from ...seeds import as_seeds
from ...sweeps import Sweep, linspace
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing
from ._diagram import ExponentDiagram, by_cell

WIDTHS = (50, 140, 400)
LAYERS = ("dense1", "dense2")
STOP = 0.2  # of the first loss: the end of training
LONG = 100_000  # steps after which a flow that has not come there is left
NEAR = 0.3  # what an error of 0.1 does to the zero of a slope that rises by 1/3 a unit of gamma, as both do beyond
NAMED = (Mark(1.5, 0.0, "Xavier"), Mark(2.0, 0.0, "mean-field"))  # NTK (1, 0) and LeCun, He (1, 0.5) are further left
WHERE = "Zhou et al. 2022"


def exponents(gamma: np.ndarray | float, prime: np.ndarray | float) -> np.ndarray:
    """The powers of m that RD of W1 and of W2 go with: 2 x cells."""
    outer = 0.5 - (gamma - 2 * prime) / 3, 0.5 - (gamma + prime) / 3
    sizes = np.stack(np.broadcast_arrays(outer[0], outer[1], outer[1]))  # log e_l / log m
    low, middle, high = np.sort(sizes, axis=0)
    one, two = -(middle + high), -high / 2  # the level where one or two layers rise to it
    level = np.where(one <= middle, one, np.where(two <= high, two, 0.0))
    change = np.where(sizes < level, level - sizes, level + np.maximum(level, low) - 2 * sizes)
    return np.stack([change[0], change[1] - 0.5])


def edges(prime: np.ndarray) -> np.ndarray:
    """The gamma beyond which RD of W1 and of W2 grows with the width: 2 x cells."""
    return np.stack([1.5 + 2 * np.maximum(prime, 0.0), 3 - np.minimum(prime, 0.5)])


class ThreeLayer(ExponentDiagram):
    """Where the slope of log RD against log m changes sign, for each hidden layer."""

    name, title = "phase-three-layer", "Phase diagram of three-layer networks"
    claims = (
        Claim(
            "first", WHERE,
            "the first layer condenses from γ = 1.5 on where γ' = 0, and by scaling from γ = 1.5 + 2 max(γ', 0) "
            "elsewhere",
            "largest distance of the zero of W1's slope from there, over γ'", at_most(NEAR),
            lambda figure: PerSeed(figure.distance[0].max(axis=0)),
        ),
        Claim(
            "second", WHERE, "the second layer condenses only from γ = 3 - γ' on, beyond γ' = 0.5 from γ = 2.5",
            "largest distance of the zero of W2's slope from there, over γ'", at_most(NEAR),
            lambda figure: PerSeed(figure.distance[1].max(axis=0)), ours=True,
        ),
        Claim(
            "apart", WHERE, "layers of one network can be in different regimes",
            f"share of the cells between the two edges, at least {NEAR:g} from both, in which the layers' slopes have "
            "the opposite signs that are predicted",
            at_least(0.99), lambda figure: PerSeed(figure.right[:, figure.between].min(axis=0).mean(axis=0)),
        ),
        Claim(
            "regimes", WHERE, "RD of each layer falls with the width on one side of its edge and grows on the other",
            f"share of the cells of both maps, at least {NEAR:g} from the edge, whose slope has the sign of their "
            "regime",
            at_least(0.99), lambda figure: PerSeed(figure.right[figure.clear].mean(axis=0)),
        ),
        Claim(
            "exponents", WHERE, "both slopes are those of layers filled to one level, in all cells",
            "largest error of a slope, over both maps", at_most(0.1),
            lambda figure: PerSeed(figure.errors.max(axis=(0, 1, 2))), note=lambda figure: figure.scatter(), ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def sweep(cls, size: int = 9, seeds: int = 3) -> Sweep:
        """The diagram as a sweep of size x size cells, three widths in each.

        The flow's tolerance is loose: relu's units stick at their samples, where a tight one takes a hundred times as
        many steps for the same RD. Its first step is no longer than a step of the experiment, a tenth of the time in
        which the initial network, linearised, would fit: a longer one throws a small W1 far beyond where it is to end.
        """
        law = WidthPower(0.5)
        base = Experiment(
            network=Dense((2, WIDTHS[0], WIDTHS[0], 1), "relu", bias=False), init=Init((law, law), law),
            data=Synthetic(((0.9, 1.5, 0.2),), dim=2, n=4, low=-1, high=1, spacing="even"),
            optimizer=GradientFlow(1.0, stop_ratio=STOP, rtol=1e-2, atol=1e-9), steps=LONG, save=At((0, LONG)),
            record=At((0, 1, LONG)),
        )  # fmt: skip
        axes = {"gamma": linspace(1.2, 4.0, size), "gamma_prime": linspace(-0.6, 1.0, size), "m": WIDTHS}
        fields = {
            "init.hidden.0.gamma": "(gamma - 2 * gamma_prime) / 3",
            "init.hidden.1.gamma": "(gamma + gamma_prime) / 3",
            "init.output.gamma": "(gamma + gamma_prime) / 3",
            "network.widths.1": "m",
            "network.widths.2": "m",
            "optimizer.time_step": "0.1 * m ** (2 / 3 * min(2 * gamma - gamma_prime, 2 * gamma + 2 * gamma_prime) - 2)",
        }
        return Sweep(base, axes, fields, as_seeds(seeds), ("change",), at="saved")

    @cached_property
    def slopes(self) -> np.ndarray:
        """The slope of log RD against log m of each layer: 2 x gamma x gamma' x seeds.

        A flow that its integrator gave up is left out where two other widths are left.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.log(np.stack([self.table.array(f"{layer}.change")[..., -1] for layer in LAYERS]))
        there = np.isfinite(change)
        x = np.where(there, np.log(self.exponents[2])[:, None], np.nan)
        with np.errstate(invalid="ignore"):
            count = np.maximum(there.sum(axis=-2, keepdims=True), 1)
            centred = np.where(there, x - np.nansum(x, axis=-2, keepdims=True) / count, 0.0)
            slope = (centred * np.where(there, change, 0.0)).sum(axis=-2) / (centred**2).sum(axis=-2)
        return np.where(there.sum(axis=-2) >= 2, slope, np.nan)

    @cached_property
    def distance(self) -> np.ndarray:
        """How far each slope's zero is from theory's edge: 2 x gamma' x seeds."""
        gamma, prime, _ = self.exponents
        return np.abs(np.stack([zeros(gamma, slope) for slope in self.slopes]) - edges(prime)[..., None])

    @cached_property
    def beyond(self) -> np.ndarray:
        """How far gamma is above each layer's edge: 2 x gamma x gamma'."""
        gamma, prime, _ = self.exponents
        return gamma[:, None] - edges(prime)[:, None]

    @cached_property
    def clear(self) -> np.ndarray:
        """The cells that are not near the edge."""
        return np.abs(self.beyond) >= NEAR - 1e-9

    @cached_property
    def between(self) -> np.ndarray:
        """The cells between the two edges."""
        return self.clear.all(axis=0) & (self.beyond[0] * self.beyond[1] < 0)

    @cached_property
    def right(self) -> np.ndarray:
        """Whether a slope has the sign of its regime; NaN where there is no slope."""
        signs = np.sign(self.slopes) == np.sign(self.beyond)[..., None]
        return np.where(np.isnan(self.slopes), np.nan, signs)

    @cached_property
    def errors(self) -> np.ndarray:
        """The errors of theory's slopes."""
        gamma, prime, _ = self.exponents
        return np.abs(self.slopes - exponents(gamma[:, None], prime)[..., None])

    def scatter(self) -> str:
        """What must be known of the errors."""
        change = self.table.array("dense1.change")[..., 0, :, -1]  # of the smallest width: gamma, gamma', seeds
        spread = float(np.nanmedian(np.nanstd(change, axis=-1) / np.nanmean(change, axis=-1)))
        return (
            f"The median error is {np.nanmedian(self.errors):.2f}. A slope is of one initialization a width, and W1's "
            f"RD at m = {WIDTHS[0]} scatters by {spread:.0%} between initializations; near γ = 1.5, where one law "
            "gives way to another, these widths are too small to tell them apart."
        )

    def draw(self) -> Drawing:
        """A map for each layer, with theory's edge and the one that was found."""
        gamma, prime, _ = self.exponents
        slope = np.median(self.slopes, axis=-1)
        fine = np.linspace(prime[0], prime[-1], 200)
        titles = ("first layer, W1", "second layer, W2")
        figure = draw_phase_maps(
            {title: values.T for title, values in zip(titles, slope, strict=True)},
            gamma,
            prime,
            quantity="slope of log RD against log m",
            labels=("γ", "γ'"),
            centred=True,
            boundaries={
                title: (
                    Boundary(theory, fine, "theory: edge of the condensed regime"),
                    Boundary(zeros(gamma, values), prime, "found: slope zero", found=True),
                )
                for title, theory, values in zip(titles, edges(fine), slope, strict=True)
            },
            marks=NAMED,
            regimes=(Regime(1.6, 0.6, "linear"), Regime(3.7, 0.2, "condensed")),
        )
        cells = by_cell(layer=range(1, 3), gamma=gamma, gamma_prime=prime, seed=range(self.slopes.shape[-1]))
        return Drawing(
            caption="How much each hidden layer of three-layer relu networks moves, relative to its initial weights, "
            "as both get wider: median over the seeds of the slope of log RD against log m. γ and γ' are minus the "
            "exponents of β1 β2 β3 and of β3/β1 in m, with β2 = β3. Between the two edges the first layer condenses "
            "and the second does not; for large γ' it is the other way round.",
            pictures={"": figure},
            data=cells | {"slope": self.slopes.ravel()},
        )
