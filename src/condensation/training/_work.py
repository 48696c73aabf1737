"""Some networks trained through the chunks of a run, alone or as a batch, each chunk as one compiled loop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..optimizers import GradientFlow
from ..runs import Checkpoint, Record
from ._buffer import EnsembleBuffer
from ._chunks import Chunk, Chunks, RunPlan
from ._program import Program, TrainState

BYTES_PER_CALL = 64 * 2**20
COMPILED = 32  # programs that are kept compiled, some 10 MB each
KEEP_SECONDS = 2.0  # what is kept for resuming is written at most this often
SMALL_STATE = 2**20  # bytes of a finished state that are kept for a longer training, or as many as the record has
KEEP_SHARE = 0.04  # and so rarely that writing takes at most this share of the time


@dataclass(frozen=True)
class Member:
    """One network to train: initial weights, data, traced hyperparameters, key of the random numbers, label noise."""

    init: dict[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None
    hyperparameters: dict[str, float]
    key: np.ndarray
    noise: float | None = None


class Work:
    """Some networks on their way through the chunks: gather their arguments, call, write down, keep.

    One network is called alone, several as one batch; the rows of a chunk are one compiled loop.
    """

    most_rows = 1024  # in a chunk

    def __init__(
        self, program: Program, plan: RunPlan, members: dict[int, Member], kept: list[Checkpoint | None], block: int
    ) -> None:
        self.program, self.plan, self.places, self.kept = program, plan, list(members), kept
        self.batched = block > 1
        given = list(members.values())
        self.members = [*given, *[given[-1]] * (block - len(given))]  # a batch is padded to its full size
        self.rows, self.slots = self._bounds()

    def _bounds(self) -> tuple[int, int]:
        """How many rows a chunk may have, and how many of them are saved at most; neither takes too many bytes."""
        number = len(self.members) * np.dtype(self.program.storage).itemsize
        weights = number * sum(self.members[0].init[name].size for name in self.program.kept)
        curves = number * len(self.program.curve_names())
        rows = min(self.most_rows, len(self.plan.recorded), BYTES_PER_CALL // curves)
        slots = max(1, BYTES_PER_CALL // weights)
        saved = np.flatnonzero(self.plan.slots >= 0)
        if len(saved) > slots:  # the shortest way from a saved row to the first one that has no place left
            rows = min(rows, int((saved[slots:] - saved[:-slots]).min()))
        rows = max(1, rows)
        return rows, int((np.searchsorted(saved, saved + rows) - np.arange(len(saved))).max())

    def advance(self, chunk: Chunk, state: Any, fixed: Any) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
        """The state after some rows; weights at the saved ones; curves at the recorded ones, members first."""
        lengths, lines = np.zeros(self.rows, np.int32), np.full(self.rows, self.slots, np.int32)
        lengths[: len(chunk.lengths)] = chunk.lengths
        saved = chunk.recorded[chunk.slots >= 0]
        lines[saved] = np.arange(len(saved))
        advance = _advance(self.program, self.batched, self.slots)
        state, weights, curves = advance(np.int32(chunk.begin), state, fixed, lengths, lines)
        weights, curves = jax.device_get((weights if len(saved) else {}, curves))
        first = lambda value: np.swapaxes(value, 0, 1) if self.batched else value[None]  # noqa: E731
        weights = {name: first(value)[:, : len(saved)] for name, value in weights.items()}
        return state, weights, {name: first(value)[:, chunk.recorded] for name, value in curves.items()}

    def gather_fixed(self) -> Any:
        """What stays fixed during the run, on the device of this thread."""
        names = ("x", "y", "test", "hyperparameters", *["noise"] * self.program.noisy)
        fixed = {name: self._gather(attrgetter(name)) for name in names}
        if not self.batched and not self.program.sees_part:
            fixed["x"] = self.program.network.arrange(fixed["x"])
        return jax.device_put(fixed | {"key": self._gather(attrgetter("key"), np.uint32)})

    def begin(self, fixed: Any) -> Any:
        """The first state."""
        return _begin(self.program, self.batched)(self._gather(attrgetter("init")), fixed)

    def compile(self, fixed: Any) -> None:
        """Compile before anything is timed: a chunk without rows. A second one tells what a call takes by itself."""
        self._without_rows(fixed)
        self.plan.overhead = self._without_rows(fixed)

    def _without_rows(self, fixed: Any) -> float:
        """The seconds of a call without rows."""
        nothing, state = np.array([], int), jax.block_until_ready(self.begin(fixed))
        began = time.perf_counter()
        jax.block_until_ready(self.advance(Chunk(0, [], nothing, nothing, nothing), state, fixed)[0])
        return time.perf_counter() - began

    def _gather(self, part: Callable[[Member], Any], dtype: Any = None) -> Any:
        """A part of all members in the program's precision, one above the other if they are a batch."""
        dtype = dtype or self.program.storage
        if not self.batched:
            return jax.tree.map(lambda value: np.asarray(value, dtype), part(self.members[0]))
        leaves = zip(*(jax.tree.leaves(part(member)) for member in self.members), strict=True)
        return jax.tree.unflatten(
            jax.tree.structure(part(self.members[0])), [np.array(values, dtype) for values in leaves]
        )

    def run(self, fixed: Any) -> dict[int, Record]:
        """The records by the members' numbers, all rows done, or fewer if no network is left with a finite loss."""
        plan = self.plan
        state, buffer, chunks = self._resume(self.begin(fixed))
        records = buffer.records
        began = kept_at = time.perf_counter()
        last = int(plan.recorded[-1])
        before = [record.seconds for record in records]
        writing = 0.0
        if plan.stop.is_set():
            return {}
        for chunk in chunks:
            called = time.perf_counter()
            state, weights, curves = self.advance(chunk, state, fixed)
            now = time.perf_counter()
            chunks.took(now - called, sum(chunk.lengths))
            for k, record in enumerate(records):
                record.seconds = before[k] + (now - began) / len(records)
            buffer.write(chunk, weights, curves, plan)
            seen = curves["loss"][: len(records), -1:]
            median = float(np.median(seen)) if seen.size else float("nan")
            plan.report((min(chunks.done(), last) - chunk.begin) * len(records), median)
            if not buffer.going.any():
                plan.report((last - min(chunks.done(), last)) * len(records), float("nan"))
                break
            if plan.stop.is_set():
                break
            if plan.checkpoints and now - kept_at > max(KEEP_SECONDS, writing / KEEP_SHARE):
                self._keep(records, chunks, state, finished=False)
                kept_at = time.perf_counter()
                writing = kept_at - now
        if plan.checkpoints:
            self._keep(records, chunks, state, finished=not plan.stop.is_set())
        return dict(zip(self.places, records, strict=True))

    def _resume(self, state: Any) -> tuple[Any, EnsembleBuffer, Chunks]:
        """State, records and chunks from where they were kept, or from the beginning."""
        cut = not isinstance(self.program.optimizer, GradientFlow)
        kept = [checkpoint for checkpoint in self.kept if checkpoint is not None]
        if len(kept) < len(self.places) or len({(checkpoint.row, checkpoint.offset) for checkpoint in kept}) > 1:
            shapes = {name: self.members[0].init[name].shape for name in self.program.kept}
            names, dtype = self.program.curve_names(), self.program.storage
            buffer = EnsembleBuffer.empty(len(self.places), shapes, names, self.plan, dtype)
            return state, buffer, Chunks(self.plan, self.rows, cut)
        chunks = Chunks(self.plan, self.rows, cut, kept[0].row, kept[0].offset)
        self.plan.report(min(chunks.done(), int(self.plan.recorded[-1])) * len(kept), float("nan"))
        pad = len(self.members) - len(kept)
        leaves = zip(*(checkpoint.leaves for checkpoint in kept), strict=True)
        whole = [np.stack([*parts, *[parts[-1]] * pad]) if self.batched else parts[0] for parts in leaves]
        state = jax.tree.unflatten(jax.tree.structure(state), [jnp.asarray(leaf) for leaf in whole])
        return state, EnsembleBuffer.resumed([checkpoint.record for checkpoint in kept]), chunks

    def _keep(self, records: list[Record], chunks: Chunks, state: Any, finished: bool) -> None:
        assert self.plan.checkpoints is not None
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
        if finished and sum(leaf.nbytes for leaf in leaves) > max(SMALL_STATE, sum(r.nbytes for r in records)):
            leaves = []
        checkpoints = {}
        for k, (place, record) in enumerate(zip(self.places, records, strict=True)):
            own = [np.asarray(leaf[k]) if self.batched else leaf for leaf in leaves]
            checkpoints[place] = Checkpoint(record, chunks.index, chunks.offset, own, finished)
        self.plan.checkpoints.keep(checkpoints)


