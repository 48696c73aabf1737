"""Careful readers' question: gradient descent against Adam, on Fig. 2's network."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...drawing import draw_bar, draw_similarity, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...optimizers import Adam, SignGD
from ...theory import KernelDynamics
from .._claims import PerSeed, Rule
from .._counts import count, stack_columns
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._variant import Variant
from .experiments import descent
from .kernels import cosines_to, dynamics
from .words import GD_SETTINGS

NAMES = {"gd": "gradient descent", "adam": "Adam", "sign": "sign descent"}
RATE, STEPS = 1e-6, 600
QUICK_RATE, QUICK_STEPS = 1e-5, 50
REDUCED = (
    f"Fig. 2 at the quick scale; Adam and sign descent take {QUICK_STEPS} steps of {QUICK_RATE:g} instead of {STEPS} "
    f"of {RATE:g}"
)


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(
        f"cnn-optimizers-{key}", "cnn-optimizers", "question of readers", text, quantity, rule, paper="CNN", ours=True
    )


STATEMENTS = (
    *(
        _statement(
            f"{key}-line",
            f"{said}: the filters condense on one line",
            "lines of filters at the end",
            Rule("exactly", 1),
        )
        for key, said in NAMES.items()
    ),
    *(
        _statement(f"{key}-v1", f"{said}: that line is v1", "median |cos| of filters with v1", Rule("at least", 0.99))
        for key, said in NAMES.items()
    ),
    *(
        _statement(
            f"{key}-vertex",
            f"{NAMES[key]}: that line is the vertex of the cube that the theory of sign descent gives",
            "median |cos| of filters with it",
            Rule("at least", 0.99),
        )
        for key in ("adam", "sign")
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 2's network with three optimizers."""
    base = descent(scale)
    rate, steps = (RATE, STEPS) if scale == "paper" else (QUICK_RATE, QUICK_STEPS)
    return {
        "gd": base,
        "adam": base.replace(optimizer=Adam(rate), steps=steps),
        "sign": base.replace(optimizer=SignGD(rate), steps=steps),
    }


def vertex(theory: KernelDynamics) -> Float[np.ndarray, " columns"]:
    """The vertex s of the cube that sign descent on (9) condenses on: s = sign(Zᵀ sign(Z s)), found from v1."""
    s = np.sign(theory.v1)
    for _ in range(100):
        after = np.sign(theory.z.T @ np.sign(theory.z @ s))
        if np.array_equal(after, s):
            break
        s = after
    return s


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Lines of filters, and their cosines with v1 and with the vertex."""
    found = {}
    for key, run in runs.items():
        counts = count(run, "conv1", int(run.saved[-1]), variant, view="filter")
        last = counts.weights[:, -1].astype(float)
        found[f"{key}-line"] = counts.lines_found()
        for name, direction in (("v1", lambda theory: theory.v1), ("vertex", vertex)):
            if name == "v1" or key != "gd":
                found[f"{key}-{name}"] = PerSeed(
                    [
                        float(np.median(np.abs(cosines_to(last[k], direction(dynamics(run, k))))))
                        for k in range(len(last))
                    ]
                )
    return {f"cnn-optimizers-{key}": value for key, value in found.items()}


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Filters of the median seed under each optimizer, and their cosines with both predictions."""
    counts = {key: count(run, "conv1", int(run.saved[-1]), lab.variant, view="filter") for key, run in runs.items()}
    with look():
        figure = Figure(figsize=(PAGE, 2.3), layout="constrained")
        row = figure.subplots(1, len(runs))
        for axes, (key, found) in zip(row, counts.items(), strict=True):
            draw_similarity(found.shown, axes, title=NAMES[key], bar=False)
            axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
        draw_bar(row[-1].images[0], list(row))
    measured = {key: claim.measured for key, claim in claims.items()}
    median = lambda key: f"{one.median:.4f}" if (one := measured.get(f"cnn-optimizers-{key}")) else ""  # noqa: E731
    rows = tuple(
        (NAMES[key], str(found), median(f"{key}-v1"), median(f"{key}-vertex"), f"{np.median(found.loss):.4f}")
        for key, found in counts.items()
    )
    return Findings(
        caption="Cosine similarity of the filters of Fig. 2's network at the last step under three optimizers (median "
        "seed). Gradient descent turns filters to v1; sign descent, and Adam which begins like it, to a vertex of "
        "the cube, where all entries have one size.",
        settings={
            "network, data, start": "those of Fig. 2",
            **GD_SETTINGS,
            "Adam, sign descent": f"rate {RATE:g}, {STEPS} steps, full batch, Adam's eps 1e-8; our choice",
        },
        pictures={"cnn-optimizers": figure},
        tables=(
            Table(
                "Filters at the last step",
                ("optimizer", "lines", "|cos| with v1", "|cos| with the vertex", "loss / first loss"),
                rows,
            ),
        ),
        data=stack_columns({key: found.columns() for key, found in counts.items()}, "optimizer"),
        why={
            key: f"{NAMES[name]} goes to the vertex of the cube: |cos| with v1 is {median(f'{name}-v1')}, with the "
            f"vertex {median(f'{name}-vertex')} (medians)."
            for name in ("adam", "sign")
            if claims[key := f"cnn-optimizers-{name}-v1"].verdict != "reproduced"
        },
    )


RECIPE = Recipe(
    "cnn-optimizers",
    "Gradient descent against Adam",
    STATEMENTS,
    experiments,
    measure,
    show,
    REDUCED,
    has_variants=False,
)
