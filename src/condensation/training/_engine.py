r"""Runs a program for many networks, and is the one place that decides how that is done on this machine.

A run is a list of *rows*. Row k records the weights and the curves at a step, then takes the steps up to the next
recorded one. All steps of all rows go through one compiled step, so the numbers do not depend on what is recorded, on
how rows are cut into calls, or on which networks run beside. (Gradient flow starts its integrator anew at each record:
there they agree within its tolerance.)

- On a CPU a dense network's rows are one compiled loop, and each network is its own task, dealt to as many threads as
  there are cores: small networks stay in the cache, and a network's numbers cannot depend on its company.
- On a GPU dense networks are trained in large batches, one at a time.
- A convolutional network takes one compiled step after the other from Python, using the whole machine for each: inside
  a compiled loop a CPU's convolutions are several times slower, and samples beyond memory can be evaluated in parts.
- Several devices share the networks: each takes the next block when it has done one.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from queue import Queue
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._device import convolution_options, device_slots, on_cpu
from .._precision import precision
from ..optimizers import GradientFlow
from ..runs import Checkpoint, Record
from ._buffer import EnsembleBuffer
from ._chunks import Chunk, Chunks, RunPlan
from ._flow import flow_row
from ._program import Program, TrainState

ROWS_PER_CALL = 1024
BYTES_PER_CALL = 64 * 2**20
BATCH, LARGE_BATCH = 2**10, 2**14  # networks on a GPU
BATCH_BYTES = 2**32
KEEP_SECONDS = 2.0  # what is kept for resuming is written at most this often
COMPILED = 32  # programs that are kept compiled, some 10 MB each
EVALUATED = 1000  # images that are evaluated at once
KEEP_SHARE = 0.04  # and so rarely that writing takes at most this share of the time


@dataclass(frozen=True)
class Member:
    """One network to train: initial weights, data, hyperparameters of the optimizer, key of the random numbers."""

    init: dict[str, np.ndarray]
    x: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None
    numbers: dict[str, float]
    key: np.ndarray


def run(program: Program, members: Sequence[Member], plan: RunPlan, *, block: int | None = None) -> list[Record]:
    """Train all members; ``block`` networks go through one call (default: 1 on a CPU, a constant batch on a GPU)."""
    stepwise = any(layer.is_convolution for layer in program.network.layers)
    places = device_slots(whole_machine=stepwise)
    block = block or (1 if on_cpu() or stepwise else batch_size(members[0], -(-len(members) // len(places))))
    kept = {k: plan.keeper.load(k) for k in range(len(members))} if plan.keeper else {}
    records = {k: one.record for k, one in kept.items() if one is not None and one.finished}
    if records:
        plan.report(int(plan.recorded[-1]) * len(records), float("nan"))
    left = [k for k in range(len(members)) if k not in records]
    blocks = [left[k : k + block] for k in range(0, len(left), block)]
    if stepwise:
        plan.most = 1  # a step may take a second; what fits into a call is learned
    make = _Stepwise if stepwise else _Batch if block > 1 else _Single
    work = [
        make(program, plan, {k: members[k] for k in group}, [kept.get(k) for k in group], block) for group in blocks
    ]
    free: Queue[Any] = Queue()
    for place in places:
        free.put(place)
    compiling, compiled = {place: threading.Lock() for place in places}, set()

    def on_free_device(one: _Work) -> dict[int, Record]:
        place = free.get()
        try:
            with jax.default_device(place), precision(program.dtype):  # settings of the thread
                fixed = one.gather_fixed()
                with compiling[place]:
                    if place not in compiled and not plan.stop.is_set():
                        one.compile(fixed)
                        compiled.add(place)
                return one.run(fixed)
        except BaseException:
            plan.stop.set()  # the others need not go on
            raise
        finally:
            free.put(place)

    with ThreadPoolExecutor(len(places)) as pool:
        try:
            for task in [pool.submit(on_free_device, one) for one in work]:
                while not task.done():  # without a timeout, a Ctrl-C that another thread received would not wake us
                    wait([task], timeout=0.2)
                records |= task.result()
        except BaseException:
            plan.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [records[k] for k in range(len(members))]


def alone(program: Program, member: Member) -> "_Work":
    """One network that is trained call by call, each of at most two rows."""
    rows = np.arange(2)
    stepwise = any(layer.is_convolution for layer in program.network.layers)
    return (_Stepwise if stepwise else _Single)(program, RunPlan(rows, rows), {0: member}, [None], 1)


def batch_size(member: Member, share: int) -> int:
    """Networks in a batch on a GPU that has ``share`` of them to train; less than that is padded.

    One of two constants, because float32 sums depend on it. With 2^10, ten seeds are not padded to thousands, and a
    seed's numbers do not depend on its company; thousands that fill at least half of 2^14 take the large batch, and
    their numbers differ from those of the small one by rounding. Both are halved until they fit into memory, where
    samples, parameters with gradient and moments, and what each unit passes on and back for each sample are counted.
    """
    inputs = [member.x, *(member.test or ())[:1]]
    values = member.init.values()
    units = sum(len(value) for value in values if value.ndim > 1)
    counted = sum(x.size + 4 * units * len(x) for x in inputs) + 6 * sum(value.size for value in values)
    most = LARGE_BATCH if 2 * share > LARGE_BATCH else BATCH
    return int(np.clip(2 ** np.floor(np.log2(BATCH_BYTES / (8 * counted))), 2, most))


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
            return flow_row(program, state, fixed, length)
        nothing = dict.fromkeys(names, jnp.zeros((), fixed["x"].dtype))
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


class _Work:
    """Some networks on their way through the rows: gather their arguments, call, write down, keep."""

    batched = False

    def __init__(
        self, program: Program, plan: RunPlan, members: dict[int, Member], kept: list[Checkpoint | None], block: int
    ) -> None:
        self.program, self.plan, self.places, self.kept = program, plan, list(members), kept
        given = list(members.values())
        self.members = [*given, *[given[-1]] * (block - len(given))]  # a batch is padded to its full size
        self.rows, self.slots = self._bounds()

    def _bounds(self) -> tuple[int, int]:
        """How many rows a call may have, and how many of them are saved at most; neither takes too many bytes."""
        one = len(self.members) * np.dtype(self.program.storage).itemsize
        weights = one * sum(self.members[0].init[name].size for name in self.program.kept)
        rows = min(ROWS_PER_CALL, len(self.plan.recorded), BYTES_PER_CALL // (one * len(self.program.curve_names())))
        slots = max(1, BYTES_PER_CALL // weights)
        saved = np.flatnonzero(self.plan.slots >= 0)
        if len(saved) > slots:  # the shortest way from a saved row to the first one that has no place left
            rows = min(rows, int((saved[slots:] - saved[:-slots]).min()))
        rows = max(1, rows)
        return rows, int((np.searchsorted(saved, saved + rows) - np.arange(len(saved))).max())

    def advance(self, call: Chunk, state: Any, fixed: Any) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
        """The state after some rows; weights at the saved ones; curves at the recorded ones, members first."""
        lengths, lines = np.zeros(self.rows, np.int32), np.full(self.rows, self.slots, np.int32)
        lengths[: len(call.lengths)] = call.lengths
        saved = call.recorded[call.slots >= 0]
        lines[saved] = np.arange(len(saved))
        advance = _advance(self.program, self.batched, self.slots)
        state, weights, curves = advance(np.int32(call.begin), state, fixed, lengths, lines)
        weights, curves = jax.device_get((weights if len(saved) else {}, curves))
        first = lambda value: np.swapaxes(value, 0, 1) if self.batched else value[None]  # noqa: E731
        weights = {name: first(value)[:, : len(saved)] for name, value in weights.items()}
        return state, weights, {name: first(value)[:, call.recorded] for name, value in curves.items()}

    def gather_fixed(self) -> Any:
        """What stays fixed during the run, on the device of this thread."""
        fixed = {name: self._gather(attrgetter(name)) for name in ("x", "y", "test", "numbers")}
        return jax.device_put(fixed | {"key": self._gather(attrgetter("key"), np.uint32)})

    def begin(self, fixed: Any) -> Any:
        """The first state."""
        return _begin(self.program, self.batched)(self._gather(attrgetter("init")), fixed)

    def compile(self, fixed: Any) -> None:
        """Compile before anything is timed: a call of rows without steps."""
        nothing = np.array([], int)
        jax.block_until_ready(self.advance(Chunk(0, [], nothing, nothing, nothing), self.begin(fixed), fixed)[0])

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
        state, block, rows = self._resume(self.begin(fixed))
        records = block.records
        began = kept_at = time.perf_counter()
        last = int(self.plan.recorded[-1])
        before = [record.seconds for record in records]
        writing = 0.0
        if self.plan.stop.is_set():
            return {}
        for call in rows:
            called = time.perf_counter()
            state, weights, curves = self.advance(call, state, fixed)
            now = time.perf_counter()
            rows.took(now - called, sum(call.lengths))
            for k, record in enumerate(records):
                record.seconds = before[k] + (now - began) / len(records)
            block.write(call, weights, curves, self.plan)
            seen = curves["loss"][: len(records), -1:]
            median = float(np.median(seen)) if seen.size else float("nan")
            self.plan.report((min(rows.done(), last) - call.begin) * len(records), median)
            if not block.going.any():
                self.plan.report((last - min(rows.done(), last)) * len(records), float("nan"))
                break
            if self.plan.stop.is_set():
                break
            if self.plan.keeper and now - kept_at > max(KEEP_SECONDS, writing / KEEP_SHARE):
                self._keep(records, rows, state, finished=False)
                kept_at = time.perf_counter()
                writing = kept_at - now
        if self.plan.keeper:
            self._keep(records, rows, state, finished=not self.plan.stop.is_set())
        return dict(zip(self.places, records, strict=True))

    def _resume(self, state: Any) -> tuple[Any, EnsembleBuffer, Chunks]:
        """State, records and rows from where they were kept, or from the beginning."""
        cut = not isinstance(self.program.optimizer, GradientFlow)
        found = [one for one in self.kept if one is not None]
        if len(found) < len(self.places) or len({(one.row, one.offset) for one in found}) > 1:
            shapes = {name: self.members[0].init[name].shape for name in self.program.kept}
            names, dtype = self.program.curve_names(), self.program.storage
            block = EnsembleBuffer.empty(len(self.places), shapes, names, self.plan, dtype)
            return state, block, Chunks(self.plan, self.rows, cut)
        rows = Chunks(self.plan, self.rows, cut, found[0].row, found[0].offset)
        self.plan.report(min(rows.done(), int(self.plan.recorded[-1])) * len(found), float("nan"))
        pad = len(self.members) - len(found)
        leaves = zip(*(one.leaves for one in found), strict=True)
        whole = [np.stack([*parts, *[parts[-1]] * pad]) if self.batched else parts[0] for parts in leaves]
        state = jax.tree.unflatten(jax.tree.structure(state), [jnp.asarray(leaf) for leaf in whole])
        return state, EnsembleBuffer.resumed([one.record for one in found]), rows

    def _keep(self, records: list[Record], rows: Chunks, state: Any, finished: bool) -> None:
        assert self.plan.keeper is not None
        leaves = [] if finished else [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
        for k, (place, record) in enumerate(zip(self.places, records, strict=True)):
            own = [np.asarray(leaf[k]) if self.batched else leaf for leaf in leaves]
            self.plan.keeper.keep(place, Checkpoint(record, rows.index, rows.offset, own, finished))


class _Single(_Work):
    """One network, its rows as one compiled loop."""


class _Batch(_Work):
    """Several networks as one batch, their rows as one compiled loop."""

    batched = True


class _Stepwise(_Work):
    """One network, one compiled step after the other."""

    def __init__(
        self, program: Program, plan: RunPlan, members: dict[int, Member], kept: list[Checkpoint | None], block: int
    ) -> None:
        super().__init__(program, plan, members, kept, block)
        self.rows = min(self.rows, 16)

    def advance(self, call: Chunk, state: Any, fixed: Any) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
        """The same as the compiled loop's; a call without rows only compiles."""
        step, saved = _compile_step(self.program, not on_cpu()), []
        recorded = dict(zip(call.recorded.tolist(), call.slots.tolist(), strict=True))
        flow = isinstance(self.program.optimizer, GradientFlow)
        count, curves = call.begin, {name: [] for name in self.program.curve_names()}
        if not call.lengths:
            return step(np.int32(count), state, fixed, np.bool(True))[0], {}, {}
        for row, length in enumerate(call.lengths):
            exact: dict[str, Any] = {}
            if row in recorded:
                exact = self._evaluate(state, fixed)
                if recorded[row] >= 0:
                    saved.append({name: np.array(value) for name, value in self.program.saved(state).items()})
            for index in range(1 if flow else length):
                state, seen = step(np.int32(length if flow else count), state, fixed, np.bool(index == 0))
                if row in recorded and index == 0:
                    for name, value in (seen | exact).items():
                        curves[name].append(value)
                count += 1
        jax.block_until_ready(state)  # so that what is timed has been done
        weights = {name: np.stack([one[name] for one in saved])[None] for name in saved[0]} if saved else {}
        return state, weights, {name: np.array(values, float)[None] for name, values in curves.items()}

    def _evaluate(self, state: Any, fixed: Any) -> dict[str, float]:
        """All evaluations, their samples in parts."""
        found = {}
        for prefix, x, y in self.program.evaluations(fixed):
            cuts = range(0, len(x), EVALUATED)
            parts = [_compile_evaluate(self.program)(state, x[k : k + EVALUATED], y[k : k + EVALUATED]) for k in cuts]
            shares = np.array([min(EVALUATED, len(x) - k) for k in cuts]) / len(x)
            for name in parts[0]:
                weights = np.ones(len(parts)) if name == "loss" and self.program.loss.reduction == "sum" else shares
                found[prefix + name] = float(weights @ np.array([part[name] for part in parts], float))
        return found


