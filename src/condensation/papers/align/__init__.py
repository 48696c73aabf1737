"""Early alignment of relu networks: points that are never fitted, one direction for a cone, two for two classes."""

from .again import Again
from .classes import Classes
from .cone import Cone
from .deep import Deep
from .dims import Dims
from .points import ThreePoints
from .pursuit import NeuronPursuit

FIGURES = (ThreePoints, Cone, Dims, Classes, Deep, Again, NeuronPursuit)
