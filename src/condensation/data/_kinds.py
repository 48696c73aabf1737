"""The kinds of data that an experiment can have."""

from ._arrays import Arrays
from ._drawn import Drawn
from ._images import Images
from ._inline import Expression, Points
from ._sequences import AnchorFunctions, InContextRegression, RandomSequences
from ._synthetic import Synthetic
from ._teacher import Teacher

Data = (
    Synthetic
    | Arrays
    | Images
    | Expression
    | Points
    | Teacher
    | Drawn
    | AnchorFunctions
    | InContextRegression
    | RandomSequences
)
"""The kinds of data that an experiment can have."""
