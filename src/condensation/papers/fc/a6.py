"""FC App. A.6: several steps of each example during its initial stage."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...drawing import draw_similarity, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...runs import Trajectory
from .._claims import PerSeed
from .._counts import cosine_of, in_stage, line_history, median_seed
from .._legacy import Claim, Findings, Lab, Recipe, Runs, columns_of
from .._tables import Table
from .._variant import Variant
from .experiments import FIG3_RATES, FIG4_LAYERS, FIG5_ACTIVATIONS, fig3, one_input, six_layers
from .fig4 import COSINES
from .statements import A6

MOMENTS = 5  # steps that are shown of each example


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The synthetic examples."""
    return {
        **{f"fig3-{name}": fig3(name) for name in FIG3_RATES},
        "fig4": six_layers(residual=True),
        **{f"fig5-{name}": one_input(name) for name in FIG5_ACTIVATIONS},
    }


def _examples(runs: Runs) -> dict[str, tuple[str, Trajectory, int, float | None]]:
    """Each example's title, run, layer and cosine, by its key."""
    found: dict[str, tuple[str, Trajectory, int, float | None]] = {}
    for key, run in runs.items():
        if key == "fig4":
            for layer, name in enumerate(FIG4_LAYERS, 1):
                found[f"fig4-layer{layer}"] = (f"Fig. 4, layer {layer}\n{label(name)}", run, layer, COSINES[layer - 1])
        else:
            figure, name = key.split("-")
            said = "Fig. 3" if figure == "fig3" else "Figs. 5, 6"
            found[key] = (f"{said}\n{label(name)}", run, 1, None)
    return found


def _first_condensed(run: Trajectory, layer: int, cosine: float | None) -> tuple[np.ndarray, np.ndarray]:
    """For each seed the first condensed step (NaN if none) and the last saved step of its initial stage."""
    inside = in_stage(run)
    history = line_history(run, layer, cosine)
    condensed = history.condensed & (run.saved > 0)
    first = np.where(condensed.any(axis=1), run.saved[condensed.argmax(axis=1)].astype(float), np.nan)
    last = np.array([run.saved[row].max() for row in inside], float)
    return first, last


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """When each example is condensed, as a share of its initial stage."""
    found = {}
    for key, (_, run, layer, cosine) in _examples(runs).items():
        first, last = _first_condensed(run, layer, cosine_of(run, layer, variant, cosine))
        found[f"fc-a6-{key}"] = PerSeed(first / np.maximum(last, 1))
    return found


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Heat maps at steps that go through the initial stage, a row an example."""
    examples = _examples(runs)
    half = -(-len(examples) // 2)
    pictures = {}
    for part, keys in enumerate((list(examples)[:half], list(examples)[half:])):
        with look():
            figure = Figure(figsize=(PAGE, 1.18 * len(keys)), layout="constrained")
            panels = figure.subplots(len(keys), MOMENTS, squeeze=False)
            for row, key in zip(panels, keys, strict=True):
                _draw_row(list(row), *examples[key], lab.variant)
        pictures[f"fc-a6-{part + 1}" if part else "fc-a6"] = figure
    rows = []
    for title, run, layer, cosine in examples.values():
        first, last = _first_condensed(run, layer, cosine_of(run, layer, lab.variant, cosine))
        rows.append(
            (
                title.replace("\n", ", "),
                *(" ".join("-" if np.isnan(v) else f"{v:g}" for v in part) for part in (first, last)),
            )
        )
    return Findings(
        caption=(
            "Cosine similarity of the neurons' input weights at five saved steps from the start to the end of the "
            "initial stage (loss at 70%, or the last trained step), evenly in the logarithm of the step; the median "
            "seed by lines at the last of them. Below each map: the step and the lines, in brackets where the layer "
            "is not condensed."
        ),
        settings={
            "experiments": "those of Figs. 3 to 6",
            "a line": "cosine 0.95, as in Fig. 4 in its layers, in two dimensions modes of a density",
        },
        pictures=pictures,
        tables=(
            Table(
                "First condensed step, and last step of the initial stage, seed by seed",
                ("example", "condensed from", "stage until"),
                tuple(rows),
            ),
        ),
        data=columns_of(claims),
        why={
            key: "In the seeds that fail, the layer is not condensed at any saved step of the initial stage (the "
            "table has them)."
            for key, claim in claims.items()
            if claim.verdict != "reproduced"
        },
    )


def _draw_row(row: list, title: str, run: Trajectory, layer: int, cosine: float | None, variant: Variant) -> None:
    inside = in_stage(run)
    history = line_history(run, layer, cosine_of(run, layer, variant, cosine))
    last = np.array([np.flatnonzero(one).max() for one in inside])
    at = (np.arange(len(last)), last)
    k = median_seed(history.lines[at], history.k_eff[at])
    end = int(run.saved[last[k]])
    wanted = [0, *np.geomspace(max(end / 100, 1), max(end, 1), MOMENTS - 1)]
    columns = [int(np.abs(run.saved[: last[k] + 1] - step).argmin()) for step in wanted]
    for axes, column in zip(row, columns, strict=True):
        draw_similarity(run.history(layer)[k, column], axes, bar=False)
        lines = str(history.lines[k, column])
        said = lines if history.condensed[k, column] else f"({lines})"
        axes.set(xlabel=f"step {run.saved[column]}: {said}", ylabel="", xticks=[], yticks=[])
    row[0].set_ylabel(title, fontsize=7)


RECIPE = Recipe("fc-a6", "FC App. A.6: several steps of the initial stage", A6, experiments, measure, show)
