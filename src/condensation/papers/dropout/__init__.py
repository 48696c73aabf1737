"""Noise and condensation: dropout, its mean effect alone, small batches, label noise, weight decay."""

from .deep import Deep
from .few import Few
from .images import MnistImages
from .kinks import Kinks
from .line import Line
from .map import Map
from .samples import SamplesNeeded

FIGURES = (Few, Line, Deep, Map, SamplesNeeded, Kinks, MnistImages)
