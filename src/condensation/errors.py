"""Errors about the caller's input: one sentence that names what cannot be used, and what would have worked."""

import difflib
import math
import numbers
from collections.abc import Callable, Iterable


class InputError(ValueError):
    """The caller's input cannot be used; the message is one sentence for a person."""


def unknown_name(what: str, name: object, known: Iterable[object]) -> InputError:
    """The error for a name that is not known: lists the known ones and the nearest.

    >>> print(unknown_name("activation", "tanhh", ["relu", "tanh"]))
    unknown activation 'tanhh'; did you mean 'tanh'? Known: relu, tanh
    """
    names, name = [str(k) for k in known], name if len(str(name)) <= 80 else f"{str(name)[:77]}..."
    by_case = {known_name.lower(): known_name for known_name in names}
    near = [by_case[k] for k in difflib.get_close_matches(str(name).lower(), by_case, n=1, cutoff=0.5)]
    hint = f"; did you mean {near[0]!r}? " if near else "; "
    return InputError(f"unknown {what} {name!r}{hint}{'Known' if near else 'known'}: {', '.join(names)}")


def one_of(what: str, known: Iterable[object]) -> Callable[[str, object], None]:
    """A check that refuses a name that is not known."""

    def check(place: str, name: object) -> None:
        if name not in known:
            raise unknown_name(what, name, known)

    return check


def check_positive(what: str, value: float) -> None:
    """Refuse a number that is not finite and above zero."""
    if not 0 < value < float("inf"):
        raise InputError(f"{what} must be a positive finite number, not {value!r}")


def check_finite(what: str, value: float) -> None:
    """Refuse NaN and infinity."""
    if not math.isfinite(value):
        raise InputError(f"{what} must be a finite number, not {value!r}")


def check_share(what: str, value: float) -> None:
    """Refuse a number that is not between 0 and 1."""
    if not 0 <= value <= 1:
        raise InputError(f"{what} is a share between 0 and 1, not {value!r}")


def check_whole(what: str, value: int, least: int = 1) -> None:
    """Refuse a value that is not a whole number of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {value!r}")