@lru_cache(maxsize=COMPILED)
def _compile_step(program: Program, on_gpu: bool) -> Callable[..., Any]:
    """One compiled step ``(count, state, fixed, record) -> (state, curves)``, all but the evaluations.

    A GPU would wait for the host at a condition: there the curves are a program of their own, called where they are
    recorded.
    """

    def step(count: Array, state: TrainState, fixed: dict[str, Any], record: Array) -> Any:
        if isinstance(program.optimizer, GradientFlow):
            return flow_row(program, state, fixed, count, evaluate=False)
        after, curves = program.step(count, state, fixed, evaluate=False)
        nothing = jax.tree.map(lambda curve: jnp.zeros(curve.shape, curve.dtype), jax.eval_shape(curves))
        return after, lax.cond(record, curves, lambda: nothing)

    if not on_gpu or isinstance(program.optimizer, GradientFlow):
        return jax.jit(step, donate_argnums=1, compiler_options=convolution_options())
    move = jax.jit(lambda *given: program.step(*given, evaluate=False)[0], donate_argnums=1)
    look = jax.jit(lambda *given: program.step(*given, evaluate=False)[1]())

    def step_apart(count: Array, state: TrainState, fixed: dict[str, Any], record: np.bool) -> Any:
        seen = look(count, state, fixed) if record else {}
        return move(count, state, fixed), seen

    return step_apart


@lru_cache(maxsize=COMPILED)
def _compile_evaluate(program: Program) -> Callable[..., Any]:
    return jax.jit(program.evaluate, compiler_options=convolution_options())
