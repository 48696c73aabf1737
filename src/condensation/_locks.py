"""Locks that a dead process does not hold: the operating system gives them back.

They are written by hand: ``filelock`` would save twenty lines of 10,000 that it loads, and where a file system has no
locks it takes a marker file by default, which a machine that is switched off leaves behind.
"""

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

WAIT = 2  # seconds for a folder in which another process works


class NoLocks(OSError):
    """The operating system, or the file system, has no locks."""


def lock_file(path: Path) -> IO[bytes]:
    """An open file with an exclusive lock, which ends when it is closed or its process dies.

    Raises:
        BlockingIOError: another process holds the lock.
        NoLocks: there are none here.
    """
    file = path.open("ab")
    try:
        if fcntl is None:
            raise NoLocks("this operating system has none")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise error if isinstance(error, BlockingIOError) else NoLocks(str(error)) from error
    return file


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Keep out of a folder, for a moment, all others that ask for it; whether that is so.

    Where there are no locks, or another process that was stopped holds this one, nobody is kept waiting for ever.
    """
    handle, held, end = None, False, time.monotonic() + WAIT
    with suppress(OSError):  # Windows opens no folders, a network disk may have no locks
        handle = os.open(folder, os.O_RDONLY)
        while fcntl and not held and time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                time.sleep(0.005)
    try:
        yield held
    finally:
        if handle is not None:
            os.close(handle)


def own_folder(name: str) -> Path:
    """A folder of this user in the folder for temporary files, closed to others.

    Raises:
        OSError: it cannot be made, or somebody else has made it.
    """
    if fcntl is None:
        raise NoLocks("this operating system has no such users")
    path = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    about = path.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to somebody else")
    return path
