"""Learning-rate schedules: a factor of the learning rate that depends on the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import jax.numpy as jnp

from ._phrases import counted, listed
from ._serialization import Count, Part, Positive, Share


class _Scheduled(Part):
    def factor(self, step: Any) -> Any:
        """The factor at a step."""
        raise NotImplementedError

    def scaled(self, learning_rate: Any) -> Callable[[Any], Any]:
        """The learning rate as a function of the step, in the learning rate's precision."""
        return lambda step: learning_rate * self.factor(jnp.asarray(step, jnp.asarray(learning_rate).dtype))

    def describe(self) -> str:
        """The factor's course in words; nothing for a constant one."""
        return ""

    def stretched(self, times: int) -> Schedule:
        """The schedule for ``times`` as many, shorter steps: the same factor at the same time.

        >>> Cosine(10, 0.1).stretched(2), StepDecay((10, 20)).stretched(2)
        (Cosine(steps=20, final=0.1), StepDecay(at=(20, 40), factor_each=0.1))
        """
        return cast("Schedule", self)


@dataclass(frozen=True)
class Constant(_Scheduled, kind="constant"):
    """The learning rate as it is."""

    def scaled(self, learning_rate: Any) -> Any:
        """The learning rate itself."""
        return learning_rate


@dataclass(frozen=True)
class Cosine(_Scheduled, kind="cosine"):
    """From 1 down to ``final`` along half a cosine within ``steps`` steps, constant afterwards."""

    steps: Count
    final: Share = 0.0

    def factor(self, step: Any) -> Any:
        """(1 + cos(pi t)) / 2 between 1 and ``final``, t the share of the steps done.

        >>> [round(float(Cosine(10).factor(step)), 6) for step in (0, 5, 10, 20)]
        [1.0, 0.5, 0.0, 0.0]
        """
        share = jnp.minimum(step, self.steps) / self.steps
        return self.final + (1 - self.final) * (1 + jnp.cos(jnp.pi * share)) / 2

    def describe(self) -> str:
        """The factor's course in words.

        >>> Cosine(1000, 0.1).describe()
        'down to 0.1 of it along half a cosine within 1000 steps'
        """
        return f"down to {self.final:g} of it along half a cosine within {counted(self.steps, 'step')}"

    def stretched(self, times: int) -> Cosine:
        """The same course within more steps."""
        return replace(self, steps=times * self.steps)


@dataclass(frozen=True)
class StepDecay(_Scheduled, kind="step_decay"):
    """Multiplied by ``factor_each`` at each of the steps ``at``."""

    at: tuple[Count, ...]
    factor_each: Positive = 0.1

    def factor(self, step: Any) -> Any:
        """factor_each to the number of decays so far.

        >>> [round(float(StepDecay((10, 20)).factor(step)), 6) for step in (9, 10, 25)]
        [1.0, 0.1, 0.01]
        """
        return self.factor_each ** jnp.sum(step >= jnp.array(self.at))

    def describe(self) -> str:
        """The factor's course in words; nothing where it never changes.

        >>> StepDecay((10, 20)).describe()
        'times 0.1 at each of the steps 10 and 20'
        """
        if not self.at:
            return ""
        each = "each of the steps" if len(self.at) > 1 else "step"
        return f"times {self.factor_each:g} at {each} {listed(self.at)}"

    def stretched(self, times: int) -> StepDecay:
        """Each decay as much later."""
        return replace(self, at=tuple(times * step for step in self.at))


@dataclass(frozen=True)
class Warmup(_Scheduled, kind="warmup"):
    """Rises in a straight line to 1 within ``steps`` steps: from ``first``, or if not given from 1/steps."""

    steps: Count
    first: Share | None = None

    def factor(self, step: Any) -> Any:
        """(step + 1) / steps, or first + (1 - first) step / steps, at most 1.

        >>> [round(float(Warmup(4).factor(step)), 6) for step in (0, 3, 9)]
        [0.25, 1.0, 1.0]
        >>> [round(float(Warmup(4, first=0.2).factor(step)), 6) for step in (0, 2, 4, 9)]
        [0.2, 0.6, 1.0, 1.0]
        """
        if self.first is None:
            return jnp.minimum((step + 1) / self.steps, 1)
        return self.first + (1 - self.first) * jnp.minimum(step / self.steps, 1)

    def describe(self) -> str:
        """The factor's course in words.

        >>> Warmup(100).describe(), Warmup(100, 0.1).describe()
        ('linear warm-up within 100 steps', 'linear warm-up from 0.1 of it within 100 steps')
        """
        first = "" if self.first is None else f"from {self.first:g} of it "
        return f"linear warm-up {first}within {counted(self.steps, 'step')}"

    def stretched(self, times: int) -> Warmup:
        """Within more steps; the first is lower if it is not given."""
        return replace(self, steps=times * self.steps)


@dataclass(frozen=True)
class Product(_Scheduled, kind="product"):
    """Several schedules at once, their factors multiplied: ``Product((Warmup(100), Cosine(1000)))``."""

    parts: tuple[Cosine | StepDecay | Warmup, ...]

    def factor(self, step: Any) -> Any:
        """The product of the factors.

        >>> [round(float(Product((Warmup(2), Cosine(10))).factor(step)), 6) for step in (0, 5, 10)]
        [0.5, 0.5, 0.0]
        """
        return prod((part.factor(step) for part in self.parts), start=jnp.ones_like(step))

    def describe(self) -> str:
        """The courses in words.

        >>> Product((Warmup(100), StepDecay((500,)))).describe()
        'linear warm-up within 100 steps; times 0.1 at step 500'
        """
        return "; ".join(text for part in self.parts if (text := part.describe()))

    def stretched(self, times: int) -> Product:
        """Each of them within more steps."""
        return replace(self, parts=tuple(part.stretched(times) for part in self.parts))


Schedule = Constant | Cosine | StepDecay | Warmup | Product
