"""How far a training is: told to a callable now and then, or printed on one line."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Steps done of all steps of all networks, the loss seen last, seconds spent and left.

    A reporter is called from the worker threads, one call at a time.
    """

    done: int
    total: int
    loss: float
    seconds: float
    left: float


Reporter = Callable[[Progress], None]
"""What is told of a training's progress."""


def print_progress(progress: Progress) -> None:
    """One line on standard error, written over itself."""
    share = progress.done / progress.total
    line = (
        f"\r{share:4.0%}  {progress.done}/{progress.total} steps  loss {progress.loss:.3g}  {progress.left:.0f} s left "
    )
    print(line, end="\n" if progress.done >= progress.total else "", file=sys.stderr, flush=True)


class Meter:
    """Adds up the steps that the worker threads report, and tells the reporter."""

    def __init__(self, total: int, reporter: Reporter | None) -> None:
        self.total, self.reporter = total, reporter
        self.done, self.loss = 0, float("nan")
        self.began = time.perf_counter()
        self.lock = threading.Lock()

    def __call__(self, steps: int, loss: float) -> None:
        """Note that some steps were taken and which loss was seen (NaN: none)."""
        with self.lock:
            self.done += steps
            self.loss = self.loss if loss != loss else loss
            if self.reporter is not None:
                seconds = time.perf_counter() - self.began
                left = seconds * (self.total - self.done) / max(self.done, 1)
                self.reporter(Progress(self.done, self.total, self.loss, seconds, left))
