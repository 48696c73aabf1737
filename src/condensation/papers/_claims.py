"""Claims: a statement of a paper bound to what is measured of it, its rule and its reason, and how it is judged."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from .._phrases import plural

if TYPE_CHECKING:
    from ._figure import PaperFigure
    from ._variant import Variant

Verdict = Literal["reproduced", "partly", "not reproduced", "not decided", "not run"]
REPRODUCED = 0.8  # the share of seeds in which a statement holds, from which on it counts as reproduced
PARTLY = 0.3
DECIDED = 0.5  # the share of seeds that must meet a statement's premise
FigureT = TypeVar("FigureT")


@cache
def _revisions() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("revisions.toml").read_text(encoding="utf-8"))


def revision(claim_id: str) -> str:
    """How a claim was judged before its rule was changed; empty where it never was."""
    before = _revisions().get(claim_id)
    return f"Judged before by another rule: {before}." if before else ""


def judge(holds: Sequence[bool | None]) -> Verdict:
    """The verdict on a statement that holds or fails in each seed.

    A seed that does not meet the statement's premise (None) neither supports nor refutes it. The others are judged;
    where they are fewer than half, the statement is not decided.

    >>> judge([True] * 9 + [False]), judge([True] + [False] * 9), judge([])
    ('reproduced', 'not reproduced', 'not run')
    >>> judge([True] * 5 + [None] * 5), judge([True] * 4 + [None] * 6)
    ('reproduced', 'not decided')
    """
    if not len(holds):
        return "not run"
    decided = [each for each in holds if each is not None]
    if len(decided) < DECIDED * len(holds):
        return "not decided"
    share = sum(decided) / len(decided)
    return "reproduced" if share >= REPRODUCED else "partly" if share >= PARTLY else "not reproduced"


class Rule(NamedTuple):
    """What a measured value must be for a statement to hold in a seed.

    >>> str(at_most(0.05)), at_most(0.05).holds(0.06), exactly(2).holds(2)
    ('at most 0.05', False, True)
    """

    word: Literal["exactly", "at least", "at most"]
    value: float

    def holds(self, value: float) -> bool:
        """Whether a value fits; NaN never does."""
        if self.word == "exactly":
            return bool(value == self.value)
        return bool(value >= self.value if self.word == "at least" else value <= self.value)

    def __str__(self) -> str:
        return f"{self.value:g}" if self.word == "exactly" else f"{self.word} {self.value:g}"


def exactly(value: float) -> Rule:
    """The rule that a value is this one."""
    return Rule("exactly", value)


def at_least(value: float) -> Rule:
    """The rule that a value is this one or larger."""
    return Rule("at least", value)


def at_most(value: float) -> Rule:
    """The rule that a value is this one or smaller."""
    return Rule("at most", value)


class PerSeed(NamedTuple):
    """A quantity in each seed.

    Attributes:
        values: the quantity.
        valid: whether it means anything (of lines: whether the layer is condensed); a claim fails where it does not.
        decided: whether the seed meets the claim's premise; where it does not, it neither supports nor refutes.
    """

    values: Sequence[float] | np.ndarray
    valid: Sequence[bool] | np.ndarray | None = None
    decided: Sequence[bool] | np.ndarray | None = None

    @property
    def median(self) -> float:
        """The median of the finite values; NaN where there are none."""
        finite = np.asarray(self.values, float)[np.isfinite(self.values)]
        return float(np.median(finite)) if len(finite) else float("nan")

    @property
    def counted(self) -> list[bool]:
        """Whether the value counts, in each seed: it is valid, and the seed decides something."""
        conditions = [condition for condition in (self.valid, self.decided) if condition is not None]
        return [all(bool(condition[k]) for condition in conditions) for k in range(len(self.values))]

    def holds(self, rule: Rule) -> tuple[bool | None, ...]:
        """Whether a rule holds, in each seed; None where a seed decides nothing."""
        decided = [True] * len(self.values) if self.decided is None else self.decided
        seeds = zip(self.values, self.counted, decided, strict=True)
        return tuple(None if not decides else ok and rule.holds(float(value)) for value, ok, decides in seeds)

    def summary(self) -> dict[str, Any]:
        """The values of each seed with their median and range, as plain data; what is not a number is null."""
        values = [_number(float(value)) for value in self.values]
        finite = [float(value) for value in self.values if math.isfinite(value)] or [math.nan]
        middle = {"median": self.median, "low": min(finite), "high": max(finite)}
        return {"seeds": values, "valid": self.counted} | {name: _number(value) for name, value in middle.items()}


def _number(value: float) -> float | int | None:
    """A number with six digits, whole where it is; null where it is none."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")


