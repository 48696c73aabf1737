"""How similar several networks are to each other."""

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ._similarity import as_floats


def similarity_to_others(similarity: Float[np.ndarray, "networks networks"]) -> Float[np.ndarray, " networks"]:
    """For each of several networks the median of its similarities to all others.

    Args:
        similarity: of each network in one set (rows) to each in another or the same set (columns). A row and a column
            at the same position are left out as one network; those of a network are its row and its column.

    >>> similarity_to_others(np.array([[1.0, 0.2, 0.4], [0.2, 1.0, 0.6], [0.4, 0.6, 1.0]]))
    array([0.3, 0.4, 0.5])
    """
    matrix = as_floats("similarities", similarity)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise InputError(f"similarities must be of two networks or more to as many, not of shape {matrix.shape}")
    others = ~np.eye(len(matrix), dtype=bool)
    return np.array([np.median([*matrix[k, others[k]], *matrix[others[k], k]]) for k in range(len(matrix))])
