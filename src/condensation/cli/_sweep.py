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
    on: Literal["local", "dask", "ray"] = "local",
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
        on: where tasks run: processes of this machine, a Dask or a Ray cluster.
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

    from ..papers.phases import FIGURES
    from ..sweeps import Sweep, run_sweep
    from ..sweeps._backends import backend_of

    ready = {figure.name: figure for figure in FIGURES}
    engine = backend_of(on, n_jobs=n_jobs, scheduler=scheduler, address=address)
    if target in ready:
        asked = {target: ready[target].sweep(size)} if size else dict(ready[target].experiments("quick"))
    elif target.endswith(".toml"):
        if size is not None:
            raise InputError("the size is of ready diagrams; a TOML file names its axes itself")
        sys.path.insert(0, str(Path(target).parent.resolve()))  # measures of the user: module:function beside the file
        asked = {Path(target).stem: Sweep.load(target)}
    else:
        raise unknown_name("sweep (and no TOML file)", target, ready)
    if seeds is not None:
        asked = {name: replace(one, seeds=seeds) for name, one in asked.items()}
    folder = out or Path("sweeps") / (target if target in ready else Path(target).stem)
    tables = {}
    for name, one in asked.items():
        own = folder / name if len(asked) > 1 else folder
        one.cells()  # what cannot be is said before anything is drawn
        with MapDisplay(name, one) as watcher:
            tables[name] = run_sweep(one, own, engine, keep_runs=keep_runs, block=block, watcher=watcher)
    pictures = _draw(tables, ready.get(target), folder, x, y, quantity)
    told = {name: _told(table) for name, table in tables.items()}
    if json:
        print_json({"folder": str(folder), "pictures": [str(path) for path in pictures], "sweeps": told})
    else:
        for name, found in told.items():
            counts = f"{found['cells']} cells, {found['seeds']} seed{'s' * (found['seeds'] > 1)}"
            print(f"{name}: {found['rows']} rows of {counts}", end="")
            print(f", {len(found['diverged'])} diverged" if found["diverged"] else "")
            for cell, reason in found["failed"].items():
                print(f"failed: {cell}: {reason}")
        print(f"table: {folder / 'table.parquet' if len(tables) == 1 else folder}")
        for path in pictures:
            print(f"picture: {path}")
    if any(found["failed"] for found in told.values()):
        sys.exit(FAILED)
    if any(found["diverged"] for found in told.values()):
        sys.exit(DIVERGED)


def _told(table: Any) -> dict[str, Any]:
    """A table in short."""
    lost = table.column("diverged") >= 0
    names = [*table.sweep.axes, "seed_data"]
    columns = [table.rows.column(name).to_pylist() for name in names]
    diverged = {
        ", ".join(f"{name} = {value}" for name, value in zip(names, row, strict=True))
        for row, gone in zip(zip(*columns, strict=True), lost, strict=True)
        if gone
    }
    return {
        "cells": len(table.sweep),
        "seeds": len(table.sweep.seeds),
        "rows": len(table),
        "diverged": sorted(diverged),
        "failed": dict(table.failed),
    }


def _draw(
    tables: dict[str, Any], figure: Any, folder: Path, x: str | None, y: str | None, quantity: str | None
) -> list[Path]:
    """The pictures of a ready diagram, or the map of a user's sweep."""
    from ..drawing import draw_sweep, save

    if any(table.failed for table in tables.values()):
        return []
    if figure is not None and not (x or y or quantity):
        pictures = figure(tables).draw().pictures
        names = {part: f"{figure.name}-{part}" if part else figure.name for part in pictures}
        return [path for part, picture in pictures.items() for path in save(picture, folder / names[part])]
    paths = []
    for name, table in tables.items():
        picture = draw_sweep(table, x=x, y=y, quantity=quantity)
        if picture is not None:
            paths += save(picture, folder / name)
    return paths
