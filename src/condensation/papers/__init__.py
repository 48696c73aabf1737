"""The papers: their figures by name, their claims, and the report on them."""

from typing import TYPE_CHECKING

from ..lazy import lazy

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
__getattr__, __all__ = lazy(__name__, _HOMES)  # an experiment of a paper can be had without its pictures
