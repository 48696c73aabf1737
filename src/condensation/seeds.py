"""Seeds: what an experiment leaves open. The data's seed and the initialization's seed are separate."""

import numbers
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ._memory import in_digits, require
from .errors import InputError, brief

HELD_OUT = 2**32  # how far the data seed of held-out samples is from that of the others
_BYTES = 300  # of a seed in the lists it goes through


class Seed(NamedTuple):
    """One run's seeds. A plain whole number k stands for ``Seed(data=k, init=k)``."""

    data: int
    init: int

    def data_stream(self) -> np.random.Generator:
        """The random numbers that draw the data."""
        return np.random.default_rng([self.data, 0])

    def init_stream(self) -> np.random.Generator:
        """The random numbers that draw the initial weights."""
        return np.random.default_rng([self.init, 1])

    def held_out(self) -> "Seed":
        """The seed of held-out data: other samples than those that are trained on."""
        return Seed(self.data + HELD_OUT, self.init)

    @property
    def task(self) -> int:
        """The data seed of what held-out samples share with the others: a teacher, a rotation.

        >>> Seed(3, 0).task, Seed(3, 0).held_out().task
        (3, 3)
        """
        return self.data % HELD_OUT

    def training_key(self) -> np.ndarray:
        """The key of the random numbers used while training (order of the samples, dropout), two words of 32 bits."""
        return np.random.SeedSequence([self.init, 2]).generate_state(2)


def as_seeds(seeds: int | Seed | Iterable[int | Seed]) -> tuple[Seed, ...]:
    """Seeds as a tuple: a number n means the seeds 0 to n - 1.

    >>> as_seeds(2)
    (Seed(data=0, init=0), Seed(data=1, init=1))
    >>> as_seeds([Seed(data=0, init=7)])
    (Seed(data=0, init=7),)
    """
    if isinstance(seeds, Seed):
        return (as_seed(seeds),)
    if not isinstance(seeds, numbers.Integral | Iterable) or isinstance(seeds, str | bool):
        raise InputError(f"seeds must be a whole number or a list of seeds, not {brief(seeds)}")
    if isinstance(seeds, numbers.Integral):
        check_count(int(seeds))
    listed = range(int(seeds)) if isinstance(seeds, numbers.Integral) else list(seeds)
    chosen = tuple(as_seed(seed) for seed in listed)
    if not chosen:
        raise InputError(f"at least one seed is needed, not seeds={brief(seeds)}")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"each seed may stand once, not seeds={brief(seeds)}")
    return chosen


def check_count(seeds: int) -> None:
    """Refuse fewer seeds than one, and more than there is memory for."""
    if seeds < 1:
        raise InputError(f"at least one seed is needed, not seeds={seeds!r}")
    require(seeds * _BYTES, f"a list of {in_digits(seeds)} seeds", "fewer would fit")


def as_seed(seed: int | Seed) -> Seed:
    """One seed; a number stands for both."""
    pair = seed if isinstance(seed, Seed) else Seed(seed, seed)
    if not all(
        isinstance(part, numbers.Integral) and not isinstance(part, bool) and 0 <= part < 2**63 for part in pair
    ):
        raise InputError(f"a seed is a whole number of at least 0 and below 2^63, not {brief(seed)}")
    return Seed(int(pair.data), int(pair.init))
