"""Figures of the old form, beside the new ones until all are moved: TO BE DELETED, with nothing new in it."""

import hashlib
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from matplotlib.figure import Figure

from .._device import device_name
from .._versions import versions
from ..drawing import save
from ..experiment import Experiment
from ..runs import Trajectory
from ..sweeps import Local, Sweep, SweepTable, run_sweep
from ..training import Reporter
from ._claims import PerSeed, Rule, Verdict, judge
from ._dependencies import digest
from ._section import Section
from ._tables import Table
from ._trainings import SEEDS, training_of, untrained
from ._variant import NotRun, Variant
from ._work import Setup, _write_data

Runs = Mapping[str, Trajectory]
Tables = Mapping[str, SweepTable]
Run = TypeVar("Run", Trajectory, SweepTable)


@dataclass(frozen=True)
class Statement:
    """A statement."""

    id: str
    figure: str
    where: str
    text: str
    quantity: str
    expected: Rule
    trained: bool = True
    paper: str = "FC"
    ours: bool = False

    @property
    def key(self) -> str:
        """As of a claim."""
        return self.id.removeprefix(f"{self.figure}-")

    @property
    def rule(self) -> Rule:
        """As of a claim."""
        return self.expected


@dataclass(frozen=True)
class Claim:
    """A statement with what was measured."""

    statement: Statement
    scale: str
    measured: PerSeed | None = None
    untrained: PerSeed | None = None
    why: str = ""
    variant: str = ""

    @property
    def holds(self) -> tuple[bool, ...]:
        """Whether the statement holds, in each seed."""
        return () if self.measured is None else self.measured.holds(self.statement.expected)

    @property
    def verdict(self) -> Verdict:
        """The verdict by the one rule."""
        return judge(self.holds)

    def to_plain(self) -> dict[str, Any]:
        """The claim as one object of ``claims.json``."""
        statement = self.statement
        plain = {
            "id": statement.id,
            "paper": statement.paper,
            "ours": statement.ours,
            "where": statement.where,
            "statement": statement.text,
            "quantity": statement.quantity,
            "expected": str(statement.expected),
            "measured": (self.measured or PerSeed([])).summary(),
            "holds": list(self.holds),
            "verdict": self.verdict,
            "scale": self.scale,
            "figure": statement.figure,
            "why": self.why,
            "variant": self.variant,
        }
        if self.untrained is not None:
            holds = self.untrained.holds(statement.expected)
            plain["untrained"] = self.untrained.summary() | {"holds": list(holds), "verdict": judge(holds)}
        return plain


def columns_of(claims: Mapping[str, Claim]) -> dict[str, np.ndarray]:
    """A row for each claim and seed."""
    measured = {key: claim.measured.values for key, claim in claims.items() if claim.measured is not None}
    return {
        "claim": np.concatenate([np.full(len(values), key) for key, values in measured.items()]),
        "seed": np.concatenate([np.arange(len(values)) for values in measured.values()]),
        "value": np.concatenate([np.asarray(values, float) for values in measured.values()]),
    }


@dataclass(frozen=True)
class Findings:
    """What a recipe shows beside its claims."""

    caption: str
    settings: Mapping[str, str]
    pictures: Mapping[str, Figure]
    tables: tuple[Table, ...] = ()
    data: Mapping[str, np.ndarray] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


class Lab:
    """What a recipe is given to work with."""

    def __init__(
        self,
        folder: Path,
        scale: str = "quick",
        seeds: int | None = None,
        variant: Variant | None = None,
        *,
        force: bool = False,
        reporter: Reporter | None = None,
    ) -> None:
        self.folder, self.scale, self.seeds = folder, scale, seeds
        self.variant, self.force, self.reporter = variant or Variant(), force, reporter
        self.notes: list[str] = []
        self.used: dict[str, Path] = {}
        self.missing: dict[str, str] = {}

    def seeds_of(self, experiment: Experiment) -> int:
        """How many seeds an experiment is trained for."""
        return self.seeds or SEEDS.get(experiment.network.kind, {}).get(self.scale, 10)

    def train(self, name: str, experiment: Experiment, variant: Variant | None = None) -> Trajectory:
        """The run of an experiment for all seeds."""
        changed = (self.variant if variant is None else variant).apply(experiment)
        training = training_of(changed, self.folder, self.scale, self.seeds)
        training.prepare()
        self.used[name] = training.path
        run, warnings = training.run(self.reporter)
        self.notes += [note for text in warnings if (note := f"{name}: {text}") not in self.notes]
        return run

    def sweep(self, name: str, sweep: Sweep) -> SweepTable:
        """The table of a sweep, its folder beside those of the runs."""
        folder = self.folder.parent / "sweeps" / name
        self.used[name] = folder
        if self.force:
            shutil.rmtree(folder, ignore_errors=True)
        table = run_sweep(replace(sweep, seeds=self.seeds) if self.seeds else sweep, folder, Local(1))
        self.notes += [f"{name}: {cell}: {reason}" for cell, reason in table.failed.items()]
        return table

    def gather(self, asked: Mapping[str, Experiment] | Mapping[str, Sweep]) -> dict[str, Any]:
        """The runs of experiments and tables of sweeps."""
        runs = {}
        for name, experiment in asked.items():
            try:
                trained = (
                    self.sweep(name, experiment) if isinstance(experiment, Sweep) else self.train(name, experiment)
                )
                runs[name] = trained
            except NotRun as error:
                self.missing[name] = str(error)
        if asked and not runs:
            raise NotRun("; ".join(dict.fromkeys(self.missing.values())))
        return runs


