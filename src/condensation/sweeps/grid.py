"""A sweep as a value: the base experiment, its axes, and the cells they span."""

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, check_whole
from ..experiment import Experiment
from ..formula import Formula
from ..seeds import Seed, as_seeds
from ..values import FORMAT, check_format, fingerprint, replace_at, value_at
from .axes import label, read_axis
from .measures import Measure, check_measures

MOMENTS = ("end", "initial", "saved")


class Cell(NamedTuple):
    """One place of the grid: its coordinates by axis, and the experiment there."""

    coordinates: dict[str, float | int | str | bool]
    experiment: Experiment


@dataclass(frozen=True, eq=False)
class Sweep:
    """Which experiments a map is made of, and what is measured in each.

    Args:
        experiment: the base; each cell changes some of its fields.
        axes: values by name. A dotted path (``start.hidden.std``) is the field itself; any other name is a variable of
            the formulas in ``fields``.
        fields: formulas of the axes' names for fields, such as ``{"network.widths.1": "m"}``.
        seeds: how many (0, 1, ...), or which.
        measure: names (``lines``, ``change``, ``share``, ``rank``, ``cosine``), or functions of a trajectory and a
            step.
        at: where it is measured: ``"end"``, the last saved step; ``"initial"``, the last saved step at which the loss
            is at least 70% of its first value; ``"saved"``, each saved step, a row for each.
        threshold: the cosine that decides which units are of one line.
        halvings: halve the learning rate, at most so often, and start again where the loss rises; 0 takes it as it is.
    """

    experiment: Experiment
    axes: Mapping[str, tuple[Any, ...]]
    fields: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[Seed, ...] = (Seed(0, 0),)
    measure: tuple[Measure, ...] = ("lines", "change")
    at: str = "end"
    threshold: float | None = None
    halvings: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, Experiment):
            raise InputError(f"a sweep needs an experiment to start from, not {self.experiment!r}")
        if not isinstance(self.axes, Mapping) or not isinstance(self.fields, Mapping):
            raise InputError("axes and fields are tables of names, not lists")
        keep: Callable[[str, Any], None] = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        keep("axes", {name: read_axis(name, values) for name, values in self.axes.items()})
        keep("fields", dict(self.fields))
        keep("seeds", as_seeds(self.seeds))
        given = (self.measure,) if isinstance(self.measure, str) or callable(self.measure) else tuple(self.measure)
        keep("measure", check_measures(given))
        if self.at not in MOMENTS:
            raise InputError(f"at must be one of {', '.join(MOMENTS)}, not {self.at!r}")
        check_whole("halvings", self.halvings, least=0)
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise InputError(f"the threshold is a cosine between 0 and 1, not {self.threshold!r}")
        self._check_names()

    def _check_names(self) -> None:
        """Each axis is a field or a variable; no field is set twice."""
        formulas = {path: Formula(text) for path, text in self.fields.items()}
        used = {name for formula in formulas.values() for name in formula.names}
        for name in used - set(self.axes):
            raise InputError(
                f"the formulas use {name}, which is no axis; the axes are {', '.join(self.axes) or 'none'}"
            )
        for name, values in self.axes.items():
            if name in used:
                bad = [value for value in values if isinstance(value, bool) or not isinstance(value, int | float)]
                if bad:
                    raise InputError(f"the axis {name} is used in a formula and so needs numbers, not {bad[0]!r}")
                continue
            try:
                value_at(self.experiment, name, values[0])
            except InputError as error:
                raise InputError(
                    f"the axis {name} is neither in a formula nor a field that takes it: {error}"
                ) from error
        for path in self.fields:
            if path in self.axes:
                raise InputError(f"the field {path} is set by an axis and by a formula")

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(values) for values in self.axes.values())

    def __len__(self) -> int:
        """How many cells there are; each is trained for all seeds."""
        size = 1
        for count in self.shape:
            size *= count
        return size

    def cells(self) -> Iterator[Cell]:
        """All cells, the last axis running fastest; a cell that cannot be is refused with its place."""
        formulas = {path: Formula(text) for path, text in self.fields.items()}
        used = {name for formula in formulas.values() for name in formula.names}
        for values in itertools.product(*self.axes.values()):
            at = dict(zip(self.axes, values, strict=True))
            variables = {name: float(at[name]) for name in used}
            try:
                changes = {n: value_at(self.experiment, n, value) for n, value in at.items() if n not in used}
                for path, formula in formulas.items():
                    own = {name: variables[name] for name in formula.names}
                    changes[path] = value_at(self.experiment, path, float(formula(**own)))
                yield Cell({n: label(v) for n, v in at.items()}, replace_at(self.experiment, changes))
            except InputError as error:
                place = ", ".join(f"{name} = {label(value)}" for name, value in at.items())
                raise InputError(f"the cell {place} cannot be: {error}") from error

    def measured_key(self) -> str:
        """What rows of the same experiment and seed must share to be the same: what is measured, and how."""
        told = _Measured(tuple(self.measure), self.at, self.threshold, self.halvings)
        return fingerprint(told)[:16]

    def to_plain(self) -> dict[str, Any]:
        """The sweep as plain data; arrays of the user are named by their digests."""
        from ..values import to_plain

        return {
            "format": FORMAT,
            "experiment": self.experiment.to_plain(),
            "axes": {name: [to_plain(value) for value in values] for name, values in self.axes.items()},
            "fields": dict(self.fields),
            "seeds": [[seed.data, seed.start] for seed in self.seeds],
            "measure": to_plain(list(self.measure)),
            "at": self.at,
            "threshold": self.threshold,
            "halvings": self.halvings,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], folder: str | Path = ".") -> "Sweep":
        """The sweep that plain data stands for; file names in it are relative to ``folder``."""
        from ..errors import unknown_name
        from ..values import function_at

        check_format("sweep", plain.get("format"))
        known = ("format", "experiment", "axes", "fields", "seeds", "measure", "at", "threshold", "halvings")
        for name in plain:
            if name not in known:
                raise unknown_name("field of a sweep", name, known)
        for name in ("experiment", "axes"):
            if name not in plain:
                raise InputError(f"missing in the sweep: {name}")
        base = plain["experiment"]
        experiment = (
            Experiment.load(Path(folder) / base) if isinstance(base, str) else Experiment.from_plain(base, folder)
        )
        given = {name: plain[name] for name in known[2:] if plain.get(name) is not None}
        if "seeds" in given:
            given["seeds"] = _seeds(given["seeds"])
        if "measure" in given:
            names = [given["measure"]] if isinstance(given["measure"], str) else given["measure"]
            given["measure"] = tuple(function_at(n) if isinstance(n, str) and ":" in n else n for n in names)
        return cls(experiment, **given)

    @classmethod
    def load(cls, path: str | Path) -> "Sweep":
        """The sweep in a TOML file."""
        path = Path(path)
        try:
            plain = tomllib.loads(path.read_text(encoding="utf-8"))
            return cls.from_plain(plain, path.parent)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the sweep file {path} cannot be read: {getattr(error, 'strerror', error)}") from error
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path}: this is not TOML: {error}") from error
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


@dataclass(frozen=True)
class _Measured:
    measure: tuple[Measure, ...]
    at: str
    threshold: float | None
    halvings: int


def _seeds(plain: Any) -> Any:
    """Seeds as a number, or a list of numbers and of pairs [data, start]."""
    if not isinstance(plain, list):
        return as_seeds(plain)
    if any(isinstance(seed, list) and len(seed) != 2 for seed in plain):
        raise InputError(f"a seed is a whole number or a pair [data, start], not in {plain!r}")
    return as_seeds([Seed(*seed) if isinstance(seed, list) else seed for seed in plain])
