"""Frozen values as plain data and back: what experiment files and fingerprints are made of.

A ``Part`` is a frozen dataclass with a ``kind``, the name it has in plain data. A part becomes a dictionary of its
fields with its kind in front; tuples become lists; a function becomes ``module:name`` (see ``_functions``), and such a
name may stand wherever a function may. Back, the types that the fields declare decide (``steps: Count``); whatever
does not fit is refused with its place. It is written by hand: cattrs and pydantic would need as many lines of hooks
(kinds in unions, NumPy's numbers, functions, files) and give longer errors.
"""

import dataclasses
import hashlib
import json
import numbers
import types
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ._functions import function_at, function_fingerprint, function_path
from .errors import InputError, brief, check_positive, check_share, check_whole, unknown_name

FORMAT = 1  # of experiment files and runs
MISFIT = object()  # no value
Count = Annotated[int, check_whole]
Positive = Annotated[float, check_positive]
Share = Annotated[float, check_share]


class Part:
    """A base of frozen dataclasses whose fields become what they are declared to be, or are refused.

    An ``Annotated`` type adds checks, functions of a place (for the message) and a value.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Halves(Part, kind="halves"):
    ...     steps: Count
    >>> to_plain(Halves(np.int64(3)))
    {'kind': 'halves', 'steps': 3}
    """

    kind: ClassVar[str] = ""
    of_function: ClassVar[bool] = False  # whether a user's function, where the part may stand, makes the part

    def __init_subclass__(cls, kind: str = "", of_function: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.kind = kind or cls.kind
        cls.of_function = of_function

    def __post_init__(self) -> None:
        coerce_fields(self)


def check_format(what: str, version: Any) -> None:
    """Refuse a format that is missing or newer than this version knows."""
    if version is None:
        raise InputError(f"this {what} names no format: format = {FORMAT} is needed")
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise InputError(f"this {what} has format {version!r}, but this version of condensation knows up to {FORMAT}")


def without_none(plain: Any) -> Any:
    """Plain data without the fields that are left out, for formats that have no word for that."""
    if isinstance(plain, dict):
        return {name: without_none(value) for name, value in plain.items() if value is not None}
    return [without_none(item) for item in plain] if isinstance(plain, list) else plain


def to_plain(
    value: Any,
    name_of: Callable[[Callable[..., Any]], str] | None = None,
    place_of: Callable[[Any], dict[str, Any]] | None = None,
) -> Any:
    """Plain data (dictionaries, lists, strings, numbers) of a part; every field is written, defaults too.

    A function is written by its name: ``module:name``, or whatever ``name_of`` gives. Arrays are written as digests,
    and as the place where ``place_of`` says that they are kept (see ``_stored``).
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "__plain__"):
        return value.__plain__() | (place_of(value) if place_of else {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = getattr(value, "kind", None)
        fields = {f.name: to_plain(getattr(value, f.name), name_of, place_of) for f in dataclasses.fields(value)}
        return {"kind": kind} | fields if kind else fields
    if isinstance(value, tuple | list):
        return [to_plain(item, name_of, place_of) for item in value]
    if callable(value):
        return (name_of or function_path)(value)
    raise InputError(f"a value of type {type(value).__name__} cannot be written as plain data: {value!r}")


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical JSON of a part: sorted keys, no spaces, shortest floats that read back exactly.

    Fields that are left out (None) are not in it: a part can gain such a field and keep its fingerprints. A user's
    function is in it with the digest of its source: edited, it is another part.
    """
    text = f'{{"format":{FORMAT},"value":{canonical(value, function_fingerprint)}}}'
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any, name_of: Callable[[Callable[..., Any]], str] | None = None) -> str:
    """The JSON that fingerprints are made of.

    >>> canonical((1.0, None, "a"))
    '[1.0,null,"a"]'
    """
    plain = without_none(to_plain(value, name_of))
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def replace_at(value: Any, changes: dict[str, Any]) -> Any:
    """A copy of a frozen part with the fields at dotted paths changed, all at once; a number indexes a tuple."""
    by_field: dict[str, dict[str, Any]] = {}
    for path, new in changes.items():
        name, _, rest = path.partition(".")
        by_field.setdefault(name, {})[rest] = new
    fields = {name: old for name, (_, old) in _fields(type(value), value, next(iter(by_field), "")).items()}
    for name, inner in by_field.items():
        if name not in fields:
            raise unknown_name(f"field of {type(value).__name__}", name, fields)
        fields[name] = inner[""] if "" in inner else replace_at(fields[name], inner)
    return tuple(fields.values()) if isinstance(value, tuple) else dataclasses.replace(value, **fields)


