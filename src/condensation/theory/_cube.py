r"""The lines of sign descent and of early Adam: strict local maxima of $F(w) = T w^p$ on the cube $\max_i |w_i| \le 1$.

At leading order a neuron w with s = sign(a c) sees the gradient $s \nabla F(w)$. Sign descent moves each coordinate by
its sign: of all steps z in the cube B it takes the steepest, $\dot w = \arg\max_{z \in B} z \cdot s \nabla F(w)$, as
gradient flow does in a round ball. With w = t v and F homogeneous

$$\frac{dv}{d \log t} = \arg\max_{z \in B} \left( z \cdot s \nabla F(v) \right) - v,$$

the flow of Frank and Wolfe: v comes into B, s F(v) then only grows, and the strict local maxima of s F on B attract.
There $p\, s F(v) = \max_{z \in B} z \cdot s \nabla F(v) > 0$: a maximum of negative value on the boundary is none on
the cube, which holds 0. And a keeps its sign, as the sign of its own gradient is that of c F(w).

Of several outputs the weights a move by signs too, so that the pair (w, a) goes to strict local maxima of
$\sum_k a_k T_k w^p$ on the product of two cubes. It is linear in a: there a = sign(T_k w^p), a vertex at which no entry
is zero, and w is a strict local maximum for the residual that this a sees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from .._threads import narrow_products
from ..errors import InputError, check_whole
from ._destinations import AttractingLines
from ._power import ATTRACTS, CLIMBED, LARGEST_BATCH, ROUGHLY, STEPS
from ._subdivision import field_sizes, refine_maxima, subdivide
from ._tensor import ROUNDING, Tensor, as_samples, group_lines, unit

MOST_BOXES = 100_000
STARTS = 300
LEAST_SHIFT = 1e-2
ENUMERATED = 16  # inputs up to which all vertices are looked at
ENUMERATED_SIGNS = 12  # at p = 1, outputs or inputs of which all signs are looked at


@dataclass(frozen=True, eq=False, kw_only=True)
class CubeDirections(AttractingLines):
    r"""Points of the cube on whose lines sign descent condenses, by closed form, enumeration, subdivision or ascent.

    Several outputs: a pair (w, v) has the value $\sum_k v_k T_k w^p > 0$, v = sign(T_k w^p) being 0 for an output
    without a field.

    Attributes (more than those of ``AttractingLines``):
        free: on how many coordinates the gradient is zero, the dimension of the face that w lies on: 0 at a vertex.
    """

    free: Int[np.ndarray, " lines"]


@narrow_products
def cube_directions(
    x: ArrayLike, residual: ArrayLike, p: int, *, most_boxes: int = MOST_BOXES, starts: int = STARTS
) -> CubeDirections:
    r"""Where sign descent condenses: the strict local maxima of F and of -F on the cube, $F(w) = T w^p$.

    These are vertices $w = \mathrm{sign}(\pm T w^{p-1})$, and points of faces: with zero gradient and negative definite
    $\pm T w^{p-2}$ on the coordinates inside (-1, 1), and a gradient that points outwards on the others. In training a
    coordinate inside goes to and fro by the learning rate. An input that F does not depend on is 0. A bias is a
    coordinate like any other, that of an input 1. Unlike the flow's, these lines do not turn with the data.

    Early Adam condenses there too: its first step is the sign of the gradient, and where the gradients of all
    coordinates keep their signs and grow alike, as at vertices, $\hat m / \sqrt{\hat v}$ is the same for all but for
    its sign. Points of faces it nears slowly, as its second moment remembers gradients long after they changed sign.

    p = 1 is closed form, sign(g). Else the cube is subdivided until all are found, if $(p+1)^D$, the number of complex
    stationary points on all its faces in general, is at most ``most_boxes``; beyond, and where more boxes are needed,
    they are searched by projected ascent, without a certificate. Up to 16 inputs no vertex is missed in any case.

    Several outputs: at p = 1 lines are pairs w = sign(G^T v), v = sign(G w) with $G = \frac1n \sum_i r_i x_i^T$; all
    signs are tried for up to 12 outputs (or inputs), beyond both are moved in turn from ``starts`` random signs. For
    p >= 2 they are searched by ascent. Searches give no certificate, nor does a line that is not strict.

    Args:
        x, residual, p: as for ``stationary_directions``.
        most_boxes: how many boxes may be looked at for each sign, of a single output.
        starts: number of starts of a search.

    >>> lines = cube_directions(np.eye(2), np.array([2.0, -6.0]), 2)  # F(w) = w_1^2 - 3 w_2^2
    >>> lines.directions, lines.values, lines.attracts_negative, lines.free, lines.certified
    (array([[0., 1.],
           [1., 0.]]), array([-3.,  1.]), array([ True, False]), array([1, 1]), True)
    >>> pairs = cube_directions(np.eye(2), np.array([[4.0, 2.0], [-2.0, 4.0]]), 1)  # G = (2, -1; 1, 2)
    >>> pairs.directions, pairs.outputs, pairs.values
    (array([[ 1.,  1.],
           [ 1., -1.]]), array([[ 1.,  1.],
           [ 1., -1.]]), array([4., 4.]))
    """
    check_whole("the multiplicity p", p)
    check_whole("most_boxes", most_boxes, least=0)
    check_whole("starts", starts)
    points, residuals = as_samples(x, residual)
    several = residuals.shape[1] > 1
    size_x, size_r = float(np.abs(points).max()), float(np.abs(residuals).max())
    tensor = Tensor(points / size_x, residuals / size_r / len(points), int(p))
    inputs, outputs = _moving(tensor)
    tensor = Tensor(tensor.points[:, inputs], tensor.weights[:, outputs], tensor.p)
    if tensor.outputs == 1:
        w, method, note = _of_one_output(tensor, most_boxes, starts)
    elif p == 1:
        w, method, note = _of_signs(tensor, starts)
    else:
        w, method = _ascend(tensor, starts), "ascent"
        note = f"searched from {starts} starts: lines of several outputs may be missing"

    w = w[group_lines(unit(w))[0]]
    each = tensor.value(w)
    if several or p % 2 == 0:  # of w and -w that with a coordinate of 1 in the first place
        turn = np.take_along_axis(w, (np.abs(w) == 1).argmax(axis=1)[:, None], axis=1)
        w, each = w * turn, each * turn**p
    values = np.abs(each).sum(axis=1) if several else each[:, 0]
    order = np.argsort(-np.abs(values), kind="stable")
    directions, v = np.zeros((len(w), len(inputs))), np.zeros((len(w), len(outputs)))
    directions[:, inputs], v[:, outputs] = w[order] + 0.0, np.sign(each[order])
    return CubeDirections(
        p=tensor.p,
        directions=directions,
        values=values[order] * np.float64(size_x) ** p * size_r,
        free=(np.abs(w) < 1).sum(axis=1)[order],
        attracts_positive=values[order] > 0,
        attracts_negative=values[order] > 0 if several or p % 2 else values[order] < 0,
        method=method,
        certified=not note,
        note=note,
        outputs=v if several else None,
    )


def _sizes(tensor: Tensor) -> Float[np.ndarray, "outputs inputs"]:
    """``field_sizes`` of each output."""
    return np.array([field_sizes(Tensor(tensor.points, column[:, None], tensor.p)) for column in tensor.weights.T])


def _moving(tensor: Tensor) -> tuple[Bool[np.ndarray, " inputs"], Bool[np.ndarray, " outputs"]]:
    """The inputs and the outputs that have a field: the weights of the others never move."""
    w = np.random.default_rng(0).uniform(-1, 1, (tensor.dim + 5, tensor.dim))
    strongest = np.zeros((tensor.outputs, tensor.dim))
    for part in np.array_split(w, 1 + int(w.size * tensor.outputs / LARGEST_BATCH)):
        strongest = np.maximum(strongest, np.abs(tensor.fields(part)).max(axis=0))
    moves = strongest > 10 * ROUNDING * _sizes(tensor)
    if not moves.any():
        raise InputError(
            f"the leading-order field (1/n) sum r_i x_i (w.x_i)^{tensor.p - 1} is zero for every w, so nothing "
            f"condenses; residuals that correlate with some product of {tensor.p} inputs are needed"
        )
    return np.any(moves, axis=0), np.any(moves, axis=1)


def _of_one_output(tensor: Tensor, most_boxes: int, starts: int) -> tuple[np.ndarray, str, str]:
    """A single output's maxima of both signs, of F > 0 for odd p, with the method and a note."""
    if tensor.p == 1:
        return np.sign(tensor.field(np.zeros((1, tensor.dim)))), "closed form", ""
    boxes = most_boxes if (tensor.p + 1) ** tensor.dim <= most_boxes else 0
    (up, left), (down, below) = (
        subdivide(Tensor(tensor.points, sign * tensor.weights, tensor.p), boxes) for sign in (1, -1)
    )
    w = np.concatenate([up, -down if tensor.p % 2 else down])
    if not left + below:
        return w, "subdivision", ""
    climbed = _ascend(tensor, starts)
    if tensor.p % 2:
        climbed = climbed * np.sign(tensor.value(climbed))
    note = f"with most_boxes = {most_boxes} parts of the cube are undecided: lines may be missing"
    return np.concatenate([w, climbed]), "ascent", note


