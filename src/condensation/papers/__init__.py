"""The papers: their figures by name, their claims, and the report on them."""

from .claims import Claim as Claim
from .claims import Rule as Rule
from .claims import Seeds as Seeds
from .claims import Statement as Statement
from .claims import judge as judge
from .reproduce import RECIPES as RECIPES
from .reproduce import reproduce as reproduce
from .section import Section as Section
from .variant import Variant as Variant
