"""``condensation show``."""

from pathlib import Path
from typing import Any

from .._functions import look_in
from .._phrases import plural
from .._writing import check_folder
from ..errors import InputError
from ._output import File, Maybe, console, limit, shown

PICTURES = (".png", ".svg", ".pdf", ".eps")
DESCRIPTIONS = ("run.json", "sweep.json")


def show(
    path: File,
    /,
    out: Maybe[Path] = None,
    x: Maybe[str] = None,
    y: Maybe[str] = None,
    quantity: Maybe[str] = None,
    trust: bool = False,
    memory: Maybe[str] = None,
) -> None:
    """Draw a run or a sweep in the terminal: loss and k_eff of each layer over the steps, or the map of a sweep.

    Args:
        path: the folder of a run, of a watched training or of a sweep.
        out: also write the picture to this file, a .png, .svg, .pdf or .eps.
        x: of a sweep, the horizontal axis of the map; by default the first.
        y: of a sweep, the vertical axis; by default the second.
        quantity: of a sweep, the column that is drawn; by default the first measured one.
        trust: import the functions that it names, from the current folder too.
        memory: the most memory that it may take, such as 4GiB; by default what is free.
    """
    limit(memory)
    if out is not None:
        if out.suffix not in PICTURES:
            raise InputError(f"a picture's name ends in {', '.join(PICTURES)}, not {out.name!r}")
        check_folder(out.parent)
    folder = _folder(path)
    if trust:
        look_in(Path())
    if (folder / "sweep.json").exists():
        picture = _sweep(folder, x, y, quantity, trust, out is not None)
    else:
        if (x, y, quantity) != (None, None, None):
            raise InputError(f"--x, --y and --quantity are of the map of a sweep, and {folder} is a run")
        picture = _run(folder, trust, out is not None)
    if out is not None and picture is not None:
        from ..drawing import save

        save(picture, out)
        print(f"picture: {out}")


def _folder(path: Path) -> Path:
    """The folder of a run or sweep: this one, or the only one in it."""
    if path.is_file():
        raise InputError(f"{path} is a file: condensation measure shows files of weights, show the folder of a run")
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    if any((path / name).exists() for name in DESCRIPTIONS):
        return path
    inside = sorted({file.parent for name in DESCRIPTIONS for file in path.glob(f"*/{name}")})
    if not inside:
        raise InputError(f"there is no run and no sweep in {path}")
    if len(inside) > 1:
        raise InputError(f"there are {len(inside)} runs and sweeps in {path}: name one of them, such as {inside[0]}")
    return inside[0]


def _run(folder: Path, trust: bool, drawn: bool) -> Any:
    from ..drawing._terminal_run import run_text
    from ..runs import open_run

    stored = open_run(folder, trust)
    run = stored.load()
    output = console()
    print(shown(repr(run)))
    output.print(run_text(run))
    if not drawn:
        return None
    from ..drawing import draw_run

    return draw_run(run)


def _sweep(folder: Path, x: str | None, y: str | None, quantity: str | None, trust: bool, drawn: bool) -> Any:
    """Print a sweep's table and its map, or its curve where a single axis varies."""
    import numpy as np

    from ..drawing import draw_sweep, map_text
    from ..drawing._sweep_map import choose_map, draw_axis, sweep_curve
    from ..drawing._terminal_run import chart
    from ..sweeps import open_sweep

    table = open_sweep(folder, trust)
    print(shown(repr(table)))
    chosen = choose_map(table, x, y, quantity)
    if chosen.x is None:
        raise InputError(f"no axis of the sweep in {folder} has several values: there is nothing to draw")
    if chosen.y is None:
        values = sweep_curve(table, chosen.quantity, chosen.x)
        print(
            shown(f"{chosen.quantity} over the {plural(len(values), 'value')} of {chosen.x}, the median of the seeds")
        )
        print("\n".join(chart(np.arange(1, len(values) + 1), values)))
        return draw_axis(table, chosen.quantity, chosen.x) if drawn else None
    for title, (values, columns, rows) in chosen.panels.items():
        if title:
            print(shown(title))
        labels = (chosen.x, chosen.y)
        console().print(map_text(np.asarray(values), columns, rows, quantity=chosen.quantity, labels=labels))
    return draw_sweep(table, x=x, y=y, quantity=quantity) if drawn else None
