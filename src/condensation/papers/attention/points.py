r"""Linear attention in context with keys and queries of rank 1: where its loss is stationary.

For every set of eigenvectors of $\Lambda$ there is a point at which each of them has a head of its own,
$o = |k| = |q| = v$ with $v^3 = 1 / [\lambda (1 + (1 + \mathrm{tr} \Lambda/\lambda)/N)]$, and the other heads are zero:
$2^D$ points (Zhang, Singh, Latham and Saxe 2025). Training from small weights passes D + 1 of them, the plateaus of
``icl-staircase``; here the gradient is taken at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...data import InContextRegression
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...networks import Attention
from ...saving import Evenly
from ...seeds import Seed
from ...theory import context_gradient, context_loss
from .._claims import Claim, PerSeed, Rule, at_most, exactly
from .._figure import Available, Drawing, PaperFigure
from ._context_heads import CONTEXT, DIM, EIGENVALUES, Parts, Sample, heads_of
from .in_context import NEAR, PAPER, in_context

SEQUENCES = 80_000
FEWER = 4  # times as few sequences, for how the gradient falls with their number
STEP = 0.1  # of a head that is zero, along what is not learned
SETS = tuple(own for size in range(DIM + 1) for own in combinations(range(DIM), size))


def random_heads(size: float, heads: int, rng: np.random.Generator) -> Parts:
    """Heads in random directions, as large together."""
    drawn = rng.standard_normal(heads * (1 + 2 * DIM))
    sizes, keys, queries = np.split(size * drawn / np.linalg.norm(drawn), [heads, heads * (1 + DIM)])
    return sizes, keys.reshape(heads, DIM), queries.reshape(heads, DIM)


def expected_gradient(parts: Parts) -> float:
    """The norm of the expected loss's gradient by all parts."""
    sizes, keys, queries = parts
    own = context_gradient(np.einsum("h,hd,he->de", *parts), EIGENVALUES, CONTEXT)
    by_size = np.einsum("hd,de,he->h", keys, own, queries)
    by_key, by_query = sizes[:, None] * (queries @ own.T), sizes[:, None] * (keys @ own)
    return float(np.sqrt((by_size**2).sum() + (by_key**2).sum() + (by_query**2).sum()))


@dataclass(frozen=True)
class Measured:
    """One seed: at each point the gradient, that at random points, and the loss.

    Attributes:
        expected: norm of the gradient of the expected loss at each point.
        random_expected: the same at a random point of each one's size (the empty set has size zero: no value).
        found, random_found: the same of the network on its sequences.
        fewer: the first of these with a quarter of the sequences.
        losses, levels: of the network on its sequences, and by theory.
        lowered: at how many points a step of a zero head along what is not learned lowers the loss.
    """

    expected: np.ndarray
    random_expected: np.ndarray
    found: np.ndarray
    random_found: np.ndarray
    fewer: np.ndarray
    losses: np.ndarray
    levels: np.ndarray
    lowered: int

    @property
    def exponent(self) -> float:
        """By which power of the number of sequences the gradient grows, over all points together."""
        return float(np.log(np.linalg.norm(self.found) / np.linalg.norm(self.fewer)) / np.log(FEWER))


