"""CNN, introduction: does initial condensation reset networks of different starts to a similar and simple state?

All networks see the same images and differ in the start alone. One seed's starts of two sizes are proportional: across
sizes only different seeds are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ...data import Images
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE, SIMILARITY
from ...experiment import Experiment
from ...initialization import Glorot, Init, Normal
from ...measure import count_lines
from ...networks import Conv
from ...optimizers import GD
from ...runs import Trajectory
from ...saving import At
from ...seeds import Seed
from ...theory import KernelDynamics
from .._claims import PerSeed, Rule
from .._counts import relative_loss
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._trainings import require
from .._variant import NotRun, Variant
from .experiments import descent

NAME = "cnn-reset"
LEFT = 0.97  # of the first loss: a network is looked at where its loss is last at least that
SIZES = {"smaller": 0.1, "captioned": 1.0, "larger": 10.0}
TITLES = {"smaller": "a tenth", "captioned": "captioned", "larger": "ten times", "common": "Glorot"}
IMAGES, TEST_IMAGES = {"quick": 100, "paper": 500}, {"quick": 200, "paper": 1000}
QUICK_CHANNELS = 16
PRECISIONS = {"tf32": "float32, products in TF32 on a GPU"}
OFF = 0.95  # a filter with a smaller |cos| is off the line
# times in units of 1 / lambda_1: when about 3% of the loss is gone, and what is saved before and around that
LEAVES, EARLY, AROUND, TOGETHER = 6.6, (1.0, 2.0, 4.0, 6.0), (-1.0, -0.5, 0.0, 0.5), 4.0
COMMON_TIMES, COMMON_RATE = (0.02, 0.04, 0.06, 0.08, 0.1), 0.1
REDUCED = (
    f"{IMAGES['quick']} images instead of {IMAGES['paper']}, {QUICK_CHANNELS} channels instead of 32, steps of 0.15 "
    f"on the mean loss instead of 0.0025, {TEST_IMAGES['quick']} test images instead of {TEST_IMAGES['paper']}"
)
WHEN = f"where L/L₀ is last at least {LEFT:g}"

RESET = (
    Statement(
        "cnn-reset-functions",
        NAME,
        "Sec. 1",
        "initial condensation resets networks of different starts to a similar state: one function on the training "
        "images, but for its size",
        f"correlation of two networks' outputs {WHEN}: median over the other seeds, least of the three sizes of start",
        Rule("at least", 0.95),
        paper="CNN",
    ),
    Statement(
        "cnn-reset-test",
        NAME,
        "Sec. 1",
        "the functions are similar on images that were not trained on too",
        f"the same on test images {WHEN}",
        Rule("at least", 0.9),
        paper="CNN",
    ),
    Statement(
        "cnn-reset-directions",
        NAME,
        "Sec. 1",
        "different starts condense on the same line",
        f"|cos| of the leading lines of two networks' filters {WHEN}: median over the other seeds, least of the "
        "three sizes of start",
        Rule("at least", 0.99),
        paper="CNN",
    ),
    *(
        Statement(
            f"cnn-reset-simple-{name}",
            NAME,
            "Sec. 1",
            f"the state is simple: all filters of a network are on one line, stds {factor:g} times the captioned ones",
            f"lines of filters {WHEN}",
            Rule("exactly", 1),
            paper="CNN",
        )
        for name, factor in SIZES.items()
    ),
    Statement(
        "cnn-reset-sizes",
        NAME,
        "Sec. 1",
        "condensation makes a network insensitive to its start's standard deviation: a tenth, the captioned and ten "
        "times of it lead to one function",
        f"correlation of the outputs of two networks of different sizes of start and different seeds {WHEN}: median "
        "over the others, least of the three pairs of sizes",
        Rule("at least", 0.95),
        paper="CNN",
    ),
    Statement(
        "cnn-reset-amplitude",
        NAME,
        "Sec. 1",
        "read with size: at one step the outputs of networks of different sizes of start are equally large, up to a "
        "factor of 2",
        f"ratio of the outputs' standard deviations at the time {TOGETHER:g}/λ₁: median over networks of other seeds "
        "and sizes",
        Rule("at most", 2),
        paper="CNN",
        ours=True,
    ),
    Statement(
        "cnn-reset-common",
        NAME,
        "Sec. 1",
        "the control: networks of a common start (Glorot normal) are not alike at the same loss",
        f"correlation of two such networks' outputs on the training images {WHEN}: median over the other seeds",
        Rule("at most", 0.5),
        trained=False,
        paper="CNN",
        ours=True,
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Three sizes of the captioned start, and a common start beside, all on one draw of images."""
    data = Images("cifar10", n=IMAGES[scale], drawn_by=0)
    test = Images("cifar10", n=TEST_IMAGES[scale], split="test", drawn_by=0)
    require(data, test)
    captioned = descent(scale) if scale == "paper" else descent(scale, channels=QUICK_CHANNELS)
    assert isinstance(captioned.optimizer, GD)
    assert isinstance(captioned.data, Images)
    assert captioned.data.n is not None
    rate = captioned.optimizer.learning_rate * captioned.data.n / IMAGES[scale]  # the same on the mean loss
    on_these = captioned.replace(data=data, test=test, optimizer=GD(rate), kept_layers=None)
    pace = rate * _dynamics(on_these).values[0]
    found = {}
    for name, factor in SIZES.items():
        leaves = LEAVES - np.log(factor)
        times = [*(early for early in EARLY if early < leaves), *(leaves + around for around in AROUND)]
        found[name] = _saved_at(on_these.replace(init=_scaled(captioned, factor)), times, pace)
    slower = on_these.replace(init=Init(Glorot()), optimizer=GD(rate * COMMON_RATE))
    return found | {"common": _saved_at(slower, COMMON_TIMES, pace * COMMON_RATE)}


