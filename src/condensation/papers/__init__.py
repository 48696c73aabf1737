"""The papers: their figures by name, their claims, and the report on them."""

from .claims import Claim as Claim
from .claims import judge as judge
from .reproduce import FIGURES as FIGURES
from .reproduce import reproduce as reproduce
