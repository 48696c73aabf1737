"""What runs in a worker process. Loads nothing heavy until the process is pinned: XLA counts the cores it may use."""

import os
import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .lock import Busy, FileLock

if TYPE_CHECKING:
    from .task import Outcome

_HELD: list[FileLock] = []  # the core of this process


def work(payload: bytes, pinned: bool) -> "Outcome":
    """Run a pickled task, in a process pinned to a core of its own if that is wanted."""
    if pinned and not _HELD:
        _pin()
    task = pickle.loads(payload)  # made by our own driver
    return task.run()


def _pin() -> None:
    """Take the first core that no other worker of this user has on this machine; none is free: stay unpinned."""
    if not hasattr(os, "sched_setaffinity"):
        return
    places = Path(tempfile.gettempdir()) / f"condensation-cores-{os.getuid()}"
    try:
        places.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return
    for core in sorted(os.sched_getaffinity(0)):
        try:
            _HELD.append(FileLock(places / str(core)))
        except (Busy, OSError):
            continue
        os.sched_setaffinity(0, {core})
        return
