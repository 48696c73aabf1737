"""Additional question: gradient descent against Adam, on Fig. 2's network."""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...drawing import draw_bar, draw_similarity, look
from ...drawing._style import PAGE
from ...experiment import Experiment
from ...optimizers import Adam, SignGD
from ...prediction._kernels import cosines_to, dynamics
from ...theory import KernelDynamics
from .._claims import Claim, PerSeed, at_least, exactly, question
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from .experiments import descent

TITLES = {"gd": "gradient descent", "adam": "Adam", "sign": "sign descent"}
BY_SIGN = ("adam", "sign")
RATE, STEPS = 1e-6, 600
QUICK_RATE, QUICK_STEPS = 1e-5, 50


def vertex(theory: KernelDynamics) -> Float[np.ndarray, " columns"]:
    """The vertex s of the cube that sign descent on (9) condenses on: s = sign(Zᵀ sign(Z s)), found from v1."""
    s = np.sign(theory.v1)
    for _ in range(100):
        after = np.sign(theory.z.T @ np.sign(theory.z @ s))
        if np.array_equal(after, s):
            break
        s = after
    return s


def _line(name: str) -> "Claim[OptimizersFigure]":
    return question(
        f"{name}-line", f"{TITLES[name]}: the filters condense on one line", "lines of filters at the end",
        exactly(1), lambda figure: figure.counts[name].lines_found(),
    )  # fmt: skip


def _v1(name: str) -> "Claim[OptimizersFigure]":
    return question(
        f"{name}-v1", f"{TITLES[name]}: that line is v1", "median |cos| of filters with v1", at_least(0.99),
        lambda figure: figure.along(name, lambda theory: theory.v1),
        (lambda figure: figure.vertex_not_v1(name)) if name in BY_SIGN else "",
    )  # fmt: skip


def _vertex(name: str) -> "Claim[OptimizersFigure]":
    return question(
        f"{name}-vertex",
        f"{TITLES[name]}: that line is the vertex of the cube that the theory of sign descent gives",
        "median |cos| of filters with it", at_least(0.99), lambda figure: figure.along(name, vertex),
    )  # fmt: skip


class OptimizersFigure(PaperFigure):
    """The filters of Fig. 2's network under three optimizers, and the directions that theory predicts of each."""

    name, title, paper = "cnn-optimizers", "Gradient descent against Adam", "CNN"
    chosen = "the rates and steps of Adam and sign descent"
    has_variants = False
    titles: ClassVar = TITLES
    claims = *map(_line, TITLES), *map(_v1, TITLES), *map(_vertex, BY_SIGN)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 2's network with three optimizers."""
        rate, steps = (RATE, STEPS) if scale == "paper" else (QUICK_RATE, QUICK_STEPS)
        by_sign = {"adam": Adam(rate), "sign": SignGD(rate)}
        base = descent(scale)
        return {"gd": base} | {name: base.replace(optimizer=each, steps=steps) for name, each in by_sign.items()}

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines of filters at the last step."""
        return self.runs.each(lambda name, run: self.count(run, "conv1", int(run.saved[-1]), view="filter"))

    def along(self, name: str, direction: Callable[[KernelDynamics], np.ndarray]) -> PerSeed:
        """The median |cos| of the filters at the last step with a direction that the images give."""
        run, last = self.runs[name], self.counts[name].weights[:, -1].astype(float)
        cosines = [cosines_to(filters, direction(dynamics(run, k))) for k, filters in enumerate(last)]
        return PerSeed([float(np.median(np.abs(each))) for each in cosines])

    def _median(self, key: str) -> str:
        return f"{self.measured(key).median:.4f}"

    def vertex_not_v1(self, name: str) -> str:
        """Why the filters are not on v1."""
        with_v1, with_vertex = (self._median(f"{name}-{direction}") for direction in ("v1", "vertex"))
        return f"{TITLES[name]} goes to the vertex of the cube: |cos| is {with_vertex}, with v1 {with_v1} (medians)."

    def draw(self) -> Drawing:
        """Filters of the median seed under each optimizer, and their cosines with both predictions."""
        with look():
            figure = Figure(figsize=(PAGE, 2.3), layout="constrained")
            row = figure.subplots(1, len(self.counts))
            for axes, (name, counts) in zip(row, self.counts.items(), strict=True):
                draw_similarity(counts.shown, axes, title=TITLES[name], bar=False)
                axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
            draw_bar(row[-1].images[0], list(row))
        vertices = {name: self._median(f"{name}-vertex") for name in self.counts if name in BY_SIGN}
        rows = tuple(
            (TITLES[name], str(each), self._median(f"{name}-v1"), vertices.get(name, ""), f"{np.median(each.loss):.4f}")
            for name, each in self.counts.items()
        )
        header = ("optimizer", "lines", "|cos| with v1", "|cos| with the vertex", "loss / first loss")
        return Drawing(
            caption="Cosine similarity of the filters of Fig. 2's network at the last step (median seed). Gradient "
            "descent turns filters to v1, sign descent and Adam to a vertex of the cube: all entries have one size.",
            pictures={"": figure},
            tables=(Table("Filters at the last step", header, rows),),
            data=stack_columns(self.counts.each(lambda name, counts: counts.columns()), "optimizer"),
        )
