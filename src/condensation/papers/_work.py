"""Make the section of one figure: open its runs, measure and judge its claims, draw it, write the files."""

import hashlib
import io
import logging
import shutil
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._dependencies import digest
from .._device import device_name
from .._settings import reduced_text, settings_text
from .._versions import versions
from .._writing import write_atomic
from ..experiment import Experiment
from ..sweeps import Local, Sweep, SweepTable, SweepWarning, run_sweep
from ..sweeps._run import SweepProgress
from ..training import Progress, Reporter
from ._claims import Claim, Finding, revision
from ._figure import Available, Drawing, PaperFigure
from ._rerun import command, write_experiments
from ._section import Section
from ._trainings import Training, training_of, untrained
from ._variant import NotRun, Variant

SCALES = ("quick", "paper")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setup:
    """How figures are made: the arguments of ``reproduce``, with the folder that the report is written to."""

    folder: Path
    scale: str = "quick"
    seeds: int | None = None
    variant: Variant = field(default_factory=Variant)
    force: bool = False


class FigureWork:
    """A figure to be made, with all that it trains; its section is there once it is made."""

    def __init__(self, figure: type[PaperFigure], setup: Setup) -> None:
        self.figure, self.setup = figure, setup
        tag = setup.variant.tag
        self.name = f"{figure.name}_{tag}" if tag else figure.name
        self.missing: dict[str, str] = {}
        self.notes: list[str] = []
        self.used: dict[str, Path] = {}
        self.section = None if setup.force else self._finished()

    @property
    def key(self) -> str:
        """What the section is made from: the code that the figure depends on, and its settings."""
        settings = "|".join((self.figure.name, self.setup.scale, str(self.setup.seeds), str(self.setup.variant)))
        return f"{figure_code(self.figure.__module__)}-{hashlib.sha256(settings.encode()).hexdigest()[:16]}"

    def _finished(self) -> Section | None:
        """The section that was made before from the same code and settings, with nothing missing."""
        before = Section.read(self.setup.folder / "sections" / f"{self.name}.json")
        if before is None or before.key != self.key or before.status != "done" or before.missing:
            return None
        log.info("%s is finished already", self.name)
        return before

    @cached_property
    def panels(self) -> dict[str, Training | Sweep]:
        """What the figure's experiments train; ``NotRun`` where there is nothing that could be."""
        if self.setup.variant.tag and not self.figure.has_variants:
            raise NotRun(f"{self.figure.name} has no variants")
        declared = self.figure.experiments(self.setup.scale)
        panels = self._trainings_of(declared)
        if declared and not panels:
            raise NotRun("; ".join(dict.fromkeys(self.missing.values())))
        return panels

    @cached_property
    def evidence(self) -> dict[str, Any]:
        """What its evidence trains: with the captioned settings only."""
        return {} if self.setup.variant.tag else self._trainings_of(self.figure.evidence(self.setup.scale))

    def _trainings_of(self, experiments: Mapping[str, Experiment] | Mapping[str, Sweep]) -> dict[str, Any]:
        """The trainings of experiments under the variant, and sweeps; what cannot be trained is missing."""
        setup, trainings = self.setup, {}
        for name, experiment in experiments.items():
            if isinstance(experiment, Sweep):
                trainings[name] = replace(experiment, seeds=setup.seeds) if setup.seeds else experiment
                continue
            try:
                varied = setup.variant.apply(experiment)
                trainings[name] = training_of(
                    varied, setup.folder / "runs", setup.scale, setup.seeds or self.figure.seeds_at(setup.scale)
                )
            except NotRun as error:
                self.missing[name] = str(error)
        return trainings

    @cached_property
    def _all(self) -> list[Training | Sweep]:
        """All that it trains; nothing where it cannot be made, which is told when it is tried."""
        try:
            return [*self.panels.values(), *self.evidence.values()]
        except Exception:
            return []

    @property
    def trainings(self) -> list[Training]:
        """All that it trains but sweeps."""
        return [training for training in self._all if isinstance(training, Training)]

    @property
    def has_sweeps(self) -> bool:
        """Whether it trains more than its list of trainings tells."""
        return any(isinstance(training, Sweep) for training in self._all)

    def make(self, reporter: Reporter | None = None) -> None:
        """Make and write the section from runs that are there or are trained now."""
        setup = self.setup
        blank = Section(
            self.name, self.figure.title, self.key, "done", scale=setup.scale, variant=str(setup.variant),
            versions=versions(), device=device_name(), experiments=self._experiments(),
            command=command(self.figure.name, setup.scale, setup.seeds, setup.variant),
        )  # fmt: skip
        began = time.perf_counter()
        try:
            section = self._make(blank, reporter)
        except NotRun as error:
            section = replace(blank, status="not run", reason=str(error), claims=self._not_run(str(error)))
        except Exception as error:  # one figure that fails must not stop the others
            log.error("%s failed\n%s", self.name, traceback.format_exc())
            reason = f"{type(error).__name__}: {error}"
            section = replace(blank, status="failed", reason=reason, claims=self._not_run(reason))
        self.section = replace(section, seconds=time.perf_counter() - began)
        self.section.write(setup.folder / "sections")
        log.info("%s took %.1f s", self.name, self.section.seconds)

    def _experiments(self) -> list[dict[str, Any]]:
        """What it trains as files; nothing where its experiments cannot be told, which is said when it is made."""
        setup = self.setup
        try:
            about = setup.scale, setup.seeds, setup.variant
            return write_experiments(self.figure, self.name, setup.folder, *about)
        except Exception:
            return []

    def _not_run(self, reason: str) -> list[dict[str, Any]]:
        about = self.setup.scale, self.setup.variant
        return [Finding(self.figure, claim, *about, why=reason).to_plain() for claim in self.figure.claims]

    def _make(self, blank: Section, reporter: Reporter | None) -> Section:
        """Open the runs, measure, judge, draw, write."""
        setup, figure = self.setup, self.figure
        runs = {name: self._open(name, panel, reporter) for name, panel in self.panels.items()}
        others = {name: self._open(name, training, reporter) for name, training in self.evidence.items()}
        about = {"scale": setup.scale, "variant": setup.variant}
        absent = dict.fromkeys(figure.evidence(setup.scale), "trained with the captioned settings only") | self.missing
        still = {name: untrained(run) for name, run in runs.items()}
        observed = figure(Available(runs, self.missing), Available(others, absent), **about)
        control = figure(Available(still, self.missing), Available({}, absent), **about)
        findings = [find(observed, control, claim) for claim in figure.claims]
        blank = replace(blank, claims=[finding.to_plain() for finding in findings])
        try:
            drawing = observed.draw()
        except NotRun as reason:  # what could be measured stays
            return replace(blank, status="not run", reason=str(reason))
        counts = [len(run.seeds) for run in runs.values()] or [len(finding.holds) for finding in findings]
        return replace(
            blank, seeds=(min(counts), max(counts)), caption=drawing.caption,
            reduced=figure.settings_of or reduced_text(*map(self._titled, SCALES)) if setup.scale == "quick" else "",
            settings=self._settings(drawing), tables=[asdict(table) for table in drawing.tables],
            pictures=self._save(drawing),
            data=[_write_data(setup.folder / "data" / f"{self.name}.parquet", drawing.data)] if drawing.data else [],
            runs={name: path.relative_to(setup.folder).as_posix() for name, path in self.used.items()},
            missing="; ".join(dict.fromkeys(self.missing.values())), notes=self.notes,
        )  # fmt: skip

    def _open(self, name: str, panel: Training | Sweep, reporter: Reporter | None) -> Any:
        """A run or table, and its warnings among the notes."""
        if isinstance(panel, Sweep):
            return self._sweep(name, panel, reporter)
        run, warnings = panel.run(None if panel.finished else reporter)
        self.used[name] = panel.path
        self.notes += [note for text in warnings if (note := f"{name}: {text}") not in self.notes]
        return run

    def _sweep(self, name: str, sweep: Sweep, reporter: Reporter | None) -> SweepTable:
        """The table of a sweep, its folder beside that of the runs."""
        folder = self.setup.folder / "sweeps" / name
        self.used[name] = folder
        if self.setup.force:
            shutil.rmtree(folder, ignore_errors=True)
        began = time.perf_counter()

        def watch(state: SweepProgress) -> None:
            report_progress(reporter, state.done, state.total, began)

        with warnings.catch_warnings(action="ignore", category=SweepWarning):  # the notes tell it
            table = run_sweep(sweep, folder, Local(1), block=self.figure.block, watcher=watch if reporter else None)
        self.notes += [f"{name}: {cell}: {reason}" for cell, reason in table.failed.items()]
        self.notes += [f"{name}: {note}: {detail}" for note, detail in table.notes.items()]
        return table

    def _titled(self, scale: str) -> dict[str, Any]:
        titles = self.figure.titles
        return {titles.get(name, name): experiment for name, experiment in self.figure.experiments(scale).items()}

    def _settings(self, drawing: Drawing) -> dict[str, str]:
        """The paper's settings, with what was changed in them first."""
        variant, elsewhere = self.setup.variant, self.figure.settings_of
        moment = (
            "" if variant.by_caption else "; in place of the captioned epochs each seed's most condensed saved step"
        )
        changed = {"changed": f"{variant}{moment}"} if variant.tag else {}
        told = {"all settings": elsewhere} if elsewhere else settings_text(self._titled("paper"))
        chosen = {"chosen by us": self.figure.chosen} if self.figure.chosen else {}
        return changed | told | dict(drawing.settings_extra) | chosen

    def _save(self, drawing: Drawing) -> list[str]:
        """The pictures as files; their names."""
        from ..drawing import save

        names = [f"{self.name}-{part}" if part else self.name for part in drawing.pictures]
        for name, picture in zip(names, drawing.pictures.values(), strict=True):
            save(picture, self.setup.folder / "figures" / name)
        return names