def _of_signs(tensor: Tensor, starts: int) -> tuple[np.ndarray, str, str]:
    """p = 1 and several outputs: w = sign(G^T v), v = sign(G w), over all signs of the smaller side or from starts."""
    matrix, sizes = tensor.fields(np.zeros((1, tensor.dim)))[0], _sizes(tensor)
    turned = len(matrix) > tensor.dim
    if turned:
        matrix, sizes = matrix.T, sizes.T
    count = len(matrix)
    if count <= ENUMERATED_SIGNS:  # of v and -v, the same line, one
        v, method, note = _corners(count)[: 2 ** (count - 1)], "enumeration", ""
    else:
        v = np.random.default_rng(0).choice([-1.0, 1.0], (starts, count))
        for _ in range(STEPS):
            before, v = v, _signs(_signs(v @ matrix) @ matrix.T)
            if (before == v).all():
                break
        v = np.unique(v * v[:, :1], axis=0)
        method, note = "ascent", f"searched from {starts} starts: lines of {count} outputs may be missing"
    force, rounding = v @ matrix, 10 * ROUNDING * sizes
    zero = np.abs(force) <= rounding.sum(axis=0)
    w = np.where(zero, 0, np.sign(force))
    outwards, slack = v * (w @ matrix.T), zero @ np.abs(matrix).T
    attracts = (outwards - slack > rounding.sum(axis=1)).all(axis=1)
    reached = (outwards + slack > -rounding.sum(axis=1)).all(axis=1) & ~zero.all(axis=1)
    flat = reached & (zero.any(axis=1) | ~attracts)
    if flat.any():
        on = f"on {flat.sum()} lines some weight has no gradient, and any value of it is as good"
        note = f"{on}: it is given as 0 where the line attracts with all its values, else the line is left out"
    if turned:
        w, v = v, w
        attracts &= ~zero.any(axis=1)
    return w[attracts], method, note


