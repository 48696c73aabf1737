r"""Searches for the extremal directions of relu above two dimensions, from all starts at once.

Samples with $r_i > 0$ are given the slopes they have at u; what remains of F is concave, and its maximum over the ball
is dual to a bounded least-squares problem:
$\max_{|u| \le 1} b \cdot u - \sum_{r_i < 0} |r_i| \sigma(u \cdot x_i)
= \min_{\alpha \le \eta_i \le 1} |b - \sum |r_i| \eta_i x_i|$, attained along that shortest vector (``_shortest``). This
is repeated until nothing changes; F never falls. Starts that come to the same place go on as one.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ._shortest import follow_shortest
from ._tensor import APART, unit

INSIDE = 1e-9  # how far, in radians, from a kink a direction counts as inside a sector
NEAR = 1e-8  # how far a shortest vector may be from a kink that it lies on, but for rounding
ZERO = 1e-10  # a shortest vector this much smaller than what it is a sum of is zero
SETTLED = 1e-12  # a direction that moves less has arrived
STEPS = 100
CACHED = 1e5  # numbers in an array of rows that are followed together, which a core's cache holds
FEWEST = 16  # rows that are followed together, however large their arrays are

Points = Float[np.ndarray, "samples inputs"]
Directions = Float[np.ndarray, "lines inputs"]
Found = tuple[Directions, Int[np.ndarray, " lines"], Int[np.ndarray, " lines"]]
LOST = b"lost"  # where a start comes to that finds nothing


def search(points: Points, terms: Float[np.ndarray, " samples"], slope: float, starts: int) -> Found:
    """Attracting directions of a single output, how many tangents of each cross a kink, and its hits."""
    begin = starting_points(points, starts)
    u, hits = (
        np.concatenate(part) for part in zip(*(_climb(points, s * terms, slope, begin) for s in (1, -1)), strict=True)
    )
    return u, kink_ranks(points, u), hits


def alternate(points: Points, terms: Float[np.ndarray, "samples outputs"], slope: float, starts: int) -> Found:
    """Several outputs: attracting directions, how many tangents of each cross a kink, and its hits."""
    ends = _climb_outputs(points, terms, slope, starting_points(points, starts))
    first = (np.linalg.norm(ends[:, None] - ends, axis=2) < APART).argmax(axis=1)
    chosen, hits = np.unique(first, return_counts=True)
    return ends[chosen], kink_ranks(points, ends[chosen]), hits


def starting_points(points: Points, starts: int) -> Directions:
    """Where searches start: up to half of them at samples, the others at random."""
    stream = np.random.default_rng(0)
    chosen = points[stream.permutation(len(points))[: starts // 2]]
    return unit(np.concatenate([chosen, stream.normal(size=(starts - len(chosen), points.shape[1]))]))


def kinks_at(points: Points, u: Directions, within: float = INSIDE) -> Bool[np.ndarray, "lines samples"]:
    """On the kinks of which samples the directions lie."""
    return np.abs(u @ points.T) < within * np.linalg.norm(points, axis=1)


def kink_ranks(points: Points, u: Directions) -> Int[np.ndarray, " lines"]:
    """How many tangents of each direction cross a kink."""
    return np.array([np.linalg.matrix_rank(points[row]) if row.any() else 0 for row in kinks_at(points, u)], int)


def _climb(points: np.ndarray, terms: np.ndarray, slope: float, begin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Local maxima of positive value of F, and the number of starts that end at each.

    The next direction depends on the active samples with r_i > 0 alone, so that each such pattern is solved for once.
    """
    up = terms > 0
    rising, heights, lengths = points[up], terms[up], np.linalg.norm(points[up], axis=1)
    pulls, weights = points[~up] * -terms[~up, None], np.ones((1, (~up).sum()))
    total, least = np.linalg.norm(pulls, axis=1).sum(), slope * pulls.sum(axis=0)
    after: dict[bytes, bytes] = {}

    def push(active: np.ndarray) -> np.ndarray:
        return np.where(active, heights, slope * heights) @ rising

    def farthest(rows: np.ndarray, u: np.ndarray) -> np.ndarray:
        return least + (1 - slope) * ((u @ pulls.T > 0).astype(float) @ pulls)

    def decided(x: np.ndarray, away: np.ndarray) -> np.ndarray:
        """Whether the active samples are those of the shortest vector; not where that may be zero."""
        return (np.abs(x @ rising.T) > away[:, None] * lengths).all(axis=1)

    active = begin @ rising.T > 0
    keys = _packed(active)
    for block in _blocks(
        {key: k for k, key in enumerate(keys)}.values(), max(len(rising), len(pulls)), points.shape[1]
    ):
        block = [k for k in block if keys[k] not in after]
        at, b = [keys[k] for k in block], push(active[block])
        after.update(dict.fromkeys(at, LOST))

        def arrived(rows: np.ndarray, x: np.ndarray, at: list[bytes] = at, b: np.ndarray = b) -> tuple:
            some = np.linalg.norm(x, axis=1) > ZERO * (np.linalg.norm(b[rows], axis=1) + total)
            now = x @ rising.T > 0
            going = _go_on(
                after, at, rows, [key if there else LOST for key, there in zip(_packed(now), some, strict=True)]
            )
            b[rows[going]] = push(now[going])
            return going, b[rows[going]]

        if block:
            follow_shortest(b.copy(), begin[block], farthest, arrived, decided)
    ends, hits = _count_ends(after, keys)
    bits = np.array([np.unpackbits(np.frombuffer(end, np.uint8), count=len(rising)) for end in ends], bool)
    b, u = push(bits.reshape(len(ends), len(rising))), np.zeros((len(ends), points.shape[1]))

    def exact(rows: np.ndarray, x: np.ndarray) -> tuple:
        u[rows] = unit(_on_kinks(pulls, weights, slope, b[rows], x))
        return np.zeros(len(rows), bool), x[:0]

    if ends:
        follow_shortest(b, b, farthest, exact)
    return u, hits


