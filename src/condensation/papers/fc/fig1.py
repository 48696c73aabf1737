"""FC Fig. 1, the illustration of condensation, made from a real network: random, condensed, reduced."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...drawing import draw_network, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure._similarity import norms
from ...reduction import Reduction, reduce
from ...reduction._reduce import centred_error
from ...runs import Trajectory
from .._claims import PerSeed
from .._counts import count
from .._legacy import Claim, Findings, Lab, Recipe, Runs
from .._variant import Variant
from .experiments import fig3
from .statements import FIG1

EPOCH = 50


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The tanh network of Fig. 3."""
    return {"tanh": fig3("tanh")}


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Lines, equality of amplitudes, and the effective network's error."""
    run = runs["tanh"]
    found = count(run, "dense1", EPOCH, variant)
    sizes = [norms(found.weights[k, column]) for k, column in enumerate(found.column)]
    errors = [_reduced(run, k, int(step)).centred_error for k, step in enumerate(found.steps)]
    return {
        "fc-fig1-line": found.lines_found(),
        "fc-fig1-same": PerSeed([float(r.std() / r.mean()) for r in sizes], found.condensed),
        "fc-fig1-effective": PerSeed([float("nan") if error is None else error for error in errors]),
        "fc-fig1-sum": PerSeed([_summed_error(run, k, int(step)) for k, step in enumerate(found.steps)]),
    }


def _summed_error(run: Trajectory, k: int, step: int) -> float:
    """Error of one neuron with the largest neuron's input weight and the sum of all output weights."""
    model, x = run.model(step, run.seeds[k]), run.data(run.seeds[k])[0]
    w, a = model.weights("dense1"), model.parameters["output.weight"][0]
    summed = a.sum() * np.tanh(np.c_[x, np.ones(len(x))] @ w[norms(w).argmax()])
    return centred_error(model(x), summed[:, None])


def _reduced(run: Trajectory, k: int, step: int) -> Reduction:
    seed = run.seeds[k]
    return reduce(run.model(step, seed), run.data(seed)[0], units=1)


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """The network of the median seed at the start, at epoch 50, and as one neuron."""
    run = runs["tanh"]
    found = count(run, "dense1", EPOCH, lab.variant)
    k = found.median_seed
    seed, step = run.seeds[k], int(found.steps[k])
    effective = _reduced(run, k, step)
    before, after = run.model(0, seed), run.model(step, seed)
    order = np.argsort(after.weights("dense1") @ effective.model.weights("dense1")[0])
    error = f"{effective.centred_error:.1%}"
    with look():
        figure = Figure(figsize=(PAGE, 3.1), layout="constrained")
        panels = figure.subplots(1, 3)
        draw_network(before, panels[0], order=order, title="(a) at the start: random")
        draw_network(after, panels[1], order=order, title=f"(b) epoch {step}: condensed")
        draw_network(effective.model, panels[2], title=f"(c) one effective neuron: {error} away")
    spread = claims["fc-fig1-same"].measured
    assert spread is not None
    why = {
        "fc-fig1-same": "The directions agree, up to the sign; the amplitudes do not: they differ by "
        f"{spread.median:.0%} (std over mean, median of the seeds), as the paper's discussion grants. The reduction "
        "takes them into account.",
        "fc-fig1-sum": "The neurons condense on a line, not in one direction: those on its two sides have output "
        "weights of opposite signs, which cancel in the plain sum. With the sign of each neuron's side, and its "
        f"amplitude, the effective neuron is {_median(claims, 'fc-fig1-effective'):.1%} away (median) instead of "
        f"{_median(claims, 'fc-fig1-sum'):.0%}.",
    }
    return Findings(
        caption=(
            "Condensation in a trained network: the 5-50-1 tanh network of Fig. 3 (median seed) at the start (a) and "
            f"at epoch {step} (b), and the network of one effective neuron that takes its place (c), whose output "
            f"differs by {error}. A line is a weight: orange positive, blue negative, the stronger the larger it is "
            "within its layer. Neurons stand in the order of their signed amplitude at epoch 50 in (a) too."
        ),
        settings={
            "network, data, start, optimizer": "those of Fig. 3, tanh",
            "reduction": "all neurons to one, by the line's sign",
        },
        pictures={"fc-fig1": figure},
        data=found.columns() | {"error": np.asarray(claims["fc-fig1-effective"].measured.values)},  # type: ignore[union-attr]
        why={key: text for key, text in why.items() if claims[key].verdict != "reproduced"},
    )


def _median(claims: Mapping[str, Claim], key: str) -> float:
    measured = claims[key].measured
    return float("nan") if measured is None else measured.median


RECIPE = Recipe("fc-fig1", "FC Fig. 1: what condensation is", FIG1, experiments, measure, show)
