"""Small pieces of the phrases in which the parts of an experiment describe themselves."""

from collections.abc import Iterable


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
