"""The papers: their figures by name, their claims, and the report on them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .claims import Claim as Claim
    from .claims import Rule as Rule
    from .claims import Seeds as Seeds
    from .claims import Statement as Statement
    from .claims import judge as judge
    from .make import RECIPES as RECIPES
    from .make import reproduce as reproduce
    from .section import Section as Section
    from .variant import Variant as Variant

_HOMES = {
    "claims": ("Claim", "Rule", "Seeds", "Statement", "judge"),
    "make": ("RECIPES", "reproduce"),
    "section": ("Section",),
    "variant": ("Variant",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [*_HOME_OF]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:  # an experiment of a paper can be had without its pictures
    from importlib import import_module

    if name in _HOME_OF:
        return getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
