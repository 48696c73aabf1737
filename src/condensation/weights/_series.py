"""Checkpoints over training: which files of a folder are steps, and their layers measured step by step."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..measure import Row, most_condensed_first
from ._files import KINDS, MODEL_FILES, ModelFile, model_file, natural, no_weights, open_model_file
from ._layout import Units
from ._measure import JOBS, measure_listed

FEW_STEPS = 12
_SHARD = re.compile(r"-\d+-of-\d+$")
_WORDS = (  # what a number is called that tells a step, the surest first
    re.compile(r"(?:^|[^a-z])(?:global)?_?(?:step|iter(?:ation)?)s?[=_-]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])epochs?[=_-]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])(?:checkpoint|ckpt)[=_-]?(\d+)", re.IGNORECASE),
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Measured:
    """The layers of a checkpoint, of several over training, or of a run.

    Attributes:
        path: what was measured.
        steps: the rows of each step; a checkpoint alone is step 0.
        units: of what could be measured, as they were the last time, for pictures.
        facts: what was measured, in words by name.
        notes: what a reader should know beside.
    """

    path: Path
    steps: Mapping[int, list[Row]]
    units: list[Units] = field(default_factory=list)
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def last(self) -> list[Row]:
        """One row a layer: of the last step at which it could be measured."""
        return [
            next((row for row in reversed(own.values()) if not row.reason), own[max(own)])
            for own in self._histories.values()
        ]

    @property
    def rows(self) -> list[Row]:
        """The last row of each layer, the most condensed first."""
        return most_condensed_first(self.last)

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The names of what could not be measured, by reason; where only some steps could not, these are told."""
        found: dict[str, list[str]] = {}
        for last in self.rows:
            if last.reason:
                found.setdefault(last.reason, []).append(last.layer)
                continue
            bad: dict[str, list[int]] = {}
            for step, row in self.history(last.layer).items():
                if row.reason:
                    bad.setdefault(row.reason, []).append(step)
            for reason, steps in bad.items():
                when = f"step {steps[0]:,}" if len(steps) == 1 else f"{len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"
                found.setdefault(f"{reason} (at {when})", []).append(last.layer)
        return found

    def history(self, layer: str) -> dict[int, Row]:
        """The rows of one layer by step."""
        return self._histories.get(layer, {})

    @cached_property
    def _histories(self) -> dict[str, dict[int, Row]]:
        found: dict[str, dict[int, Row]] = {}
        for step in sorted(self.steps):
            for row in self.steps[step]:
                found.setdefault(row.layer, {})[step] = row
        return found


def measure_path(
    path: str | Path,
    *,
    threshold: float | None = None,
    heads: bool = False,
    view: str = "filter",
    every_step: bool = False,
) -> Measured:
    """Measure a checkpoint or a folder of checkpoints over training.

    Args:
        path: a file of weights, the folder of a model, or a folder of either with steps in their names.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        heads: measure each attention head by itself.
        view: the units of convolution layers, ``"filter"`` or ``"kernel"``.
        every_step: measure all steps, not a dozen of them.
    """
    path = Path(path)
    paths, notes = find_steps(path) if path.is_dir() else ({0: path}, ())
    told, steps, starts = list(notes), {}, {}
    last: ModelFile | None = None
    known: dict[str, Units] = {}
    for step in paths if every_step else few(list(paths)):
        try:
            last = open_model_file(paths[step])
        except InputError as error:
            if len(paths) == 1:
                raise
            told.append(f"step {step} is left out: {error}")
            continue
        listed = last.units(heads=heads, view=view)
        if len(paths) > 1 and not starts:
            starts = {units.name: units for units in listed}
        start = partial(_start, starts=starts)
        steps[step] = measure_listed(listed, threshold=threshold, start=start, jobs=JOBS)
        known |= {own.name: own for own, row in zip(listed, steps[step], strict=True) if not row.reason}
    if last is None:
        raise InputError(f"{path} holds no checkpoint that can be read; {told[0]}")
    return Measured(path, steps, list(known.values()), _facts(last, list(paths), list(steps)), (*told, *last.notes))


def few(steps: list[int]) -> list[int]:
    """At most a dozen of some steps, denser at the beginning, the first and the last among them.

    >>> few(list(range(0, 10000, 100)))
    [0, 100, 300, 400, 700, 1100, 1800, 2700, 4200, 6500, 9900]
    """
    if len(steps) <= FEW_STEPS:
        return steps
    places = np.unique(np.rint(np.geomspace(1, len(steps), FEW_STEPS)).astype(int) - 1)
    return [steps[place] for place in places]


