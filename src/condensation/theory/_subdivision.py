r"""All strict local maxima of $F(w) = T w^p$, p >= 2, on the cube $|w_i| \le 1$, with a proof that there are no more.

The cube's facets $w_k = 1$ are cut into boxes until each is decided. On a box of points c + d, $|d_i| \le h_i$, every
contraction $T w^q$ is within $\sum_{m=1}^q \binom qm |T c^{q-m}| h^m$ of $T c^q$. Where the field $T w^{p-1}$ has a
sure sign in coordinate i, a maximum has $w_i$ at that end of the cube: the box shrinks to it, or holds none. Where
$T w^{p-2}$ surely has a positive eigenvalue on coordinates that lie inside the cube, there is no maximum; where it is
surely negative definite, only the box's own single maximum can be one of the cube. A box that is none of these is
cut in two. "Surely" is but for rounding errors, which the bounds leave out.
"""

from math import comb

import numpy as np
from jaxtyping import Bool, Float

from ._power import ATTRACTS, EXACT, LARGEST_BATCH
from ._tensor import ROUNDING, Tensor, group_lines, unit

SMALLEST = 1e-4  # longest side of a box that is given up: a maximum there is not strict, or barely
INSIDE = float(np.nextafter(1, 0))
NEWTON = 12  # steps
STRICT = 1e-7  # a maximum's least curvature, relative to the largest that is possible

Points = Float[np.ndarray, "points inputs"]
Boxes = list[tuple[np.ndarray, np.ndarray]]


def subdivide(tensor: Tensor, most_boxes: int) -> tuple[Points, int]:
    """The strict local maxima of a single output's F on the facets $w_k = 1$ of the cube, and the boxes left undecided.

    Of w and -w one is listed where both have a coordinate equal to 1. With no box left, these are all.

    >>> subdivide(Tensor(np.eye(2), np.array([[1.0], [-1.0]]), 2), 100)  # F(w) = w_1^2 - w_2^2
    (array([[1., 0.]]), 0)
    """
    dim = tensor.dim
    low, high = np.full((dim, dim), -1.0), np.ones((dim, dim))
    np.fill_diagonal(low, 1)
    points, seen, given_up = [np.zeros((0, dim))], 0, 0
    while len(low) and seen + len(low) <= most_boxes:
        seen += len(low)
        parts = np.array_split(np.arange(len(low)), 1 + int(len(low) * dim ** (tensor.p - 1) / LARGEST_BATCH))
        decided = [_decide(tensor, low[part], high[part]) for part in parts]
        points += [maxima for maxima, _, _ in decided]
        given_up += sum(count for _, _, count in decided)
        left = [boxes for _, several, _ in decided for boxes in several]
        low, high = (np.concatenate(ends) for ends in zip(*left, strict=True))
    every = np.concatenate(points)
    return every[group_lines(unit(every))[0]], given_up + len(low)


def _decide(tensor: Tensor, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, Boxes, int]:
    """Maxima in some boxes, the boxes to look at next, and how many are given up."""
    size, p, half = field_sizes(tensor), tensor.p, (high - low) / 2
    powers = [tensor._array.reshape(1, *(tensor.dim,) * p)]  # T, then T c, ..., T c^(p-1) at each box's centre c
    for _ in range(p - 1):
        powers.append(_contract(powers[-1], (low + high) / 2))
    field, slack = _bound(powers, half, p - 1)
    slack = slack + ROUNDING * size
    up, down = field > slack, field < -slack
    some = ~((up & (high < 1)) | (down & (low > -1))).any(axis=1)
    shrunk = some & ((up | down) & (half > 0)).any(axis=1)
    smaller = np.where(up, 1, low)[shrunk], np.where(down, -1, high)[shrunk]

    same = some & ~shrunk
    low, high, half = low[same], high[same], half[same]
    scale = np.sqrt(size[:, None] * size)
    matrix, slack = (part / scale for part in _bound([q if len(q) == 1 else q[same] for q in powers], half, p - 2))
    free = half > 0
    inside = free & (low > -1) & (high < 1)
    values, vectors = np.linalg.eigh(np.where(_pairs(inside), matrix, 0))
    vector = np.abs(vectors[:, :, -1])
    convex = free & (np.diagonal(matrix - slack, axis1=1, axis2=2) > ATTRACTS)
    saddle = values[:, -1] > np.einsum("ni,nij,nj->n", vector, slack, vector) + ATTRACTS
    saddle |= (convex & inside).any(axis=1)
    value = np.linalg.eigvalsh(np.where(_pairs(free), matrix, -np.eye(tensor.dim)))[:, -1]
    concave = ~saddle & (value + np.where(_pairs(free), slack, 0).sum(axis=2).max(axis=1, initial=0) < -ATTRACTS)
    ends, converged, is_maximum = refine_maxima(tensor, ((low + high) / 2)[concave], low[concave], high[concave])
    rest = ~saddle
    rest[concave] = ~converged
    tiny = rest & (half.max(axis=1) <= SMALLEST / 2)
    rest &= ~tiny
    cut = _cut(low[rest], high[rest], convex[rest], (convex | (p == 2))[rest])
    return ends[is_maximum], [smaller, *cut], int(tiny.sum())