def value_at(part: Any, path: str, plain: Any, folder: Path = Path()) -> Any:
    """What plain data, or a value itself, stands for as the field at a dotted path; a float may stand for an int.

    >>> from condensation.optimizers import Adam
    >>> value_at(Adam(1e-3), "schedule", {"kind": "warmup", "steps": 5})
    Warmup(steps=5, first=None)
    >>> value_at(Adam(1e-3, schedule=_), "schedule.steps", 7.0)
    7
    """
    hint: Any = type(part)
    for name in path.split("."):
        fields = _fields(hint, part, name)
        if name not in fields:
            raise unknown_name(f"field of {type(part).__name__}", name, fields)
        hint, part = fields[name]
    options = _options(hint)
    if int in options and float not in options and isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    return from_plain(hint, plain, path, folder)


def _fields(hint: Any, part: Any, name: str) -> dict[str, tuple[Any, Any]]:
    """Declared type and value of each field of a part, or of each item of a tuple that is declared as ``hint``."""
    if isinstance(part, tuple):
        items = next((get_args(option) for option in _options(hint) if get_origin(option) is tuple), (Any, ...))
        return {str(k): pair for k, pair in enumerate(zip(_each(items, len(part), name), part, strict=True))}
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return {own: (declared, getattr(part, own)) for own, declared in _hints(type(part)).items()}
    raise InputError(f"the field {name!r} is looked for in {part!r}, which has no fields")


def coerce_fields(part: Any) -> None:
    """Make the fields of a frozen part what they are declared to be, or refuse them: first thing in ``__post_init__``.

    NumPy's numbers become Python's, whole numbers given for floats become floats, lists and arrays become tuples: equal
    parts so have equal fingerprints.
    """
    for name, hint in _hints(type(part)).items():
        object.__setattr__(part, name, coerce(hint, getattr(part, name), name))


@cache
def _hints(part: type) -> dict[str, Any]:
    hints = get_type_hints(part, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(part)}


