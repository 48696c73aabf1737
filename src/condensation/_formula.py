"""A formula in named variables, written as text: read and computed here, never run as code.

Texts may come from strangers. A text is cut into numbers, names and signs, parsed by ``ast``, and its tree is walked:
whatever is no known function of floats is refused. All work is bounded by the length of the text.
"""

import ast
import keyword
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError, unknown_name

MOST_CHARACTERS = 500
MOST_NESTED = 50
CONSTANTS = {"pi": math.pi, "e": math.e}


def _relu(x: Any) -> Any:
    return np.maximum(x, 0.0)


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # by name: how many values it takes, and the function
    **{name: (1, getattr(np, name)) for name in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "abs", "sign")},
    "relu": (1, _relu),
    "max": (2, np.maximum),
    "min": (2, np.minimum),
}
_OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_NUMBER = r"(?>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_TOKEN = re.compile(
    rf"[ \t\r\n]+|(?P<glued>{_NUMBER}\w+)|{_NUMBER}|(?P<name>[A-Za-z_]\w*)|[-+*/(),]|(?P<unknown>.)",
    re.ASCII | re.DOTALL,
)
_KNOWN = f"numbers, variables, {' '.join(CONSTANTS)}, + - * / ** ( ) and the functions {' '.join(FUNCTIONS)}"


@dataclass(frozen=True)
class Formula:
    """A formula such as ``(gamma - gamma_prime) / 2``, called with the values of its variables.

    Numbers are floats throughout: what has no finite real value is inf or NaN, as in NumPy, and nothing warns. Values
    may be arrays of shapes that go together; a formula without variables gives a float whatever is passed. Values that
    it does not use are ignored.

    >>> Formula("2 * max(x, 1) ** 2")(x=3)
    18.0

    Attributes:
        text: numbers, variables (plain letters, digits, underscores), pi, e, + - * / ** and parentheses, and calls of
            sin, cos, tan, tanh, exp, log, sqrt, abs, sign, relu, max and min (of two values).
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a formula must be a text such as '(a - b) / 2', not {self.text!r}")
        _parse(self.text)

    @property
    def names(self) -> frozenset[str]:
        """The variables it uses.

        >>> sorted(Formula("sin(pi * x) + y").names)
        ['x', 'y']
        """
        return _parse(self.text)[1].difference(CONSTANTS)

    def __call__(self, /, **values: ArrayLike) -> float | np.ndarray:
        """The value of the formula: a float, or an array where a variable is one."""
        tree, names = _parse(self.text)
        if missing := sorted(names - values.keys() - CONSTANTS.keys()):
            given = ", ".join(values) or "nothing"
            raise InputError(f"the formula {_short(self.text)} needs {', '.join(missing)}, but given were: {given}")
        for name in sorted(names & values.keys() & CONSTANTS.keys()):
            raise InputError(
                f"{name} is the constant {CONSTANTS[name]:.4f} in formulas: give the variable another name"
            )
        numbers = {name: _as_number(name, values.get(name, CONSTANTS.get(name))) for name in names}
        try:
            with np.errstate(all="ignore"):
                result = _evaluate(tree, numbers)
        except ValueError as error:
            shapes = ", ".join(f"{name} {np.shape(numbers[name])}" for name in sorted(self.names))
            raise InputError(
                f"the formula {_short(self.text)} has values of shapes that do not fit: {shapes}"
            ) from error
        return result if isinstance(result, np.ndarray) else float(result)


def _as_number(name: str, value: Any) -> Any:
    """A value as a float or an array of floats (float64 both)."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "fiu":
        raise InputError(f"the variable {name} must be a real number or an array of them, not {value!r}")
    return array.astype(np.float64)[()]


def _evaluate(node: ast.expr, numbers: Mapping[str, Any]) -> Any:
    """The value of a node that was checked."""
    match node:
        case ast.BinOp(left=left, op=sign, right=right):
            return _OPERATORS[type(sign)](_evaluate(left, numbers), _evaluate(right, numbers))
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, numbers)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name][1](*(_evaluate(argument, numbers) for argument in arguments))
        case ast.Name(id=name):
            return numbers[name]
        case ast.Constant(value=number):
            return np.float64(float(number))  # type: ignore[arg-type]
    raise AssertionError(f"not checked: {node}")


