"""A user's functions by name: how one is named, and when a name is turned into a function.

A function of a module is ``module:name``. One that no module can be asked for (of a notebook's cell, of a script, a
lambda, one made by another function) is ``module:name#digest`` with the digest of its source and of all that it uses:
it is found where it is defined again as it was, and never made from a file.

An experiment file or a sweep file that a user runs may name functions, and their modules are imported. *Opening data*
imports no code: a run, the table of a sweep or a model may come from a stranger. Their functions are found among the
modules that are imported already; any other is named and refused until the user says so.
"""

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import cloudpickle

from ._captured import captured, digest_of, is_importable, name_of
from ._source import source_digest
from .errors import InputError, brief

Function = Callable[..., Any]
KEPT = 256  # functions without a module that are found again, those that were used last
_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=True)
_DEFINED: dict[str, Function] = {}  # functions without a module, by name
_FIRST: WeakKeyDictionary[Function, tuple[str, ...]] = WeakKeyDictionary()  # what they did when they were first used
_RECEIVED: WeakKeyDictionary[Function, str] = WeakKeyDictionary()  # those of another process: their source is there


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
    """``module:name`` of a function that can be found again by import, with a digest behind it of any other.

    >>> import json
    >>> function_path(json.dumps)
    'json:dumps'
    """
    return _path(function) if _is_named(function) else _name(function)


def importable_path(function: Function) -> str:
    """``module:name`` of a function, for files that others read; refused for one that no module can be asked for."""
    if not _is_named(function):
        raise InputError(
            f"the function {name_of(function)} cannot be named as module:function, which an experiment file needs: "
            "move it to the top level of a module that can be imported"
        )
    return _path(function)


def function_fingerprint(function: Function) -> str:
    """``module:name`` of a function, and the digest of its source if it is the user's."""
    if not _is_named(function):
        return _name(function)
    digest = source_digest(function)
    return f"{_path(function)}#{digest}" if digest else _path(function)


def _is_named(function: Any) -> bool:
    """Whether a function stands at the top level of a module that can be imported."""
    return is_importable(function) and function.__qualname__.isidentifier()


def _path(function: Any) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _name(function: Function) -> str:
    """The name of a function without a module, which is found by it from now on."""
    inner = inspect.unwrap(function)
    name = _RECEIVED.get(inner) if isinstance(inner, types.FunctionType) else None
    if name is None:
        _check_current(function)
        does = captured(function)
        for new in sorted({*does} - {*_FIRST.setdefault(inner, does)}):
            raise InputError(
                f"what the function {name_of(function)} uses has changed since it was first used (now {brief(new)}), "
                "so that its results could be of either: define it again (run its cell again) after the change"
            )
        name = f"{inner.__module__ or '__main__'}:{inner.__qualname__}#{digest_of(does)}"
    _keep(name, function)
    return name


def _check_current(function: Function) -> None:
    """Refuse what has the name of a function of a module, and is another one."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    there = vars(sys.modules[module]).get(name) if module in sys.modules and module != "__main__" else None
    if callable(there):
        raise InputError(
            f"the function {name} is not the one that the module {module} has under this name (it was wrapped, or the "
            f"module loaded again): use {module}.{name}, or one written with def"
        )


def _keep(name: str, function: Function) -> None:
    _DEFINED.pop(name, None)
    _DEFINED[name] = function
    while len(_DEFINED) > KEPT:
        del _DEFINED[next(iter(_DEFINED))]


def described(what: str, function: Function) -> str:
    """A user's function in the words of a description.

    >>> described("own law", len), described("own law", lambda shape, rng: shape)
    ('own law len', 'own law')
    """
    name = name_of(function)
    return f"{what} {name}" if name.isidentifier() else what


def called(what: str, function: Function, *arguments: Any) -> Any:
    """What a user's function gives; an error of its own becomes one sentence about it."""
    try:
        return function(*arguments)
    except InputError:
        raise
    except Exception as error:  # a user's function fails in any way
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"{what} failed: {type(error).__name__}: {first}") from error


def sent(function: Function) -> tuple[Callable[..., Function], tuple[str, bytes]] | None:
    """How a function goes to another process (see ``pickle``); None for one that is found there by import."""
    if _is_named(function):
        return None
    try:
        return received, (_name(function), cloudpickle.dumps(function))
    except InputError:
        raise
    except Exception as error:  # of whatever the function uses
        raise InputError(
            f"the function {name_of(function)} cannot be sent to another process: {type(error).__name__}: {error}"
        ) from error


def received(name: str, content: bytes) -> Function:
    """A function from the process that started this one; the same one each time it comes."""
    if name not in _DEFINED:
        function = cloudpickle.loads(content)
        _RECEIVED[inspect.unwrap(function)] = name
        _keep(name, function)
    return _DEFINED[name]


def function_at(path: str) -> Function:
    """The function that ``module:name`` stands for.

    >>> import json
    >>> function_at("json:dumps") is json.dumps
    True
    """
    place, _, digest = path.partition("#")
    if digest and (known := _defined(path)) is not None:
        return known
    module, _, name = place.partition(":")
    if digest and (module == "__main__" or not name.isidentifier()):
        raise InputError(
            f"the function {place!r} is not defined here as it was (source {digest}), and no file has its code: run "
            "the cell or the script that defines it first"
        )
    function = _imported(place) if may_import() else _known(place)
    if not callable(function):
        raise InputError(f"{path!r} is no function")
    return function


def _defined(path: str) -> Function | None:
    """A function of this process that has a name and a digest; no code runs to find it."""
    module, _, rest = path.partition(":")
    own = vars(sys.modules[module]) if module in sys.modules else {}
    for value in [*own.values()]:
        named = (getattr(value, "__module__", None), getattr(value, "__qualname__", None)) if callable(value) else ()
        if named == (module, rest.partition("#")[0]) and not isinstance(value, type):
            try:
                if function_fingerprint(value) == path:
                    return value
            except InputError:
                continue
    return _DEFINED.get(path)


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
