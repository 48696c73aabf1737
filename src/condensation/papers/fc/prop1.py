"""FC Proposition 1, Remark 1, the conjecture, and what the text says of depth and of several outputs."""

from collections.abc import Mapping
from functools import cache, lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...activations import multiplicity
from ...data import Arrays, Images
from ...drawing import draw_predicted, look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...measure import count_lines, nearest_lines
from ...measure import directions as unit_weights
from ...networks import Dense
from ...optimizers import GradientFlow, NormalisedGD
from ...prediction import layer_fields
from ...runs import Trajectory
from ...saving import At, Evenly
from ...seeds import as_seed
from ...theory import labels_for, polar_velocity, residual_at_zero, stationary_directions
from .._claims import PerSeed
from .._legacy import Claim, Findings, Lab, Recipe, Runs, columns_of
from .._tables import Table
from .._variant import Variant
from .experiments import fig3, six_layers
from .statements import PROP1

SEEDS = 10  # of data, where nothing is trained
DIMENSIONS = (1, 2, 3, 5, 10, 20)
MULTIPLICITIES = (1, 2, 3, 4, 5, 6)
NAMED = {"tanh": 1, "sigmoid": 1, "softplus": 1, "gelu": 1, "swish": 1, "x_tanh": 2, "x2_tanh": 3}
DIM, P = 4, 3  # of the labels that break the conjecture
FLOW_STEPS = 100
ROUNDING = 1e-6


def simplex_lines() -> np.ndarray:
    """D + 1 lines of equal angles in D = 4 dimensions."""
    corners = np.linalg.svd(np.eye(DIM + 1) - 1 / (DIM + 1))[0][:, :DIM]
    return corners / np.linalg.norm(corners, axis=1, keepdims=True)


