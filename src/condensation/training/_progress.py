"""How far a training is: told to a callable now and then, or printed."""

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


class Tenths:
    """Says when a log is due for a line: at each tenth of the way, and not sooner than some seconds after the last.

    >>> tenths = Tenths()
    >>> [share for share in (0.05, 0.1, 0.15, 0.2, 0.5, 0.55, 1.0) if tenths.due(share)]
    [0.1, 0.2, 0.5, 1.0]
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.tenth, self.last = seconds, 0, time.monotonic()

    def due(self, share: float) -> bool:
        """Whether a line is due; what is asked is then taken as written."""
        tenth, now = int(10 * share + 1e-9), time.monotonic()
        if tenth <= self.tenth or now - self.last < self.seconds:
            return False
        self.tenth, self.last = tenth, now
        return True


class PrintedProgress:
    """A reporter that prints on standard error: on a terminal one line, written over itself, else a line a tenth."""

    def __init__(self) -> None:
        self._tenths = Tenths()

    def __call__(self, progress: Progress) -> None:
        """Print how far the training is, if that is due."""
        share, over = progress.done / max(progress.total, 1), sys.stderr.isatty()
        if not over and not self._tenths.due(share):
            return
        line = f"{share:4.0%}  {progress.done}/{progress.total} steps  {told(progress)}"
        end = "" if over and progress.done < progress.total else "\n"
        print("\r" * over + line + " " * over, end=end, file=sys.stderr, flush=True)


def told(progress: Progress) -> str:
    """The loss and the time left, in words."""
    return f"loss {progress.loss:.3g}  {progress.left:.0f} s left"


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
