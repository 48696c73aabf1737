"""What commands print: tables, JSON, progress bars."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console, Group
from rich.live import Live
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


def in_words(value: Any) -> str:
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


class MapDisplay:
    """A sweep on standard error while it runs: a bar, and the map of its first two axes as it fills."""

    def __init__(self, name: str, sweep: Any) -> None:
        self.name, self.sweep = name, sweep
        self.console = Console(stderr=True)
        self.axes = [axis for axis, values in sweep.axes.items() if len(values) > 1][:2]
        self.quantity = ""
        self.found: dict[tuple[Any, Any], list[float]] = {}

    def __enter__(self) -> Callable[[Any], None]:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, TextColumn("{task.completed} of {task.total} networks"), console=self.console)
        self.task = self.bar.add_task(self.name, total=None)
        self.live = Live(self.bar, console=self.console, refresh_per_second=4)
        self.live.start()
        return self.watch

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def watch(self, state: Any) -> None:
        """Take in what is new."""
        self.bar.update(self.task, completed=state.done, total=state.total)
        if not self.console.is_terminal or len(self.axes) < 2:
            return
        for path in state.new:
            self._read(path)
        if self.found:
            self.live.update(Group(self.bar, self._map()))

    def _read(self, path: Path) -> None:
        """The values of a file's rows, at their places."""
        from pyarrow import parquet

        rows = parquet.ParquetFile(path).read()
        if not {*self.axes} <= {*rows.column_names}:
            return  # cells of another grid
        if not self.quantity:
            behind = rows.column_names[rows.column_names.index("loss") + 1 :]
            self.quantity = next((name for name in behind if "." in name), "loss")
        if self.quantity not in rows.column_names:
            return
        columns = [rows.column(name).to_pylist() for name in (*self.axes, self.quantity)]
        for x, y, value in zip(*columns, strict=True):
            self.found.setdefault((x, y), []).append(float("nan") if value is None else value)

    def _map(self) -> Any:
        import numpy as np

        from ..drawing import map_text

        across, up = (self.sweep.labels[axis] for axis in self.axes)
        values = np.array([[_middle(self.found.get((x, y), [])) for x in across] for y in up])
        return map_text(values, across, up, quantity=self.quantity, labels=(self.axes[0], self.axes[1]))


def _middle(values: list[float]) -> float:
    """The median of what is finite; NaN where nothing is."""
    finite = sorted(value for value in values if math.isfinite(value))
    return finite[len(finite) // 2] if finite else math.nan
