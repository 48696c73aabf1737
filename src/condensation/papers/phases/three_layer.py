r"""The phase diagram of three-layer relu networks, layer by layer (after Zhou et al. 2022).

$f = a^T \sigma(W_2\, \sigma(W_1 x))$ with two hidden layers of m units, and stds $\beta_1, \beta_2, \beta_3$ of $W_1$,
$W_2$ and a. Without biases the network is homogeneous in each layer, and exponents of m fix its flow but for the time.
The usual starts have $\beta_2 \sim \beta_3$, which leaves two: $\gamma = -\log(\beta_1 \beta_2 \beta_3)/\log m$ (the
paper's $\gamma_3$) and $\gamma' = -\log(\beta_3/\beta_1)/\log m$ (defined here, as for two layers). RD of a layer is
$|W - W(0)|/|W(0)|$ at the end of training, and the maps show the slope of log RD against log m.

What scaling says. A layer's size, its largest singular value, starts at $e_l \sim \sqrt m\, \beta_l$. Training adds a
part of rank one to each layer, and the differences of squares $|W_1|^2 - |W_2|^2$ and $|W_2|^2 - |a|^2$ are conserved.
So layers end like vessels filled to one level E: those that start below end at E, the others stay about where they are,
and the product of the three sizes is then of order 1. A layer that is filled has RD $E/e_l$; of one that starts above,
$e_l^2$ changes by as much as the smallest's square, and RD is $E \max(E, e_{min})/e_l^2$. As the norm of $W_2$ at the
start is not $e_2$ but $\sqrt m\, e_2$, its RD is smaller by $\sqrt m$, and it condenses later.

The start is not antisymmetric: units in pairs with opposite output weights pass nothing back to the first layer until
they part, which changes its RD. Instead $\gamma > 1$, where the first output is below the targets.
"""

from collections.abc import Mapping

import numpy as np

from ...data import Synthetic
from ...drawing import Boundary, Mark, Regime, draw_phase_maps
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
from .two_layer import axes_of, zeros

NAME = "phase-three-layer"
WIDTHS = (50, 140, 400)
LAYERS = ("dense1", "dense2")
STOP = 0.2  # of the first loss: the end of training
LONG = 100_000  # steps after which a flow that has not come there is left
NEAR = 0.3  # what an error of 0.1 does to the zero of a slope that rises by 1/3 a unit of gamma, as both do beyond
NAMED = (Mark(1.5, 0.0, "Xavier"), Mark(2.0, 0.0, "mean-field"))  # NTK (1, 0) and LeCun, He (1, 0.5) are further left


def _statement(key: str, text: str, quantity: str, rule: Rule, ours: bool = False) -> Statement:
    return Statement(f"{NAME}-{key}", NAME, "Zhou et al. 2022", text, quantity, rule, paper="PHASES", ours=ours)


STATEMENTS = (
    _statement(
        "first",
        "the first layer condenses from γ = 1.5 on where γ' = 0, and by scaling from γ = 1.5 + 2 max(γ', 0) elsewhere",
        "largest distance of the zero of W1's slope from there, over γ'",
        Rule("at most", NEAR),
    ),
    _statement(
        "second",
        "the second layer condenses only from γ = 3 - γ' on, beyond γ' = 0.5 from γ = 2.5",
        "largest distance of the zero of W2's slope from there, over γ'",
        Rule("at most", NEAR),
        ours=True,
    ),
    _statement(
        "apart",
        "layers of one network can be in different regimes",
        f"share of the cells between the two edges, at least {NEAR:g} from both, in which the layers' slopes have the "
        "opposite signs that are predicted",
        Rule("at least", 0.99),
    ),
    _statement(
        "regimes",
        "RD of each layer falls with the width on one side of its edge and grows on the other",
        f"share of the cells of both maps, at least {NEAR:g} from the edge, whose slope has the sign of their regime",
        Rule("at least", 0.99),
    ),
    _statement(
        "exponents",
        "both slopes are those of layers filled to one level, in all cells",
        "largest error of a slope, over both maps",
        Rule("at most", 0.1),
        ours=True,
    ),
)


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


def sweeps(size: int = 9, seeds: int = 3) -> Mapping[str, Sweep]:
    """The diagram as a sweep of size x size cells, three widths in each.

    The flow's tolerance is loose: relu's units stick at their samples, where a tight one takes a hundred times as many
    steps for the same RD. Its first step is no longer than a step of the experiment, a tenth of the time in which the
    network linearised at its start would fit: a longer one throws a small W1 far beyond where it is to end.
    """
    law = WidthPower(0.5)
    base = Experiment(
        network=Dense((2, WIDTHS[0], WIDTHS[0], 1), "relu", bias=False),
        init=Init((law, law), law),
        data=Synthetic(((0.9, 1.5, 0.2),), dim=2, n=4, low=-1, high=1, spacing="even"),
        optimizer=GradientFlow(1.0, stop_ratio=STOP, rtol=1e-2, atol=1e-9),
        steps=LONG,
        save=At((0, LONG)),
        record=At((0, 1, LONG)),
    )
    axes = {"gamma": linspace(1.2, 4.0, size), "gamma_prime": linspace(-0.6, 1.0, size), "m": WIDTHS}
    fields = {
        "init.hidden.0.gamma": "(gamma - 2 * gamma_prime) / 3",
        "init.hidden.1.gamma": "(gamma + gamma_prime) / 3",
        "init.output.gamma": "(gamma + gamma_prime) / 3",
        "network.widths.1": "m",
        "network.widths.2": "m",
        "optimizer.time_step": "0.1 * m ** (2 / 3 * min(2 * gamma - gamma_prime, 2 * gamma + 2 * gamma_prime) - 2)",
    }
    return {NAME: Sweep(base, axes, fields, as_seeds(seeds), ("change",), at="saved")}


