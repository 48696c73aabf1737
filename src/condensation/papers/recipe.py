"""A recipe: how one figure of a paper is made, from its experiments to its claims, pictures and words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from matplotlib.figure import Figure

from ..experiment import Experiment
from ..runs import Trajectory
from ..sweeps import Sweep, SweepTable
from .claims import Claim, Seeds, Statement
from .lab import Lab
from .variant import Variant

Runs = Mapping[str, Trajectory]
Tables = Mapping[str, SweepTable]
Run = TypeVar("Run", Trajectory, SweepTable)


@dataclass(frozen=True)
class Table:
    """A table in the report: what a change of settings does, say."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Findings:
    """What a recipe shows beside its claims.

    Attributes:
        caption: what the pictures show.
        settings: the hyperparameters in words.
        pictures: by file name; the first is the figure itself.
        tables: evidence, for readers.
        data: the columns of the figure's data file, one row for each seed and whatever else was varied.
        why: for each claim by id, the reason why it fails or what must be known of it.
    """

    caption: str
    settings: Mapping[str, str]
    pictures: Mapping[str, Figure]
    tables: tuple[Table, ...] = ()
    data: Mapping[str, np.ndarray] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe(Generic[Run]):
    """One figure.

    Attributes:
        name: such as ``fc-fig3``.
        title: what stands above it.
        statements: what is claimed, with the rule for each.
        experiments: what is trained at a scale, by a name of its own: experiments, or sweeps of them. A sweep measures
            at all saved steps, the first among them, so that the untrained networks are in its table, too.
        measure: each statement's quantity over the seeds, by id, from the runs or tables (also from untrained ones).
        show: the rest, from the runs and the judged claims.
        reduced: what the quick scale makes smaller, in words; empty where the two scales are the same.
        has_variants: whether its settings can be changed.
    """

    name: str
    title: str
    statements: tuple[Statement, ...]
    experiments: Callable[[str], Mapping[str, Experiment]] | Callable[[str], Mapping[str, Sweep]]
    measure: Callable[[Mapping[str, Run], Variant], Mapping[str, Seeds]]
    show: Callable[[Lab, Mapping[str, Run], Mapping[str, Claim]], Findings]
    reduced: str = ""
    has_variants: bool = True