@cache
def _checked_options(hint: Any) -> tuple[tuple[Any, ...], ...]:
    """The types of a union, or the one type, each with its checks behind it."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return tuple(get_args(option) if get_origin(option) is Annotated else (option,) for option in options)


def _options(hint: Any) -> list[Any]:
    """The types of a union, or the one type."""
    return [option for option, *_ in _checked_options(hint)]


def coerce(hint: Any, value: Any, place: str) -> Any:
    """The value as its declared type, or an error that names its place.

    >>> coerce(tuple[float, ...], [1, 2], "widths")
    (1.0, 2.0)
    """
    options = _checked_options(hint)
    if callable(value) or (isinstance(value, str) and ":" in value):
        value = _of_function([option for option, *_ in options], value)
    for option, *checks in options:
        fitted = _fit(option, value, place)
        if fitted is not MISFIT:
            for check in checks:
                check(place, fitted)
            return fitted
    raise InputError(f"{place} must be {' or '.join(map(_type_name, _options(hint)))}, not {brief(value)}")


def _of_function(options: list[Any], value: Any) -> Any:
    """A function, or ``module:function``, as what it stands for among some types: itself, or the part that it makes."""
    parts = [option for option in options if getattr(option, "of_function", False)]
    if isinstance(value, str):
        if not parts and not any(get_origin(option) is Callable for option in options):
            return value
        value = function_at(value)
    return parts[0](value) if parts and not isinstance(value, type | Part) else value


def _fit(option: Any, value: Any, place: str) -> Any:
    """The value as one type, or MISFIT."""
    number = not isinstance(value, bool | np.bool)
    if get_origin(option) is tuple:
        several = isinstance(value, list | tuple | np.ndarray)
        return _items(coerce, get_args(option), list(value), place) if several else MISFIT
    if option is float:
        try:
            return float(value) + 0.0 if number and isinstance(value, numbers.Real) else MISFIT  # minus zero is zero
        except OverflowError:  # a whole number beyond all floats
            return MISFIT
    if option is int:
        return int(value) if number and isinstance(value, numbers.Integral) else MISFIT
    if option in (str, bool, types.NoneType, np.ndarray) or dataclasses.is_dataclass(option):
        return value if isinstance(value, option) else MISFIT  # type: ignore[arg-type]
    return value if callable(value) and not isinstance(value, type | Part) else MISFIT


def _items(make: Callable[..., Any], hints: tuple[Any, ...], items: list[Any], place: str) -> tuple[Any, ...]:
    """The items of a tuple, each made of its declared type."""
    each = zip(_each(hints, len(items), place), items, strict=True)
    return tuple(make(hint, item, f"{place}[{k}]") for k, (hint, item) in enumerate(each))


def _each(hints: tuple[Any, ...], count: int, place: str) -> list[Any]:
    """The type of each item of a tuple, ``(type, ...)`` standing for any number of them."""
    each = [hints[0]] * count if hints[-1] is Ellipsis else list(hints)
    if len(each) != count:
        raise InputError(f"{place} must be a list of {len(each)}, not of {count}")
    return each


def from_plain(hint: Any, plain: Any, place: str = "", folder: Path = Path()) -> Any:
    """The value that plain data stands for.

    Args:
        hint: the type it must have: a part, a union of parts told apart by ``kind``, a tuple, or a simple type.
        plain: dictionaries, lists, strings and numbers.
        place: where it stands, for messages (``optimizer.schedule``).
        folder: what file names in it are relative to.
    """
    options = _options(hint)
    if isinstance(plain, dict):
        return _from_table(_part_of_kind(options, plain, place), plain, place, folder)
    if isinstance(plain, list):
        for hints in (get_args(option) for option in options if get_origin(option) is tuple):
            return _items(partial(from_plain, folder=folder), hints, plain, place)
    return coerce(hint, plain, place)


def _part_of_kind(options: list[Any], plain: dict[str, Any], place: str) -> Any:
    """The part that a table stands for, among those that may stand there."""
    parts = [option for option in options if dataclasses.is_dataclass(option)]
    if not parts:
        raise InputError(f"{place} must be {' or '.join(map(_type_name, options))}, not a table")
    if len(parts) == 1:
        return parts[0]
    kinds = {part.kind: part for part in parts}  # type: ignore[attr-defined]
    if "kind" not in plain and "" in kinds:  # the usual one of the union needs no kind
        return kinds[""]
    if "kind" not in plain:
        raise InputError(f"{place} has no kind; one of {', '.join(kinds)} is needed")
    if not isinstance(plain["kind"], str) or plain["kind"] not in kinds:
        raise unknown_name(f"kind of {place}", plain["kind"], kinds)
    return kinds[plain["kind"]]


def _from_table(part: Any, plain: Any, place: str, folder: Path) -> Any:
    if hasattr(part, "__from_plain__"):
        return part.__from_plain__(plain, place, folder)
    kind = getattr(part, "kind", None)
    if plain.get("kind", kind) != kind:
        raise InputError(f"the kind of {place} must be {kind!r}, not {plain['kind']!r}")
    given = {name: value for name, value in plain.items() if not (name == "kind" and kind)}
    known = {field.name: field for field in dataclasses.fields(part)}
    where = f"in {place}" if place else "of an experiment"
    for name in given:
        if name not in known:
            raise unknown_name(f"field {where}", name, known)
    needed = [n for n, f in known.items() if f.default is dataclasses.MISSING and n not in given]
    if needed:
        raise InputError(f"missing {where}: {', '.join(needed)}")
    hints = _hints(part)
    inner = {n: from_plain(hints[n], value, f"{place}.{n}" if place else n, folder) for n, value in given.items()}
    try:
        return part(**inner)
    except InputError as error:
        raise InputError(f"{place}: {error}" if place else str(error)) from error


def _type_name(hint: Any) -> str:
    """A type in the words of an error."""
    words = {float: "a number", int: "a whole number", str: "a text", bool: "true or false", types.NoneType: "left out"}
    if get_origin(hint) is tuple:
        return "a list"
    return words.get(hint) or (hint.__name__ if isinstance(hint, type) else "a function")
