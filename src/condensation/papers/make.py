"""Reproduce figures by name: pictures, ``claims.json`` and the report in one folder.

    OUT/index.html            the report, one file
        claims.json           an object a claim
        figures/NAME.pdf|png  the pictures
        data/NAME.parquet     the numbers behind them
        runs/FINGERPRINT/     the trained networks, shared by the figures
        sweeps/NAME/          the tables of the phase diagrams
        sections/NAME.json    what is finished, so that it is not made again

Everything is written after each figure: a job that is interrupted leaves a report of what it had finished.
"""

import hashlib
import io
import json
import logging
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np

from .._device import device_name, on_cpu
from .._files import make_folder, write_atomic
from .._versions import versions
from ..drawing import save
from ..errors import check_whole, unknown_name
from ..runs import Trajectory
from ..sweeps import SweepTable
from ..training import Reporter
from . import phases
from .claims import Claim
from .cnn import recipes as cnn
from .fc import recipes as fc
from .lab import SCALES, Lab, untrained
from .recipe import Recipe
from .report import write_report
from .section import Section
from .variant import NotRun, Variant

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (*fc.RECIPES, *cnn.RECIPES, *phases.RECIPES)}
log = logging.getLogger(__name__)


def reproduce(
    names: Sequence[str] = (),
    *,
    scale: str | None = None,
    seeds: int | None = None,
    variant: Variant | None = None,
    out: str | Path = "out",
    force: bool = False,
    progress: Callable[[str, int, int], Reporter] | None = None,
) -> list[Section]:
    """Make the named figures (all without names) and write the report into ``out``.

    The report holds whatever this version has finished in that folder. A figure that fails is named in it and does not
    stop the others.

    Args:
        names: figures such as ``fc-fig3``.
        scale: ``"paper"`` for the captioned settings, ``"quick"`` (the default on a CPU) for what two cores can do.
        seeds: how many seeds of data and start; by default ten, of convolutional networks and ResNets three
            (five and one at the paper's scale).
        variant: what to change in the captioned settings.
        out: the folder that is written to.
        force: make also what is finished.
        progress: called with a figure's name, its number and how many there are, gives the reporter of its trainings.

    Returns:
        The sections of the named figures.
    """
    for name in names:
        if name not in RECIPES:
            raise unknown_name("figure", name, RECIPES)
    if seeds is not None:
        check_whole("seeds", seeds)
    scale = scale or ("quick" if on_cpu() else "paper")
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    changes, folder, chosen = variant or Variant(), Path(out), list(dict.fromkeys(names)) or list(RECIPES)
    for part in ("figures", "data", "runs", "sections"):
        make_folder(folder / part)
    sections, trained = [], {}
    for k, name in enumerate(chosen):
        reporter = progress(name, k, len(chosen)) if progress else None
        lab = Lab(folder / "runs", scale, seeds, changes, force=force, reporter=reporter, trained=trained)
        sections.append(_section(RECIPES[name], lab, folder, force))
        _write_report(folder)
    return sections


def _section(recipe: Recipe, lab: Lab, folder: Path, force: bool) -> Section:
    """A figure as it was finished before, or made now."""
    name = f"{recipe.name}_{lab.variant.tag}" if lab.variant.tag else recipe.name
    key = _key(recipe.name, lab.scale, str(lab.seeds), str(lab.variant))
    before = Section.read(folder / "sections" / f"{name}.json")
    if before is not None and before.key == key and before.status == "done" and not (before.missing or force):
        log.info("%s is finished already", name)
        return before
    blank = Section(
        name,
        recipe.title,
        key,
        "done",
        scale=lab.scale,
        variant=str(lab.variant),
        versions=versions(),
        device=device_name(),
        reduced=recipe.reduced if lab.scale == "quick" else "",
    )
    began = time.perf_counter()
    try:
        if lab.variant.tag and not recipe.has_variants:
            raise NotRun(f"{recipe.name} has no variants")
        section = _make(recipe, lab, folder, blank)
    except NotRun as reason:
        section = replace(blank, status="not run", reason=str(reason), claims=_no_claims(recipe, lab, str(reason)))
    except Exception as error:  # one figure that fails must not stop the others
        log.error("%s failed\n%s", name, traceback.format_exc())
        reason = f"{type(error).__name__}: {error}"
        section = replace(blank, status="failed", reason=reason, claims=_no_claims(recipe, lab, reason))
    section = replace(section, seconds=time.perf_counter() - began)
    section.write(folder / "sections")
    log.info("%s took %.1f s", name, section.seconds)
    return section


