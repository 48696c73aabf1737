"""A formula in named variables, written as text: read and computed here, never run as code.

Texts may come from strangers. A text is first cut into numbers, names and signs, then parsed, then turned into a list
of steps made of known functions of floats; whatever else it holds is refused. All work is bounded by the length.
"""

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .errors import InputError, unknown_name

MOST_CHARACTERS = 500
MOST_NESTED = 50
CONSTANTS = {"pi": math.pi, "e": math.e}


def _relu(x: Any) -> Any:
    return np.maximum(x, 0.0)


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # by name: how many values it takes, and the function
    "sin": (1, np.sin),
    "cos": (1, np.cos),
    "tan": (1, np.tan),
    "tanh": (1, np.tanh),
    "exp": (1, np.exp),
    "log": (1, np.log),
    "sqrt": (1, np.sqrt),
    "abs": (1, np.abs),
    "sign": (1, np.sign),
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
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TOKEN = re.compile(rf"(?P<blank>[ \t\r\n]+)|(?P<number>{_NUMBER})|(?P<name>[A-Za-z_]\w*)|[-+*/(),]", re.ASCII)
_KNOWN = f"numbers, variables, {' '.join(CONSTANTS)}, + - * / ** ( ) and the functions {' '.join(FUNCTIONS)}"


class _Step(NamedTuple):
    """One step on a stack of values: push a number, push a variable, or replace the last ``takes`` values by one."""

    number: float = 0.0
    variable: str = ""
    takes: int = 0
    function: Callable[..., Any] | None = None


class _Read(NamedTuple):
    steps: tuple[_Step, ...]
    variables: frozenset[str]
    constants: frozenset[str]


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
        _read(self.text)

    @property
    def names(self) -> frozenset[str]:
        """The variables it uses.

        >>> sorted(Formula("sin(pi * x) + y").names)
        ['x', 'y']
        """
        return _read(self.text).variables

    def __call__(self, /, **values: ArrayLike) -> float | np.ndarray:
        """The value of the formula: a float, or an array where a variable is one."""
        steps, variables, constants = _read(self.text)
        missing = sorted(variables - values.keys())
        if missing:
            given = ", ".join(values) or "nothing"
            raise InputError(f"the formula {_short(self.text)} needs {', '.join(missing)}, but given were: {given}")
        for name in sorted(constants & values.keys()):
            raise InputError(
                f"{name} is the constant {CONSTANTS[name]:.4f} in formulas: give the variable another name"
            )
        numbers = {name: _as_number(name, values[name]) for name in variables}
        stack: list[Any] = []
        with np.errstate(all="ignore"):
            for step in steps:
                if step.function is None:
                    stack.append(numbers[step.variable] if step.variable else np.float64(step.number))
                    continue
                taken = [stack.pop() for _ in range(step.takes)][::-1]
                try:
                    stack.append(step.function(*taken))
                except ValueError as error:
                    shapes = ", ".join(f"{name} {np.shape(number)}" for name, number in sorted(numbers.items()))
                    raise InputError(
                        f"the formula {_short(self.text)} has values of shapes that do not fit: {shapes}"
                    ) from error
        return stack[0] if isinstance(stack[0], np.ndarray) else float(stack[0])


def _as_number(name: str, value: ArrayLike) -> Any:
    """A value as a float or an array of floats (float64 both)."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "fiu":
        raise InputError(f"the variable {name} must be a real number or an array of them, not {value!r}")
    return array.astype(np.float64)[()]


@lru_cache(maxsize=1024)
def _read(text: str) -> _Read:
    """The steps that a text stands for."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"a formula has at most {MOST_CHARACTERS} characters, not {len(text)}: {_short(text)}")
    names = _scan(text)
    line = text.translate({ord(blank): " " for blank in "\t\r\n"})
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
    steps: list[_Step] = []
    _append(tree, steps, 0, text)
    constants = names.intersection(CONSTANTS)
    return _Read(tuple(steps), names.difference(CONSTANTS, FUNCTIONS), constants)


