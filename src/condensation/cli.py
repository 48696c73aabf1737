"""The command line: ``condensation reproduce fc-fig3``."""

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from .errors import InputError

BAD_INPUT, INTERRUPTED = 2, 130
COLOURS = {"reproduced": "green", "partly": "yellow", "not reproduced": "red", "not run": "dim"}


def reproduce(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[NAME ...]")] = (),
    /,
    seeds: int = 10,
    out: Path = Path("out"),
) -> None:
    """Make the papers' figures and a report on their claims.

    Args:
        names: figures to make, such as fc-fig3; all of them without a name.
        seeds: how many seeds of data and start.
        out: the folder for figures, claims.json and index.html.
    """
    from .papers import reproduce as run

    with _bars() as reporter:
        sections = run(names, seeds=seeds, out=out, progress=reporter)
    table = Table("claim", "expected", "holds", "verdict", box=None)
    for claim in (claim for section in sections for claim in section.findings.claims):
        share = f"{sum(claim.holds)}/{len(claim.holds)}"
        table.add_row(claim.statement, str(claim.expected), share, f"[{COLOURS[claim.verdict]}]{claim.verdict}[/]")
    console = Console()
    console.print(table)
    console.print(f"report: {out / 'index.html'}")


class _bars:
    """A progress bar for each figure, with loss and time left."""

    def __enter__(self) -> Callable[[str], Callable[..., None]]:
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self.display = Progress(*columns, TextColumn("loss {task.fields[loss]}"), console=Console(stderr=True))
        self.display.start()
        return self.reporter

    def __exit__(self, *_: object) -> None:
        self.display.stop()

    def reporter(self, name: str) -> Callable[..., None]:
        task = self.display.add_task(name, total=None, loss="-")

        def report(progress: Any) -> None:
            loss = f"{progress.loss:.3g}"
            self.display.update(task, completed=progress.done, total=progress.total, loss=loss)

        return report


def main() -> None:
    """Run a command; input that cannot be used gives one sentence and exit code 2."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    warnings.showwarning = lambda message, category, *_: print(f"warning: {message}", file=sys.stderr)
    try:
        tyro.extras.subcommand_cli_from_dict(
            {"reproduce": reproduce},
            prog="condensation",
            description="A laboratory for the condensation of neural networks.",
        )
    except InputError as error:
        print(f"condensation: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        print("condensation: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
