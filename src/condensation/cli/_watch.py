"""``condensation watch``."""

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.live import Live

from ..errors import InputError
from ._output import File, console

if TYPE_CHECKING:
    from ..runs import WatchedRun

WAIT = 0.5  # seconds between two looks at the folder


def watch(run: File, /, once: bool = False) -> None:
    """Follow a watched training in another terminal until it is closed: a row a layer, k_eff as a small curve.

    Args:
        run: the folder that watch(model, folder) of condensation.pytorch writes.
        once: print the table as it is now and end.
    """
    from ..drawing._terminal import frame

    seen, finished = _seen(run), _finished(run)
    shown = frame(_load(run), finished)
    if once or finished:
        console().print(shown)
        return
    with contextlib.suppress(KeyboardInterrupt), Live(shown, console=console(), auto_refresh=False) as live:
        while not finished:
            time.sleep(WAIT)
            if _seen(run) != seen:
                seen, finished = _seen(run), _finished(run)
                live.update(frame(_load(run), finished), refresh=True)


def _load(path: Path) -> "WatchedRun":
    from ..runs import open_run

    stored = open_run(path)
    if stored.kind == "experiment":
        raise InputError("this run was trained here, not watched; condensation measure shows its layers")
    return stored.load()


def _seen(run: Path) -> list[int]:
    """When the files of a run were last written."""
    return [path.stat().st_mtime_ns for path in sorted(run.glob("*.*")) if not path.name.startswith(".")]


def _finished(run: Path) -> bool:
    from .._files import read_sealed_json

    return bool(read_sealed_json(run / "run.json").get("seeds"))