def report_progress(reporter: Reporter | None, done: int, total: int, began: float) -> None:
    """Tell how many are done, how long that took and how long the rest will take."""
    if reporter is not None:
        passed = time.perf_counter() - began
        reporter(Progress(done, total, float("nan"), passed, passed * (total - done) / max(done, 1)))


def find(observed: PaperFigure, control: PaperFigure, claim: Claim[Any]) -> Finding:
    """What a claim comes to, measured on the trained runs and, where it is about training, on the untrained ones."""
    about = type(observed), claim, observed.scale, observed.variant
    try:
        measured = observed.measured(claim.key)
        without = control.measured(claim.key) if claim.trained else None
    except NotRun as reason:
        return Finding(*about, why=str(reason))
    finding = Finding(*about, measured, without)
    note = claim.note if isinstance(claim.note, str) else claim.note(observed)
    note = " ".join(filter(None, (revision(observed.claim_id(claim.key)), note)))
    if finding.verdict == "reproduced":
        return replace(finding, why=note)
    try:
        why = claim.why if isinstance(claim.why, str) else claim.why(observed)
    except NotRun:  # the reason rests on evidence that is not there
        why = ""
    return replace(finding, why=" ".join(filter(None, (note, why))) or finding.failing)


def _write_data(path: Path, columns: Mapping[str, np.ndarray]) -> str:
    """A figure's table as Parquet."""
    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    table = pyarrow.table({name: pyarrow.array(np.asarray(values)) for name, values in columns.items()})
    parquet.write_table(table, buffer)
    write_atomic(path, buffer.getvalue())
    return f"data/{path.name}"


@cache
def figure_code(module: str) -> str:
    """A digest of the code that a figure is made by: its module and this one, with all that they import."""
    return digest([module, __name__] if module.startswith("condensation.") else [__name__])
