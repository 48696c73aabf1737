r"""The lines of sign descent and of early Adam: strict local maxima of $F(w) = T w^p$ on the cube $\max_i |w_i| \le 1$.

At leading order a neuron w with s = sign(a c) sees the gradient $s \nabla F(w)$. Sign descent moves each coordinate by
its sign: of all steps z in the cube B it takes the steepest, $\dot w = \arg\max_{z \in B} z \cdot s \nabla F(w)$, as
gradient flow does in a round ball. With w = t v and F homogeneous

$$\frac{dv}{d \log t} = \arg\max_{z \in B} \left( z \cdot s \nabla F(v) \right) - v,$$

the flow of Frank and Wolfe: v comes into B, s F(v) then only grows, and the strict local maxima of s F on B attract.
There $p\, s F(v) = \max_{z \in B} z \cdot s \nabla F(v) > 0$: a maximum of negative value on the boundary is none on
the cube, which holds 0. And a keeps its sign, as the sign of its own gradient is that of c F(w).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int
from numpy.typing import ArrayLike

from ..errors import InputError, check_whole
from ._destinations import AttractingLines
from ._leading import as_single_output
from ._power import ATTRACTS, CLIMBED, LARGEST_BATCH, ROUGHLY, STEPS
from ._subdivision import field_sizes, refine_maxima, subdivide
from ._tensor import ROUNDING, Tensor, group_lines, unit

MOST_BOXES = 100_000
STARTS = 300
LEAST_SHIFT = 1e-2
ENUMERATED = 16  # inputs up to which all vertices are looked at


@dataclass(frozen=True, eq=False, kw_only=True)
class CubeDirections(AttractingLines):
    """Points of the cube on whose lines sign descent condenses; the method is closed form, subdivision or ascent.

    Attributes (more than those of ``AttractingLines``):
        free: on how many coordinates the gradient is zero, the dimension of the face that w lies on: 0 at a vertex.
    """

    free: Int[np.ndarray, " lines"]


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

    Args:
        x, residual, p: as for ``stationary_directions``, of one output; a weight v of several sees ``residual @ v``.
        most_boxes: how many boxes may be looked at for each sign.
        starts: number of starts of the ascent for each sign.

    >>> lines = cube_directions(np.eye(2), np.array([2.0, -6.0]), 2)  # F(w) = w_1^2 - 3 w_2^2
    >>> lines.directions, lines.values, lines.attracts_negative, lines.free, lines.certified
    (array([[0., 1.],
           [1., 0.]]), array([-3.,  1.]), array([ True, False]), array([1, 1]), True)
    """
    check_whole("the multiplicity p", p)
    check_whole("most_boxes", most_boxes, least=0)
    check_whole("starts", starts)
    points, residuals = as_single_output(x, residual)
    size_x, size_r = float(np.abs(points).max()), float(np.abs(residuals).max())
    tensor = Tensor(points / size_x, residuals[:, None] / size_r / len(points), int(p))
    moves = _moving(tensor)
    tensor = Tensor(tensor.points[:, moves], tensor.weights, tensor.p)
    if p == 1:
        vertex = np.sign(tensor.field(np.zeros((1, tensor.dim))))
        (up, left), (down, below) = (vertex, 0), (-vertex, 0)
    else:
        opposite = Tensor(tensor.points, -tensor.weights, tensor.p)
        boxes = most_boxes if (int(p) + 1) ** tensor.dim <= most_boxes else 0
        (up, left), (down, below) = (_maxima(signed, boxes, starts) for signed in (tensor, opposite))

    w = np.concatenate([up, -down if p % 2 else down])
    w = w[group_lines(unit(w))[0]]
    if p % 2 == 0:
        w = w * np.take_along_axis(w, (np.abs(w) == 1).argmax(axis=1)[:, None], axis=1)
    values = tensor.value(w)[:, 0]
    order = np.argsort(-np.abs(values), kind="stable")
    directions = np.zeros((len(w), points.shape[1]))
    directions[:, moves] = w[order] + 0.0
    undecided = left + below
    return CubeDirections(
        p=tensor.p,
        directions=directions,
        values=values[order] * np.float64(size_x) ** p * size_r,
        free=(np.abs(w) < 1).sum(axis=1)[order],
        attracts_positive=values[order] > 0,
        attracts_negative=values[order] > 0 if p % 2 else values[order] < 0,
        method="closed form" if p == 1 else "ascent" if undecided else "subdivision",
        certified=not undecided,
        note=f"with most_boxes = {most_boxes} parts of the cube are undecided: lines may be missing" * (undecided > 0),
    )


def _moving(tensor: Tensor) -> Bool[np.ndarray, " inputs"]:
    """The inputs that F depends on: the weights of the others never move."""
    w = np.random.default_rng(0).uniform(-1, 1, (tensor.dim + 5, tensor.dim))
    moves = np.abs(tensor.field(w)).max(axis=0) > 10 * ROUNDING * field_sizes(tensor)
    if not moves.any():
        raise InputError(
            f"the leading-order field (1/n) sum r_i x_i (w.x_i)^{tensor.p - 1} is zero for every w, so nothing "
            f"condenses; residuals that correlate with some product of {tensor.p} inputs are needed"
        )
    return moves


def _maxima(tensor: Tensor, most_boxes: int, starts: int) -> tuple[np.ndarray, int]:
    """Local maxima by subdivision; where it does not end, all vertices and what ascents find are added."""
    maxima, undecided = subdivide(tensor, most_boxes)
    if not undecided:
        return maxima, 0
    w = np.random.default_rng(0).normal(size=(starts, tensor.dim))
    w /= np.abs(w).max(axis=1, keepdims=True)
    value = tensor.value(w)[:, 0]
    ends = _climb(tensor, w * np.sign(value)[:, None] if tensor.p % 2 else w[value > 0])
    ends = ends[group_lines(unit(ends), ROUGHLY)[0]]
    points = [maxima]
    if tensor.dim <= ENUMERATED:  # all vertices at which the field points outwards
        corners = 1.0 - 2 * (np.arange(2**tensor.dim)[:, None] >> np.arange(tensor.dim) & 1)
        points.append(corners[(tensor.field(corners) * corners > ATTRACTS * field_sizes(tensor)).all(axis=1)])
    for part in np.array_split(ends, 1 + int(len(ends) * tensor.dim**2 / LARGEST_BATCH)):
        w, _, is_maximum = refine_maxima(tensor, part, -np.ones(part.shape), np.ones(part.shape))
        points.append(w[is_maximum])
    every = np.concatenate(points)
    return every[group_lines(unit(every))[0]], undecided


def _climb(tensor: Tensor, w: np.ndarray) -> np.ndarray:
    """Projected ascent from F > 0 to nearly stationary points; steps shorten when F would fall, else lengthen."""
    size = field_sizes(tensor)
    force, shift = tensor.field(w) / size, np.ones(len(w))
    ends = []
    for _ in range(STEPS):
        done = np.abs(np.clip(w + force, -1, 1) - w).max(axis=1) < CLIMBED
        ends.append(w[done])
        w, force, shift = w[~done], force[~done], shift[~done]
        if not len(w):
            break
        trial = np.clip(w + force / shift[:, None], -1, 1)
        trial_force = tensor.field(trial) / size
        up = (trial_force * trial - force * w) @ size >= 0
        w, force = np.where(up[:, None], trial, w), np.where(up[:, None], trial_force, force)
        shift = np.where(up, np.maximum(shift / 2, LEAST_SHIFT), 2 * shift)
    return np.concatenate(ends)
