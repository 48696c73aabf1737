"""``condensation sweep``."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from .._functions import look_in
from .._writing import check_folder
from ..errors import InputError, check_whole, unknown_name
from ._output import DIVERGED, FAILED, Maybe, SweepDisplay, limit, print_json


def sweep(
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SWEEP.toml|NAME")],
    /,
    out: Maybe[Path] = None,
    backend: Literal["local", "dask", "ray"] = "local",
    n_jobs: Maybe[int] = None,
    scheduler: Maybe[str] = None,
    address: Maybe[str] = None,
    size: Maybe[int] = None,
    seeds: Maybe[int] = None,
    block: Maybe[int] = None,
    keep_runs: bool = False,
    memory: Maybe[str] = None,
    x: Maybe[str] = None,
    y: Maybe[str] = None,
    quantity: Maybe[str] = None,
    json: bool = False,
) -> None:
    """Train an experiment over a grid of settings and draw a map. Finished tasks are not trained again.

    Args:
        target: a TOML file (see docs/sweeps.md), or the name of a phase diagram: phase-two-layer, phase-initial,
            phase-three-layer, phase-lines, phase-eps, phase-lazy.
        out: the folder of the sweep; by default sweeps/NAME.
        backend: where tasks run: in processes of this machine, on a Dask cluster or on a Ray cluster.
        n_jobs: number of tasks that run at once; by default one for each core, or the whole cluster.
        scheduler: the address of Dask's scheduler, such as tcp://HOST:8786.
        address: the address of the Ray cluster; by default auto.
        size: number of cells along each axis of a named phase diagram.
        seeds: number of seeds, instead of those of the sweep.
        block: number of networks in a task.
        keep_runs: save the trajectories, too.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
        x: the horizontal axis of the map; by default the first of the sweep.
        y: the vertical axis; by default the second.
        quantity: the column that is drawn; by default the first measured one.
        json: print the result as JSON.
    """
    from dataclasses import replace

    from ..papers.phases import FIGURES
    from ..seeds import check_count
    from ..sweeps import Sweep, run_sweep
    from ..sweeps._backends import backend_of
    from ..sweeps._run import check_cells

    limit(memory)
    if block is not None:
        check_whole("block", block)
    if seeds is not None:
        check_count(seeds)
    figures = {figure.name: figure for figure in FIGURES}
    runs_on = backend_of(backend, n_jobs=n_jobs, scheduler=scheduler, address=address)
    if target in figures:
        if size is not None:
            check_whole("size", size, least=2)
        sweeps = dict(figures[target].experiments("quick")) if size is None else {target: figures[target].sweep(size)}
    elif target.endswith(".toml"):
        if size is not None:
            raise InputError("--size is for named phase diagrams; a TOML file has its own axes")
        look_in(Path(target).parent)  # measures of the user: module:function beside the file
        sweeps = {Path(target).stem: Sweep.load(target)}
    else:
        raise unknown_name("sweep (and no TOML file)", target, figures)
    if seeds is not None:
        sweeps = {name: replace(own, seeds=seeds) for name, own in sweeps.items()}
    folder = Path("sweeps") / Path(target).stem if out is None else out
    check_folder(folder)
    for own in sweeps.values():  # all that cannot be is refused before anything is trained
        check_cells(own)
        if (x, y, quantity) != (None, None, None):
            _check_map(own, x, y, quantity)
    tables = {}
    for name, own in sweeps.items():
        with SweepDisplay(name, own) as report:
            place = folder / name if len(sweeps) > 1 else folder
            tables[name] = run_sweep(own, place, runs_on, keep_runs=keep_runs, block=block, watcher=report)
    pictures = _draw(tables, figures.get(target), folder, x, y, quantity)
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


def _check_map(sweep: Any, x: str | None, y: str | None, quantity: str | None) -> None:
    """Refuse axes that a sweep does not have, and a quantity that none of its measures gives."""
    from ..drawing._sweep_map import map_axes
    from ..sweeps._measures import columns_of

    map_axes(sweep, x, y)
    if quantity is None:
        return
    known: dict[str, None] = {}
    for cell in sweep.cells():
        columns = columns_of(sweep.measure, cell.experiment)
        if columns is None:
            return  # a user's own measure names its columns when it is taken
        known |= dict.fromkeys(columns)
    if quantity not in known:
        raise unknown_name("quantity", quantity, known)


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
        "notes": table.notes,
    }


def _draw(
    tables: dict[str, Any], figure: Any, folder: Path, x: str | None, y: str | None, quantity: str | None
) -> list[Path]:
    """The pictures of a named phase diagram, or the map of a user's sweep."""
    from ..drawing import draw_sweep, save

    if figure is not None and (x, y, quantity) == (None, None, None):
        if not all(table.complete for table in tables.values()):
            return []  # its claims need every network
        pictures = figure(tables).draw().pictures
        names = {part: f"{figure.name}-{part}" if part else figure.name for part in pictures}
        return [path for part, picture in pictures.items() for path in save(picture, folder / names[part])]
    paths = []
    for name, table in tables.items():
        try:
            picture = draw_sweep(table, x=x, y=y, quantity=quantity)
        except InputError as error:
            if (x, y, quantity) != (None, None, None):
                raise
            print(f"no map of {name}: {error}", file=sys.stderr)
            continue
        if picture is not None:
            paths += save(picture, folder / name)
    return paths