def experiments(scale: str) -> Mapping[str, Sweep]:
    """9 x 9 cells and three seeds, at the paper's scale 17 x 17 and five."""
    return sweeps() if scale == "quick" else sweeps(17, 5)


def slopes(table: SweepTable) -> np.ndarray:
    """The slope of log RD against log m of each layer: 2 x gamma x gamma' x seeds.

    A flow that its integrator gave up is left out where two other widths are left.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(np.stack([table.array(f"{layer}.change")[..., -1] for layer in LAYERS]))
    there = np.isfinite(change)
    x = np.where(there, np.log(np.array(table.sweep.axes["m"], float))[:, None], np.nan)
    with np.errstate(invalid="ignore"):
        count = np.maximum(there.sum(axis=-2, keepdims=True), 1)
        centred = np.where(there, x - np.nansum(x, axis=-2, keepdims=True) / count, 0.0)
        slope = (centred * np.where(there, change, 0.0)).sum(axis=-2) / (centred**2).sum(axis=-2)
    return np.where(there.sum(axis=-2) >= 2, slope, np.nan)


def measure(tables: Tables, variant: Variant) -> Mapping[str, PerSeed]:
    """Where slopes change their signs, the signs in each regime, and their sizes, for each seed."""
    table = tables[NAME]
    gamma, prime, _ = axes_of(table)
    slope = slopes(table)  # 2, gamma, gamma', seeds
    off = np.abs(np.stack([zeros(gamma, one) for one in slope]) - edges(prime)[..., None])  # 2, gamma', seeds
    beyond = gamma[:, None] - edges(prime)[:, None]
    clear = np.abs(beyond) >= NEAR - 1e-9
    right = np.where(np.isnan(slope), np.nan, np.sign(slope) == np.sign(beyond)[..., None])
    between = clear.all(axis=0) & (beyond[0] * beyond[1] < 0)
    error = np.abs(slope - exponents(gamma[:, None], prime)[..., None])
    return {
        f"{NAME}-first": PerSeed(off[0].max(axis=0)),
        f"{NAME}-second": PerSeed(off[1].max(axis=0)),
        f"{NAME}-apart": PerSeed(right[:, between].min(axis=0).mean(axis=0)),
        f"{NAME}-regimes": PerSeed(right[clear].mean(axis=0)),
        f"{NAME}-exponents": PerSeed(error.max(axis=(0, 1, 2))),
    }


def show(lab: Lab, tables: Tables, claims: Mapping[str, Claim]) -> Findings:
    """A map a layer, with theory's edge and the one that was found."""
    table = tables[NAME]
    gamma, prime, _ = axes_of(table)
    every = slopes(table)
    slope = np.median(every, axis=-1)
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
    error = np.abs(every - exponents(gamma[:, None], prime)[..., None])
    change = table.array("dense1.change")[..., 0, :, -1]  # of the smallest width: gamma, gamma', seeds
    scatter = float(np.nanmedian(np.nanstd(change, axis=-1) / np.nanmean(change, axis=-1)))
    cells = np.meshgrid(range(2), gamma, prime, range(every.shape[-1]), indexing="ij")
    return Findings(
        caption="How much each hidden layer of three-layer relu networks moves, relative to its start, as both get "
        "wider: median over the seeds of the slope of log RD against log m. γ and γ' are minus the exponents of β1 β2 "
        "β3 and of β3/β1 in m, with β2 = β3. Between the two edges the first layer condenses and the second does not; "
        "for large γ' it is the other way round.",
        settings={
            "network, data": "2-m-m-1, relu without biases, m = " + ", ".join(map(str, WIDTHS)) + "; Σ 0.9 sin(1.5 x "
            "+ 0.2) at the four corners of the square",
            "start": "std of W1: m^-(γ - 2γ')/3, of W2 and a: m^-(γ + γ')/3",
            "optimizer": f"gradient flow until {STOP:.0%} of the loss is left",
        },
        pictures={NAME: figure},
        data={
            "layer": cells[0].ravel() + 1,
            "gamma": cells[1].ravel(),
            "gamma_prime": cells[2].ravel(),
            "seed": cells[3].ravel(),
            "slope": every.ravel(),
        },
        why={
            f"{NAME}-exponents": f"The median error is {np.nanmedian(error):.2f}. A slope is of one start a width, and "
            f"W1's RD at m = {WIDTHS[0]} scatters by {scatter:.0%} between starts; near γ = 1.5, where one law gives "
            "way to another, these widths are too small to tell them apart."
        },
    )


RECIPE = Recipe(
    NAME,
    "Phase diagram of three-layer networks",
    STATEMENTS,
    experiments,
    measure,
    show,
    "9 x 9 cells and three seeds instead of 17 x 17 and five",
    has_variants=False,
)
