"""The moments of a training that can be gone back to, in bounded memory."""

import bisect

from ..training import Moment

MOST_BYTES = 16 * 2**20
MOST_MOMENTS = 2000


class Recording:
    """Moments in the order of their steps. When there are too many, every second one is left out, never the first."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_moments: int = MOST_MOMENTS) -> None:
        self.most_bytes, self.most_moments = most_bytes, most_moments
        self.moments: list[Moment] = []
        self._steps: list[int] = []

    def __len__(self) -> int:
        return len(self.moments)

    def add(self, moment: Moment) -> None:
        """Append a moment that comes after all others."""
        self.moments.append(moment)
        self._steps.append(moment.step)
        size = sum(value.nbytes for value in moment.parameters.values())
        while len(self.moments) > 3 and len(self.moments) > min(self.most_moments, self.most_bytes // max(size, 1)):
            last = self.moments[-1]
            self.moments = [*self.moments[:-1:2], last]
            self._steps = [one.step for one in self.moments]

    @property
    def last(self) -> Moment:
        """The latest moment."""
        return self.moments[-1]

    def at(self, step: int) -> Moment:
        """The latest moment that is not after a step."""
        return self.moments[max(bisect.bisect_right(self._steps, step) - 1, 0)]

    def nearest(self, step: int) -> Moment:
        """The moment nearest to a step."""
        return min(self.moments, key=lambda one: abs(one.step - step))

    def after(self, step: int) -> Moment | None:
        """The first moment after a step, if there is one."""
        place = bisect.bisect_right(self._steps, step)
        return self.moments[place] if place < len(self.moments) else None
