r"""Whether a transformer composes two functions or memorises a pair of them, over the size of its first weights.

After Zhang et al. (2024): behind a key x stand two of four anchors, each with a shift of its own, and x with both
shifts is the answer. The pair (3, 4) has a shift of its own, -6 in place of -10, and (4, 3) is never seen. A network
that *reasons* answers (4, 3) by the sum, x - 10; one that has memorised that order does not matter (*symmetric*)
answers x - 6. Every weight begins as $N(0, d_{in}^{-2\gamma})$.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np

from ...sweeps import Sweep, SweepTable
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .._variant import NotRun
from ._measured import COSINE, answers
from ._picture import draw_phases
from ._task import SIZES, transformer

PAPER = "Zhang et al. 2024"
GAMMAS = {"paper": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), "quick": (0.5, 0.8, 1.1)}
SEEDS = {"quick": 10, "paper": 1}
DEEPER = (0.3, 0.5, 0.6, 0.7, 0.8, 1.0)
BETWEEN = (0.5, 0.6)  # where a larger rate or decay is asked for
SMALL, LARGE = 0.5, 0.8
FASTER, STRONGER = 4.0, 100.0  # times the learning rate, times the weight decay
FITTED = 0.95  # the share of training sequences that are answered rightly, from which on a network is judged
ON_A_GPU = "trained at the paper's scale only: it takes a GPU"


def _sweep(scale: str, depth: int, gammas: tuple[float, ...], rate: float = 1.0, decay: float = 1.0) -> Sweep:
    """Networks of one depth over gamma; learning rate and weight decay times something."""
    base = transformer(scale, depth)
    base = base.replace(**{
        "optimizer.learning_rate": rate * SIZES[scale].rate, "optimizer.weight_decay": decay * 0.01,
    })  # fmt: skip
    return Sweep(base, {"gamma": gammas}, {"init.hidden.gamma": "gamma"}, SEEDS[scale], answers, at="saved")


def _answer_claims(depth: int) -> "tuple[Claim[Phases], ...]":
    deep = f"{depth} blocks"
    name = f"depth{depth}"
    return (
        Claim(
            f"{name}-symmetric", PAPER, f"{deep}: γ = {SMALL:g} answers symmetrically",
            "share of x - 6 for the unseen pair at the end", at_least(0.9),
            lambda figure: figure.at_end(name, "symmetric", SMALL), why=lambda figure: figure.told(name),
        ),
        Claim(
            f"{name}-reasoning", PAPER, f"{deep}: γ = {LARGE:g} reasons",
            "share of x - 10 for the unseen pair at the end", at_least(0.9),
            lambda figure: figure.at_end(name, "reasoning", LARGE), why=lambda figure: figure.told(name),
        ),
        Claim(
            f"{name}-more", PAPER, f"{deep}: smaller first weights reason more",
            f"share of x - 10 at γ = {LARGE:g} less that at γ = {SMALL:g}", at_least(0.5),
            lambda figure: figure.compared(name, "reasoning"), why=lambda figure: figure.told(name),
        ),
        Claim(
            f"{name}-keys", PAPER, f"{deep}: trained pairs are answered for keys that never stood at their place",
            f"least share of right answers at γ = {SMALL:g} and {LARGE:g}", at_least(0.99),
            lambda figure: figure.least(name, "unseen"), why=lambda figure: figure.told(name),
        ),
        Claim(
            f"{name}-condensed", PAPER, f"{deep}: W_Q of the first block is condensed at γ = {LARGE:g}",
            f"k_eff of its rows at cosine {COSINE:g} over that of random ones, at the end", at_most(0.5),
            lambda figure: figure.over_chance(name, LARGE),
        ),
        Claim(
            f"{name}-spread", PAPER, f"{deep}: it is not at γ = {SMALL:g}",
            "the same there, in trained networks", at_least(0.8),
            lambda figure: figure.over_chance(name, SMALL), trained=False,
        ),
    )  # fmt: skip


def _stronger_claim(name: str, text: str) -> "Claim[Phases]":
    return Claim(
        name, PAPER, f"{text} acts like a larger γ",
        f"largest gain of reasoning over γ of {BETWEEN[0]:g} and {BETWEEN[1]:g}, where less than half is reasoned "
        "without it", at_least(0.5), lambda figure: figure.gained(name), why=lambda figure: figure.told(name),
    )  # fmt: skip


class Phases(PaperFigure):
    """Answers, groups of W_Q and the embedding's spectrum over gamma, for two depths, a larger rate and decay."""

    name, title, paper = "anchor-phases", "Reasoning against memorising: composite anchor functions", "ANCHOR"
    has_variants, on_request = False, True
    block = 2
    chosen = (
        "12,000 steps (32 epochs) of the paper's 210 epochs, with its warm-up of 10 epochs and its cosine, and there "
        "one seed; no biases, layer norms without weights, no clipping of gradients; a vocabulary of 201 and trained "
        "positions (the authors' code); a rate four times and a decay a hundred times as large, as the text gives "
        f"none; a cell is judged only where {FITTED:.0%} of the training sequences are answered rightly. The authors' "
        "log at depth 2, γ = 0.8 was seen before: 94% reasoning after 26 epochs. The quick scale is another task, with "
        "24 keys, sequences of 5 and width 32; its rate, steps and keys were chosen on seed 100, so that training "
        "sequences are answered in seconds; there it was seen that less than half is reasoned at all γ from 0.5 to 1.7"
    )
    titles: ClassVar = {
        "depth2": "2 blocks", "depth3": "3 blocks", "rate": "learning rate ×4", "decay": "weight decay ×100",
    }  # fmt: skip
    claims = (
        *_answer_claims(2),
        Claim(
            "neither", PAPER, "2 blocks: where the first weights are too small it is neither",
            "larger of both shares at the largest γ", at_most(0.5), lambda figure: figure.neither(),
            why=lambda figure: figure.told("depth2"),
        ),
        Claim(
            "one-by-one", PAPER, f"γ = {LARGE:g}: the embedding's spectrum grows one value at a time",
            "least number of saved steps between those at which the first four singular values come to half of their "
            "growth, largest first", at_least(1), lambda figure: figure.gaps(LARGE),
            why=lambda figure: figure.growth_in_words(LARGE),
        ),
        *_answer_claims(3),
        _stronger_claim("rate", f"a learning rate {FASTER:g} times as large"),
        _stronger_claim("decay", f"a weight decay {STRONGER:g} times as large"),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Sweep]:
        """Two blocks over gamma; at the paper's scale three as well, and a larger rate and a stronger decay."""
        sweeps = {"depth2": _sweep(scale, 2, GAMMAS[scale])}
        if scale == "paper":
            sweeps["rate"] = _sweep(scale, 2, BETWEEN, rate=FASTER)
            sweeps["decay"] = _sweep(scale, 2, BETWEEN, decay=STRONGER)
            sweeps["depth3"] = _sweep(scale, 3, DEEPER)
        return sweeps

    def table(self, name: str) -> SweepTable:
        """The table of a sweep; ``NotRun`` where this scale has none."""
        if name not in self.tables and name not in self.tables.missing:
            raise NotRun(ON_A_GPU)
        return self.tables[name]

    def over_gamma(self, name: str, quantity: str) -> np.ndarray:
        """A quantity at the end: gamma x seeds."""
        return self.table(name).array(quantity)[..., -1]

    def gammas(self, name: str) -> np.ndarray:
        """The gammas of a sweep."""
        return np.array(self.table(name).sweep.axes["gamma"], float)

    def _place(self, name: str, gamma: float) -> int:
        return int(np.abs(self.gammas(name) - gamma).argmin())

    def fitted(self, name: str) -> np.ndarray:
        """Whether the training sequences are answered: gamma x seeds."""
        return self.over_gamma(name, "accuracy") >= FITTED

    def at_end(self, name: str, quantity: str, gamma: float) -> PerSeed:
        """A quantity at a gamma, where the training sequences are answered."""
        place = self._place(name, gamma)
        return PerSeed(self.over_gamma(name, quantity)[place], decided=self.fitted(name)[place])

    def _both(self, name: str) -> tuple[list[int], np.ndarray]:
        places = [self._place(name, SMALL), self._place(name, LARGE)]
        return places, np.asarray(self.fitted(name)[places].all(axis=0))

    def compared(self, name: str, quantity: str) -> PerSeed:
        """A quantity at the larger gamma less that at the smaller."""
        (small, large), decided = self._both(name)
        values = self.over_gamma(name, quantity)
        return PerSeed(values[large] - values[small], decided=decided)

    def least(self, name: str, quantity: str) -> PerSeed:
        """The lesser of a quantity at both."""
        places, decided = self._both(name)
        return PerSeed(self.over_gamma(name, quantity)[places].min(axis=0), decided=decided)

    def over_chance(self, name: str, gamma: float) -> PerSeed:
        """k_eff of W_Q's rows over that of random ones."""
        place = self._place(name, gamma)
        ratio = self.over_gamma(name, "k_eff") / self.over_gamma(name, "chance")
        return PerSeed(ratio[place])

    def neither(self) -> PerSeed:
        """The larger of both shares at the largest gamma."""
        both = np.maximum(self.over_gamma("depth2", "reasoning"), self.over_gamma("depth2", "symmetric"))
        return PerSeed(both[-1], decided=self.fitted("depth2")[-1])

    def gained(self, name: str) -> PerSeed:
        """The largest gain of reasoning, over the gammas at which less than half is reasoned without it."""
        places = [self._place("depth2", gamma) for gamma in self.gammas(name)]
        before, after = self.over_gamma("depth2", "reasoning")[places], self.over_gamma(name, "reasoning")
        fitted = self.fitted(name) & self.fitted("depth2")[places] & (before < 0.5)
        gains = np.where(fitted, after - before, -np.inf).max(axis=0)
        return PerSeed(np.where(np.isfinite(gains), gains, np.nan), decided=np.asarray(fitted.any(axis=0)))

    def values(self, gamma: float, name: str = "depth2") -> np.ndarray:
        """Singular values of the embedding's rows that are read: value x seeds x saved steps."""
        place = self._place(name, gamma)
        kept = [quantity for quantity in self.table(name).quantities if quantity.startswith("value")]
        return np.stack([self.table(name).array(quantity)[place] for quantity in sorted(kept)])

    def half_grown(self, gamma: float) -> np.ndarray:
        """The saved step's number at which each singular value has come to half of its growth: value x seeds."""
        values = self.values(gamma)
        half = (values[..., :1] + values[..., -1:]) / 2
        return (values >= half).argmax(axis=-1)

    def gaps(self, gamma: float) -> PerSeed:
        """The least distance of the first four of them, in saved steps."""
        grown = (self.values(gamma)[:4, :, -1] > self.values(gamma)[:4, :, 0]).all(axis=0)
        return PerSeed(np.where(grown, np.diff(self.half_grown(gamma)[:4], axis=0).min(axis=0), np.nan))

    def growth_in_words(self, gamma: float) -> str:
        """When the first values came to half of their growth."""
        steps = self.table("depth2").steps
        told = [", ".join(str(steps[k]) for k in own) for own in self.half_grown(gamma).T]
        return f"The values come to half of their growth at steps: {'; '.join(told)}."

    def told(self, name: str) -> str:
        """Answers and training accuracy over gamma, medians over the seeds."""
        parts = []
        for place, gamma in enumerate(self.gammas(name)):
            symmetric, reasoned, right = (
                np.median(self.over_gamma(name, q)[place]) for q in ("symmetric", "reasoning", "accuracy")
            )
            parts.append(f"γ = {gamma:g}: {symmetric:.0%}, {reasoned:.0%} ({right:.0%} trained)")
        small = " This is another, smaller task than the paper's." if self.quick else ""
        return f"Symmetric and reasoned answers of {self.titles[name]}: {'; '.join(parts)}.{small}"

    @cached_property
    def shown(self) -> dict[str, SweepTable]:
        """The tables that there are."""
        return dict(self.tables)

    def draw(self) -> Drawing:
        """Answers over gamma for each depth, W_Q over chance, answers and singular values over time."""
        return Drawing(
            caption="Answers to the pair that is never seen, over the exponent γ of the initialization: by the sum "
            "of both shifts (reasoning), or by that of its mirror image (symmetric); grey: right answers on training "
            "sequences. Then k_eff of the rows of W_Q in the first block over that of random rows (1: not condensed). "
            f"Below, 2 blocks over time: answers at γ = {SMALL:g} and {LARGE:g}, and the singular values of the "
            "embedding of the tokens that are read.",
            pictures={"": draw_phases(self)},
            tables=(self._table(),),
            data=self.columns_of_claims(),
        )

    def _table(self) -> Table:
        header = ("", "γ", "symmetric", "reasoning", "trained pairs, new keys", "training", "loss", "W_Q over chance")
        rows = []
        for name in self.shown:
            columns = [
                np.median(self.over_gamma(name, quantity), axis=1)
                for quantity in ("symmetric", "reasoning", "unseen", "accuracy", "loss", "k_eff", "chance")
            ]
            for gamma, *shares, loss, k_eff, chance in zip(self.gammas(name), *columns, strict=True):
                percent = [f"{share:.0%}" for share in shares]
                rows.append((self.titles[name], f"{gamma:g}", *percent, f"{loss:.2g}", f"{k_eff / chance:.2f}"))
        return Table(f"At the end; groups at a cosine of {COSINE:g}; medians of the seeds", header, tuple(rows))
