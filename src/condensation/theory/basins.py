r"""Basins: to which direction each direction goes.

A neuron whose output weight is far above its input weight keeps the sign of a, and its direction climbs
$s F(u) = s\, T u^p$, s = sign(a c), on the sphere: the sphere falls into the basins of the attracting directions. The
curves are followed by short steps of their own length, at most 0.02 radians.
"""

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from ..activations import Activation
from ..errors import InputError
from ..measure.similarity import directions as unit_vectors
from .directions import Directions, stationary_directions
from .leading import as_single, coefficient
from .tensor import Tensor, unit

STEP = 0.02
NEAR = 0.03  # radians from an attracting direction at which a curve has arrived
MOST_STEPS = 2000


def basins(
    points: ArrayLike,
    sign: int,
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    *,
    directions: Directions | None = None,
) -> tuple[Int[np.ndarray, " points"], Int[np.ndarray, " points"]]:
    """The line to which each direction goes, and on which side of it (+1 or -1); -1 and 0 where it goes to none.

    Args:
        points: directions, points x inputs (of any length).
        sign: of the output weight, 1 or -1.
        x: inputs, samples x inputs; with a bias the last input is 1.
        residual: y - f, one for each sample.
        activation: of the hidden layer; it needs a multiplicity.
        directions: the stationary directions of x and residual, where they are known already.

    >>> lines, signs = basins([[1.0, 0.2], [-1.0, 0.2]], 1, np.eye(2), [2.0, -1.0], "x_tanh")
    >>> lines, signs  # F(u) = u_1^2 - u_2^2 / 2
    (array([0, 0]), array([ 1, -1]))
    """
    if sign not in (1, -1):
        raise InputError(f"the sign of the output weight is 1 or -1, not {sign!r}")
    samples, r = as_single(x, residual)
    p, c = coefficient(activation)
    s = sign * (1 if c > 0 else -1)
    found = stationary_directions(samples, r, p) if directions is None else directions
    tensor = Tensor(samples, r[:, None] / len(r), p)
    u = unit_vectors(points).astype(float)
    lines, sides = np.full(len(u), -1), np.zeros(len(u), int)
    attract = np.flatnonzero(found.attracts_positive if s > 0 else found.attracts_negative)
    ends = found.directions[attract] * (s if p % 2 else 1)
    left, scale = np.arange(len(u)), p * float(found.growth.max(initial=0)) or 1.0
    for _ in range(MOST_STEPS if len(ends) else 0):
        cosine = u[left] @ ends.T
        if p % 2:
            near, nearest = cosine.max(axis=1), cosine.argmax(axis=1)
        else:
            near, nearest = np.abs(cosine).max(axis=1), np.abs(cosine).argmax(axis=1)
        arrived = near > np.cos(NEAR)
        lines[left[arrived]] = attract[nearest[arrived]]
        along = np.sign(cosine[arrived, nearest[arrived]]).astype(int)
        sides[left[arrived]] = along * (s if p % 2 else 1)
        left = left[~arrived]
        if not len(left):
            break
        force = s * tensor.field(u[left])
        force -= np.einsum("ld,ld->l", force, u[left])[:, None] * u[left]
        length = np.linalg.norm(force, axis=1, keepdims=True)
        u[left] = unit(u[left] + unit(force) * np.minimum(STEP, length / scale))
    return lines, sides


def circle(count: int) -> Float[np.ndarray, "points 2"]:
    """Unit vectors of the plane, evenly around the circle."""
    angle = 2 * np.pi * (np.arange(count) + 0.5) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def sphere(rows: int) -> Float[np.ndarray, "rows columns 3"]:
    """Unit vectors on a grid of latitudes x longitudes, twice as many longitudes."""
    latitude = np.pi * ((np.arange(rows) + 0.5) / rows - 0.5)[:, None]
    longitude = 2 * np.pi * ((np.arange(2 * rows) + 0.5) / (2 * rows) - 0.5)[None, :]
    parts = (np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude))
    return np.stack([part + 0 * longitude for part in parts], axis=-1)
