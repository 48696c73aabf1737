"""Linear attention in context (Zhang, Singh, Latham and Saxe 2025): one drop of the loss, or a staircase.

Heads of linear attention learn linear regression in context. With key and query merged in one matrix the loss falls
once; with separate ones of rank R it stands still wherever a multiple of R eigenvalues of Λ has been learned, and at
levels that are known.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...data import InContextRegression
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...networks import Attention
from ...optimizers import GD
from ...saving import Evenly
from ...theory import context_losses, context_weights
from .._claims import Claim, PerSeed, Rule, at_least, at_most, exactly
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._context_heads import CONTEXT, DIM, EIGENVALUES, Sample, heads_of
from ._in_context_picture import draw_in_context

LEVELS = context_losses(EIGENVALUES, CONTEXT)
SEQUENCES = {"quick": 2000, "paper": 5000}
RATE = 0.4
NEAR = 0.02  # of a level
WHITE_RATE, WHITE_STEPS = 0.02, 500
PAPER, OURS = "Zhang, Singh et al. 2025", "additional question"
RANKS = {"rank1": 1, "rank2": 2, "rank4": 4}
STEPS = {"merged": 2400, "rank1": 12_000, "rank2": 6000, "rank4": 6000}


def in_context(name: str, sequences: int) -> Experiment:
    """Heads with key and query merged, or separate ones of a rank, by gradient descent."""
    read: dict[str, Any] = {
        "attention": "linear",
        "values": False,
        "projection": False,
        "key_inputs": DIM,
        "scale": 1 / CONTEXT,
    }
    heads: dict[str, Any] = (
        {"heads": 8, "merged": True} if name == "merged" else {"heads": 5, "head_width": RANKS[name]}
    )
    network = Attention(CONTEXT + 1, DIM + 1, 1, **read, **heads)
    data = InContextRegression(sequences, EIGENVALUES, CONTEXT, rotated=True, whitened=True)
    init, often = Init(Normal(1e-3 if name == "merged" else 0.05)), Evenly(601)
    return Experiment(network, init, data, GD(RATE), STEPS[name], Loss("squared_error"), often, often)


def white(sequences: int) -> Experiment:
    """Merged keys and queries with Λ = I, by half the squared error."""
    data = InContextRegression(sequences, (1.0,) * DIM, CONTEXT, whitened=True)
    often = Evenly(WHITE_STEPS + 1)
    changes = {"data": data, "optimizer": GD(WHITE_RATE), "steps": WHITE_STEPS, "save": often, "record": often}
    return in_context("merged", sequences).replace(loss=Loss(), **changes)


def off_sigmoid(time: np.ndarray, sigma: np.ndarray) -> float:
    r"""Largest distance from $1/(a + (\sqrt D/w_0^2 - a) e^{-2 \sqrt D t})$ over $1/a$, with a = 1 + (1 + D)/N.

    The first size w_0 is the one that makes both equal half-way; NaN where that is not reached.

    >>> time = np.linspace(0, 9, 1001)
    >>> off_sigmoid(time, 1 / (1 + 5 / 31 + 1e6 * np.exp(-4 * time))) < 1e-9
    True
    """
    a, rate = 1 + (1 + DIM) / CONTEXT, 2 * DIM**0.5
    half = int((sigma >= 0.5 / a).argmax())
    if sigma[half] < 0.5 / a:
        return float("nan")
    theory = 1 / (a + (1 / sigma[half] - a) * np.exp(-rate * (time - time[half])))
    return float(np.abs(sigma - theory).max() * a)


def lingering(time: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Time near each level between the first and the last, over that near the middles of its two neighbours' gaps.

    >>> lingering(np.arange(5.0), np.full(5, 0.5)).tolist()  # never there
    [0.0, 0.0, 0.0]
    """
    fine = np.interp(np.linspace(time[0], time[-1], 100_001), time, loss)
    middles = (LEVELS[1:] + LEVELS[:-1]) / 2
    there, between = ((np.abs(fine[:, None] - at) <= NEAR).sum(axis=0) for at in (LEVELS[1:-1], middles))
    return there / np.maximum((between[1:] + between[:-1]) / 2, 1)


