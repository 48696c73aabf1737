"""Numbers that say how far a layer has moved and how many units it really has, without grouping them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._similarity import as_floats, as_weights, norms

AT_ONCE = 1 << 16  # entries that are looked at together: more would be fetched from the system anew each time


def relative_change(end: ArrayLike, start: ArrayLike) -> float:
    r"""RD $= |\theta_{end} - \theta_0| / |\theta_0|$.

    >>> relative_change(np.array([3.0, 0.0]), np.array([1.0, 0.0]))
    2.0
    """
    a, b = as_floats("end", end), as_floats("start", start)
    if a.shape != b.shape:
        raise InputError(f"end and start must have one shape, not {a.shape} and {b.shape}")
    scale = float(max(b.max(initial=0), -b.min(initial=0)))
    if not 0 < scale < np.inf or not np.isfinite(a).all():
        raise InputError("the relative change needs a finite start that is not zero, and a finite end")
    flat, change, size = [a.reshape(-1), b.reshape(-1)], 0.0, 0.0
    for first in range(0, a.size, AT_ONCE):  # a large embedding is not copied as a whole
        after, before = (part[first : first + AT_ONCE].astype(float) / scale for part in flat)
        change, size = change + float((after - before) @ (after - before)), size + float(before @ before)
    return float(np.sqrt(change / size))


def relative_changes(
    end: Float[np.ndarray, "networks ..."], start: Float[np.ndarray, "networks ..."]
) -> Float[np.ndarray, " networks"]:
    """The relative change of each of many networks' weights; NaN where it would be refused.

    >>> relative_changes(np.array([[3.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.0]]))
    array([ 2., nan])
    """
    change = np.full(len(end), np.nan)
    together = max(1, AT_ONCE // max(1, end[0].size if len(end) else 1))
    for first in range(0, len(end), together):
        after, before = (part[first : first + together].reshape(-1, end[0].size).astype(float) for part in (end, start))
        scale = np.abs(before).max(axis=1)
        good = (scale > 0) & (scale < np.inf) & np.isfinite(after).all(axis=1)
        after, before = (part[good] / scale[good, None] for part in (after, before))
        moved, size = ((part[:, None] @ part[:, :, None])[:, 0, 0] for part in (after - before, before))
        change[first : first + together][good] = np.sqrt(moved / size)
    return change


def share_along(weights: ArrayLike, direction: ArrayLike) -> float:
    r"""Share of the weights along z: $|\theta_{w,z}| / |\theta_w|$, from 0 (orthogonal) to 1 (all on the line of z).

    >>> share_along(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([1.0, 0.0]))
    0.6
    """
    w, z = as_weights(weights), as_floats("direction", direction).astype(float)
    if z.shape != w.shape[1:]:
        raise InputError(f"the direction must be a vector of {w.shape[1]} numbers, not of shape {z.shape}")
    if not 0 < np.abs(z).max() < np.inf:
        raise InputError(f"the direction must be finite and not zero, not {z}")
    total = np.linalg.norm(w)
    if not total > 0:
        raise InputError("all weights are zero: no share along a direction")
    z = z / np.abs(z).max()
    return float(np.linalg.norm(w @ (z / np.linalg.norm(z))) / total)


def participation_ratio(weights: ArrayLike) -> float:
    r"""$(\sum_j r_j^2)^2 / \sum_j r_j^4$ of the amplitudes: m when all are equal, 1 when one unit has all the norm.

    >>> participation_ratio(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    2.0
    """
    r = norms(as_weights(weights)).astype(float)
    if not r.max() > 0:
        raise InputError("all weights are zero: the participation ratio is undefined")
    squares = (r / r.max()) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def orientation_amplitude(
    weights: ArrayLike, output: ArrayLike | None = None
) -> tuple[Float[np.ndarray, " units"], Float[np.ndarray, " units"]]:
    r"""Features of a layer with one-dimensional input: the angle of (w, b) in $(-\pi, \pi]$ and the amplitude.

    Args:
        weights: units x 2, the weight and the bias.
        output: output weights, units or outputs x units; the amplitude is then $|a_j| |w_j|$ instead of $|w_j|$.

    >>> orientation_amplitude(np.array([[0.0, 2.0]]))
    (array([1.57079633]), array([2.]))
    """
    as_weights(weights)
    w = as_floats("weights", weights)
    if w.shape[1] != 2:
        raise InputError(f"orientation as an angle needs units x 2 (weight and bias), not {w.shape}")
    amplitude = np.hypot(w[:, 0], w[:, 1])
    if output is not None:
        a = np.atleast_2d(as_floats("output weights", output).astype(float))
        if a.shape[1] != len(w):
            raise InputError(f"output weights of {len(w)} units are needed, not of shape {np.shape(output)}")
        amplitude = amplitude * np.linalg.norm(a, axis=0)
    return np.arctan2(w[:, 1], w[:, 0]), amplitude
