r"""Attracting directions of any tensor by ascent from many starts, without a certificate.

With the fields $T_k u^{p-1}$ and the values $g_k(u) = T_k u^p$ of the outputs, a pair (u, v) of input direction and
output weight attracts where $\sum_k v_k g_k(u)$ has a local maximum. The best v is $g/|g|$, so it is enough to climb
$|g(u)|$, for a single output $|F(u)|$: its maxima are the attracting lines of both signs of a. The step is the
shifted power iteration of Kolda and Mayo, $u \leftarrow \mathrm{unit}(\sum_k v_k T_k u^{p-1} + \alpha u)$; each start
has a shift of its own, doubled when $|g|$ would fall and halved when it grows. Newton's method makes the ends exact.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ._tensor import Tensor, flow_eigenvalues, group_lines, unit

STEPS = 3000
CLIMBED = 1e-6  # how far from stationary a climb may end, relative to the tensor's size: Newton's method does the rest
LEAST_SHIFT = 0.3  # with less the steps leap out of small basins
EXACT = 1e-12
ATTRACTS = 1e-10  # values above this and eigenvalues below its negative attract, relative to the tensor's size
ROUGHLY = 1e-3  # distance under which two climbs have the same end
LARGEST_BATCH = 4e6  # numbers in the matrices of a batch


@dataclass(frozen=True, eq=False)
class AttractingLines:
    """Attracting pairs.

    Attributes:
        directions: unit vectors u, one for each line.
        outputs: unit output weights v; +1 or -1 for a single output.
        hits: how many starts ended there.
        starts: how many starts there were; some may end nowhere.
    """

    directions: Float[np.ndarray, "lines inputs"]
    outputs: Float[np.ndarray, "lines outputs"]
    hits: Int[np.ndarray, " lines"]
    starts: int


def search_attracting(tensor: Tensor, starts: int, seed: int = 0) -> AttractingLines:
    """The attracting pairs that are reached from ``starts`` points, half of them samples and half random.

    >>> lines = search_attracting(Tensor(np.eye(3), np.array([[1.0], [-2.0], [3.0]]), 3), 30)
    >>> lines.directions.shape, int(lines.hits.sum())  # u_1^3 - 2 u_2^3 + 3 u_3^3: the three axes
    ((3, 3), 30)
    """
    u = _climb(tensor, _starts(tensor, starts, np.random.default_rng(seed)))
    first, labels = group_lines(u, ROUGHLY)
    ends, v, good = refine_pairs(tensor, u[first])
    good &= np.abs(np.einsum("ld,ld->l", ends, u[first])) > 1 - (10 * ROUGHLY) ** 2
    again, merged = group_lines(ends[good])
    place = np.full(len(first), -1)
    place[good] = merged
    reached = place[labels]
    hits = np.bincount(reached[reached >= 0], minlength=len(again))
    return AttractingLines(ends[good][again], v[good][again], hits, starts)


def refine_pairs(
    tensor: Tensor, u: Float[np.ndarray, "lines inputs"]
) -> tuple[Float[np.ndarray, "lines inputs"], Float[np.ndarray, "lines outputs"], np.ndarray]:
    """Exact pairs (u, v) near the given directions, and which of them are stationary and attract."""
    parts = max(1, int(np.ceil(len(u) * (tensor.dim + tensor.outputs + 1) * max(tensor.points.shape) / LARGEST_BATCH)))
    ends, weights, good = zip(*(_newton(tensor, part) for part in np.array_split(u, parts)), strict=True)
    return np.concatenate(ends), np.concatenate(weights), np.concatenate(good)


def _starts(tensor: Tensor, count: int, stream: np.random.Generator) -> np.ndarray:
    length = np.linalg.norm(tensor.points, axis=1)
    usable = np.flatnonzero(length > 1e-3 * length.max())
    chosen = stream.permutation(usable)[: count // 2]
    random = stream.normal(size=(count - len(chosen), tensor.dim))
    return unit(np.concatenate([tensor.points[chosen], random]))


def _climb(tensor: Tensor, u: np.ndarray) -> np.ndarray:
    """Shifted power iterations until all are nearly stationary; those that never are, are left out."""
    fields = tensor.fields(u)
    shift = np.full(len(u), LEAST_SHIFT)
    ends = []
    for _ in range(STEPS):
        g = np.einsum("lkd,ld->lk", fields, u)
        value = np.linalg.norm(g, axis=1)
        force = np.einsum("lk,lkd->ld", unit(g), fields)
        done = np.linalg.norm(force - value[:, None] * u, axis=1) < CLIMBED
        ends.append(u[done])
        u, fields, shift, value, force = (part[~done] for part in (u, fields, shift, value, force))
        if not len(u):
            break
        trial = unit(force + shift[:, None] * u)
        trial_fields = tensor.fields(trial)
        up = np.linalg.norm(np.einsum("lkd,ld->lk", trial_fields, trial), axis=1) >= value
        u = np.where(up[:, None], trial, u)
        fields = np.where(up[:, None, None], trial_fields, fields)
        shift = np.where(up, np.maximum(shift / 2, LEAST_SHIFT), 2 * shift)
    return np.concatenate(ends)


def _newton(tensor: Tensor, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Newton's method on $\sum_k v_k T_k u^{p-1} = \lambda u$, $T_k u^p = \lambda v_k$, $|u| = 1$."""
    p, dim, outputs = tensor.p, tensor.dim, tensor.outputs
    v = tensor.value(u)
    lam = np.linalg.norm(v, axis=1)
    v = unit(v)
    on_u, on_v, last = slice(0, dim), slice(dim, dim + outputs), dim + outputs
    for _ in range(4):
        fields = tensor.fields(u)
        jacobian = np.zeros((len(u), last + 1, last + 1))
        jacobian[:, on_u, on_u] = (p - 1) * tensor.matrix(u, v) - lam[:, None, None] * np.eye(dim)
        jacobian[:, on_u, on_v] = fields.mT
        jacobian[:, on_u, last] = -u
        jacobian[:, on_v, on_u] = p * fields
        jacobian[:, on_v, on_v] = -lam[:, None, None] * np.eye(outputs)
        jacobian[:, on_v, last] = -v
        jacobian[:, last, on_u] = u
        residual = np.zeros((len(u), last + 1))
        residual[:, on_u] = np.einsum("lk,lkd->ld", v, fields) - lam[:, None] * u
        residual[:, on_v] = np.einsum("lkd,ld->lk", fields, u) - lam[:, None] * v
        jacobian += 1e-15 * np.eye(last + 1)  # never singular to the last bit
        change = -np.linalg.solve(jacobian, residual[..., None])[..., 0]
        u, v = unit(u + change[:, on_u]), unit(v + change[:, on_v])
        lam = np.einsum("lk,lk->l", v, tensor.value(u))
    fields = tensor.fields(u)
    off = np.linalg.norm(np.einsum("lk,lkd->ld", v, fields) - lam[:, None] * u, axis=1)
    off += np.linalg.norm(np.einsum("lkd,ld->lk", fields, u) - lam[:, None] * v, axis=1)
    highest = flow_eigenvalues(tensor, u, v).max(axis=1, initial=-np.inf)
    return u, v, (off < EXACT * (1 + lam)) & (lam > ATTRACTS) & (highest < -ATTRACTS)
