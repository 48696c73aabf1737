"""Plain data from texts: TOML and JSON, which may come from anywhere, read within bounds.

A parser fails in more ways than by its own error (numbers of too many digits, nesting beyond the stack), and what it
lets through would fail later, where it is walked or becomes a float. All of that is refused here, in one sentence.
"""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._regular import check_regular
from .errors import InputError, brief

MOST_NESTED = 64
MOST_BYTES = 2**24  # of a settings file; one without an end, such as a device, is refused there
_KEY = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_KEY}[ \t]*+\.[ \t]*+){{{MOST_NESTED}}}")  # parsed in quadratic time
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_WHOLE = 2**63  # whole numbers are below, as in TOML


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    if _LONG_KEY.search(text):
        raise _too_deep("TOML")
    return _parse(tomllib.loads, text, "TOML")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text."""
    return _parse(json.loads, text, "JSON")


def read_text(path: Path, what: str) -> str:
    """The text of a file of settings: UTF-8, of a bounded size."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InputError(f"the {what} file {path} cannot be read: it has more than {MOST_BYTES:,} bytes")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the {what} file {path} cannot be read: {getattr(error, 'strerror', error)}") from error


def _parse(parse: Callable[[Any], Any], text: str | bytes, kind: str) -> Any:
    try:
        plain = parse(text)
    except RecursionError:
        raise _too_deep(kind) from None
    except ValueError as error:  # not of that kind, or a number of more digits than Python reads
        if "int_max_str_digits" in str(error):
            raise _too_large(kind) from None
        raise InputError(f"this is not {kind}: {error}") from error
    check_plain(plain, kind)
    return plain


def check_plain(plain: Any, kind: str = "data") -> None:
    """Refuse what no setting has: deep nesting, whole numbers of more than 64 bits, texts that no file can be named."""
    level = [plain]
    for _ in range(MOST_NESTED + 1):
        inside: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inside += [*value, *value.values()]
            elif isinstance(value, list):
                inside += value
            elif isinstance(value, int) and not -_WHOLE <= value < _WHOLE:
                raise _too_large(kind)
            elif isinstance(value, str) and not value.isprintable() and _NO_TEXT.search(value):
                raise InputError(f"this {kind} has a text with a NUL or half a character: {brief(value)}")
        level = inside
        if not level:
            return
    raise _too_deep(kind)


def _too_deep(kind: str) -> InputError:
    return InputError(f"this {kind} is nested deeper than {MOST_NESTED} levels")


def _too_large(kind: str) -> InputError:
    return InputError(f"this {kind} has a whole number of more than 64 bits; a larger number is written as 1e30")
