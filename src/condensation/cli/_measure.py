"""``condensation measure``."""

import dataclasses
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..errors import InputError
from ._output import File, cell_text, number, print_json, print_table

if TYPE_CHECKING:
    from ..measure import Row
    from ..weights import Measured

WIDTH = 160  # of a table that goes to a file
SHORTEST = 24  # a layer's name
_COLUMNS = {  # heading of each measure; below the second line what is told with the mean removed
    "kind": "kind",
    "units": "units",
    "inputs": "inputs",
    "lines": "lines",
    "orientations": "orien-\ntations",
    "cover": "cover",
    "k_eff": "k eff",
    "mean": "mean",
    "centred_lines": "- mean:\nlines",
    "centred_k_eff": "\nk eff",
    "null_k_eff": "its\nnull",
    "effective_rank": "eff.\nrank",
}
_IN_SERIES = {"step": "step", "change": "RD"}
_NOT_IN_SERIES = ("kind", "inputs", "orientations")
_IN_THE_WILD = ("mean", "centred_lines", "centred_k_eff", "null_k_eff")


def measure(
    path: File,
    /,
    threshold: float | None = None,
    heads: bool = False,
    view: Literal["filter", "kernel"] = "filter",
    json: bool = False,
    report: Path | None = None,
) -> None:
    """Measure how condensed weights are: one row a layer, the most condensed first; of several steps one row a step.

    Args:
        path: a file of weights (.safetensors, .npz, .npy; .pt, .pth, .bin, .ckpt with PyTorch), a Hugging Face folder,
            a folder of checkpoints over training, or the folder of a run.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        heads: one row for each attention head.
        view: the units of convolution layers: filters, or kernels (one a pair of channels).
        json: print the rows as JSON, for every step and with what has no units.
        report: also write an HTML page with pictures to this file.
    """
    if threshold is not None and not 0 < threshold < 1:
        raise InputError(f"the threshold is a cosine between 0 and 1, not {threshold}")
    if report is not None:
        from ..weights._report import page_path

        page_path(report)
    from ..weights import measure_path

    own_run = path.is_dir() and (path / "run.json").exists()
    if own_run:
        from ..weights._runs import is_watched, measure_run

        sys.path.insert(0, str(Path.cwd()))  # activations of the user: module:function
        if heads or view != "filter":
            raise InputError(f"{path} is a run, whose units are as they were kept: --heads and --view are for models")
        watched = is_watched(path)
        if not watched:
            _show_run(path, threshold, json)
        measured = measure_run(path, threshold=threshold, every_step=json) if watched or report else None
    else:
        watched = True
        measured = measure_path(path, threshold=threshold, heads=heads, view=view, every_step=json)
    if measured is None:
        return
    if watched:
        _show(measured, json)
    if report is not None:
        from ..weights._report import write_report

        write_report(measured, report, threshold=threshold)
        print(f"report: {report}", file=sys.stderr)


def _show(measured: "Measured", json: bool) -> None:
    """The rows of a checkpoint, or of several over training, as JSON or as a table."""
    rows, series = measured.rows, len(measured.steps) > 1
    if json:
        print_json([_plain(row, step, series) for row, step in _in_order(measured)])
    if all(row.reason for row in rows):
        said_first = f"; {rows[0].layer}: {rows[0].reason}" if rows else ""
        raise InputError(f"{measured.path} has no layer that can be measured{said_first}")
    if json:
        return
    for note in measured.notes:
        print(f"note: {note}", file=sys.stderr)
    shown = [(row, step) for row, step in _in_order(measured) if not row.reason]
    wild = any(math.isfinite(row.mean) for row, _ in shown)
    left_out = (_NOT_IN_SERIES if series else ()) + (() if wild else _IN_THE_WILD)
    names = {name: heading for name, heading in _COLUMNS.items() if name not in left_out}
    names = (_IN_SERIES if series else {}) | names
    cells = [[cell_text(_value(row, step, name)) for name in names] + [row.reading] for row, step in shown]
    print_table(_table([row.layer for row, _ in shown], [*names.values(), "reading"], cells))
    for reason, layers in measured.reasons.items():
        print(f" {layers[0]}: {reason}" if len(layers) == 1 else f" {len(layers)} such as {layers[0]}: {reason}")


def _in_order(measured: "Measured") -> Iterable[tuple["Row", int]]:
    """Rows by layer, the most condensed when it was measured last first, and in each by step."""
    for last in measured.rows:
        for step, row in measured.history(last.layer).items():
            yield row, step


