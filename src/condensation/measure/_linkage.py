r"""Groups by average linkage, of many small layers at once.

Two parts of a layer with no pair nearer than the cut between them are never joined below the cut, as all averages are
above it. A part in which all units are near each other is joined as a whole, as all averages are below. So most layers,
random ones above all, need no tree; the others have one each, and all trees are cut at once.
"""

import numpy as np
from jaxtyping import Float, Int


def linked_groups(cosines: Float[np.ndarray, "networks units units"], c: float) -> Int[np.ndarray, "networks units"]:
    r"""Groups of average linkage on $\arccos|\cos|$, cut at $\arccos c$; each is called by the first of its units.

    >>> linked_groups(np.array([[[1.0, 0.99, 0.1], [0.99, 1.0, 0.1], [0.1, 0.1, 1.0]]]), 0.95)
    array([[0, 0, 2]])
    """
    near, units = cosines >= c, np.arange(cosines.shape[1])
    near[:, units, units] = True
    groups = near.argmax(axis=2)  # the first unit that is near
    of_first = near[np.arange(len(near))[:, None], groups]
    mixed = np.flatnonzero((near != of_first).any(axis=(1, 2)))
    if len(mixed):
        groups[mixed] = _cut(_trees(cosines[mixed]), float(np.arccos(c)))
    return groups


def _trees(cosines: Float[np.ndarray, "networks units units"]) -> Float[np.ndarray, "networks joints 4"]:
    """A tree of average linkage for each layer, as SciPy has them: the two nodes of each joint, height, size."""
    from scipy.cluster.hierarchy import linkage

    one, other = np.triu_indices(cosines.shape[1], 1)
    angles = np.arccos(np.clip(cosines[:, one, other], 0, 1)).astype(float)
    return np.stack([linkage(own, "average") for own in angles])


def _cut(trees: Float[np.ndarray, "networks joints 4"], height: float) -> Int[np.ndarray, "networks units"]:
    """The groups that are joined up to a height, each called by the first of its units."""
    count, joints = trees.shape[:2]
    units = joints + 1
    top = np.tile(np.arange(units + joints), (count, 1))  # of each node: itself, or the joint above it
    tree, joint = np.nonzero(trees[:, :, 2] <= height)
    for side in (0, 1):
        top[tree, trees[tree, joint, side].astype(int)] = units + joint
    for _ in range(units.bit_length()):  # twice as far up each time
        top = np.take_along_axis(top, top, axis=1)
    first = np.empty_like(top)
    np.put_along_axis(first, top[:, units - 1 :: -1], np.arange(units)[None, ::-1], axis=1)  # the last stays
    return np.take_along_axis(first, top[:, :units], axis=1)
