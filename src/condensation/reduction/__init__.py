"""Reduction: the units of one line become one effective unit; and its inverse, embedding."""

from .embed import embed as embed
from .reduce import Reduction as Reduction
from .reduce import reduce as reduce