class Learner:
    """One seed at its saved steps."""

    def __init__(self, run: object, seed: int) -> None:
        self.run, self.seed = run, seed
        self.time, self.loss = RATE * run.recorded, run.loss[seed]  # type: ignore[attr-defined]

    @cached_property
    def axes(self) -> np.ndarray:
        """The eigenvectors of Λ, the largest eigenvalue's first."""
        run = self.run
        return run.experiment.data.axes(run.seeds[self.seed])  # type: ignore[attr-defined]

    @cached_property
    def heads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Output weight, key and query of each head at all saved steps, the latter along the eigenvectors (rank 1)."""
        outputs, keys, queries = (self.run.history(name)[self.seed] for name in ("output", "key1", "query1"))  # type: ignore[attr-defined]
        return outputs[:, 0], keys @ self.axes.T, queries @ self.axes.T

    @cached_property
    def learned(self) -> np.ndarray:
        """What the heads together give each eigenvector over the best, at all saved steps (rank 1)."""
        outputs, keys, queries = self.heads
        return np.einsum("th,thd,thd->td", outputs, keys, queries) / context_weights(EIGENVALUES, CONTEXT)

    @cached_property
    def plateaus(self) -> np.ndarray:
        """The loss where it is slowest, of those nearest to each level between; NaN where there are none."""
        fine = np.linspace(self.time[0], self.time[-1], 20_001)
        loss = np.interp(fine, self.time, self.loss)
        speed = np.abs(np.gradient(loss))
        nearest = np.abs(loss[:, None] - LEVELS).argmin(axis=1)
        found = [
            loss[nearest == m][speed[nearest == m].argmin()] if (nearest == m).any() else np.nan for m in range(1, DIM)
        ]
        return np.array(found)

    @cached_property
    def own_levels(self) -> np.ndarray:
        """The losses of theory's heads on the sequences themselves, where the levels are those of endlessly many."""
        sample = Sample(self.run.experiment, self.run.seeds[self.seed])  # type: ignore[attr-defined]
        heads = self.run.experiment.network.heads  # type: ignore[attr-defined]
        return np.array([sample.loss(heads_of(tuple(range(m)), heads)) for m in range(1, DIM)])

    @property
    def off_levels(self) -> float:
        """Largest distance of these from the levels."""
        return float(np.abs(self.plateaus - LEVELS[1:-1]).max())

    @property
    def off_own_levels(self) -> float:
        """Largest distance of these from those of the sequences."""
        return float(np.abs(self.plateaus - self.own_levels).max())

    def passed(self, m: int) -> float:
        """When the loss is half-way from level m to the next; NaN where it never is."""
        below = self.loss <= (LEVELS[m] + LEVELS[m + 1]) / 2
        return float(self.time[below.argmax()]) if below.any() else np.nan

    @property
    def exponent(self) -> float:
        """Slope of the logarithm of the time to learn an eigenvalue over its own."""
        times = [self.passed(m) for m in range(DIM)]
        return float(np.polyfit(np.log(EIGENVALUES), np.log(times), 1)[0]) if np.min(times) > 0 else np.nan

    @property
    def in_order(self) -> int:
        """Levels at which just the largest eigenvalues are learned: over half of the best, the others under a tenth."""
        count = 0
        for m in range(1, DIM):
            end = self.passed(m)
            begin = self.passed(m - 1)
            if not begin < end:
                continue
            middle = int(np.abs(self.time - (begin + end) / 2).argmin())
            count += bool((self.learned[middle, :m] > 0.5).all() and (np.abs(self.learned[middle, m:]) < 0.1).all())
        return count

    @property
    def largest_heads(self) -> tuple[float, float]:
        """Of the head that gives most to each eigenvector, at the end: least cosine with it; worst error of |o|³."""
        outputs, keys, queries = (part[-1] for part in self.heads)
        best = np.abs(outputs[:, None] * keys * queries).argmax(axis=0)
        each = [(outputs[h], keys[h], queries[h], d) for d, h in enumerate(best)]
        cosines = [min(abs(k[d]) / np.linalg.norm(k), abs(q[d]) / np.linalg.norm(q)) for _, k, q, d in each]
        cubes = np.array([abs(o) ** 3 for o, *_ in each]) / context_weights(EIGENVALUES, CONTEXT)
        return float(min(cosines)), float(np.abs(cubes - 1).max())


def _claim(
    key: str, where: str, text: str, quantity: str, rule: Rule, name: str, measure: Callable[[Learner], float],
    why: "str | Callable[[InContext], str]" = "",
) -> "Claim[InContext]":  # fmt: skip
    return Claim(
        key, f"{PAPER}{where}" if where != OURS else OURS, text, quantity, rule,
        lambda figure: PerSeed([measure(one) for one in figure.learners[name]]),
        why or (lambda figure: figure.in_words(name)), ours=where == OURS,
    )  # fmt: skip