def conjecture_data() -> Arrays:
    """60 points with labels solved so that five lines attract at multiplicity 3."""
    x = np.random.default_rng(0).normal(size=(60, DIM))
    y = labels_for(simplex_lines(), x, P)
    return Arrays(x, y / np.abs(y).max())


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Gradient flow at multiplicity 1; solved labels at multiplicity 3; ten outputs under two losses; deep networks."""
    captioned = fig3("tanh")
    flow = captioned.replace(
        init=Init(Normal(std=5e-5)),
        optimizer=GradientFlow(0.2, stop_ratio=0.99, atol=1e-18),
        steps=FLOW_STEPS,
        save=Evenly(11),
        record=Evenly(101),
    )
    digits = Experiment(
        Dense((64, 50, 10), "tanh"),
        Init(Normal(std=1e-5)),
        Images("digits", n=300, flat=True, scale="standardised"),
        GradientFlow(2.0, stop_ratio=0.99, atol=1e-18),
        FLOW_STEPS,
        save=At(()),
        record=Evenly(11),
    )
    return {
        "flow": flow,
        "start": captioned,
        "six": six_layers(residual=True),
        "a5": six_layers(residual=False),
        "conjecture": Experiment(
            Dense((DIM, 200, 1), "x2_tanh", bias=False),
            Init(Normal(1e-3)),
            conjecture_data(),
            NormalisedGD(1e-5),
            4000,
            save=At(()),
        ),
        "outputs-mse": digits,
        "outputs-ce": digits.replace(loss=Loss("cross_entropy")),
    }


def _with_bias(run: Trajectory, k: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = run.data(run.seeds[k])
    return np.c_[x, np.ones(len(x))], y


def _random_data(seed: int, dim: int, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    stream = np.random.default_rng([seed, dim])
    return np.c_[stream.uniform(-1, 1, (n, dim)), np.ones(n)], stream.normal(size=n)


def _cosines(run: Trajectory, k: int, direction: np.ndarray) -> np.ndarray:
    """|cos| of each neuron of the first layer at the last step to a direction."""
    weights = run.weights(1, int(run.saved[-1]), run.seeds[k])
    return np.abs(unit_weights(weights) @ direction) / max(float(np.linalg.norm(direction)), 1e-300)


def _gradient(run: Trajectory, k: int) -> np.ndarray:
    """G = mean of residual times input at output 0, outputs x inputs."""
    x, y = _with_bias(run, k)
    return residual_at_zero(y, run.experiment.loss).T @ x / len(x)


def _summed(gradient: np.ndarray) -> np.ndarray:
    """The sum of G over the outputs; zero where nothing but rounding is left of it."""
    total = gradient.sum(axis=0)
    return total if np.linalg.norm(total) > ROUNDING * np.linalg.norm(gradient) else np.zeros_like(total)


@lru_cache(maxsize=16)
def _shares(run: Trajectory, step: int) -> np.ndarray:
    """Share of one common field at a step, seeds x hidden layers."""
    loss = run.experiment.loss
    each = [layer_fields(run.model(step, seed), *run.data(seed), loss) for seed in run.seeds]
    return np.array([[field.share for field in fields.values()] for fields in each])


def _least_share(run: Trajectory) -> np.ndarray:
    """The least share over the layers, at the start and at the last step, in each seed."""
    return np.minimum(*(_shares(run, step).min(axis=1) for step in (0, int(run.saved[-1]))))


def _rates(run: Trajectory, scale: float = 1.0) -> np.ndarray:
    """Medians over the neurons of |du/dt| over |dr/dt|, and over |dr/dt|/r, from the start times a scale: seeds x 2."""
    found = []
    for k, seed in enumerate(run.seeds):
        x, y = _with_bias(run, k)
        model = run.model(0, seed)
        weights, a = scale * model.weights(1), scale * model.parameters["output.weight"][0]
        growing, turning = polar_velocity(weights, a, x, y[:, 0], run.experiment.network.activations[0])
        ratio = np.linalg.norm(turning, axis=1) / np.abs(growing)
        found.append((np.median(ratio), np.median(ratio * np.linalg.norm(weights, axis=1))))
    return np.array(found)


@cache
def _theory() -> dict[str, PerSeed]:
    """What is computed from data alone."""
    p1, one_dim, finite, two = [], [], [], []
    for seed in range(SEEDS):
        p1.append(max(2 * stationary_directions(*_random_data(seed, dim), 1).count for dim in DIMENSIONS))
        one_dim.append(max(2 * stationary_directions(*_random_data(seed, 1), p).count - 2 * p for p in MULTIPLICITIES))
        x, y = fig3("x2_tanh").data.draw(as_seed(seed))
        inputs = np.c_[x, np.ones(len(x))]
        cubic, square = (stationary_directions(inputs, y[:, 0], p) for p in (3, 2))
        finite.append((cubic.count, cubic.certified))
        two.append(2 * int(square.attracts.sum()))
    as_stated = sum(multiplicity(name) == p for name, p in NAMED.items())
    return {
        "fc-prop1-p1": PerSeed(p1),
        "fc-prop1-1d": PerSeed(one_dim),
        "fc-prop1-finite": PerSeed([count for count, _ in finite], [all_found for _, all_found in finite]),
        "fc-prop1-two": PerSeed(two),
        "fc-prop1-multiplicity": PerSeed([as_stated]),
    }


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """All quantities."""
    flow, conjecture = runs["flow"], runs["conjecture"]
    to_line = []
    for k in range(len(flow.seeds)):
        x, y = _with_bias(flow, k)
        to_line.append(float(np.median(_cosines(flow, k, y[:, 0] @ x))))
    last = count_lines(conjecture.history(1)[:, -1:], threshold=variant.threshold)
    sums = {
        f"fc-prop1-{key}": PerSeed(
            [float(np.median(_cosines(run, k, _summed(_gradient(run, k))))) for k in range(len(run.seeds))]
        )
        for key in ("outputs-mse", "outputs-ce")
        if (run := runs[key])
    }
    return {
        **_theory(),
        "fc-prop1-flow": PerSeed(to_line),
        "fc-prop1-conjecture": PerSeed(last.orientations[:, 0], last.condensed[:, 0]),
        "fc-prop1-common": PerSeed(_least_share(runs["six"])),
        "fc-prop1-common-plain": PerSeed(_least_share(runs["a5"])),
        "fc-prop1-faster": PerSeed(_rates(runs["start"])[:, 0]),
        "fc-prop1-faster-rates": PerSeed(_rates(runs["start"], 0.1)[:, 1] / _rates(runs["start"])[:, 1]),
        **sums,
    }


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Directions that stay against the multiplicity, and the network that condenses on more lines than p."""
    with look():
        figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
        _draw_counts(left)
        _draw_outputs(middle, runs)
        _draw_conjecture(right, runs["conjecture"])
    rows = tuple(
        (f"{title}, step {step}", *(f"{v:.3f}" for v in np.median(_shares(runs[key], step), axis=0)))
        for key, title in (("six", "with residual connections"), ("a5", "without"))
        for step in (0, int(runs[key].saved[-1]))
    )
    tops = {
        key: float(
            np.median(
                [
                    np.median(_cosines(runs[key], k, np.linalg.svd(_gradient(runs[key], k))[2][0]))
                    for k in range(len(runs[key].seeds))
                ]
            )
        )
        for key in ("outputs-mse", "outputs-ce")
    }
    orientations = claims["fc-prop1-conjecture"].measured
    assert orientations is not None
    why = {
        "fc-prop1-conjecture": f"Labels can be solved so that five lines attract (right panel), and the trained "
        f"networks go to all of them: {orientations.median:g} orientations (median) where 2p = {2 * P}. The "
        "proposition's two cases are true; what is conjectured beyond them is not.",
        "fc-prop1-faster-rates": "Both rates are proportional to 1/r, so that their ratio does not depend on the "
        f"size of the start: it is {np.median(_rates(runs['start'])[:, 1]):.1f} (median), what random vectors in six "
        "dimensions give. What lets the orientation settle before the loss moves is the time that a small start "
        "takes to grow.",
        "fc-prop1-outputs-ce": "With cross-entropy the residuals of all outputs add up to zero, so the sum predicts "
        "nothing. The line is the top right singular vector of G = mean of residual times input: median |cos| "
        f"{tops['outputs-ce']:.2f} to it (with MSE {tops['outputs-mse']:.3f}, where the common mean of one-hot "
        "targets makes the sum and that vector nearly the same).",
    }
    header = ("six layers, median of the seeds", *(f"layer {k}" for k in range(1, 6)))
    return Findings(
        caption=(
            "Left: stationary (grey) and attracting (blue) orientations at one-dimensional input against the "
            "multiplicity p, ten random data sets each, with the bound 2p (orange). Middle: |cos| of 50 neurons to "
            "the summed direction (orange) and to G's top singular vector (blue), ten outputs on digits. Right: "
            "labels with five attracting lines at p = 3 in four dimensions: each of 200 trained neurons with its "
            "nearest predicted line, and how many went to each."
        ),
        settings={
            "counts": f"random data, {DIMENSIONS[0]} to {DIMENSIONS[-1]} inputs and a bias, 40 samples",
            "gradient flow": "Fig. 3's tanh network from std 5e-5, stopped when 1% of the loss is gone",
            "outputs": "64-50-10, tanh, 300 digits, gradient flow from std 1e-5, stopped when 1% of the loss is gone",
            "solved labels": "4-200-1, x² tanh x, no bias, 60 points; neuron-normalised gradient descent from std "
            "1e-3, 4000 steps",
        },
        pictures={"fc-prop1": figure},
        tables=(Table("Share of one field that is common to all neurons of a layer", header, rows),),
        data=columns_of(claims),
        why={key: text for key, text in why.items() if claims[key].verdict != "reproduced"},
    )


