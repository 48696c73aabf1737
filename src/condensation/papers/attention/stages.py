"""From condensation to rank collapse (Chen and Luo 2025): the theory's own model, which the paper never trains.

f = tanh(Attn W1) W2 at the last token, exponential loss, gradient flow from N(0, eps²). First the outer weights grow
until they blow up, the columns of W_V on one line; then queries and keys collapse to the rank of a matrix F. The second
stage is also trained as the theory has it: outer weights frozen, no activation.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...data import Drawn
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...initialization._laws import OwnLaw
from ...losses import Loss
from ...networks import Attention
from ...optimizers import GradientFlow
from ...saving import Evenly
from .._claims import Claim, PerSeed, Rule, at_least, at_most, exactly
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._course import FALLEN, SMALL, STAGE_1, Course, rank
from ._data import (
    LENGTH,
    WIDTH,
    identity,
    matrix_at_plateau,
    one_top,
    random_sequences,
    read_one_top,
    read_two_top,
    two_top,
)
from ._stages_picture import draw_stages

EPS, STOP, ROWS = 1e-3, 0.75, 1501
TINY = 1e-8  # the first std of queries and keys where the outer weights are frozen
GROWN = 0.1  # size of the largest singular value of W_Q at which its rank is taken
PAPER, OURS = "Chen and Luo 2025", "additional question"
MODELS = {"tanh": "tanh", "linear": "no activation"}
TURNS = (
    "The outer weights do not rest while queries and keys grow: with them the mean token is no longer what values see, "
    "and W_V turns on."
)
FROZEN = {"one": (one_top, read_one_top, 1), "two": (two_top, read_two_top, 2)}


def whole(activation: str) -> Experiment:
    """The theory's model, all of it trained, until the loss has fallen to three quarters."""
    network = Attention(LENGTH, WIDTH, 1, projection=False, hidden=(WIDTH,), activation=activation)
    flow, often = GradientFlow(4.0, stop_ratio=STOP), Evenly(ROWS)
    return Experiment(
        network, Init(Normal(EPS)), Drawn(random_sequences), flow, ROWS - 1, Loss("exponential"), often, often
    )


def frozen(name: str) -> Experiment:
    """Queries and keys alone, the outer weights where they come to rest."""
    data, read, _ = FROZEN[name]
    network = Attention(LENGTH, WIDTH, 1, projection=False, fixed=("value1", "output"))
    init = Init(Normal(TINY), output=OwnLaw(read), value=OwnLaw(identity))
    rate = np.linalg.norm(matrix_at_plateau(*data(np.random.default_rng(0))), 2)
    time = np.log(GROWN / TINY) / rate
    flow, often = GradientFlow(float(f"{time / 100:.2g}")), Evenly(101)
    return Experiment(network, init, Drawn(data), flow, 100, Loss("exponential"), often, often)


