"""FC Fig. 3: two-layer networks in six dimensions, five activations."""

from collections.abc import Mapping

import numpy as np

from ...activations import label, multiplicity
from ...experiment import Experiment
from ...seeds import as_seeds
from ...theory import cube_directions, stationary_directions
from ..claims import Claim, Seeds
from ..counts import Counts, count, stack_columns
from ..evidence import settings_table
from ..lab import Lab
from ..panels import draw_maps, draw_times
from ..recipe import Findings, Recipe, Runs, Table
from ..variant import Variant
from .experiments import FIG3_EPOCH, FIG3_RATES, LINES, fig3
from .statements import FIG3

ORIENTED = ("tanh", "sigmoid", "softplus")
VARIANTS = (
    Variant(threshold=0.8),
    Variant(threshold=0.99),
    Variant(eps=1e-30),
    Variant(rotated=True),
    Variant(start_scale=0.1),
    Variant(start_scale=0.01),
    Variant(output_scale=10.0),
    Variant(output_scale=0.1),
    Variant(optimizer="normalised_gd"),
    Variant(optimizer="normalised_gd", start_scale=0.01),
)
FLOW = Variant(optimizer="gradient_flow")  # takes long to compile: two panels are enough to tell p = 1 from p = 2
A_LINE = "2 neurons and 5% of the norm within a cosine of 0.95; condensed: 90% of the norm on lines"


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The five panels."""
    return {name: fig3(name) for name in FIG3_RATES}


def _counts(runs: Runs, variant: Variant) -> dict[str, Counts]:
    return {name: count(run, "dense1", FIG3_EPOCH, variant) for name, run in runs.items()}


def measure(runs: Runs, variant: Variant) -> Mapping[str, Seeds]:
    """Lines and orientations of each panel."""
    counts = _counts(runs, variant)
    lines = {f"fc-fig3-{name}": found.lines_found() for name, found in counts.items()}
    return lines | {f"fc-fig3-{name}-orientations": counts[name].orientations_found() for name in ORIENTED}


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Pictures, what other settings do, and why the captions fail where they do."""
    counts = _counts(runs, lab.variant)
    titles = {name: label(name) for name in runs}
    named = {titles[name]: run for name, run in runs.items()}
    by_title = {titles[name]: found for name, found in counts.items()}
    shown = {titles[name]: found.shown for name, found in counts.items()}
    predicted = _predicted(lab)
    evidence = _evidence(lab, claims) if lab.variant == Variant() else {}
    rules = [claims[f"fc-fig3-{name}"].statement.expected for name in FIG3_RATES]
    by_setting = {said: list(each.values()) for said, each in evidence.items()}
    tables = (settings_table(by_setting, list(titles.values()), rules),) if evidence else ()
    return Findings(
        caption=(
            f"Cosine similarity of all pairs of the 50 neurons' input weights at epoch {FIG3_EPOCH} (top; beige: "
            "same, navy: opposite direction; the seed shown is the median one by number of lines), and the number of "
            f"lines over {len(runs['tanh'].seeds)} seeds of data and start (bottom)."
        ),
        settings={
            "network": "5-50-1, no output bias, float64",
            "data": "80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]",
            "start": "N(0, 0.005²)",
            "optimizer": "Adam, full batch, eps 1e-8; learning rate "
            + ", ".join(f"{rate:g} ({label(name)})" for name, rate in FIG3_RATES.items()),
            "loss": "1/(2n) sum of squares",
            "a line": A_LINE,
        },
        pictures={
            "fc-fig3": draw_maps(shown, by_title, {titles[name]: LINES[name] for name in runs}),
            "fc-fig3-time": draw_times(named, by_title, dict.fromkeys(named, FIG3_EPOCH)),
        },
        tables=(_predicted_table(predicted), *tables),
        data=stack_columns({name: found.columns() for name, found in counts.items()}, "activation"),
        why=_why(claims, evidence, predicted),
    )


