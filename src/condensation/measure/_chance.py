r"""What chance alone gives: cosines of random directions.

For two independent uniform directions in $R^D$: $P(|\cos| > c) = I_{1-c^2}\left(\frac{D-1}2, \frac12\right)$, the
regularised incomplete beta function.
"""

import numpy as np
from scipy.special import betaincinv

from ..errors import InputError


def chance_cosine(dim: int, probability: float = 0.01) -> float:
    """The |cos| that two random directions exceed with the given probability.

    >>> round(chance_cosine(3, probability=0.5), 12)  # in three dimensions |cos| is uniform
    0.5
    """
    if dim < 2:
        raise InputError(f"directions need at least 2 dimensions, not {dim}")
    return float(np.sqrt(1 - betaincinv((dim - 1) / 2, 0.5, probability)))
