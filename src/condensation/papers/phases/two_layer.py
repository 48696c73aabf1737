r"""The phase diagram of two-layer relu networks (Luo et al. 2021).

$f = \frac1\alpha \sum_k a_k \sigma(w_k x)$ with $a \sim N(0, \beta_1^2)$, $w \sim N(0, \beta_2^2)$. Two exponents fix
the flow of relu networks but for its time: $\gamma = -\log(\beta_1 \beta_2/\alpha)/\log m$ and
$\gamma' = -\log(\beta_1/\beta_2)/\log m$. So $\alpha = 1$, $\beta_1 = m^{-(\gamma + \gamma')/2}$,
$\beta_2 = m^{-(\gamma - \gamma')/2}$ stands for all initializations of one $(\gamma, \gamma')$.

RD $= |\theta_w - \theta_w(0)|/|\theta_w(0)|$ at the end of training falls with the width m in the linear regime and
grows with it in the condensed one: the map shows the slope of log RD against log m.
"""

from functools import cached_property

import numpy as np

from ...data import Synthetic
from ...drawing import Boundary, Mark, Regime, draw_phase_map, look
from ...drawing._style import PAGE, figure_of, new_axes
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

WIDTHS = (100, 300, 1000, 3000)
STOP = 0.05  # of the first loss: the end of training
LONG = 100_000  # time after which a flow that has not come there is left
FIELDS = {
    "init.hidden.gamma": "(gamma - gamma_prime) / 2",
    "init.output.gamma": "(gamma + gamma_prime) / 2",
    "network.widths.1": "m",
}
NAMED = (Mark(0.5, 0.0, "NTK"), Mark(0.5, 0.5, "LeCun, He"), Mark(1.0, 0.0, "mean-field, Xavier"))
WHERE = "Luo et al. 2021"


def edge(gamma_prime: np.ndarray) -> np.ndarray:
    """The gamma at which theory puts the edge of the condensed regime."""
    return 1 + np.maximum(gamma_prime, 0.0)


def exponent(gamma: np.ndarray, gamma_prime: np.ndarray) -> np.ndarray:
    """The power of m that RD goes with."""
    balanced, linear = (gamma - gamma_prime - 1) / 2, gamma - 1
    below = np.where(gamma <= 1, linear - 2 * gamma_prime, 2 * (linear - gamma_prime))
    right = np.where(gamma <= edge(gamma_prime), below, balanced)
    return np.where(gamma_prime <= 0, np.minimum(linear, balanced), right)


