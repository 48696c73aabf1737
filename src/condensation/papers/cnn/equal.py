"""CNN Assumption 4 turned off: two equal leading singular values, and filters that condense in a plane, not on a line.

The task is "which way up is this image?": each image is used four times, turned by 0, 90, 180 and 270 degrees, and the
target is (cos, sin) of the angle. A quarter turn of the images then only swaps the two outputs, so that Z^T Z commutes
with a quarter turn of the kernels. Its eigenvectors that change sign under a half turn come in pairs with one value: a
vector and its quarter turn. Where such a pair leads there is no gap, exactly.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from ...data import Arrays, Images
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...measure import count_lines
from ...networks import Conv
from ...optimizers import GradientFlow
from ...prediction._kernels import initial_filters
from ...runs import Trajectory
from ...saving import At
from ...seeds import Seed
from ...theory import KernelDynamics
from .._claims import Claim, PerSeed, Rule, at_least, at_most, exactly
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table

DIGIT, KERNEL = 9, 7  # of the digits the one whose third value is farthest below the pair, at this side
IMAGES = 50  # of a digit, each at four turns
FILTERS, STD = 64, 1e-5
TIME_STEP, STEPS, STOP = 0.1, 150, 0.99
SIDES = (3, 4, 5, 6, 7, 8)
EQUAL = 1e-6  # two values nearer than this, over the first, are one
IN_PLANE = 0.9  # share of the norm in the plane from which on it means something that filters are on no line


def turned(digit: int, turns: int = 4) -> Arrays:
    """The first 50 images of a digit at four or two turns, with cos and sin, or only cos, of the angle as target."""
    x, labels = Images("digits", target="index").draw(Seed(0, 0))
    upright = x[labels[:, 0] == digit][:IMAGES].astype(float)
    quarters = range(0, 4, 4 // turns)
    images = np.concatenate([np.rot90(upright, k, axes=(2, 3)) for k in quarters])
    angles = np.repeat(quarters, len(upright)) * np.pi / 2
    both = np.rint(np.c_[np.cos(angles), np.sin(angles)])
    return Arrays(images, both if turns == 4 else both[:, :1])


class Plane:
    """The plane of the two leading vectors of Z, and the filters of all seeds in it, each over its norm.

    Attributes:
        values: singular values of Z.
        v: its first two right vectors; the second one's sign is that of the quarter turn of the first.
        initial, final, predicted: the filters, and the directions that the linear dynamics give them, two numbers each.
        cosines: of each final filter with its prediction, in the plane.
        norms: of the final filters, seeds x filters.
        in_plane, on_line: in each seed the share of the final norm in the plane, and along the best single line.
    """

    def __init__(self, run: Trajectory) -> None:
        """That of a run; its initial output weights are drawn again: they were not kept."""
        z = KernelDynamics.of(*run.data(run.seeds[0]), KERNEL).z
        self.values, v = np.linalg.svd(z, full_matrices=False)[1:]
        quarter = np.rot90(v[0, :-1].reshape(KERNEL, KERNEL)).ravel()
        self.v = v = v[:2] * np.array([[1.0], [1.0 if quarter @ v[1, :-1] >= 0 else -1.0]])
        history = run.history("conv1", view="filter").astype(float)
        first, last = history[:, 0], history[:, -1]
        outputs = np.stack([initial_filters(run, k)[1] for k in range(len(run.seeds))])
        total, self.norms = np.linalg.norm(last, axis=(1, 2)), np.linalg.norm(last, axis=2)
        self.initial, self.final = _unit(first) @ v.T, last @ v.T / self.norms[..., None]
        self.predicted = _unit(first @ v.T + outputs @ (z @ v.T / self.values[:2]))
        self.cosines = np.sum(_unit(last @ v.T) * self.predicted, axis=-1)
        self.in_plane = np.linalg.norm(last @ v.T, axis=(1, 2)) / total
        self.on_line = np.linalg.norm(last, ord=2, axis=(1, 2)) / total


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _gap(values: np.ndarray, k: int = 1) -> float:
    """How far the k-th value after the first is below it, over the first."""
    return float(1 - values[k] / values[0])


def _on_filters(
    key: str, where: str, text: str, quantity: str, rule: Rule, measure: Callable[[Plane], PerSeed]
) -> "Claim[EqualValues]":
    """A claim on the filters without a gap."""
    return Claim(
        key, where, text, quantity, rule, lambda figure: measure(figure.planes["turned"]),
        lambda figure: figure._third_value(), ours=True,
    )  # fmt: skip


class EqualValues(PaperFigure):
    """Singular values of the task without and with a gap, the pair of kernels, and where the filters went."""

    name, title, paper = "cnn-equal", "CNN Assumption 4: two equal leading singular values", "CNN"
    has_variants = False
    titles: ClassVar = {"turned": "four turns", "control": "two turns"}
    claims = (
        Claim(
            "gap", "Assumption 4",
            "real images can have no gap: four turns of each image and the angle as target make the two leading "
            "singular values equal",
            "(first - second singular value of Z) / first", at_most(EQUAL),
            lambda figure: PerSeed([_gap(figure.planes["turned"].values)]), trained=False, ours=True,
        ),
        _on_filters(
            "plane", "Assumption 4, eqs. (9)-(11)",
            "without the gap the filters condense in the plane of the two leading vectors",
            "share of the filters' norm in the plane of v1 and v2 when 1% of the loss is gone", at_least(0.99),
            lambda plane: PerSeed(plane.in_plane),
        ),
        _on_filters(
            "line", "Assumption 4, eq. (15)", "there they are not on one line: Theorem 1 needs the gap",
            "share of the filters' norm along the best single line, where 90% of it are in the plane", at_most(0.9),
            lambda plane: PerSeed(plane.on_line, plane.in_plane >= IN_PLANE),
        ),
        _on_filters(
            "direction", "eqs. (9)-(11)",
            "a filter's direction in the plane is the one that the linear dynamics give it at the start",
            "median cosine, in the plane, of the filters with (<w, v1> + <a, u1>, <w, v2> + <a, u2>) of the start",
            at_least(0.99), lambda plane: PerSeed(np.median(plane.cosines, axis=1)),
        ),
        Claim(
            "control", "Assumption 4, Theorem 1",
            "the same images at two of the turns (upright or upside down?) have a gap, and the filters go to one line",
            "lines when 1% of the loss is gone", exactly(1), lambda figure: figure._lines_of_control(),
            lambda figure: f"The gap of the control is {_gap(figure.planes['control'].values):.0%}; along the best "
            f"single line is {np.median(figure.planes['control'].on_line):.3f} of the norm (median).", ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The task without a gap, and with one; the same at both scales."""
        return {"turned": _experiment(turned(DIGIT)), "control": _experiment(turned(DIGIT, 2))}

    @cached_property
    def planes(self) -> Available[Plane]:
        """The filters of both tasks in the plane of the two leading vectors."""
        return self.runs.each(lambda name, run: Plane(run))

    def _lines_of_control(self) -> PerSeed:
        lines = count_lines(self.runs["control"].history("conv1", view="filter")[:, -1:])
        return PerSeed(lines.lines[:, 0], lines.condensed[:, 0])

    def _third_value(self) -> str:
        plane = self.planes["turned"]
        return (
            f"The third value is {_gap(plane.values, 2):.0%} below the pair. When 1% of the loss is gone "
            f"{np.median(plane.in_plane):.3f} of the norm (median) is in the plane."
        )

    def draw(self) -> Drawing:
        """Singular values of both tasks, the pair of kernels, and where the filters went."""
        plane = self.planes["turned"]
        seeds, count = plane.cosines.shape
        on_line = {name: np.median(each.on_line) for name, each in self.planes.items()}
        return Drawing(
            caption=f'"Which way up is this {DIGIT}?": {IMAGES} images, each at four turns, the angle as target. (a) '
            "The two leading singular values of Z are equal; with two turns there is a gap. (b) v1 and v2 as kernels: "
            f"v2 is v1 turned by a quarter. (c) All {FILTERS} filters of {seeds} seeds when 1% of the loss is gone, "
            "each over its norm (which its area shows), in the plane of v1 and v2. They are on the circle, so in the "
            "plane, but in all directions. Each is joined to a tick, the direction that the linear dynamics predict. "
            "(d) The same with the gap: one line. Median share of the norm along the best single line: "
            f"{on_line['turned']:.3f} without the gap, {on_line['control']:.3f} with it.",
            pictures={"": self._picture()}, tables=(_gaps_table(),),
            data={
                "seed": np.repeat(np.arange(seeds), count), "filter": np.tile(np.arange(count), seeds),
                "share_v1": plane.final[..., 0].ravel(), "share_v2": plane.final[..., 1].ravel(),
                "predicted_angle": np.arctan2(plane.predicted[..., 1], plane.predicted[..., 0]).ravel(),
                "cosine_with_prediction": plane.cosines.ravel(),
            },
            settings_extra={
                "images": f"scikit-learn's digits, the first {IMAGES} of the digit {DIGIT}, pixels in [-1, 1]; seeds "
                "differ in the initialization only",
                "why this digit and side": "the pair leads, and the third value is farthest below it (the table)",
            },
        )  # fmt: skip

    def _picture(self) -> Figure:
        turned, control = self.planes["turned"], self.planes["control"]
        with look():
            figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
            grid = figure.add_gridspec(2, 4, width_ratios=(1.25, 0.45, 1.2, 1.2))
            left, middle, right = (figure.add_subplot(grid[:, k]) for k in (0, 2, 3))
            for plane, mark, colour, label in (
                (turned, "o-", COLOURS[0], "four turns"),
                (control, "s-", COLOURS[1], "two turns"),
            ):
                ratios = plane.values / plane.values[0]
                left.plot(np.arange(len(ratios)) + 1, ratios, mark, color=colour, markersize=4, label=label)
            left.set(xlabel="k", ylabel=r"$\lambda_k / \lambda_1$", ylim=(0, 1.06), title="(a) singular values of Z")
            left.set_xticks(range(1, max(len(turned.values), len(control.values)) + 1))
            for k in range(2):
                axes = figure.add_subplot(grid[k, 1])
                kernel = turned.v[k, :-1].reshape(KERNEL, KERNEL)
                axes.imshow(kernel, cmap="RdBu_r", vmin=-np.abs(kernel).max(), vmax=np.abs(kernel).max())
                axes.set_title(f"{'' if k else '(b) '}$v_{k + 1}$")
                axes.set_axis_off()
            _draw_disc(middle, turned, COLOURS[0], "(c) equal values: a plane", "initial filters")
            ends, directions = turned.final.reshape(-1, 2), turned.predicted.reshape(-1, 2)
            for tails, length, colour, width, label in (
                (ends, 1.08, FAINT, 0.4, ""),
                (1.08 * directions, 1.18, COLOURS[2], 0.7, "predicted from initial weights"),
            ):
                lines = list(np.stack([tails, length * directions], axis=1))
                middle.add_collection(LineCollection(lines, colors=colour, linewidths=width, label=label))
            _draw_disc(right, control, COLOURS[1], "(d) with a gap: a line")
            figure.legend(loc="outside lower center", ncols=4)
        return figure


