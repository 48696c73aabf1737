"""Files that are written whole or not at all, and JSON and safetensors files with a seal (see ``_seals``)."""

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ._files import SEAL, TENSOR_TYPES
from ._seals import PLACE, seal
from .errors import InputError

_ENTRY = 256  # bytes that an array of a safetensors header takes beside its name, at most
_CODES = {name: code for code, name in TENSOR_TYPES.items()}


def check_folder(path: Path) -> None:
    """Refuse a folder that is not there and cannot be made, or that cannot be written to; nothing is made."""
    above = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        reason = os.strerror(errno.EACCES if above.is_dir() else errno.ENOTDIR)
        raise InputError(f"the folder {path} cannot be made: {reason}")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {path} cannot be made: {error.strerror}") from error


def write_atomic(path: Path, content: bytes | Callable[[BinaryIO], None]) -> None:
    """Write a file whole or not at all: some bytes, or what a function writes into it."""
    beside = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.part")  # pods may share process numbers
    try:
        with beside.open("w+b") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; what was saved before stays") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power, where the system can do that."""
    with suppress(OSError):  # Windows opens no folders; some network disks sync none
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, plain: Mapping[str, Any]) -> None:
    """Write a JSON object as a sealed file."""

    def write(file: BinaryIO) -> None:
        file.write(json.dumps({SEAL: PLACE} | dict(plain) | {SEAL: PLACE}, indent=1).encode())
        seal(file)

    write_atomic(path, write)


def write_tensors(path: Path, arrays: Mapping[str, Any], about: Mapping[str, str] | None = None) -> None:
    """Write arrays and metadata as a sealed safetensors file."""
    write_atomic(path, lambda file: stream_tensors(file, arrays, arrays.items(), about))


def stream_tensors(
    file: BinaryIO, names: Iterable[str], arrays: Iterable[tuple[str, Any]], about: Mapping[str, str] | None = None
) -> None:
    """Write arrays that come one after the other into a sealed safetensors file: none is copied, or held longer.

    Args:
        file: open for reading and writing.
        names: of all arrays; their room in the header is left free until they are written.
        arrays: with their names.
        about: metadata.
    """
    header: dict[str, Any] = {"__metadata__": {SEAL: PLACE, **(about or {})}}
    room = sum(len(json.dumps(name)) + _ENTRY for name in names) + len(json.dumps(header)) + 8
    room += -room % 8
    file.seek(8 + room)
    place = 0
    for name, array in arrays:
        values = np.asarray(array, order="C")
        if values.dtype.byteorder == ">":
            values = values.astype(values.dtype.newbyteorder("<"))
        size = file.write(values.reshape(-1).view(np.uint8).data)
        span = (place, place + size)
        header[name] = {"dtype": _CODES[values.dtype.name], "shape": values.shape, "data_offsets": span}
        place += size
    file.seek(0)
    file.write(room.to_bytes(8, "little") + json.dumps(header).encode().ljust(room))
    seal(file)