def _claims(name: str) -> "tuple[Claim[Stages], ...]":
    """What is asked of the model with its activation, and (Figs. 4, 5) without."""

    def claim(
        key: str, where: str, text: str, quantity: str, rule: Rule, measure: Callable[[Course], float],
        decided: Callable[[Course], bool] | None = None, why: Callable[["Stages"], str] | str = "",
    ) -> "Claim[Stages]":  # fmt: skip
        def measured(figure: "Stages") -> PerSeed:
            courses = figure.courses[name]
            premise = None if decided is None else [decided(course) for course in courses]
            return PerSeed([measure(course) for course in courses], decided=premise)

        where = f"{PAPER}, {where}" if where else OURS
        return Claim(
            f"{name}-{key}", where, f"{MODELS[name]}: {text}", quantity, rule, measured, why, ours=where == OURS
        )

    return (
        claim("slope", "Theorem 1", "the energy blows up, the slope of E^(-1/3) tends to -1",
              f"|slope + 1| before the loss falls below {SMALL:g} of the first", at_most(0.02),
              lambda one: abs(one.last_slope + 1)),
        claim("steep", "Theorem 1", "it is never slower than E' = 3 E^(4/3)",
              "largest slope of E^(-1/3) until then", at_most(-0.99), lambda one: one.largest_slope,
              why=lambda figure: figure.slopes_in_words(name)),
        claim("bound", "Theorem 1", "it blows up before E(0)^(-1/3), if E(0) > 0",
              f"time of the loss's fall to {FALLEN:.0%} over that", at_most(1), lambda one: one.over_bound,
              lambda one: one.energy[0] > 0),
        claim("finite", "Theorem 1", "it blows up in finite time also for E(0) ≤ 0",
              "loss at the end over the first", at_most(FALLEN), lambda one: float(one.loss[-1]),
              lambda one: one.energy[0] <= 0, why="The seeds with E(0) ≤ 0 are few."),
        claim("invariants", "Proposition 2", "W_v,k² − Σ W1_kk'² and W2_k² − Σ W1_k'k² are constant",
              "largest change until E is 100 times as large, over their size", at_most(0.05), lambda one: one.drift),
        claim("assumption", "Assumption 1", "all its inequalities come true while the model is small",
              "largest |f| on the data where they first do", at_most(0.1), lambda one: one.output_there,
              why=lambda figure: figure.assumption_in_words(name)),
        claim("shares", "Assumption 1", "the share of those that are true tends to 1",
              f"share when the loss falls below {STAGE_1:g} of the first", at_least(0.99),
              lambda one: float(one.shares[one.before(STAGE_1)]), why=lambda figure: figure.assumption_in_words(name)),
        claim("stays", "Proposition 4", "once true, it stays true", "later saved steps of the stage where it is not",
              exactly(0), lambda one: one.violations if one.assumed_from is not None else np.nan,
              lambda one: one.assumed_from is not None and one.assumed_from <= one.before(STAGE_1)),
        claim("outer-rate", "Proposition 5", "‖W2'‖/‖W2‖² tends to 1",
              f"|ratio - 1| before the loss falls below {SMALL:g} of the first", at_most(0.05),
              lambda one: abs(one.outer_rate - 1)),
        claim("parallel", "Proposition 5", "what grows of the rows W_v,i W1_i becomes parallel",
              "least cosine of two rows of at least a tenth of the largest norm, then", at_least(0.95),
              lambda one: one.least_parallel),
        claim("values", "Theorem 2", "the columns of W_V turn to the line of v",
              "median |cosine| with v at the end of the stage", at_least(0.95),
              lambda one: float(np.median(one.cosines))),
        claim("every", "", "every column of W_V does", "least |cosine| with v there", at_least(0.95),
              lambda one: float(one.cosines.min()),
              why="A column's part off v stays what it was at first: one that grows little keeps it."),
        claim("still", "Proposition 1", "meanwhile queries and keys stand still",
              "relative change of W_Q over that of W_V", at_most(0.05), lambda one: one.attention_over_outer[0]),
        claim("reverse", "Fig. 2", "then it is the reverse",
              f"relative change of W_Q over that of W_V from there to a loss of {STOP:.0%}", at_least(2),
              lambda one: one.attention_over_outer[1] if one.loss[-1] < FALLEN else np.nan),
        claim("outer-rank", "Fig. 3", "the effective rank of W_V falls in the first stage",
              "that at its end over the first", at_most(0.5),
              lambda one: one.effective_ranks("value1")[1] / one.effective_ranks("value1")[0]),
        claim("outer-monotone", "Fig. 3", "and does so monotonically",
              "largest rise between fifty saved steps of that stage, over the first", at_most(0.01),
              lambda one: one.largest_rise),
        claim("query-rank", "Fig. 3", "that of W_Q falls in the second stage",
              "that at the stop over that at the end of the first stage", at_most(0.5),
              lambda one: one.effective_ranks("query1")[2] / one.effective_ranks("query1")[1]),
        claim("kept", "Fig. 3", "after the first stage W_V's top singular vector stays from checkpoint to checkpoint",
              "least |cosine| between successive saved steps from there to the stop", at_least(0.95),
              lambda one: one.least_kept if one.loss[-1] < FALLEN else np.nan, why=TURNS),
        claim("kept-all", "", "and so it is the same at the stop",
              "|cosine| of it at the end of that stage and at the stop", at_least(0.95),
              lambda one: one.same_values if one.loss[-1] < FALLEN else np.nan, why=TURNS),
        claim("matrix", "Theorem 3", "W_Q and W_K turn to the top singular vectors of F",
              "lesser |cosine| at the stop, F of the weights there", at_least(0.9), lambda one: one.on_matrix(False),
              why=lambda figure: figure.matrix_in_words(name)),
        claim("predicted", "", "F is known before training", "the same with F at the plateau of v, predicted",
              at_least(0.9), lambda one: one.on_matrix(True), why=lambda figure: figure.matrix_in_words(name)),
    )  # fmt: skip


