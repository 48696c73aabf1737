"""Phase diagrams, a file each: three of the literature, two of our own."""

from . import two_layer

MODULES = (two_layer,)
RECIPES = tuple(module.RECIPE for module in MODULES)
SWEEPS = {module.NAME: module.sweeps for module in MODULES}  # by their size