def _climb_outputs(points: np.ndarray, terms: np.ndarray, slope: float, begin: np.ndarray) -> np.ndarray:
    """The local maximum of |G| that each start climbs to: v = G/|G| and a step of ``_climb`` for what v sees.

    After each step u becomes the top singular vector of A on its face, if that has the same active samples: |G| never
    falls. An end that is not that vector is a saddle, and none is given.
    """
    lengths, after, ends = np.linalg.norm(points, axis=1), {}, {}
    keys = _rounded(begin)
    for block in _blocks({key: k for k, key in enumerate(keys)}.values(), *points.shape):
        block = [k for k in block if keys[k] not in after]
        at, u, steps = [keys[k] for k in block], begin[block], np.zeros(len(block), int)
        after.update(dict.fromkeys(at, LOST))
        weights, b, least = np.zeros((len(block), len(points))), np.zeros_like(u), np.zeros_like(u)

        def see(
            rows: np.ndarray, u: np.ndarray = u, weights: np.ndarray = weights, b: np.ndarray = b,
            least: np.ndarray = least,
        ) -> np.ndarray:  # fmt: skip
            """The samples that push and pull at u with the best v, for some rows; where they push to."""
            z = u[rows] @ points.T
            slopes = np.where(z > 0, 1, slope)
            seen = unit((slopes * z) @ terms) @ terms.T
            weights[rows], b[rows] = np.maximum(-seen, 0), (slopes * np.maximum(seen, 0)) @ points
            least[rows] = slope * weights[rows] @ points
            return b[rows]

        def farthest(
            rows: np.ndarray, u: np.ndarray, weights: np.ndarray = weights, least: np.ndarray = least
        ) -> np.ndarray:
            return least[rows] + (1 - slope) * (((u @ points.T > 0) * weights[rows]) @ points)

        def arrived(
            rows: np.ndarray, x: np.ndarray, at: list[bytes] = at, u: np.ndarray = u, steps: np.ndarray = steps,
            weights: np.ndarray = weights, b: np.ndarray = b, look: Any = see,
        ) -> tuple:  # fmt: skip
            some = np.linalg.norm(x, axis=1) > ZERO * (np.linalg.norm(b[rows], axis=1) + weights[rows] @ lengths)
            now, same, isolated = _to_the_top(
                points, terms, slope, unit(_on_kinks(points, weights[rows], slope, b[rows], x))
            )
            steps[rows] += 1
            settled = np.abs(now - u[rows]).max(axis=1) < SETTLED
            names = _rounded(now)
            for k in np.flatnonzero(some & settled & same & isolated):
                names[k] = at[rows[k]]
                ends[names[k]] = now[k]
            lost = ~some | (settled & ~(same & isolated)) | (steps[rows] >= STEPS)
            going = _go_on(after, at, rows, [LOST if gone else name for gone, name in zip(lost, names, strict=True)])
            u[rows] = now
            return going, look(rows[going])

        if block:
            everyone = np.arange(len(block))
            follow_shortest(see(everyone), u.copy(), farthest, arrived)  # pyright: ignore[reportGeneralTypeIssues]
    found, hits = _count_ends(after, keys)
    return np.repeat(np.array([ends[end] for end in found]).reshape(len(found), points.shape[1]), hits, axis=0)