def _rank_claims(name: str) -> "tuple[Claim[Stages], ...]":
    count = FROZEN[name][2]
    data = "one largest singular value of F gives" if count == 1 else "two equal ones give"
    where = f"{PAPER}, Theorem 3"
    return (
        Claim(f"rank-{name}", where, f"outer weights frozen: {data} rank {count}",
              "singular values of W_Q of at least a tenth of the largest", exactly(count),
              lambda figure: figure.ranks(name)),
        Claim(f"space-{name}", where, f"outer weights frozen: W_Q lies in the space of F's {count} top vectors",
              "share of W_Q's squared norm there", at_least(0.99), lambda figure: figure.in_space(name)),
    )  # fmt: skip


class Stages(PaperFigure):
    """The theory's model through both stages, with and without activation, and the second stage by itself."""

    name, title, paper = "attn-stages", "From condensation to rank collapse, on the theory's own model", "ATTENTION"
    has_variants = False
    seed_count: ClassVar = {"quick": 4, "paper": 10}
    chosen = (
        "d, s, n and eps, the data (tokens of N(0, I), random labels), what counts as the end of a stage, effective "
        "rank: the text gives none for this model, and never trains it. The settings are those of a trial with three "
        "seeds, in which slope, columns of W_V and ranks were seen before their rules were written; those of "
        "Proposition 5 and of a monotone rank were added after a first run of the other claims. That W_V keeps its "
        "direction was first asked of the two ends of the second stage alone, where the text has successive "
        "checkpoints. Theorem 2, a limit, is asked of the median column; of every one it is an additional question. "
        "Where the outer weights are frozen all seeds have one set of sequences, and differ in their first weights"
    )
    titles: ClassVar = {
        **MODELS, "one": "outer weights frozen, one largest singular value",
        "two": "outer weights frozen, two equal ones",
    }  # fmt: skip
    claims = (*_claims("tanh"), *_claims("linear"), *_rank_claims("one"), *_rank_claims("two"))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The whole model twice, and the second stage twice; the scales differ in the number of seeds."""
        return {name: whole(name) for name in MODELS} | {name: frozen(name) for name in FROZEN}

    @cached_property
    def courses(self) -> Available[list[Course]]:
        """Each seed of the whole model."""
        return Available(
            {name: [Course(self.runs[name], k) for k in range(len(self.runs[name].seeds))] for name in MODELS}
        )

    def at_rank(self, name: str, seed: int) -> np.ndarray:
        """W_Q with frozen outer weights, where its largest singular value comes to ``GROWN``; else at the end."""
        history = self.runs[name].history("query1")[seed]
        large = np.linalg.norm(history, 2, axis=(1, 2)) >= GROWN
        return history[large.argmax() if large.any() else -1]

    def ranks(self, name: str) -> PerSeed:
        """The rank there."""
        return PerSeed([rank(self.at_rank(name, k)) for k in range(len(self.runs[name].seeds))])

    def in_space(self, name: str) -> PerSeed:
        """The share of W_Q there that lies in the space of F's top left singular vectors."""
        run, count = self.runs[name], FROZEN[name][2]
        x, y = run.data(run.seeds[0])
        top = np.linalg.svd(matrix_at_plateau(x, y[:, 0]))[0][:, :count]
        queries = [self.at_rank(name, k) for k in range(len(run.seeds))]
        return PerSeed([float((np.linalg.norm(w @ top) / np.linalg.norm(w)) ** 2) for w in queries])

    def slopes_in_words(self, name: str) -> str:
        """The largest slopes of the whole small regime, and of it until a loss of 0.9999."""
        early = [one.slopes[: one.before(1 - 1e-4)] for one in self.courses[name]]
        largest = ", ".join(f"{np.nanmax(own):.3f}" if np.isfinite(own).any() else "none" for own in early)
        return (
            "The inequality is of the leading order. Until the loss falls below 0.9999 of the first the largest slopes "
            f"are {largest}; from there to {SMALL:g} the model is no longer small enough."
        )

    def assumption_in_words(self, name: str) -> str:
        """When Assumption 1 comes true, seed by seed."""
        told = []
        for one in self.courses[name]:
            share = f"{one.shares[one.before(STAGE_1)]:.2f} of the inequalities at the end of the stage"
            first = one.assumed_from
            told.append(
                f"|f| = {one.output_there:.2g}, loss {one.loss[first]:.3g}" if first is not None else f"never ({share})"
            )
        return f"It comes true at, seed by seed: {'; '.join(told)}."

    def matrix_in_words(self, name: str) -> str:
        """How far F turns with W_V while queries and keys grow, and the gap of its singular values, seed by seed."""
        ratios, kept = [], []
        for one in self.courses[name]:
            values = np.linalg.svd(matrix_at_plateau(*one.data), compute_uv=False)
            ratios.append(f"{values[1] / values[0]:.2f}")
            kept.append(f"{one.same_values:.2f}")
        return (
            "The theorem has the outer weights frozen. Here F turns with them while queries and keys grow: cosine of "
            f"W_V's top singular vectors at both ends of that stage, seed by seed: {', '.join(kept)}. Second over "
            f"first singular value of the predicted F: {', '.join(ratios)}; where they are near, the growth from "
            f"{EPS:g} to order 1 does not tell them apart."
        )

    def draw(self) -> Drawing:
        """Energy, shares, columns of W_V, changes and ranks over the loss, and singular values with frozen weights."""
        return Drawing(
            caption="Gradient flow of tanh(Attn W1) W2 from small weights, all seeds. E^(-1/3) over the time that is "
            "left to the end of the first stage (dashed: slope -1); the share of Assumption 1's inequalities that are "
            "true; over what is gone of the loss the median cosine of W_V's columns with v, and the effective ranks of "
            "W_V and W_Q; where the outer weights are frozen, the singular values of W_Q over the largest.",
            pictures={"": draw_stages(self)},
            tables=(self._table(),),
            data=self.columns_of_claims(),
            settings_extra={"effective rank": "exponential of the entropy of the singular values' shares"},
        )

    def _table(self) -> Table:
        header = (
            "model",
            "blow-up over E(0)^(-1/3)",
            "|f| where Assumption 1 holds",
            "effective rank of W_V",
            "of W_Q",
        )
        rows = []
        for name in MODELS:
            courses = self.courses[name]
            ranks = [
                np.median([one.effective_ranks(layer) for one in courses], axis=0) for layer in ("value1", "query1")
            ]
            told = [" → ".join(f"{value:.2g}" for value in each) for each in ranks]
            medians = [np.nanmedian([measure(one) for one in courses] + [np.nan]) for measure in (
                lambda one: one.over_bound, lambda one: one.output_there)]  # fmt: skip
            rows.append((MODELS[name], *(f"{value:.2g}" for value in medians), *told))
        return Table(
            "Medians of all seeds; ranks at first, at the end of the first stage, at the stop", header, tuple(rows)
        )
