"""Small pieces of phrases: numbers and lists in words, and text that is safe to show."""

import unicodedata
from collections.abc import Collection, Iterable
from typing import Any

STEERING = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # control and format characters, surrogates, line separators


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "layer"), counted(3, "layer")
    ('one layer', '3 layers')
    """
    return f"one {noun}" if count == 1 else f"{count} {noun}s"


def listed(items: Iterable[object]) -> str:
    """Items with commas and a last "and".

    >>> listed([8, 16, 32]), listed([8])
    ('8, 16 and 32', '8')
    """
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last


def joined(values: Iterable[Any], form: str = "") -> str:
    """Values one after another, each in a form.

    >>> joined([0.5, 0.25], ".0%")
    '50%, 25%'
    """
    return ", ".join(f"{value:{form}}" for value in values)


def least_to_most(values: Collection[Any]) -> str:
    """The range of whole numbers in words.

    >>> least_to_most([2, 2]), least_to_most([1, 4])
    ('2', '1 to 4')
    """
    low, high = int(min(values)), int(max(values))
    return str(low) if low == high else f"{low} to {high}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "seed"), plural(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    r"""A text from elsewhere as it can be shown: what would steer a terminal or turn its direction stands as an escape.

    >>> printable("fc\x1b[2J.weight"), printable("größe")
    ('fc\\x1b[2J.weight', 'größe')
    """
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in STEERING else character
        for character in text
    )
