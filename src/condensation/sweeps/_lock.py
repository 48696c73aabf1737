"""One driver a folder: ``driver.json`` there is locked by it."""

import json
import os
import secrets
import socket
import time
import warnings
from pathlib import Path
from typing import Any

from .._locks import NoLocks, lock_file
from ..errors import InputError


class DriverLock:
    """Lets one driver work on a folder: ``driver.json`` there says who, and is locked as long as the driver lives.

    Attributes:
        token: of this driver alone, in the names of its rounds.
    """

    def __init__(self, folder: Path, backend: str) -> None:
        path, self.token, self._file = folder / "driver.json", secrets.token_hex(8), None
        about = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
            "backend": backend,
            "token": self.token,
        }
        try:
            try:
                self._file = lock_file(path)
            except NoLocks as error:
                warnings.warn(
                    f"{folder} has no locks ({error}): a second driver there would not be noticed and do the same work",
                    stacklevel=3,
                )
            path.write_text(json.dumps(about), encoding="utf-8")
        except BlockingIOError:
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
        if self._file is not None:
            self._file.close()


def read_driver(folder: Path) -> dict[str, Any]:
    """Who drives the sweep in a folder, as ``driver.json`` says; nothing while it is being written."""
    try:
        about = json.loads((folder / "driver.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}
