"""Save schedules: at which steps something is kept. Step 0 and the last step always are.

``steps`` lists them for a training whose last step is known. ``next_due`` tells the next one for a training that ends
when it ends; equal spacing cannot. ``stretched`` is the schedule of the same moments for a training whose steps are
``factor`` times as many and as much shorter: ``stretched(factor, last).steps(factor * last)`` are ``steps(last)``,
each times the factor.
"""

import bisect
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ._serialization import coerce_fields
from .errors import InputError, check_whole


@dataclass(frozen=True)
class At:
    """The steps that are listed."""

    kind: ClassVar[str] = "at"

    chosen: tuple[int, ...]

    def __post_init__(self) -> None:
        coerce_fields(self)
        object.__setattr__(self, "chosen", tuple(sorted(set(self.chosen))))
        for step in self.chosen:
            check_whole("a saved step", step, least=0)

    def steps(self, last: int) -> list[int]:
        """The listed steps, 0 and the last.

        >>> At((5, 2)).steps(10)
        [0, 2, 5, 10]
        """
        if self.chosen and self.chosen[-1] > last:
            raise InputError(f"step {self.chosen[-1]} is to be saved, but training ends at step {last}")
        return sorted({0, last, *self.chosen})

    def next_due(self, after: int) -> int | None:
        """The first listed step after another step, if there is one."""
        place = bisect.bisect_right(self.chosen, after)
        return self.chosen[place] if place < len(self.chosen) else None

    def stretched(self, factor: int, last: int) -> "At":
        """Each listed step times the factor."""
        return At(tuple(factor * step for step in self.chosen))


@dataclass(frozen=True)
class Every:
    """Every k-th step."""

    kind: ClassVar[str] = "every"

    k: int

    def __post_init__(self) -> None:
        coerce_fields(self)
        check_whole("k", self.k)

    def steps(self, last: int) -> list[int]:
        """0, k, 2k, ... and the last.

        >>> Every(4).steps(10)
        [0, 4, 8, 10]
        """
        return sorted({*range(0, last + 1, self.k), last})

    def next_due(self, after: int) -> int:
        """The first multiple of k after a step."""
        return (after // self.k + 1) * self.k

    def stretched(self, factor: int, last: int) -> "Every":
        """Every so many more steps."""
        return Every(factor * self.k)


@dataclass(frozen=True)
class Evenly:
    """About ``count`` steps, equally spaced from 0 to the last; all of them if there are fewer."""

    kind: ClassVar[str] = "evenly"

    count: int

    def __post_init__(self) -> None:
        coerce_fields(self)
        check_whole("count", self.count, least=2)

    def steps(self, last: int) -> list[int]:
        """Equally spaced steps.

        >>> Evenly(3).steps(10)
        [0, 5, 10]
        """
        return sorted({int(step) for step in np.rint(np.linspace(0, last, min(self.count, last + 1)))})

    def stretched(self, factor: int, last: int) -> "Evenly | At":
        """The same where no step had to be rounded and none was missing; otherwise the steps themselves, in a list.

        >>> Evenly(3).stretched(2, 10), Evenly(3).stretched(2, 5)
        (Evenly(count=3), At(chosen=(0, 4, 10)))
        """
        wanted = _times(self.steps(last), factor)
        return self if self.steps(factor * last) == list(wanted.chosen) else wanted


@dataclass(frozen=True)
class Geometric:
    """Steps that grow by a constant factor, ``per_decade`` of them for each factor of ten."""

    kind: ClassVar[str] = "geometric"

    per_decade: int = 10

    def __post_init__(self) -> None:
        coerce_fields(self)
        check_whole("per_decade", self.per_decade)

    def steps(self, last: int) -> list[int]:
        """0, 1 and so on in geometric growth, and the last.

        >>> Geometric(2).steps(40)
        [0, 1, 3, 10, 32, 40]
        """
        powers = np.arange(int(np.log10(max(last, 1)) * self.per_decade) + 1) / self.per_decade
        return sorted({0, last, *(int(step) for step in np.rint(10**powers) if step <= last)})

    def next_due(self, after: int) -> int:
        """The first step of the growth after a step.

        >>> [Geometric(2).next_due(after) for after in (0, 1, 3, 10)]
        [1, 3, 10, 32]
        """
        power = math.floor(math.log10(after + 0.5) * self.per_decade) - 1  # what is less is rounded to after, or below
        while (step := round(10 ** (power / self.per_decade))) <= after:
            power += 1
        return step

    def stretched(self, factor: int, last: int) -> At:
        """A list, because the first step of the growth is no longer 1.

        >>> Geometric(2).stretched(2, 40).steps(80)
        [0, 2, 6, 20, 64, 80]
        """
        return _times(self.steps(last), factor)


def _times(steps: list[int], factor: int) -> At:
    return At(tuple(factor * step for step in steps))


SaveSchedule = At | Every | Evenly | Geometric
OpenSaveSchedule = At | Every | Geometric  # those that need not know the last step
