"""Noise and condensation: dropout, its mean effect alone, small batches, label noise, weight decay."""

from .few import Few
from .line import Line

FIGURES = (Few, Line)
