r"""The compiled training loop, and the one place that decides how it is run on this machine.

A run is a list of *rows*. Row k records the weights, the loss and the gradient sizes at a step, then takes the
steps up to the next recorded one. All steps of all rows go through one compiled loop body, so the numbers do
not depend on what is recorded, on how rows are cut into calls, or on which networks run beside.

On a CPU each network is its own task, dealt to as many threads as there are cores: small networks stay in the
cache, and a network's numbers cannot depend on its company. On a GPU all networks are one batch.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from ..networks import Dense
from .losses import Loss
from .optimizers import Optimizer

ROWS_PER_CALL = 1024
BYTES_PER_CALL = 64 * 2**20
SECONDS_PER_CALL = 0.3  # a call cannot be interrupted or report: keep it short


class Program(NamedTuple):
    """What networks trained by one compiled program have in common; hashable, so that it is compiled once."""

    network: Dense
    loss: Loss
    optimizer: Optimizer
    dtype: str


@dataclass(frozen=True)
class Member:
    """One network to train: its start, its data and its optimizer's numbers."""

    start: dict[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    numbers: dict[str, float]


@dataclass
class Record:
    """What one network leaves: rows at the recorded steps; rows after a divergence stay NaN."""

    weights: dict[str, np.ndarray]
    loss: np.ndarray
    gradient: dict[str, np.ndarray]
    diverged: int | None = None


@dataclass
class Plan:
    """Which steps are recorded, at which of them the weights are kept, and who is told how far it is."""

    recorded: np.ndarray
    saved: np.ndarray
    report: Callable[[int, float], None] = lambda steps, loss: None
    stop: threading.Event = field(default_factory=threading.Event)

    @cached_property
    def slots(self) -> np.ndarray:
        """For each recorded step its place among the saved ones, or -1."""
        return np.where(np.isin(self.recorded, self.saved), np.searchsorted(self.saved, self.recorded), -1)


@cache
def compile_program(program: Program, batched: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two jitted functions: ``begin(parameters, numbers) -> state``, the parameters with the optimizer's memory, and
    ``advance(state, x, y, numbers, lengths) -> (state, rows)``.
    """
    network, loss, optimizer, _ = program

    def begin(parameters: dict[str, Array], numbers: dict[str, Array]) -> Any:
        return parameters, optimizer.transform(network, **numbers).init(parameters)

    def objective(parameters: dict[str, Array], x: Array, y: Array) -> Array:
        return loss(network.assemble(parameters)(x), y)

    def advance(state: Any, x: Array, y: Array, numbers: dict[str, Array], lengths: Array) -> Any:
        transform = optimizer.transform(network, **numbers)

        def step(index: Array, carry: Any) -> Any:
            (parameters, memory), first = carry
            value, gradient = jax.value_and_grad(objective)(parameters, x, y)
            updates, memory = transform.update(gradient, memory, parameters)
            first = lax.cond(
                index == 0,
                lambda: (value, {name: jnp.mean(jnp.abs(part)) for name, part in gradient.items()}),
                lambda: first,
            )
            return (optax.apply_updates(parameters, updates), memory), first

        def row(state: Any, length: Array) -> Any:
            nothing = jnp.zeros((), x.dtype)
            first = nothing, dict.fromkeys(state[0], nothing)
            after, first = lax.fori_loop(0, length, step, (state, first))
            return after, (state[0], *first)

        return lax.scan(row, state, lengths)

    if batched:
        return jax.jit(jax.vmap(begin)), jax.jit(jax.vmap(advance, in_axes=(0, 0, 0, 0, None)))
    return jax.jit(begin), jax.jit(advance)


def run(
    program: Program, members: Sequence[Member], plan: Plan, *, block: int | None = None, threads: int | None = None
) -> list[Record]:
    """Train all members; ``block`` networks go through one call (default: 1 on a CPU, all on a GPU)."""
    on_cpu = jax.default_backend() == "cpu"
    block = block or (1 if on_cpu else len(members))
    threads = threads or ((os.cpu_count() or 1) if on_cpu else 1)
    blocks = [members[k : k + block] for k in range(0, len(members), block)]
    work = [_Block(program, group, plan, batched=block > 1) for group in blocks]
    work[0].compile()
    if len(work[-1].members) != len(work[0].members):
        work[-1].compile()
    with ThreadPoolExecutor(min(threads, len(work))) as pool:
        try:
            return [record for records in pool.map(_Block.run, work) for record in records]
        except BaseException:
            plan.stop.set()
            raise


class _Block:
    """Some networks on their way through the rows: one of them, or several as one batch."""

    def __init__(self, program: Program, members: Sequence[Member], plan: Plan, batched: bool) -> None:
        self.program, self.members, self.plan, self.batched = program, members, plan, batched
        size = sum(value.nbytes for member in members for value in member.start.values())
        self.rows = max(1, min(ROWS_PER_CALL, len(plan.recorded), BYTES_PER_CALL // max(size, 1)))

    def _gather(self, part: Callable[[Member], Any]) -> Any:
        """A part of all members in the program's precision, one above the other if they are a batch."""
        dtype = self.program.dtype
        if not self.batched:
            return jax.tree.map(lambda value: np.asarray(value, dtype), part(self.members[0]))
        return jax.tree.map(lambda *values: np.stack(values).astype(dtype), *map(part, self.members))

    def _arguments(self) -> tuple[Any, Any]:
        """The first state, and the arguments that stay."""
        begin, _ = compile_program(self.program, self.batched)
        fixed = jax.device_put(tuple(self._gather(attrgetter(name)) for name in ("x", "y", "numbers")))
        return begin(self._gather(attrgetter("start")), fixed[2]), fixed

    def _call(self, state: Any, fixed: tuple[Any, ...], lengths: Sequence[int]) -> Any:
        padded = np.zeros(self.rows, np.int32)
        padded[: len(lengths)] = lengths
        _, advance = compile_program(self.program, self.batched)
        return advance(state, *fixed, padded)

    def compile(self) -> None:
        """Compile before the threads start: a call of rows without steps."""
        with jax.enable_x64(self.program.dtype == "float64"):
            state, fixed = self._arguments()
            jax.block_until_ready(self._call(state, fixed, []))

    def run(self) -> list[Record]:
        """Go through all rows; ends early when no network is left with a finite loss."""
        records = [_empty(member, self.program, self.plan) for member in self.members]
        with jax.enable_x64(self.program.dtype == "float64"):  # thread-local: each worker enters it
            state, fixed = self._arguments()
            rows = _Rows(self.plan.recorded, self.rows)
            for lengths, kept, indices in rows:
                began = time.perf_counter()
                state, (weights, loss, gradient) = self._call(state, fixed, lengths)
                loss, gradient = jax.tree.map(self._by_member, (loss, gradient))
                rows.took(time.perf_counter() - began, sum(lengths))
                slots = self.plan.slots[indices]
                if (slots >= 0).any():
                    weights = jax.tree.map(self._by_member, weights)
                for k, record in enumerate(records):
                    if record.diverged is None:
                        sizes = {name: values[k, kept] for name, values in gradient.items()}
                        alive = _write_curves(record, indices, loss[k, kept], sizes, self.plan)
                        _write_weights(record, slots[:alive], kept[:alive], weights, k)
                self.plan.report(sum(lengths) * len(records), float(np.median(loss[:, len(lengths) - 1])))
                if self.plan.stop.is_set() or all(record.diverged is not None for record in records):
                    break
        if rows.left():
            self.plan.report(rows.left() * len(records), float("nan"))
        return records

    def _by_member(self, value: Array) -> np.ndarray:
        array = np.asarray(value)
        return array if self.batched else array[None]


class _Rows:
    """Cuts the recorded steps into calls of a bounded number of rows and of seconds."""

    def __init__(self, recorded: np.ndarray, rows: int) -> None:
        self.gaps = [*np.diff(recorded).tolist(), 1]  # the last row takes one step, which is thrown away
        self.rows = rows
        self.most = 2000  # steps in a call, learned from the calls before
        self.index = self.offset = 0

    def __iter__(self) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
        """For each call: the rows' lengths, which rows are recorded, and as which recorded steps."""
        while self.index < len(self.gaps):
            lengths, kept, indices, room = [], [], [], self.most
            while len(lengths) < self.rows and room > 0 and self.index < len(self.gaps):
                if self.offset == 0:
                    kept.append(len(lengths))
                    indices.append(self.index)
                length = min(self.gaps[self.index] - self.offset, room)
                lengths.append(length)
                room -= length
                self.offset += length
                if self.offset == self.gaps[self.index]:
                    self.index, self.offset = self.index + 1, 0
            yield lengths, np.array(kept, int), np.array(indices, int)

    def took(self, seconds: float, steps: int) -> None:
        """Learn how many steps fit into a call."""
        self.most = max(1, min(10 * self.most, int(SECONDS_PER_CALL * steps / max(seconds, 1e-9))))

    def left(self) -> int:
        """Steps not taken."""
        return sum(self.gaps[self.index :]) - self.offset


def _empty(member: Member, program: Program, plan: Plan) -> Record:
    count, saves = len(plan.recorded), len(plan.saved)
    full = lambda *shape: np.full(shape, np.nan, program.dtype)  # noqa: E731
    return Record(
        weights={name: full(saves, *value.shape) for name, value in member.start.items()},
        loss=full(count),
        gradient={name: full(count) for name in member.start},
    )


def _write_curves(
    record: Record, indices: np.ndarray, loss: np.ndarray, gradient: dict[str, np.ndarray], plan: Plan
) -> int:
    """Copy one network's curves up to the first loss that is not finite; returns how many rows those are."""
    bad = ~np.isfinite(loss)
    alive = int(bad.argmax()) if bad.any() else len(loss)
    record.loss[indices[:alive]] = loss[:alive]
    for name, values in gradient.items():
        record.gradient[name][indices[:alive]] = values[:alive]
    if alive < len(loss):
        record.diverged = int(plan.recorded[indices[alive]])
    return alive


def _write_weights(record: Record, slots: np.ndarray, rows: np.ndarray, weights: dict[str, Any], k: int) -> None:
    """Copy one network's weights from the rows that have a place among the saved steps."""
    chosen = slots >= 0
    if chosen.any():
        for name, values in weights.items():
            record.weights[name][slots[chosen]] = values[k, rows[chosen]]
