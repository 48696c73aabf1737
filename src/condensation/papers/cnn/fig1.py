"""CNN Fig. 1, the illustration of condensation, made from a real network: random filters, condensed ones, two."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...networks import Conv, Model
from ...reduction import reduce
from ...reduction._reduce import centred_error
from ...runs import Trajectory
from ...saving import At
from .._claims import PerSeed, Rule
from .._counts import Counts, count
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._variant import Variant
from .experiments import descent
from .words import GD_SETTINGS, QUICK_DESCENT


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(f"cnn-fig1-{key}", "cnn-fig1", "Fig. 1", text, quantity, rule, paper="CNN")


STATEMENTS = (
    _statement(
        "groups",
        "soon after training begins the units are in two groups",
        "orientations of filters",
        Rule("exactly", 2),
    ),
    _statement(
        "effective",
        "the units of a group can be replaced by one effective unit, although their amplitudes differ",
        "error of the network of two filters, relative, mean removed",
        Rule("at most", 0.05),
    ),
    replace(
        _statement(
            "one",
            "for tanh at small amplitude one filter is enough, the two groups being opposite",
            "error of the network of one filter, relative, mean removed",
            Rule("at most", 0.05),
        ),
        ours=True,
    ),
    _statement(
        "sum",
        "read to the letter: an effective unit has the input weight of its group (of its largest unit, as they "
        "differ) and the plain sum of the group's output weights",
        "error of the network of two such filters, relative, mean removed",
        Rule("at most", 0.05),
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 2's network, whole at its first and its last step."""
    one = descent(scale)
    return {"descent": one.replace(save=At(()), kept_layers=None)}


def _counts(run: Trajectory, variant: Variant) -> Counts:
    return count(run, "conv1", int(run.saved[-1]), variant, view="filter")


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Orientations, and the errors of three reduced networks."""
    run = runs["descent"]
    counts, last = _counts(run, variant), int(run.saved[-1])
    errors: dict[str, list[float]] = {"effective": [], "one": [], "sum": []}
    for seed in run.seeds:
        model, x = run.model(last, seed), run.data(seed)[0]
        whole, one = model(x), reduce(model, x, units=1).centred_error
        errors["one"].append(float("nan") if one is None else one)
        errors["effective"].append(centred_error(whole, merge_sides(model)(x)))
        errors["sum"].append(centred_error(whole, merge_sides(model, weighted=False)(x)))
    return {"cnn-fig1-groups": counts.orientations_found()} | {
        f"cnn-fig1-{name}": PerSeed(values) for name, values in errors.items()
    }


def merge_sides(model: Model, weighted: bool = True) -> Model:
    """Two filters, each the largest of its side of the filters' leading line, for all of that side.

    Args:
        model: the network.
        weighted: output weights are summed in proportion to the amplitudes of their filters; else as they are, which is
            the paper's sentence read to the letter.
    """
    filters = model.weights("conv1", view="filter").astype(float)
    axis = np.linalg.svd(filters, full_matrices=False)[2][0]
    side, size = filters @ axis >= 0, np.linalg.norm(filters, axis=1)
    output = model.parameters["output.weight"].reshape(model.network.outputs, len(filters), -1)
    weight, bias, out = [], [], []
    for group in (side, ~side):
        if group.any():
            largest = int(np.where(group, size, -1).argmax())
            shares = (size[group] / size[largest] if weighted else np.ones(group.sum()))[:, None]
            weight.append(model.parameters["conv1.weight"][largest])
            bias.append(model.parameters["conv1.bias"][largest])
            out.append((output[:, group] * shares).sum(axis=1).astype(output.dtype))
    network = model.network
    assert isinstance(network, Conv)
    parameters = {
        "conv1.weight": np.stack(weight),
        "conv1.bias": np.stack(bias),
        "output.weight": np.stack(out, axis=1).reshape(network.outputs, -1),
    }
    small = Conv(network.image, (len(weight),), network.kernel, network.outputs, activation=network.activation)
    return Model(small, parameters)


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """The filters of the median seed at the start, at the last step, and the two that take their place."""
    run = runs["descent"]
    counts, last = _counts(run, lab.variant), int(run.saved[-1])
    k = counts.median_seed
    before, after = (run.weights("conv1", step, run.seeds[k], view="filter") for step in (0, last))
    model, x = run.model(last, run.seeds[k]), run.data(run.seeds[k])[0]
    effective = merge_sides(model)
    error = centred_error(model(x), effective(x))
    order = np.argsort(after[:, :-1].sum(axis=1))
    with look():
        figure = Figure(figsize=(PAGE, 2.0), layout="constrained")
        panels = figure.subplots(1, 3, width_ratios=(8, 8, 3))
        draw_filters(panels[0], before[order], 8, "(a) at the start: random")
        draw_filters(panels[1], after[order], 8, f"(b) step {last}: condensed")
        draw_filters(panels[2], effective.weights("conv1", view="filter"), 3, "(c) two remain", rows=4)
    medians = {
        key.removeprefix("cnn-fig1-"): claim.measured.median
        for key, claim in claims.items()
        if claim.measured is not None
    }
    why = {
        "cnn-fig1-sum": "Within a group directions agree, amplitudes do not: an output weight counts as much as its "
        f"filter is long. With the largest filter of each group the plain sum is {medians['sum']:.0%} off, the sum "
        f"weighted by amplitude {medians['effective']:.1%} (medians)."
    }
    return Findings(
        caption="Condensation in a trained network: the 32 filters of Fig. 2's network (median seed) as small colour "
        f"images, at the start (a) and at step {last} (b), and the two that replace them (c), whose output differs "
        f"by {error:.1%}. Grey is zero; each filter is scaled by its own largest entry.",
        settings={
            "network": "that of Fig. 2: one convolution layer of 32 channels with 3 x 3 kernels (tanh), 10 outputs",
            "data": "500 images of CIFAR-10 drawn at random, pixels in [-1, 1]",
            **GD_SETTINGS,
        },
        pictures={"cnn-fig1": figure},
        data=counts.columns(),
        why={key: text for key, text in why.items() if claims[key].verdict != "reproduced"},
    )


def draw_filters(
    axes: Axes, filters: Float[np.ndarray, "filters entries"], columns: int, title: str, rows: int = 1
) -> None:
    """Filters (without their bias) as small colour images in rows, each scaled by its largest entry."""
    side = round(((filters.shape[1] - 1) / 3) ** 0.5)
    images = filters[:, :-1].reshape(-1, 3, side, side).astype(float)
    images = 0.5 + 0.5 * images / np.abs(images).max(axis=(1, 2, 3), keepdims=True)
    rows = max(rows, -(-len(images) // columns))
    sheet = np.ones((rows * (side + 1) - 1, columns * (side + 1) - 1, 3))
    for k, image in enumerate(images):
        top, left = k // columns * (side + 1), k % columns * (side + 1)
        sheet[top : top + side, left : left + side] = image.transpose(1, 2, 0)
    axes.imshow(sheet, interpolation="nearest")
    axes.set_title(title)
    axes.axis("off")


_FULL, _SMALL = descent("paper"), descent("quick")
RECIPE = Recipe(
    "cnn-fig1",
    "CNN Fig. 1: what condensation of filters is",
    STATEMENTS,
    experiments,
    measure,
    show,
    QUICK_DESCENT.format(samples=_SMALL.data.n, steps=_SMALL.steps, all_steps=_FULL.steps),  # type: ignore[union-attr]
)
