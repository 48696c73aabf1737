"""FC Proposition 1, Remark 1, the conjecture, and what the text says of depth and of several outputs."""

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

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
from ...seeds import Seed, as_seed
from ...theory import Directions, labels_for, polar_velocity, residual_at_zero, stationary_directions
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .experiments import data_with_bias, fig3, six_layers

SEEDS = 10  # of data, where nothing is trained
DIMENSIONS, MULTIPLICITIES = (1, 2, 3, 5, 10, 20), (1, 2, 3, 4, 5, 6)
NAMED = {"tanh": 1, "sigmoid": 1, "softplus": 1, "gelu": 1, "swish": 1, "x_tanh": 2, "x2_tanh": 3}
DIM, P = 4, 3  # of the labels that break the conjecture
FLOW_STEPS = 100
ROUNDING = 1e-6
OUTPUTS, DEEP = ("outputs-mse", "outputs-ce"), {"six": "with residual connections", "a5": "without"}


def conjecture_data() -> Arrays:
    """60 points with labels solved so that five lines of equal angles attract in four dimensions at multiplicity 3."""
    corners = np.linalg.svd(np.eye(DIM + 1) - 1 / (DIM + 1))[0][:, :DIM]
    x = np.random.default_rng(0).normal(size=(60, DIM))
    y = labels_for(corners / np.linalg.norm(corners, axis=1, keepdims=True), x, P)
    return Arrays(x, y / np.abs(y).max())


def random_directions(seed: int, dim: int, p: int, n: int = 40) -> Directions:
    """The directions that stay, of random inputs with a bias and random targets."""
    stream = np.random.default_rng([seed, dim])
    return stationary_directions(np.c_[stream.uniform(-1, 1, (n, dim)), np.ones(n)], stream.normal(size=n), p)


def fig3_directions(p: int) -> list[Directions]:
    """The directions that stay, of Fig. 3's data in each seed."""
    draws = [fig3("tanh").data.draw(as_seed(seed)) for seed in range(SEEDS)]
    return [stationary_directions(np.c_[x, np.ones(len(x))], y[:, 0], p) for x, y in draws]


def _cosine(run: Trajectory, seed: Seed, direction: np.ndarray) -> float:
    """Median |cos| of the neurons of the first layer at the last step to a direction; 0 if that is zero."""
    weights = unit_weights(run.weights(1, int(run.saved[-1]), seed))
    return float(np.median(np.abs(weights @ direction) / max(float(np.linalg.norm(direction)), 1e-300)))


def _cosines(run: Trajectory, seed: Seed) -> tuple[float, float]:
    x, y = data_with_bias(run, seed)
    gradient = residual_at_zero(y, run.experiment.loss).T @ x / len(x)
    total = gradient.sum(axis=0)
    total = total * (np.linalg.norm(total) > ROUNDING * np.linalg.norm(gradient))
    return _cosine(run, seed, total), _cosine(run, seed, np.linalg.svd(gradient)[2][0])


def _common(key: str, where: str, run: str) -> "Claim[Prop1]":
    return Claim(
        key, "Sec. 5, proof", where, "least share of one common field, over the layers", at_least(0.9),
        lambda figure: PerSeed(np.minimum(*(shares.min(axis=1) for shares in figure.shares[run].values()))),
        trained=False,
    )  # fmt: skip


def _outputs(key: str, where: str) -> "Claim[Prop1]":
    return Claim(
        key, "Sec. 3", where, "median |cos| of the neurons to the summed direction (0 where the sum is zero)",
        at_least(0.95), lambda figure: PerSeed(figure.cosines[key][0]),
        (lambda figure: figure.sum_is_zero()) if key == "outputs-ce" else "", ours=key == "outputs-ce",
    )  # fmt: skip


