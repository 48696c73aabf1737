"""The playground's page with recordings, as a folder that needs no server (``condensation play --export``)."""

from collections.abc import Sequence
from pathlib import Path

from .._writing import check_folder, make_folder, write_atomic
from ..errors import InputError
from ._bundle import MARK, page
from ._library import Library
from ._recorder import Report, record

NAME = "index.html"
HEAD = 4096  # characters of a page in which its mark stands


def check_target(folder: Path) -> None:
    """Refuse a folder that cannot be written to, or that holds anything but a page of this command."""
    check_folder(folder)
    try:
        names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror}") from error
    if names and not (names == [NAME] and _is_own(folder / NAME)):
        raise InputError(f"{folder} holds {names[0]}, which --export did not write: name a new folder, or an empty one")


def _is_own(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return MARK in file.read(HEAD)
    except OSError:
        return False


def export_page(folder: Path, library: Library, names: Sequence[str], tour: bool, report: Report) -> Path:
    """Record what is wished for, and write the page with it into a folder; the page's file."""
    check_target(folder)
    content = page(record(library, names, tour, report))
    make_folder(folder)
    write_atomic(folder / NAME, content.encode())
    return folder / NAME
