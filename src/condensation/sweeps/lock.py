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


class FileLock:
    """A lock on a file while it is open; whoever dies loses it."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        try:
            if fcntl is None:
                raise OSError("this operating system has no such locks")
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.handle)
            raise Busy(path) from None
        except OSError:
            os.close(self.handle)
            raise

    def close(self) -> None:
        """Give it back."""
        os.close(self.handle)


class DriverLock:
    """Lets one driver work on a folder: ``driver.json`` there says who, and is locked as long as the driver lives.

    Attributes:
        token: of this driver. A worker of an earlier driver, who finds another token there, leaves its rows out.
    """

    def __init__(self, folder: Path, on: str) -> None:
        self.path, self.token, self.lock = folder / "driver.json", secrets.token_hex(8), None
        about = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "on": on,
            "token": self.token,
        }
        try:
            self.lock = FileLock(self.path)
        except Busy:
            other = read_driver(folder)
            raise InputError(
                f"the sweep in {folder} is being run by process {other.get('process', '?')} on "
                f"{other.get('host', '?')} since {other.get('since', '?')}: wait for it, or stop it first"
            ) from None
        except PermissionError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}") from error
        except OSError as error:
            warnings.warn(
                f"{folder} has no locks ({error}): a second driver there would not be noticed, and do the same work",
                stacklevel=3,
            )
        self.path.write_text(json.dumps(about), encoding="utf-8")

    def close(self) -> None:
        """Give the folder back."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None


def read_driver(folder: Path) -> dict[str, Any]:
    """What ``driver.json`` says; nothing while it is being written."""
    try:
        found = json.loads((folder / "driver.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
