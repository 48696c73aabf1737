r"""Lines in two dimensions: modes of a density on the projective circle.

In the plane random directions are never far from each other, so a fixed cosine would group anything. There the
angles $\theta_j$ of the units' lines, each with its share of the norm, are smoothed by a wrapped Gaussian, and the
modes of that density are the lines; two modes with no valley of half their height between them are one: two equal
lines are told apart from 13.3 degrees on (the *resolution*, which bins of half a degree blur). Whether the
layer is condensed is judged by the *occupied* part of the circle, the smallest one that holds 90% of the smoothed mass:
it must be below 40%, and below what random units in the same number give.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

BINS = 360  # of the half circle: half a degree
WIDTH = np.deg2rad(4.0)
HELD = 0.9
MOST_OCCUPIED = 0.4
VALLEY = 0.5
RESOLUTION = float(WIDTH * np.sqrt(8 * np.log(2 / VALLEY)))  # angle at which 2 exp(-angle^2 / 8 WIDTH^2) is VALLEY
DRAWS = 2000
QUANTILE = 0.002  # well below 1% false alarms, also for units that are not equally heavy

Draws = Float[np.ndarray, "draws units"]
PerUnit = Float[np.ndarray, " units"]


def density(theta: Draws, shares: PerUnit) -> Float[np.ndarray, "draws bins"]:
    """Smoothed mass in each bin of the half circle, a row for each draw of angles."""
    bins = np.floor(np.mod(theta, np.pi) / np.pi * BINS).astype(int) % BINS
    rows = np.arange(len(theta))[:, None] * BINS
    mass = np.bincount((rows + bins).ravel(), np.tile(shares, len(theta)), len(theta) * BINS)
    wave_number = 2 * np.arange(BINS // 2 + 1)  # the circle has length pi
    waves = np.fft.rfft(mass.reshape(len(theta), BINS), axis=1)
    return np.fft.irfft(waves * np.exp(-0.5 * (wave_number * WIDTH) ** 2), BINS, axis=1)


def modes(theta: PerUnit, shares: PerUnit, reach: float) -> Int[np.ndarray, " units"]:
    """For each unit the nearest mode of the density if it is within reach (radians), else -1."""
    centres = (_peaks(density(theta[None], shares)[0]) + 0.5) * np.pi / BINS
    away = np.abs(np.mod(theta[:, None] - centres + np.pi / 2, np.pi) - np.pi / 2)
    return np.where(away.min(axis=1) <= reach, away.argmin(axis=1), -1)


def _peaks(smooth: Float[np.ndarray, " bins"]) -> Int[np.ndarray, " modes"]:
    """Bins of the modes; of two neighbours without a valley between them the higher one."""
    higher = (smooth > np.roll(smooth, 1)) & (smooth >= np.roll(smooth, -1))
    peaks = np.flatnonzero(higher & (smooth > 1e-9 * smooth.max()))  # not the rounding of zero
    if not len(peaks):
        return np.array([smooth.argmax()])
    while len(peaks) > 1:
        ends = np.roll(peaks, -1)
        spans = [np.arange(a, b if b > a else b + BINS) % BINS for a, b in zip(peaks, ends, strict=True)]
        depth = [smooth[span].min() / min(smooth[a], smooth[b]) for span, a, b in zip(spans, peaks, ends, strict=True)]
        worst = int(np.argmax(depth))
        if depth[worst] < VALLEY:
            break
        pair = (peaks[worst], ends[worst])
        peaks = peaks[peaks != min(pair, key=smooth.__getitem__)]
    return peaks


def is_condensed(theta: PerUnit, shares: PerUnit) -> bool:
    r"""Whether the units occupy little of the circle, and less than chance gives.

    Units of unequal shares count as $1/\sum_j s_j^2$ equal ones, rounded down to a power of 1.1 so that few numbers of
    units ever need a simulation.
    """
    part, units = occupied(theta[None], shares)[0], 1.1 ** np.floor(np.log(1 / (shares**2).sum()) / np.log(1.1))
    return bool(part < MOST_OCCUPIED and part < _chance_occupied(int(units)))


def occupied(theta: Draws, shares: PerUnit) -> Float[np.ndarray, " draws"]:
    """Smallest part of the circle that holds 90% of the smoothed mass.

    >>> occupied(np.zeros((1, 5)), np.full(5, 0.2)).round(3)  # one line: 3.3 widths of the Gaussian
    array([0.072])
    """
    falling = np.sort(density(theta, shares), axis=1)[:, ::-1]
    return (np.cumsum(falling, axis=1) < HELD).sum(axis=1) / BINS


@lru_cache(maxsize=1024)
def _chance_occupied(units: int) -> float:
    """The occupied part that random units hardly ever fall below."""
    theta = np.random.default_rng(0).uniform(0, np.pi, (DRAWS, units))
    return float(np.quantile(occupied(theta, np.full(units, 1 / units)), QUANTILE))
