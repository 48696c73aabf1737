"""FC Fig. 1, the illustration of condensation, made from a real network: random, condensed, reduced."""

from functools import cached_property

import numpy as np
from matplotlib.figure import Figure

from ...drawing import draw_network, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...measure._similarity import norms
from ...reduction import Reduction, reduce
from ...reduction._reduce import centred_error
from .._claims import Claim, PerSeed, at_most, exactly
from .._counts import Counts
from .._figure import Drawing, PaperFigure
from .experiments import data_with_bias, fig3

EPOCH = 50


class Fig1(PaperFigure):
    """The tanh network of Fig. 3 and the network of one neuron that takes its place."""

    name, title, paper = "fc-fig1", "FC Fig. 1: what condensation is", "FC"
    claims = (
        Claim(
            "line", "Fig. 1", "soon after training begins, the neurons of a wide tanh layer have one direction",
            f"lines at epoch {EPOCH}", exactly(1), lambda figure: figure.counts.lines_found(),
        ),
        Claim(
            "same", "Fig. 1",
            "the weights from an input to all hidden neurons are then the same (read with size: equal amplitudes)",
            f"spread of the amplitudes (std / mean) at epoch {EPOCH}", at_most(0.1), lambda figure: figure.spread(),
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
            "read to the letter: the effective neuron has the input weight of one of them and the sum of all output "
            "weights",
            f"error of that neuron at epoch {EPOCH}, relative, mean removed", at_most(0.05),
            lambda figure: figure.errors_of_the_sum(),
            lambda figure: "The neurons on the two sides of their line have output weights of opposite signs, which "
            "cancel in the plain sum. With the sign of each neuron's side, and its amplitude, the effective neuron is "
            f"{figure.measured('effective').median:.1%} away (median) instead of {figure.measured('sum').median:.0%}.",
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The tanh network of Fig. 3."""
        return {"tanh": fig3("tanh")}

    @cached_property
    def counts(self) -> Counts:
        """The lines of the network."""
        return self.count(self.runs["tanh"], "dense1", EPOCH)

    @cached_property
    def reductions(self) -> list[Reduction]:
        """The network of each seed with one neuron in place of all."""
        run = self.runs["tanh"]
        pairs = zip(run.seeds, self.counts.steps.tolist(), strict=True)
        return [reduce(run.model(step, seed), run.data(seed)[0], units=1) for seed, step in pairs]

    def spread(self) -> PerSeed:
        """How much the amplitudes of the neurons differ."""
        sizes = [norms(self.counts.weights[k, column]) for k, column in enumerate(self.counts.column)]
        return PerSeed([float(size.std() / size.mean()) for size in sizes], self.counts.condensed)

    def errors_of_the_sum(self) -> PerSeed:
        """Error of one neuron with the largest neuron's input weight and the sum of all output weights."""
        run, errors = self.runs["tanh"], []
        for seed, step in zip(run.seeds, self.counts.steps.tolist(), strict=True):
            model, inputs = run.model(step, seed), data_with_bias(run, seed)[0]
            w, a = model.weights("dense1"), model.parameters["output.weight"][0]
            summed = a.sum() * np.tanh(inputs @ w[norms(w).argmax()])
            errors.append(centred_error(model(inputs[:, :-1]), summed[:, None]))
        return PerSeed(errors)

    def draw(self) -> Drawing:
        """The network of the median seed at initialization, at epoch 50, and as one neuron."""
        run, k = self.runs["tanh"], self.counts.median_seed
        seed, step, effective = run.seeds[k], int(self.counts.steps[k]), self.reductions[k]
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
            data=self.counts.columns() | {"error": np.asarray(self.measured("effective").values)},
        )  # fmt: skip
