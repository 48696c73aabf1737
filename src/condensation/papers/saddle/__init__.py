"""Saddle to saddle: the exponents of theory, width and equal singular values, one unit at a time or all on a line."""

from .kept import Kept
from .modes import Modes
from .units import Units

FIGURES = (Modes, Units, Kept)
