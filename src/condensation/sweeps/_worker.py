"""What runs in a worker process. Loads nothing heavy until the process is pinned: XLA counts the cores it may use."""

import io
import os
import pickle
import tempfile
import threading
import time
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._lock import Busy, FileLock

if TYPE_CHECKING:
    from ..data import Arrays
    from ..runs import Trajectory
    from ._task import Outcome, TableRows, Task

_HELD: list[FileLock] = []  # the core of this process


def pack(task: "Task") -> bytes:
    """A task on its way to a worker; a user's arrays stay behind, in the sweep's folder."""
    from ..data import Arrays
    from ._grid import array_file

    class Packer(pickle.Pickler):
        def persistent_id(self, obj: Any) -> str | None:
            return str(task.folder / array_file(obj)) if isinstance(obj, Arrays) else None

    packed = io.BytesIO()
    Packer(packed, pickle.HIGHEST_PROTOCOL).dump(task)
    return packed.getvalue()


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, pid: str) -> "Arrays":
        return _arrays(pid)


@lru_cache(maxsize=4)
def _arrays(file: str) -> "Arrays":
    from ..data import Arrays

    return Arrays.load(file)


def work(payload: bytes, pinned: bool) -> "Outcome":
    """Run a packed task. ``pinned``: in a process of the driver's own, which takes a core and ends with the driver."""
    if pinned:
        _settle()
    return _Unpacker(io.BytesIO(payload)).load().run()  # packed by our own driver


def measure(task: "Task", trajectories: "list[Trajectory]") -> "list[TableRows | str]":
    """What a task's pairs give, in a process beside the one that trains."""
    import jax

    jax.config.update("jax_platforms", "cpu")  # the GPU is the other's
    return task.measured_here(trajectories)


@cache
def _settle() -> None:
    """Once in a process."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _pin()


def _end_with(driver: int) -> None:
    """End this process when the driver is gone: nobody would take what it finds, or give its core to others."""
    while os.getppid() == driver:
        time.sleep(1)
    os._exit(1)


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
