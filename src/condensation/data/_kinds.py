"""The kinds of data that an experiment can have."""

from ._arrays import Arrays
from ._drawn import Drawn
from ._images import Images
from ._inline import Expression, Points
from ._sequences import AnchorFunctions, InContextRegression, RandomSequences
from ._synthetic import Synthetic
from ._teacher import Teacher
from ._text import Text

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
    | Text
)
"""The kinds of data that an experiment can have."""
