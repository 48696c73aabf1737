"""Reproduce figures by name: pictures, ``claims.json`` and the report in one folder.

    OUT/index.html            the report: all claims, with filters
        pages/NAME.html       a page of it for each figure
        claims.json           an object a claim
        figures/NAME.pdf|png  the pictures
        data/NAME.parquet     the numbers behind them
        experiments/NAME/     what each figure trains, as TOML
        runs/FINGERPRINT/     the trained networks, shared by the figures
        sweeps/NAME/          the tables of the phase diagrams
        sections/NAME.json    what is finished, so that it is not made again

All trainings of all figures are one list of tasks. A figure is made as soon as its own are done, and everything is
written after each figure: a job that is interrupted leaves a report of what it had finished.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from .._device import on_cpu
from .._threads import one_blas_thread
from .._writing import make_folder, write_atomic
from ..errors import InputError, check_whole, unknown_name
from ..seeds import check_count
from ..training import Reporter
from ._pages import PAGES, write_pages
from ._registry import FIGURES
from ._rerun import EXPERIMENTS
from ._section import Section
from ._trainings import train_all
from ._variant import Variant
from ._work import SCALES, FigureWork, Setup, figure_code, report_progress


def reproduce(
    names: Sequence[str] = (), *, scale: str | None = None, seeds: int | None = None, variant: Variant | None = None,
    out: str | Path = "out", force: bool = False, n_jobs: int | None = None,
    progress: Callable[[str, int, int], Reporter] | None = None,
) -> list[Section]:  # fmt: skip
    """Make the named figures and write the report into ``out``; without names all but those that are made on request.

    The report holds whatever this version has finished in that folder. A figure that fails is named in it and does not
    stop the others.

    Args:
        names: figures such as ``fc-fig3``.
        scale: ``"paper"`` for the captioned settings, ``"quick"`` (the default on a CPU) for what two cores can do.
        seeds: how many seeds of data and initialization; by default ten, of convolutional networks and ResNets three
            (five and one at the paper's scale).
        variant: what to change in the captioned settings.
        out: the folder that is written to.
        force: train and make also what is finished.
        n_jobs: processes that train; by default one a core, at most four, on a GPU this one alone.
        progress: called with a figure's name, how many are made and how many there are, gives the reporter of what is
            trained until that figure is made.

    Returns:
        The sections of the named figures.
    """
    for name in names:
        if name not in FIGURES:
            raise unknown_name("figure", name, FIGURES)
        if Path(name).name != name:
            raise InputError(f"files are named by the figure, so that its name has no slash: {name!r}")
    for name, number in (("seeds", seeds), ("n_jobs", n_jobs)):
        if number is not None:
            check_whole(name, number)
    if seeds is not None:
        check_count(seeds)
    scale = scale or ("quick" if on_cpu() else "paper")
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    setup = Setup(Path(out), scale, seeds, variant or Variant(), force)
    for part in ("figures", "data", "runs", "sections", PAGES, EXPERIMENTS):
        make_folder(setup.folder / part)
    chosen = names or [name for name, figure in FIGURES.items() if not figure.on_request]
    works = [FigureWork(FIGURES[name], setup) for name in dict.fromkeys(chosen)]
    # threads of BLAS that wait for each other beside processes that train take ten times as long
    with one_blas_thread():
        _Report(works, setup, progress).make(n_jobs)
    return [work.section for work in works if work.section is not None]


class _Report:
    """The figures that are asked for, made one after the other while others are trained."""

    def __init__(
        self, works: list[FigureWork], setup: Setup, progress: Callable[[str, int, int], Reporter] | None
    ) -> None:
        self.works, self.setup, self.progress = works, setup, progress
        self.reporter: Reporter | None = None

    @property
    def waiting(self) -> list[FigureWork]:
        """The figures that are not made."""
        return [work for work in self.works if work.section is None]

    def make(self, n_jobs: int | None) -> None:
        """Train and make what is not finished."""
        every = {training.path: training for work in self.waiting for training in work.trainings}
        for training in every.values():
            training.prepare(self.setup.force)
        began, done = time.perf_counter(), set()
        self._announce()
        if not every:
            self._make_ready(done, last=True)
        for training in train_all(list(every.values()), n_jobs):
            done.add(training.path)
            report_progress(self.reporter, len(done), len(every), began)
            self._make_ready(done, last=len(done) == len(every))
        _write_report(self.setup.folder, complete=True)

    def _announce(self) -> None:
        """Say which figure is waited for: the first that is not made."""
        if self.progress is not None and (waiting := self.waiting):
            self.reporter = self.progress(waiting[0].name, len(self.works) - len(waiting), len(self.works))

    def _make_ready(self, done: set[Path], last: bool) -> None:
        """Make the figures whose trainings are done; those with sweeps, which take all cores, behind all trainings."""
        for work in self.waiting:
            if last or (not work.has_sweeps and all(training.path in done for training in work.trainings)):
                work.make(self.reporter)
                _write_report(self.setup.folder, complete=False)
                self._announce()


def _write_report(folder: Path, complete: bool) -> None:
    """``claims.json`` and the pages, of all sections that this version has finished."""
    sections = finished(folder)
    claims = [claim for section in sections for claim in section.claims]
    write_atomic(folder / "claims.json", (json.dumps(claims, indent=1, ensure_ascii=False) + "\n").encode())
    write_pages(sections, folder, complete=complete)


def finished(folder: Path) -> list[Section]:
    """The sections in a folder that were made by this very code, in the order of the papers, variants behind."""
    sections: dict[tuple[bool, int, str], Section] = {}
    for path in (folder / "sections").glob("*.json"):
        section = Section.read(path)
        owners = [name for name in FIGURES if f"{path.stem}_".startswith(f"{name}_")]  # a variant's tag follows
        if section is None or section.name != path.stem or not owners:
            continue
        name = max(owners, key=len)
        if section.key.split("-")[0] == figure_code(FIGURES[name].__module__):
            sections[bool(section.variant), [*FIGURES].index(name), section.name] = section
    return [section for _, section in sorted(sections.items())]
