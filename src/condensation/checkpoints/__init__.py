"""Weights of the wild, in files and models of any framework: which units they have, and how condensed these are."""

from .files import Checkpoint as Checkpoint
from .files import open_checkpoint as open_checkpoint
from .layout import Units as Units
from .measure import measure_arrays as measure_arrays
from .measure import measure_listed as measure_listed
from .measure import units_of_arrays as units_of_arrays
from .series import Measured as Measured
from .series import measure_path as measure_path
