"""``condensation sweep``."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from ..errors import InputError, unknown_name
from ._output import DIVERGED, FAILED, MapDisplay, print_json


def sweep(
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SWEEP.toml|NAME")],
    /,
    out: Path | None = None,
    backend: Literal["local", "dask", "ray"] = "local",
    n_jobs: int | None = None,
    scheduler: str | None = None,
    address: str | None = None,
    size: int | None = None,
    seeds: int | None = None,
    block: int | None = None,
    keep_runs: bool = False,
    x: str | None = None,
    y: str | None = None,
    quantity: str | None = None,
    json: bool = False,
) -> None:
    """Train an experiment over a grid, and draw the map; what is finished is not trained again.

    Args:
        target: a TOML file (see docs/sweeps.md), or a ready phase diagram: phase-two-layer, phase-initial,
            phase-three-layer, phase-lines, phase-eps.
        out: the folder of the sweep; sweeps/NAME if not given.
        backend: where tasks run: processes of this machine, a Dask or a Ray cluster.
        n_jobs: tasks side by side; one a core of this machine, or all of the cluster, if not given.
        scheduler: address of Dask's scheduler, such as tcp://HOST:8786.
        address: address of Ray's cluster; auto if not given.
        size: cells along each axis of a ready diagram.
        seeds: how many seeds, in place of those that the sweep names.
        block: networks in a task.
        keep_runs: keep the trajectories, too.
        x: the map's horizontal axis, the first of the sweep if not given.
        y: its vertical axis, the second if not given.
        quantity: the column that is drawn, the first measured one if not given.
        json: print the result as JSON.
    """
    from dataclasses import replace

    from ..papers.phases import RECIPES, SWEEPS
    from ..sweeps import Sweep, run_sweep
    from ..sweeps._backends import backend_of

    ready = {recipe.name: recipe for recipe in RECIPES}
    runs_on = backend_of(backend, n_jobs=n_jobs, scheduler=scheduler, address=address)
    if target in ready:
        sweeps = dict(SWEEPS[target](size) if size else ready[target].experiments("quick"))
    elif target.endswith(".toml"):
        if size is not None:
            raise InputError("the size is of ready diagrams; a TOML file names its axes itself")
        sys.path.insert(0, str(Path(target).parent.resolve()))  # measures of the user: module:function beside the file
        sweeps = {Path(target).stem: Sweep.load(target)}
    else:
        raise unknown_name("sweep (and no TOML file)", target, ready)
    if seeds is not None:
        sweeps = {name: replace(planned, seeds=seeds) for name, planned in sweeps.items()}
    folder = out or Path("sweeps") / (target if target in ready else Path(target).stem)
    tables = {}
    for name, planned in sweeps.items():
        place = folder / name if len(sweeps) > 1 else folder
        planned.cells()  # cells that cannot be are refused before anything is drawn
        with MapDisplay(name, planned) as watcher:
            tables[name] = run_sweep(planned, place, runs_on, keep_runs=keep_runs, block=block, watcher=watcher)
    pictures = _draw(tables, ready.get(target), folder, x, y, quantity)
    summaries = {name: _summary(table) for name, table in tables.items()}
    if json:
        print_json({"folder": str(folder), "pictures": [str(path) for path in pictures], "sweeps": summaries})
    else:
        for name, summary in summaries.items():
            counts = f"{summary['cells']} cells, {summary['seeds']} seed{'s' * (summary['seeds'] > 1)}"
            diverged = f", {len(summary['diverged'])} diverged" if summary["diverged"] else ""
            print(f"{name}: {summary['rows']} rows of {counts}{diverged}")
            for cell, reason in summary["failed"].items():
                print(f"failed: {cell}: {reason}")
        print(f"table: {folder / 'table.parquet' if len(tables) == 1 else folder}")
        for path in pictures:
            print(f"picture: {path}")
    if any(summary["failed"] for summary in summaries.values()):
        sys.exit(FAILED)
    if any(summary["diverged"] for summary in summaries.values()):
        sys.exit(DIVERGED)


def _summary(table: Any) -> dict[str, Any]:
    """The counts of a table, and the cells that diverged or failed."""
    rows = table.rows.filter(table.column("diverged") >= 0).select([*table.sweep.axes, "seed_data"]).to_pylist()
    diverged = {", ".join(f"{name} = {value}" for name, value in row.items()) for row in rows}
    return {
        "cells": len(table.sweep),
        "seeds": len(table.sweep.seeds),
        "rows": len(table),
        "diverged": sorted(diverged),
        "failed": dict(table.failed),
    }


def _draw(
    tables: dict[str, Any], recipe: Any, folder: Path, x: str | None, y: str | None, quantity: str | None
) -> list[Path]:
    """The pictures of a ready diagram, or the map of a user's sweep."""
    from ..drawing import draw_sweep, save

    if any(table.failed for table in tables.values()):
        return []
    if recipe is not None and not (x or y or quantity):
        from ..papers.lab import Lab

        shown = recipe.show(Lab(folder), tables, {})
        return [path for name, picture in shown.pictures.items() for path in save(picture, folder / name)]
    paths = []
    for name, table in tables.items():
        picture = draw_sweep(table, x=x, y=y, quantity=quantity)
        if picture is not None:
            paths += save(picture, folder / name)
    return paths
