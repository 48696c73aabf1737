r"""Units that repeat others: the same orientation, to within 2.6 degrees.

k_eff hardly sees a few copies among thousands of units. They are found by sorting: exact ones by their numbers, near
ones by their place in a few random projections, where orientations that are $\epsilon$ apart differ by $\epsilon$
times a normal number. What is near there is then compared in all inputs.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ._similarity import chance_probability, norms

COPY = 0.999  # cosine from which on a unit repeats another
PROJECTIONS = 8
FARTHEST = 5.5  # of a normal number in as many dimensions, but for one in 10^5
NEIGHBOURS = 4  # that are compared with each unit
CERTAIN = 1e-3  # probability below which chance did not make the copies


def copies(array: Float[np.ndarray, "units inputs"], without_bias: bool = False) -> tuple[int, float]:
    """How many units repeat others, and how many pairs of random units would.

    Args:
        array: of units x inputs that ``as_weights`` gave.
        without_bias: the last input is a bias, and copies are so without it as well.

    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(50, 30))
    >>> copies(np.concatenate([weights, 2 * weights[:7]]))[0]
    7
    """
    views = [_orientations(array), *([_orientations(array[:, :-1])] if without_bias else [])]
    alive = np.all([view.any(axis=1) for view in views], axis=0)
    views = [view[alive] for view in views]
    u = views[0]
    if len(u) < 2 or min(view.shape[1] for view in views) < 2:
        return 0, 0.0
    firsts = _equal(u)
    pairs = _near(u[firsts])
    for view in views:
        pairs = pairs[np.einsum("ij,ij->i", view[firsts[pairs[:, 0]]], view[firsts[pairs[:, 1]]]) >= COPY]
    return len(u) - _parts(len(firsts), pairs), _by_chance(u)


def beyond_chance(count: int, expected: float) -> bool:
    """Whether random units would hardly have so many copies.

    >>> beyond_chance(1, 1e-9), beyond_chance(3, 2.0), beyond_chance(0, 0.0)
    (True, False, False)
    """
    from scipy.stats import poisson

    return count > 0 and float(poisson.sf(count - 1, expected)) < CERTAIN


def _orientations(array: np.ndarray) -> np.ndarray:
    r = norms(array)
    return array / np.where(r > 0, r, 1)[:, None].astype(array.dtype)


def _equal(u: np.ndarray) -> np.ndarray:
    """Which units are the first of those that are equal to the last digit."""
    rows = np.ascontiguousarray(u).view(np.dtype((np.void, u.dtype.itemsize * u.shape[1])))[:, 0]
    return np.sort(np.unique(rows, return_index=True)[1])


def _near(u: np.ndarray) -> np.ndarray:
    """Pairs of units that are near each other in random projections."""
    from scipy.spatial import KDTree

    directions = np.random.default_rng(0).normal(size=(u.shape[1], PROJECTIONS)).astype(u.dtype)
    places = (u @ directions).astype(float)
    radius = FARTHEST * float(np.sqrt(2 * (1 - COPY)))
    found = KDTree(places).query(places, NEIGHBOURS, distance_upper_bound=radius)
    distance, near = (np.reshape(part, (len(places), NEIGHBOURS)) for part in found)
    one, place = np.nonzero(np.isfinite(distance))
    return np.stack([one, near[one, place]], axis=1)


def _parts(units: int, pairs: np.ndarray) -> int:
    """How many groups of connected units there are."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(units, units))
    return int(connected_components(links, directed=False, return_labels=False))


def _by_chance(u: np.ndarray) -> float:
    """Expected pairs of copies among random units of as many dimensions as the inputs effectively have."""
    size = (u.astype(float) ** 2).mean(axis=0)
    dimensions = max(2.0, float(size.sum() ** 2 / (size**2).sum()))
    return len(u) * (len(u) - 1) / 4 * chance_probability(dimensions, COPY)
