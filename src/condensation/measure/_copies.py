r"""Units that repeat others: the same orientation, to within 2.6 degrees.

k_eff hardly sees a few copies among thousands of units. They are found by sorting: exact ones by their numbers, near
ones by their place in a few random projections, where orientations that are $\epsilon$ apart differ by $\epsilon$
times a normal number. What is near there is then compared in all inputs. Units that others turned round are, as odd
activations have them, are counted apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ._similarity import chance_probability, norms

COPY = 0.999  # cosine from which on a unit repeats another
PROJECTIONS = 8
FARTHEST = 5.5  # of a normal number in as many dimensions, but for one in 10^5
NEIGHBOURS = 4  # that are compared with each unit
ENTRIES, MOST_DRAWS = 2_000_000, 20  # of permuted orientations, in which chance is looked at
NEVER = 1e-12  # pairs
LEVEL = 1e-4  # of a unit's largest entry: entries so near are of one level
NEARLY_ONE = 0.9  # share of the squared norm of a mean from which on units differ little but from it
SAME = 1e-6  # size of what is left of orientations that are all one
CERTAIN = 1e-3  # probability below which chance did not make the copies


class Copies(NamedTuple):
    """How many units repeat others, how many more are others turned round, and how many copies chance would make."""

    copies: int
    opposites: int
    chance_copies: float


def copies(array: Float[np.ndarray, "units inputs"], without_bias: bool = False) -> Copies:
    """How many units repeat others that stay.

    Chance is the largest of four: the expected pairs among random directions, the copies among orientations whose
    entries are permuted, those among weights whose entries are (where single entries are huge, units lie on the axes of
    those), and the pairs that agree in all inputs if inputs are independent. Where weights have few
    values (signs, zeros, levels of a quantisation) the others make the more, and a few draws may miss a rare copy.

    Args:
        array: of units x inputs that ``as_weights`` gave.
        without_bias: the last input is a bias, and copies are so without it as well.

    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(50, 30))
    >>> copies(np.concatenate([weights, 2 * weights[:7], -weights[:5]]))[:2]
    (7, 5)
    """
    views = _views(array, without_bias)
    if len(views[0]) < 2 or min(view.shape[1] for view in views) < 2:
        return Copies(0, 0, 0.0)
    kept = _kept(views)
    count, opposites = len(views[0]) - len(kept), _opposites([view[kept] for view in views])
    if not count and not opposites:
        return Copies(0, 0, 0.0)
    by_chance = [_pairs_by_chance(views[0]), *(_copies_by_chance(own, without_bias) for own in (views[0], array))]
    by_chance += [_equal_by_chance(len(views[0]), views[0][kept])]
    return Copies(count, opposites, max(by_chance))


def beyond_chance(count: int, expected: float) -> bool:
    """Whether random units would hardly have so many copies.

    >>> beyond_chance(1, 1e-9), beyond_chance(3, 2.0), beyond_chance(0, 0.0)
    (True, False, False)
    """
    from scipy.stats import poisson

    return count > 0 and float(poisson.sf(count - 1, expected)) < CERTAIN


def _views(array: np.ndarray, without_bias: bool) -> list[np.ndarray]:
    """The orientations of the units that have one, and those without the bias."""
    views = [_orientations(array), *([_orientations(array[:, :-1])] if without_bias else [])]
    alive = np.all([view.any(axis=1) for view in views], axis=0)
    return [view[alive] for view in views]


def _orientations(array: np.ndarray) -> np.ndarray:
    r = norms(array)
    return array / np.where(r > 0, r, 1)[:, None].astype(array.dtype)


def _kept(views: list[np.ndarray]) -> np.ndarray:
    """Units of which all others are copies: one of each group, and of a chain of neighbours as many as it needs.

    Each unit is compared with a few neighbours only, so that of many at one place several may be left at first.
    """
    kept = _equal(views[0])
    while not (left := _unlike([view[kept] for view in views])).all():
        kept = kept[left]
    return kept


def _unlike(views: list[np.ndarray]) -> np.ndarray:
    """Which units are left when those go that are copies of a neighbour."""
    places = _places(views[0])
    pairs = _pairs(views, _near(places, places))
    kept = np.ones(len(places), bool)
    for group in _groups(len(places), pairs):
        left = group[np.argsort(places[group, 0], kind="stable")]
        while len(left):
            own, left = left[0], left[1:]
            copied = np.all([view[left] @ view[own] >= COPY for view in views], axis=0)
            kept[left[copied]] = False
            left = left[~copied]
    return kept


def _opposites(views: list[np.ndarray]) -> int:
    """How many of units that do not repeat each other are others turned round."""
    places = _places(views[0])
    pairs = _pairs(views, _near(places, -places), sign=-1)
    gone = np.zeros(len(places), bool)
    for one, other in pairs:
        gone[other] |= one < other and not gone[one]
    return int(gone.sum())


def _equal(u: np.ndarray) -> np.ndarray:
    """Which units are the first of those that are equal to the last digit."""
    rows = np.ascontiguousarray(u).view(np.dtype((np.void, u.dtype.itemsize * u.shape[1])))[:, 0]
    return np.sort(np.unique(rows, return_index=True)[1])


def _places(u: np.ndarray) -> np.ndarray:
    """Units in a few random projections."""
    directions = np.random.default_rng(0).normal(size=(u.shape[1], PROJECTIONS)).astype(u.dtype)
    return (u @ directions).astype(float)


def _near(places: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Pairs of a unit and another one that are near each other in the projections."""
    from scipy.spatial import KDTree

    radius = FARTHEST * float(np.sqrt(2 * (1 - COPY)))
    found = KDTree(others).query(places, NEIGHBOURS, distance_upper_bound=radius)
    distance, near = (np.reshape(part, (len(places), NEIGHBOURS)) for part in found)
    one, place = np.nonzero(np.isfinite(distance))
    return np.stack([one, near[one, place]], axis=1)


