"""Reproduce figures by name: pictures, ``claims.json`` and the report in one folder."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..drawing.style import save
from ..errors import InputError, check_whole, unknown_name
from ..files import write_whole
from ..training.progress import Reporter
from . import fc
from .report import Section, write_report

FIGURES = fc.FIGURES
log = logging.getLogger(__name__)


def reproduce(
    names: Sequence[str] = (),
    *,
    seeds: int = 10,
    out: str | Path = "out",
    progress: Callable[[str], Reporter] | None = None,
) -> list[Section]:
    """Make the named figures (all without names) and write the report into ``out``.

    Args:
        names: figures such as ``fc-fig3``.
        seeds: how many seeds of data and start.
        out: the folder that is written to.
        progress: called with a figure's name, gives the reporter of its trainings.
    """
    for name in names:
        if name not in FIGURES:
            raise unknown_name("figure", name, FIGURES)
    check_whole("seeds", seeds)
    folder = Path(out)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be written to: {error.strerror}") from error
    sections = []
    for name in names or FIGURES:
        began = time.perf_counter()
        found = FIGURES[name](seeds, progress(name) if progress else None)
        files = [path for stem, picture in found.pictures.items() for path in save(picture, folder / "figures" / stem)]
        sections.append(Section(name, found, tuple(files), time.perf_counter() - began))
        log.info("%s took %.1f s", name, sections[-1].seconds)
    claims = [claim.to_plain() for section in sections for claim in section.findings.claims]
    write_whole(folder / "claims.json", (json.dumps(claims, indent=1, ensure_ascii=False) + "\n").encode())
    write_whole(folder / "index.html", write_report(sections, seeds).encode())
    return sections