def _scaled(experiment: Experiment, factor: float) -> Init:
    """The experiment's start with all stds times a factor."""
    network = experiment.network
    laws = zip(network.layers, experiment.init.laws(network), strict=True)
    convolution, output = (Normal(factor * law.std_of(layer, layer.weight[0])) for layer, law in laws)
    return Init(output, convolution=convolution)


def _saved_at(experiment: Experiment, times: list[float] | tuple[float, ...], pace: float) -> Experiment:
    """The experiment up to the last of some times, saved at each; a step takes ``pace`` of them."""
    steps = [max(1, round(time / pace)) for time in times]
    return experiment.replace(steps=max(steps), save=At(tuple(steps)), record=At(tuple(steps)))


def _dynamics(experiment: Experiment) -> KernelDynamics:
    """The leading order on the images that all networks see."""
    assert isinstance(experiment.network, Conv)
    x, y = experiment.data.draw(Seed(0, 0))
    return KernelDynamics.of(x, y, experiment.network.kernel, experiment.loss)


@lru_cache(maxsize=8)
def _pace(run: Trajectory) -> float:
    """The time that a step takes, in units of 1 / lambda_1."""
    assert isinstance(run.experiment.optimizer, GD)
    return run.experiment.optimizer.learning_rate * _dynamics(run.experiment).values[0]


@dataclass(frozen=True)
class _States:
    """The networks of one start, each at one saved step of its own.

    Attributes:
        steps: of each seed.
        loss: L/L0 there.
        lines: the leading right singular vector of each network's filters.
        functions: outputs on the training images, mean removed, of length 1.
        held_out: the same on the test images.
        sizes: standard deviation of the outputs on the training images.
        filters: of each network.
    """

    steps: np.ndarray
    loss: np.ndarray
    lines: Float[np.ndarray, "seeds columns"]
    functions: Float[np.ndarray, "seeds outputs"]
    held_out: Float[np.ndarray, "seeds outputs"]
    sizes: np.ndarray
    filters: Float[np.ndarray, "seeds filters columns"]


def _states(run: Trajectory, column: np.ndarray) -> _States:
    """The networks at given positions among the saved steps."""
    seeds = np.arange(len(run.seeds))
    test = run.experiment.test
    assert test is not None
    steps = run.saved[column]
    on_both = []
    for x in (run.data(run.seeds[0])[0], test.draw(run.seeds[0])[0]):
        outputs = np.stack([run.output(x, int(s), seed).ravel() for s, seed in zip(steps, run.seeds, strict=True)])
        centred = outputs.astype(float) - outputs.mean(axis=1, keepdims=True, dtype=float)
        on_both.append((centred / np.linalg.norm(centred, axis=1, keepdims=True), centred.std(axis=1)))
    filters = run.history("conv1", view="filter")[seeds, column]
    return _States(
        steps=steps,
        loss=relative_loss(run)[seeds, column],
        lines=np.linalg.svd(filters.astype(float), full_matrices=False)[2][:, 0],
        functions=on_both[0][0],
        held_out=on_both[1][0],
        sizes=on_both[0][1],
        filters=filters,
    )


