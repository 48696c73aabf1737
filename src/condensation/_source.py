"""The source of a user's function, as a digest: what tells an edited function from the one that made a result.

The digest covers the function and what it uses of its user's own files: functions, classes, plain constants and whole
modules. Comments, docstrings and spacing are not in it. A function of an installed package is known by its name alone:
the versions of packages are kept beside each result. A function that no module can be asked for (of a notebook, a
script, or made by another function) is known by its digest: ``_captured``.
"""

import ast
import hashlib
import inspect
import sys
import sysconfig
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

INSTALLED = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
OWN = Path(__file__).parent.resolve()
CONSTANTS = bool | int | float | complex | str | bytes | None


class SourceUnknown(UserWarning):
    """A function's source cannot be read, so that an edited one would not be noticed."""


@lru_cache(maxsize=1024)  # what was imported runs on, whatever becomes of its file
def source_digest(function: Callable[..., Any]) -> str:
    """A digest of what a user's function does; empty where the function is known by its name alone.

    >>> import json
    >>> source_digest(json.dumps)
    ''
    """
    inner = inspect.unwrap(function)
    if not is_users(inspect.getmodule(inner)):
        return ""
    hashed = hashlib.sha256()
    try:
        for piece in sorted(set(_pieces(inner, set()))):
            hashed.update(piece.encode() + b"\0")
    except (OSError, SyntaxError, TypeError, AttributeError) as error:
        warnings.warn(
            f"the source of {function!r} cannot be read ({error}): its results are known by its name alone, and after "
            "an edit they come back as they were",
            SourceUnknown,
            stacklevel=2,
        )
        return ""
    return hashed.hexdigest()[:16]


def is_users(module: types.ModuleType | None) -> bool:
    """Whether a module is a file of the user, not of an installed package or of this one."""
    if module is None or module.__name__.partition(".")[0] in sys.builtin_module_names:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return True  # made at run time: it has no source to read
    path = Path(file).resolve()
    return "site-packages" not in path.parts and not any(folder in path.parents for folder in (*INSTALLED, OWN))


def _pieces(item: Any, seen: set[int]) -> Iterator[str]:
    """The sources and constants that a function or class is made of."""
    if id(item) in seen:
        return
    seen.add(id(item))
    tree = ast.parse(textwrap.dedent(inspect.getsource(item)))
    yield f"{item.__qualname__}: {without_docstrings(tree)}"
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    scope = vars(sys.modules[item.__module__])
    for name in names & scope.keys():
        yield from _pieces_of_value(name, scope[name], seen)


def _pieces_of_value(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """The sources and constants that a global name stands for, the same in every process."""
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, types.FunctionType | type):
        yield f"{name}: {value.__module__}:{value.__qualname__}"
        yield from _pieces(value, seen) if is_users(inspect.getmodule(value)) else ()
    elif isinstance(value, types.ModuleType):
        yield f"{name}: {module_text(value)}" if is_users(value) else name
    elif isinstance(value, np.ndarray):
        yield f"{name}: {array_text(value)}"
    elif isinstance(value, set | frozenset):
        yield f"{name}: {sorted(map(repr, value))}"
    elif isinstance(value, dict | list | tuple):
        yield f"{name}: {type(value).__name__} of {len(value)}"
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _pieces_of_value(f"{name}[{key!r}]", item, seen)
    elif isinstance(value, CONSTANTS):
        yield f"{name}: {value!r}"


def array_text(value: np.ndarray) -> str:
    """An array in a line: its type, its shape and a digest of its numbers."""
    return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"


def module_text(module: types.ModuleType) -> str:
    """The source of a user's module, without what has no effect."""
    return without_docstrings(ast.parse(inspect.getsource(module)))


def without_docstrings(tree: ast.AST) -> str:
    """A tree as text, without what has no effect."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            body[0] = ast.Pass()
    return ast.unparse(tree)
