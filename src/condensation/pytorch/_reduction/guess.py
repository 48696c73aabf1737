"""Where along an order of removals a goal is just met, guessed from what the removals cost and from what was tried.

The square of a model's error grows about as a power of the summed costs of what is left out. Through the two models
beside the goal there is one such power; through a single one, and none at first, errors are taken as proportional to
costs. A guess is only where to look next: what is taken was tried.
"""

import numpy as np
from jaxtyping import Float

AIM = 0.975  # of what is allowed


class Search:
    """The largest number of removals that meets a goal, between two that were tried.

    Args:
        costs: of each removal.
        least: the two numbers need not come closer than this.
        first: the summed costs at which the goal is met, if anything is known of that before a model was tried.
        close: a model that takes such a share of what is allowed is the one looked for.

    >>> search = Search(np.arange(1.0, 1001), 8, None, 0.95)
    >>> while not search.done:
    ...     removed = search.next()
    ...     search.tried(removed, (removed / 300) ** 0.5)
    >>> search.low, search.steps
    (300, 3)
    """

    def __init__(self, costs: Float[np.ndarray, " removals"], least: int, first: float | None, close: float) -> None:
        self.costs = np.concatenate([[0.0], np.cumsum(costs)])
        self.least, self.first, self.close, self.steps = least, first, close, 0
        self.low, self.high = 0, len(self.costs)  # so many removals meet the goal, so many do not
        self._aim, self._side = AIM, 0  # how often in a row models met the goal (below zero) or did not
        self._excess: dict[int, float] = {}

    @property
    def done(self) -> bool:
        """Whether a smaller model would hardly be found."""
        return self.high - self.low <= self.least or self._excess.get(self.low, 0.0) >= self.close

    def tried(self, removed: int, excess: float) -> None:
        """Take in how much of an error a model has, as a multiple of what is allowed."""
        self.steps += 1
        self._excess[removed] = excess
        if excess <= 1:
            self.low, self._aim, self._side = removed, AIM, min(self._side, 0) - 1
        else:  # what is no number, too
            self.high, self._aim, self._side = removed, self._aim**2, max(self._side, 0) + 1

    def next(self) -> int:
        """The number of removals to try."""
        middle = (self.low + self.high) // 2
        wanted = None if abs(self._side) > 2 else self._wanted()  # where guesses lead nowhere the middle does
        if wanted is None or not np.isfinite(wanted):
            return middle
        guess = int(np.searchsorted(self.costs, wanted, side="right")) - 1
        if self.low < guess < self.high:
            return guess
        edge = max(1, min(self.least, (self.high - self.low) // 2))
        return self.low + edge if guess <= self.low else self.high - edge

    def _wanted(self) -> float | None:
        """The summed costs at which the goal is just met."""
        near = [(self.costs[k], self._excess[k] ** 2) for k in (self.low, self.high) if k in self._excess]
        near = [(cost, square) for cost, square in near if cost > 0 and 0 < square < np.inf]
        if not near:
            return self.first
        cost, square = near[-1]
        power = 1.0
        if len(near) == 2 and near[0][0] < cost:
            power = np.log(square / near[0][1]) / np.log(cost / near[0][0])
        return cost * (self._aim**2 / square) ** (1 / power)