def find_steps(folder: Path) -> tuple[dict[int, Path], tuple[str, ...]]:
    """The checkpoints of a folder by step, and notes on what was left out; the folder of one model is one step."""
    found, passed = _checkpoints(folder)
    inside = model_file(folder)
    notes = (f"passed over, for their names are not those of weights: {', '.join(passed)}",) if passed else ()
    if inside is not None and inside.suffix == ".json":
        found = {name: path for name, path in found.items() if path.parent != folder or path.is_dir()}  # else shards
    steps, left = _by_step(folder, list(found))
    if inside is not None and (len(steps) < 2 or inside.name in steps.values()):
        return {0: folder}, ()
    if len(steps) < 2:
        if len(found) == 1:
            return {0: next(iter(found.values()))}, notes
        shards = [name for name in found if _SHARD.search(Path(name).stem)]
        raise InputError(
            f"{folder} holds shards of a model, but not the index that names them: looked for {MODEL_FILES[0]}"
            if shards
            else f"{folder} holds {len(found)} files of weights whose names tell no step ({', '.join(found)}): name one"
            if found
            else f"{folder} is no run (no run.json), no model ({', '.join(MODEL_FILES[:4])}) and holds no "
            f"checkpoints ({', '.join(KINDS)}; folders of a model such as checkpoint-500)"
        )
    if left:
        notes = (f"left out, for their names tell no step: {', '.join(left)}", *notes)
    return {step: found[steps[step]] for step in sorted(steps)}, notes


def _checkpoints(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """What may be a checkpoint in a folder, by name, in natural order; and what is not, unless it is all there is."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir(), key=lambda path: natural(path.name)):
        if path.name.startswith("."):
            continue
        if path.is_file() and path.suffix in KINDS:
            found[path.name] = path
        elif path.is_dir() and not (path / "run.json").exists():
            files = [f for f in path.iterdir() if f.suffix in KINDS]
            files = [f for f in files if not no_weights(f.stem)] or files
            inside = model_file(path) or (files[0] if len(files) == 1 else None)
            if inside is not None:
                found[path.name] = path if model_file(path) else inside
    weights = {name: path for name, path in found.items() if not no_weights(name)} or found
    return weights, [name for name in found if name not in weights]


def _by_step(folder: Path, names: list[str]) -> tuple[dict[int, str], list[str]]:
    """The names that tell a step, by step, and the others."""
    stems = {name: Path(name).stem if Path(name).suffix in KINDS else name for name in names}
    for word in _WORDS:
        told = {name: int(match[1]) for name, stem in stems.items() if (match := word.search(stem))}
        if len(told) > 1:
            return _unique(folder, told), [name for name in names if name not in told]
    groups: dict[str, dict[str, list[str]]] = {}
    for name, stem in stems.items():
        if not _SHARD.search(stem):
            groups.setdefault(_NUMBER.sub("#", stem), {})[name] = _NUMBER.findall(stem)
    groups = {shape: numbers for shape, numbers in groups.items() if len(numbers) > 1 and "#" in shape}
    if len(groups) > 1:
        said = ", ".join(shape.replace("#", "N") for shape in groups)
        raise InputError(f"{folder} holds several series of checkpoints ({said}): put each in a folder of its own")
    for shape, numbers in groups.items():
        columns = list(zip(*numbers.values(), strict=True))
        varied = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        if len(varied) != 1 or any("." in number for number in columns[varied[0]]):
            said = f"which number of {shape.replace('#', 'N')} is the step in {folder} cannot be told"
            raise InputError(f"{said}: call it step, as in step_100")
        told = {name: int(own[varied[0]]) for name, own in numbers.items()}
        return _unique(folder, told), [name for name in names if name not in told]
    return {}, names


def _unique(folder: Path, told: Mapping[str, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, step in told.items():
        if step in found:
            raise InputError(
                f"{folder} holds two checkpoints of step {step}, {found[step]} and {name}: keep one of them"
            )
        found[step] = name
    return found


def _start(units: Units, starts: Mapping[str, Units]) -> np.ndarray | None:
    """The weights at the first step; none where the relative change cannot be told."""
    own = starts.get(units.name)
    if own is None or own.reason or (own.units, own.inputs) != (units.units, units.inputs):
        return None
    try:
        weights = own.weights()
    except InputError:
        return None
    return weights if np.isfinite(weights).all() and weights.any() else None


def _facts(last: ModelFile, steps: list[int], chosen: list[int]) -> dict[str, str]:
    said = {"parameters": f"{last.parameters:,}", "size": _bytes(last.size), "arrays": f"{len(last.arrays):,}"}
    kinds = sorted({stored.dtype for stored in last.arrays.values() if stored.floating and not stored.reason})
    said["precision"] = ", ".join(kinds) or "none"
    if model := last.config.get("model_type"):
        said["model"] = str(model)
    if len(steps) > 1:
        of = "all" if len(chosen) == len(steps) else f"{len(chosen)} of {len(steps)}"
        said["steps"] = f"{steps[0]:,} to {steps[-1]:,}, {of} measured"
    return said


def _bytes(size: float) -> str:
    """A size as it is read.

    >>> _bytes(999), _bytes(548_000_000)
    ('999 B', '548 MB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
