"""The plan of a run, and its rows cut into chunks.

Row k records at a step, then takes the steps up to the next recorded one. A chunk is some rows that one call goes
through; the call cannot be interrupted and reports only at its end, so it is kept short.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..runs._checkpoints import RunCheckpoints

SECONDS_PER_CALL = 0.3
TIMES_OVERHEAD = 10  # a call takes at least so many times what a call without steps does


@dataclass
class RunPlan:
    """Which steps are recorded, at which of them the weights are kept, and who is told how far it is."""

    recorded: np.ndarray
    saved: np.ndarray
    report: Callable[[int, float], None] = lambda steps, loss: None
    checkpoints: RunCheckpoints | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    most: int = 100  # steps in a call, learned from the calls before
    overhead: float = 0.0  # seconds that a call takes whatever its steps

    @cached_property
    def slots(self) -> np.ndarray:
        """For each recorded step its place among the saved ones, or -1."""
        return np.where(np.isin(self.recorded, self.saved), np.searchsorted(self.saved, self.recorded), -1)


class Chunk(NamedTuple):
    """Some rows in one call."""

    begin: int  # the step it begins at
    lengths: list[int]  # steps in each row
    recorded: np.ndarray  # the rows that are recorded; a row cut in pieces is recorded with its first
    indices: np.ndarray  # as which of the recorded steps
    slots: np.ndarray  # their places among the saved steps, or -1


class Chunks:
    """Cuts the recorded steps into chunks of a bounded number of rows and of seconds."""

    def __init__(self, plan: RunPlan, rows: int, cut: bool, index: int = 0, offset: int = 0) -> None:
        self.plan = plan
        self.recorded = plan.recorded
        self.cut = cut  # a row may be cut in pieces, if only steps matter; an integrator would notice
        # the last row records and takes a step that is thrown away; a flow records without moving
        self.gaps = [*np.diff(plan.recorded).tolist(), 1 if cut else 0]
        self.rows = rows
        self.index, self.offset = index, offset

    def __iter__(self) -> Iterator[Chunk]:
        """The chunks, one after the other."""
        while self.index < len(self.gaps):
            count = self.done()
            lengths, kept, indices, room = [], [], [], self.plan.most
            while len(lengths) < self.rows and (room > 0 or not lengths) and self.index < len(self.gaps):
                if self.offset == 0:
                    kept.append(len(lengths))
                    indices.append(self.index)
                gap = self.gaps[self.index] - self.offset
                length = min(gap, room) if self.cut else gap
                lengths.append(length)
                room -= length
                self.offset += length
                if self.offset == self.gaps[self.index]:
                    self.index, self.offset = self.index + 1, 0
            yield Chunk(count, lengths, np.array(kept, int), np.array(indices, int), self.plan.slots[indices])

    def took(self, seconds: float, steps: int) -> None:
        """Learn how many steps fit into a call."""
        overhead = self.plan.overhead = min(self.plan.overhead, seconds)
        wanted = max(SECONDS_PER_CALL, TIMES_OVERHEAD * overhead) - overhead
        stepping = max(seconds - overhead, 0.1 * seconds, 1e-9)
        self.plan.most = max(1, min(10 * self.plan.most, int(wanted * steps / stepping)))

    def done(self) -> int:
        """Steps taken."""
        return sum(self.gaps) if self.index == len(self.gaps) else int(self.recorded[self.index]) + self.offset
