"""The digest of a function that no module can be asked for: of a notebook's cell, of a script, or made by another one.

Its name says little, so the digest has all that the function does: its source, its defaults, what it captures of the
function around it, and the global names that it uses, by their values. What cannot be digested is refused, and so is a
function whose source cannot be read: nothing would tell it from another one.
"""

import ast
import dataclasses
import dis
import hashlib
import importlib
import inspect
import os
import types
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple

import numpy as np

from ._source import CONSTANTS, array_text, is_users, module_text, source_digest, without_docstrings
from .errors import InputError, brief

PLAIN = CONSTANTS | range | slice | types.EllipsisType | np.dtype  # known by how they are written
Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Place = tuple[int, int]  # line and column


def is_importable(item: Any) -> bool:
    """Whether a function or a class is found again by importing its module."""
    module, name = getattr(item, "__module__", None), getattr(item, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__":
        return False
    try:
        return reduce(getattr, name.split("."), importlib.import_module(module)) is item
    except (ImportError, AttributeError, ValueError):
        return False


def captured(function: Callable[..., Any]) -> tuple[str, ...]:
    """What a function does, with all that it uses, as texts.

    >>> def power(p):
    ...     return lambda x: x**p
    >>> captured(power(2))
    ('lambda x: x ** p', 'defaults: None', 'keywords: None', 'p: 2')
    """
    return tuple(_Pieces(name_of(function)).of_function(function))


def digest_of(texts: Iterable[str]) -> str:
    """A digest of texts."""
    return hashlib.sha256("".join(f"{text}\0" for text in texts).encode()).hexdigest()[:16]


def name_of(function: Any) -> str:
    """What a function is called in messages.

    >>> name_of(len), name_of(lambda x: x)
    ('len', '<lambda>')
    """
    return getattr(function, "__name__", None) or brief(function)


class _Pieces:
    """Texts that tell what a function does, in one order in every process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[int, Any] = {}  # values by id, kept so that their ids stay their own

    def of_function(self, function: Any) -> Iterator[str]:
        inner = inspect.unwrap(function)
        if not isinstance(inner, types.FunctionType):
            raise InputError(
                f"{brief(function)} is no plain function, so that its results would have no name: write it with def"
            )
        if self._repeated(inner):
            yield f"again {inner.__qualname__}"
            return
        read = _read(inner.__code__, inner.__code__.co_filename)
        if isinstance(read, str):
            raise InputError(
                f"the source of the function {name_of(inner)} cannot be read ({read}), so that its results would have "
                "no name: define it in a cell of a notebook, in a script or in a module"
            )
        if inner is not function and not read.decorators:
            raise InputError(
                f"the function {name_of(inner)} was wrapped (by jax.jit or jax.grad, say) where its source does not "
                "show it: write that as a decorator, or inside a function that you define with def"
            )
        yield read.text
        yield from self.of_value("defaults", inner.__defaults__)
        yield from self.of_value("keywords", inner.__kwdefaults__)
        for name, cell in zip(inner.__code__.co_freevars, inner.__closure__ or (), strict=True):
            try:
                yield from self.of_value(name, cell.cell_contents)
            except ValueError:  # not yet set
                yield f"{name} is empty"
        for name in sorted({*read.names, *read.decorators} & inner.__globals__.keys()):
            yield from self.of_value(name, inner.__globals__[name])

    def of_value(self, name: str, value: Any) -> Iterator[str]:
        """What a name stands for."""
        if isinstance(value, types.ModuleType):
            yield f"{name}: {module_text(value) if is_users(value) else value.__name__}"
        elif isinstance(value, np.ufunc):
            yield f"{name}: {value.__name__}"
        elif isinstance(value, partial):
            yield from self.of_value(name, [value.func, value.args, value.keywords])
        elif isinstance(value, types.MethodType):
            yield from self.of_value(name, [value.__func__, value.__self__])
        elif is_importable(value):
            yield f"{name}: {value.__module__}:{value.__qualname__} {source_digest(value)}"
        elif isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, types.ModuleType | None):
            yield f"{name}: {value.__qualname__}"
        elif isinstance(inspect.unwrap(value) if callable(value) else value, types.FunctionType):
            yield f"{name}:"
            yield from self.of_function(value)
        elif not isinstance(value, type) and hasattr(value, "__array__"):
            yield f"{name}: {array_text(self._array(name, value))}"
        elif isinstance(value, PLAIN):
            yield f"{name}: {value!r}"
        elif self._repeated(value):
            yield f"{name}: again"
        elif isinstance(value, set | frozenset):
            yield f"{name}: set {sorted(text for item in value for text in self.of_value('', item))}"
        elif isinstance(value, dict | list | tuple):
            yield f"{name}: {type(value).__name__} of {len(value)}"
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                yield from self.of_value(f"{name}[{key!r}]", item)
        elif dataclasses.is_dataclass(value) and is_importable(type(value)):
            yield from self.of_value(name, type(value))
            for field in dataclasses.fields(value):
                yield from self.of_value(f"{name}.{field.name}", getattr(value, field.name))
        else:
            raise self._refused(name, value)

    def _repeated(self, value: Any) -> bool:
        """Whether a value was met before: it may hold itself."""
        known = id(value) in self.seen
        self.seen[id(value)] = value
        return known

    def _array(self, name: str, value: Any) -> np.ndarray:
        try:
            array = np.asarray(value)
        except Exception as error:  # of any library
            raise self._refused(name, value) from error
        if array.dtype.hasobject:
            raise self._refused(name, value)
        return array

    def _refused(self, name: str, value: Any) -> InputError:
        kind = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        return InputError(
            f"the function {self.name} uses {name}, {kind}, whose content cannot be told by a digest: use "
            "numbers, arrays and functions, make it inside the function, or move both into a module and import it"
        )


class _Source(NamedTuple):
    """What a function's source says: its text, the global names that it uses, and those of its decorators."""

    text: str
    names: frozenset[str]
    decorators: frozenset[str]


@lru_cache(maxsize=1024)  # what was defined runs on, whatever becomes of its file
def _read(code: types.CodeType, file: str) -> _Source | str:
    """The source of a function by its code, or why it cannot be read."""
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError, IndexError):
        return "it was typed at a prompt or made by exec"
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return f"{file} was edited since"
    if os.path.exists(file) and not any(_is_same(code, each) for each in _codes(_compiled(tree, file))):
        return f"{file} was edited since"
    found = [node for node in ast.walk(tree) if isinstance(node, Node) and _begins(node, code)]
    if code.co_name == "<lambda>" and len(found) > 1:
        around = [node for node in found if isinstance(node, ast.Lambda) and _holds(node.body, code)]
        found = sorted(around, key=lambda node: len(ast.unparse(node)))[: 1 if _columns(code) else None]
    texts = {without_docstrings(node) for node in found}
    if len(texts) != 1:
        several = f"line {code.co_firstlineno} of {file} has several functions that cannot be told apart"
        return several if texts else f"{file} was edited since"
    decorators = {name.id for each in _decorators(found[0]) for name in ast.walk(each) if isinstance(name, ast.Name)}
    return _Source(texts.pop(), frozenset(_global_names(code)), frozenset(decorators))


