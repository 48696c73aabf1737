"""A user's functions by name, ``module:name``: how one is named, and when a name is turned into a function.

An experiment file or a sweep file that a user runs may name functions, and their modules are imported. *Opening data*
imports no code: a run, the table of a sweep or a model may come from a stranger. Their functions are found among the
modules that are imported already; any other is named and refused until the user says so.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from ._source import source_digest
from .errors import InputError

Function = Callable[..., Any]
_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=True)


@contextmanager
def opening(trust: bool) -> Iterator[None]:
    """Open data, whose functions' modules are imported only if the user trusts them."""
    token = _TRUSTED.set(trust)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def may_import() -> bool:
    """Whether names are turned into functions by import: not while data are opened that the user does not trust."""
    return _TRUSTED.get()


def look_in(folder: str | Path) -> None:
    """Let modules be imported from a folder, too; installed packages come first, whatever lies there."""
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.append(path)


def function_path(function: Function) -> str:
    """``module:name`` of a function that can be found again by import; refused for one that cannot.

    >>> import json
    >>> function_path(json.dumps)
    'json:dumps'
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    try:
        imported = getattr(importlib.import_module(module or ""), name)
    except (ImportError, AttributeError, ValueError):
        imported = None
    if imported is not function or module == "__main__":
        raise InputError(
            f"the function {name or function!r} cannot be named as module:function, so it has no fingerprint; "
            "define it at the top level of an importable module"
        )
    return f"{module}:{name}"


def function_fingerprint(function: Function) -> str:
    """``module:name`` of a function, and the digest of its source if it is the user's."""
    path, digest = function_path(function), source_digest(function)
    return f"{path}#{digest}" if digest else path


def function_at(path: str) -> Function:
    """The function that ``module:name`` stands for.

    >>> import json
    >>> function_at("json:dumps") is json.dumps
    True
    """
    function = _imported(path) if may_import() else _known(path)
    if not callable(function):
        raise InputError(f"{path!r} is no function")
    return function


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # a user's module may fail in any way
        raise InputError(f"the function {path!r} cannot be imported: {type(error).__name__}: {error}") from error


def _known(path: str) -> Any:
    """A function that a module which is imported already defines itself; none of Python's own modules.

    It is looked up among what is there: an attribute that a module makes when it is asked for may import others.
    """
    module, _, name = path.partition(":")
    if module in sys.modules and module.partition(".")[0] not in (*sys.stdlib_module_names, "__main__"):
        function = vars(sys.modules[module]).get(name)
        own = (getattr(function, "__module__", None), getattr(function, "__qualname__", None)) == (module, name)
        return function if own else None
    raise InputError(
        f"the function {path!r} is not imported, and opening data runs no code that they name; if you know it, import "
        "its module first, or say trust=True (on the command line --trust)"
    )
