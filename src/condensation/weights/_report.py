"""A page on the layers of a model: one HTML file with pictures, a table to sort, and the words explained."""

import base64
import io
import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._templates import page_environment
from .._versions import versions
from .._writing import check_folder, make_folder, write_atomic
from ..drawing import draw_beside_null, draw_layers, draw_steps, look
from ..drawing._style import figure_of
from ..errors import InputError
from ..measure import Row
from ..measure._reading import Action
from ._measured import MISSING, Measured, Record, cell_with_error, columns, record

SHOWN = 3  # layers with heat maps
CHANGING = 6  # layers that are drawn against the step
GLOSSARY = tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))
_VERSIONS = ("condensation", "python", "numpy", "scipy", "safetensors")


def write_report(measured: Measured, path: str | Path, *, threshold: float | None = None) -> Path:
    """Write the page, whole or not at all; ``threshold`` is that of the measurement, None for the default."""
    path = page_path(path)
    make_folder(path.parent)
    write_atomic(path, report_page(measured, threshold).encode(errors="backslashreplace"))
    return path


def page_path(path: str | Path) -> Path:
    """Where a page can be written; nothing is made for it."""
    path = Path(path)
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"the report is an HTML page: its name should end in .html, not {path.name!r}")
    if path.is_dir():
        raise InputError(f"the report is a file, and {path} is a folder: name a file in it")
    check_folder(path.parent)
    return path


def report_page(measured: Measured, threshold: float | None = None) -> str:
    """The page's HTML, pictures inside."""
    rows = [row for row in measured.rows if not row.reason]
    if not rows:
        raise InputError(f"{measured.path} has no layer that was measured: there is nothing to report")
    series, last = len(measured.steps) > 1, max(measured.steps)
    records = [record(row, last) for row in rows]
    headings = columns(records, series=series)
    headings.pop("step", None)
    with_null = "null_k_eff" in headings
    unused = (() if with_null else ("mean", "centred", "null", "null rank", "copies", "bias")) + (
        () if series else ("RD",)
    )
    unused += () if any(math.isfinite(row.k_eff_error) for row in rows) else ("±",)
    mapped = list(islice(((row, own) for row in rows if (own := _weights(row, measured)) is not None), SHOWN))
    layers = draw_layers([row for row in measured.last if not row.reason], numbered=[row.layer for row, _ in mapped])
    template = page_environment("condensation.weights").get_template("report.html")
    return template.render(
        title=measured.path.resolve().name,
        measured=measured,
        facts={"measured": str(measured.path)}
        | dict(measured.facts)
        | {"threshold": f"{threshold:g}" if threshold else "0.95, or what chance reaches"},
        versions={name: version for name, version in versions().items() if name in _VERSIONS},
        tiles=_tiles(rows),
        last=last,
        series=series,
        with_null=with_null,
        layers=_picture(layers, "", "k_eff over units, layer by layer"),
        maps=[_picture(draw_beside_null(weights), row.layer, row.reading, "png") for row, weights in mapped],
        steps=_steps(measured, rows) if series else None,
        headings=headings,
        rows=[{name: _cell(own, name) for name in headings} for own in records],
        reasons=measured.reasons,
        glossary={word: meaning for word, meaning in GLOSSARY.items() if word not in unused},
    )


_TILES = {
    Action.REDUCE: "to reduce",
    Action.LOOK: "to look at",
    Action.TRAIN: "to train longer",
    Action.NOTHING: "with nothing to do",
}


def _tiles(rows: Sequence[Row]) -> dict[str, int]:
    """How many layers ask for what, by their readings."""
    found = Counter(row.read.action for row in rows)
    return {title: found[action] for action, title in _TILES.items()}


def _weights(row: Row, measured: Measured) -> np.ndarray | None:
    """The weights of a layer, for heat maps; none where they were not kept, or are those of a step that went bad."""
    units = next((own for own in measured.units if own.name == row.layer and not own.reason), None)
    weights = None if units is None else units.weights()
    return weights if weights is not None and np.isfinite(weights).all() else None


def _steps(measured: Measured, rows: Sequence[Row]) -> dict[str, str]:
    """The layers that change most, against the step."""

    def change(row: Row) -> tuple[float, float]:
        shares = [own.k_eff / own.units for own in measured.history(row.layer).values() if not own.reason]
        return max(shares) - min(shares), row.change if math.isfinite(row.change) else 0.0

    chosen = sorted(rows, key=change, reverse=True)[:CHANGING]
    history = {row.layer: measured.history(row.layer) for row in chosen}
    return _picture(draw_steps(history), "Against the step", "lines, k_eff, effective rank and change of the layers")


def _cell(row: Record, name: str) -> dict[str, Any]:
    """What a cell shows, what it is sorted by, and whether it holds words."""
    shown, value = cell_with_error(row, name), row[name]
    return {"shown": shown, "key": "" if shown == MISSING else value, "words": isinstance(value, str)}


def _picture(drawn: Axes | Figure, title: str, alt: str, kind: str = "svg") -> dict[str, str]:
    """A picture as the page holds it."""
    figure = figure_of(drawn) if isinstance(drawn, Axes) else drawn
    content = io.BytesIO()
    with look(), mpl.rc_context({"svg.hashsalt": "condensation"}):  # the same page for the same numbers
        figure.savefig(content, format=kind, dpi=170, metadata={"Date": None} if kind == "svg" else None)
    mime = "svg+xml" if kind == "svg" else kind
    source = f"data:image/{mime};base64,{base64.b64encode(content.getvalue()).decode()}"
    return {"title": title, "alt": alt, "source": source}
