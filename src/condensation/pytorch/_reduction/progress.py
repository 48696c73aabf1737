"""How far a reduction is: a line on a terminal, written over itself, or a callable that is told."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .sets import Report


@contextmanager
def reporting(progress: bool | Report | None) -> Iterator[Report]:
    """What is told how far the work is within a block: nothing is shown unless asked for, or on a terminal."""
    if callable(progress):
        yield progress
    elif progress or (progress is None and sys.stderr.isatty()):
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task("reducing", total=1.0)
            yield lambda what, share: bars.update(task, description=what, completed=share)
    else:
        yield lambda what, share: None
