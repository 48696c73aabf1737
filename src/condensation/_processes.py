"""Worker processes of this machine: how they start, and when they end."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker as python_tracker
from typing import Any

from joblib._parallel_backends import LokyBackend
from joblib.externals.loky.backend import resource_tracker as loky_tracker

from ._leftovers import note, pool_folder

SAFE = {"PYTHONSAFEPATH": "1"}  # Python then does not put the current folder before all others
OF_THE_DRIVER = [signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]  # a terminal tells all


class Processes(LokyBackend):
    """joblib's processes, with some promises more.

    A worker looks for no module in the current folder before the installed packages: a file ``./copy.py`` does not
    stand for Python's own module. It ends with the process that started it, also where that dies while workers start;
    whether a Ctrl-C ends them all is for that process to say. Arrays come to it by a pipe, not by files in shared
    memory; what a pool leaves there that is killed as a whole is removed by the next one.

    Args:
        threads: of the numerical libraries in each worker; as joblib has it if not given.
    """

    def __init__(self, threads: int | None = None) -> None:
        super().__init__(inner_max_num_threads=threads, initializer=_end_with, initargs=(os.getpid(),))

    def configure(self, *arguments: Any, **options: Any) -> int:
        """Start the pool; what watches over its semaphores and shared memory are processes, too."""
        folder = pool_folder()
        options |= {"max_nbytes": None, "temp_folder": folder and str(folder)}
        for tracker in (loky_tracker, python_tracker):
            _start(tracker)
        workers = super().configure(*arguments, **options)
        note()
        return workers

    def submit(self, func: Callable[..., Any], callback: Callable[..., Any] | None = None) -> Any:
        """Send a task to the pool; workers that are started for it do not hear what a terminal tells the driver."""
        with _deaf():
            future = super().submit(func, callback)
        note()  # each worker has a semaphore of its own
        return future

    def _prepare_worker_env(self, n_jobs: int) -> dict[str, Any]:
        return super()._prepare_worker_env(n_jobs) | SAFE


def _start(module: Any) -> None:
    """Start a tracker as its own module would, but with an environment of its own: Windows has no way to do that."""
    tracker = module._resource_tracker
    with tracker._lock:
        if tracker._fd is not None or not hasattr(os, "posix_spawn"):
            return
        given, tracker._fd = os.pipe()
        try:
            os.set_inheritable(given, True)
            command = [sys.executable, "-c", f"from {module.__name__} import main; main({given})"]
            unheard = [*OF_THE_DRIVER, signal.SIGTERM]
            tracker._pid = os.posix_spawn(command[0], command, os.environ | SAFE, setsigmask=unheard)
        except OSError:
            os.close(tracker._fd)
            tracker._fd = None
            raise
        finally:
            os.close(given)


@contextmanager
def _deaf() -> Iterator[None]:
    """Block the driver's signals in this thread, and for ever in processes that are started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_DRIVER)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: nobody would take its results."""
    for number in OF_THE_DRIVER:  # one that another thread has started hears them
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
