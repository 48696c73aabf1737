"""What ``condensation measure`` tells of a file, a watched model or a run: one schema for table, JSON and page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median, median_low
from typing import Any

from ..measure import Row, Rows, most_condensed_first
from ..measure._table import NAN
from ._layout import Units

Record = dict[str, Any]  # a row by the names of its columns

_OF_SEEDS = ("seeds", "condensed_seeds")
_OF_NULL = ("mean", "centred_lines", "centred_k_eff", "null_k_eff", "null_rank", "copies")
_COLUMNS = (
    *("layer", "step", *_OF_SEEDS, "kind", "units", "inputs", "lines", "orientations", "cover", "k_eff", *_OF_NULL[:4]),
    *("effective_rank", "null_rank", "stable_rank", "copies", "change", "reading"),
)
_ERRORS = ("k_eff_error", "effective_rank_error", "stable_rank_error")
_HEADINGS = {"k_eff": "k_eff", "change": "RD"}  # of the others the name, in two lines where it is of several words
_COUNTS = (
    "lines",
    "orientations",
    "centred_lines",
    "zeros",
    "zero_inputs",
    "copies",
    "opposites",
    "spare",
    "kept_rank",
)
_NUMBERS = (
    *("cover", "k_eff", "chance_k_eff", "effective_rank", "stable_rank", "change"),
    *("mean", "centred_cover", "centred_k_eff", "null_k_eff", "null_low", "null_rank"),
    *("bias", "chance_copies", *_ERRORS),
)
MISSING = "-"


@dataclass(frozen=True, kw_only=True)
class MedianRow(Row):
    """The measures of a layer as medians over seeds; it is condensed where more than half of the seeds are.

    Attributes:
        seeds: how many could be measured.
        condensed_seeds: how many of them are condensed.
    """

    seeds: int
    condensed_seeds: int


def median_row(rows: Sequence[Row]) -> MedianRow:
    """The row of one layer at one step from those of all seeds; counts by the lower median, so that they stay whole.

    >>> rows = [Row("a", lines=k, cover=k / 10, condensed=k > 1) for k in (1, 2, 5)]
    >>> row = median_row([*rows, Row("a", reason="NaN")])
    >>> row.lines, row.cover, row.condensed, row.seeds, row.condensed_seeds
    (2, 0.2, True, 3, 2)
    """
    measured = [row for row in rows if not row.reason]
    if not measured:
        return MedianRow(**vars(rows[0]), seeds=0, condensed_seeds=0)
    condensed = sum(row.condensed for row in measured)
    medians: Record = {name: median_low(getattr(row, name) for row in measured) for name in _COUNTS}
    for name in _NUMBERS:
        numbers = [value for row in measured if math.isfinite(value := getattr(row, name))]
        medians[name] = median(numbers) if numbers else NAN
    medians |= {"condensed": 2 * condensed > len(measured), "seeds": len(measured), "condensed_seeds": condensed}
    return MedianRow(**vars(measured[0]) | medians)


@dataclass(frozen=True)
class Measured:
    """The layers of a checkpoint, of several over training, or of a run.

    Attributes:
        path: what was measured.
        steps: the rows of each step; a checkpoint alone is step 0.
        units: of each layer that could be measured, the last ones (of a run those of its first seed), for pictures.
        facts: about the source, by name.
        notes: warnings for the reader.
    """

    path: Path
    steps: Mapping[int, list[Row]]
    units: list[Units] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> list[Row]:
        """A row for each layer: that of the last step at which it could be measured."""
        return [
            next((row for row in reversed(history.values()) if not row.reason), history[max(history)])
            for history in self._histories.values()
        ]

    @property
    def rows(self) -> Rows:
        """The last row of each layer, the most condensed first."""
        return most_condensed_first(self.last)

    @property
    def records(self) -> list[Record]:
        """All rows by the names of their columns: layers as in ``rows``, each with its steps in order."""
        return [record(row, step) for last in self.rows for step, row in self.history(last.layer).items()]

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The names of what could not be measured, by reason; where only some steps could not, these are named."""
        layers: dict[str, list[str]] = {}
        for last in self.rows:
            if last.reason:
                layers.setdefault(last.reason, []).append(last.layer)
                continue
            failed: dict[str, list[int]] = {}
            for step, row in self.history(last.layer).items():
                if row.reason:
                    failed.setdefault(row.reason, []).append(step)
            for reason, steps in failed.items():
                when = f"step {steps[0]:,}" if len(steps) == 1 else f"{len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"
                layers.setdefault(f"{reason} (at {when})", []).append(last.layer)
        return layers

    def history(self, layer: str) -> dict[int, Row]:
        """The rows of one layer by step."""
        return self._histories.get(layer, {})

    @cached_property
    def _histories(self) -> dict[str, dict[int, Row]]:
        histories: dict[str, dict[int, Row]] = {}
        for step in sorted(self.steps):
            for row in self.steps[step]:
                histories.setdefault(row.layer, {})[step] = row
        return histories


def record(row: Row, step: int) -> Record:
    """A row by the names of its columns, whatever it was measured on; a file is one seed."""
    seeds = {} if isinstance(row, MedianRow) else {"seeds": int(not row.reason), "condensed_seeds": int(row.condensed)}
    read = row.read
    words = {"reading": str(read), "action": read.action.value, "saving": read.saving}
    return {"layer": row.layer, "step": step} | asdict(row) | seeds | words


def columns(records: Sequence[Record], *, series: bool) -> dict[str, str]:
    """The headings of the columns that tell something of these records, by name."""
    empty = {
        *(() if series else ("step", "change")),
        *(() if any(record["seeds"] > 1 for record in records) else _OF_SEEDS),
        *(() if any(math.isfinite(record["stable_rank"]) for record in records) else ("stable_rank",)),
        *(() if any(math.isfinite(record["mean"]) for record in records) else _OF_NULL),
    }
    return {name: _HEADINGS.get(name, name.replace("_", "\n", 1)) for name in _COLUMNS if name not in empty}


def cell(name: str, value: Any) -> str:
    """A value of a column as it is read.

    >>> cell("cover", 0.976), cell("k_eff", 1234.5), cell("k_eff", 1.2345), cell("change", NAN)
    ('98%', '1,234', '1.23', '-')
    """
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if not math.isfinite(value):
        return MISSING
    return f"{value:.0%}" if name in ("cover", "mean") else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def cell_with_error(record: Record, name: str) -> str:
    """The value of a record's column as it is read, with its standard error where there is one.

    >>> cell_with_error({"k_eff": 3.2, "k_eff_error": 0.14}, "k_eff")
    '3.2 ±0.1'
    """
    error = record.get(f"{name}_error", NAN)
    return cell(name, record[name]) + (f" ±{error:.1g}" if math.isfinite(error) else "")
