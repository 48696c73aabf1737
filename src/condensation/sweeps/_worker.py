"""What runs in a worker process.

A worker of the local backend is pinned: it may run on one core only, as many small trainings are fastest side by side,
each in one thread. XLA counts the cores that its process may use when it is loaded; therefore this module loads nothing
heavy before the process is pinned. Locked files in the folder for temporary files, one a core, say which cores are
taken, so that several sweeps of a user share a machine; a dead worker's core is free again. Workers of a cluster, and a
driver that trains itself, are not pinned.
"""

import copyreg
import io
import os
import pickle
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import IO, TYPE_CHECKING

from .._locks import lock_file, own_folder

if TYPE_CHECKING:
    from ..data import Arrays
    from ..runs import Trajectory
    from ._measures import Measuring
    from ._rows import Rows
    from ._task import Outcome, Pair, Task

_HELD: list[IO[bytes]] = []  # the locked file of this process's core


def pack(task: "Task") -> bytes:
    """A task as bytes for a worker; a user's arrays are named by their files in the sweep's folder."""
    from ..data import Arrays
    from ._texts import array_file

    packed = io.BytesIO()
    pickler = pickle.Pickler(packed, pickle.HIGHEST_PROTOCOL)
    by_file = {Arrays: lambda arrays: (_arrays, (str(task.folder / array_file(arrays)),))}
    pickler.dispatch_table = copyreg.dispatch_table | by_file
    pickler.dump(task)
    return packed.getvalue()


@lru_cache(maxsize=4)
def _arrays(file: str) -> "Arrays":
    from ..data import Arrays

    return Arrays.load(file)


def work(payload: bytes, pinned: bool) -> "Outcome":
    """Run a packed task. A pinned process belongs to the driver of this machine: it takes a core."""
    if pinned:
        _pin()
    return pickle.loads(payload).run()  # packed by our own driver


def measure(pairs: "Sequence[Pair]", trajectories: "list[Trajectory]", measuring: "Measuring") -> "Rows":
    """The rows of pairs, measured in a process beside the one that trains."""
    import jax

    jax.config.update("jax_platforms", "cpu")  # the GPU is the other's
    from ._rows import measure_rows

    return measure_rows(pairs, trajectories, measuring)


@cache
def _pin() -> None:
    """Take the first core that no other worker of this user has; if none is free, stay unpinned."""
    if not hasattr(os, "sched_setaffinity"):
        return
    try:
        folder = own_folder("condensation-cores")
    except OSError:
        return
    for core in sorted(os.sched_getaffinity(0)):
        try:
            _HELD.append(lock_file(folder / str(core)))
        except OSError:
            continue
        os.sched_setaffinity(0, {core})
        return