def _plain(row: "Row", step: int, series: bool) -> dict[str, Any]:
    plain = {"layer": row.layer} | ({"step": step} if series else {}) | dataclasses.asdict(row)
    return {name: number(value) for name, value in plain.items()} | {"reading": row.reading}


def _value(row: "Row", step: int, name: str) -> Any:
    value = step if name == "step" else getattr(row, name)
    if not isinstance(value, float) or math.isnan(value):
        return value
    return f"{value:.0%}" if name in ("cover", "mean") else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _table(layers: Sequence[str], headings: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    """The table, with names of layers as short as the other columns need it: what is read is never cut."""
    widths = [
        max(max((len(row[k]) for row in cells), default=0), *(len(line) for line in heading.split("\n"))) + 1
        for k, heading in enumerate(headings)
    ]
    width = Console().width if sys.stdout.isatty() else WIDTH
    room = max(SHORTEST, width - sum(widths) - 1)
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("layer", no_wrap=True)
    for heading in headings:
        words = heading in ("kind", "reading")
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words)
    for layer, row in zip(shorten(layers, room), cells, strict=True):
        table.add_row(escape(layer), *(escape(cell) for cell in row))
    return table


def shorten(names: Sequence[str], width: int) -> list[str]:
    """Names of layers in so many characters: long words are cut, in all names alike; numbers and brackets stay.

    >>> shorten(["transformer.h.11.attn.c_attn.weight[q, head 3]", "transformer.wte.weight"], 36)
    ['t….h.11.attn.c_attn.w…[q, head 3]', 't….wte.w…']
    """
    cut: set[str] = set()
    while True:
        short = [_cut(name, cut) for name in names]
        longest = max(range(len(names)), key=lambda k: len(short[k]), default=None)
        if longest is None or len(short[longest]) <= width:
            return short
        path = names[longest].partition("[")[0].split(".")
        words = [word for word in reversed(path) if len(word) > 2 and not word.isdecimal() and word not in cut]
        if not words:
            return [_middle(name, width) for name in short]
        cut.add(max(words, key=len))


def _cut(name: str, words: set[str]) -> str:
    path, bracket, rest = name.partition("[")
    return ".".join(f"{word[0]}…" if word in words else word for word in path.split(".")) + bracket + rest


def _middle(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width // 2]}…{name[len(name) - (width - width // 2 - 1) :]}"


def _show_run(folder: Path, threshold: float | None, json: bool) -> None:
    """The medians over the seeds of a run, as JSON or as a table."""
    rows = _measure_run(folder, threshold, every_step=json)
    if json:
        print_json([{name: number(value) for name, value in row.items()} for row in rows])
    if not rows:
        raise InputError(f"{folder} has no hidden layer that was kept")
    if all(row.get("reason") for row in rows):
        raise InputError(f"{folder} has no layer that can be measured; {rows[0]['layer']}: {rows[0]['reason']}")
    if json:
        return
    names = [name for name in rows[0] if name != "reason"]
    table = Table(*(name.replace("_", " ") for name in names), box=None)
    for row in rows:
        if not row.get("reason"):
            table.add_row(*(escape(cell_text(row[name])) for name in names))
    print_table(table)
    for row in rows:
        if row.get("reason"):
            print(f" {row['layer']}: {row['reason']}")


def _measure_run(folder: Path, threshold: float | None, every_step: bool) -> list[dict[str, Any]]:
    """Medians over seeds for each layer and saved step; for a table at most a dozen steps."""
    import numpy as np

    from ..measure import count_lines
    from ..runs import load_run
    from ..weights._series import few

    trajectory = load_run(folder)
    places = list(range(len(trajectory.saved)))
    chosen = np.array(places if every_step else few(places))
    rows = []
    for layer in (name for name in trajectory.layers if name != "output"):
        try:
            history = count_lines(trajectory.history(layer)[:, chosen], threshold)
        except InputError as error:
            rows.append({"layer": layer, "reason": str(error)})
            continue
        for k, step in enumerate(trajectory.saved[chosen]):
            rows.append(
                {
                    "layer": layer,
                    "step": int(step),
                    "seeds": len(trajectory.seeds),
                    "lines": float(np.median(history.lines[:, k])),
                    "orientations": float(np.median(history.orientations[:, k])),
                    "cover": float(np.median(history.cover[:, k])),
                    "k_eff": float(np.median(history.k_eff[:, k])),
                    "condensed": int(history.condensed[:, k].sum()),
                }
            )
    return rows