def _cut(low: np.ndarray, high: np.ndarray, convex: np.ndarray, off_ends: np.ndarray) -> Boxes:
    """Boxes cut in one coordinate: in halves, or off its ends on the cube where that is asked for.

    What is left then ends at the numbers next to the cube's ends; where F is convex it holds no maximum.
    """
    side, middle = high - low, (low + high) / 2
    ends = off_ends & (side > 0) & ((low == -1) | (high == 1))
    k = np.where(ends.any(axis=1), (side * ends).argmax(axis=1), side.argmax(axis=1))
    cut = np.arange(low.shape[1]) == k[:, None]
    off, halved = cut & ends, cut & ~ends
    pieces = [
        (off & (low == -1), -1, -1),
        (off & (high == 1), 1, 1),
        (off & ~convex, np.maximum(low, -INSIDE), np.minimum(high, INSIDE)),
        (halved, low, middle),
        (halved, middle, high),
    ]
    boxes = []
    for which, below, above in pieces:
        rows = which.any(axis=1)
        boxes.append((np.where(which, below, low)[rows], np.where(which, above, high)[rows]))
    return boxes


def _bound(powers: list[np.ndarray], half: np.ndarray, q: int) -> tuple[np.ndarray, np.ndarray]:
    """$T w^q$ at each box's centre, and how far from it, at most, it is elsewhere in the box."""
    slack = np.zeros((len(half), *powers[q].shape[1:]))
    for m in range(1, q + 1):
        term = np.abs(powers[q - m])
        for _ in range(m):
            term = _contract(term, half)
        slack += comb(q, m) * term
    return powers[q], slack


def _contract(tensors: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Each tensor, or the only one, with each vector in its last index."""
    if len(tensors) == 1:
        return np.tensordot(vectors, tensors[0], axes=(1, tensors.ndim - 2))
    return np.einsum("n...i,ni->n...", tensors, vectors)


def _pairs(mask: np.ndarray) -> np.ndarray:
    """Which entries of a matrix belong to coordinates of the mask."""
    return mask[:, :, None] & mask[:, None, :]


def field_sizes(tensor: Tensor) -> Float[np.ndarray, " inputs"]:
    r"""A bound on the field on the cube, $\sum_k |w_k| |x_{ki}| (\sum_j |x_{kj}|)^{p-1}$: what rounding is relative to.

    >>> field_sizes(Tensor(np.array([[1.0, -2.0]]), np.array([[-1.0]]), 3))
    array([ 9., 18.])
    """
    points = np.abs(tensor.points)
    return (np.abs(tensor.weights[:, 0]) * points.sum(axis=1) ** (tensor.p - 1)) @ points


def refine_maxima(
    tensor: Tensor, w: Points, low: Points, high: Points
) -> tuple[Points, Bool[np.ndarray, " points"], Bool[np.ndarray, " points"]]:
    """Points nearby at which F has a maximum in a box, whether they have, and which are strict maxima on the cube.

    Newton's method on the coordinates that no end of the box holds: those where the field does not point out of it. At
    a maximum on the cube the others are 1 or -1, and $T w^{p-2}$ is negative definite on these, which lie inside.
    """
    size = field_sizes(tensor)
    root = np.sqrt(size)
    small = 1e-15 * np.eye(tensor.dim)

    def look(w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        force = tensor.field(w) / size
        held = ((w >= high) & (force > 0)) | ((w <= low) & (force < 0)) | (low == high)
        matrix = np.where(_pairs(~held), tensor.matrix(w) / root / root[:, None], -np.eye(tensor.dim))
        push = np.where(held, 0, force * root / max(1, tensor.p - 1))
        return force, held, matrix, np.linalg.solve(matrix + small, push[..., None])[..., 0] / root

    force, held, matrix, change = look(w)
    for _ in range(NEWTON):
        if (np.abs(change) < ROUNDING).all():
            break
        w = np.clip(w - change, low, high)
        force, held, matrix, change = look(w)
    converged = np.all(np.where(held, np.abs(force) > ATTRACTS, np.abs(change) < EXACT), axis=1)
    converged &= np.linalg.eigvalsh(matrix)[:, -1] < -STRICT
    outwards = np.all(np.where(held, (np.abs(w) == 1) & (force * w > 0), np.abs(w) < 1), axis=1)
    return w, converged, converged & outwards
