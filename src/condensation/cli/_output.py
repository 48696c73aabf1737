"""Output of the commands: tables and JSON on standard output, progress on standard error."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from .._memory import limit_memory
from .._phrases import printable

BETWEEN = 10.0  # seconds at least between two lines of progress in a log
BAD_INPUT, DIVERGED, FAILED, UNREAD = 2, 3, 4, 141

T = TypeVar("T")
File = Annotated[Path, tyro.conf.Positional]
Maybe = Annotated[T | None, tyro.conf.DisallowNone, tyro.conf.arg(help_behavior_hint="")]  # may be left out
Several = Annotated[tuple[T, ...], tyro.conf.arg(help_behavior_hint="")]
Report = Callable[[Any], None]  # called with the progress of a training


def limit(memory: str | None) -> None:
    """Set the memory that a command may take, if that is given; else what the environment or the machine says."""
    if memory is not None:
        limit_memory(memory)


class _Output(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to ``main``, as where rich prints nothing."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output, as wide as the terminal, or 160 characters wide if it is a file."""
    return _Output(width=None if sys.stdout.isatty() else 160)


def print_rows(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Print rows of cells as a table, below their headings if there are any."""
    table = Table(*headings, show_header=bool(headings), box=None)
    for row in rows:
        table.add_row(*map(shown, row))
    console().print(table)


def shown(message: object) -> str:
    """A message, which may name things of a stranger's file, as it can be shown; it may have several lines."""
    return "\n".join(map(printable, str(message).split("\n")))


def number(value: Any) -> Any:
    """A number for JSON, or None if it is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else getattr(value, "item", lambda: value)()


def cell_text(value: Any) -> str:
    """A value as the text of a table's cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def progress_bars(*columns: ProgressColumn) -> Progress:
    """Progress bars on standard error if that is a terminal, with a name, a percentage and further columns."""
    first = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    errors = Console(stderr=True)
    return Progress(*first, *columns, console=errors, disable=not errors.is_terminal)


def log(line: str) -> None:
    """Print a line of progress to standard error, where that is no terminal."""
    print(shown(line), file=sys.stderr, flush=True)


@contextmanager
def training_progress(name: str) -> Iterator[Report]:
    """A progress bar for one training, with the time left and the loss; in a log, a line now and then."""
    from ..training._progress import Tenths, told

    tenths = Tenths(BETWEEN)
    with progress_bars(TimeRemainingColumn(), TextColumn("loss {task.fields[loss]}")) as display:
        task = display.add_task(name, total=None, loss="-")

        def report(progress: Any) -> None:
            loss = "-" if math.isnan(progress.loss) else f"{progress.loss:.3g}"
            display.update(task, completed=progress.done, total=progress.total, loss=loss)
            if display.disable and tenths.due(progress.done / max(progress.total, 1)):
                log(f"{name}: {progress.done} of {progress.total} steps, {told(progress)}")

        yield report


@contextmanager
def measuring_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for the layers of a model, by their weights, with the time left; in a log, a line now and then."""
    from ..training._progress import Tenths

    tenths = Tenths(BETWEEN)
    with progress_bars(TimeRemainingColumn()) as display:
        task = display.add_task("measuring", total=None)

        def report(layer: str, done: int, total: int) -> None:
            display.update(task, completed=done, total=max(total, 1), description=escape(layer))
            if display.disable and done < total and tenths.due(done / max(total, 1)):
                log(f"measured {done / total:.0%} of {total:,} weights, {layer}")

        yield report


@contextmanager
def recording_progress() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for what the playground records."""
    with progress_bars(TextColumn("{task.completed} of {task.total}"), TimeElapsedColumn()) as display:
        task = display.add_task("recording", total=None)

        def report(name: str, done: int, total: int) -> None:
            display.update(task, completed=done, total=total, description=escape(name) or "recorded")

        yield report


@contextmanager
def figure_progress() -> Iterator[Callable[[str, int, int], Report]]:
    """Two progress bars: the figures that are finished, and the current one's training; in a log a line a figure."""
    display = progress_bars(TimeElapsedColumn())
    figures, training = display.add_task("figures"), display.add_task("")

    def begin(name: str, number: int, count: int) -> Report:
        display.start()
        display.update(figures, completed=number, total=count, description=f"figure {number + 1} of {count}")
        display.reset(training, total=None, description=name)
        if display.disable:
            log(f"figure {number + 1} of {count}: {name}")
        return lambda progress: display.update(training, completed=progress.done, total=progress.total)

    try:
        yield begin
        display.update(figures, completed=display.tasks[0].total, description="figures")
        display.update(training, visible=False)
    finally:
        display.stop()


class SweepDisplay:
    """A progress bar for a sweep and, in a terminal, the map of its first two axes as it fills."""

    def __init__(self, name: str, sweep: Any) -> None:
        from ..training._progress import Tenths

        self.sweep, self.quantity = sweep, ""
        self.axes = [axis for axis, values in sweep.axes.items() if len(values) > 1][:2]
        self.values: dict[tuple[Any, Any], list[float]] = {}
        self.bar = progress_bars(TimeRemainingColumn(), TextColumn("{task.completed} of {task.total} networks"))
        self.task = self.bar.add_task(name, total=None)
        self.name, self.tenths = name, Tenths(BETWEEN)
        self.live = Live(self.bar, console=self.bar.console, refresh_per_second=4)

    def __enter__(self) -> Report:
        if self.bar.console.is_terminal:
            self.live.start()
        return self.report

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def report(self, state: Any) -> None:
        """Show how far the sweep is."""
        self.bar.update(self.task, completed=state.done, total=state.total)
        if self.bar.disable and self.tenths.due(state.done / max(state.total, 1)):
            log(f"{self.name}: {state.done} of {state.total} networks")
        if not self.bar.console.is_terminal or len(self.axes) < 2:
            return
        for path in state.new:
            self._read(path)
        if self.values:
            self.live.update(Group(self.bar, self._map()))

    def _read(self, path: Path) -> None:
        """Read the rows of a finished task; rows of another grid are skipped."""
        from pyarrow import parquet

        rows = parquet.ParquetFile(path).read()
        if not self.quantity and {*self.axes} <= {*rows.column_names}:
            measured = rows.column_names[rows.column_names.index("loss") + 1 :]
            self.quantity = next((name for name in measured if "." in name), "loss")
        names = [*self.axes, self.quantity]
        if not {*names} <= {*rows.column_names}:
            return
        for x, y, value in zip(*(rows.column(name).to_pylist() for name in names), strict=True):
            if value is not None and math.isfinite(value):
                self.values.setdefault((x, y), []).append(value)

    def _map(self) -> Any:
        """The upper medians of the cells as text."""
        import numpy as np

        from ..drawing import map_text

        columns, rows = (self.sweep.labels[axis] for axis in self.axes)
        cells = [[sorted(self.values.get((x, y), [math.nan])) for x in columns] for y in rows]
        medians = np.array([[values[len(values) // 2] for values in row] for row in cells])
        return map_text(medians, columns, rows, quantity=self.quantity, labels=(self.axes[0], self.axes[1]))
