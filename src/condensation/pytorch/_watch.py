"""Watching the training of a PyTorch model: lines, k_eff and the other measures of every layer against the step.

A watcher reads weights between two optimizer steps, one tensor at a time, and leaves nothing behind in the model: no
hook, no random number drawn, no changed mode or buffer. Trained weights are the same bit for bit, watched or not. What
fails while it watches (a logger, a file, a layer that is gone) is told, and the training goes on.
"""

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from jaxtyping import Float, Int
from threadpoolctl import ThreadpoolController
from torch import distributed, nn

from ..errors import InputError, check_whole, unknown_name
from ..measure import measure_units
from ..measure._table import NAN
from ..runs import Watched, WatchedLayer, WatchedRow, WatchedRun, WatchWriter
from ..runs._watched import QUANTITIES
from ..saving import At, Every, Geometric, OpenSaveSchedule
from ._loggers import as_loggers, guarded, named
from ._selection import about, as_names, chosen, initial_weights, weights_of
from ._units import unwrapped

DEFAULT = Geometric(2)  # a measurement takes as long as a few steps: 2000 steps have nine of them
SMALL = 1024  # layers up to here are measured by one thread: more would only wait for those of the training


class Options(TypedDict, total=False):
    """What can be chosen when a model is watched, as ``watch`` describes it."""

    schedule: OpenSaveSchedule
    layers: Iterable[str] | None
    heads: bool
    view: str
    keep: Iterable[str]
    to: Any
    budget: float | None
    threshold: float | None
    live: bool
    resume: bool


def check_options(options: Options) -> None:
    """Refuse, before there is a model, what no model could be watched with."""
    for name in options:
        if name not in Options.__annotations__:
            raise unknown_name("option of watch", name, Options.__annotations__)
    schedule, meanings = options.get("schedule", DEFAULT), {"budget": "a share of the time", "threshold": "a cosine"}
    if not isinstance(schedule, At | Every | Geometric):
        known = "Geometric(per_decade), Every(k) or At(steps), which need no last step"
        raise InputError(f"a schedule is {known}, not {schedule!r}")
    for name, meaning in meanings.items():
        value = options.get(name)
        if value is not None and not (isinstance(value, int | float) and 0 < value < 1):
            raise InputError(f"{name} is {meaning} between 0 and 1, not {value!r}")
    as_loggers(options.get("to", ()))


def watch(model: nn.Module, out: str | Path | None = None, **options: Unpack[Options]) -> "Watcher":
    """Watch a model while the user's loop trains it; its present weights are those of step 0.

    Args:
        model: any model, also compiled or inside DistributedDataParallel (the first process watches, the others do
            nothing).
        out: a folder for this run, which ``load_run`` and ``condensation watch`` read; the rows are in memory only if
            it is not given.
        schedule: the steps at which layers are measured, besides the first and the last: ``Geometric`` (by default two
            for each factor of ten), ``Every`` or ``At``.
        layers: names of the layers to measure, all of them if not given: those of ``units(model)``, with heads or
            without; a parameter's own name stands for all that it is cut into.
        heads: cut attention projections into their heads; a head that is named is watched in any case.
        view: the units of convolution layers, ``"filter"`` or ``"kernel"``.
        keep: names of layers whose weights are kept at the measured steps.
        to: a TensorBoard writer, an object with ``log(numbers, step)``, a Lightning logger or a function of numbers and
            step, or several in a list. One that raises is warned of once.
        budget: the share of the time that measuring may take: a due step is left out while it has taken more. Which
            steps are measured then depends on the machine.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        live: show a table on standard error, if that is a terminal.
        resume: go on with the run that is in the folder, if there is one; it stays as it is until a step is told.

    >>> model = nn.Linear(40, 20)
    >>> with watch(model) as watcher:
    ...     watcher.step(loss=0.5)  # after optimizer.step()
    >>> [(row.step, row.lines, row.change) for row in watcher.rows]
    [(0, 0, 0.0), (1, 0, 0.0)]
    """
    return Watcher(model, out, **options)


