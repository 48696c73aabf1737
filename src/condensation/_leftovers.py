"""What worker processes leave when they are all killed at once, and how the next pool removes it.

joblib's processes share named semaphores, and a process beside them removes these when all others have died; nobody
does when it is killed with them. Therefore each process that has a pool keeps a folder that names its semaphores,
locked as long as it lives. A folder whose lock is free was left by a dead process of this user, and so were the
semaphores that it names. Nothing else is touched.

    TMP/condensation-pools-USER/TOKEN/lock         locked
                                      semaphores   their names, a line each
"""

import atexit
import os
import re
import secrets
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from ._locks import lock_file, locked, own_folder

SHARED = Path("/dev/shm")  # where Linux has the semaphores; elsewhere they cannot be listed
NAME = re.compile(r"sem\.loky-\d+-\w+")
_HELD: list[IO[bytes]] = []  # the lock of this process
_KNOWN: set[str] = set()  # semaphores that are written down, or were there before


def semaphores() -> set[str]:
    """The names of joblib's semaphores that a process of this number has made."""
    return {path.name for path in SHARED.glob(f"sem.loky-{os.getpid()}-*")}


def note() -> None:
    """Write down the semaphores that this process has made since the last time, to be removed when it is killed."""
    folder, new = pool_folder(), semaphores() - _KNOWN
    if folder is not None and new:
        _KNOWN.update(new)
        with suppress(OSError), (folder / "semaphores").open("a") as file:
            file.write("".join(f"{name}\n" for name in sorted(new)))


@cache
def pool_folder() -> Path | None:
    """The folder of this process, made when it is first asked for; those of dead processes are removed then."""
    try:
        every = own_folder("condensation-pools")
        with locked(every) as alone:
            if not alone:
                return None
            for left in every.iterdir():
                _remove(left)
            own = every / secrets.token_hex(8)
            own.mkdir()
            _HELD.append(lock_file(own / "lock"))
    except OSError:  # no such folder, or no locks: then nothing is removed
        return None
    _KNOWN.update(semaphores())
    atexit.register(_leave, own)
    return own


def _leave(folder: Path) -> None:
    """Leave nothing, at a good end."""
    shutil.rmtree(folder, ignore_errors=True)
    while _HELD:
        _HELD.pop().close()


def _remove(folder: Path) -> None:
    """Remove what a process has left, if it is dead."""
    with suppress(OSError), lock_file(folder / "lock"):
        with suppress(OSError):
            for name in (folder / "semaphores").read_text().split():
                if NAME.fullmatch(name):
                    (SHARED / name).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