def _draw_counts(axes: Axes) -> None:
    stream = np.random.default_rng(0)
    for p in MULTIPLICITIES:
        each = [stationary_directions(*_random_data(seed, 1), p) for seed in range(SEEDS)]
        for values, colour, name in (
            ([2 * one.count for one in each], FAINT, "stationary"),
            ([2 * int(one.attracts.sum()) for one in each], COLOURS[0], "attracting"),
        ):
            shift = -0.13 if name == "stationary" else 0.13
            spread = stream.uniform(-0.07, 0.07, SEEDS)
            axes.scatter(p + shift + spread, values, s=7, color=colour, linewidth=0, label=name if p == 1 else None)
    axes.plot(MULTIPLICITIES, [2 * p for p in MULTIPLICITIES], color=COLOURS[1], label="2p")
    axes.set(xlabel="multiplicity p", ylabel="orientations", title="one-dimensional input", ylim=(0, None))
    axes.legend(loc="upper left")


def _draw_outputs(axes: Axes, runs: Runs) -> None:
    for place, key in enumerate(("outputs-mse", "outputs-ce")):
        run = runs[key]
        for shift, colour, name in (
            (-0.16, COLOURS[1], "sum of the outputs"),
            (0.16, COLOURS[0], "top singular vector"),
        ):
            values = []
            for k in range(len(run.seeds)):
                g = _gradient(run, k)
                values.append(np.median(_cosines(run, k, _summed(g) if shift < 0 else np.linalg.svd(g)[2][0])))
            axes.scatter(
                np.full(len(values), place + shift),
                values,
                s=9,
                color=colour,
                alpha=0.7,
                linewidth=0,
                label=None if place else name,
            )
    axes.set(xlim=(-0.6, 1.6), ylim=(0, 1.03), ylabel="median |cos| of the neurons", title="ten outputs")
    axes.set_xticks([0, 1], ["MSE", "cross-entropy"])
    axes.legend(loc="center left")


def _draw_conjecture(axes: Axes, run: Trajectory) -> None:
    x, y = run.data(run.seeds[0])
    weights, predicted = run.weights(1, int(run.saved[-1]), run.seeds[0]), stationary_directions(x, y[:, 0], P)
    draw_predicted(weights, predicted, axes, title=f"p = {P}, D = {DIM}: {predicted.attracts.sum()} lines, not {P}")
    legend = axes.get_legend()
    assert legend is not None
    legend.remove()
    nearest = np.bincount(nearest_lines(weights, predicted.directions[predicted.attracts])[0])
    for end, size in zip(np.cumsum(nearest), nearest, strict=True):
        axes.annotate(str(size), (end - size / 2, 0.05), ha="center", color="white")


RECIPE = Recipe(
    "fc-prop1",
    "FC Proposition 1, the conjecture, and statements of the text",
    PROP1,
    experiments,
    measure,
    show,
    has_variants=False,
)