def _at(run: Trajectory, column: int) -> _States:
    """All networks at one position among the saved steps."""
    return _states(run, np.full(len(run.seeds), column))


def column_looked_at(run: Trajectory) -> Int[np.ndarray, " seeds"]:
    """For each seed the position of the last saved step before the loss falls below 97% of the first one."""
    return np.logical_and.accumulate(relative_loss(run) >= LEFT, axis=1).sum(axis=1) - 1


def _condensed(run: Trajectory) -> _States:
    """Each network where it is looked at."""
    return _states(run, column_looked_at(run))


def _together(run: Trajectory) -> _States:
    """All networks at the step that is saved in all sizes of start."""
    return _at(run, int(np.abs(run.saved * _pace(run) - TOGETHER).argmin()))


def _with_others(block: Float[np.ndarray, "seeds seeds"]) -> np.ndarray:
    """For each seed the median over all pairs with another seed, on either side.

    >>> _with_others(np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]]))
    array([0.3, 0.4, 0.5])
    """
    count = len(block)
    return np.array([np.median([*np.delete(block[k], k), *np.delete(block[:, k], k)]) for k in range(count)])


def _alike(states: Mapping[str, _States], what: str) -> dict[tuple[str, str], np.ndarray]:
    """For each pair of starts, and for each with itself, |cos| or correlation of all pairs of their networks."""
    vectors = {name: getattr(found, what) for name, found in states.items()}
    pairs = {(one, other): vectors[one] @ vectors[other].T for one in vectors for other in vectors}
    return {pair: np.abs(block) for pair, block in pairs.items()} if what == "lines" else pairs


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """How alike the networks are: a value for each seed, from its pairs with the others."""
    _check(runs)
    states = {name: _condensed(runs[name]) for name in SIZES}
    functions, held_out, lines = (_alike(states, what) for what in ("functions", "held_out", "lines"))

    def least_within(blocks: Mapping[tuple[str, str], np.ndarray]) -> np.ndarray:
        return np.min([_with_others(blocks[name, name]) for name in SIZES], axis=0)

    counts = {name: count_lines(states[name].filters[:, None], threshold=variant.threshold) for name in SIZES}
    common = _alike({"common": _condensed(runs["common"])}, "functions")
    return {
        "cnn-reset-functions": PerSeed(least_within(functions)),
        "cnn-reset-test": PerSeed(least_within(held_out)),
        "cnn-reset-directions": PerSeed(least_within(lines)),
        **{f"cnn-reset-simple-{name}": PerSeed(one.lines[:, 0], one.condensed[:, 0]) for name, one in counts.items()},
        "cnn-reset-sizes": PerSeed(np.min([_with_others(functions[pair]) for pair in combinations(SIZES, 2)], axis=0)),
        "cnn-reset-amplitude": PerSeed(_ratios(runs)),
        "cnn-reset-common": PerSeed(_with_others(common["common", "common"])),
    }


def _check(runs: Runs) -> None:
    """Refuse where there are no pairs."""
    if not runs.keys() >= TITLES.keys():
        raise NotRun("all starts are needed, and one of them cannot be changed so")
    if min(len(run.seeds) for run in runs.values()) < 2:
        raise NotRun("pairs of seeds are compared: at least two are needed")


