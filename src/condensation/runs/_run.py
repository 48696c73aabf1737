"""What runs have in common: those of an experiment (``Trajectory``) and those that were watched (``WatchedRun``).

A ``Record`` is what one network leaves while it trains, a ``Checkpoint`` what it takes to go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from .._display import Shown, short_number
from .._memory import require
from .._phrases import plural
from .._sketch import curves
from ..errors import InputError
from ..experiment import Experiment
from ..seeds import Seed, as_seed

INITIAL_STAGE = 0.7
"""The share of the first loss at which the initial stage ends."""


def in_initial_stage(
    loss: Float[np.ndarray, "... steps"], fraction: float = INITIAL_STAGE, *, first: int = 0
) -> Bool[np.ndarray, "... steps"]:
    """Where the loss is not below a share of its value at the place ``first``; a NaN is not below.

    >>> in_initial_stage(np.array([1.0, 0.8, 0.6, np.nan]))
    array([ True,  True, False,  True])
    """
    return ~(loss < fraction * loss[..., first : first + 1])


@dataclass
class Record:
    """What one network leaves: rows at the recorded steps; rows after a divergence stay NaN."""

    weights: dict[str, np.ndarray]
    curves: dict[str, np.ndarray]
    diverged: int | None = None
    seconds: float = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return sum(value.nbytes for part in (self.weights, self.curves) for value in part.values())


@dataclass
class Checkpoint:
    """A record with the place and the state of its training: enough to go on as if nothing had happened."""

    record: Record
    row: int
    offset: int
    leaves: list[np.ndarray]
    finished: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.record.nbytes + sum(leaf.nbytes for leaf in self.leaves)

    @property
    def place(self) -> tuple[bool, int, int]:
        """How far it is; a larger one is further."""
        return self.finished, self.row, self.offset


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(Shown):
    """A run of either kind. What follows a loss that is not finite is NaN.

    Attributes:
        seeds: a watched run counts as one.
        saved: the steps at which weights were kept.
        recorded: the steps of the curves.
        parameters: arrays of seeds x saved steps x their shape, by name.
        curves: the loss and others, by name.
        diverged: the step at which a seed's loss or weights were no longer finite, for seeds that have one.
        seconds: how long the training took.
    """

    first_loss: ClassVar[int] = 0  # place of the first loss that is known

    seeds: tuple[Seed, ...]
    saved: Int[np.ndarray, " saved"]
    recorded: Int[np.ndarray, " recorded"]
    parameters: dict[str, np.ndarray]
    curves: dict[str, Float[np.ndarray, "seeds recorded"]]
    diverged: dict[Seed, int]
    seconds: float

    def _curve_facts(self) -> dict[str, str]:
        """Steps, loss and seeds that diverged, in words."""
        loss = self.loss[:, [self._first, -1]] if len(self.recorded) else np.full((len(self.seeds), 2), np.nan)
        alive = loss[np.isfinite(loss).all(axis=1)]
        ends = np.median(alive, axis=0) if len(alive) else (np.nan, np.nan)
        first, last = (short_number(float(end)) for end in ends)
        of_seeds = "" if len(alive) == 1 else f" (median of {plural(len(alive), 'seed')})"
        told = [f"seed {s.data if s.data == s.init else s} at step {step}" for s, step in self.diverged.items()]
        return {
            "steps": f"{_range(self.recorded)}; weights are kept at {plural(len(self.saved), 'step')}",
            "loss": f"{first} at first, {last} at last{of_seeds}" if len(alive) else "",
            "diverged": f"{len(told)} of {plural(len(self.seeds), 'seed')}: {listed(told)}" if told else "",
        }

    def _picture(self) -> str:
        return curves(self.recorded, self.loss, label="loss", log=True)

    @property
    def origin(self) -> Experiment | None:
        """The experiment that was trained; None for a watched run."""
        return None

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers whose weights were kept."""
        return tuple(self.parameters)

    @property
    def loss(self) -> Float[np.ndarray, "seeds recorded"]:
        """The loss at the recorded steps."""
        return self.curves["loss"]

    @property
    def loss_ratio(self) -> Float[np.ndarray, "seeds recorded"]:
        """The loss over its first known value, at the recorded steps."""
        return self.loss / self.loss[:, self._first : self._first + 1]

    @property
    def _first(self) -> int:
        return min(self.first_loss, len(self.recorded) - 1)

    @property
    def accuracy(self) -> Float[np.ndarray, "seeds recorded"]:
        """The share of samples put into the right class, at the recorded steps."""
        if "accuracy" not in self.curves:
            raise InputError("this trajectory has no accuracy: its targets are not classes (one 1 and zeros in a row)")
        return self.curves["accuracy"]

    @property
    def gradient(self) -> dict[str, Float[np.ndarray, "seeds recorded"]]:
        """Mean size of the entries of each parameter's gradient, at the recorded steps."""
        prefix = "gradient."
        return {name[len(prefix) :]: curve for name, curve in self.curves.items() if name.startswith(prefix)}

    def weights(
        self, layer: str | int, step: int, seed: int | Seed | None = None, *, view: str | None = None
    ) -> Float[np.ndarray, "..."]:
        """Input weights of a layer's units at a saved step, the bias as the last input.

        Args:
            layer: its name, or its number from 1 on.
            step: a saved step.
            seed: one seed, for an array of units x inputs; without it, seeds x units x inputs.
            view: for a convolution layer ``"kernel"`` (one a channel pair, no bias; the default) or ``"filter"``; of a
                watched run the units are those that were watched.
        """
        return self._units(layer, view, lambda name: self._at(name, step, seed))

    def history(self, layer: str | int, *, view: str | None = None) -> Float[np.ndarray, "seeds saved units inputs"]:
        """Input weights of a layer's units at all saved steps, the bias as the last input."""
        return self._units(layer, view, self.parameters.__getitem__)

    def _units(self, layer: str | int, view: str | None, get: Callable[[str], np.ndarray]) -> np.ndarray:
        """A layer's units, from arrays that ``get`` gives by the name of a parameter."""
        raise NotImplementedError

    def parameters_at(self, step: int, seed: int | Seed) -> dict[str, np.ndarray]:
        """All parameters by name, at a saved step, of one seed."""
        return {name: self._at(name, step, seed) for name in self.parameters}

    def initial_stage_end(self, fraction: float = INITIAL_STAGE) -> tuple[int | None, ...]:
        """For each seed the first recorded step at which the loss is below 70% of its first value."""
        left = ~in_initial_stage(self.loss, fraction, first=self._first)
        return tuple(int(self.recorded[row.argmax()]) if row.any() else None for row in left)

    def _at(self, name: str, step: int, seed: int | Seed | None) -> np.ndarray:
        places = np.flatnonzero(self.saved == step)
        if not len(places):
            raise InputError(f"step {step} was not saved; saved are {listed(self.saved.tolist())}")
        if seed is None:
            return self.parameters[name][:, places[0]]
        number = self._seed(seed)
        end = self.diverged.get(self.seeds[number], step + 1)
        if end <= step:
            before = self.saved[self.saved < end]
            last = f"; its last saved step is {before[-1]}" if len(before) else ", before anything was saved"
            raise InputError(f"seed {seed} diverged at step {end}{last}")
        return self.parameters[name][number, places[0]]

    def _seed(self, seed: int | Seed) -> int:
        try:
            return self.seeds.index(as_seed(seed))
        except ValueError:
            known = [str(s.data) if s.data == s.init else str(s) for s in self.seeds]
            raise InputError(f"seed {seed} was not run; the seeds are {listed(known)}") from None


