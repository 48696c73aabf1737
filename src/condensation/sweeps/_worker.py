"""What runs in a worker process.

A worker of the local backend is pinned: it may run on one core only, as many small trainings are fastest side by side,
each in one thread. XLA counts the cores that its process may use when it is loaded; therefore this module loads nothing
heavy before the process is pinned. Locked files in the folder for temporary files, one a core, say which cores are
taken, so that several sweeps of a user share a machine; a dead worker's core is free again. Workers of a cluster, and a
driver that trains itself, are not pinned.
"""

import io
import os
import pickle
import types
from functools import cache, lru_cache
from typing import IO, TYPE_CHECKING, Any

from .._locks import lock_file, own_folder

if TYPE_CHECKING:
    from pathlib import Path

    from ..data import Arrays
    from ..networks import Weights
    from ._rows import Rows
    from ._task import Outcome

_HELD: list[IO[bytes]] = []  # the locked file of this process's core


def pack(content: Any, folder: "Path") -> bytes:
    """A task, or pairs with what they trained, as bytes for a worker of a sweep in a folder.

    A user's arrays are named by their files in the sweep's folder; a function that no module has goes with its code.
    """
    from .._functions import sent
    from ..data import Arrays
    from ..networks import Weights
    from ._texts import array_file

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any, /) -> Any:
            if isinstance(obj, Arrays | Weights):
                return _arrays, (type(obj), str(folder / array_file(obj)))
            wrapped = callable(obj) and not isinstance(obj, type) and hasattr(obj, "__wrapped__")
            return (sent(obj) if wrapped or isinstance(obj, types.FunctionType) else None) or NotImplemented

    packed = io.BytesIO()
    Pickler(packed, pickle.HIGHEST_PROTOCOL).dump(content)
    return packed.getvalue()


@lru_cache(maxsize=4)
def _arrays(kind: "type[Arrays | Weights]", file: str) -> "Arrays | Weights":
    return kind.load(file)


def work(payload: bytes, pinned: bool) -> "Outcome":
    """Run a packed task. A pinned process belongs to the driver of this machine: it takes a core."""
    if pinned:
        _pin()
    return pickle.loads(payload).run()  # packed by our own driver


def measure(payload: bytes) -> "Rows":
    """The rows of packed pairs, measured in a process beside the one that trains."""
    import jax

    jax.config.update("jax_platforms", "cpu")  # the GPU is the other's
    from ._rows import measure_rows

    return measure_rows(*pickle.loads(payload))  # packed by our own driver


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