WITHIN = (
    "A head that has learned one eigenvalue has an output weight of order 1, and learns the next one like a linear "
    "network, in a time that goes with log(1/std): short beside the wait for a new head, which goes with 1/std, but "
    "not beside a drop."
)
SAMPLED = "Levels are those of endlessly many sequences; the loss stands still at those of the ones that there are."
MIXED = (
    "The loss knows the sum of the heads alone: what a head takes up of a later eigenvector while it grows stays, as "
    "the later eigenvector's own head makes good for it."
)
STANDS = f"time within {NEAR:g} of a level over that half-way to its neighbours"


class InContext(PaperFigure):
    """Merged against separate keys and queries of rank 1, 2 and 4."""

    name, title, paper = "icl-staircase", "Linear attention in context: one drop, or a staircase", "ATTENTION"
    has_variants = False
    seed_count: ClassVar = {"quick": 3, "paper": 10}
    chosen = (
        "rate, steps and the first weights, and heads without the blocks that the text sets to zero: keys and queries "
        "read x, values y. The ranks are those of four coordinates, where the text has eight. A first run with 500 "
        "sequences, whose first loss is 8% off, led to the text's 5000; the rules stayed. "
        "Levels of the sequences themselves were asked after the runs, when it was looked at why the levels of theory "
        "are off"
    )
    titles: ClassVar = {
        "merged": "merged",
        "rank1": "rank 1",
        "rank2": "rank 2",
        "rank4": "rank 4",
        "white": "merged, Λ = I",
    }
    claims = (
        _claim("merged-once", "", "merged key and query: the loss falls once, without plateaus between",
               f"{STANDS}, the largest", at_most(3), "merged", lambda one: float(lingering(one.time, one.loss).max())
               if one.loss[-1] < LEVELS[-2] else np.nan),
        _claim("merged-end", "", "it ends at the best loss", f"distance from {LEVELS[-1]:.3f}", at_most(NEAR), "merged",
               lambda one: abs(float(one.loss[-1]) - LEVELS[-1])),
        Claim("white", PAPER, "merged, Λ = I: ŷ = σ(t) β·x_q with a sigmoid σ of rate 2√D that ends at 1/(1 + (1 + "
        "D)/N)",
              "largest distance of σ from it over that, equal half-way", at_most(0.05),
              lambda figure: PerSeed(figure.off_sigmoids), lambda figure: figure.sigmas_in_words()),
        _claim("steps", "", f"separate key and query of rank 1: {DIM} drops, with a plateau at each level between",
               f"{STANDS}, the least", at_least(3), "rank1", lambda one: float(lingering(one.time, one.loss).min())),
        _claim("levels", "", "the plateaus are at " + ", ".join(f"{level:.3f}" for level in LEVELS[1:-1]),
               "distance where the loss is slowest, the largest", at_most(NEAR), "rank1", lambda one: one.off_levels,
               lambda figure: f"{SAMPLED} {figure.levels_in_words()}"),
        _claim("own-levels", OURS, "they are the losses of theory's heads on the sequences that there are",
               "distance where the loss is slowest, the largest", at_most(NEAR), "rank1",
               lambda one: one.off_own_levels, lambda figure: figure.levels_in_words()),
        _claim("end", "", "it ends at the best loss too", f"distance from {LEVELS[-1]:.3f}", at_most(NEAR), "rank1",
               lambda one: abs(float(one.loss[-1]) - LEVELS[-1])),
        _claim("order", "", "eigenvalues are learned one after the other, the largest first",
               "levels between at which just these are learned", exactly(DIM - 1), "rank1", lambda one: one.in_order),
        _claim("heads", "", "each eigenvector has a head of its own, key and query along it",
               "|cosine| of key and query of its largest head, the least", at_least(0.95), "rank1",
               lambda one: one.largest_heads[0], lambda figure: f"{MIXED} {figure.heads_in_words()}"),
        _claim("cubes", "", "whose weights are v³ = 1/[λ(1 + (1 + tr/λ)/N)]", "relative error of |v|³, the largest",
               at_most(0.1), "rank1", lambda one: one.largest_heads[1]),
        _claim("times", "", "the time to learn an eigenvalue goes as λ^(-2)", "|exponent + 2| of a fit over the four",
               at_most(0.5), "rank1", lambda one: abs(one.exponent + 2)),
        _claim("rank2-steps", "", "rank 2: a plateau where two eigenvalues are learned", f"{STANDS}, at level 2",
               at_least(3), "rank2", lambda one: float(lingering(one.time, one.loss)[1])),
        _claim("rank2-no-more", "", "rank 2: and none where one or three are", f"{STANDS}, the largest of 1 and 3",
               at_most(3), "rank2", lambda one: float(lingering(one.time, one.loss)[[0, 2]].max())
               if one.loss[-1] < LEVELS[-2] else np.nan, lambda figure: f"{WITHIN} {figure.in_words('rank2')}"),
        _claim("rank4-once", "", "rank 4: the loss falls once", f"{STANDS}, the largest", at_most(3), "rank4",
               lambda one: float(lingering(one.time, one.loss).max()) if one.loss[-1] < LEVELS[-2] else np.nan,
               lambda figure: f"{WITHIN} {figure.in_words('rank4')}"),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The four networks, and the merged one with Λ = I."""
        return {name: in_context(name, SEQUENCES[scale]) for name in STEPS} | {"white": white(SEQUENCES[scale])}

    @cached_property
    def learners(self) -> Available[list[Learner]]:
        """Each seed of each network."""
        own = self.runs.each(lambda _, run: [Learner(run, k) for k in range(len(run.seeds))])
        return Available({name: each for name, each in own.items() if name in STEPS}, own.missing)

    @cached_property
    def sigmas(self) -> np.ndarray:
        """Mean gain of the heads' matrix with Λ = I: seeds x saved steps."""
        run = self.runs["white"]
        keys = run.history("key_query1")
        keys = keys.reshape(*keys.shape[:2], -1, DIM, DIM)
        return np.abs(np.einsum("sth,sthdd->st", run.history("output")[:, :, 0], keys)) / DIM

    @cached_property
    def off_sigmoids(self) -> list[float]:
        """How far they are from the sigmoid of theory."""
        return [off_sigmoid(WHITE_RATE * self.runs["white"].saved, own) for own in self.sigmas]

    def sigmas_in_words(self) -> str:
        """Where they end."""
        ends = ", ".join(f"{own[-1]:.3f}" for own in self.sigmas)
        return f"σ ends at {ends}, seed by seed; by theory at {1 / (1 + (1 + DIM) / CONTEXT):.3f}."

    def levels_in_words(self) -> str:
        """Where the loss is slowest, and theory's losses on the sequences, seed by seed."""
        told = []
        for one in self.learners["rank1"]:
            found, own = (", ".join(f"{value:.3f}" for value in each) for each in (one.plateaus, one.own_levels))
            told.append(f"{found} ({own})")
        return f"Where the loss is slowest (theory's heads on the sequences), seed by seed: {'; '.join(told)}."

    def heads_in_words(self) -> str:
        """The least cosines, and how far the loss at the end is from the best, seed by seed."""
        cosines, ends = [], []
        for one in self.learners["rank1"]:
            cosines.append(f"{one.largest_heads[0]:.3f}")
            ends.append(f"{one.loss[-1]:.3f}")
        return f"Least cosines, seed by seed: {', '.join(cosines)}; the loss at the end: {', '.join(ends)}."

    def in_words(self, name: str) -> str:
        """How long the loss stands at each level, and where it ends, seed by seed."""
        told = []
        for one in self.learners[name]:
            ratios = ", ".join(f"{value:.2g}" for value in lingering(one.time, one.loss))
            told.append(f"{ratios} (end {one.loss[-1]:.3f})")
        return f"Time at levels 1 to 3 over that half-way to their neighbours, seed by seed: {'; '.join(told)}."

    def draw(self) -> Drawing:
        """Losses over time with the levels, what is learned of each eigenvalue, and times over eigenvalues."""
        return Drawing(
            caption="Linear attention learns regression in context by gradient descent; all seeds. Top: the loss over "
            "time (rate times steps), dashed the levels of theory; merged key and query, and separate ones of rank 1, "
            "2 and 4. Bottom: of rank 1, what the heads together give each eigenvector, over the best; and the time "
            "until the loss is half-way down each step, over the eigenvalue (dashed: λ^(-2)).",
            pictures={"": draw_in_context(self)},
            tables=(self._table(),),
            data=self.columns_of_claims(),
            settings_extra={"levels of theory": ", ".join(f"{level:.3f}" for level in LEVELS)},
        )

    def _table(self) -> Table:
        rows = []
        for name, own in self.learners.items():
            ratios = np.median([lingering(one.time, one.loss) for one in own], axis=0)
            end = np.median([one.loss[-1] for one in own])
            rows.append((self.titles[name], *(f"{value:.2g}" for value in ratios), f"{end:.3f}"))
        header = ("keys and queries", *(f"at {level:.3f}" for level in LEVELS[1:-1]), "final loss")
        return Table(
            f"Time within {NEAR:g} of a level over that half-way to its neighbours, medians", header, tuple(rows)
        )
