"""Errors about the caller's input: one sentence that names what cannot be used, and what would have worked."""

import difflib
import math
import numbers
from collections.abc import Callable, Iterable

_SHOWN = 80  # characters of a value in an error


class InputError(ValueError):
    """The caller's input cannot be used; the message is one sentence for a person."""


class Damaged(InputError):
    """A file that this package wrote has other bytes than were written."""


def brief(value: object) -> str:
    """A value as an error shows it: the middle of a long one is left out.

    >>> brief(0.5), len(brief("a" * 999)), brief(10**9999)
    ('0.5', 85, 'a very large int')
    """
    try:
        text = repr(value).replace("\n", " ")
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in lists in lists
        return f"a very large {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]} ... {text[-_SHOWN // 2 :]}"


def unknown_name(what: str, name: object, known: Iterable[object]) -> InputError:
    """The error for a name that is not known: lists the known ones and the nearest.

    >>> print(unknown_name("activation", "tanhh", ["relu", "tanh"]))
    unknown activation 'tanhh'; did you mean 'tanh'? Known: relu, tanh
    """
    names = [str(k) for k in known]
    by_case = {known_name.lower(): known_name for known_name in names}
    near = [by_case[k] for k in difflib.get_close_matches(str(name)[:_SHOWN].lower(), by_case, n=1, cutoff=0.5)]
    hint = f"; did you mean {near[0]!r}? " if near else "; "
    return InputError(f"unknown {what} {brief(name)}{hint}{'Known' if near else 'known'}: {', '.join(names)}")


def one_of(what: str, known: Iterable[object]) -> Callable[[str, object], None]:
    """A check that refuses a name that is not known."""

    def check(place: str, name: object) -> None:
        if name not in known:
            raise unknown_name(what, name, known)

    return check


def check_positive(what: str, value: float) -> None:
    """Refuse a number that is not finite and above zero."""
    if not 0 < value < float("inf"):
        raise InputError(f"{what} must be a positive finite number, not {brief(value)}")


def check_not_negative(what: str, value: float) -> None:
    """Refuse a number that is not finite and at least zero."""
    if not 0 <= value < float("inf"):
        raise InputError(f"{what} must be a finite number of at least 0, not {brief(value)}")


def check_finite(what: str, value: float) -> None:
    """Refuse NaN and infinity."""
    if not math.isfinite(value):
        raise InputError(f"{what} must be a finite number, not {value!r}")


def check_share(what: str, value: float) -> None:
    """Refuse a number that is not between 0 and 1."""
    if not 0 <= value <= 1:
        raise InputError(f"{what} is a share between 0 and 1, not {value!r}")


def check_threshold(value: float | None) -> None:
    """Refuse what is not a cosine between 0 and 1, the ends left out, where one is given."""
    if value is not None and not (isinstance(value, numbers.Real) and 0 < value < 1):
        raise InputError(f"the threshold is a cosine between 0 and 1, not {value!r}")


def check_whole(what: str, value: int, least: int = 1, bits: int = 31) -> None:
    """Refuse a value that is not a whole number of at least ``least``, and of at most so many bits."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {brief(value)}")
    if value >= 2**bits:  # 31: the sizes and steps of arrays and loops
        raise InputError(f"{what} must be below 2^{bits}, not {brief(value)}")