@dataclass(frozen=True)
class Claim(Generic[FigureT]):
    """One statement of a paper, what is measured of it, and what would make it true: written before its first run.

    A rule that was changed later is listed in ``revisions.toml`` with the verdict that it gave before.

    Attributes:
        key: its name within its figure; with the figure's name before it, unique in the report.
        where: the figure or section of the paper that states it.
        text: the statement in our words.
        quantity: what is measured in each seed, in words.
        rule: what the quantity must be.
        measure: the quantity in each seed, of a figure that was observed.
        why: why it fails; evaluated only where it does.
        note: what must be known of it whatever the verdict.
        trained: it is about trained weights, so that untrained ones must fail it.
        ours: an additional question, not stated by the paper.
    """

    key: str
    where: str
    text: str
    quantity: str
    rule: Rule
    measure: Callable[[FigureT], PerSeed]
    why: str | Callable[[FigureT], str] = ""
    note: str | Callable[[FigureT], str] = ""
    trained: bool = True
    ours: bool = False


def question(
    key: str, text: str, quantity: str, rule: Rule, measure: Callable[[FigureT], PerSeed],
    why: str | Callable[[FigureT], str] = "", *, trained: bool = True,
) -> Claim[FigureT]:  # fmt: skip
    """An additional question: a claim that no figure or section of the paper states."""
    return Claim(key, "additional question", text, quantity, rule, measure, why, trained=trained, ours=True)


@dataclass(frozen=True)
class Finding:
    """A claim of a figure with what was measured over seeds, and so its verdict.

    Attributes:
        scale: ``paper`` or ``quick``.
        variant: which settings differ from the paper's.
        measured: its quantity in each seed; None where it was not run.
        untrained: that of the untrained networks; None where that means nothing.
        why: where it fails, why; where it was not run, the reason.
    """

    figure: type[PaperFigure]
    claim: Claim[Any]
    scale: str
    variant: Variant
    measured: PerSeed | None = None
    untrained: PerSeed | None = None
    why: str = ""

    @property
    def holds(self) -> tuple[bool | None, ...]:
        """Whether the claim holds, in each seed; None where a seed decides nothing."""
        return () if self.measured is None else self.measured.holds(self.claim.rule)

    @property
    def verdict(self) -> Verdict:
        """The verdict by the one rule."""
        return judge(self.holds)

    @property
    def failing(self) -> str:
        """The values of the seeds in which it does not hold, in words."""
        if self.measured is None:
            return ""
        seeds = [*zip(self.measured.values, self.measured.counted, self.holds, strict=True)]
        values = [f"{value:.3g}{'' if ok else ' (does not count)'}" for value, ok, holds in seeds if holds is False]
        fails = f"Expected {self.claim.rule}; found where it fails: {', '.join(values)}." if values else ""
        unknown = [f"{value:.3g}" for value, _, holds in seeds if holds is None]
        count = f"{plural(len(unknown), 'seed')} of {len(seeds)} {'does' if len(unknown) == 1 else 'do'}"
        premise = f"{count} not meet the premise (found there: {', '.join(unknown)})." if unknown else ""
        return " ".join(filter(None, (fails, premise)))

    def to_plain(self) -> dict[str, Any]:
        """The finding as one object of ``claims.json``."""
        claim, tag = self.claim, f"_{self.variant.tag}" if self.variant.tag else ""
        plain = {
            "id": f"{self.figure.claim_id(claim.key)}{tag}", "paper": self.figure.paper, "ours": claim.ours,
            "where": claim.where, "statement": claim.text, "quantity": claim.quantity, "expected": str(claim.rule),
            "measured": (self.measured or PerSeed([])).summary(), "holds": list(self.holds), "verdict": self.verdict,
            "scale": self.scale, "figure": f"{self.figure.name}{tag}",
            "chosen": self.figure.chosen, "why": self.why, "variant": str(self.variant),
        }  # fmt: skip
        if self.untrained is not None:
            holds = self.untrained.holds(claim.rule)
            plain["untrained"] = self.untrained.summary() | {"holds": list(holds), "verdict": judge(holds)}
        return plain
