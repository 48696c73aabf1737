"""How similar several networks are to each other."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._similarity import as_floats


def similarity_to_others(similarity: ArrayLike) -> Float[np.ndarray, " networks"]:
    """For each of several networks the median of its similarities to all others.

    Args:
        similarity: of each network of one set (a row) to each of another set, or of the same (a column), networks x
            networks. The row and the column at one position belong together: their common entry is left out.

    >>> similarity_to_others(np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]]))
    array([0.3, 0.4, 0.5])
    """
    matrix = as_floats("similarities", similarity)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InputError(f"similarities must be of two networks or more to as many, not of shape {matrix.shape}")
    others = ~np.eye(len(matrix), dtype=bool)
    return np.array([np.median([*matrix[k, others[k]], *matrix[others[k], k]]) for k in range(len(matrix))])
