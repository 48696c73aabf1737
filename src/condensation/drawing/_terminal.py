"""A table of a watched training: a row a layer, with k_eff over the measured steps as a small curve."""

import math
import sys
from collections.abc import Sequence

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._phrases import printable
from ..runs import WatchedLayer, WatchedRun

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24


def sparkline(values: Sequence[float] | np.ndarray, width: int = WIDTH) -> str:
    """Positive numbers as blocks between their least and largest, in logarithms; the last ``width`` of them.

    >>> sparkline([1.0, 2.0, 4.0, 8.0, float("nan")])
    '▁▃▆█ '
    """
    shown = np.log(np.array(values, float)[-width:])
    finite = shown[np.isfinite(shown)]
    if not len(finite):
        return " " * len(shown)
    low, span = finite.min(), np.ptp(finite)
    places = np.rint((shown - low) / span * (len(BLOCKS) - 1)) if span > 0 else np.where(np.isnan(shown), shown, 0)
    return "".join(BLOCKS[int(place)] if math.isfinite(place) else " " for place in places)


def frame(run: WatchedRun, finished: bool = False) -> Group:
    """The step, the loss and the table of all layers as they were measured last."""
    watched = run.watched
    table = Table("layer", "units", "lines", "cover", "k_eff", "rank", "change", "k_eff over steps", box=None)
    for number in range(1, 7):
        table.columns[number].justify = "right"
    for layer in watched.layers:
        table.add_row(*_row(layer, run))
    loss = float(run.loss[0, -1])
    title = f"{printable(watched.model)}, step {run.recorded[-1]}" + ("" if math.isnan(loss) else f", loss {loss:.4g}")
    if run.diverged:
        title += f", weights not finite from step {next(iter(run.diverged.values()))} on"
    return Group(Text(title + (", closed" if finished else ""), style="bold"), table)


def _row(layer: WatchedLayer, run: WatchedRun) -> list[str]:
    def last(quantity: str) -> float:
        return float(run.curves[f"{quantity}/{layer.name}"][0, -1])

    cells = ["-"] * 5
    if not math.isnan(last("lines")):
        change = last("change")
        cells = [
            f"[green]{last('lines'):.0f}[/]" if last("condensed") else f"{last('lines'):.0f}",
            f"{last('cover'):.0%}",
            f"{last('k_eff'):.3g}",
            f"{last('effective_rank'):.3g}",
            "-" if math.isnan(change) else f"{change:.3g}",
        ]
    return [escape(printable(layer.name)), str(layer.units), *cells, sparkline(run.curves[f"k_eff/{layer.name}"][0])]


class LiveTable:
    """The table on standard error while a training runs in this process; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def show(self, run: WatchedRun) -> None:
        """Show a watched run as it is now."""
        console = Console(stderr=True)
        if self._live is None and console.is_terminal:
            # what the loop prints on the same terminal goes above the table
            self._live = Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty())
            self._live.start()
        if self._live is not None:
            self._live.update(frame(run), refresh=True)

    def stop(self) -> None:
        """Leave the last table on the terminal."""
        if self._live is not None:
            self._live.stop()
