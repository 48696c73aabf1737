"""FC Fig. 6: direction fields of networks with one-dimensional input, their lines, and the neurons on them."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...activations import label, multiplicity
from ...drawing import draw_features, draw_field, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure import nearest_lines
from ...runs import Trajectory
from ...seeds import Seed
from ...theory import Directions, stationary_directions
from .._claims import PerSeed
from .._counts import Counts, count, relative_loss, stack_columns
from .._legacy import Claim, Findings, Lab, Recipe, Runs
from .._panels import draw_times, only_outer
from .._tables import Table
from .._variant import Variant
from .experiments import FIG5_ACTIVATIONS, FIG6_EPOCH, one_input
from .fig5 import BEGUN
from .statements import FIG6

NEAR = np.deg2rad(10)
LEARNED = 0.05  # of the field's first strength: what is left by then is another field
NORMALISED = Variant(optimizer="normalised_gd", init_scale=0.1)  # follows the field's own paths


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The three networks of Fig. 5."""
    return {name: one_input(name) for name in FIG5_ACTIVATIONS}


def _field(run: Trajectory, step: int, seed: Seed) -> tuple[np.ndarray, np.ndarray, Directions]:
    """Inputs with the bias's 1, residuals at a step, and the lines of their field."""
    x, y = run.data(seed)
    residual = (y - run.output(x, step, seed))[:, 0]
    inputs = np.c_[x, np.ones(len(x))]
    p = multiplicity(run.experiment.network.activations[0])
    assert p is not None
    return inputs, residual, stationary_directions(inputs, residual, p)


def _counts(runs: Runs, variant: Variant) -> dict[str, Counts]:
    return {name: count(run, "dense1", FIG6_EPOCH, variant) for name, run in runs.items()}


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Lines of the fields (which come from the data, so that an untrained network has them too) and of the neurons."""
    found = {}
    for name, counts in _counts(runs, variant).items():
        run = runs[name]
        pairs = zip(run.seeds, counts.steps.tolist(), strict=True)
        found[f"fc-fig6-{name}-field"] = PerSeed([_field(run, step, seed)[2].count for seed, step in pairs])
        found[f"fc-fig6-{name}"] = counts.lines_found()
        found[f"fc-fig6-{name}-most"] = counts.orientations_found()
        found[f"fc-fig6-{name}-on"] = PerSeed(_shares_on(run, counts.column), counts.condensed)
    return found


def _shares_on(run: Trajectory, column: np.ndarray, at_the_start: bool = False) -> list[float]:
    """In each seed the share of neurons near a line of the field, of their step or of the start."""
    found = []
    for k, seed in enumerate(run.seeds):
        step = int(run.saved[column[k]])
        lines = _field(run, 0 if at_the_start else step, seed)[2].directions
        _, cosine = nearest_lines(run.weights(1, step, seed), lines)
        found.append(float(np.mean(cosine >= np.cos(NEAR))))
    return found


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """The fields with the neurons of the median seed, the neurons' features, and lines against time."""
    counts = _counts(runs, lab.variant)
    rows = []
    with look():
        figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
        features = Figure(figsize=(PAGE, 2.2), layout="constrained")
        for (name, found), axes, below in zip(
            counts.items(), figure.subplots(1, len(runs)), features.subplots(1, len(runs), sharey=False), strict=True
        ):
            run, k = runs[name], found.median_seed
            seed, step = run.seeds[k], int(found.steps[k])
            inputs, residual, lines = _field(run, step, seed)
            model = run.model(step, seed)
            outputs = model.parameters["output.weight"]
            draw_field(
                inputs, residual, name, axes, weights=found.shown, outputs=outputs, directions=lines, title=label(name)
            )
            draw_features(found.shown, outputs, below, title=label(name))
            below.set_xlabel("angle of $(w, b)$")
            each = [_field(run, int(s), one)[2] for one, s in zip(run.seeds, found.steps, strict=True)]
            rows.append(
                (
                    label(name),
                    *(
                        " ".join(map(str, part))
                        for part in (
                            [one.count for one in each],
                            [int(one.attracts.sum()) for one in each],
                            found.lines.tolist(),
                        )
                    ),
                )
            )
        only_outer(figure, figure.axes)
        only_outer(features, features.axes)
    named = {label(name): run for name, run in runs.items()}
    times = draw_times(named, {label(name): found for name, found in counts.items()}, dict.fromkeys(named, FIG6_EPOCH))
    header = ("activation", "stationary lines of the field", "of them attracting", "lines of the neurons")
    why = {
        f"fc-fig6-{name}": "The seeds that fail are not condensed, or their neurons are not on as many lines as their "
        "field has (the table has both)."
        for name in counts
    }
    tables = [Table(f"Lines at epoch {FIG6_EPOCH}, seed by seed", header, tuple(rows))]
    if lab.variant == Variant():
        table, reasons = _on_the_lines(lab, runs, counts)
        tables, why = [*tables, table], why | reasons
    return Findings(
        caption=(
            f"The direction field of weight and bias at epoch {FIG6_EPOCH} (grey, lengths left out), its stationary "
            "lines, and the 100 neurons (green) with their own velocities (yellow), for the median seed by number of "
            "lines. Below: the neurons' orientations and amplitudes, and the number of lines against time over all "
            "seeds."
        ),
        settings={
            "network, data, start, optimizer": "those of Fig. 5",
            "lines of neurons": "modes of a density on the circle",
        },
        pictures={"fc-fig6": figure, "fc-fig6-features": features, "fc-fig6-time": times},
        tables=tuple(tables),
        data=stack_columns({name: found.columns() for name, found in counts.items()}, "activation"),
        why={key: text for key, text in why.items() if claims[key].verdict != "reproduced"},
    )