class Watcher:
    """Measures a model's layers as its training goes on; made by ``watch``, whose arguments it has.

    Args:
        first: the step at which watching begins.
        rows: of the steps before, where a checkpoint brings them.
    """

    def __init__(
        self,
        model: nn.Module,
        out: str | Path | None = None,
        *,
        first: int = 0,
        rows: Sequence[WatchedRow] = (),
        **options: Unpack[Options],
    ) -> None:
        check_options(options)
        layers, keep = as_names(options.get("layers")), as_names(options.get("keep", ())) or []
        heads, view = options.get("heads", False), options.get("view", "filter")
        self._units, kept = chosen(model, layers, keep, heads=heads, view=view)
        watched = Watched(
            type(unwrapped(model)).__name__,
            tuple(WatchedLayer(*about(layer)) for layer in self._units),
            options.get("schedule", DEFAULT),
            tuple(layer.name for layer in kept),
            options.get("threshold"),
            str(torch.__version__),
        )
        self._loggers, self._budget = as_loggers(options.get("to", ())), options.get("budget")
        self._measuring = 0.0
        self._step, self._loss = first, None
        self._begun = self._closed = False
        self._due = -1.0  # the next step to measure, once a step is told
        self._silent, self._shown, self._live = _rank() != 0, options.get("live", False), None
        path = None if out is None or self._silent else Path(out)
        self._writer = WatchWriter(watched, path, resume=options.get("resume", False), rows=rows)
        if self._silent:
            return
        if self._writer.resumed:
            self._step = self._writer.steps[-1]
        else:
            with _undisturbed():
                self._writer.keep_start(initial_weights(self._units))
            self._measure(first, None)

    @property
    def rows(self) -> list[WatchedRow]:
        """One for each layer and measured step."""
        return self._writer.rows

    @property
    def last(self) -> int:
        """The last step that was told."""
        return self._step

    @property
    def trajectory(self) -> WatchedRun:
        """What was measured until now, as ``load_run`` would give it."""
        return self._writer.trajectory

    def history(self, layer: str, quantity: str) -> tuple[Int[np.ndarray, " steps"], Float[np.ndarray, " steps"]]:
        """The measured steps, and a quantity of a layer at each: ``history("0.weight", "k_eff")``."""
        known = [watched.name for watched in self._writer.watched.layers]
        if layer not in known:
            raise unknown_name("layer", layer, known)
        if quantity not in QUANTITIES:
            raise unknown_name("quantity", quantity, QUANTITIES)
        rows = [row for row in self.rows if row.layer == layer]
        values = [NAN if row.reason else float(getattr(row, quantity)) for row in rows]
        return np.array([row.step for row in rows], int), np.array(values, float)

    def step(self, loss: torch.Tensor | float | None = None, step: int | None = None) -> None:
        """Tell that the optimizer has made a step.

        Args:
            loss: as the loop has it, of the batch of this step; its value is read where the step is measured.
            step: the number of optimizer steps done, counted by the watcher if not given. A due step that was not told
                is made up for at the next one that is.
        """
        if self._closed:
            raise InputError("this watcher was closed; watch(model) begins another one")
        now = self._step + 1 if step is None else step
        check_whole("step", now, least=0, bits=63)
        new = not self._begun
        if new:
            self._begin(now)
        if now < self._step:
            raise InputError(f"step {now} was told after step {self._step}, but steps only go forwards")
        last, self._step = self._step, now
        if self._silent:
            return
        self._loss = loss.detach() if isinstance(loss, torch.Tensor) else loss
        if last >= self._due:
            self._due = self._writer.watched.schedule.next_due(last) or math.inf
        due = self._due <= now and not self._over_budget()
        if due:
            self._measure(now, loss)
        if due or new:
            self._writer.write(now, now=new)

    def tell(self, loss: float) -> None:
        """Tell the loss of the present step after the step."""
        self._loss, value = loss, _as_float(loss)
        for k in range(len(self.rows) - 1, -1, -1):
            if self.rows[k].step != self._step:
                return
            self.rows[k] = replace(self.rows[k], loss=value)

    def close(self, *, measure: bool = True) -> None:
        """Measure the last step, unless it is not to be measured, write what is to be written, and end.

        A run that was to be gone on with and was told no step stays as it was.
        """
        if self._closed:
            return
        untold = self._writer.resumed and not self._begun
        if not self._begun and not untold:
            self._begin(self._step + 1)
        self._closed = True
        with ExitStack() as end:
            end.callback(self._release)
            if self._silent or untold:
                return
            end.callback(self._writer.write, self._step, finished=True)
            if measure and self._writer.steps[-1] != self._step:
                self._measure(self._step, self._loss)

    def _release(self) -> None:
        self._units, self._loss = [], None
        self._writer.release()
        if self._live is not None:
            self._live.stop()

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(measure=kind is None or issubclass(kind, KeyboardInterrupt))

    def _begin(self, now: int) -> None:
        """At the first step told it is known which process writes, and where a resumed training goes on."""
        if not self._silent and _rank() != 0:  # torch.distributed was initialised after watch()
            self._silent = True
            self._writer.abandon()
        self._begun = self._silent
        if self._silent:
            return
        resumed, schedule = self._writer.resumed, self._writer.watched.schedule
        self._writer.begin(lambda step: not resumed or (step < now and schedule.next_due(step - 1) == step))
        self._begun = True
        if self._shown:
            from ..drawing._terminal import LiveTable

            self._live = LiveTable()
            self._show = guarded("the live table", self._live.show)
        if resumed:
            self._step = min(self._step, max(now - 1, 0))
        else:
            self._tell(self.rows)

    def _measure(self, step: int, loss: torch.Tensor | float | None) -> None:
        began, value, watched = time.perf_counter(), _as_float(loss), self._writer.watched
        rows, kept, finite, threads = [], {}, True, _threads()
        with _undisturbed():
            for layer in self._units:
                try:
                    weights = weights_of(layer)
                except InputError as error:
                    rows.append(WatchedRow(*about(layer), reason=str(error), step=step, loss=value))
                    continue
                if layer.name in watched.keep:
                    kept[layer.name] = np.array(weights)
                finite = finite and bool(np.isfinite(weights).all())
                start = self._writer.start_of(layer.name)
                with threads.limit(limits=1 if min(weights.shape) <= SMALL else None, user_api="blas"):
                    row = measure_units(layer.name, weights, layer.kind, threshold=watched.threshold, start=start)
                rows.append(WatchedRow(**vars(row), step=step, loss=value))
        self._writer.add(rows, kept, finite=finite)
        if self._begun:
            self._tell(rows)
        self._measuring += time.perf_counter() - began

    def _tell(self, rows: Sequence[WatchedRow]) -> None:
        """Tell loggers and terminal of the rows of one step."""
        for tell in self._loggers:
            tell(named(rows), rows[0].step)
        if self._live is not None:
            self._show(self.trajectory)

    def _over_budget(self) -> bool:
        spent = self._measuring + self._writer.seconds_written
        return self._budget is not None and spent > self._budget * self._writer.seconds


@cache
def _threads() -> ThreadpoolController:
    """The libraries with threads of their own, looked for once: that takes a millisecond."""
    return ThreadpoolController()


def _rank() -> int:
    """The number of this process among those of a distributed training; 0 if there are no others."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    rank = os.environ.get("RANK", "")  # torchrun's, before torch.distributed is initialised
    return int(rank) if rank.isdecimal() else 0


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Neither gradients nor autocast, whose cache of weights must not meet one that was made without gradients."""
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for kind in ("cpu", "cuda", "xpu", "mps"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def _as_float(loss: Any) -> float:
    if loss is None:
        return NAN
    try:
        return float(loss.detach() if isinstance(loss, torch.Tensor) else loss)
    except (TypeError, ValueError, RuntimeError):
        given = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
        raise InputError(f"the loss must be one number, not {given}") from None
