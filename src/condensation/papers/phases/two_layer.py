r"""The phase diagram of two-layer relu networks (Luo et al. 2021).

$f = \frac1\alpha \sum_k a_k \sigma(w_k x)$ with $a \sim N(0, \beta_1^2)$, $w \sim N(0, \beta_2^2)$. Two exponents fix
the flow of relu networks but for its time: $\gamma = -\log(\beta_1 \beta_2/\alpha)/\log m$ and
$\gamma' = -\log(\beta_1/\beta_2)/\log m$. So $\alpha = 1$, $\beta_1 = m^{-(\gamma + \gamma')/2}$,
$\beta_2 = m^{-(\gamma - \gamma')/2}$ stands for all starts of one $(\gamma, \gamma')$.

RD $= |\theta_w - \theta_w(0)|/|\theta_w(0)|$ at the end of training falls with the width m in the linear regime and
grows with it in the condensed one: the map shows the slope of log RD against log m.
"""

from collections.abc import Mapping

import numpy as np

from ...data import Synthetic
from ...drawing import Boundary, Mark, Regime, draw_phase_map, look
from ...drawing._style import PAGE, figure_of, new_axes
from ...experiment import Experiment
from ...initialization import Init, WidthPower
from ...networks import Dense
from ...optimizers import GradientFlow
from ...saving import At
from ...seeds import as_seeds
from ...sweeps import Sweep, SweepTable, linspace
from .._claims import PerSeed, Rule
from .._legacy import Claim, Findings, Lab, Recipe, Statement, Tables
from .._variant import Variant

NAME = "phase-two-layer"
WIDTHS = (100, 300, 1000, 3000)
STOP = 0.05  # of the first loss: the end of training
LONG = 100_000  # time after which a flow that has not come there is left
FIELDS = {
    "init.hidden.gamma": "(gamma - gamma_prime) / 2",
    "init.output.gamma": "(gamma + gamma_prime) / 2",
    "network.widths.1": "m",
}
NAMED = (Mark(0.5, 0.0, "NTK"), Mark(0.5, 0.5, "LeCun, He"), Mark(1.0, 0.0, "mean-field, Xavier"))


def _statement(key: str, text: str, quantity: str, rule: Rule, ours: bool = False) -> Statement:
    return Statement(f"{NAME}-{key}", NAME, "Luo et al. 2021", text, quantity, rule, paper="PHASES", ours=ours)


STATEMENTS = (
    _statement(
        "left",
        "where γ' <= 0, the linear regime ends at γ = 1",
        "largest distance of the slope's zero from there, over γ'",
        Rule("at most", 0.1),
    ),
    _statement(
        "right",
        "where γ' > 0, the condensed regime begins at γ = 1 + γ'",
        "largest distance of the slope's zero from there, over γ'",
        Rule("at most", 0.1),
    ),
    _statement(
        "regimes",
        "RD falls with the width in the linear regime and grows in the condensed one",
        "share of the cells, those on the edge left out, whose slope has the sign of their regime",
        Rule("at least", 0.99),
    ),
    _statement(
        "exponents",
        "the slope is γ - 1 for γ' <= 0 up to γ = 1 - γ'; for γ' > 0 it is γ - 1 - 2γ' up to γ = 1 and 2(γ - γ' - 1) "
        "up to the edge; in the rest of the condensed regime it is (γ - γ' - 1)/2, as of weights that end balanced",
        "largest error of the slope, over all cells",
        Rule("at most", 0.1),
        ours=True,
    ),
)


def edge(gamma_prime: np.ndarray) -> np.ndarray:
    """The gamma at which theory puts the edge of the condensed regime."""
    return 1 + np.maximum(gamma_prime, 0.0)


def exponent(gamma: np.ndarray, gamma_prime: np.ndarray) -> np.ndarray:
    """The power of m that RD goes with."""
    balanced, linear = (gamma - gamma_prime - 1) / 2, gamma - 1
    below = np.where(gamma <= 1, linear - 2 * gamma_prime, 2 * (linear - gamma_prime))
    right = np.where(gamma <= edge(gamma_prime), below, balanced)
    return np.where(gamma_prime <= 0, np.minimum(linear, balanced), right)