def _compiled(tree: ast.Module, file: str) -> types.CodeType:
    return compile(tree, file, "exec", dont_inherit=True)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and all those inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _is_same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two codes do the same at the same place: what runs is what the file has."""
    parts = ("co_name", "co_firstlineno", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    return (
        all(getattr(one, part) == getattr(other, part) for part in parts)
        and len(one.co_consts) == len(other.co_consts)
        and all(
            _is_same(a, b) if isinstance(a, types.CodeType) and isinstance(b, types.CodeType) else repr(a) == repr(b)
            for a, b in zip(one.co_consts, other.co_consts, strict=True)
        )
    )


def _decorators(node: Node) -> list[ast.expr]:
    return [] if isinstance(node, ast.Lambda) else node.decorator_list


def _begins(node: Node, code: types.CodeType) -> bool:
    """Whether a function of a source has the name and the first line of a code."""
    first = min([node.lineno, *(each.lineno for each in _decorators(node))])
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return (name, first) == (code.co_name, code.co_firstlineno)


def _columns(code: types.CodeType) -> list[tuple[Place, Place]]:
    """Where the instructions of a code stand in its source; none where Python was told not to keep that."""
    places = [(line, left, end, right) for line, end, left, right in code.co_positions()]
    known = [place for place in places if None not in place and place[:2] != place[2:]]
    return [((line, left), (end, right)) for line, left, end, right in known]  # type: ignore[misc]


def _holds(body: ast.expr, code: types.CodeType) -> bool:
    """Whether all instructions of a code stand in an expression."""
    first, last = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return all(first <= begin and end <= last for begin, end in _columns(code))


def _global_names(code: types.CodeType) -> set[str]:
    """The global names that a code uses, the functions inside it too."""
    used = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inside = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return used.union(*map(_global_names, inside))