@lru_cache(maxsize=COMPILED)
def _begin(program: Program, batched: bool) -> Callable[..., Any]:
    return jax.jit(jax.vmap(program.begin) if batched else program.begin)


@lru_cache(maxsize=COMPILED)
def _advance(program: Program, batched: bool, slots: int) -> Callable[..., Any]:
    """The jitted loop ``advance(count, state, fixed, lengths, lines) -> (state, weights, curves)``.

    Curves have a line for each row. Weights have ``slots`` lines: each row writes its weights to the line that is given
    for it, which for those that are not saved is one more that is thrown away.
    """
    names = program.curve_names()

    def row(state: TrainState, fixed: dict[str, Any], count: Array, length: Array) -> Any:
        def body(index: Array, inner: tuple[TrainState, Any]) -> tuple[TrainState, Any]:
            after, curves = program.step(count + index, inner[0], fixed)
            return after, lax.cond(index == 0, curves, lambda: inner[1])

        if isinstance(program.optimizer, GradientFlow):
            from ._flow import flow_row

            return flow_row(program, state, fixed, length)
        nothing = dict.fromkeys(names, jnp.zeros((), fixed["y"].dtype))
        return lax.fori_loop(0, length, body, (state, nothing))

    rows = jax.vmap(row, in_axes=(0, 0, None, None)) if batched else row

    def advance(count: Array, state: TrainState, fixed: dict[str, Any], lengths: Array, lines: Array) -> Any:
        def go(carry: tuple[TrainState, Any, Array], given: tuple[Array, Array]) -> Any:
            state, weights, count = carry
            length, line = given
            now = program.saved(state)
            weights = {name: lax.dynamic_update_index_in_dim(weights[name], now[name], line, 0) for name in now}
            after, seen = rows(state, fixed, count, length)
            return (after, weights, count + length), seen

        empty = {
            name: jnp.zeros((slots + 1, *value.shape), value.dtype) for name, value in program.saved(state).items()
        }
        (state, weights, _), curves = lax.scan(go, (state, empty, count), (lengths, lines))
        return state, {name: value[:slots] for name, value in weights.items()}, curves

    return jax.jit(advance)