@lru_cache(maxsize=1024)
def _parse(text: str) -> tuple[ast.expr, frozenset[str]]:
    """The checked syntax tree of a text, and the names of its variables and constants."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"a formula has at most {MOST_CHARACTERS} characters, not {len(text)}: {_short(text)}")
    names = _check_tokens(text)
    if max(accumulate((sign == "(") - (sign == ")") for sign in text), default=0) > MOST_NESTED:
        raise _too_deep(text)
    line = re.sub(r"[\t\r\n]", " ", text)
    code = line.lstrip(" ")
    try:
        tree = ast.parse(code, mode="eval").body
    except SyntaxError as error:
        place = min(len(line) - len(code) + (error.offset or 1), max(len(line), 1))
        raise InputError(
            f"the formula {_short(text)} cannot be read at character {place}; one such as '(a - b) / 2' can"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise _too_deep(text) from error
    _check(tree, text, 0)
    return tree, names.difference(FUNCTIONS)


def _check_tokens(text: str) -> frozenset[str]:
    """Refuse a text of other things than numbers, names and the signs of formulas; the names in it."""
    names: set[str] = set()
    for token in _TOKEN.finditer(text):
        word = token.group()
        if token["unknown"]:
            hint = "write ** for a power" if word == "^" else f"a formula consists of {_KNOWN}"
            raise InputError(
                f"{word!r} at character {token.start() + 1} of the formula {_short(text)} is not known: {hint}"
            )
        if token["glued"]:
            raise InputError(
                f"{word} in the formula {_short(text)} is no number; "
                "a product is written 2 * x, a number 2, 0.5 or 1e-3"
            )
        if keyword.iskeyword(word):
            raise InputError(
                f"the word {word!r} in the formula {_short(text)} cannot be used: a formula consists of {_KNOWN}"
            )
        names |= {word} if token["name"] else set()
    return frozenset(names)


def _check(node: ast.expr, text: str, depth: int) -> None:
    """Refuse what formulas do not have. In a chain such as a + b + c the left side is no level of its own."""
    formula = f"the formula {_short(text)}"
    if depth > MOST_NESTED:
        raise _too_deep(text)
    match node:
        case ast.BinOp(left=left, op=sign, right=right):
            if type(sign) not in _OPERATORS:
                written = "//" if isinstance(sign, ast.FloorDiv) else type(sign).__name__
                raise InputError(f"{written} in {formula} is not known: write /, + - * or **")
            _check(left, text, depth)
            _check(right, text, depth + 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, text, depth + 1)
        case ast.UnaryOp(op=ast.UAdd()):
            raise InputError(f"{formula} has a + with nothing before it: leave it out")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise unknown_name(f"function in {formula}:", name, FUNCTIONS)
            if len(arguments) != FUNCTIONS[name][0] or any(isinstance(part, ast.Starred) for part in arguments):
                raise InputError(f"{name} in {formula} is not written {_call_of(name)}")
            for argument in arguments:
                _check(argument, text, depth + 1)
        case ast.Name(id=name):
            if name in FUNCTIONS:
                raise InputError(f"{name} in {formula} is a function: write {_call_of(name)}")
        case ast.Constant(value=int() | float() as number):
            if number > sys.float_info.max:
                raise InputError(f"a number in {formula} is too large: at most 1.8e308 can be written")
        case _:  # no other kinds get past the tokens
            words = {ast.Tuple: "several values", ast.Starred: "a * before a value"}
            held = words.get(type(node), "a call that no function has")
            raise InputError(f"{formula} holds {held}: a formula consists of {_KNOWN}")


def _call_of(name: str) -> str:
    return f"{name}({', '.join('ab'[: FUNCTIONS[name][0]])})"


def _too_deep(text: str) -> InputError:
    return InputError(f"the formula {_short(text)} is nested too deep: at most {MOST_NESTED} levels can be read")


def _short(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:77]!r}..."