def _to_the_top(points: np.ndarray, terms: np.ndarray, slope: float, u: np.ndarray) -> tuple[np.ndarray, ...]:
    """The top singular vector of A on the face of each u where its active samples are those of u, else u itself.

    Also whether they are, and whether its singular value is larger than the others.
    """
    kinks, z = kinks_at(points, u), u @ points.T
    basis = _spanned(points, kinks)
    slopes = np.where(z > 0, 1, slope)
    matrix = np.stack([(slopes * column) @ points for column in terms.T], axis=1)
    _, strength, right = np.linalg.svd(matrix - matrix @ basis.mT @ basis, full_matrices=False)
    top = right[:, 0] * np.where(np.einsum("rd,rd->r", right[:, 0], u) > 0, 1, -1)[:, None]
    same = (((top @ points.T > 0) == (z > 0)) | kinks).all(axis=1)
    isolated = strength[:, 1:].max(axis=1, initial=0) < (1 - INSIDE) * strength[:, 0]
    return np.where(same[:, None], top, u), same, isolated


def _on_kinks(points: np.ndarray, weights: np.ndarray, slope: float, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Shortest vectors x of b - Z but for rounding: exactly on the kinks that they are near to."""
    z, near = x @ points.T, kinks_at(points, unit(x), NEAR) & (weights > 0)
    rest = b - (np.where(near, 0, np.where(z > 0, 1, slope)) * weights) @ points
    basis = _spanned(points, near)
    for _ in range(2):
        rest = rest - (basis.mT @ (basis @ rest[:, :, None]))[:, :, 0]
    return rest


def _spanned(points: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Orthonormal bases, as rows with zeros below, of what the chosen samples of each line span."""
    most = int(chosen.sum(axis=1).max(initial=0))
    order = np.argsort(~chosen, axis=1, kind="stable")[:, :most]
    rows = unit(points)[order] * np.take_along_axis(chosen, order, axis=1)[:, :, None]
    _, strength, basis = np.linalg.svd(rows, full_matrices=False)
    return basis * (strength > NEAR)[:, :, None]


def _blocks(starts: Iterable[int], samples: int, inputs: int) -> list[list[int]]:
    """Starts in parts that are followed together."""
    most = int(max(FEWEST, CACHED // max(samples, (inputs + 1) ** 2 // 10)))
    chosen = sorted(starts)
    return [chosen[k : k + most] for k in range(0, len(chosen), most)]


def _go_on(after: dict[bytes, bytes], at: list[bytes], rows: np.ndarray, names: list[bytes]) -> np.ndarray:
    """Note where rows have come to, and tell which go on: those that come to where none was before."""
    going = np.zeros(len(rows), bool)
    for k, (row, name) in enumerate(zip(rows.tolist(), names, strict=True)):
        after[at[row]] = name
        if name != LOST and name not in after:
            after[name], at[row], going[k] = LOST, name, True
    return going


def _count_ends(after: dict[bytes, bytes], begin: list[bytes]) -> tuple[list[bytes], np.ndarray]:
    """Places from which nothing moves away, and how many of the beginnings lead to each."""
    hits: dict[bytes, int] = {}
    for place in begin:
        for _ in range(STEPS):
            here, place = place, after.get(place, LOST)
            if here == place != LOST:
                hits[here] = hits.get(here, 0) + 1
                break
    return list(hits), np.array(list(hits.values()), int)


def _packed(active: np.ndarray) -> list[bytes]:
    """Patterns of active samples as names."""
    return [row.tobytes() for row in np.packbits(active, axis=1)]


def _rounded(u: np.ndarray) -> list[bytes]:
    """Directions as names, but for rounding."""
    return [row.tobytes() for row in np.round(u, 10) + 0.0]
