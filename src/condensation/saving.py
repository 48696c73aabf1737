"""Save schedules: at which steps something is kept. Step 0 and the last step always are.

``steps`` lists them for a training whose last step is known, ``most`` tells how many they are at most. ``next_due``
tells the next one for a training that ends when it ends; equal spacing cannot.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated

import numpy as np

from ._memory import in_digits, require
from ._serialization import Count, Part
from .errors import InputError, check_whole

LISTED = 200  # bytes of a step in the lists it goes through


@dataclass(frozen=True)
class At(Part, kind="at"):
    """The steps that are listed."""

    chosen: tuple[Annotated[int, partial(check_whole, least=0, bits=63)], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "chosen", tuple(sorted(set(self.chosen))))

    def steps(self, last: int) -> list[int]:
        """The listed steps, 0 and the last.

        >>> At((5, 2)).steps(10)
        [0, 2, 5, 10]
        """
        if self.chosen and self.chosen[-1] > last:
            raise InputError(f"step {self.chosen[-1]} is to be saved, but training ends at step {last}")
        return sorted({0, last, *self.chosen})

    def most(self, last: int) -> int:
        """How many steps there are at most."""
        return len({0, last, *self.chosen})

    def next_due(self, after: int) -> int | None:
        """The first listed step after another step, if there is one."""
        place = bisect.bisect_right(self.chosen, after)
        return self.chosen[place] if place < len(self.chosen) else None


@dataclass(frozen=True)
class Every(Part, kind="every"):
    """Every k-th step."""

    k: Count

    def steps(self, last: int) -> list[int]:
        """0, k, 2k, ... and the last.

        >>> Every(4).steps(10)
        [0, 4, 8, 10]
        """
        return sorted({*range(0, last + 1, self.k), last})

    def most(self, last: int) -> int:
        """How many steps there are at most."""
        return last // self.k + 1 + (last % self.k > 0)

    def next_due(self, after: int) -> int:
        """The first multiple of k after a step."""
        return (after // self.k + 1) * self.k


@dataclass(frozen=True)
class Evenly(Part, kind="evenly"):
    """About ``count`` steps, equally spaced from 0 to the last; all of them if there are fewer."""

    count: Annotated[int, partial(check_whole, least=2)]

    def steps(self, last: int) -> list[int]:
        """Equally spaced steps.

        >>> Evenly(3).steps(10)
        [0, 5, 10]
        """
        return sorted({int(step) for step in np.rint(np.linspace(0, last, min(self.count, last + 1)))})

    def most(self, last: int) -> int:
        """How many steps there are at most."""
        return min(self.count, last + 1)


@dataclass(frozen=True)
class Geometric(Part, kind="geometric"):
    """Steps that grow by a constant factor, ``per_decade`` of them for each factor of ten."""

    per_decade: Count = 10

    def steps(self, last: int) -> list[int]:
        """0, 1 and so on in geometric growth, and the last.

        >>> Geometric(2).steps(40)
        [0, 1, 3, 10, 32, 40]
        """
        powers = np.arange(int(np.log10(max(last, 1)) * self.per_decade) + 1) / self.per_decade
        return sorted({0, last, *(int(step) for step in np.rint(10**powers) if step <= last)})

    def most(self, last: int) -> int:
        """How many steps there are at most."""
        return min(int(math.log10(max(last, 1)) * self.per_decade) + 3, last + 1)

    def next_due(self, after: int) -> int:
        """The first step of the growth after a step.

        >>> [Geometric(2).next_due(after) for after in (0, 1, 3, 10)]
        [1, 3, 10, 32]
        """
        power = math.floor(math.log10(after + 0.5) * self.per_decade) - 1  # what is less is rounded to after, or below
        while (step := round(10 ** (power / self.per_decade))) <= after:
            power += 1
        return step


@dataclass(frozen=True)
class Continued(Part, kind="continued"):
    """The steps of a training that went on: those of its first part, then those of what was added to it."""

    first: "At | Every | Evenly | Geometric | Continued"
    until: Count
    then: At | Every | Evenly | Geometric

    def steps(self, last: int) -> list[int]:
        """The first part's steps, then the others, counted from its end.

        >>> Continued(Every(4), until=8, then=Every(10)).steps(30)
        [0, 4, 8, 18, 28, 30]
        """
        if last <= self.until:
            raise InputError(f"a training that goes on after step {self.until} ends later, not at step {last}")
        later = [self.until + step for step in self.then.steps(last - self.until)]
        return sorted({*self.first.steps(self.until), *later})

    def most(self, last: int) -> int:
        """How many steps there are at most."""
        return self.first.most(self.until) + self.then.most(max(last - self.until, 1))


SaveSchedule = At | Every | Evenly | Geometric | Continued


@lru_cache(maxsize=64)  # the thousands of cells of a sweep share a few
def list_steps(last: int, *schedules: SaveSchedule) -> tuple[int, ...]:
    """The steps of all schedules for a training whose last step is known; refused where they do not fit into memory.

    >>> list_steps(10, Every(4), At((5,)))
    (0, 4, 5, 8, 10)
    """
    most = sum(schedule.most(last) for schedule in schedules)
    require(
        most * LISTED, f"a list of {in_digits(most)} steps that are saved or recorded", "a sparser schedule would fit"
    )
    return tuple(sorted({step for schedule in schedules for step in schedule.steps(last)}))


OpenSaveSchedule = At | Every | Geometric  # those that need not know the last step


def stretched(schedule: SaveSchedule, times: int, last: int) -> SaveSchedule:
    """The schedule of the same moments for a training with ``times`` as many, shorter steps.

    It is a list of steps where no schedule of the same kind names these moments.

    >>> stretched(Every(3), 2, 10), stretched(Evenly(3), 2, 10), stretched(Evenly(3), 2, 5)
    (Every(k=6), Evenly(count=3), At(chosen=(0, 4, 10)))
    """
    if isinstance(schedule, Every):
        return Every(times * schedule.k)
    steps = [times * step for step in schedule.steps(last)]
    return schedule if schedule.steps(times * last) == steps else At(tuple(steps))
