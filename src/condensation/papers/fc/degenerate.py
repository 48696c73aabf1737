"""FC Proposition 1 and Remark 1 on degenerate data: the leading order vanishes, or has no directions of its own."""

from functools import cached_property
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._phrases import plural
from ...data import Arrays
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...measure import count_lines, nearest_lines
from ...networks import Dense
from ...optimizers import GD, NormalisedGD
from ...saving import At
from ...theory import Directions, stationary_directions
from .._claims import Claim, PerSeed, at_least, at_most, exactly, question
from .._counts import stack_columns
from .._figure import Available, Drawing, PaperFigure

DRAWS = 10  # of data, where nothing is trained
NEURONS, STD, RATE, STEPS = 50, 1e-3, 1e-5, 3000
ROUNDING = 1e-9
GROWN = 5  # times the first amplitude: from then on it means something that a direction is kept
CASES = {  # what is trained: data, activation, and the order of the field that decides
    "moment-tanh": ("moment", "tanh", 3),
    "moment-swish": ("moment", "swish", 2),
    "few": ("few", "x_tanh", 2),
    "collinear": ("collinear", "x_tanh", 2),
    "round": ("round", "x_tanh", 2),
    "equal": ("equal", "tanh", 1),
    "opposite": ("opposite", "tanh", 1),
}
ON_LINES = "median |cos| of the neurons to the nearest attracting line"


def moved_labels(x: np.ndarray, y: np.ndarray, p: int, moments: np.ndarray) -> np.ndarray:
    """Labels moved by the least so that the means of label times each monomial of degree p are the given ones.

    >>> x = np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    >>> np.abs(x.T @ moved_labels(x, np.array([1.0, 0.0, 5.0]), 1, np.zeros(2))).max() < 1e-12
    np.True_
    """
    columns = combinations_with_replacement(range(x.shape[1]), p)
    features = np.stack([np.prod(x[:, list(each)], axis=1) for each in columns], axis=1)
    return y + features @ np.linalg.solve(features.T @ features, len(x) * moments - features.T @ y)


