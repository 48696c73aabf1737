"""What one network leaves while it trains, and where it is on its way."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass
class Record:
    """What one network leaves: rows at the recorded steps; rows after a divergence stay NaN."""

    weights: dict[str, np.ndarray]
    curves: dict[str, np.ndarray]
    diverged: int | None = None
    seconds: float = 0.0


@dataclass
class Checkpoint:
    """Where a network is on its way: enough to go on as if nothing had happened."""

    record: Record
    row: int
    offset: int
    leaves: list[np.ndarray]
    finished: bool = False


@runtime_checkable
class CheckpointStore(Protocol):
    """Keeps networks on their way, for instance on disk."""

    def load(self, member: int) -> Checkpoint | None:
        """What was kept of a member."""
        ...

    def keep(self, member: int, kept: Checkpoint) -> None:
        """Keep where a member is; whole or not at all."""
        ...