def _on_the_lines(lab: Lab, runs: Runs, counts: Mapping[str, Counts]) -> tuple[Table, dict[str, str]]:
    """How many neurons are on the field's lines: Adam's, and those of a descent that follows the field."""
    rows, why = [], {}
    for name, run in runs.items():
        follower = lab.train(f"{name}, {NORMALISED}", one_input(name), NORMALISED)
        now, left = np.median(_shares_on(run, counts[name].column)), np.median(_strengths(run, counts[name]))
        adam, descent = (
            np.median(_shares_on(one, (relative_loss(one) <= BEGUN).argmax(axis=1), at_the_start=True))
            for one in (run, follower)
        )
        rows.append((label(name), *(f"{share:.2f}" for share in (now, left, adam, descent))))
        learned = (
            f"By epoch {FIG6_EPOCH} what the leading order can learn is learned: its field has {left:.1%} of its "
            "first strength (median), and its lines are those of the rest. "
            if left < LEARNED
            else ""
        )
        why[f"fc-fig6-{name}-on"] = (
            f"{learned}Within 10 degrees of a line of the field of epoch {FIG6_EPOCH} are {now:.0%} of the neurons "
            f"(median of the seeds). When 1% of the loss is gone, {adam:.0%} of Adam's neurons are within 10 degrees "
            f"of a line of the field of the start, and {descent:.0%} under neuron-normalised descent from a tenth of "
            "the start, which follows the field; Adam moves all coordinates of a neuron equally fast and has lines "
            "of its own."
        )
    header = (
        "activation",
        f"Adam, epoch {FIG6_EPOCH}, field then",
        "strength of that field over the first",
        "Adam, 1% gone, field at the start",
        "normalised GD, the same",
    )
    return Table(
        "Share of neurons within 10 degrees of a line of the field, median of the seeds", header, tuple(rows)
    ), why


def _strengths(run: Trajectory, counts: Counts) -> list[float]:
    """In each seed the largest value of the leading order's field on its lines, over that at the start."""
    return [
        float(np.abs(_field(run, int(step), seed)[2].values).max() / np.abs(_field(run, 0, seed)[2].values).max())
        for seed, step in zip(run.seeds, counts.steps, strict=True)
    ]


RECIPE = Recipe("fc-fig6", "FC Fig. 6: direction fields", FIG6, experiments, measure, show)
