"""When a watched training is measured: as much as a share of the time of its steps pays for, reckoned beforehand."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

FREE = 0.05  # seconds of measuring that need no steps to pay for them: of 2 s of training they are 3%
KEPT = 63  # times of steps of which the median is taken: a compilation or a validation between two counts little


class Budget:
    """The share of the time of steps that may be spent.

    A step takes the median of the last ones, what is spent left out. A measurement is expected to take as long as the
    last one did. It is made only if it, and a last one at the end, keep all that is spent within the share.

    Args:
        share: None allows everything.
        clock: gives seconds.

    >>> now = [0.0]
    >>> budget = Budget(0.03, lambda: now[0])
    >>> budget.expected = 1.0
    >>> allowed = []
    >>> for step in range(101):
    ...     now[0] += 1
    ...     began = budget.begin()
    ...     allowed.append(budget.allows())
    ...     budget.end(began)
    >>> allowed.index(True)  # 67 steps of a second pay for two measurements of a second
    66
    """

    def __init__(self, share: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self.share, self.spent, self.expected = share, 0.0, 0.0
        self._clock, self._steps = clock, 0
        self._left = math.nan  # when the watcher was left last, once a step is told
        self._times: deque[float] = deque(maxlen=KEPT)
        self._look = 0  # the step until which nothing more can be paid for

    def begin(self) -> float:
        """Before all that is done when a step is told; when that was, which ``end`` is told."""
        began = self._clock()
        self._steps += 1
        if self._left == self._left:  # a number
            self._times.append(began - self._left)
        return began

    def end(self, began: float) -> None:
        """After all that is done when a step is told."""
        self._left = self._clock()
        self.spent += self._left - began

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Around what is to be counted."""
        began = self._clock()
        try:
            yield
        finally:
            self.spent += self._clock() - began

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Around a measurement: the next one is expected to take as long."""
        began = self._clock()
        yield
        self.expected = self._clock() - began

    @property
    def exhausted(self) -> bool:
        """Whether it is known that nothing can be paid for yet."""
        return self._steps < self._look

    def allows(self) -> bool:
        """Whether one more measurement can be paid for, with one at the end."""
        if self.share is None:
            return True
        if self.exhausted:
            return False
        needed = self.spent + 2 * self.expected
        each = self.share * median(self._times) if self._times else 0.0
        if needed <= max(FREE, each * self._steps):
            return True
        if each:
            self._look = self._steps + max(1, int(needed / each - self._steps) // 2)  # steps may become slower
        return False
