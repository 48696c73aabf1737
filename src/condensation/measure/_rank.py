r"""Ranks that count singular values $s_i$ by their size: k for k equal ones, and 1 <= stable <= effective <= rank.

The effective rank counts small singular values, too: noise of 1% in all dimensions adds to it. The stable rank hardly
sees them. Neither knows of lines: k lines in general position have rank k, but many lines in a plane have rank 2.

Up to 1024 units or inputs, whichever are fewer, all singular values are computed. Of larger matrices the ranks are
estimated in a time that grows with the number of weights (``_spectrum``): to 3% on the spectra that the tests try.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._similarity import as_weights
from ._spectrum import estimated_spectrum

EXACT = 1024  # units or inputs, whichever are fewer, up to which all singular values are computed


def effective_rank(weights: ArrayLike) -> float:
    r"""$\exp\left(-\sum_i p_i \log p_i\right)$ with $p_i = s_i / \sum_j s_j$ (Roy and Vetterli): from 1 to the rank.

    >>> round(effective_rank(np.eye(3)), 12)
    3.0
    """
    return ranks(as_weights(weights))[0]


def stable_rank(weights: ArrayLike) -> float:
    r"""$|W|_F^2 / |W|_2^2 = \sum_i s_i^2 / s_1^2$: from 1 to the rank.

    >>> stable_rank(np.diag([2.0, 1.0, 1.0]))
    1.5
    """
    return ranks(as_weights(weights))[1]


def ranks(array: Float[np.ndarray, "units inputs"]) -> tuple[float, float]:
    """Effective and stable rank of an array that ``as_weights`` gave."""
    values, counts = _singular_values(array)
    total = float(values @ counts)
    if not total > 0:
        raise InputError("all weights are zero: the rank is zero")
    shares = values / total
    entropy = -float(counts @ (shares * np.log(np.where(shares > 0, shares, 1))))
    squares = counts @ values**2 if min(array.shape) <= EXACT else np.einsum("ij,ij->", array, array, dtype=float)
    return float(np.exp(entropy)), float(squares / values.max() ** 2)


def _singular_values(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values, and how many there are of each."""
    if min(array.shape) > EXACT:
        return estimated_spectrum(array)
    if array.dtype != np.float32:
        values = np.linalg.svd(array, compute_uv=False)
    else:  # its squares in float64 are exact: the smaller product has all there is to know
        squares = np.linalg.eigvalsh(_smaller_product(array))
        floor = len(squares) * np.finfo(float).eps * squares.max()  # what rounding alone leaves
        values = np.sqrt(np.where(squares > floor, squares, 0))
    return values, np.ones(len(values))


def _smaller_product(array: np.ndarray) -> np.ndarray:
    """The products of all units, or of all inputs where there are fewer, in float64; the copy is free again then."""
    wide = array.astype(float) if array.shape[0] <= array.shape[1] else array.astype(float).T
    return wide @ wide.T
