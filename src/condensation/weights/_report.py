"""A page on the layers of a model: one HTML file with pictures, a table to sort, and the words explained."""

import base64
import io
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._files import make_folder, write_atomic
from .._templates import page_environment
from .._versions import versions
from ..drawing import draw_beside_null, draw_layers, draw_steps, look
from ..drawing._style import figure_of
from ..errors import InputError
from ..measure import Row
from ._series import Measured

SHOWN = 3  # layers with heat maps
CHANGING = 6  # layers that are drawn against the step
COLUMNS = {
    "layer": "layer",
    "kind": "kind",
    "units": "units",
    "inputs": "inputs",
    "lines": "lines",
    "orientations": "orientations",
    "cover": "cover",
    "k_eff": "k_eff",
    "mean": "mean",
    "centred_lines": "lines, mean removed",
    "centred_k_eff": "k_eff, mean removed",
    "null_k_eff": "its null",
    "effective_rank": "effective rank",
    "reading": "reading",
}
WITH_NULL = ("mean", "centred_lines", "centred_k_eff", "null_k_eff")
GLOSSARY = {
    "unit": "A neuron, a filter, a row of an embedding, a query of an attention: what has input weights of its own.",
    "line": "The direction of a unit's weights w without its sign, {w/|w|, -w/|w|}; units whose cosine is at least the "
    "threshold lie on one line.",
    "lines": "How many lines have at least two units and 5% of the norm.",
    "orientations": "The sides of these lines on which units lie.",
    "cover": "Share of the norm of all units that is on lines; from 90% on the layer is condensed.",
    "k_eff": "Effective number of lines, counted by pairs of units without grouping them: k equal lines give k, units "
    "that are all different give about their number.",
    "mean": "Share of the squared norm that all units have in common, their mean weight.",
    "mean removed": "The same measure after the mean weight is taken from every unit: what is condensed beyond it.",
    "null": "k_eff of the same weights, mean removed, with the entries of each input permuted among the units: what "
    "chance leaves when units are as independent as their entries allow.",
    "effective rank": "Exponential of the entropy of the singular values: how many dimensions the weights really use.",
    "RD": "Relative change since the first step, |w - w_0| / |w_0|.",
    "threshold": "The cosine from which on two units are on one line: 0.95, or more where chance alone would reach it.",
}
_VERSIONS = ("condensation", "python", "numpy", "scipy", "safetensors")


class LayerPicture(NamedTuple):
    """A picture as the page holds it."""

    title: str
    alt: str
    source: str


def write_report(measured: Measured, path: str | Path, *, threshold: float | None = None) -> Path:
    """Write the page, whole or not at all.

    Args:
        measured: the rows, and the units for pictures.
        path: of the HTML file.
        threshold: with which they were measured, None for the default.
    """
    path = page_path(path)
    write_atomic(path, report_page(measured, threshold).encode())
    return path


def page_path(path: str | Path) -> Path:
    """Where a page can be written; its folder is made."""
    path = Path(path)
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"the report is an HTML page: its name should end in .html, not {path.name!r}")
    if path.is_dir():
        raise InputError(f"the report is a file, and {path} is a folder: name a file in it")
    make_folder(path.parent)
    return path


