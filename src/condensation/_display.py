"""How results show themselves: a few lines of text, and in a notebook a table with a small picture beside it."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ._phrases import printable

LINES, CHARACTERS = 10, 110  # at most, of a text


class Shown:
    """A base of results that print as a few lines. A class says what it is and what one asks for first.

    ``_title`` is the first line, ``_facts`` the others by name, ``_picture`` an SVG (``_sketch.py``).
    A dataclass without facts of its own shows its fields, arrays by their shape.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Found(Shown):
    ...     share: float
    ...     names: tuple[str, ...]
    >>> Found(1 / 3, ("a", "b"))
    Found
      share  0.3333
      names  a, b
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = Shown.__repr__  # a dataclass writes its own where it finds none

    def _title(self) -> str:
        return type(self).__name__

    def _facts(self) -> Mapping[str, str]:
        fields = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        return {field.name: in_short(getattr(self, field.name)) for field in fields}

    def _picture(self) -> str:
        return ""

    def __repr__(self) -> str:
        title, facts = _cleaned(self)
        margin = max(map(len, facts), default=0)
        return "\n".join([title, *(_cut(f"  {name:{margin}}  {fact}".rstrip()) for name, fact in facts.items())])

    def _repr_html_(self) -> str:
        title, facts = _cleaned(self)
        cell = '<td style="text-align:left;padding:0 .8em 0 0">'
        rows = "".join(
            f"<tr>{cell}{html.escape(name)}</td>{cell}{html.escape(fact)}</td></tr>" for name, fact in facts.items()
        )
        return (
            '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
            f"<div><b>{html.escape(title)}</b><table>{rows}</table></div>{self._picture()}</div>"
        )


def _cleaned(value: Shown) -> tuple[str, dict[str, str]]:
    """Title and facts without what would steer a terminal, and no more of them than fit."""
    facts = {printable(name): _cut(printable(_one_line(fact))) for name, fact in value._facts().items() if fact}
    if len(facts) > LINES - 1:
        left = len(facts) - (LINES - 2)
        facts = dict(list(facts.items())[: LINES - 2]) | {"...": f"{left} more"}
    return _cut(printable(value._title())), facts


def _one_line(text: str) -> str:
    return " ".join(part for part in text.splitlines() if part)


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 4] + " ..."


def in_short(value: Any) -> str:
    """A value in a few words: an array by its shape, a long list by its first items.

    >>> import numpy as np
    >>> in_short(np.zeros((3, 2))), in_short(0.12345678), in_short(()), in_short({"a": 1, "b": 2})
    ('array of 3 x 2', '0.1235', 'none', 'a, b')
    """
    if hasattr(value, "shape") and getattr(value, "ndim", 0):
        return f"array of {' x '.join(map(str, value.shape))}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) or (hasattr(value, "dtype") and not isinstance(value, int)):
        return short_number(float(value))
    if isinstance(value, Shown):
        return value._title()
    if isinstance(value, Mapping | list | tuple | set):
        return short_list(value) if len(value) else "none"
    return "" if value is None else str(value)


def short_number(value: Any) -> str:
    """A number in four digits.

    >>> short_number(1234567.0), short_number(50.0), short_number(float("nan"))
    ('1.235e+06', '50', '-')
    """
    return "-" if math.isnan(value) else f"{value:.4g}"


def spread(values: Any) -> str:
    """The range and the median of the numbers of an array, all finite.

    >>> import numpy as np
    >>> spread(np.array([1.0, 2.0, 6.0]))
    '1 to 6, median 2'
    """
    ordered = values.copy()
    ordered.sort()
    middle = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return f"{short_number(ordered[0])} to {short_number(ordered[-1])}, median {short_number(middle)}"


def short_numbers(values: Iterable[Any], most: int = 6) -> str:
    """The first of some numbers.

    >>> short_numbers([1.0, 0.5, 2.25], most=2)
    '1, 0.5, ... (3 in all)'
    """
    return short_list([short_number(float(value)) for value in values], most)


def entries(vector: Iterable[Any], most: int = 6) -> str:
    """The first entries of a vector of size one.

    >>> entries([0.6, 1e-17, -0.8])
    '0.6, 0, -0.8'
    """
    return short_list([f"{0.0 if abs(value) < 5e-4 else float(value):.3g}" for value in vector], most)


def short_list(items: Iterable[Any], most: int = 6) -> str:
    """The first of some items, and how many there are."""
    texts = [str(item) for item in items]
    return ", ".join(texts) if len(texts) <= most else f"{', '.join(texts[:most])}, ... ({len(texts)} in all)"