class Prop1(PaperFigure):
    """Counts of directions on random data, and the networks that test what the text states of them."""

    name, title, paper = "fc-prop1", "FC Proposition 1, the conjecture, and statements of the text", "FC"
    has_variants = False
    titles: ClassVar = {
        "flow": "gradient flow", "start": "rates of change", "six": "depth, residual", "a5": "depth, plain",
        "conjecture": "solved labels", "outputs-mse": "ten outputs, MSE", "outputs-ce": "ten outputs, cross-entropy",
    }  # fmt: skip
    claims = (
        Claim(
            "p1", "Prop. 1", "multiplicity 1, inputs of any dimension: at most two directions stay",
            "most directions that stay, 1 to 20 inputs", at_most(2), lambda _: PerSeed(
                [max(2 * random_directions(seed, dim, 1).count for dim in DIMENSIONS) for seed in range(SEEDS)]
            ), trained=False,
        ),
        Claim(
            "1d", "Prop. 1", "one-dimensional input: at most 2p directions stay, whatever the multiplicity p",
            "most directions that stay beyond 2p, p = 1 to 6", at_most(0), lambda figure: PerSeed(
                np.max([[2 * each.count - 2 * p for each in every] for p, every in figure.one_input.items()], axis=0)
            ), trained=False,
        ),
        Claim(
            "flow", "Prop. 1, proof",
            "multiplicity 1: all neurons go to the direction of the mean of residual times input, or to its opposite",
            "median |cos| to it under gradient flow, 1% of the loss gone", at_least(0.99),
            lambda figure: figure.along_the_mean(),
        ),
        Claim(
            "finite", "Remark 1", "finitely many directions stay (multiplicity 3, Fig. 3's data)",
            "lines that stay, all of them found", at_most(63),
            lambda _: PerSeed(*zip(*((each.count, each.certified) for each in fig3_directions(3)), strict=True)),
            trained=False,
        ),
        Claim(
            "two", "Sec. 4.3, conjecture", "multiplicity 2 in six dimensions: at most 2p = 4 orientations attract",
            "attracting orientations of Fig. 3's data", at_most(4),
            lambda _: PerSeed([2 * int(each.attracts.sum()) for each in fig3_directions(2)]), trained=False,
        ),
        Claim(
            "conjecture", "Sec. 4.3, abstract",
            "whatever the multiplicity, the dimension and the data, at most 2p orientations (here p = 3, four "
            "dimensions)", "orientations found in trained networks with solved labels", at_most(2 * P),
            lambda figure: figure.orientations(),
            lambda figure: "Labels can be solved so that five lines attract, and the trained networks go to all of "
            f"them: {figure.measured('conjecture').median:g} orientations (median) where 2p = {2 * P}.",
        ),
        _common(
            "common", "what later layers pass back does not depend on the sample, so that all neurons of a layer see "
            "one field (Fig. 4's network, at initialization and at the end)", "six",
        ),
        _common("common-plain", "the same without residual connections (App. A.5's network)", "a5"),
        Claim(
            "faster", "Remark 1",
            "for small weights the orientation of a neuron changes much faster than its amplitude: |du/dt| against "
            "|dr/dt|", "ratio of the two at initialization, median of the neurons of Fig. 3 (tanh)", at_least(10),
            lambda figure: PerSeed(figure.rates()[0]), trained=False,
        ),
        Claim(
            "faster-rates", "Remark 1",
            "and the more so the smaller they are, also if the amplitude's change is taken relative to itself "
            "(|dr/dt|/r)", "growth of the ratio of the two rates as the initial weights are made 10 times smaller",
            at_least(2), lambda figure: PerSeed(figure.rates(scale=0.1)[1] / figure.rates()[1]),
            lambda figure: "Both rates are proportional to 1/r, so that their ratio does not depend on the size of the "
            f"initial weights: it is {np.median(figure.rates()[1]):.1f} (median), as of random vectors.",
            trained=False, ours=True,
        ),
        _outputs("outputs-mse", "of several outputs one need only sum the components (digits, ten classes, MSE)"),
        _outputs("outputs-ce", "the same with cross-entropy, the loss of Fig. 2"),
        Claim(
            "multiplicity", "Sec. 1, Remark 3.1",
            "tanh, sigmoid, softplus, gelu and swish have multiplicity 1, x tanh x has 2, x² tanh x has 3",
            "of these seven, as stated", exactly(7),
            lambda _: PerSeed([sum(multiplicity(name) == p for name, p in NAMED.items())]), trained=False,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Gradient flow at multiplicity 1; solved labels at 3; ten outputs under two losses; deep networks."""
        captioned, flow = fig3("tanh"), GradientFlow(2.0, stop_ratio=0.99, atol=1e-18)
        slow = captioned.replace(
            init=Init(Normal(std=5e-5)), optimizer=replace(flow, time_step=0.2), steps=FLOW_STEPS, save=Evenly(11),
            record=Evenly(101),
        )  # fmt: skip
        network, solver = Dense((DIM, 200, 1), "x2_tanh", bias=False), NormalisedGD(1e-5)
        solved = Experiment(network, Init(Normal(1e-3)), conjecture_data(), solver, 4000, save=At(()))
        images = Images("digits", n=300, flat=True, scale="standardised")
        tanh, small = Dense((64, 50, 10), "tanh"), Init(Normal(std=1e-5))
        digits = Experiment(tanh, small, images, flow, FLOW_STEPS, save=At(()), record=Evenly(11))
        return {
            "flow": slow, "start": captioned, "six": six_layers(residual=True), "a5": six_layers(residual=False),
            "conjecture": solved, "outputs-mse": digits, "outputs-ce": digits.replace(loss=Loss("cross_entropy")),
        }  # fmt: skip

    @cached_property
    def one_input(self) -> dict[int, list[Directions]]:
        """The directions that stay at one-dimensional input, by multiplicity, on random data."""
        return {p: [random_directions(seed, 1, p) for seed in range(SEEDS)] for p in MULTIPLICITIES}

    def along_the_mean(self) -> PerSeed:
        """How near the neurons are to the mean of residual times input."""
        run = self.runs["flow"]
        data = ((seed, *data_with_bias(run, seed)) for seed in run.seeds)
        return PerSeed([_cosine(run, seed, y[:, 0] @ x) for seed, x, y in data])

    def orientations(self) -> PerSeed:
        """Orientations of the networks with solved labels, at the last step."""
        lines = count_lines(self.runs["conjecture"].history(1)[:, -1:])
        return PerSeed(lines.orientations[:, 0], lines.condensed[:, 0])

    @cached_property
    def shares(self) -> dict[str, dict[int, np.ndarray]]:
        """Share of one common field in the deep networks, at initialization and at the end: seeds x hidden layers."""
        return {key: {step: self._shares(key, step) for step in (0, int(self.runs[key].saved[-1]))} for key in DEEP}

    def _shares(self, key: str, step: int) -> np.ndarray:
        run = self.runs[key]
        every = [layer_fields(run.model(step, seed), *run.data(seed), run.experiment.loss) for seed in run.seeds]
        return np.array([[field.share for field in fields.values()] for fields in every])

    def rates(self, scale: float = 1.0) -> np.ndarray:
        """Medians over neurons of |du/dt| over |dr/dt|, and over |dr/dt|/r, of scaled initial weights: 2 x seeds."""
        run, ratios = self.runs["start"], []
        for seed in run.seeds:
            (x, y), model = data_with_bias(run, seed), run.model(0, seed)
            weights, a = scale * model.weights(1), scale * model.parameters["output.weight"][0]
            growing, turning = polar_velocity(weights, a, x, y[:, 0], run.experiment.network.activations[0])
            ratio = np.linalg.norm(turning, axis=1) / np.abs(growing)
            ratios.append((np.median(ratio), np.median(ratio * np.linalg.norm(weights, axis=1))))
        return np.array(ratios).T

    @cached_property
    def cosines(self) -> dict[str, np.ndarray]:
        """Median |cos| of the neurons to G summed over the outputs and to its top singular vector: 2 x seeds.

        G is the mean of residual times input at output zero, outputs x inputs. A sum of nothing but rounding is zero.
        """
        runs = {key: self.runs[key] for key in OUTPUTS}
        return {key: np.array([_cosines(run, seed) for seed in run.seeds]).T for key, run in runs.items()}

    def sum_is_zero(self) -> str:
        """Why the sum over the outputs predicts nothing with cross-entropy."""
        mse, ce = (np.median(self.cosines[key][1]) for key in OUTPUTS)
        return (
            "With cross-entropy the residuals of all outputs add up to zero, so the sum predicts nothing. The line is "
            f"the top right singular vector of G = mean of residual times input: median |cos| {ce:.2f} to it (with MSE "
            f"{mse:.3f}, where the sum and that vector are nearly the same)."
        )

    def draw(self) -> Drawing:
        """Directions that stay against the multiplicity, and the network that condenses on more lines than p."""
        shares = {f"{DEEP[key]}, step {step}": each for key, at in self.shares.items() for step, each in at.items()}
        rows = tuple((name, *(f"{share:.3f}" for share in np.median(each, axis=0))) for name, each in shares.items())
        header = ("six layers, median of the seeds", *(f"layer {k}" for k in range(1, 6)))
        with look():
            figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
            left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
            _draw_counts(left, self.one_input)
            _draw_outputs(middle, self.cosines)
            _draw_solved(right, self.runs["conjecture"])
        return Drawing(
            caption="Left: stationary (grey) and attracting (blue) orientations at one-dimensional input against the "
            "multiplicity p, ten random data sets each, with the bound 2p (orange). Middle: |cos| of 50 neurons to "
            "the summed direction (orange) and to G's top singular vector (blue), ten outputs on digits. Right: solved "
            "labels: each of 200 trained neurons with its nearest predicted line, and how many went to each.",
            pictures={"": figure}, data=self.columns_of_claims(),
            tables=(Table("Share of one field that is common to all neurons of a layer", header, rows),),
            settings_extra={"counts": "random data, 1 to 20 inputs and a bias, 40 samples"},
        )  # fmt: skip


def _draw_counts(axes: Axes, one_input: dict[int, list[Directions]]) -> None:
    stream = np.random.default_rng(0)
    for p, every in one_input.items():
        for values, colour, name, shift in (
            ([2 * each.count for each in every], FAINT, "stationary", -0.13),
            ([2 * int(each.attracts.sum()) for each in every], COLOURS[0], "attracting", 0.13),
        ):
            places = p + shift + stream.uniform(-0.07, 0.07, len(every))
            axes.scatter(places, values, s=7, color=colour, linewidth=0, label=name if p == 1 else None)
    axes.plot(list(one_input), [2 * p for p in one_input], color=COLOURS[1], label="2p")
    axes.set(xlabel="multiplicity p", ylabel="orientations", title="one-dimensional input", ylim=(0, None))
    axes.legend(loc="upper left")


def _draw_outputs(axes: Axes, cosines: dict[str, np.ndarray]) -> None:
    kinds = ("sum of the outputs", -0.16, COLOURS[1]), ("top singular vector", 0.16, COLOURS[0])
    for (name, shift, colour), values in zip(kinds, np.stack([*cosines.values()], axis=1), strict=True):
        places = np.broadcast_to(np.arange(len(values))[:, None] + shift, values.shape)
        axes.scatter(places, values, s=9, color=colour, alpha=0.7, linewidth=0, label=name)
    axes.set(xlim=(-0.6, 1.6), ylim=(0, 1.03), ylabel="median |cos| of the neurons", title="ten outputs")
    axes.set_xticks([0, 1], ["MSE", "cross-entropy"])
    axes.legend(loc="center left")


def _draw_solved(axes: Axes, run: Trajectory) -> None:
    x, y = run.data(run.seeds[0])
    weights, predicted = run.weights(1, int(run.saved[-1]), run.seeds[0]), stationary_directions(x, y[:, 0], P)
    title = f"p = {P}, D = {DIM}: {predicted.attracts.sum()} lines, not {P}"
    legend = draw_predicted(weights, predicted, axes, title=title).get_legend()
    assert legend is not None
    legend.remove()
    nearest = np.bincount(nearest_lines(weights, predicted.directions[predicted.attracts])[0])
    for end, size in zip(np.cumsum(nearest), nearest, strict=True):
        axes.annotate(str(size), (end - size / 2, 0.05), ha="center", color="white")
