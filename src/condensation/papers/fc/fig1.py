"""FC Fig. 1, the illustration of condensation, made from a real network: random, condensed, reduced."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...drawing import draw_network, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure._similarity import norms
from ...networks import Dense, Model
from ...reduction import Reduction, reduce
from ...reduction._reduce import centred_error
from .._claims import Claim, PerSeed, at_least, at_most, exactly, question
from .._counts import Counts
from .._figure import Available, Drawing, PaperFigure
from .._variant import Variant
from .experiments import fig3

EPOCH = 50
EQUAL = 0.1  # spread of the amplitudes up to which they are the same
SMALL = Variant(init_scale=0.1)  # from so small weights all sigmoid neurons have one orientation
SUM_ERROR = f"error of that neuron at epoch {EPOCH}, relative, mean removed"


def sum_error(model: Model, x: np.ndarray, unit: str = "median", turned: bool = True) -> float:
    """The error of one neuron with the sum of all output weights in place of a two-layer network, mean removed.

    Args:
        model: the network.
        x: samples.
        unit: whose input weight it has: the neuron's of ``"median"`` amplitude, or the ``"mean"`` of all.
        turned: neurons on the other side of their line count as (-w, -a), the same neuron of an odd activation.
    """
    weights, outputs = model.weights("dense1").astype(float), model.parameters["output.weight"][0].astype(float)
    if turned:
        side = np.where(weights @ np.linalg.svd(weights)[2][0] < 0, -1.0, 1.0)
        weights, outputs = side[:, None] * weights, side * outputs
    typical = np.argsort(norms(weights))[len(weights) // 2]
    w = weights.mean(axis=0) if unit == "mean" else weights[typical]
    effective = {
        "dense1.weight": w[None, :-1],
        "dense1.bias": w[-1:],
        "output.weight": outputs.sum(keepdims=True)[None],
    }
    return centred_error(model(x), Model(Dense((x.shape[1], 1, 1), model.network.activations[0]), effective)(x))


class Fig1(PaperFigure):
    """The tanh network of Fig. 3 and the network of one neuron that takes its place."""

    name, title, paper = "fc-fig1", "FC Fig. 1: what condensation is", "FC"
    chosen = (
        "the sum is judged on a network that has what the cartoon shows, all neurons in one orientation and of one "
        "size: Fig. 3's sigmoid network from a tenth of its initial weights; the tanh network has two orientations"
    )
    titles: ClassVar = {"tanh": "tanh", "sigmoid": "sigmoid, smaller"}
    claims = (
        Claim(
            "line", "Fig. 1", "soon after training begins, the neurons of a wide tanh layer have one direction",
            f"lines at epoch {EPOCH}", exactly(1), lambda figure: figure.counts["tanh"].lines_found(),
        ),
        Claim(
            "same", "Fig. 1",
            "the weights from an input to all hidden neurons are then the same (read with size: equal amplitudes)",
            f"spread of the amplitudes (std / mean) at epoch {EPOCH}", at_most(EQUAL),
            lambda figure: PerSeed(figure.spreads("tanh"), figure.counts["tanh"].condensed),
            lambda figure: "The directions agree up to the sign; the amplitudes differ by "
            f"{figure.measured('same').median:.0%} (std over mean, median), as the paper's discussion grants.",
        ),
        Claim(
            "effective", "Fig. 1, Sec. 6",
            "the neurons can be replaced by one effective neuron, although their amplitudes differ",
            f"error of the one-neuron network at epoch {EPOCH}, relative, mean removed", at_most(0.05),
            lambda figure: PerSeed(np.array([each.centred_error for each in figure.reductions], float)),
        ),
        Claim(
            "sum", "Fig. 1",
            "read to the letter: where all neurons have one orientation and one size, the effective neuron has the "
            "input weight of one of them (that of the median amplitude) and the sum of all output weights (sigmoid)",
            SUM_ERROR, at_most(0.05), lambda figure: figure.sums_where_equal(),
        ),
        question(
            "sum-one-side",
            "the same of the tanh network with all neurons turned to one side of their line, which changes nothing: "
            "tanh is odd, so that (w, a) and (-w, -a) are one neuron",
            SUM_ERROR, at_most(0.05), lambda figure: PerSeed(figure.errors_of_sum("tanh")),
            lambda figure: "A single neuron is not quite on the line: with the mean of all input weights in place of "
            f"one of them, the error is {np.median(figure.errors_of_sum('tanh', 'mean')):.1%} (median) instead of "
            f"{figure.measured('sum-one-side').median:.1%}.",
        ),
        question(
            "sum-two-sides",
            "as trained, on a tanh layer with two orientations, the plain sum cancels: neurons on the two sides have "
            "output weights of opposite signs",
            SUM_ERROR, at_least(0.5), lambda figure: PerSeed(
                figure.errors_of_sum("tanh", turned=False), decided=figure.counts["tanh"].orientations == 2
            ), trained=False,  # random output weights cancel too
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The tanh network of Fig. 3, and its sigmoid network from smaller weights."""
        return {"tanh": fig3("tanh"), "sigmoid": SMALL.apply(fig3("sigmoid"))}

    @cached_property
    def counts(self) -> Available[Counts]:
        """The lines of the networks."""
        return self.runs.each(lambda _, run: self.count(run, "dense1", EPOCH))

    @cached_property
    def reductions(self) -> list[Reduction]:
        """The network of each seed with one neuron in place of all."""
        run = self.runs["tanh"]
        pairs = zip(run.seeds, self.counts["tanh"].steps.tolist(), strict=True)
        return [reduce(run.model(step, seed), run.data(seed)[0], units=1) for seed, step in pairs]

    def spreads(self, name: str) -> np.ndarray:
        """How much the amplitudes of the neurons differ, in each seed."""
        counts = self.counts[name]
        sizes = [norms(counts.weights[k, column]) for k, column in enumerate(counts.column)]
        return np.array([size.std() / size.mean() for size in sizes])

    def sums_where_equal(self) -> PerSeed:
        """The error of the sum in the sigmoid network; a seed without one orientation and one size decides nothing."""
        counts = self.counts["sigmoid"]
        one = counts.condensed & (counts.lines == 1) & (counts.orientations == 1)
        return PerSeed(self.errors_of_sum("sigmoid", turned=False), decided=one & (self.spreads("sigmoid") <= EQUAL))

    def errors_of_sum(self, name: str, unit: str = "median", turned: bool = True) -> list[float]:
        """The error of the sum in each seed (see ``sum_error``)."""
        run = self.runs[name]
        pairs = zip(run.seeds, self.counts[name].steps.tolist(), strict=True)
        return [sum_error(run.model(step, seed), run.data(seed)[0], unit, turned) for seed, step in pairs]

    def draw(self) -> Drawing:
        """The network of the median seed at initialization, at epoch 50, and as one neuron."""
        run, counts = self.runs["tanh"], self.counts["tanh"]
        k = counts.median_seed
        seed, step, effective = run.seeds[k], int(counts.steps[k]), self.reductions[k]
        before, after = run.model(0, seed), run.model(step, seed)
        order = np.argsort(after.weights("dense1") @ effective.model.weights("dense1")[0])
        error = f"{effective.centred_error:.1%}"
        with look():
            figure = Figure(figsize=(PAGE, 3.1), layout="constrained")
            left, middle, right = figure.subplots(1, 3)
            draw_network(before, left, order=order, title="(a) at initialization: random")
            draw_network(after, middle, order=order, title=f"(b) epoch {step}: condensed")
            draw_network(effective.model, right, title=f"(c) one effective neuron: {error} away")
        return Drawing(
            caption="The 5-50-1 tanh network of Fig. 3 (median seed) at initialization (a) and at epoch "
            f"{step} (b), and the network of one effective neuron that takes its place (c), whose output differs by "
            f"{error}. A line is a weight: orange positive, blue negative, the stronger the larger it is within its "
            f"layer. Neurons stand in the order of their signed amplitude at epoch {EPOCH} in (a) too.",
            pictures={"": figure}, settings_extra={"reduction": "all neurons to one, by the line's sign"},
            data=counts.columns() | {"error": np.asarray(self.measured("effective").values)},
        )  # fmt: skip
