"""Seals: files that carry a checksum of themselves, so that a changed bit is noticed when they are read.

Whatever writes a file (JSON, safetensors, Parquet) leaves a place for the checksum in a text field, ``PLACE``; ``seal``
puts the checksum of all other bytes there. The file stays readable by any program of its format.
"""

import hashlib
import math
import re
from pathlib import Path
from typing import Any, BinaryIO

from ._regular import check_regular
from .errors import Damaged, InputError

LENGTH = 32
PLACE = "checksum:" + "0" * LENGTH
_SEAL = re.compile(rb"checksum:([0-9a-f]{32})")
_ENDS = 1 << 20  # bytes at either end of a file among which its seal stands, the header or the footer


def seal(file: BinaryIO) -> None:
    """Put the checksum of a file, which is open for reading and writing, in place of ``PLACE``.

    The file has that once, near its beginning or its end.
    """
    place, there = _find(file)
    if there != PLACE[-LENGTH:].encode():
        raise ValueError("a file that is to be sealed has one place for its checksum, near its beginning or its end")
    checksum = _digest(file, place).encode()
    file.seek(place)
    file.write(checksum)


def check_seal(path: Path) -> None:
    """Refuse a file that is not as it was written, or has no seal.

    Raises:
        Damaged: it is there, and its bytes are not those that were written.
        InputError: it is not there or cannot be read.
    """
    check_regular(path)
    check_regular(path)
    try:
        with path.open("rb") as file:
            whole = _is_whole(file)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not whole:
        raise Damaged(f"{path} is damaged: its bytes are not those that were written")


def _is_whole(file: BinaryIO) -> bool:
    place, there = _find(file)
    return bool(there) and _digest(file, place).encode() == there


def _find(file: BinaryIO) -> tuple[int, bytes]:
    """Where a file's checksum stands, and what it is; empty if there is none, or more than one."""
    size = file.seek(0, 2)
    for begin in (0, max(0, size - _ENDS)):
        file.seek(begin)
        seals = [*_SEAL.finditer(file.read(_ENDS))]
        if len(seals) == 1:
            return begin + seals[0].start(1), seals[0][1]
    return 0, b""


def _digest(file: BinaryIO, place: int) -> str:
    """The checksum of a file, with zeros in place of the one that stands in it."""
    hashed = hashlib.sha256()  # processors have instructions for it
    file.seek(0)
    _add(hashed, file, place)
    hashed.update(b"0" * LENGTH)
    file.seek(place + LENGTH)
    _add(hashed, file)
    return hashed.hexdigest()[:LENGTH]


def _add(hashed: Any, file: BinaryIO, most: float = math.inf) -> None:
    """Add the bytes of a file from where it is, at most so many; read, not mapped: another may cut the file."""
    while most > 0 and (part := file.read(int(min(most, _ENDS)))):
        hashed.update(part)
        most -= len(part)
