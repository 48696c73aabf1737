"""A figure of a paper: what it trains, what it claims of that, and how it is drawn.

A figure is a class; an instance is that figure observed on one set of runs, the trained ones or the same untrained.
Its quantities are cached properties: each is computed once, for claims, reasons and drawing alike, and goes with it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from ..experiment import Experiment
from ..runs import Trajectory
from ..sweeps import Sweep, SweepTable
from ._claims import Claim, PerSeed
from ._counts import Counts, count, line_history, stack_columns
from ._tables import Table
from ._variant import NotRun, Variant

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Value = TypeVar("Value")
Other = TypeVar("Other")


class Available(dict[str, Value]):
    """What could be had, by name. What could not raises ``NotRun`` with the reason; an unknown name is a KeyError."""

    def __init__(self, values: Mapping[str, Value] | None = None, missing: Mapping[str, str] | None = None) -> None:
        super().__init__(values or {})
        self.missing = dict(missing or {})

    def __missing__(self, name: str) -> Value:
        if name in self.missing:
            raise NotRun(self.missing[name])
        raise KeyError(name)

    def each(self, function: Callable[[str, Value], Other]) -> "Available[Other]":
        """A function of name and value, of each that could be had."""
        return Available({name: function(name, value) for name, value in self.items()}, self.missing)

    def renamed(self, titles: Mapping[str, str]) -> dict[str, Value]:
        """The values by title, those without one left out."""
        return {titles[name]: value for name, value in self.items() if name in titles}


@dataclass(frozen=True)
class Drawing:
    """What a figure shows beside its claims.

    Attributes:
        caption: what the pictures show.
        pictures: by what follows the figure's name in the file name; the first, named "", is the figure itself.
        tables: evidence, for readers.
        data: the columns of the figure's data file, one row for each seed and whatever else was varied.
        settings_extra: what the experiments cannot tell, such as what counts as a line.
    """

    caption: str
    pictures: "Mapping[str, Figure]"
    tables: tuple[Table, ...] = ()
    data: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings_extra: Mapping[str, str] = field(default_factory=dict)


class PaperFigure:
    """One figure of a paper, observed on a set of runs.

    Attributes:
        name: such as ``fc-fig3``.
        title: what stands above it.
        paper: ``FC``, ``CNN`` or another source that ``_report.PAPERS`` names.
        has_variants: whether its settings can be changed.
        on_request: whether it is made only where it is asked for by name, so that a whole report stays a matter of
            minutes.
        settings_of: where the settings are told, if its experiments are those of other figures.
        chosen: what we chose because the text does not tell it; empty where the text tells all settings.
        seed_count: how many seeds are trained where nobody asks for a number, at both scales or at each; by its
            networks and scale if None.
        block: networks of a sweep that are trained as one task; what an interruption costs at most. By their number if
            None.
        titles: how its experiments are called in pictures and settings, by name, where not by that.
        claims: what is claimed, in the order of the report.
        runs: the runs of its experiments (``tables``: of its sweeps).
        others: those of its evidence; none where the settings are not the captioned ones.
        scale: ``quick`` or ``paper``.
        variant: what differs from the captioned settings.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    has_variants: ClassVar[bool] = True
    on_request: ClassVar[bool] = False
    settings_of: ClassVar[str] = ""
    chosen: ClassVar[str] = ""
    seed_count: ClassVar[int | Mapping[str, int] | None] = None
    block: ClassVar[int | None] = None
    titles: ClassVar[Mapping[str, str]] = {}
    claims: ClassVar[tuple[Claim[Any], ...]]

    def __init__(
        self, runs: Mapping[str, Any], others: Mapping[str, Trajectory] | None = None, *, scale: str = "quick",
        variant: Variant | None = None,
    ) -> None:  # fmt: skip
        self._observed = runs if isinstance(runs, Available) else Available(runs)
        self.others = others if isinstance(others, Available) else Available(others)
        self.scale, self.variant = scale, variant or Variant()
        self._line_history = cache(line_history)  # of this instance, so that no run outlives it
        self._measured: dict[str, PerSeed] = {}

    @classmethod
    def experiments(cls, scale: str) -> Mapping[str, Experiment] | Mapping[str, Sweep]:
        """What is trained at a scale, by name; a variant is applied to it."""
        return {}

    @classmethod
    def evidence(cls, scale: str) -> Mapping[str, Experiment]:
        """What else is trained for tables and reasons, as it is to be trained, where no variant is asked for."""
        return {}

    @classmethod
    def seeds_at(cls, scale: str) -> int | None:
        """How many seeds are trained at a scale; None where the networks decide."""
        return cls.seed_count[scale] if isinstance(cls.seed_count, Mapping) else cls.seed_count

    @classmethod
    def claim(cls, key: str) -> Claim[Any]:
        """The claim of a key."""
        return next(claim for claim in cls.claims if claim.key == key)

    @classmethod
    def claim_id(cls, key: str) -> str:
        """What a claim is called in the report."""
        return f"{cls.name}-{key}"

    @property
    def runs(self) -> Available[Trajectory]:
        """The runs of the experiments."""
        return self._observed

    @property
    def tables(self) -> Available[SweepTable]:
        """The tables of the sweeps."""
        return self._observed

    @property
    def quick(self) -> bool:
        """Whether the experiments are those of the quick scale."""
        return self.scale == "quick"

    @property
    def seeds(self) -> int:
        """How many seeds the first run has."""
        return len(next(iter(self._observed.values())).seeds)

    def measured(self, key: str) -> PerSeed:
        """The quantity of a claim in each seed."""
        if key not in self._measured:
            self._measured[key] = self.claim(key).measure(self)
        return self._measured[key]

    def columns_of_claims(self, keys: Iterable[str] = ()) -> dict[str, np.ndarray]:
        """A row for each claim that could be measured and each seed."""
        values = {}
        for key in keys or (claim.key for claim in self.claims):
            try:
                values[self.claim_id(key)] = np.asarray(self.measured(key).values, float)
            except NotRun:
                continue
        parts = {name: {"seed": np.arange(len(each)), "value": each} for name, each in values.items()}
        return stack_columns(parts, "claim")

    def count(
        self, run: Trajectory, layer: str | int, epoch: int | None, variant: Variant | None = None,
        threshold: float | None = None, view: str | None = None,
    ) -> Counts:  # fmt: skip
        """The lines of a layer at an epoch (see ``_counts.count``), under this figure's variant if none is given."""
        return count(run, layer, epoch, variant or self.variant, threshold, view, self._line_history)

    def draw(self) -> Drawing:
        """Pictures, tables and words, from what was observed; nothing is trained."""
        raise NotImplementedError