def _scan(text: str) -> frozenset[str]:
    """The names in a text, which must consist of numbers, names and signs that formulas have."""
    names: set[str] = set()
    place, open_ = 0, 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            hint = "write ** for a power" if text[place] == "^" else f"a formula consists of {_KNOWN}"
            raise InputError(
                f"{text[place]!r} at character {place + 1} of the formula {_short(text)} is not known: {hint}"
            )
        place = token.end()
        said = token.group()
        word = re.match(r"\w+", text[place:])
        if token.lastgroup == "number" and word:
            raise InputError(
                f"{said}{word.group()} in the formula {_short(text)} is no number; "
                "a product is written 2 * x, a number 2, 0.5 or 1e-3"
            )
        if token.lastgroup == "name":
            if keyword.iskeyword(said):
                raise InputError(
                    f"the word {said!r} in the formula {_short(text)} cannot be used: a formula consists of {_KNOWN}"
                )
            names.add(said)
        open_ += (said == "(") - (said == ")")
        if open_ > MOST_NESTED:
            raise _too_deep(text)
    return frozenset(names)


def _too_deep(text: str) -> InputError:
    return InputError(f"the formula {_short(text)} is nested too deep: at most {MOST_NESTED} levels can be read")


def _append(node: ast.expr, steps: list[_Step], depth: int, text: str) -> None:
    """Append the steps of a node. A chain such as a + b + c is walked in a loop, so that its length is no depth."""
    if depth > MOST_NESTED:
        raise _too_deep(text)
    chain: list[tuple[Callable[..., Any], ast.expr]] = []
    while isinstance(node, ast.BinOp):
        if type(node.op) not in _OPERATORS:
            sign = "//" if isinstance(node.op, ast.FloorDiv) else type(node.op).__name__
            raise InputError(f"{sign} in the formula {_short(text)} is not known: write /, + - * or **")
        chain.append((_OPERATORS[type(node.op)], node.right))
        node = node.left
    _append_single(node, steps, depth, text)
    for function, right in reversed(chain):
        _append(right, steps, depth + 1, text)
        steps.append(_Step(takes=2, function=function))


def _append_single(node: ast.expr, steps: list[_Step], depth: int, text: str) -> None:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            steps.append(_Step(_as_float(number, text)))
        case ast.Name(id=name) if name in FUNCTIONS:
            raise InputError(f"{name} in the formula {_short(text)} is a function: write {_call_of(name)}")
        case ast.Name(id=name):
            steps.append(_Step(CONSTANTS[name]) if name in CONSTANTS else _Step(variable=name))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _append(operand, steps, depth + 1, text)
            steps.append(_Step(takes=1, function=operator.neg))
        case ast.UnaryOp(op=ast.UAdd()):
            raise InputError(f"the formula {_short(text)} has a + with nothing before it: leave it out")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in FUNCTIONS:
                raise unknown_name(f"function in the formula {_short(text)}:", name, FUNCTIONS)
            takes, function = FUNCTIONS[name]
            if len(arguments) != takes or any(isinstance(argument, ast.Starred) for argument in arguments):
                raise InputError(f"{name} in the formula {_short(text)} is not written {_call_of(name)}")
            for argument in arguments:
                _append(argument, steps, depth + 1, text)
            steps.append(_Step(takes=takes, function=function))
        case _:
            raise InputError(f"the formula {_short(text)} holds {_said(node)}: a formula consists of {_KNOWN}")


def _as_float(number: int | float, text: str) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if value == math.inf:
        raise InputError(f"a number in the formula {_short(text)} is too large: at most 1.8e308 can be written")
    return value


def _call_of(name: str) -> str:
    return f"{name}({', '.join('ab'[: FUNCTIONS[name][0]])})"


def _said(node: ast.expr) -> str:
    """What is refused, in words; of the kinds that are not named here none gets past the scan."""
    words = {ast.Tuple: "several values", ast.Starred: "a * before a value", ast.Call: "a call that no function has"}
    return words.get(type(node), f"a {type(node).__name__}")


def _short(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:77]!r}..."
