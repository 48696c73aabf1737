"""How far k_eff and the ranks of a layer depend on which units it happens to have: their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ._lines import Layer
from ._rank import ranks
from ._similarity import as_weights

NAN = float("nan")
LEAST_FOR_ERRORS = 8  # units with a direction


@dataclass(frozen=True)
class Errors:
    """Standard errors of the effective numbers of a layer."""

    k_eff: float
    effective_rank: float
    stable_rank: float


def bootstrap_errors(weights: ArrayLike, *, threshold: float | None = None, draws: int = 50, seed: int = 0) -> Errors:
    """Standard errors by a bootstrap over units: each draw measures half of them, without repetition.

    The ordinary bootstrap repeats units, and repeated units are a line: it would make condensed what is not. The spread
    of a mean over random halves is the standard error of that over all units. Numbers that grow with the units, as
    k_eff of random ones does, are compared by their relative spread.

    Args:
        weights: units x inputs, bias included.
        threshold: the cosine that decides, as in ``find_lines``.
        draws: how many halves are measured; 50 give the error to 10%.
        seed: of the draws.

    >>> errors = bootstrap_errors(np.ones((20, 3)))
    >>> round(errors.k_eff, 9), round(errors.effective_rank, 6)
    (0.0, 0.0)
    """
    layer, stream = Layer.of(as_weights(weights), threshold), np.random.default_rng(seed)
    units = layer.weights[layer.norms > 0]
    if layer.copies * len(units) < LEAST_FOR_ERRORS:
        raise InputError(f"errors need at least {LEAST_FOR_ERRORS} units with a direction, not {len(units)}")
    k_eff = NAN
    if layer.dimensions > 1:
        halves = layer.pairs.count_halves(layer.threshold, draws, stream)
        k_eff = layer.pairs.effective_count(layer.threshold) * _spread(halves)
    parts = (units[stream.permutation(len(units))[: (len(units) + 1) // 2]] for _ in range(draws))
    of_halves = np.array([ranks(part) for part in parts])
    effective, stable = (rank * _spread(own) for rank, own in zip(ranks(units), of_halves.T, strict=True))
    return Errors(k_eff, effective, stable)


def _spread(values: np.ndarray) -> float:
    """The standard deviation, relative to the mean."""
    return float(values.std(ddof=1) / values.mean())
