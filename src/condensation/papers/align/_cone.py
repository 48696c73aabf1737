r"""A cone of samples, and whether its teacher is the interpolation of least norm.

The samples lie within 45 degrees of the teacher's direction v. Of the relu networks that interpolate as many samples as
there are coordinates, the one neuron v has the least sum of |a||w| if and only if the vector $\nu$ with
$X^T \nu = v/|v|$ has $|\sum_i \nu_i\, \mathrm{relu}(u \cdot x_i)| \le 1$ for all unit vectors u (duality). On the cone
of the u that are active on given samples this is linear, and its maximum the norm of a projection.
"""

from itertools import product

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar, nnls

DIM = 4
WIDEST = np.pi / 4
LEAST = 0.03  # singular value: with less, training would take too long to fit


def _near(rng: np.random.Generator, direction: np.ndarray, count: int) -> np.ndarray:
    """Unit vectors at angles up to 45 degrees from a direction, uniform in the angle."""
    aside = rng.standard_normal((count, len(direction)))
    aside -= np.outer(aside @ direction, direction)
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    angles = rng.uniform(0, WIDEST, count)[:, None]
    return np.cos(angles) * direction + np.sin(angles) * aside


def _direction(rng: np.random.Generator, dim: int) -> np.ndarray:
    drawn = rng.standard_normal(dim)
    return drawn / np.linalg.norm(drawn)


def cone(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """As many samples as coordinates, with the outputs of one relu neuron of norm 1."""
    return _cone_of(rng, DIM)


def cone16(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same in 16 dimensions."""
    return _cone_of(rng, 16)


def cone64(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same in 64 dimensions."""
    return _cone_of(rng, 64)


def _cone_of(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, np.ndarray]:
    teacher = _direction(rng, dim)
    x = _near(rng, teacher, dim)
    return x, x @ teacher


def cone_above(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The first such samples, not too near to dependent, whose teacher is by 1% in the dual not of least norm."""
    while True:
        x, y = cone(rng)
        if np.linalg.norm(x, -2) >= LEAST and dual_maximum(x, teacher_of(x, y))[0] > 1.01:
            return x, y


def two_cones(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples of two classes, 1 and -1, in opposite cones: those of a class have positive products, others negative."""
    y = np.resize([1.0, -1.0], 20)
    return y[:, None] * _near(rng, _direction(rng, 10), len(y)), y


def teacher_of(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " inputs"]:
    """The neuron that gave the targets: all samples are on its active side."""
    return np.linalg.solve(x, y)


def dual_maximum(x: np.ndarray, teacher: np.ndarray) -> tuple[float, Float[np.ndarray, " inputs"]]:
    r"""The largest $|\sum_i \nu_i\, \mathrm{relu}(u \cdot x_i)|$ over unit vectors u, and the u that has it.

    >>> x = np.eye(2)
    >>> value, at = dual_maximum(x, np.array([3.0, 4.0]))
    >>> round(value, 12), at.round(12)
    (1.0, array([0.6, 0.8]))
    """
    nu = np.linalg.solve(x.T, teacher / np.linalg.norm(teacher))
    best, where = 0.0, teacher / np.linalg.norm(teacher)
    for active in product((False, True), repeat=len(x)):
        sides = np.where(active, 1.0, -1.0)[:, None] * x  # the cone: all products at least 0
        for sign in (1, -1):
            slope = sign * (nu * np.array(active)) @ x
            along = slope + nnls(sides.T, -slope)[0] @ sides  # its projection on the cone
            size = float(np.linalg.norm(along))
            if size > best + 1e-12:
                best, where = size, along / size
    return best, where


def better(x: np.ndarray, teacher: np.ndarray, aside: np.ndarray) -> float:
    """The least sum of |a||w| of a second neuron along a direction with what is left for the first one, over |v|."""
    response = np.linalg.solve(x, np.maximum(x @ aside, 0))

    def norm(size: float) -> float:
        rest = teacher - size * response
        fits = bool((x @ rest >= 0).all())  # else the first neuron would not be active on all samples
        return float(np.linalg.norm(rest) + abs(size)) if fits else np.inf

    ends = [minimize_scalar(norm, bounds=bounds, method="bounded").fun for bounds in ((0, 1), (-1, 0))]
    return float(min(ends) / np.linalg.norm(teacher))