class TwoLayer(ExponentDiagram):
    """Where the slope of log RD against log m changes sign."""

    name, title = "phase-two-layer", "Phase diagram of two-layer networks"
    claims = (
        Claim(
            "left", WHERE, "where γ' <= 0, the linear regime ends at γ = 1",
            "largest distance of the slope's zero from there, over γ'", at_most(0.1),
            lambda figure: PerSeed(figure.distance[figure.exponents[1] <= 0].max(axis=0)),
        ),
        Claim(
            "right", WHERE, "where γ' > 0, the condensed regime begins at γ = 1 + γ'",
            "largest distance of the slope's zero from there, over γ'", at_most(0.1),
            lambda figure: PerSeed(figure.distance[figure.exponents[1] > 0].max(axis=0)),
        ),
        Claim(
            "regimes", WHERE, "RD falls with the width in the linear regime and grows in the condensed one",
            "share of the cells, those on the edge left out, whose slope has the sign of their regime", at_least(0.99),
            lambda figure: figure.right_signs(),
        ),
        Claim(
            "exponents", WHERE,
            "the slope is γ - 1 for γ' <= 0 up to γ = 1 - γ'; for γ' > 0 it is γ - 1 - 2γ' up to γ = 1 and 2(γ - γ' - "
            "1) up to the edge; in the rest of the condensed regime it is (γ - γ' - 1)/2, as of weights that end "
            "balanced",
            "largest error of the slope, over all cells", at_most(0.1), lambda figure: figure.slope_error(), ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def sweep(cls, size: int = 9, seeds: int = 3) -> Sweep:
        """The diagram as a sweep of size x size cells, four widths in each."""
        base = Experiment(
            network=Dense((1, WIDTHS[0], 1), "relu"), init=Init(WidthPower(0.5), WidthPower(0.5), antisymmetric=True),
            data=Synthetic(((0.9, 1.5, 0.2),), dim=1, n=6, low=-1, high=1, spacing="even"),
            optimizer=GradientFlow(1.0, stop_ratio=STOP, rtol=1e-4, atol=1e-12), steps=LONG, save=At((0, LONG)),
            record=At((0, LONG)),
        )  # fmt: skip
        axes = {"gamma": linspace(0.4, 2.0, size), "gamma_prime": linspace(-0.8, 0.8, size), "m": WIDTHS}
        return Sweep(base, axes, FIELDS, as_seeds(seeds), ("change",), at="saved")

    @cached_property
    def slopes(self) -> np.ndarray:
        """The slope of log RD against log m: gamma x gamma' x seeds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            change = np.log(self.table.array("dense1.change")[..., -1])  # gamma, gamma', m, seeds
        widths = np.log(self.exponents[2])
        centred = widths - widths.mean()
        return np.einsum("m,gpms->gps", centred, np.where(np.isfinite(change), change, np.nan)) / (centred @ centred)

    @cached_property
    def distance(self) -> np.ndarray:
        """How far the slope's zero is from theory's edge: gamma' x seeds."""
        gamma, prime, _ = self.exponents
        return np.abs(zeros(gamma, self.slopes) - edge(prime)[:, None])

    def right_signs(self) -> PerSeed:
        """The share of cells whose slope has the sign of their regime."""
        gamma, prime, _ = self.exponents
        beyond = gamma[:, None] - edge(prime)
        right = (np.sign(self.slopes) == np.sign(beyond)[..., None])[np.abs(beyond) > 1e-9].mean(axis=0)
        return PerSeed(np.where(np.isnan(self.slopes).any(axis=(0, 1)), np.nan, right))

    def slope_error(self) -> PerSeed:
        """The largest error of theory's slope."""
        gamma, prime, _ = self.exponents
        power = exponent(gamma[:, None], prime[None, :])
        return PerSeed(np.abs(self.slopes - power[..., None]).max(axis=(0, 1)))

    def draw(self) -> Drawing:
        """The map, with theory's edge and the one that was found."""
        gamma, prime, _ = self.exponents
        slope = np.median(self.slopes, axis=-1)
        with look():
            fine = np.linspace(prime[0], prime[-1], 200)
            axes = draw_phase_map(
                slope.T,
                gamma,
                prime,
                new_axes(PAGE * 0.72, 4.0),
                quantity="slope of log RD against log m",
                labels=("γ", "γ'"),
                centred=True,
                boundaries=(
                    Boundary(edge(fine), fine, "theory: edge of the condensed regime"),
                    Boundary(zeros(gamma, slope), prime, "found: slope zero", found=True),
                ),
                marks=NAMED,
                regimes=(Regime(0.75, -0.5, "linear"), Regime(1.0, 0.62, "linear"), Regime(1.65, -0.3, "condensed")),
            )
        cells = by_cell(gamma=gamma, gamma_prime=prime, seed=range(self.slopes.shape[-1]))
        return Drawing(
            caption="How much the input weights of two-layer relu networks move, relative to their initial values, as "
            "the network gets wider: median over the seeds of the slope of log RD against log m. Blue: they move less "
            "and less (linear regime); orange: more and more (condensed). γ and γ' are minus the exponents of β1 β2/α "
            "and of β1/β2 in m.",
            pictures={"": figure_of(axes)},
            data=cells | {"slope": self.slopes.ravel()},
        )
