"""How a figure is made again: the command, and its experiments as TOML files.

OUT/experiments/NAME/tanh.toml         an experiment, or a sweep
                     few.safetensors   its data, where those are arrays that code makes
"""

import re
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w

from .._serialization import without_none
from .._writing import make_folder, write_atomic
from ..errors import InputError
from ..experiment import Experiment
from ..sweeps import Sweep
from ._figure import PaperFigure
from ._trainings import seed_count
from ._variant import NotRun, Variant

EXPERIMENTS = "experiments"
_NUMBERS = re.compile(r"\[\n([^\[\]\"']*?),?\n\s*\]")  # an array over several lines


def command(name: str, scale: str, seeds: int | None = None, variant: Variant | None = None) -> str:
    """What makes a figure again, as it is typed.

    >>> command("fc-fig3", "quick", 50, Variant(eps=1e-30, rotated=True))
    'condensation reproduce fc-fig3 --scale quick --seeds 50 --eps 1e-30 --rotated'
    """
    given = ("--seeds", str(seeds)) if seeds else ()
    options = variant.options if variant else ()
    return shlex.join(("condensation", "reproduce", name, "--scale", scale, *given, *options))


def write_experiments(
    figure: type[PaperFigure], name: str, folder: Path, scale: str, seeds: int | None, variant: Variant
) -> list[dict[str, Any]]:
    """Write what a figure trains as TOML, in place of what was written before; what has the same settings stands once.

    Returns:
        For each: ``names`` of the experiments, ``file`` beside the report (empty where it has no TOML, ``reason`` tells
        why), its other files, the number of ``seeds``, the ``command`` that trains it, and whether it is ``evidence``.
    """
    place = folder / EXPERIMENTS / name
    make_folder(place)
    for old in (*place.glob("*.toml"), *place.glob("*.safetensors")):
        old.unlink()
    found: dict[str, dict[str, Any]] = {}
    for evidence, declared in ((False, figure.experiments(scale)), (True, _evidence(figure, scale, variant))):
        for key, given in declared.items():
            with suppress(NotRun):  # the claims tell it
                own = given if evidence or isinstance(given, Sweep) else variant.apply(given)
                count = seed_count(own, scale, seeds or figure.seeds_at(scale)) if isinstance(own, Experiment) else 0
                if isinstance(own, Sweep) and seeds:
                    own = replace(own, seeds=seeds)
                same = _known_by(own, count) or key
                if same in found:
                    if found[same]["evidence"] == evidence:
                        found[same]["names"].append(key)
                else:
                    taken = {Path(each["file"]).stem for each in found.values()}
                    entry = _write(own, place, _file_name(key, taken), count)
                    found[same] = {"names": [key], **entry, "evidence": evidence}
    return [*found.values()]


def to_toml(own: Experiment | Sweep) -> str:
    """An experiment or a sweep as TOML, arrays of numbers in one line."""
    text = own.to_toml() if isinstance(own, Experiment) else tomli_w.dumps(without_none(own.to_plain()))
    short = _NUMBERS.sub(lambda array: f"[{' '.join(array[1].split())}]", text)
    return short if tomllib.loads(short) == tomllib.loads(text) else text


def _write(own: Experiment | Sweep, place: Path, stem: str, count: int) -> dict[str, Any]:
    """Write one of them, with its arrays; what the report says of it."""
    beside = f"{EXPERIMENTS}/{place.name}"
    files = []
    try:
        if isinstance(own, Experiment):
            for part, arrays in own.arrays().items():
                file = f"{stem}.safetensors" if part == "data" else f"{stem}-{part}.safetensors"
                arrays.keep(place / file)
                own = own.replace(**{part: arrays.at(file)})
                files.append(f"{beside}/{file}")
        text = to_toml(own)
    except InputError as error:
        return {"file": "", "files": [], "seeds": count, "command": "", "reason": str(error)}
    write_atomic(place / f"{stem}.toml", text.encode())
    train = ("sweep", f"{stem}.toml") if isinstance(own, Sweep) else ("train", f"{stem}.toml", "--seeds", str(count))
    command = shlex.join(("condensation", *train))
    return {"file": f"{beside}/{stem}.toml", "files": files, "seeds": count, "command": command, "reason": ""}


def _known_by(own: Experiment | Sweep, count: int) -> str:
    """What two of the same settings have in common; nothing where a function of the user has no name."""
    try:
        return f"{own.fingerprint()} {count}"
    except InputError:
        return ""


def _evidence(figure: type[PaperFigure], scale: str, variant: Variant) -> Mapping[str, Experiment]:
    return {} if variant.tag else figure.evidence(scale)


def _file_name(key: str, taken: set[str]) -> str:
    """The name of an experiment as that of a file, without its ending.

    >>> _file_name("gamma = 4, M = 32", set()), _file_name("a b", {"a-b"}), _file_name("…", set())
    ('gamma-4-m-32', 'a-b-2', 'experiment')
    """
    stem = re.sub(r"[^a-z0-9_.]+", "-", key.lower()).strip("-.")[:100] or "experiment"
    names = (stem, *(f"{stem}-{k}" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)
