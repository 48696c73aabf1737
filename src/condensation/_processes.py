"""Worker processes of this machine: how they start, and when they end."""

import os
import threading
import time
from multiprocessing import resource_tracker as python_tracker
from typing import Any

from joblib._parallel_backends import LokyBackend
from joblib.externals.loky.backend import resource_tracker as loky_tracker

SAFE = "PYTHONSAFEPATH"  # Python then does not put the current folder before all others


class Processes(LokyBackend):
    """joblib's processes, with two promises more.

    A worker looks for no module in the current folder before the installed packages: a file ``./copy.py`` does not
    stand for Python's own module. It ends with the process that started it, also where that dies while workers start.

    Args:
        threads: of the numerical libraries in each worker; as joblib has it if not given.
    """

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(inner_max_num_threads=threads, initializer=_end_with, initargs=(os.getpid(),))

    def configure(self, *arguments: Any, **options: Any) -> int:
        """Start the pool; what watches over its semaphores and shared memory are processes, too."""
        before = os.environ.get(SAFE)
        os.environ[SAFE] = "1"
        try:
            for tracker in (loky_tracker, python_tracker):
                tracker._resource_tracker.ensure_running()
            return super().configure(*arguments, **options)
        finally:
            if before is None:
                del os.environ[SAFE]
            else:
                os.environ[SAFE] = before

    def _prepare_worker_env(self, n_jobs: int) -> dict[str, Any]:
        return super()._prepare_worker_env(n_jobs) | {SAFE: "1"}


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: nobody would take its results."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