def measured(experiment: Experiment, seed: Seed) -> Measured:
    """All of one seed."""
    network, data = experiment.network, experiment.data
    assert isinstance(network, Attention)
    assert isinstance(data, InContextRegression)
    fewer = Sample(experiment.replace(data=replace(data, n=data.n // FEWER)), seed)
    sample, rng = Sample(experiment, seed), np.random.default_rng(seed.init)
    points = [heads_of(own, network.heads) for own in SETS]
    others = [random_heads(_size(point), network.heads, rng) for point in points[1:]]
    losses = np.array([sample.loss(point) for point in points])
    levels = np.array([context_loss(np.einsum("h,hd,he->de", *each), EIGENVALUES, CONTEXT) for each in points])
    beyond = [
        min([sample.loss(_with_step(own, axis, network.heads)) for axis in range(DIM) if axis not in own] or [np.inf])
        for own in SETS
    ]
    return Measured(
        expected=np.array([expected_gradient(each) for each in points]),
        random_expected=np.array([expected_gradient(each) for each in others]),
        found=np.array([sample.gradient(each) for each in points]),
        random_found=np.array([sample.gradient(each) for each in others]),
        fewer=np.array([fewer.gradient(each) for each in points]),
        losses=losses,
        levels=levels,
        lowered=int((np.array(beyond) < losses).sum()),
    )


def _size(parts: Parts) -> float:
    return float(np.sqrt(sum((part**2).sum() for part in parts)))


def _with_step(learned: tuple[int, ...], axis: int, heads: int) -> Parts:
    """The point, and a small head along one more eigenvector in the place of a zero one."""
    sizes, keys, _ = heads_of(learned, heads)
    sizes[-1] = keys[-1, axis] = STEP
    return sizes, keys, keys.copy()


PAIR = "One pair of draws, all sequences and a quarter of them, tells a seed's exponent no better."


def _claim(
    key: str, where: str, text: str, quantity: str, rule: Rule, measure: Callable[[Measured], float], reason: str = "",
) -> "Claim[Points]":  # fmt: skip
    return Claim(
        key, where or "additional question", text, quantity, rule,
        lambda figure: PerSeed([measure(one) for one in figure.seeds_measured]),
        lambda figure: f"{reason} {figure.in_words()}".strip(),
        trained=False, ours=not where,
    )  # fmt: skip


OVER = "over the median at random points of their sizes, the largest of all"


class Points(PaperFigure):
    """The gradient of a network of linear attention at 2^D points."""

    name, title, paper = "icl-points", "Linear attention in context: 2^D stationary points", "ATTENTION"
    has_variants, on_request = False, True
    seed_count: ClassVar = {"quick": 3, "paper": 10}
    titles: ClassVar = {"rank1": "rank 1"}
    chosen = (
        "the eigenvalues, 31 pairs and five heads are those of icl-staircase; a first run with 20,000 sequences, whose "
        "losses were up to 2.5% off, led to 80,000 at both scales; the rules stayed. Random points have entries of "
        "N(0, 1), scaled to the size of a point. Which heads stand for a set, and how the three parts of a head share "
        "its size, does not change the network: one point of a kind is taken, with equal sizes, to which training comes"
    )
    claims = (
        _claim("expected", PAPER, f"for each of the 2^{DIM} sets of eigenvectors there is a point where the expected "
               "loss is stationary", f"norm of its gradient there {OVER}", at_most(1e-10),
               lambda one: float(one.expected.max() / np.median(one.random_expected))),
        _claim("network", PAPER, "the network's gradient on sequences is small there",
               f"norm of the gradient there {OVER}", at_most(0.1),
               lambda one: float(one.found.max() / np.median(one.random_found))),
        _claim("sampling", "", "and what is left of it is of the sample: it falls with the root of their number",
               f"|exponent + 1/2| between a {FEWER}th of the sequences and all, norms over all points", at_most(0.2),
               lambda one: abs(one.exponent + 0.5), PAIR),
        _claim("levels", PAPER, "the loss there is tr Λ less λ/(1 + (1 + tr Λ/λ)/N) for each eigenvector of the set",
               "distance of the network's loss on sequences from it, the largest", at_most(NEAR),
               lambda one: float(np.abs(one.losses - one.levels).max())),
        _claim("saddles", "", "all but the full set are left by a new head, which lowers the loss",
               f"points at which a head of size {STEP:g} along an eigenvector that is not learned does",
               exactly(len(SETS) - 1), lambda one: one.lowered),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network and its sequences: nothing that is measured depends on the one step of training."""
        often = Evenly(2)
        return {"rank1": in_context("rank1", SEQUENCES).replace(steps=1, save=often, record=often)}

    @cached_property
    def each_seed(self) -> Available[list[Measured]]:
        """Each seed."""
        return self.runs.each(lambda _, run: [measured(run.experiment, seed) for seed in run.seeds])

    @property
    def seeds_measured(self) -> list[Measured]:
        """Those of the one network."""
        return self.each_seed["rank1"]

    def in_words(self) -> str:
        """Medians over seeds."""
        own = self.seeds_measured
        largest = np.median([one.found.max() for one in own])
        other = np.median([np.median(one.random_found) for one in own])
        power = np.median([one.exponent for one in own])
        off = ", ".join(f"{np.abs(one.losses - one.levels).max():.3f}" for one in own)
        return (
            f"Medians over seeds: the largest gradient of the points {largest:.2g}, that of random points {other:.2g}; "
            f"it goes as the number of sequences to the power {power:.2f}. Losses are at most {off} off, seed by seed."
        )

    def draw(self) -> Drawing:
        """Gradients at all points, and losses beside those of theory."""
        with look():
            picture = Figure(figsize=(PAGE, 2.6), layout="constrained")
            norms, losses = picture.subplots(1, 2, width_ratios=(2, 1))
            places = np.arange(len(SETS))
            for one in self.seeds_measured:
                for values, colour in zip((one.random_found, one.fewer[1:], one.found[1:]), COLOURS[1:], strict=False):
                    norms.semilogy(places[1:], values, ".", color=colour, alpha=0.6)
                losses.plot(one.levels, one.losses, ".", color=COLOURS[3], alpha=0.6)
            for line, label in zip(
                norms.lines, ("random, as large", "a quarter of the sequences", "all"), strict=False
            ):
                line.set_label(label)
            names = ["".join(str(axis + 1) for axis in own) or "none" for own in SETS]
            norms.set_xticks(places, names, rotation=90)
            norms.set(xlabel="learned eigenvectors", ylabel="norm of the gradient")
            norms.legend(fontsize="x-small")
            losses.axline((0.5, 0.5), slope=1, color=FAINT, linestyle="--", linewidth=0.8)
            losses.set(xlabel="loss by theory", ylabel="loss on sequences")
        return Drawing(
            caption="Linear attention with keys and queries of rank 1, at the points where a set of eigenvectors (1 "
            "has the largest eigenvalue) is learned and no other; all seeds. Left: the norm of the network's gradient "
            "there on all sequences and on a quarter of them, and at random points as large (where none is learned all "
            "heads are zero, and so is the gradient). Right: the loss beside that of theory.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
