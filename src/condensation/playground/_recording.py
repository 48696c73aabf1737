"""The recording of a training: moments that the page can return to, in bounded memory."""

import bisect

from ..training import Moment

MOST_BYTES = 16 * 2**20
MOST_MOMENTS = 2000


class Recording:
    """Moments in the order of their steps. If there are too many, every second one is dropped, but never the first."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_moments: int = MOST_MOMENTS) -> None:
        self.most_bytes, self.most_moments = most_bytes, most_moments
        self.moments: list[Moment] = []

    def __len__(self) -> int:
        return len(self.moments)

    def add(self, moment: Moment) -> None:
        """Append a moment that comes after all others."""
        self.moments.append(moment)
        size = sum(value.nbytes for value in moment.parameters.values())
        while len(self) > 3 and len(self) > min(self.most_moments, self.most_bytes // max(size, 1)):
            self.moments = [*self.moments[:-1:2], moment]

    @property
    def last(self) -> Moment:
        """The latest moment."""
        return self.moments[-1]

    def at(self, step: int) -> Moment:
        """The latest moment that is not after a step."""
        return self.moments[max(self._count(step) - 1, 0)]

    def nearest(self, step: int) -> Moment:
        """The moment nearest to a step."""
        return min(self.moments, key=lambda moment: abs(moment.step - step))

    def after(self, step: int) -> Moment | None:
        """The first moment after a step, if there is one."""
        count = self._count(step)
        return self.moments[count] if count < len(self) else None

    def _count(self, step: int) -> int:
        """How many moments are not after a step."""
        return bisect.bisect_right(self.moments, step, key=lambda moment: moment.step)
