"""Linear attention in context with keys and queries of rank R: plateaus only where a multiple of R is learned.

Eight coordinates and nine heads (Zhang, Singh, Latham and Saxe 2025). Where the loss stands still is told by when each
singular value of the heads' matrix grows: a plateau at m is a wait between the growth of the m-th and that of the next.
"""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...data import InContextRegression
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...networks import Attention
from ...optimizers import GD
from ...runs import Trajectory
from ...saving import Evenly
from ...theory import context_losses
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Available, Drawing, PaperFigure
from .in_context import PAPER, WITHIN

DIM, HEADS, CONTEXT = 8, 9, 31
EIGENVALUES = tuple(0.75**k * (1 - 0.75) / (1 - 0.75**DIM) for k in range(DIM))
RANKS = (1, 2, 4, 8)
LEVELS = context_losses(EIGENVALUES, CONTEXT)
SEQUENCES = {"quick": 300, "paper": 2000}
STD = {"quick": 0.03, "paper": 0.005}
RATE = 1.0
STEPS = {"quick": {1: 24_000, 2: 8000, 4: 4000, 8: 2500}, "paper": {1: 150_000, 2: 50_000, 4: 25_000, 8: 15_000}}
EVERY = {1: 30, 2: 20, 4: 10, 8: 10}  # steps from one that is saved to the next
BEGUN, DONE = 0.1, 0.9  # of what a singular value is at the end
LEARNED = 1.2  # of the best loss: all is learned
STRICT = (
    "So the rule asks more than theory has: the smaller the weights, the longer these waits are as well, though ever "
    "shorter beside those at a multiple of the rank."
)


