"""``condensation measure``."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.markup import escape
from rich.table import Table

from .._functions import look_in
from ..errors import InputError, check_threshold
from ._output import File, Maybe, console, limit, measuring_progress, number, print_json

if TYPE_CHECKING:
    from ..weights import Measured

SHORTEST = 24  # a layer's name
READ_IN = 40  # columns at least
_NOT_IN_SERIES = ("kind", "inputs")  # columns that would repeat at every step
_NOT_SHOWN = {  # columns that the reading has where they matter, or that JSON and page have room for
    *("orientations", "centred_lines", "centred_k_eff", "null_k_eff", "null_rank", "stable_rank", "copies"),
}
_LEAVING = ("mean", "cover", "effective_rank", "lines", "inputs", "kind", "change", "seeds", "condensed_seeds")


def measure(
    path: File,
    /,
    threshold: Maybe[float] = None,
    heads: bool = False,
    view: Literal["filter", "kernel"] = "filter",
    errors: bool = False,
    trust: bool = False,
    memory: Maybe[str] = None,
    json: bool = False,
    report: Maybe[Path] = None,
) -> None:
    """Measure how condensed weights are: one row a layer, the most condensed first; of several steps one row a step.

    Of a run with several seeds each number is the median over them.

    Args:
        path: a model file (.safetensors, .pt, .npz and more; .onnx, .keras, .h5, .tflite, .gguf with the extra
            [files]), one in an archive (package.whl/data/model.onnx), a Hugging Face folder, a folder of checkpoints
            over training, or the folder of a run.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        heads: one row for each attention head.
        view: the units of convolution layers: filters, or kernels (one a pair of channels).
        errors: add standard errors to k_eff and to the ranks, by a bootstrap over units.
        trust: import the functions that a run names, from the current folder too.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        json: print the rows as JSON, for every step and with what has no units.
        report: also write the rows of the last step with pictures to this HTML file.
    """
    limit(memory)
    check_threshold(threshold)
    if report is not None:
        from ..weights._report import page_path

        page_path(report)
    if path.is_dir() and (path / "run.json").exists():
        from ..weights._runs import measure_run

        if trust:
            look_in(Path())
        if heads or view != "filter":
            raise InputError(f"{path} is a run, whose units are as they were kept: --heads and --view are for models")
        measured = measure_run(path, threshold=threshold, errors=errors, every_step=json, trust=trust)
    else:
        from ..weights import measure_path

        with measuring_progress() as progress:
            options = {"heads": heads, "view": view, "errors": errors, "every_step": json, "progress": progress}
            measured = measure_path(path, threshold=threshold, **options)
    _show(measured, json)
    if report is not None:
        from ..weights._report import write_report

        write_report(measured, report, threshold=threshold)
        print(f"report: {report}", file=sys.stderr)


def _show(measured: "Measured", json: bool) -> None:
    """Print the rows as JSON or as a table."""
    from ..weights._measured import cell_with_error, columns

    records = measured.records
    if json:
        print_json([{name: number(value) for name, value in record.items()} for record in records])
    shown = [record for record in records if not record["reason"]]
    if not shown:
        first = f"; {records[0]['layer']}: {records[0]['reason']}" if records else ""
        raise InputError(f"{measured.path} has no layer that can be measured{first}")
    if json:
        return
    for note in measured.notes:
        print(f"note: {note}", file=sys.stderr)
    series = len(measured.steps) > 1
    headings = columns(shown, series=series)
    left_out = {"layer", *_NOT_SHOWN, *(_NOT_IN_SERIES if series else ())}
    names = [name for name in headings if name not in left_out]
    cells = {name: [cell_with_error(record, name) for record in shown] for name in names}
    names = _fitting({name: _width(headings[name], cells[name]) for name in names}, console().width)
    rows = [list(row) for row in zip(*(cells[name] for name in names), strict=True)]
    console().print(_table([record["layer"] for record in shown], [headings[name] for name in names], rows))
    for reason, layers in measured.reasons.items():
        print(f" {layers[0]}: {reason}" if len(layers) == 1 else f" {len(layers)} such as {layers[0]}: {reason}")


def _width(heading: str, cells: Sequence[str]) -> int:
    """Columns of the terminal that a column takes."""
    return min(READ_IN, max(map(len, [*cells, *heading.split("\n")]))) + 1


def _fitting(widths: Mapping[str, int], room: int) -> list[str]:
    """The columns for which a terminal has room beside the layers' names; the reading stays.

    >>> _fitting({"kind": 10, "units": 6, "k_eff": 6, "mean": 5, "reading": 49}, 94)
    ['units', 'k_eff', 'reading']
    """
    names = list(widths)
    for name in _LEAVING:
        if SHORTEST + 1 + sum(widths[own] for own in names) > room and name in names:
            names.remove(name)
    return names


def _table(layers: Sequence[str], headings: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    """The table, with names of layers as short as the other columns need it: what is read is never cut, but wrapped."""
    widths = [_width(heading, [row[k] for row in cells]) for k, heading in enumerate(headings)]  # readings go on below
    room = max(SHORTEST, console().width - sum(widths) - 1)
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("layer", no_wrap=True)
    for heading in headings:
        words = heading in ("kind", "reading")
        least = min(READ_IN, widths[-1]) if heading == "reading" else None
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading != "reading", min_width=least)
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
