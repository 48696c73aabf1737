"""``condensation measure``."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from ..errors import InputError
from .show import File, number, print_json, print_table, said

TABLE_STEPS = 12


def measure(file: File, /, threshold: float | None = None, json: bool = False) -> None:
    """Measure how condensed weights are: one row a layer, and of a run one row a layer and step.

    Args:
        file: a .safetensors, .npz or .npy file (each array a layer, units first), or the folder of a run.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        json: print the rows as JSON, of a run for every saved step.
    """
    from ..files import read_arrays
    from ..measure import measure_arrays

    if file.is_dir():
        rows = _measure_run(file, threshold, every_step=json)
    else:
        rows = [dataclasses.asdict(row) for row in measure_arrays(read_arrays(file), threshold)]
    if json:
        print_json([{name: number(value) for name, value in row.items()} for row in rows])
    if not rows:
        raise InputError(f"{file} has no hidden layer that was kept")
    if all(row.get("reason") for row in rows):
        raise InputError(f"{file} has no layer that can be measured; {rows[0]['layer']}: {rows[0]['reason']}")
    if json:
        return
    names = [name for name in rows[0] if name != "reason"]
    table = Table(*(name.replace("_", " ") for name in names), box=None)
    for row in rows:
        if not row.get("reason"):
            table.add_row(*(escape(said(row[name])) for name in names))
    print_table(table)
    for row in rows:
        if row.get("reason"):
            print(f" {row['layer']}: {row['reason']}")


def _measure_run(folder: Path, threshold: float | None, every_step: bool) -> list[dict[str, Any]]:
    """Medians over seeds for each layer and saved step; for a table at most a dozen steps."""
    import numpy as np

    from ..measure import count_lines
    from ..training.store import load_run

    sys.path.insert(0, str(Path.cwd()))  # activations of the user: module:function
    trajectory = load_run(folder)
    chosen = np.arange(len(trajectory.saved))
    if not every_step and len(chosen) > TABLE_STEPS:
        chosen = np.unique(np.rint(np.geomspace(1, len(chosen), TABLE_STEPS)).astype(int) - 1)
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
