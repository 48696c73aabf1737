"""Phase diagrams, a file each: three of the literature, two additional ones."""

from .eps import Eps
from .initial import Initial
from .lines import LinesDiagram
from .three_layer import ThreeLayer
from .two_layer import TwoLayer

FIGURES = (TwoLayer, Initial, ThreeLayer, LinesDiagram, Eps)
