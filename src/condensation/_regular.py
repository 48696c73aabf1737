"""Only regular files are read: a pipe would be waited for without an end, and a device may have none."""

import stat
from pathlib import Path

from .errors import InputError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def check_regular(path: Path) -> None:
    """Refuse what is there and no regular file; what is not there is left to whoever opens it."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except (OSError, ValueError):
        return
    if kind != stat.S_IFREG:
        raise InputError(f"{path} is {_KINDS.get(kind, 'something else')}, and only a regular file can be read")
