"""Messages of Protocol Buffers as their fields, by number: enough to look into a file without its schema."""

from collections.abc import Iterator

_WIDTHS = {1: 8, 5: 4}


class Broken(ValueError):
    """Bytes that are no message."""


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message in their order: a number as it is, bytes as a view of them.

    >>> [number for number, value in fields(memoryview(b"\\x08\\x07\\x12\\x01a"))]
    [1, 2]
    """
    place = 0
    while place < len(message):
        tag, place = varint(message, place)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise Broken("a field has the number 0")
        if kind == 0:
            value, place = varint(message, place)
            yield number, value
            continue
        if kind == 2:
            width, place = varint(message, place)
        elif kind in _WIDTHS:
            width = _WIDTHS[kind]
        else:
            raise Broken(f"a field has the type {kind}")
        if place + width > len(message):
            raise Broken("a field reaches beyond the end: it is truncated or broken")
        yield number, message[place : place + width]
        place += width


def varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it."""
    value = 0
    for k in range(10):
        if place + k >= len(message):
            raise Broken("a number has no end: it is truncated or broken")
        byte = message[place + k]
        value |= (byte & 127) << (7 * k)
        if byte < 128:
            return value & (2**64 - 1), place + k + 1
    raise Broken("a number has more than 64 bits")


def signed(value: int) -> int:
    """A number as one with a sign.

    >>> signed(2**64 - 1)
    -1
    """
    return value - 2**64 if value >= 2**63 else value


def last(message: memoryview, number: int) -> int | memoryview | None:
    """The last value of a field; None where there is none."""
    found = None
    for own, value in fields(message):
        found = value if own == number else found
    return found


def text(value: int | memoryview | None) -> str:
    """A field that holds text."""
    return str(bytes(value), "utf-8", "replace") if isinstance(value, memoryview) else ""
