"""Locks that a dead process does not hold: the operating system gives them back."""

import json
import os
import secrets
import socket
import time
import warnings
from pathlib import Path
from typing import Any

from ..errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Busy(Exception):
    """Another process holds the lock."""


class NoLocks(OSError):
    """The operating system, or the file system, has no locks."""


class FileLock:
    """A lock on a file while it is open; whoever dies loses it."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if fcntl is None:
                raise NoLocks("this operating system has none")
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.handle)
            raise Busy(path) if isinstance(error, BlockingIOError) else NoLocks(str(error)) from error

    def close(self) -> None:
        """Give it back."""
        os.close(self.handle)


class DriverLock:
    """Lets one driver work on a folder: ``driver.json`` there says who, and is locked as long as the driver lives.

    Attributes:
        token: of this driver alone, in the names of its rounds.
    """

    def __init__(self, folder: Path, on: str) -> None:
        path, self.token, self._lock = folder / "driver.json", secrets.token_hex(8), None
        about = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "on": on,
            "token": self.token,
        }
        try:
            try:
                self._lock = FileLock(path)
            except NoLocks as error:
                warnings.warn(
                    f"{folder} has no locks ({error}): a second driver there would not be noticed and do the same work",
                    stacklevel=3,
                )
            path.write_text(json.dumps(about), encoding="utf-8")
        except Busy:
            other = read_driver(folder)
            raise InputError(
                f"the sweep in {folder} is being run by process {other.get('process', '?')} on "
                f"{other.get('host', '?')} since {other.get('since', '?')}: wait for it, or stop it first"
            ) from None
        except OSError as error:
            self.close()
            raise InputError(f"{path} cannot be written: {error.strerror}") from error

    def close(self) -> None:
        """Give the folder back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def read_driver(folder: Path) -> dict[str, Any]:
    """What ``driver.json`` says; nothing while it is being written."""
    try:
        found = json.loads((folder / "driver.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
