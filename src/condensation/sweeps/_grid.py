"""A sweep as a value: the base experiment, its axes, and the cells they span."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from .._formula import Formula
from .._functions import function_fingerprint
from .._plain import parse_toml, read_text
from .._serialization import FORMAT, check_format, coerce, fingerprint, replace_at, to_plain, value_at
from ..errors import InputError, check_threshold, check_whole, unknown_name
from ..experiment import Experiment
from ..seeds import Seed, as_seeds
from ._axes import COLUMNS, SPACINGS, Label, check_grid, label, read_axis
from ._measures import Measure, Measuring, check_fit, check_measures
from ._texts import FIELDS, ExperimentTexts, plain_experiment, plain_part

MOMENTS = ("end", "initial", "saved")


class Cell(NamedTuple):
    """One place of the grid: its coordinates by axis, and the experiment there."""

    coordinates: dict[str, Label]
    experiment: Experiment
    fingerprint: str


@dataclass(frozen=True, eq=False, init=False)
class Sweep:
    """Which experiments a map is made of, and what is measured in each.

    Args:
        experiment: the base; each cell changes some of its fields.
        axes: values by name. A field of the experiment, most often by a dotted path (``init.hidden.std``), takes the
            values itself; any other name is a variable of the formulas in ``fields``.
        fields: formulas of the axes' names for fields, such as ``{"network.widths.1": "m"}``.
        seeds: how many (0, 1, ...), or which.
        measure: names (``lines``, ``change``, ``share``, ``rank``, ``cosine``), or functions of a trajectory and a
            step.
        at: where it is measured: ``"end"``, the last saved step; ``"initial"``, the last saved step at which the loss
            is at least 70% of its first value (``stage_ended`` is false where no saved step is below that);
            ``"saved"``, each saved step, a row for each.
        threshold: the cosine that decides which units are of one line.
        backoffs: how often the learning rate may be halved, and training begin again, where the loss rises; 0: never.
    """

    experiment: Experiment
    axes: Mapping[str, tuple[Any, ...]]
    fields: Mapping[str, str]
    seeds: tuple[Seed, ...]
    measure: tuple[Measure, ...]
    at: str
    threshold: float | None
    backoffs: int

    def __init__(
        self,
        experiment: Experiment,
        axes: Mapping[str, Iterable[Any]],
        fields: Mapping[str, str] | None = None,
        seeds: int | Iterable[int | Seed] = 1,
        measure: Measure | Iterable[Measure] = ("lines", "change"),
        at: str = "end",
        threshold: float | None = None,
        backoffs: int = 0,
    ) -> None:
        if not isinstance(experiment, Experiment):
            raise InputError(f"a sweep needs an experiment to start from, not {experiment!r}")
        for name, table in (("axes", axes), ("fields", fields)):
            if not isinstance(table, Mapping | None):
                raise InputError(f"{name} must be a table by name, not {table!r}")
        if at not in MOMENTS:
            raise unknown_name("moment of measuring", at, MOMENTS)
        check_whole("backoffs", backoffs, least=0)
        threshold = coerce(float | None, threshold, "threshold")
        check_threshold(threshold)
        self._keep(experiment=experiment, fields=dict(fields or {}), at=at, threshold=threshold, backoffs=int(backoffs))
        self._keep(seeds=as_seeds(seeds), measure=check_measures(measure))
        self._check_names(axes)
        self._keep(axes={name: self._values(name, values) for name, values in axes.items()})
        first = next(self._each())  # a formula for a field that is not there is refused at once
        check_fit(self.measure, first.experiment.network)

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _formulas(self) -> dict[str, Formula]:
        return {path: Formula(text) for path, text in self.fields.items()}

    @cached_property
    def _variables(self) -> frozenset[str]:
        """The names that formulas use."""
        return frozenset().union(*(formula.names for formula in self._formulas.values()))

    def _check_names(self, axes: Iterable[str]) -> None:
        """Each axis is a field or a variable, and no field is set twice."""
        for name in sorted(self._variables - {*axes}):
            raise InputError(f"the formulas use {name}, which is no axis; the axes are {', '.join(axes) or 'none'}")
        for name in axes:
            if name in COLUMNS:
                raise InputError(
                    f"no axis can be called {name}, as tables have a column of that name: a field inside it, or a "
                    "variable of another name, can be one"
                )
            if not is_field(name) and name not in self._variables:
                raise unknown_name("field or variable of formulas, as an axis:", name, (*FIELDS, *self._variables))
        paths = sorted([*filter(is_field, axes), *self.fields], key=lambda path: path.split("."))
        for outer, inner in itertools.pairwise(paths):
            if inner == outer:
                raise InputError(f"the field {inner} is set by an axis and by a formula")
            if inner.startswith(f"{outer}."):
                raise InputError(
                    f"the field {inner} is inside {outer}, and both are set: list whole parts for {outer} only"
                )

    def _values(self, name: str, axis: Any) -> tuple[Any, ...]:
        """The values of an axis, each as its field or as a formula wants it."""
        values = read_axis(name, axis)
        if is_field(name):
            values = _fit(self.experiment, name, values)
        else:
            values = tuple(coerce(float, value, f"a value of the axis {name}") for value in values)
        repeated, times = Counter(map(label, values)).most_common(1)[0]
        if times > 1:
            raise InputError(f"each value of the axis {name} may stand once, but {repeated!r} stands twice")
        return values

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        """How many cells there are; each is trained for all seeds."""
        return math.prod(self.shape)

    @cached_property
    def labels(self) -> dict[str, tuple[Label, ...]]:
        """The values of each axis as tables show them."""
        return {name: tuple(map(label, values)) for name, values in self.axes.items()}

    def cells(self) -> Iterator[Cell]:
        """All cells, the last axis running fastest; a cell that cannot be is refused with its place."""
        return iter(self._cells)

    @cached_property
    def _cells(self) -> list[Cell]:
        check_grid(self.shape, len(self.seeds))
        return [*self._each()]

    def _each(self) -> Iterator[Cell]:
        parts, texts = _Parts(self.experiment), ExperimentTexts()
        for values, labels in zip(*(itertools.product(*of.values()) for of in (self.axes, self.labels)), strict=True):
            coordinates = dict(zip(self.axes, labels, strict=True))
            try:
                experiment = parts.replace(self._changes(dict(zip(self.axes, values, strict=True))))
                yield Cell(coordinates, experiment, texts.fingerprint(experiment))
            except InputError as error:
                place = ", ".join(f"{name} = {value}" for name, value in coordinates.items())
                raise InputError(f"the cell {place} cannot be: {error}" if place else str(error)) from error

    def _changes(self, at: dict[str, Any]) -> dict[str, Any]:
        """The values of the fields that a cell changes, by path."""
        changes = {name: value for name, value in at.items() if is_field(name)}
        for path, formula in self._formulas.items():
            value = formula(**{name: at[name] for name in formula.names})
            if not math.isfinite(value):
                raise InputError(f"the formula {formula.text!r} for {path} gives {value}")
            changes[path] = value_at(self.experiment, path, value)
        return changes

    @property
    def measuring(self) -> Measuring:
        """What is measured in each cell, and how."""
        return Measuring(self.measure, self.at, self.threshold, self.backoffs)

    def fingerprint(self) -> str:
        """SHA-256 of the sweep, with the sources of a user's functions."""
        axes = {name: [fingerprint(value) for value in values] for name, values in self.axes.items()}
        parts = [self.experiment.fingerprint(), axes, self.fields, self.seeds, self.measuring.key]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def describe(self) -> dict[str, str]:
        """The settings of its experiment in words, its axes and the number of its seeds."""
        axes = ", ".join(f"{name} {_describe_axis(values)}" for name, values in self.axes.items())
        fields = ", ".join(f"{field} = {formula}" for field, formula in self.fields.items())
        grid = {"axes": axes} | ({"fields": fields} if fields else {}) | {"seeds": str(len(self.seeds))}
        return self.experiment.describe() | grid

    def to_plain(self) -> dict[str, Any]:
        """The sweep as plain data."""
        return {
            "format": FORMAT,
            "experiment": plain_experiment(self.experiment),
            "axes": {name: [plain_part(value) for value in values] for name, values in self.axes.items()},
            "fields": dict(self.fields),
            "seeds": [[seed.data, seed.init] for seed in self.seeds],
            "measure": [to_plain(measure, function_fingerprint) for measure in self.measure],
            "at": self.at,
            "threshold": self.threshold,
            "backoffs": self.backoffs,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], folder: str | Path = ".") -> Sweep:
        """The sweep that plain data stands for; file names in it are relative to ``folder``.

        Data with a fingerprint, as the folder of a sweep has it, must still stand for the sweep that was run.
        """
        check_format("sweep", plain.get("format"))
        known = [field.name for field in fields(cls)]
        for name in plain:
            if name not in ("format", "fingerprint", *known):
                raise unknown_name("field of a sweep", name, known)
        options = {name: plain[name] for name in known if plain.get(name) is not None}
        for name in ("experiment", "axes"):
            if name not in options:
                raise InputError(f"missing in the sweep: {name}")
        folder, base = Path(folder), options["experiment"]
        experiment = Experiment.load(folder / base) if isinstance(base, str) else Experiment.from_plain(base, folder)
        options["experiment"] = experiment
        options["axes"] = {
            name: _fit(experiment, name, read_axis(name, values), folder) if is_field(name) else values
            for name, values in _dotted(options["axes"])
        }
        options["fields"] = dict(_dotted(options.get("fields", {})))
        if isinstance(options.get("seeds"), list):
            options["seeds"] = [_seed(seed) for seed in options["seeds"]]
        sweep = cls(**options)
        if plain.get("fingerprint", sweep.fingerprint()) != sweep.fingerprint():
            raise InputError(
                f"the sweep in {folder} is not the one that was run: its file was changed, or the source of a function "
                "that it names; run it again, and only what is missing is trained"
            )
        return sweep

    @classmethod
    def load(cls, path: str | Path) -> Sweep:
        """The sweep in a TOML file."""
        path = Path(path)
        text = read_text(path, "sweep")
        try:
            return cls.from_plain(parse_toml(text), path.parent)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


