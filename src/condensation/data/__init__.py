"""Data: what a network is trained on. Each kind draws samples x and targets y for a seed."""

from .arrays import Arrays as Arrays
from .images import Images as Images
from .images import images_or_digits as images_or_digits
from .synthetic import Synthetic as Synthetic
from .synthetic import hinges as hinges
from .synthetic import sine_sum as sine_sum
from .synthetic import two_waves as two_waves
from .written import Expression as Expression
from .written import Points as Points

Data = Synthetic | Arrays | Images | Expression | Points