def degenerate(kind: str, draw: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of a kind; the last input is 1 (the bias's) but where there are too few or collinear samples.

    ``moment``: the mean of label times input is zero. ``few``: three samples in six dimensions. ``collinear``: all
    inputs on one line. ``round``: one input, the mean of label times input times input is the identity. ``equal``: two
    outputs, the mean of label times input has equal singular values. ``opposite``: each sample twice, with opposite
    labels.
    """
    stream = np.random.default_rng(draw)
    dim = {"round": 2, "few": 6}.get(kind, 4)
    x = np.c_[stream.uniform(-1, 1, (40, dim - 1)), np.ones(40)]
    y = stream.normal(size=(40, 2 if kind == "equal" else 1))
    if kind == "moment":
        return x, moved_labels(x, y, 1, np.zeros((dim, 1)))
    if kind == "round":
        return x, moved_labels(x, y, 2, np.array([[1.0], [0.0], [1.0]]))
    if kind == "equal":
        return x, moved_labels(x, y, 1, np.linalg.qr(stream.normal(size=(dim, 2)))[0])
    if kind == "few":
        return stream.normal(size=(3, dim)), np.array([[1.0], [-1.0], [0.5]])
    if kind == "collinear":
        return stream.normal(size=(40, 1)) * stream.normal(size=dim), y
    return np.concatenate([x, x]), np.concatenate([y, -y])


def largest_space(kind: str, draw: int, p: int) -> int:
    """The dimension of the largest space of which every direction stays in the leading order, p = 1 or 2; 1 is a line.

    At p = 1 it is the line of the mean of label times input, or all directions where that is zero; at p = 2 it is an
    eigenspace of the mean of label times input times input.
    """
    x, y = degenerate(kind, draw)
    if p == 1:
        return 1 if np.linalg.norm(y[:, 0] @ x) > ROUNDING * np.linalg.norm(np.abs(y[:, 0]) @ np.abs(x)) else x.shape[1]
    values = np.linalg.eigvalsh((y * x).T @ x)
    return int(np.max(np.sum(np.abs(values - values[:, None]) <= ROUNDING * np.abs(values).max(), axis=1)))


def _space(key: str, where: str, text: str, kind: str, p: int, why: str) -> "Claim[Degenerate]":
    return Claim(
        key, where, text, f"dimension of the largest space of which every direction stays (1: a line), {DRAWS} draws",
        exactly(1), lambda _: PerSeed([largest_space(kind, draw, p) for draw in range(DRAWS)]), why, trained=False,
        ours=True,
    )  # fmt: skip


def _goes(key: str, text: str) -> "Claim[Degenerate]":
    return question(key, text, ON_LINES, at_least(0.95), lambda figure: PerSeed(np.median(figure.cosines[key], axis=1)))


class Degenerate(PaperFigure):
    """Neurons on data for which the leading order vanishes, or has no directions of its own."""

    name, title, paper = "fc-degenerate", "FC Proposition 1 and Remark 1 on degenerate data", "FC"
    has_variants = False
    chosen = (
        "the data, which random data are with probability zero, and a descent that takes each neuron on its path of "
        "gradient flow; all seeds of a network have the same data"
    )
    titles: ClassVar = {
        "moment-tanh": "zero mean, tanh", "moment-swish": "zero mean, swish", "few": "3 samples, 6 inputs",
        "collinear": "collinear", "round": "equal eigenvalues", "equal": "equal singular values",
        "opposite": "opposite labels",
    }  # fmt: skip
    claims = (
        _space(
            "moment-roots", "Prop. 1",
            "multiplicity 1: at most two directions stay, also if the mean of residual times input is zero",
            "moment", 1,
            "The leading order is zero, so that every direction stays: the proof divides by the norm of this mean.",
        ),
        _space(
            "round-roots", "Prop. 1",
            "one-dimensional input, multiplicity 2: at most 2p = 4 directions stay, also if the mean of residual times "
            "input times input is the identity", "round", 2,
            "The equation for the direction is 0 = 0: a polynomial of degree p has at most p roots unless it is zero.",
        ),
        _space(
            "few-finite", "Remark 1",
            "finitely many directions stay, also with fewer samples than inputs (multiplicity 2, three samples in six "
            "dimensions)", "few", 2,
            "A neuron orthogonal to all samples does not move: these directions are a space. None of them attracts.",
        ),
        Claim(
            "moment-most", "Sec. 6",
            "the data do not affect the maximal number of orientations, 2p: two at multiplicity 1, also if the mean of "
            "residual times input is zero (swish)",
            "orientations of the trained neurons", at_most(2), lambda figure: figure.orientations("moment-swish"),
            "Where the leading order vanishes the next one decides: swish is then as of multiplicity 2.",
        ),
        Claim(
            "round-lines", "Remark 1, Prop. 1",
            "orientations converge to certain directions, at most 2p: also with equal eigenvalues (multiplicity 2, one "
            "input)", "lines of the trained neurons", at_most(2), lambda figure: figure.lines("round"),
            lambda figure: "Every neuron grows along its own direction: the median |cos| to the initial one is "
            f"{np.median(figure.kept('round')):.4f}.", ours=True,
        ),
        Claim(
            "equal-sum", "Sec. 3",
            "of several outputs one need only sum the components: the neurons go to the direction of the sum, also if "
            "the mean of residual times input has two equal singular values",
            "median |cos| of the neurons to the summed direction", at_least(0.95),
            lambda figure: PerSeed(figure.along_the_sum()),
            lambda figure: f"All directions of a plane attract alike, and {np.median(figure.in_plane):.3f} of the norm "
            "(median) is in it.", ours=True,
        ),
        _goes("moment-tanh", "zero mean of residual times input, tanh: the neurons go to the lines of the third order"),
        _goes("moment-swish", "the same with swish: the neurons go to the lines of the second order"),
        _goes("few", "three samples in six dimensions: the neurons go to the lines in the span of the samples"),
        question(
            "collinear", "collinear inputs, multiplicity 2: the neurons have one line, that of the inputs, not two",
            "lines of the trained neurons", exactly(1), lambda figure: figure.lines("collinear"),
        ),
        question(
            "round-kept", "equal eigenvalues: the neurons grow and keep their directions",
            "median |cos| of the neurons to their initial directions", at_least(0.99), lambda figure: PerSeed(
                np.median(figure.kept("round"), axis=1), decided=figure.growth("round") >= GROWN
            ),
        ),
        question(
            "equal-plane", "two equal singular values: the neurons go to the plane of their two vectors",
            "share of the norm in the plane", at_least(0.95), lambda figure: PerSeed(figure.in_plane),
        ),
        question(
            "equal-predicted", "and there each to the direction that its initial weights predict",
            "median cosine of the neurons in the plane with the predicted directions", at_least(0.99),
            lambda figure: PerSeed(np.median(np.sum(figure.in_disc[1] * figure.in_disc[2], axis=-1), axis=1)),
        ),
        question(
            "opposite", "each sample twice with opposite labels: no order has a line, and the neurons stay",
            "median |cos| of the neurons to their initial directions", at_least(0.999),
            lambda figure: PerSeed(np.median(figure.kept("opposite"), axis=1)), trained=False,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Small two-layer networks, the bias an input of 1; the same at both scales."""
        experiments = {}
        for name, (kind, activation, _) in CASES.items():
            x, y = degenerate(kind)
            network = Dense((x.shape[1], NEURONS, y.shape[1]), activation, bias=False)
            optimizer = GD(0.1) if kind == "opposite" else NormalisedGD(RATE)
            experiments[name] = Experiment(network, Init(Normal(STD)), Arrays(x, y), optimizer, STEPS, save=At(()))
        return experiments

    @cached_property
    def predicted(self) -> dict[str, Directions]:
        """The directions of the order that decides, of each network's data; opposite labels have none."""
        orders = {name: (kind, p) for name, (kind, _, p) in CASES.items() if kind != "opposite"}
        return {name: stationary_directions(*degenerate(kind), p) for name, (kind, p) in orders.items()}

    @cached_property
    def weights(self) -> Available[np.ndarray]:
        """The first and last directions of the neurons: 2 x seeds x neurons x inputs."""
        return self.runs.each(lambda _, run: np.stack([_units(run.history(1)[:, at]) for at in (0, -1)]))

    @cached_property
    def cosines(self) -> dict[str, np.ndarray]:
        """The |cos| of each neuron at the end to the nearest attracting line: seeds x neurons."""
        return {name: self._nearest(name, 1) for name in ("moment-tanh", "moment-swish", "few", "collinear")}

    def _nearest(self, name: str, at: int) -> np.ndarray:
        lines = self.predicted[name]
        return np.stack([nearest_lines(w, lines.directions[lines.attracts])[1] for w in self.weights[name][at]])

    def kept(self, name: str) -> np.ndarray:
        """The |cos| of each neuron at the end to its initial direction: seeds x neurons."""
        return np.abs(np.sum(self.weights[name][0] * self.weights[name][1], axis=-1))

    def growth(self, name: str) -> np.ndarray:
        """How many times the median amplitude has grown, in each seed."""
        first, last = (np.linalg.norm(self.runs[name].history(1)[:, at], axis=-1) for at in (0, -1))
        return np.median(last, axis=1) / np.median(first, axis=1)

    def lines(self, name: str) -> PerSeed:
        """The lines at the end, which mean something where the layer is condensed."""
        history = count_lines(self.runs[name].history(1)[:, -1:])
        return PerSeed(history.lines[:, 0], history.condensed[:, 0])

    def orientations(self, name: str) -> PerSeed:
        """The orientations at the end; a layer that is not condensed decides nothing."""
        history = count_lines(self.runs[name].history(1)[:, -1:])
        return PerSeed(history.orientations[:, 0], decided=history.condensed[:, 0])

    @cached_property
    def in_disc(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First, last and predicted directions in the plane of the equal singular values: seeds x neurons x 2."""
        run, (x, y) = self.runs["equal"], degenerate("equal")
        v = self.predicted["equal"].spaces[0].basis
        outputs = np.stack([run.model(0, seed).parameters["output.weight"].T for seed in run.seeds])
        predicted = run.history(1)[:, 0] @ v + outputs @ (y.T @ x @ v / len(x))
        first, last = self.weights["equal"] @ v
        return first, _units(last), _units(predicted)

    @cached_property
    def in_plane(self) -> np.ndarray:
        """The share of the norm at the end in that plane, in each seed."""
        last = self.runs["equal"].history(1)[:, -1]
        inside = last @ self.predicted["equal"].spaces[0].basis
        return np.linalg.norm(inside, axis=(1, 2)) / np.linalg.norm(last, axis=(1, 2))

    def along_the_sum(self) -> np.ndarray:
        """Median |cos| of the neurons to the mean of summed residual times input, in each seed."""
        x, y = degenerate("equal")
        return np.median(np.abs(self.weights["equal"][1] @ _units(y.sum(axis=1) @ x)), axis=1)

    def draw(self) -> Drawing:
        """How near the neurons are to the lines that attract; angles kept; the plane."""
        with look():
            figure = Figure(figsize=(PAGE, 4.3), layout="constrained")
            panels = figure.subplots(2, 3).ravel()
            for axes, name in zip(panels, self.cosines, strict=False):
                for at, colour, label in ((0, FAINT, "initial weights"), (1, COLOURS[0], "last step")):
                    values = np.sort(self._nearest(name, at).ravel())
                    axes.plot(np.linspace(0, 1, len(values)), values, color=colour, label=label)
                title = f"{self.titles[name]}: {plural(int(self.predicted[name].attracts.sum()), 'line')}"
                axes.set(xlabel="share of neurons", ylabel="|cos| to the nearest line", ylim=(0, 1.03), title=title)
            angles = np.arctan2(self.weights["round"][..., 1], self.weights["round"][..., 0])
            panels[4].scatter(*angles.reshape(2, -1), s=3, color=COLOURS[0], linewidth=0)
            panels[4].set(xlabel="initial angle", ylabel="angle at the last step", title=self.titles["round"])
            _draw_disc(panels[5], *self.in_disc, self.titles["equal"])
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        parts = {
            name: {"seed": np.repeat(np.arange(len(each)), NEURONS), "cosine": each.ravel()}
            for name, each in self.cosines.items()
        }
        return Drawing(
            caption="First four panels: |cos| of each neuron to the nearest attracting line of the order that decides, "
            "sorted, all seeds, before and after training: zero mean of residual times input (tanh and swish), fewer "
            "samples than inputs, collinear inputs. Then equal eigenvalues: each neuron keeps its angle. Last: two "
            "equal singular values: the neurons end in the plane of the two vectors, in all its directions, as "
            "predicted (ticks).",
            pictures={"": figure}, data=stack_columns(parts, "data"),
        )  # fmt: skip


def _units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _draw_disc(axes: Axes, first: np.ndarray, last: np.ndarray, predicted: np.ndarray, title: str) -> None:
    """Directions in a plane: first ones inside the circle, last ones on it, ticks at the predicted ones."""
    axes.scatter(*first.reshape(-1, 2).T, s=3, color=FAINT, linewidth=0)
    axes.scatter(*last.reshape(-1, 2).T, s=5, color=COLOURS[0], linewidth=0)
    ticks = predicted.reshape(-1, 1, 2) * np.array([[1.06], [1.16]])
    axes.plot(*np.moveaxis(ticks, 0, -1).transpose(1, 0, 2), color=COLOURS[2], linewidth=0.5)
    axes.set(aspect="equal", xlabel="$v_1$", ylabel="$v_2$", title=title)
