r"""Plateaus of a loss curve: intervals in which the loss hardly changes, between drops.

*Hardly* and *long* are relative, so that a plateau of a hundred steps and one of a million are found alike. The loss
falls by at most ``flat`` within a plateau, on the scale of its logarithm, and beside it, before and after, by twice as
much in half of the time or less. A decay of one pace has no plateaus, be it exponential or a power of
time: there the loss takes about twice the time for twice the fall. Where the curve begins or ends there is no drop to
compare with, and one side decides.

Noise, spikes and oscillations are taken away first by the non-increasing curve that is nearest to the logarithm of
the loss (isotonic regression). It needs no width of a window, and does not smear drops.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..errors import InputError
from ._similarity import as_floats

LONGER = 2.0  # times as long as a drop beside it
DEEPER = 2.0  # a drop, in what the loss may fall within a plateau
LEAST = 3  # records within a plateau
NOISE = 4.0  # standard deviations of the noise that a plateau may fall by


def find_plateaus(steps: ArrayLike, loss: ArrayLike, *, flat: float = 0.1) -> Float[np.ndarray, "plateaus 2"]:
    """The first and the last recorded step of each plateau of a loss curve, in the order of time.

    Before the first drop and after the last one there can be a plateau as well: it begins at the first step, or goes on
    to the last. A curve that never falls is one plateau. What comes after the loss is no number, infinite or
    zero is left out.

    Args:
        steps: at which the loss was recorded, or times: ascending.
        loss: at these steps.
        flat: by how much the logarithm of the loss may fall within a plateau; 0.1 is a tenth of the loss. Where the
            noise is as large as that, the plateau may fall by four standard deviations of it.

    >>> t = np.arange(300)
    >>> stairs = np.interp(t, [0, 100, 110, 200, 210, 299], [1, 1, 0.4, 0.4, 0.1, 0.1])
    >>> find_plateaus(t, stairs).round(-1)
    array([[  0., 100.],
           [110., 200.],
           [210., 300.]])
    >>> find_plateaus(t, np.exp(-t / 20))
    array([], shape=(0, 2), dtype=float64)
    """
    time, height = _alive(steps, loss)
    if not flat > 0:
        raise InputError(f"flat is a fall of the loss's logarithm above 0, not {flat!r}")
    if len(time) < LEAST:
        return np.zeros((0, 2))
    from scipy.optimize import isotonic_regression  # takes long to load

    level = np.asarray(isotonic_regression(height, increasing=False).x)
    flat = max(flat, NOISE * _noise(height))
    first, last, length = _long_and_flat(time, level, flat)
    chosen: list[int] = []
    for k in np.argsort(-length, kind="stable"):
        if all(first[k] > last[other] or last[k] < first[other] for other in chosen):
            chosen.append(int(k))
    return np.array([(time[first[k]], time[last[k]]) for k in sorted(chosen, key=lambda k: first[k])]).reshape(-1, 2)


def _alive(steps: ArrayLike, loss: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the logarithm of the loss up to where it is no positive number."""
    time, values = as_floats("steps", steps).astype(float), as_floats("loss", loss).astype(float)
    if time.ndim != 1 or time.shape != values.shape:
        raise InputError(f"one loss for each step is needed, not {values.shape} losses at {time.shape} steps")
    if not (np.isfinite(time).all() and (np.diff(time) > 0).all()):
        raise InputError("the steps must ascend")
    good = np.logical_and.accumulate(np.isfinite(values) & (values > 0))
    return time[good], np.log(values[good])


def _noise(height: np.ndarray) -> float:
    """The standard deviation of independent noise, by the median of second differences (a straight line has none)."""
    bends = np.abs(np.diff(height, 2))
    return float(np.median(bends)) / (0.6745 * np.sqrt(6)) if len(bends) else 0.0


def _long_and_flat(time: np.ndarray, level: np.ndarray, flat: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First and last record, and length, of the intervals that are plateaus; they overlap.

    From each record on, the longest interval in which the level falls by no more than it may. A drop beside it that the
    curve does not hold as a whole counts by its pace.
    """
    first, drop = np.arange(len(level)), DEEPER * flat
    ends, after, before = (_reached(time, level, level - fall) for fall in (flat, flat + drop, -drop))
    inside = np.isnan(ends)  # it goes on to the last record
    ends = np.where(inside, time[-1], ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        pace_before, pace_after = drop / (level[0] - level), drop / np.maximum(level - flat - level[-1], 0)
        falling = np.where(np.isnan(before), (time - time[0]) * pace_before, time - before)
        going = np.where(np.isnan(after), (time[-1] - ends) * pace_after, after - ends)
    length = ends - time
    slow = (~(level == level[0]) & (LONGER * falling > length)) | (~inside & ~(LONGER * going <= length))
    last = np.searchsorted(-level, flat - level + 1e-12, side="right") - 1
    good = (last - first + 1 >= LEAST) & ~slow
    return first[good], last[good], length[good]


def _reached(time: np.ndarray, level: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """When a non-increasing curve is last at the wanted levels, straight between records; NaN where it never is."""
    after = np.searchsorted(-level, -wanted + 1e-12, side="right")  # the first record below
    k = np.clip(after, 1, len(level) - 1)
    fall = np.maximum(level[k - 1] - level[k], 1e-300)
    part = np.clip((level[k - 1] - wanted) / fall, 0, 1)
    there = time[k - 1] + part * (time[k] - time[k - 1])
    return np.where((after > 0) & (after < len(level)), there, np.nan)
