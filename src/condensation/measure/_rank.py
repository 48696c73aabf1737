r"""Ranks that count singular values $s_i$ by their size: k for k equal ones, and 1 <= stable <= effective <= rank.

The effective rank counts small singular values, too: noise of 1% in all dimensions adds to it. The stable rank hardly
sees them. Neither knows of lines: k lines in general position have rank k, but many lines in a plane have rank 2. Of
matrices with more than 2048 rows and columns they are estimated (``_spectrum``), to within 3% on the spectra
that the tests try.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._similarity import as_weights
from ._spectrum import Spectrum, spectrum

KEPT = 0.99  # of the squared norm, in which a layer of low rank is told


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
    return ranks_of(spectrum(array))


def ranks_of(found: Spectrum) -> tuple[float, float]:
    """Effective and stable rank of singular values."""
    if not len(found.values):
        raise InputError("all weights are zero: the rank is zero")
    shares = found.values / float(found.counts @ found.values)
    entropy = -float(found.counts @ (shares * np.log(shares)))
    return float(np.exp(entropy)), float(found.counts @ shares**2 / shares.max() ** 2)


def dimensions_kept(found: Spectrum, share: float = KEPT) -> int:
    """How many of the largest singular values hold a share of the squared norm.

    >>> dimensions_kept(Spectrum(np.array([3.0, 1.0, 0.1]), np.ones(3)))
    2
    """
    squares = np.cumsum(found.counts * found.values**2)
    place = int(np.searchsorted(squares, share * squares[-1]))
    return int(np.ceil(found.counts[: place + 1].sum()))
