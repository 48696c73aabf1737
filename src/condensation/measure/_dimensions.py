"""The dimensions that weights have: inputs without weights, or with weights that depend linearly on others, add none.

Only few dimensions matter: from five on, chance does not reach a cosine of 0.95. Weights on few exact lines have a low
rank, too, and say nothing about the inputs: they keep all their dimensions. So units that share one line are condensed
on it, unless a single input carries all of their weights.
"""

import numpy as np
from jaxtyping import Bool, Float

from ._similarity import norms

MOST = 4  # dimensions in which chance reaches a cosine of 0.95
FEW = 8  # units
ROUNDING = 16  # in units of the precision: how far a unit is outside of a subspace that holds it


def effective_inputs(
    array: Float[np.ndarray, "units inputs"],
) -> tuple[Float[np.ndarray, "units dimensions"], Float[np.ndarray, "dimensions inputs"] | None]:
    """The weights in the dimensions they have, and these as orthonormal rows; None where they are the inputs.

    >>> coordinates, basis = effective_inputs(np.array([[1.0, 2.0, 0.0], [3.0, -1.0, 0.0], [1.0, 1.0, 0.0]]))
    >>> coordinates.shape, basis
    ((3, 2), array([[1., 0., 0.],
           [0., 1., 0.]]))
    """
    basis = None
    if np.count_nonzero(array[:FEW].any(axis=0)) <= MOST:
        used = np.asarray(array.any(axis=0))
        if used.sum() <= MOST and not used.all():
            basis = np.eye(array.shape[1])[used]
            array = np.ascontiguousarray(array[:, used])
    own = _subspace(array)
    if own is None:
        return array, basis
    return array @ own.T.astype(array.dtype), own if basis is None else own @ basis


def has_all_inputs(
    layers: Float[np.ndarray, "networks units inputs"], r: Float[np.ndarray, "networks units"]
) -> Bool[np.ndarray, " networks"]:
    """Which layers, with units of norms r, have all dimensions, as their first units tell.

    The others may have them, too; ``effective_inputs`` looks at all of their units.
    """
    few, inputs = layers[:, :FEW], layers.shape[2]
    most = min(MOST, inputs - 1)
    if few.shape[1] <= most:
        return np.zeros(len(layers), bool)
    used = few.any(axis=1).sum(axis=1)
    values = np.linalg.svd(few.astype(float) / np.where(r > 0, r, 1)[:, :FEW, None], compute_uv=False)
    return ((used > MOST) | (used == inputs)) & (values[:, most] > _tolerance(layers) * FEW**0.5)


def _tolerance(array: np.ndarray) -> float:
    return ROUNDING * float(np.finfo(array.dtype).eps)


def _subspace(array: np.ndarray) -> np.ndarray | None:
    """Orthonormal rows of the few dimensions that hold all units; None where there are none, or exact lines alone."""
    tolerance = _tolerance(array)
    most = min(MOST, array.shape[1] - 1)
    few = np.linalg.svd(_unit_rows(array[:FEW]), compute_uv=False)  # rule most layers out
    if len(few) > most and few[most] > tolerance * FEW**0.5:
        return None
    u = _unit_rows(array)
    basis, lines = _pivots(u, tolerance, min(most, len(u) - 1))
    if basis is None:
        return None
    sines = [norms(u - np.outer(u @ line, line)) for line in lines]
    return None if (np.min(sines, axis=0) <= tolerance).all() else basis


def _unit_rows(array: np.ndarray) -> np.ndarray:
    r = norms(array)
    return array[r > 0].astype(float) / r[r > 0, None]


def _pivots(u: np.ndarray, tolerance: float, most: int) -> tuple[np.ndarray | None, np.ndarray]:
    """An orthonormal basis of the rows, and the rows it was made of; no basis where it needs more than ``most``."""
    rest, basis, chosen = u, [], []
    for _ in range(most + 1):
        length = norms(rest)
        far = int(length.argmax())
        if length[far] <= tolerance:
            return np.array(basis), u[chosen]
        basis.append(rest[far] / length[far])
        chosen.append(far)
        rest = rest - np.outer(rest @ basis[-1], basis[-1])
    return None, u[chosen]