def _range(steps: np.ndarray) -> str:
    return "none" if not len(steps) else f"{steps[0]} to {steps[-1]}, recorded at {len(steps)}"


def stack_records(seeds: tuple[Seed, ...], records: Sequence[Record]) -> dict[str, Any]:
    """The fields of a run that its records give, but for the steps."""
    first = records[0]
    if len(records) > 1:  # the arrays of a single one are not copied
        size = sum(value.nbytes for record in records for value in (*record.weights.values(), *record.curves.values()))
        require(size, f"putting {len(records):,} seeds together", "fewer seeds in a run would fit")
    for record in records[1:]:
        if (record.weights.keys(), record.curves.keys()) != (first.weights.keys(), first.curves.keys()):
            raise InputError("the seeds of this run do not hold the same weights and curves")
    return {
        "seeds": seeds,
        "parameters": {name: _stack([record.weights[name] for record in records]) for name in first.weights},
        "curves": {name: _stack([record.curves[name] for record in records]) for name in first.curves},
        "diverged": {s: r.diverged for s, r in zip(seeds, records, strict=True) if r.diverged is not None},
        "seconds": sum(record.seconds for record in records),
    }


def _stack(values: list[np.ndarray]) -> np.ndarray:
    return np.stack(values) if len(values) > 1 else values[0][None]


def listed(items: Sequence[Any]) -> str:
    """Items in a row, the middle of a long row left out."""
    texts = [str(item) for item in items]
    return ", ".join(texts if len(texts) <= 12 else [*texts[:6], "...", *texts[-5:]])
