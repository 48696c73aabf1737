"""Claims of the papers, and the one rule that turns measurements into a verdict."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

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


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, what was measured over seeds, and the verdict.

    Attributes:
        id: short name, unique in the report.
        paper: ``FC`` or ``CNN``.
        where: the figure or section that states it.
        statement: the statement in our words.
        expected: what the paper leads one to expect of the measured value.
        measured: the value in each seed.
        holds: whether the statement holds in each seed.
        scale: ``paper`` or ``quick``.
        figure: name of the figure that shows it.
        remark: what a reader should know besides.
    """

    id: str
    paper: str
    where: str
    statement: str
    expected: float | int | str
    measured: tuple[float, ...]
    holds: tuple[bool, ...]
    scale: str
    figure: str
    remark: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict by the one rule."""
        return judge(self.holds)

    def to_plain(self) -> dict[str, Any]:
        """The claim as one object of ``claims.json``."""
        plain = asdict(self)
        values = list(self.measured)
        summary = {"seeds": values}
        if values:
            summary |= {"median": float(np.median(values)), "low": float(min(values)), "high": float(max(values))}
        return plain | {"measured": summary, "holds": list(self.holds), "verdict": self.verdict}