def _experiment(data: Arrays) -> Experiment:
    _, channels, height, width = data.x.shape
    return Experiment(
        Conv((channels, height, width), (FILTERS,), KERNEL, data.y.shape[1]),
        Init(Normal(STD), convolution=Normal(STD)), data,
        GradientFlow(TIME_STEP, stop_ratio=STOP, rtol=1e-4, atol=1e-12), STEPS, save=At(()), record=At(()),
        dtype="float32", kept_layers=("conv1",),
    )  # fmt: skip


def _draw_disc(axes: Axes, plane: Plane, colour: str, title: str, label: str = "") -> None:
    """Filters in the plane over their norms, their areas as their norms, on the unit circle."""
    axes.add_patch(Circle((0, 0), 1, fill=False, color=FAINT, linewidth=0.6))
    axes.scatter(*plane.initial.reshape(-1, 2).T, s=4, color=FAINT, linewidth=0, label=label)
    area = 7 * np.minimum(plane.norms / np.median(plane.norms), 4)
    axes.scatter(*plane.final.reshape(-1, 2).T, s=area.ravel(), color=colour, alpha=0.8, linewidth=0, zorder=3)
    axes.set(xlabel=r"$\langle\theta, v_1\rangle / |\theta|$", ylabel=r"$\langle\theta, v_2\rangle / |\theta|$")
    axes.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal", title=title, xticks=[-1, 0, 1], yticks=[-1, 0, 1])


def _gaps_table() -> Table:
    """For each digit and kernel side: the gap, or that the leading value is double and how far the third is."""
    tasks = [turned(digit) for digit in range(10)]
    columns = {
        f"{side} x {side}": [_gap_in_words(KernelDynamics.of(data.x, data.y, side).values) for data in tasks]
        for side in SIDES
    }
    title = (
        "Gap between the first two singular values over the first, of the task with four turns; where they are equal "
        "(double), the gap to the third"
    )
    return Table.of_columns(title, {"digit": map(str, range(10))} | columns)


def _gap_in_words(values: np.ndarray) -> str:
    third = _gap(values, 2) if len(values) > 2 else 1.0
    return f"double, then {third:.1%}" if _gap(values) <= EQUAL else f"{_gap(values):.1%}"