@dataclass(frozen=True)
class Recipe(Generic[Run]):
    """One figure of the old form."""

    name: str
    title: str
    statements: tuple[Statement, ...]
    experiments: Callable[[str], Mapping[str, Experiment]] | Callable[[str], Mapping[str, Sweep]]
    measure: Callable[[Mapping[str, Run], Variant], Mapping[str, PerSeed]]
    show: Callable[[Lab, Mapping[str, Run], Mapping[str, Claim]], Findings]
    reduced: str = ""
    has_variants: bool = True

    @property
    def claims(self) -> tuple[Statement, ...]:
        """As of a figure."""
        return self.statements

    def claim_id(self, key: str) -> str:
        """As of a figure."""
        return f"{self.name}-{key}"


class RecipeWork:
    """A recipe to be made."""

    def __init__(self, recipe: Recipe, setup: Setup) -> None:
        self.recipe, self.setup = recipe, setup
        tag = setup.variant.tag
        self.name = f"{recipe.name}_{tag}" if tag else recipe.name
        self.trainings, self.has_sweeps = (), True

    @property
    def key(self) -> str:
        """What the section is made from."""
        parts = (self.recipe.name, self.setup.scale, str(self.setup.seeds), str(self.setup.variant))
        return f"{recipe_code()}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}"

    @property
    def finished(self) -> Section | None:
        """The section that was made before."""
        before = Section.read(self.setup.folder / "sections" / f"{self.name}.json")
        whole = before is not None and before.key == self.key and before.status == "done" and not before.missing
        return before if whole and not self.setup.force else None

    def make(self, reporter: Reporter | None = None) -> Section:
        """The section, made now."""
        recipe, setup = self.recipe, self.setup
        lab = Lab(setup.folder / "runs", setup.scale, setup.seeds, setup.variant, force=setup.force, reporter=reporter)
        blank = Section(
            self.name, recipe.title, self.key, "done", scale=lab.scale, variant=str(lab.variant),
            versions=versions(), device=device_name(), reduced=recipe.reduced if lab.scale == "quick" else "",
        )  # fmt: skip
        began = time.perf_counter()
        try:
            if lab.variant.tag and not recipe.has_variants:
                raise NotRun(f"{recipe.name} has no variants")
            section = self._make(lab, blank)
        except NotRun as reason:
            section = replace(blank, status="not run", reason=str(reason), claims=self._no_claims(lab, str(reason)))
        except Exception as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            section = replace(blank, status="failed", reason=reason, claims=self._no_claims(lab, reason))
        section = replace(section, seconds=time.perf_counter() - began)
        section.write(setup.folder / "sections")
        return section

    def _make(self, lab: Lab, blank: Section) -> Section:
        recipe, folder = self.recipe, self.setup.folder
        runs = lab.gather(recipe.experiments(lab.scale))
        measured = recipe.measure(runs, lab.variant)
        control = recipe.measure({name: untrained(run) for name, run in runs.items()}, lab.variant)
        claims = {
            one.id: Claim(
                one, lab.scale, measured.get(one.id), control.get(one.id) if one.trained else None,
                variant=str(lab.variant),
            )
            for one in recipe.statements
        }  # fmt: skip
        shown = recipe.show(lab, runs, claims)
        reason = "; ".join(dict.fromkeys(lab.missing.values()))
        judged = [replace(claim, why=_why(claim, shown.why.get(key, ""), reason)) for key, claim in claims.items()]
        settings = dict(shown.settings)
        if lab.variant.tag:
            moment = "; in place of the captioned epochs each seed's most condensed saved step"
            settings = {"changed": f"{lab.variant}{'' if lab.variant.by_caption else moment}"} | settings
        pictures = [stem.replace(recipe.name, self.name, 1) for stem in shown.pictures]
        for name, picture in zip(pictures, shown.pictures.values(), strict=True):
            save(picture, folder / "figures" / name)
        return replace(
            blank,
            seeds=_seeds(runs, judged),
            caption=shown.caption,
            settings=settings,
            tables=[asdict(table) for table in shown.tables],
            claims=[_plain(claim, lab.variant) for claim in judged],
            pictures=pictures,
            data=[_write_data(folder / "data" / f"{self.name}.parquet", shown.data)] if shown.data else [],
            runs={title: path.relative_to(folder).as_posix() for title, path in lab.used.items()},
            missing=reason,
            notes=lab.notes,
        )

    def _no_claims(self, lab: Lab, reason: str) -> list[dict]:
        claims = [Claim(one, lab.scale, why=reason, variant=str(lab.variant)) for one in self.recipe.statements]
        return [_plain(claim, lab.variant) for claim in claims]


def _why(claim: Claim, given: str, missing: str) -> str:
    if claim.measured is None:
        return missing
    if given or claim.verdict == "reproduced":
        return given
    failing = [
        f"{float(value):.3g}" + ("" if ok else " (does not count)")
        for value, ok, holds in zip(claim.measured.values, claim.measured.counted, claim.holds, strict=True)
        if not holds
    ]
    return f"Expected {claim.statement.expected}; found where it fails: {', '.join(failing)}."


def _seeds(runs: Mapping[str, Trajectory | SweepTable], claims: Sequence[Claim]) -> tuple[int, int]:
    counts = [len(run.seeds) for run in runs.values()] or [len(claim.holds) for claim in claims]
    return min(counts), max(counts)


def _plain(claim: Claim, variant: Variant) -> dict:
    plain = claim.to_plain()
    return plain | {name: f"{plain[name]}_{variant.tag}" for name in ("id", "figure")} if variant.tag else plain


@cache
def recipe_code() -> str:
    """A digest of all figures' code."""
    return digest(["condensation.papers._registry", __name__])
