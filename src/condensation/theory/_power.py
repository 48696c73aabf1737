r"""Attracting directions of any tensor by ascent from many starts, without a certificate.

With the fields $T_k u^{p-1}$ and the values $g_k(u) = T_k u^p$ of the outputs, a pair (u, v) of input direction and
output weight attracts where $\sum_k v_k g_k(u)$ has a local maximum. The best v is $g/|g|$, so it is enough to climb
$|g(u)|$, for a single output $|F(u)|$: its maxima are the attracting lines of both signs of a. The step is the
shifted power iteration of Kolda and Mayo, $u \leftarrow \mathrm{unit}(\sum_k v_k T_k u^{p-1} + \alpha u)$; each start
has a shift of its own, doubled when $|g|$ would fall and halved when it grows. Newton's method makes the ends exact.
"""

import numpy as np
from jaxtyping import Int

from ._tensor import OutputWeights, Tensor, Vectors, flow_eigenvalues, group_lines, unit

STEPS = 3000
CLIMBED = 1e-6  # how far from stationary a climb may end, relative to the tensor's size: Newton's method does the rest
LEAST_SHIFT = 0.3  # with less the steps leap out of small basins
EXACT = 1e-12
ATTRACTS = 1e-10  # values above this and eigenvalues below its negative attract, relative to the tensor's size
ROUGHLY = 1e-3  # distance under which two climbs have the same end
LARGEST_BATCH = 4e6  # numbers in the matrices of a batch


def search_attracting(tensor: Tensor, starts: int) -> tuple[Vectors, OutputWeights, Int[np.ndarray, " lines"]]:
    """The attracting pairs (u, v) reached from ``starts`` points, half of them samples and half random, and their hits.

    For a single output v is 1 or -1. The hits, the starts that ended at each pair, need not add up to all starts.
    """
    u = _climb(tensor, _starts(tensor, starts, np.random.default_rng(0)))
    first, labels = group_lines(u, ROUGHLY)
    numbers = len(first) * (tensor.dim + tensor.outputs + 1) * max(tensor.points.shape)
    parts = max(1, int(np.ceil(numbers / LARGEST_BATCH)))
    refined = zip(*(_newton(tensor, part) for part in np.array_split(u[first], parts)), strict=True)
    ends, v, good = (np.concatenate(part) for part in refined)
    good &= np.abs(np.einsum("ld,ld->l", ends, u[first])) > 1 - (10 * ROUGHLY) ** 2
    again, merged = group_lines(ends[good])
    place = np.full(len(first), -1)
    place[good] = merged
    reached = place[labels]
    hits = np.bincount(reached[reached >= 0], minlength=len(again))
    return ends[good][again], v[good][again], hits


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
    for _ in range(4):
        fields = tensor.fields(u)
        rows = [
            [(p - 1) * tensor.matrix(u, v) - lam[:, None, None] * np.eye(dim), fields.mT, -u[:, :, None]],
            [p * fields, -lam[:, None, None] * np.eye(outputs), -v[:, :, None]],
            [u[:, None, :], np.zeros((len(u), 1, outputs + 1))],
        ]
        jacobian = np.block(rows) + 1e-15 * np.eye(dim + outputs + 1)  # never singular to the last bit
        residual = np.concatenate([*_off(fields, u, v, lam), np.zeros((len(u), 1))], axis=1)
        change = -np.linalg.solve(jacobian, residual[..., None])[..., 0]
        u, v = unit(u + change[:, :dim]), unit(v + change[:, dim:-1])
        lam = np.einsum("lk,lk->l", v, tensor.value(u))
    off = sum(np.linalg.norm(part, axis=1) for part in _off(tensor.fields(u), u, v, lam))
    highest = flow_eigenvalues(tensor, u, v).max(axis=1, initial=-np.inf)
    return u, v, (off < EXACT * (1 + lam)) & (lam > ATTRACTS) & (highest < -ATTRACTS)


def _off(fields: np.ndarray, u: np.ndarray, v: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far pairs are from stationary, in u and in v."""
    on_u = np.einsum("lk,lkd->ld", v, fields) - lam[:, None] * u
    return on_u, np.einsum("lkd,ld->lk", fields, u) - lam[:, None] * v