def ranked(rank: int, scale: str) -> Experiment:
    """Heads with key and query of a rank, by gradient descent."""
    parts: dict[str, Any] = {
        "attention": "linear", "values": False, "projection": False, "key_inputs": DIM, "scale": 1 / CONTEXT,
    }  # fmt: skip
    network = Attention(CONTEXT + 1, DIM + 1, 1, heads=HEADS, head_width=rank, **parts)
    data = InContextRegression(SEQUENCES[scale], EIGENVALUES, CONTEXT, rotated=True, whitened=True)
    often = Evenly(STEPS[scale][rank] // EVERY[rank] + 1)
    return Experiment(
        network, Init(Normal(STD[scale])), data, GD(RATE), STEPS[scale][rank], Loss("squared_error"), often, often
    )


def singular_values(run: Trajectory, seed: int, rank: int) -> Float[np.ndarray, "saved 8"]:
    """Of the matrix by which the heads together read a query, in coordinates of covariance I, at all saved steps.

    There what is learned first, of the largest eigenvalue, is the largest.
    """
    outputs, keys, queries = (run.history(name)[seed] for name in ("output", "key1", "query1"))
    white = run.experiment.data.axes(run.seeds[seed]).T * np.sqrt(EIGENVALUES)  # type: ignore[union-attr]
    keys, queries = ((part @ white).reshape(len(part), HEADS, rank, DIM) for part in (keys, queries))
    return np.linalg.svd(np.einsum("th,thrd,thre->tde", outputs[:, 0], keys, queries), compute_uv=False)


def waits(steps: np.ndarray, values: Float[np.ndarray, "saved 8"]) -> Float[np.ndarray, " 7"]:
    """The wait from the end of one growth to the beginning of the next, over the shorter of the two.

    >>> values = np.zeros((9, 8))
    >>> values[1:, 0] = values[6:, 1:] = 1
    >>> waits(np.arange(9.0), values).round(2)[:2]
    array([ 5.25, -1.  ])
    """
    last = np.maximum(values[-1], 1e-300)
    begins, ends = ([_reach(steps, own, level) for own in (values / last).T] for level in (BEGUN, DONE))
    growths = np.subtract(ends, begins)
    return np.subtract(begins[1:], ends[:-1]) / np.maximum(np.minimum(growths[1:], growths[:-1]), 1e-12)


def _reach(steps: np.ndarray, values: np.ndarray, level: float) -> float:
    """The first step at a level, straight between saved steps; NaN where there is none."""
    k = int((values >= level).argmax())
    if values[k] < level:
        return float("nan")
    if k == 0:
        return float(steps[0])
    return float(np.interp(level, values[k - 1 : k + 1], steps[k - 1 : k + 1]))


def _claims(rank: int) -> "tuple[Claim[Ranks], ...]":
    there = [m for m in range(1, DIM) if m % rank == 0]
    others = [m for m in range(1, DIM) if m % rank]
    quantity = "wait after m eigenvalues are learned over the shorter drop beside it"
    found: list[Claim[Ranks]] = []
    if there:
        found.append(Claim(
            f"rank{rank}-stands", PAPER,
            f"rank {rank}: the loss stands still after {', '.join(map(str, there))} eigenvalues",
            f"{quantity}, the least of these m", at_least(1), lambda figure: PerSeed(figure.least(rank, there)),
            lambda figure: figure.in_words(),
        ))  # fmt: skip
    if others:
        found.append(Claim(
            f"rank{rank}-no-more", PAPER,
            f"rank {rank}: and nowhere else" if there else f"rank {rank}: the loss falls once",
            f"{quantity}, the largest of the other m", at_most(1), lambda figure: PerSeed(figure.largest(rank, others)),
            lambda figure: f"{WITHIN} {STRICT} {figure.in_words()}",
        ))  # fmt: skip
    return tuple(found)


class Ranks(PaperFigure):
    """Keys and queries of rank 1, 2, 4 and 8 for eight coordinates."""

    name, title, paper = "icl-ranks", "Linear attention in context: rank R learns R eigenvalues at once", "ATTENTION"
    has_variants, on_request = False, True
    seed_count: ClassVar = {"quick": 2, "paper": 10}
    titles: ClassVar = {f"rank{rank}": f"rank {rank}" for rank in RANKS}
    chosen = (
        "the eigenvalues (each 3/4 of the one before, their sum 1), 31 pairs, 2000 sequences of the text's 80,000, "
        "rate, "
        "steps and the first weights; a drop is the way of a singular value of the heads' matrix (in "
        "coordinates of covariance I) from 10% to 90% of what it is at the end, a plateau a wait between two drops "
        "at least as long as the shorter one. At the quick scale 300 "
        "sequences and larger first weights. icl-staircase had been seen before the rules were written; two other "
        "readings of what is learned were given up "
        "after trials with two seeds"
    )
    claims = tuple(claim for rank in RANKS for claim in _claims(rank))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """A network for each rank."""
        return {f"rank{rank}": ranked(rank, scale) for rank in RANKS}

    @cached_property
    def waits(self) -> Available[Float[np.ndarray, "seeds 7"]]:
        """The wait after each number of learned eigenvalues; NaN where not all are learned at the end."""

        def of(name: str, run: Trajectory) -> np.ndarray:
            each = [waits(run.saved, singular_values(run, k, int(name[4:]))) for k in range(len(run.seeds))]
            return np.where(run.loss[:, -1:] <= LEARNED * LEVELS[-1], each, np.nan)

        return self.runs.each(of)

    def least(self, rank: int, places: list[int]) -> Float[np.ndarray, " seeds"]:
        """The least wait of these."""
        return self.waits[f"rank{rank}"][:, np.array(places) - 1].min(axis=1)

    def largest(self, rank: int, places: list[int]) -> Float[np.ndarray, " seeds"]:
        """The largest wait of these."""
        return self.waits[f"rank{rank}"][:, np.array(places) - 1].max(axis=1)

    def in_words(self) -> str:
        """The median waits by rank."""
        told = (
            f"{self.titles[name]}: {', '.join(f'{value:.2g}' for value in np.median(own, axis=0))}"
            for name, own in self.waits.items()
        )
        return (
            f"Waits after 1 to 7 eigenvalues over the shorter drop beside it (negative: they overlap), medians. "
            f"{'; '.join(told)}."
        )

    def draw(self) -> Drawing:
        """Losses by rank with the levels of theory, and waits."""
        with look():
            picture = Figure(figsize=(PAGE, 4.2), layout="constrained")
            panels = picture.subplots(2, len(RANKS), sharey="row")
            for (name, run), top, bottom, colour in zip(self.runs.items(), *panels, COLOURS, strict=False):
                rank = int(name[4:])
                for m, level in enumerate(LEVELS):
                    top.axhline(level, color=FAINT, linestyle="--" if m % rank == 0 else ":", linewidth=0.6)
                top.semilogx(RATE * run.recorded[1:], run.loss[:, 1:].T, color=colour, alpha=0.5, linewidth=0.8)
                top.set(title=self.titles[name], xlabel="time (rate x steps)")
                bottom.plot(range(1, DIM), self.waits[name].T, ".-", color=colour, alpha=0.5, linewidth=0.7)
                bottom.axhline(1, color=FAINT, linestyle=":")
                bottom.set(xlabel="eigenvalues learned", yscale="symlog")
            panels[0, 0].set_ylabel("loss")
            panels[1, 0].set_ylabel("wait over the shorter drop")
        return Drawing(
            caption="Linear attention with nine heads learns regression in context, by the rank of keys and queries; "
            "all seeds. Top: loss over time; theory's levels for endlessly many sequences (of few the loss is lower), "
            "dashed where a multiple of the rank is learned. Bottom: the "
            "wait after each number of learned eigenvalues, over the shorter of the two drops beside it.",
            pictures={"": picture},
            data=self.columns_of_claims(),
            settings_extra={"levels of theory": ", ".join(f"{level:.3f}" for level in LEVELS)},
        )