class _Parts:
    """Changes an experiment at dotted paths; a part that is changed as before is the same object."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def replace(self, changes: dict[str, Any]) -> Experiment:
        """The experiment with its fields changed."""
        by_field: dict[str, dict[str, Any]] = {}
        for path, value in changes.items():
            field, _, inner = path.partition(".")
            by_field.setdefault(field, {})[inner] = value
        return self._experiment.with_parts({field: self._part(field, inner) for field, inner in by_field.items()})

    def _part(self, field: str, changes: dict[str, Any]) -> Any:
        key = field, *((path, value if isinstance(value, float) else id(value)) for path, value in changes.items())
        if key not in self._made:  # the values are kept, too: their ids stay their own
            part = changes[""] if "" in changes else replace_at(getattr(self._experiment, field), changes)
            self._made[key] = part, [*changes.values()]
        return self._made[key][0]


def pair_name(coordinates: Mapping[str, Label], seed: Seed) -> str:
    """What a pair of cell and seed is called in messages.

    >>> pair_name({"m": 10}, Seed(0, 0)), pair_name({}, Seed(0, 1))
    ('m = 10, seed 0', 'the experiment, seed 0/1')
    """
    return f"{cell_name(coordinates)}, seed {seed_name(seed)}"


def cell_name(coordinates: Mapping[str, Label]) -> str:
    """What a cell is called in messages."""
    return ", ".join(f"{name} = {value}" for name, value in coordinates.items()) or "the experiment"


def seed_name(seed: Seed) -> str:
    """What a seed is called in messages: its number, or both where the data's is another than the weights'."""
    return f"{seed.data}/{seed.init}" if seed.init != seed.data else str(seed.data)


def is_field(name: str) -> bool:
    """Whether an axis is a field of the experiment, and not only a variable of formulas.

    >>> is_field("init.hidden.std"), is_field("gamma")
    (True, False)
    """
    return name.partition(".")[0] in FIELDS


def _fit(experiment: Experiment, name: str, values: Iterable[Any], folder: Path = Path()) -> tuple[Any, ...]:
    """Values of an axis as its field wants them."""
    try:
        return tuple(value_at(experiment, name, value, folder) for value in values)
    except InputError as error:
        raise InputError(f"the axis {name} cannot be: {error}") from error


def _dotted(table: Any, outer: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table by dotted names: TOML reads names without quotation marks as tables inside tables."""
    if not isinstance(table, Mapping):
        raise InputError(f"axes and fields are tables by name, not {table!r}")
    for name, value in table.items():
        if isinstance(value, Mapping) and not SPACINGS.keys() & value.keys():
            yield from _dotted(value, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", value


def _seed(plain: Any) -> Any:
    """A seed from a number, or from a pair [data, init]."""
    if isinstance(plain, list) and len(plain) != 2:
        raise InputError(f"a seed is a whole number or a pair [data, init], not {plain!r}")
    return Seed(*plain) if isinstance(plain, list) else plain


def _describe_axis(values: Sequence[Any]) -> str:
    """The values of an axis where they are few or words, else its ends and how many they are.

    >>> _describe_axis(("tanh", "relu")), _describe_axis((0.1, 0.2, 0.3, 0.4))
    ('tanh, relu', '0.1 to 0.4 (4 values)')
    """
    if len(values) <= 3 or isinstance(values[0], str):
        return ", ".join(map(str, values))
    return f"{values[0]:g} to {values[-1]:g} ({len(values)} values)"