def sweeps(size: int = 9, seeds: int = 3) -> Mapping[str, Sweep]:
    """The diagram as a sweep of size x size cells, four widths in each."""
    base = Experiment(
        network=Dense((1, WIDTHS[0], 1), "relu"),
        init=Init(WidthPower(0.5), WidthPower(0.5), antisymmetric=True),
        data=Synthetic(((0.9, 1.5, 0.2),), dim=1, n=6, low=-1, high=1, spacing="even"),
        optimizer=GradientFlow(1.0, stop_ratio=STOP, rtol=1e-4, atol=1e-12),
        steps=LONG,
        save=At((0, LONG)),
        record=At((0, LONG)),
    )
    axes = {"gamma": linspace(0.4, 2.0, size), "gamma_prime": linspace(-0.8, 0.8, size), "m": WIDTHS}
    return {NAME: Sweep(base, axes, FIELDS, as_seeds(seeds), ("change",), at="saved")}


def experiments(scale: str) -> Mapping[str, Sweep]:
    """9 x 9 cells and three seeds, at the paper's scale 17 x 17 and five."""
    return sweeps() if scale == "quick" else sweeps(17, 5)


def slopes(table: SweepTable) -> np.ndarray:
    """The slope of log RD against log m: gamma x gamma' x seeds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(table.array("dense1.change")[..., -1])  # gamma, gamma', m, seeds
    widths = np.log(np.array(table.sweep.axes["m"], float))
    centred = widths - widths.mean()
    return np.einsum("m,gpms->gps", centred, np.where(np.isfinite(change), change, np.nan)) / (centred @ centred)


def zeros(gamma: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """For each column of slopes (rows gamma) the gamma of its one change of sign, or NaN."""
    found = np.full(slope.shape[1:], np.nan)
    for index in np.ndindex(found.shape):
        column = slope[(slice(None), *index)]
        rising = np.flatnonzero((column[:-1] < 0) & (column[1:] >= 0))
        if len(rising) == 1:
            k = rising[0]
            found[index] = gamma[k] - column[k] * (gamma[k + 1] - gamma[k]) / (column[k + 1] - column[k])
    return found


def axes_of(table: SweepTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of gamma, gamma' and m."""
    gamma, prime, m = (np.array(table.sweep.axes[name], float) for name in ("gamma", "gamma_prime", "m"))
    return gamma, prime, m


def measure(tables: Tables, variant: Variant) -> Mapping[str, PerSeed]:
    """Where the slope changes sign, its sign in each regime, and its size in the condensed one, for each seed."""
    table = tables[NAME]
    gamma, prime, _ = axes_of(table)
    slope = slopes(table)
    off = np.abs(zeros(gamma, slope) - edge(prime)[:, None])  # gamma' x seeds
    beyond = gamma[:, None] - edge(prime)
    inside = np.abs(beyond) > 1e-9
    right = (np.sign(slope) == np.sign(beyond)[..., None])[inside].mean(axis=0)
    power = exponent(gamma[:, None], prime[None, :])
    error = np.abs(slope - power[..., None])
    return {
        f"{NAME}-left": PerSeed(off[prime <= 0].max(axis=0)),
        f"{NAME}-right": PerSeed(off[prime > 0].max(axis=0)),
        f"{NAME}-regimes": PerSeed(np.where(np.isnan(slope).any(axis=(0, 1)), np.nan, right)),
        f"{NAME}-exponents": PerSeed(error.max(axis=(0, 1))),
    }


def show(lab: Lab, tables: Tables, claims: Mapping[str, Claim]) -> Findings:
    """The map, with theory's edge and the one that was found."""
    table = tables[NAME]
    gamma, prime, _ = axes_of(table)
    slope = np.median(slopes(table), axis=-1)
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
    seeds = slopes(table)
    cells = np.meshgrid(gamma, prime, range(seeds.shape[-1]), indexing="ij")
    return Findings(
        caption="How much the input weights of two-layer relu networks move, relative to their start, as the network "
        "gets wider: median over the seeds of the slope of log RD against log m. Blue: they move less and less (linear "
        "regime); orange: more and more (condensed). γ and γ' are minus the exponents of β1 β2/α and of β1/β2 in m.",
        settings={
            "network, data": "1-m-1, relu, m = " + ", ".join(map(str, WIDTHS)) + "; 0.9 sin(1.5 x + 0.2) at 6 points",
            "start": "std of a: m^-(γ + γ')/2, of w and its bias: m^-(γ - γ')/2, antisymmetric",
            "optimizer": f"gradient flow until {STOP:.0%} of the loss is left",
        },
        pictures={NAME: figure_of(axes)},
        data={
            "gamma": cells[0].ravel(),
            "gamma_prime": cells[1].ravel(),
            "seed": cells[2].ravel(),
            "slope": seeds.ravel(),
        },
    )


RECIPE = Recipe(
    NAME,
    "Phase diagram of two-layer networks",
    STATEMENTS,
    experiments,
    measure,
    show,
    "9 x 9 cells and three seeds instead of 17 x 17 and five",
    has_variants=False,
)
