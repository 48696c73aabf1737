"""Lines that hold with the bias and without it: two units are on one only if they are on one either way.

The bias counts as an input of size one. Where inputs are smaller, units with like biases look alike that read
different things; where they are larger, biases that matter are hardly seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from ._lines import LEAST_COVER, LEAST_SHARE, LEAST_UNITS, Lines, keep_lines


def held(full: Lines, plain: Lines, r: Float[np.ndarray, " units"]) -> Lines:
    """The lines that hold with the bias (``full``) and without (``plain``), of units with norms r.

    k_eff is the larger one: a pair of units has to be near either way, so that the true one is at least that.
    """
    shares = r / r.sum()
    both = np.where((full.labels >= 0) & (plain.labels >= 0), full.labels * (plain.count + 1) + plain.labels, -1)
    labels = keep_lines(both, shares)
    signs = np.where(labels >= 0, full.signs, 0)
    firsts = [int((labels == k).argmax()) for k in range(labels.max(initial=-1) + 1)]
    line_shares = np.array([shares[labels == k].sum() for k in range(len(firsts))])
    sides = [(labels == k) & (signs == sign) for k in range(len(firsts)) for sign in (1, -1)]
    cover = float(line_shares.sum())
    return replace(
        full,
        directions=full.directions[full.labels[firsts]] if firsts else full.directions[:0],
        shares=line_shares,
        labels=labels,
        signs=signs,
        orientations=len([side for side in sides if side.sum() >= LEAST_UNITS and shares[side].sum() >= LEAST_SHARE]),
        cover=cover,
        k_eff=max(full.k_eff, plain.k_eff),
        condensed=full.condensed and plain.condensed and cover >= LEAST_COVER,
    )


def spare(lines: Lines) -> int:
    """Units on lines beyond the first on each side of each line: merging would take so many away.

    >>> from condensation import find_lines
    >>> spare(find_lines(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0], [-3.0, -6.0, -9.0]])))
    2
    """
    on = lines.labels >= 0
    return int(on.sum()) - len(np.unique(2 * lines.labels[on] + (lines.signs[on] > 0)))