def _signs(numbers: np.ndarray) -> np.ndarray:
    return np.where(numbers < 0, -1.0, 1.0)


def _corners(dim: int) -> np.ndarray:
    """All vertices of the cube; of two opposite ones one is in the first half."""
    return 1.0 - 2 * (np.arange(2**dim)[:, None] >> np.arange(dim) & 1)


def _ascend(tensor: Tensor, starts: int) -> np.ndarray:
    r"""Strict local maxima of $\sum_k |T_k w^p|$: all vertices up to 16 inputs, and what ascents find."""
    w = np.random.default_rng(0).normal(size=(starts, tensor.dim))
    w /= np.abs(w).max(axis=1, keepdims=True)
    parts = 1 + int(w.size * tensor.outputs / LARGEST_BATCH)
    ends = np.concatenate([_climb(tensor, part) for part in np.array_split(w, parts)])
    ends = ends[group_lines(unit(ends), ROUGHLY)[0]]
    sizes, points = _sizes(tensor), [np.zeros((0, tensor.dim))]
    if tensor.dim <= ENUMERATED:  # all vertices at which the field points outwards
        corners = _corners(tensor.dim)[: 2 ** (tensor.dim - 1)]
        for part in np.array_split(corners, 1 + int(corners.size * tensor.outputs / LARGEST_BATCH)):
            force = _force(tensor.fields(part), part)[1]
            points.append(part[(force * part > ATTRACTS * sizes.sum(axis=0)).all(axis=1)])
    signs, label = np.unique(np.sign(tensor.value(ends)), axis=0, return_inverse=True)
    for number, v in enumerate(signs):
        seen, same = Tensor(tensor.points, (tensor.weights @ v)[:, None], tensor.p), ends[label.ravel() == number]
        for part in np.array_split(same, 1 + int(len(same) * tensor.dim**2 / LARGEST_BATCH)):
            w, _, is_maximum = refine_maxima(seen, part, -np.ones(part.shape), np.ones(part.shape))
            points.append(w[is_maximum & (np.sign(tensor.value(w)) == v).all(axis=1)])
    every = np.concatenate(points)
    every = every[(np.abs(tensor.value(every)) > ATTRACTS * sizes.sum(axis=1)).all(axis=1)]
    return every[group_lines(unit(every))[0]]


def _force(fields: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""$\sum_k |T_k w^p|$ and the field that w sees with the output weights that this is greatest for."""
    each = np.einsum("lkd,ld->lk", fields, w)
    return np.abs(each).sum(axis=1), np.einsum("lk,lkd->ld", np.sign(each), fields)


def _climb(tensor: Tensor, w: np.ndarray) -> np.ndarray:
    """Projected ascent to nearly stationary points; steps shorten when the value would fall, else lengthen."""
    size = _sizes(tensor).sum(axis=0)
    fields, shift = tensor.fields(w), np.ones(len(w))
    ends = []
    for _ in range(STEPS):
        value, force = _force(fields, w)
        force = force / size
        done = np.abs(np.clip(w + force, -1, 1) - w).max(axis=1) < CLIMBED
        ends.append(w[done])
        w, fields, shift, value, force = (part[~done] for part in (w, fields, shift, value, force))
        if not len(w):
            break
        trial = np.clip(w + force / shift[:, None], -1, 1)
        trial_fields = tensor.fields(trial)
        up = _force(trial_fields, trial)[0] >= value
        w, fields = np.where(up[:, None], trial, w), np.where(up[:, None, None], trial_fields, fields)
        shift = np.where(up, np.maximum(shift / 2, LEAST_SHIFT), 2 * shift)
    return np.concatenate(ends)
