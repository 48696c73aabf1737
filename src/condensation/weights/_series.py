"""Checkpoints over training: which files of a folder are steps, and their layers measured step by step."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from rich.filesize import decimal

from .._phrases import printable
from ..errors import InputError
from ..measure import Row
from ._beside import natural, no_weights
from ._files import KINDS, MODEL_FILES, ModelFile, model_file, open_model_file
from ._formats.archives import models_among
from ._layout import Units
from ._measure import JOBS, measure_listed
from ._measured import Measured
from ._streaming import Progress, sample_note

FEW_STEPS = 12
_SHARD = re.compile(r"-\d+-of-\d+$")
_WORDS = (  # what a number is called that tells a step, the surest first
    re.compile(r"(?:^|[^a-z])(?:global)?_?(?:step|iter(?:ation)?)s?[=_-]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])epochs?[=_-]?(\d+)", re.IGNORECASE),
    re.compile(r"(?:^|[^a-z])(?:checkpoint|ckpt)[=_-]?(\d+)", re.IGNORECASE),
)
_MOST = 100_000  # files that are looked through
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def measure_path(
    path: str | Path,
    *,
    threshold: float | None = None,
    heads: bool = False,
    view: str = "filter",
    errors: bool = False,
    every_step: bool = False,
    progress: Progress = lambda layer, done, total: None,
) -> Measured:
    """Measure a checkpoint or a folder of checkpoints over training.

    Args:
        path: a file of weights, the folder of a model, or a folder of either with steps in their names.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        heads: measure each attention head by itself.
        view: the units of convolution layers, ``"filter"`` or ``"kernel"``.
        errors: also give standard errors of k_eff and of the ranks, by a bootstrap over units.
        every_step: measure all steps, not a dozen of them.
        progress: told after each layer: its name, and how many weights of how many are done.
    """
    path = Path(path)
    paths, warnings = find_steps(path) if path.is_dir() else ({0: path}, ())
    notes, opened = list(warnings), []

    def series() -> Iterator[tuple[int, list[Units]]]:
        for step in paths if every_step else few(list(paths)):
            try:
                opened[:] = [open_model_file(paths[step])]
            except InputError as error:
                if len(paths) == 1:
                    raise
                notes.append(f"step {step} is left out: {error}")
            else:
                yield step, opened[0].units(heads=heads, view=view)

    steps, units = measure_steps(series(), threshold, errors=errors, with_change=len(paths) > 1, progress=progress)
    if not opened:
        raise InputError(f"{path} holds no checkpoint that can be read; {notes[0]}")
    [last] = opened
    notes += [*last.notes, *sample_note(units)]
    return Measured(path, steps, units, _facts(last, list(paths), list(steps)), tuple(notes))


def measure_steps(
    series: Iterable[tuple[int, list[Units]]],
    threshold: float | None,
    *,
    errors: bool,
    with_change: bool,
    progress: Progress = lambda layer, done, total: None,
) -> tuple[dict[int, list[Row]], list[Units]]:
    """The rows of each step, with the change since the first if that is wanted, and the last units of each layer."""
    steps: dict[int, list[Row]] = {}
    first: dict[str, Units] = {}
    last: dict[str, Units] = {}
    for step, listed in series:
        if with_change and not first:
            first = {units.name: units for units in listed}
        start = partial(_initial, first)
        options = {"threshold": threshold, "with_errors": errors, "progress": progress}
        rows = measure_listed(listed, start=start, jobs=JOBS, **options)
        last |= {units.name: units for units, row in zip(listed, rows, strict=True) if not row.reason}
        steps[step] = rows
    return steps, list(last.values())


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
    files, passed = _checkpoints(folder)
    inside = model_file(folder)
    notes = (f"passed over, for their names are not those of weights: {', '.join(passed)}",) if passed else ()
    if inside is not None and inside.suffix == ".json":
        files = {name: path for name, path in files.items() if path.parent != folder or path.is_dir()}  # else shards
    steps, left = _by_step(folder, list(files))
    if inside is not None and (len(steps) < 2 or inside.name in steps.values()):
        return {0: folder}, ()
    if len(steps) < 2:
        files = files or _below(folder)
        if len(files) == 1:
            return {0: next(iter(files.values()))}, notes
        shards = [name for name in files if _SHARD.search(Path(name).stem)]
        raise InputError(
            f"{folder} holds shards of a model, but not the index that names them: looked for {MODEL_FILES[0]}"
            if shards
            else f"{folder} holds {len(files)} files of weights whose names tell no step ({_some(files)}): name one"
            if files
            else f"{folder} is no run (no run.json), no model ({', '.join(MODEL_FILES[:4])}) and holds no "
            f"checkpoints ({', '.join(KINDS)}; folders of a model such as checkpoint-500)"
        )
    if left:
        notes = (f"left out, for their names tell no step: {', '.join(left)}", *notes)
    return {step: files[steps[step]] for step in sorted(steps)}, notes


def _some(names: Mapping[str, Path]) -> str:
    """The first of some names, and how many more there are."""
    more = [f"{len(names) - FEW_STEPS:,} more"] if len(names) > FEW_STEPS else []
    return ", ".join([*map(printable, list(names)[:FEW_STEPS]), *more])


def _checkpoints(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """What may be a checkpoint in a folder, by name, in natural order; and what is not, unless it is all there is."""
    checkpoints: dict[str, Path] = {}
    paths = sorted(folder.iterdir(), key=lambda path: natural(path.name))
    models = set(models_among([path.name for path in paths]))
    for path in paths:
        if path.name.startswith("."):
            continue
        if path.is_file() and path.suffix in KINDS and path.name in models:
            checkpoints[path.name] = path
        elif path.is_dir() and not (path / "run.json").exists():
            files = [file for file in path.iterdir() if file.suffix in KINDS]
            files = [file for file in files if not no_weights(file.stem)] or files
            if model_file(path) or len(files) == 1:
                checkpoints[path.name] = path if model_file(path) else files[0]
    weights = {name: path for name, path in checkpoints.items() if not no_weights(name)} or checkpoints
    return weights, [name for name in checkpoints if name not in weights]


def _below(folder: Path) -> dict[str, Path]:
    """The models in a folder and in those inside it, as packages are installed; links to folders are not followed."""
    paths: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths += [(Path(place) / name).relative_to(folder).as_posix() for name in sorted(names)]
        if len(paths) > _MOST:
            raise InputError(f"{folder} holds more than {_MOST:,} files: name one")
    return {name: folder / name for name in models_among(paths)}


def _by_step(folder: Path, names: list[str]) -> tuple[dict[int, str], list[str]]:
    """The names that tell a step, by step, and the others."""
    stems = {name: Path(name).stem if Path(name).suffix in KINDS else name for name in names}
    numbered = (
        {name: int(match[1]) for name, stem in stems.items() if (match := word.search(stem))} for word in _WORDS
    )
    step_of = next((steps for steps in numbered if len(steps) > 1), None) or _by_number(folder, stems)
    steps: dict[int, str] = {}
    for name, step in step_of.items():
        if step in steps:
            raise InputError(
                f"{folder} holds two checkpoints of step {step}, {steps[step]} and {name}: keep one of them"
            )
        steps[step] = name
    return steps, [name for name in names if name not in step_of]


def _by_number(folder: Path, stems: Mapping[str, str]) -> dict[str, int]:
    """The step of each name of the one series whose names differ in one whole number."""
    groups: dict[str, dict[str, list[str]]] = {}
    for name, stem in stems.items():
        if not _SHARD.search(stem):
            groups.setdefault(_NUMBER.sub("#", stem), {})[name] = _NUMBER.findall(stem)
    groups = {shape: numbers for shape, numbers in groups.items() if len(numbers) > 1 and "#" in shape}
    shapes = [shape.replace("#", "N") for shape in groups]
    if len(groups) > 1:
        raise InputError(
            f"{folder} holds several series of checkpoints ({', '.join(shapes)}): put each in a folder of its own"
        )
    for numbers in groups.values():
        columns = list(zip(*numbers.values(), strict=True))
        varied = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        if len(varied) != 1 or any("." in number for number in columns[varied[0]]):
            raise InputError(
                f"which number of {shapes[0]} is the step in {folder} cannot be told: call it step, as in step_100"
            )
        return {name: int(digits[varied[0]]) for name, digits in numbers.items()}
    return {}


def _initial(first: Mapping[str, Units], units: Units) -> np.ndarray | None:
    """The weights at the first step; None where no relative change can be given."""
    initial = first.get(units.name)
    if initial is None or initial.reason or (initial.units, initial.inputs) != (units.units, units.inputs):
        return None
    try:
        weights = initial.weights()
    except InputError:
        return None
    return weights if np.isfinite(weights).all() and weights.any() else None


def steps_in_words(steps: list[int], chosen: list[int]) -> str:
    """Which steps there are, and how many of them were measured."""
    share = "all" if len(chosen) == len(steps) else f"{len(chosen)} of {len(steps)}"
    return f"{steps[0]:,} to {steps[-1]:,}, {share} measured"


def _facts(last: ModelFile, steps: list[int], chosen: list[int]) -> dict[str, str]:
    kinds = sorted({stored.dtype for stored in last.arrays.values() if stored.floating and not stored.reason})
    facts = {"parameters": f"{last.parameters:,}", "size": decimal(last.size), "arrays": f"{len(last.arrays):,}"}
    facts["precision"] = ", ".join(kinds) or "none"
    facts |= {"format": last.format} if last.format else {}
    if model := last.config.get("model_type"):
        facts["model"] = str(model)
    return facts | ({"steps": steps_in_words(steps, chosen)} if len(steps) > 1 else {})