def report_page(measured: Measured, threshold: float | None = None) -> str:
    """The page's HTML, pictures inside."""
    environment = page_environment("condensation.weights")
    kept = [row for row in measured.rows if not row.reason]
    if not kept:
        raise InputError(f"{measured.path} has no layer that was measured: there is nothing to report")
    series = len(measured.steps) > 1
    wild = any(math.isfinite(row.mean) for row in kept)
    columns = {name: heading for name, heading in COLUMNS.items() if wild or name not in WITH_NULL}
    columns = ({"layer": "layer", "change": "RD"} if series else {}) | columns
    in_order = [row for row in measured.last if not row.reason]
    unused = (() if wild else ("mean", "mean removed", "null")) + (() if series else ("RD",))
    shown = list(islice(((row, own) for row in kept if (own := _weights(row, measured)) is not None), SHOWN))
    return environment.get_template("report.html").render(
        title=measured.path.resolve().name,
        measured=measured,
        facts={"measured": str(measured.path)}
        | dict(measured.facts)
        | {"threshold": f"{threshold:g}" if threshold else "0.95, or what chance reaches"},
        versions={name: version for name, version in versions().items() if name in _VERSIONS},
        tiles=_tiles(kept),
        last=max(measured.steps),
        series=series,
        wild=wild,
        layers=_svg(
            draw_layers(in_order, numbered=[row.layer for row, _ in shown]), "", "k_eff over units, layer by layer"
        ),
        maps=[_png(draw_beside_null(weights), row.layer, row.reading) for row, weights in shown],
        steps=_steps(measured, kept) if series else None,
        columns=columns,
        rows=[{name: _cell(row, name) for name in columns} for row in kept],
        reasons=measured.reasons,
        glossary={word: said for word, said in GLOSSARY.items() if word not in unused},
    )


def _tiles(rows: Sequence[Row]) -> dict[str, int]:
    """How many layers are what, by their readings."""
    kinds = {"condensed": 0, "condensed with the mean removed": 0, "partly, or some units alike": 0, "not condensed": 0}
    for row in rows:
        if row.condensed:
            kind = "condensed"
        elif row.reading.startswith("condensed"):
            kind = "condensed with the mean removed"
        else:
            alike = row.reading.startswith(("partly", "some alike"))
            kind = "partly, or some units alike" if alike else "not condensed"
        kinds[kind] += 1
    return kinds


def _weights(row: Row, measured: Measured) -> np.ndarray | None:
    """The weights of a layer, for heat maps; none where they were not kept, or are those of a step that went bad."""
    units = next((own for own in measured.units if own.name == row.layer and not own.reason), None)
    weights = None if units is None else units.weights()
    return weights if weights is not None and np.isfinite(weights).all() else None


def _steps(measured: Measured, rows: Sequence[Row]) -> LayerPicture:
    """The layers that change most, against the step."""

    def change(row: Row) -> tuple[float, float]:
        shares = [own.k_eff / own.units for own in measured.history(row.layer).values() if not own.reason]
        return max(shares) - min(shares), row.change if math.isfinite(row.change) else 0.0

    chosen = sorted(rows, key=change, reverse=True)[:CHANGING]
    history = {row.layer: measured.history(row.layer) for row in chosen}
    return _svg(draw_steps(history), "Against the step", "lines, k_eff, effective rank and change of the layers")


def _cell(row: Row, name: str) -> dict[str, Any]:
    """What a cell shows, and what it is sorted by."""
    value = getattr(row, name)
    if not isinstance(value, float):
        return {
            "shown": f"{value:,}" if isinstance(value, int) else value,
            "key": value,
            "words": isinstance(value, str),
        }
    if not math.isfinite(value):
        return {"shown": "\N{EN DASH}", "key": "", "words": False}
    shown = f"{value:.0%}" if name in ("cover", "mean") else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return {"shown": shown, "key": value, "words": False}


def _svg(picture: Axes | Figure, title: str, alt: str) -> LayerPicture:
    return LayerPicture(title, alt, f"data:image/svg+xml;base64,{_encoded(picture, 'svg')}")


def _png(picture: Figure, title: str, alt: str) -> LayerPicture:
    return LayerPicture(title, alt, f"data:image/png;base64,{_encoded(picture, 'png')}")


def _encoded(picture: Axes | Figure, kind: str) -> str:
    figure = figure_of(picture) if isinstance(picture, Axes) else picture
    content = io.BytesIO()
    with look(), mpl.rc_context({"svg.hashsalt": "condensation"}):  # the same page for the same numbers
        figure.savefig(content, format=kind, dpi=170, metadata={"Date": None} if kind == "svg" else None)
    return base64.b64encode(content.getvalue()).decode()
