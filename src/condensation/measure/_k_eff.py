r"""k_eff, the effective number of lines: counted by pairs of units, without clustering.

$k_{eff} = 1 / \sum_{ij} w_i w_j [\,|\cos_{ij}| \ge c\,]$ with $w_i$ the share of the norm that unit i has. k lines of
equal mass that are further apart than c give k. Random units give $1 / (s + (1 - s) P)$ with $s = \sum_i w_i^2$, one
over the number of units where all are as heavy, and $P = P(|\cos| \ge c)$ for two random directions: about the number
of units in many dimensions, and at most $1/P$, however many they are. In three and four dimensions that is 100, in
the plane 6.8.
"""

from dataclasses import dataclass

import numpy as np

SAMPLE = 1000  # of larger layers a sample of this many units is looked at, drawn by mass


@dataclass(frozen=True)
class Pairs:
    """The units with a direction and their |cos|; of a large layer a fixed sample drawn by mass."""

    shares: np.ndarray  # of the norm, of all units
    chosen: np.ndarray  # numbers of the units in the sample
    counts: np.ndarray | None  # how often each was drawn; None where all units are there
    cosines: np.ndarray  # |cos| of each pair

    @staticmethod
    def of(array: np.ndarray, r: np.ndarray, shares: np.ndarray) -> "Pairs":
        """The pairs of units x inputs with given norms and shares."""
        chosen, counts = np.flatnonzero(shares), None
        if len(chosen) > SAMPLE:
            drawn = np.random.default_rng(0).choice(len(shares), SAMPLE, p=shares)
            chosen, counts = np.unique(drawn, return_counts=True)
        u = array[chosen] / r[chosen, None].astype(array.dtype)
        return Pairs(shares, chosen, counts, np.abs(u @ u.T))

    def effective_count(self, c: float) -> float:
        """k_eff; of a large layer a unit's pair with itself is counted exactly, pairs of others by the sample."""
        near = self.cosines >= c
        np.fill_diagonal(near, self.counts is None)
        if self.counts is None:
            w = self.shares[self.chosen]
            return float(1 / (w @ near @ w))
        return float(self._from_sample(near, self.counts.astype(float)))

    def count_halves(self, c: float, draws: int, stream: np.random.Generator) -> np.ndarray:
        """k_eff of halves of the units, drawn at random."""
        near = (self.cosines >= c).astype(float)
        np.fill_diagonal(near, self.counts is None)
        mass = self.shares[self.chosen] if self.counts is None else self.counts.astype(float)
        halves = mass * (stream.permuted(np.tile(np.arange(len(mass)), (draws, 1)), axis=1) < (len(mass) + 1) // 2)
        if self.counts is None:
            return halves.sum(axis=1) ** 2 / ((halves @ near) * halves).sum(axis=1)
        return np.asarray(self._from_sample(near, halves))

    def _from_sample(self, near: np.ndarray, mass: np.ndarray) -> np.ndarray | np.floating:
        alone = float((self.shares**2).sum())
        near_mass, all_mass = ((mass @ near) * mass).sum(axis=-1), mass.sum(axis=-1) ** 2 - (mass**2).sum(axis=-1)
        return 1 / (alone + (1 - alone) * near_mass / all_mass)

    def chance_count(self, probability: float) -> float:
        """k_eff of as many random units, where two of them are near each other with a probability."""
        alone = float((self.shares**2).sum())
        return 1 / (alone + (1 - alone) * probability)
