"""What one network leaves while it trains (``Record``), and what it takes to go on with it (``Checkpoint``)."""

from dataclasses import dataclass

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
    """A record with the place and the state of its training: enough to go on as if nothing had happened."""

    record: Record
    row: int
    offset: int
    leaves: list[np.ndarray]
    finished: bool = False