def _predicted(lab: Lab) -> dict[str, dict[str, np.ndarray]]:
    """How many lines attract in each seed: gradient flow's on the sphere, Adam's on the cube."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name in ("x_tanh", "x2_tanh"):
        experiment, p = lab.variant.apply(fig3(name)), LINES[name]
        sphere, cube = [], []
        for seed in as_seeds(lab.seeds_of(experiment)):
            x, y = experiment.data.draw(seed)
            inputs = np.c_[x, np.ones(len(x))]
            sphere.append(stationary_directions(inputs, y[:, 0], p).attracts.sum())
            cube.append(cube_directions(inputs, y[:, 0], p).count)
        found[name] = {"sphere": np.array(sphere), "cube": np.array(cube)}
    return found


def _predicted_table(predicted: Mapping[str, Mapping[str, np.ndarray]]) -> Table:
    header = ("activation", "gradient flow (the sphere)", "Adam, sign descent (the cube)")
    rows = tuple(
        (label(name), *(" ".join(map(str, each)) for each in both.values())) for name, both in predicted.items()
    )
    return Table("Attracting lines that the theory predicts from the data alone, seed by seed", header, rows)


def _evidence(lab: Lab, claims: Mapping[str, Claim]) -> dict[str, dict[str, Seeds | None]]:
    """Lines of the panels as captioned and under other settings; None where a panel was left out."""
    found = {"as captioned": {name: claims[f"fc-fig3-{name}"].measured for name in FIG3_RATES}}
    for variant in (*VARIANTS, FLOW):
        names = ("tanh", "x_tanh") if variant == FLOW else tuple(FIG3_RATES)
        runs = {name: lab.train(f"{name}, {variant}", fig3(name), variant) for name in names}
        counts = _counts(runs, variant)
        found[str(variant)] = {name: counts[name].lines_found() if name in counts else None for name in FIG3_RATES}
    return found


def _why(
    claims: Mapping[str, Claim],
    evidence: Mapping[str, Mapping[str, Seeds | None]],
    predicted: Mapping[str, Mapping[str, np.ndarray]],
) -> dict[str, str]:
    """A sentence for each claim that fails, with the numbers that show it."""
    why = {}
    for name, both in predicted.items():
        p, sphere, cube = multiplicity(name), both["sphere"], both["cube"]
        why[f"fc-fig3-{name}"] = (
            f"Adam's lines are not the theory's. Its ball is the cube, and on the cube these data have {_range(cube)} "
            f"attracting lines (median {np.median(cube):g}); gradient flow has {_range(sphere)} (exactly {p} in "
            f"{np.sum(sphere == p)} of {len(sphere)} seeds)."
        )
    if evidence:
        small, loose = (evidence[said]["softplus"] for said in ("start scale 0.1", "threshold 0.8"))
        assert small is not None
        assert loose is not None
        rule = claims["fc-fig3-softplus"].statement.expected
        why["fc-fig3-softplus"] = (
            f"The start is not small enough: from a tenth of it {sum(small.holds(rule))} of {len(small.values)} seeds "
            f"are on one line, and {sum(loose.holds(rule))} as captioned if the threshold is 0.8."
        )
    for name in ("sigmoid", "softplus"):
        why[f"fc-fig3-{name}-orientations"] = (
            f"{label(name)} is not zero at 0, so the network first learns the mean of the targets by its output "
            "weights; where that mean is far from zero they have one sign, and all neurons take one direction."
        )
    return {key: text for key, text in why.items() if claims[key].verdict != "reproduced"}


def _range(values: np.ndarray) -> str:
    """Least to most.

    >>> _range(np.array([2, 2])), _range(np.array([1, 4]))
    ('2', '1 to 4')
    """
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


RECIPE = Recipe("fc-fig3", "FC Fig. 3: condensation of two-layer networks", FIG3, experiments, measure, show)
