"""CNN Fig. 1, the illustration of condensation, made from a real network: random filters, condensed ones, two."""

from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...networks import Conv, Model
from ...reduction import reduce
from ...reduction._reduce import centred_error
from ...saving import At
from .._claims import Claim, PerSeed, at_most, exactly
from .._counts import Counts
from .._figure import Drawing, PaperFigure
from .experiments import SUMMED, descent
from .maps import last_step


def _error(key: str, text: str, network: str, ours: bool = False) -> "Claim[Fig1]":
    """A claim that a smaller network does the same."""
    return Claim(
        key, "Fig. 1", text, f"error of the network of {network}, relative, mean removed", at_most(0.05),
        lambda figure: PerSeed(figure.errors[key]), lambda figure: figure._amplitudes_differ() if key == "sum" else "",
        ours=ours,
    )  # fmt: skip


class Fig1(PaperFigure):
    """Filters as small colour images: initial, condensed, and the two that replace them."""

    name, title, paper = "cnn-fig1", "CNN Fig. 1: what condensation of filters is", "CNN"
    chosen = f"the network is that of Fig. 2; {SUMMED}"
    claims = (
        Claim(
            "groups", "Fig. 1", "soon after training begins the units are in two groups", "orientations of filters",
            exactly(2), lambda figure: PerSeed(figure.counts.orientations, figure.counts.condensed),
        ),
        _error(
            "effective", "the units of a group can be replaced by one effective unit, although their amplitudes differ",
            "two filters",
        ),
        _error(
            "one", "for tanh at small amplitude one filter is enough, the two groups being opposite", "one filter",
            ours=True,
        ),
        _error(
            "sum", "read to the letter: an effective unit has the input weight of its group (of its largest unit, as "
            "they differ) and the plain sum of the group's output weights", "two such filters",
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 2's network, whole at its first and its last step."""
        return {"descent": descent(scale).replace(save=At(()), kept_layers=None)}

    @cached_property
    def counts(self) -> Counts:
        """Lines of filters at the last step."""
        return self.count(self.runs["descent"], "conv1", last_step(self.runs["descent"]), view="filter")

    @cached_property
    def errors(self) -> dict[str, list[float]]:
        """The errors of three reduced networks in each seed."""
        run = self.runs["descent"]
        errors: dict[str, list[float]] = {"effective": [], "one": [], "sum": []}
        for seed in run.seeds:
            model, x = run.model(last_step(run), seed), run.data(seed)[0]
            single = reduce(model, x, units=1).centred_error
            errors["one"].append(float("nan") if single is None else single)
            for key, weighted in (("effective", True), ("sum", False)):
                errors[key].append(centred_error(model(x), merge_sides(model, weighted)(x)))
        return errors

    def _amplitudes_differ(self) -> str:
        plain, weighted = (self.measured(key).median for key in ("sum", "effective"))
        return (
            "Within a group directions agree, amplitudes do not: an output weight counts as much as its filter is "
            f"long. The plain sum is {plain:.0%} off, the sum weighted by amplitude {weighted:.1%} (medians)."
        )

    def draw(self) -> Drawing:
        """The filters of the median seed at initialization, at the last step, and the two that replace them."""
        run, median = self.runs["descent"], self.counts.median_seed
        last, seed = last_step(run), run.seeds[median]
        before, after = (run.weights("conv1", step, seed, view="filter") for step in (0, last))
        order = np.argsort(after[:, :-1].sum(axis=1))
        with look():
            figure = Figure(figsize=(PAGE, 2.0), layout="constrained")
            left, middle, right = figure.subplots(1, 3, width_ratios=(8, 8, 3))
            draw_filters(left, before[order], 8, "(a) at initialization: random")
            draw_filters(middle, after[order], 8, f"(b) step {last}: condensed")
            effective = merge_sides(run.model(last, seed)).weights("conv1", view="filter")
            draw_filters(right, effective, 3, "(c) two remain", rows=4)
        return Drawing(
            caption="The 32 filters of Fig. 2's network (median seed) as small colour images, at initialization (a) "
            f"and at step {last} (b), and the two that replace them (c), whose output differs by "
            f"{self.errors['effective'][median]:.1%}. Grey is zero; each filter is scaled by its own largest entry.",
            pictures={"": figure}, data=self.counts.columns(),
        )  # fmt: skip


def merge_sides(model: Model, weighted: bool = True) -> Model:
    """Two filters, each the largest of its side of the filters' leading line, for all of that side.

    Output weights are summed in proportion to the amplitudes of their filters, or, to the letter, as they are.
    """
    filters, network = model.weights("conv1", view="filter").astype(float), model.network
    assert isinstance(network, Conv)
    axis = np.linalg.svd(filters, full_matrices=False)[2][0]
    side, size = filters @ axis >= 0, np.linalg.norm(filters, axis=1)
    output = model.parameters["output.weight"].reshape(network.outputs, len(filters), -1)
    chosen, sums = [], []
    for group in (side, ~side):
        if group.any():
            chosen.append(int(np.where(group, size, -1).argmax()))
            shares = (size[group] / size[chosen[-1]] if weighted else np.ones(group.sum()))[:, None]
            sums.append((output[:, group] * shares).sum(axis=1).astype(output.dtype))
    parameters = {name: model.parameters[name][chosen] for name in ("conv1.weight", "conv1.bias")}
    parameters["output.weight"] = np.stack(sums, axis=1).reshape(network.outputs, -1)
    small = Conv(network.image, (len(chosen),), network.kernel, network.outputs, activation=network.activation)
    return Model(small, parameters)


def draw_filters(axes: Axes, filters: np.ndarray, columns: int, title: str, rows: int = 1) -> None:
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
    axes.set(xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)
