"""Statements of the papers, the rule each is held against in a seed, and the one rule that gives the verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

Verdict = Literal["reproduced", "partly", "not reproduced", "not run"]
REPRODUCED = 0.8  # the share of seeds in which a statement holds, from which on it counts as reproduced
PARTLY = 0.3


def judge(holds: Sequence[bool]) -> Verdict:
    """The verdict on a statement that holds or fails in each seed; fixed before any run.

    >>> judge([True] * 9 + [False]), judge([True] + [False] * 9), judge([])
    ('reproduced', 'not reproduced', 'not run')
    """
    if not len(holds):
        return "not run"
    share = np.mean(holds)
    return "reproduced" if share >= REPRODUCED else "partly" if share >= PARTLY else "not reproduced"


class Rule(NamedTuple):
    """What a measured value must be for a statement to hold in a seed.

    >>> str(Rule("at most", 0.05)), Rule("at most", 0.05).holds(0.06), Rule("exactly", 2).holds(2)
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


@dataclass(frozen=True)
class Statement:
    """One statement of a paper, and what would make it true: all of it known before anything is run.

    Attributes:
        id: short name, unique in the report.
        figure: name of the figure that shows it.
        where: the figure or section of the paper that states it.
        text: the statement in our words.
        quantity: what is measured in each seed.
        expected: what the quantity must be.
        trained: it is about trained weights, so that untrained ones must fail it.
        paper: ``FC`` or ``CNN``.
        ours: it is asked by us or by careful readers, not stated by the paper.
    """

    id: str
    figure: str
    where: str
    text: str
    quantity: str
    expected: Rule
    trained: bool = True
    paper: str = "FC"
    ours: bool = False


class Seeds(NamedTuple):
    """A quantity in each seed, and whether it means anything there (of lines: whether the layer is condensed)."""

    values: Sequence[float] | np.ndarray
    valid: Sequence[bool] | np.ndarray | None = None

    @property
    def median(self) -> float:
        """The median of what is a number; NaN where nothing is."""
        finite = np.asarray(self.values, float)[np.isfinite(self.values)]
        return float(np.median(finite)) if len(finite) else float("nan")

    def holds(self, rule: Rule) -> tuple[bool, ...]:
        """Whether a rule holds, in each seed."""
        valid = [True] * len(self.values) if self.valid is None else self.valid
        return tuple(bool(ok) and rule.holds(float(value)) for value, ok in zip(self.values, valid, strict=True))


@dataclass(frozen=True)
class Claim:
    """A statement with what was measured over seeds, and so its verdict.

    Attributes:
        statement: the statement.
        scale: ``paper`` or ``quick``.
        measured: its quantity in each seed; None where it was not run.
        untrained: the same of the untrained networks; None where that means nothing.
        why: where it fails, why; where it was not run, the reason.
        variant: which settings differ from the paper's; empty where none do.
    """

    statement: Statement
    scale: str
    measured: Seeds | None = None
    untrained: Seeds | None = None
    why: str = ""
    variant: str = ""

    @property
    def holds(self) -> tuple[bool, ...]:
        """Whether the statement holds, in each seed."""
        return () if self.measured is None else self.measured.holds(self.statement.expected)

    @property
    def verdict(self) -> Verdict:
        """The verdict by the one rule."""
        return judge(self.holds)

    def to_plain(self) -> dict[str, Any]:
        """The claim as one object of ``claims.json``."""
        statement = self.statement
        plain = {
            "id": statement.id,
            "paper": statement.paper,
            "ours": statement.ours,
            "where": statement.where,
            "statement": statement.text,
            "quantity": statement.quantity,
            "expected": str(statement.expected),
            "measured": _summary(self.measured),
            "holds": list(self.holds),
            "verdict": self.verdict,
            "scale": self.scale,
            "figure": statement.figure,
            "why": self.why,
            "variant": self.variant,
        }
        if self.untrained is not None:
            holds = self.untrained.holds(statement.expected)
            plain["untrained"] = _summary(self.untrained) | {"holds": list(holds), "verdict": judge(holds)}
        return plain


def _summary(measured: Seeds | None) -> dict[str, Any]:
    """The values of each seed with their median and range; what is not a number is null."""
    if measured is None:
        return {"seeds": [], "valid": [], "median": None, "low": None, "high": None}
    values = [float(value) for value in measured.values]
    finite = [value for value in values if math.isfinite(value)]
    valid = [True] * len(values) if measured.valid is None else [bool(ok) for ok in measured.valid]
    middle = {"median": float(np.median(finite)), "low": min(finite), "high": max(finite)} if finite else {}
    return {"seeds": [_number(v) for v in values], "valid": valid, "median": None, "low": None, "high": None} | {
        name: _number(value) for name, value in middle.items()
    }


def _number(value: float) -> float | int | None:
    """A number with six digits, whole where it is; null where it is none."""
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}")


def columns_of(claims: Mapping[str, Claim]) -> dict[str, np.ndarray]:
    """A row for each claim and seed."""
    measured = {key: claim.measured.values for key, claim in claims.items() if claim.measured is not None}
    return {
        "claim": np.concatenate([np.full(len(values), key) for key, values in measured.items()]),
        "seed": np.concatenate([np.arange(len(values)) for values in measured.values()]),
        "value": np.concatenate([np.asarray(values, float) for values in measured.values()]),
    }
