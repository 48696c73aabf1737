"""Phase diagrams, a file each: three of the literature, two of our own."""

from . import eps, initial, lines, three_layer, two_layer

MODULES = (two_layer, initial, three_layer, lines, eps)
FIGURES = tuple(module.RECIPE for module in MODULES)
SWEEPS = {module.NAME: module.sweeps for module in MODULES}  # by their size