def _pairs(views: list[np.ndarray], pairs: np.ndarray, sign: int = 1) -> np.ndarray:
    """Those of some pairs that are copies, or opposites."""
    for view in views:
        pairs = pairs[sign * np.einsum("ij,ij->i", view[pairs[:, 0]], view[pairs[:, 1]]) >= COPY]
    return pairs


def _groups(units: int, pairs: np.ndarray) -> list[np.ndarray]:
    """Groups of two and more connected units."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(units, units))
    labels = connected_components(links, directed=False)[1]
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return [part for part in parts if len(part) > 1]


def _pairs_by_chance(u: np.ndarray) -> float:
    """Expected pairs of copies among random units of as many dimensions as the inputs effectively have."""
    size = (u.astype(float) ** 2).mean(axis=0)
    dimensions = max(2.0, float(size.sum() ** 2 / (size**2).sum()))
    return len(u) * (len(u) - 1) / 4 * chance_probability(dimensions, COPY)


def _copies_by_chance(u: np.ndarray, without_bias: bool) -> float:
    """Copies among units with permuted entries; a direction that most of them share is taken away before."""
    mean, size = u.mean(axis=0, dtype=float), float(np.einsum("ij,ij->", u, u, dtype=float)) / len(u)
    rows = u if float(mean @ mean) <= NEARLY_ONE * size else u - mean.astype(u.dtype)
    if norms(rows).max() < SAME * size**0.5:
        return 0.0
    found = []
    for seed in range(int(np.clip(ENTRIES // u.size, 1, MOST_DRAWS))):
        views = _views(np.random.default_rng(seed).permuted(rows, axis=0), without_bias)
        found.append(len(views[0]) - len(_kept(views)) if len(views[0]) > 1 else 0)
    return float(np.mean(found))


def _equal_by_chance(units: int, u: np.ndarray) -> float:
    """Expected pairs of so many units with the same level in every input, drawn for each input as unlike units have."""
    if len(u) < 2:
        return 0.0
    largest, expected = np.abs(u).max(axis=1), units * (units - 1) / 2
    for column in u.T:
        counts = np.unique(np.rint(column / largest / LEVEL), return_counts=True)[1].astype(float)
        expected *= float((counts * (counts - 1)).sum()) / (len(u) * (len(u) - 1))
        if expected < NEVER:
            return 0.0
    return expected
