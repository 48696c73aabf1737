"""FC Fig. 5: the output of networks with one-dimensional input is a polynomial whose order is the multiplicity."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...measure import fit_polynomial
from ...runs import Trajectory
from .._claims import PerSeed
from .._counts import STAGE, relative_loss, stack_columns
from .._legacy import Claim, Findings, Lab, Recipe, Runs
from .._panels import only_outer
from .._variant import Variant
from .experiments import FIG5_ACTIVATIONS, FIG5_EPOCH, LINES, one_input
from .statements import FIG5

POINTS = np.linspace(-1, 1.5, 251)
BEGUN = 0.99  # of the first loss: by then something has been learned


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The three networks, which are those of Fig. 6 too."""
    return {name: one_input(name) for name in FIG5_ACTIVATIONS}


def _begun(run: Trajectory) -> np.ndarray:
    """For each seed the first saved step at which 1% of the loss is gone, or -1."""
    below = relative_loss(run) <= BEGUN
    return np.where(below.any(axis=1), run.saved[below.argmax(axis=1)], -1)


def _end(run: Trajectory, variant: Variant) -> int:
    """The captioned epoch, or the last step where that means nothing."""
    return FIG5_EPOCH if variant.by_caption else int(run.saved[-1])


def _distances(run: Trajectory, steps: np.ndarray, order: int) -> list[float]:
    """In each seed the distance from a polynomial; NaN where there is no such step or the seed has diverged."""
    found = []
    for seed, step in zip(run.seeds, steps.tolist(), strict=True):
        there = step >= 0 and run.diverged.get(seed, step + 1) > step
        if there:
            found.append(fit_polynomial(POINTS, run.output(POINTS[:, None], step, seed)[:, 0], order)[1])
        else:
            found.append(float("nan"))
    return found


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Distances from polynomials, at the captioned epoch and in the beginning; valid once something is learned."""
    found = {}
    for name, run in runs.items():
        begun, order = _begun(run), LINES[name]
        last = np.full(len(run.seeds), _end(run, variant))
        found[f"fc-fig5-{name}"] = PerSeed(_distances(run, last, order), begun >= 0)
        found[f"fc-fig5-{name}-begin"] = PerSeed(_distances(run, begun, order))
        if order > 1:
            found[f"fc-fig5-{name}-nonlinear"] = PerSeed(_distances(run, begun, 1))
    return found


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Outputs of the median seed, in the beginning and at the captioned epoch, with their polynomials."""
    with look():
        figure = Figure(figsize=(PAGE, 4.1), layout="constrained")
        rows = figure.subplots(2, len(runs), sharex=True)
        for column, (name, run) in enumerate(runs.items()):
            distances = np.asarray(_measured(claims, f"fc-fig5-{name}").values)
            k = int(np.argsort(np.nan_to_num(distances, nan=np.inf), kind="stable")[len(distances) // 2])
            seed = run.seeds[k]
            x, y = run.data(seed)
            begun = int(_begun(run)[k])
            for row, step in zip((0, 1), (begun, _end(run, lab.variant)), strict=True):
                if step < 0:
                    continue
                outputs = run.output(POINTS[:, None], step, seed)[:, 0]
                fit, distance = fit_polynomial(POINTS, outputs, LINES[name])
                axes = rows[row, column]
                if row:
                    axes.scatter(x[:, 0], y[:, 0], s=6, color=COLOURS[2], linewidth=0, label="data")
                axes.plot(POINTS, outputs, color=COLOURS[0], linewidth=2, label="network")
                axes.plot(POINTS, fit, color=COLOURS[1], linestyle="--", label="polynomial of order p")
                axes.set_title(f"{label(name)}, step {step}: {distance:.1%} apart")
            rows[1][column].set_xlabel("$x$")
        only_outer(figure, list(rows.ravel()))
        for axes in rows[:, 0]:
            axes.set_ylabel("output")
    why = {}
    for name, run in runs.items():
        key = f"fc-fig5-{name}"
        step, holds = _end(run, lab.variant), np.array(claims[key].holds)
        loss = relative_loss(run)[:, np.flatnonzero(run.saved == step)[0]]
        failing = np.flatnonzero(~holds).tolist()
        if len(failing):
            why[key] = (
                f"In the seeds that fail, the loss at step {step} is at {np.median(loss[failing]):.2f} of its first "
                f"value (median; the initial stage ends at {STAGE:g}) and |w.x| has grown to "
                f"{np.median([_largest(run, step, k) for k in failing]):.2g}: the activation is no longer its leading "
                f"power there. In the beginning the statement holds in {sum(claims[f'{key}-begin'].holds)} of "
                f"{len(holds)} seeds."
            )
        if LINES[name] > 1:
            straight = _measured(claims, f"{key}-nonlinear").median
            why[f"{key}-nonlinear"] = (
                f"A polynomial of order {LINES[name]} in the input and the bias has a straight part too, and on these "
                f"data it is the larger one: a straight line is {straight:.0%} away from the output (median)."
            )
    return Findings(
        caption=(
            "Outputs (blue) in the beginning, at the first saved step with 1% of the loss gone (top, at its own "
            f"scale), and at epoch {FIG5_EPOCH} (bottom), each with its best polynomial of the order of the "
            "activation's multiplicity (orange, dashed); the seed shown is the median one by its distance from the "
            "polynomial at the captioned epoch. Green: data."
        ),
        settings={
            "network": "1-100-1, no output bias, float64",
            "data": "40 points of sin(3x) + sin(6x)/2, x uniform on [-1, 1.5]",
            "start": "N(0, 0.005²)",
            "optimizer": "Adam, full batch, learning rate 5e-4, eps 1e-8",
            "distance": "of the output from the polynomial on 251 points, relative to the output's variation about "
            "its mean",
        },
        pictures={"fc-fig5": figure},
        data=stack_columns({name: _columns(claims, name) for name in runs}, "activation"),
        why={key: text for key, text in why.items() if claims[key].verdict != "reproduced"},
    )


def _largest(run: Trajectory, step: int, k: int) -> float:
    """The largest |w.x| of a seed's neurons and samples."""
    x = run.data(run.seeds[k])[0]
    return float(np.abs(run.history(1)[k, np.flatnonzero(run.saved == step)[0]] @ np.c_[x, np.ones(len(x))].T).max())


def _measured(claims: Mapping[str, Claim], key: str) -> PerSeed:
    measured = claims[key].measured
    assert measured is not None
    return measured


def _columns(claims: Mapping[str, Claim], name: str) -> dict[str, np.ndarray]:
    end, begin = (_measured(claims, f"fc-fig5-{name}{part}").values for part in ("", "-begin"))
    return {"seed": np.arange(len(end)), "distance": np.asarray(end), "distance_in_the_beginning": np.asarray(begin)}


RECIPE = Recipe("fc-fig5", "FC Fig. 5: the initial output is a polynomial", FIG5, experiments, measure, show)
