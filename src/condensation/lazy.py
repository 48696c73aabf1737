"""Packages whose names are imported when they are first used, so that importing the package is quick."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy(
    package: str, homes: Mapping[str, Sequence[str]], rooms: Sequence[str] = ()
) -> tuple[Callable[[str], Any], list[str]]:
    """A package's ``__getattr__`` and ``__all__``.

    Args:
        package: its ``__name__``.
        homes: the names that each of its modules has to offer.
        rooms: modules that are offered themselves.

    >>> get, names = lazy("condensation", {"errors": ("InputError",)}, ["errors"])
    >>> get("InputError").__name__, names
    ('InputError', ['InputError', 'errors'])
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in rooms:
            return import_module(f".{name}", package)
        if name in home_of:
            return getattr(import_module(f".{home_of[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, [*home_of, *rooms]
