"""Frozen values as plain data: what an experiment's fingerprint is made of.

A *part* is a frozen dataclass with a class variable ``kind``, the name it has in plain data. A part becomes
a dictionary of its fields with its kind in front; tuples become lists; a function becomes ``module:name``.
"""

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Callable
from typing import Any

from .errors import InputError, unknown_name


def to_plain(value: Any) -> Any:
    """Plain data (dictionaries, lists, strings, numbers) of a part; every field is written, defaults too."""
    if hasattr(value, "__plain__"):
        return value.__plain__()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = getattr(value, "kind", None)
        fields = {f.name: to_plain(_as_declared(f, getattr(value, f.name))) for f in dataclasses.fields(value)}
        return {"kind": kind} | fields if kind else fields
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if callable(value):
        return function_path(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(f"a value of type {type(value).__name__} cannot be written as plain data: {value!r}")


def _as_declared(field: dataclasses.Field, value: Any) -> Any:
    """A whole number given for a float is that float: equal experiments have equal fingerprints."""
    return float(value) if field.type is float and isinstance(value, int) else value


def function_path(function: Callable[..., Any]) -> str:
    """``module:name`` of a function that can be found again by import; refused for one that cannot.

    >>> function_path(json.dumps)
    'json:dumps'
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    try:
        found = getattr(importlib.import_module(module or ""), name)
    except (ImportError, AttributeError, ValueError):
        found = None
    if found is not function:
        raise InputError(
            f"the function {name or function!r} cannot be named as module:function, so it has no fingerprint; "
            "define it at the top level of an importable module"
        )
    return f"{module}:{name}"


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical JSON of a part: sorted keys, no spaces, shortest floats that read back exactly."""
    text = json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def replace_at(value: Any, path: str, new: Any) -> Any:
    """A copy of a frozen part with the field at a dotted path changed; a number in the path indexes a tuple."""
    head, _, rest = path.partition(".")
    if isinstance(value, tuple):
        if not head.isdigit() or int(head) >= len(value):
            raise unknown_name("index", head, range(len(value)))
        position = int(head)
        changed = replace_at(value[position], rest, new) if rest else new
        return (*value[:position], changed, *value[position + 1 :])
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise InputError(f"{path!r} leads into {value!r}, which has no fields")
    names = [f.name for f in dataclasses.fields(value)]
    if head not in names:
        raise unknown_name(f"field of {type(value).__name__}", head, names)
    changed = replace_at(getattr(value, head), rest, new) if rest else new
    return dataclasses.replace(value, **{head: changed})
