"""What commands print: tables, JSON, progress bars."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

BAD_INPUT, DIVERGED, FAILED, INTERRUPTED, UNREAD = 2, 3, 4, 130, 141

File = Annotated[Path, tyro.conf.Positional]


def print_table(table: Table) -> None:
    """A table as wide as the terminal, or as a script's file allows."""
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def number(value: Any) -> Any:
    """A number for JSON: what is not finite becomes null."""
    return None if isinstance(value, float) and not math.isfinite(value) else getattr(value, "item", lambda: value)()


def said(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def print_json(value: Any) -> None:
    """A value as JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


class Bars:
    """A progress bar for each task, with loss and time left, on standard error."""

    def __enter__(self) -> Callable[[str], Callable[..., None]]:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.display = Progress(*columns, TextColumn("loss {task.fields[loss]}"), console=Console(stderr=True))
        self.display.start()
        return self.reporter

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def reporter(self, name: str) -> Callable[..., None]:
        """What tells the bar of this name how far its training is."""
        task = self.display.add_task(name, total=None, loss="-")

        def report(progress: Any) -> None:
            loss = "-" if math.isnan(progress.loss) else f"{progress.loss:.3g}"
            self.display.update(task, completed=progress.done, total=progress.total, loss=loss)

        return report


class Job:
    """Two progress bars, on standard error: figures made, and how far the training of the present one is."""

    def __enter__(self) -> Callable[[str, int, int], Callable[..., None]]:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self.display = Progress(*columns, console=Console(stderr=True))
        self.all, self.one = self.display.add_task("figures"), self.display.add_task("")
        return self.figure

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            total = self.display.tasks[0].total
            self.display.update(self.all, completed=total, description="figures")
            self.display.update(self.one, visible=False)
        self.display.stop()

    def figure(self, name: str, number: int, count: int) -> Callable[..., None]:
        """What tells the bars that a figure is begun, and then how far its present training is."""
        self.display.start()
        self.display.update(self.all, completed=number, total=count, description=f"figure {number + 1} of {count}")
        self.display.reset(self.one, total=None, description=name)

        def report(progress: Any) -> None:
            self.display.update(self.one, completed=progress.done, total=progress.total)

        return report
