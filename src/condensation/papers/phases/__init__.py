"""Phase diagrams, a file each: three of the literature, three additional ones."""

from .eps import Eps
from .initial import Initial
from .lazy import Lazy
from .lines import LinesDiagram
from .three_layer import ThreeLayer
from .two_layer import TwoLayer

FIGURES = (TwoLayer, Initial, ThreeLayer, LinesDiagram, Eps, Lazy)