def _make(recipe: Recipe, lab: Lab, folder: Path, blank: Section) -> Section:
    """Train, measure, judge, draw, write."""
    runs = lab.gather(recipe.experiments(lab.scale))
    measured = recipe.measure(runs, lab.variant)
    control = recipe.measure({name: untrained(run) for name, run in runs.items()}, lab.variant)
    claims = {
        statement.id: Claim(
            statement,
            lab.scale,
            measured.get(statement.id),
            control.get(statement.id) if statement.trained else None,
            variant=str(lab.variant),
        )
        for statement in recipe.statements
    }
    found = recipe.show(lab, runs, claims)
    reason = "; ".join(dict.fromkeys(lab.missing.values()))
    claims = [replace(claim, why=_why(claim, found.why.get(key, ""), reason)) for key, claim in claims.items()]
    settings = dict(found.settings)
    if lab.variant.tag:
        moment = (
            "" if lab.variant.by_caption else "; in place of the captioned epochs each seed's most condensed saved step"
        )
        settings = {"changed": f"{lab.variant}{moment}"} | settings
    pictures, name = [], blank.name
    for stem, picture in found.pictures.items():
        save(picture, folder / "figures" / stem.replace(recipe.name, name, 1))
        pictures.append(stem.replace(recipe.name, name, 1))
    return replace(
        blank,
        seeds=_seeds(runs, claims),
        caption=found.caption,
        settings=settings,
        tables=[asdict(table) for table in found.tables],
        claims=[_plain(claim, lab.variant) for claim in claims],
        pictures=pictures,
        data=[_write_data(folder / "data" / f"{name}.parquet", found.data)] if found.data else [],
        runs={title: path.relative_to(folder).as_posix() for title, path in lab.used.items()},
        missing=reason,
        notes=lab.notes,
    )


def _why(claim: Claim, given: str, missing: str) -> str:
    """The reason that the recipe gives; without one, what was found where a claim fails."""
    if claim.measured is None:
        return missing
    if given or claim.verdict == "reproduced":
        return given
    valid = [True] * len(claim.holds) if claim.measured.valid is None else claim.measured.valid
    failing = [
        f"{float(value):.3g}" + ("" if ok else " (does not count)")
        for value, ok, holds in zip(claim.measured.values, valid, claim.holds, strict=True)
        if not holds
    ]
    return f"Expected {claim.statement.expected}; found where it fails: {', '.join(failing)}."


def _seeds(runs: Mapping[str, Trajectory | SweepTable], claims: Sequence[Claim]) -> tuple[int, int]:
    """The least and the largest number of seeds of the runs; of draws where nothing is trained."""
    counts = [len(run.seeds) for run in runs.values()] or [len(claim.holds) for claim in claims]
    return min(counts), max(counts)


def _plain(claim: Claim, variant: Variant) -> dict:
    plain = claim.to_plain()
    return plain | {name: f"{plain[name]}_{variant.tag}" for name in ("id", "figure")} if variant.tag else plain


def _no_claims(recipe: Recipe, lab: Lab, reason: str) -> list[dict]:
    """All claims of a figure that was not made."""
    claims = [Claim(one, lab.scale, why=reason, variant=str(lab.variant)) for one in recipe.statements]
    return [_plain(claim, lab.variant) for claim in claims]


def _write_data(path: Path, columns: Mapping[str, np.ndarray]) -> str:
    """A figure's table as Parquet."""
    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(
        pyarrow.table({name: pyarrow.array(np.asarray(values)) for name, values in columns.items()}), buffer
    )
    write_atomic(path, buffer.getvalue())
    return f"data/{path.name}"


def _write_report(folder: Path) -> None:
    """``claims.json`` and the page, of all sections that this version has finished."""
    sections = finished(folder)
    claims = [claim for section in sections for claim in section.claims]
    write_atomic(folder / "claims.json", (json.dumps(claims, indent=1, ensure_ascii=False) + "\n").encode())
    write_atomic(folder / "index.html", write_report(sections, folder).encode())


def finished(folder: Path) -> list[Section]:
    """The sections in a folder that were made by this very code, in the order of the papers, variants behind."""
    found = [section for path in (folder / "sections").glob("*.json") if (section := Section.read(path)) is not None]
    order = {name: k for k, name in enumerate(RECIPES)}
    return sorted(
        (section for section in found if section.key.startswith(code_digest())),
        key=lambda section: (bool(section.variant), order[section.name.split("_")[0]], section.name),
    )


def _key(*parts: str) -> str:
    return f"{code_digest()}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}"


@cache
def code_digest() -> str:
    """A digest of this package's source: what was made by other code is made again."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