def _ratios(runs: Runs) -> np.ndarray:
    """For each seed the median ratio of sizes to networks of other seeds and other sizes of start, at one time."""
    sizes = np.log(np.stack([_together(runs[name]).sizes for name in SIZES]))
    found = []
    for k in range(sizes.shape[1]):
        others = np.delete(sizes, k, axis=1)
        pairs = [np.abs(sizes[a, k] - others[b]) for a in range(len(SIZES)) for b in range(len(SIZES)) if a != b]
        found.append(np.exp(np.median(pairs)))
    return np.array(found)


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Correlations before and after, against time, and what is not reset."""
    before = {name: _at(runs[name], 0) for name in TITLES}
    after = {name: _condensed(runs[name]) for name in TITLES}
    seeds, experiment = len(runs["captioned"].seeds), runs["captioned"].experiment
    assert isinstance(experiment.network, Conv)
    laws = zip(experiment.network.layers, experiment.init.laws(experiment.network), strict=True)
    convolution, output = (law.std_of(layer, layer.weight[0]) for layer, law in laws)
    return Findings(
        caption=(
            f"Top: correlation of the outputs on the training images between all pairs of {len(TITLES) * seeds} "
            f"networks ({seeds} seeds of each start), before training and {WHEN}. Before training the networks of one "
            "seed are proportional, or nearly so (beige diagonals). Bottom: one minus the correlation of the outputs "
            "and one minus |cos| of the leading lines of filters, medians over the pairs of seeds within a size of "
            "start, against time; and the size of the outputs (thin: each seed). All networks see the same images."
        ),
        settings={
            "network": f"that of Fig. 2: one convolution layer of {experiment.network.channels[0]} channels with "
            "3 x 3 kernels, tanh, an output layer of 10",
            "data": f"one draw of {len(experiment.data.draw(Seed(0, 0))[0])} images of CIFAR-10 for all seeds",
            "starts": f"captioned: convolution N(0, ({convolution:.3g})²), output layer N(0, ({output:.3g})²); all "
            "stds times 0.1 and times 10; beside them Glorot normal",
            "optimizer": "that of Fig. 2: gradient descent on the summed loss, learning rate "
            f"{_rate(runs['captioned']):.3g} (Glorot: {_rate(runs['common']):.3g})",
            "loss": "half the squared error after softmax, summed over the samples",
            "precision": PRECISIONS.get(experiment.dtype, experiment.dtype),
            "chosen by us": "the sizes of start, the moment, the measures of similarity and their thresholds: the "
            "paper gives none; λ₁ is the largest singular value of Z",
        },
        pictures={NAME: _draw(runs, before, after)},
        tables=(_similarity_table(before, after), _start_table(runs, after)),
        data=_pair_columns(before, after),
        why=_why(runs, claims, after),
    )


def _rate(run: Trajectory) -> float:
    assert isinstance(run.experiment.optimizer, GD)
    return run.experiment.optimizer.learning_rate


def _draw(runs: Runs, before: Mapping[str, _States], after: Mapping[str, _States]) -> Figure:
    """Correlations before and after as matrices; unlikeness and size against time."""
    with look():
        figure = Figure(figsize=(PAGE, 5.5), layout="constrained")
        top, bottom = figure.subplots(2, 2, height_ratios=(1.35, 1))
        images = [_draw_matrix(axes, states) for axes, states in zip(top, (before, after), strict=True)]
        top[0].set_title("(a) before training")
        top[1].set_title(f"(b) where $L/L_0$ is last at least {LEFT:g}")
        bar = figure.colorbar(images[0], ax=list(top), ticks=[-1, 0, 1], fraction=0.04, pad=0.02)
        bar.set_label("correlation of outputs")
        bar.outline.set_visible(False)  # type: ignore[operator]
        for colour, name in zip(COLOURS, SIZES, strict=False):
            _draw_times(bottom, runs[name], colour, TITLES[name])
        bottom[0].set(ylabel="1 - similarity of two seeds", title="(c) unlikeness within a size of start", yscale="log")
        bottom[1].set(ylabel="standard deviation of outputs", title="(d) size of the outputs", yscale="log")
        for axes in bottom:
            axes.set_xlabel("time in units of $1/\\lambda_1$")
        bottom[0].plot([], [], color=FAINT, label="functions")
        bottom[0].plot([], [], color=FAINT, linestyle="--", label="lines of filters")
        bottom[0].plot([], [], "o", color=FAINT, markerfacecolor="none", label=f"$L/L_0$ last at least {LEFT:g}")
        figure.legend(*bottom[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _draw_matrix(axes: Axes, states: Mapping[str, _States]) -> AxesImage:
    """Correlations of all pairs, a block for each pair of starts."""
    functions = np.concatenate([found.functions for found in states.values()])
    seeds = len(functions) // len(states)
    image = axes.imshow(functions @ functions.T, cmap=SIMILARITY, vmin=-1, vmax=1, interpolation="nearest")
    for k in range(1, len(states)):
        axes.axhline(k * seeds - 0.5, color="white", linewidth=1)
        axes.axvline(k * seeds - 0.5, color="white", linewidth=1)
    middles = (np.arange(len(states)) + 0.5) * seeds - 0.5
    titles = [TITLES[name] for name in states]
    axes.set_xticks(middles, titles)
    axes.set_yticks(middles, titles, rotation=90, va="center")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def _draw_times(row: np.ndarray, run: Trajectory, colour: str, title: str) -> None:
    """Unlikeness and size at the saved steps, and the moment at which the networks are looked at."""
    times = run.saved * _pace(run)
    states = [_at(run, column) for column in range(len(times))]
    moment = int(np.median(np.searchsorted(run.saved, _condensed(run).steps)))
    for what, style in (("functions", "-"), ("lines", "--")):
        unlike = [1 - _median_of_pairs(_alike({"": one}, what)["", ""]) for one in states]
        row[0].plot(times, unlike, style, color=colour, label=f"start: {title}" if what == "functions" else None)
        row[0].plot(times[moment], unlike[moment], "o", color=colour, markersize=6, markerfacecolor="none")
    sizes = np.stack([one.sizes for one in states])
    row[1].plot(times, sizes, color=colour, linewidth=0.5, alpha=0.6)
    row[1].plot(times, np.median(sizes, axis=1), color=colour)
    row[1].plot(times[moment], np.median(sizes[moment]), "o", color=colour, markersize=6, markerfacecolor="none")


def _similarity_table(before: Mapping[str, _States], after: Mapping[str, _States]) -> Table:
    """Medians over the pairs of different seeds, within each start and across sizes."""
    columns = [
        _alike(states, what)
        for what, states in (
            ("functions", before),
            ("functions", after),
            ("held_out", after),
            ("lines", before),
            ("lines", after),
        )
    ]
    pairs = [*((name, name) for name in TITLES), *combinations(SIZES, 2)]
    rows = tuple(
        (
            TITLES[a] if a == b else f"{TITLES[a]} against {TITLES[b]}",
            *(f"{_median_of_pairs(blocks[a, b]):.3f}" for blocks in columns),
        )
        for a, b in pairs
    )
    header = (
        "starts",
        "functions before training",
        "functions after",
        "on test images",
        "lines before training",
        "lines after",
    )
    return Table(
        f"Median over pairs of networks of different seeds, after: {WHEN} (functions: correlation of outputs; lines: "
        "|cos| of the leading lines of filters)",
        header,
        rows,
    )


def _median_of_pairs(block: np.ndarray) -> float:
    return float(np.median(block[~np.eye(len(block), dtype=bool)]))


def _start_table(runs: Runs, after: Mapping[str, _States]) -> Table:
    """When each start gets there, and how simple it is then."""
    rows = []
    for name, title in TITLES.items():
        found = after[name]
        shares = [np.linalg.svd(one, compute_uv=False) for one in found.filters.astype(float)]
        along = [float(values[0] / np.linalg.norm(values)) for values in shares]
        rows.append(
            (
                title,
                ", ".join(map(str, found.steps)),
                f"{np.median(found.steps) * _pace(runs[name]):.2f}",
                ", ".join(f"{value:.3f}" for value in found.loss),
                ", ".join(f"{value:.3f}" for value in along),
                f"{np.median(_together(runs[name]).sizes):.2e}" if name in SIZES else "",
            )
        )
    header = (
        "start",
        "step looked at",
        "time in 1/λ₁",
        "L/L₀ there",
        "share of the filters' norm on their leading line",
        f"size of outputs at {TOGETHER:g}/λ₁",
    )
    return Table("Each start, seed by seed", header, tuple(rows))


def _pair_columns(before: Mapping[str, _States], after: Mapping[str, _States]) -> dict[str, np.ndarray]:
    """A row for each pair of networks."""
    starts = np.repeat(list(before), [len(found.steps) for found in before.values()])
    seeds = np.concatenate([np.arange(len(found.steps)) for found in before.values()])
    one, other = np.triu_indices(len(starts), 1)

    def pairs(states: Mapping[str, _States], what: str) -> np.ndarray:
        vectors = np.concatenate([getattr(found, what) for found in states.values()])
        return np.einsum("ij,ij->i", vectors[one], vectors[other])

    return {
        "start": starts[one],
        "seed": seeds[one],
        "other_start": starts[other],
        "other_seed": seeds[other],
        "functions_before": pairs(before, "functions"),
        "functions_after": pairs(after, "functions"),
        "test_before": pairs(before, "held_out"),
        "test_after": pairs(after, "held_out"),
        "lines_before": np.abs(pairs(before, "lines")),
        "lines_after": np.abs(pairs(after, "lines")),
    }


def _why(runs: Runs, claims: Mapping[str, Claim], after: Mapping[str, _States]) -> dict[str, str]:
    """What the numbers say of the claims that fail."""
    steps = {name: np.median(after[name].steps) for name in SIZES}
    sizes = {name: np.median(_together(runs[name]).sizes) for name in SIZES}
    each = ", ".join(f"{size:.1e} ({TITLES[name]})" for name, size in sizes.items())
    found = {
        "cnn-reset-amplitude": "Only the direction is reset. While a network is linear its output stays in proportion "
        f"to the square of its start's size: the outputs are {each} at the time {TOGETHER:g}/λ₁. What is left of the "
        f"size of the start is the time that it takes to the moment looked at, {steps['larger']:g}, "
        f"{steps['captioned']:g} and {steps['smaller']:g} steps (ten times, captioned, a tenth); log(10)/λ₁ is "
        f"{np.log(10) / _pace(runs['captioned']):.0f} steps.",
    }
    blocks = {what: _alike(after, what) for what in ("functions", "held_out", "lines")}
    for key, what in (
        ("cnn-reset-functions", "functions"),
        ("cnn-reset-test", "held_out"),
        ("cnn-reset-directions", "lines"),
    ):
        medians = ", ".join(f"{_median_of_pairs(blocks[what][name, name]):.3f} ({TITLES[name]})" for name in SIZES)
        found[key] = f"Medians over the pairs of seeds: {medians}."
    for name in SIZES:
        found[f"cnn-reset-simple-{name}"] = _why_not_simple(runs[name], after[name])
    medians = ", ".join(
        f"{_median_of_pairs(blocks['functions'][a, b]):.3f} ({TITLES[a]} against {TITLES[b]})"
        for a, b in combinations(SIZES, 2)
    )
    found["cnn-reset-sizes"] = f"Medians over the pairs of different seeds: {medians}."
    return {key: text for key, text in found.items() if claims[key].verdict != "reproduced"}


def _why_not_simple(run: Trajectory, states: _States) -> str:
    """How many filters are off their network's line, and how much of them was to grow along it."""
    lengths = np.linalg.norm(states.filters, axis=2)
    along = np.abs(np.einsum("sfc,sc->sf", states.filters, states.lines))
    far = along < OFF * lengths
    shares = np.linalg.norm(along, axis=1) / np.linalg.norm(lengths, axis=1)
    growing = _growing_parts(run)
    little = f"{np.median(growing[far]) / np.median(growing[~far]):.2f}" if far.any() else "none"
    return (
        f"{', '.join(map(str, far.sum(axis=1)))} of {far.shape[1]} filters in each seed have not come to the line by "
        f"then: their |cos| with it is below {OFF:g}. They are the ones with little to grow along it: at the start "
        f"their ⟨W, v₁⟩ + ⟨a, u₁⟩ is {little} times that of the others (medians). Of the filters' norm "
        f"{', '.join(f'{share:.3f}' for share in shares)} is on the line."
    )


def _growing_parts(run: Trajectory) -> Float[np.ndarray, "seeds filters"]:
    """At the start |<W, v1> + <a, u1>| of each filter: the part of it that grows fastest."""
    dynamics, first = _dynamics(run.experiment), run.history("conv1", view="filter")[:, 0]
    outputs = run.parameters["output.weight"][:, 0]  # of each seed: outputs x (filters x positions)
    outputs = outputs.reshape(*outputs.shape[:2], first.shape[1], -1).swapaxes(1, 2)
    return np.abs(first @ dynamics.v1 + outputs.reshape(*first.shape[:2], -1) @ dynamics.u1)


RECIPE = Recipe(NAME, "CNN Sec. 1: condensation resets different starts", RESET, experiments, measure, show, REDUCED)
