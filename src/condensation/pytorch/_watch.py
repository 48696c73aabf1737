"""Watching the training of a PyTorch model: lines, k_eff and the other measures of every layer against the step.

A watcher reads weights between two optimizer steps, one tensor at a time, and leaves nothing behind in the model: no
hook, no random number drawn, no changed mode or buffer. Trained weights are the same bit for bit, watched or not. What
fails while it watches (a logger, a file, a layer that is gone) is told, and the training goes on.
"""

import math
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from ..errors import InputError, check_whole, unknown_name
from ..measure import measure_units
from ..measure._table import NAN
from ..runs import Watched, WatchedLayer, WatchedRow, WatchedRun, WatchWriter
from ..runs._watched import QUANTITIES
from ._budget import Budget
from ._copies import Copier, Copies
from ._loggers import as_loggers, guarded, named
from ._looking import as_float, threads, undisturbed, versions
from ._options import BUDGET, DEFAULT, Options, check_options
from ._processes import class_name, first_says, is_sharded, rank
from ._selection import about, as_names, chosen, initial_weights, weights_of
from ._units import unwrapped

SMALL = 1024  # layers up to here are measured by one thread: more would only wait for those of the training


def watch(model: nn.Module, out: str | Path | None = None, **options: Unpack[Options]) -> "Watcher":
    """Watch a model while the user's loop trains it; its present weights are those of step 0.

    Args:
        model: any model, also compiled, a moving average (``AveragedModel``) or inside DistributedDataParallel (the
            first process watches, the others do nothing). One that is spread over processes (``fully_shard``) is
            watched, told and closed by all of them, as they gather it together.
        out: a folder for this run, which ``load_run`` and ``condensation watch`` read; the rows are in memory only if
            it is not given.
        schedule: the steps at which layers are measured, besides the first and the last: ``Geometric`` (by default two
            for each factor of ten), ``Every`` or ``At``.
        layers: names of the layers to measure, all of them if not given: those of ``units(model)``, with heads or
            without; a parameter's own name, with or without ``.weight``, stands for all that it is cut into.
        heads: cut attention projections into their heads; a head that is named is watched in any case.
        view: the units of convolution layers, ``"filter"`` or ``"kernel"``.
        keep: names of layers whose weights are kept at the measured steps.
        to: ``"tensorboard"``, ``"wandb"`` or ``"mlflow"`` (the run that is under way), a TensorBoard writer, an object
            with ``log(numbers, step)``, a Lightning logger or a function of numbers and step, or several in a list. One
            that raises is warned of once.
        budget: the share of the time of the steps that measuring and writing may take, 3% if not given. The first and
            the last step are measured in any case, and so is what takes less than 0.05 s in all. A due step that would
            take more is copied and measured once the steps have paid for it; where eight copies wait or they would take
            256 MiB, a later step is measured in its place. What is not paid for at the end is left out. None: every due
            step is measured, the same ones on every machine.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        live: show a table on standard error, if that is a terminal.
        resume: go on with the run that is in the folder, if there is one; it stays as it is until a step is told.
        overwrite: begin a new run in the folder, in the place of a watched one that is there (a notebook's cell that is
            run again); it stays as it is until a step is told.

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
            class_name(unwrapped(model)),
            tuple(WatchedLayer(*about(layer)) for layer in self._units),
            options.get("schedule", DEFAULT),
            tuple(layer.name for layer in kept),
            options.get("threshold"),
            str(torch.__version__),
        )
        self._loggers, self._budget = as_loggers(options.get("to", ()), out), Budget(options.get("budget", BUDGET))
        self._parameters = [*model.parameters()]
        self._versions = versions(self._parameters)
        self._sharded, self._waiting = is_sharded(model), list[Copies]()
        self._beside = any(value.is_cuda for value in self._parameters)  # copied while the training goes on
        self._copier = Copier(self._units)
        self._step, self._loss = first, None
        self._begun = self._closed = False
        self._due = math.inf  # the next step to measure, once a step is told
        self._silent, self._shown, self._live = rank() != 0, options.get("live", False), None
        path = None if out is None or self._silent else Path(out)
        resume, overwrite = options.get("resume", False), options.get("overwrite", False)
        self._writer = WatchWriter(watched, path, resume=resume, overwrite=overwrite, rows=rows)
        self._helps = self._silent and self._sharded  # reads what the first process measures
        resumed = self._writer.resumed
        if resumed:
            self._step = self._writer.steps[-1]
        if self._sharded:
            resumed, self._step = first_says((resumed, self._step))
        self._resumed = resumed
        if self._helps and not resumed:
            for _ in range(2):  # the initial weights, and their measures
                self._read_along()
        elif not self._silent and not resumed:
            threads()
            with self._budget.spending():
                with undisturbed():
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
        layer = f"{layer}.weight" if f"{layer}.weight" in known else layer
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
        if step is not None:
            check_whole("step", step, least=0, bits=63)
        began = self._budget.begin()
        try:
            now = self._step + 1 if step is None else step
            nothing = self._begun and self._step <= now < self._due and (not self._waiting or self._budget.exhausted)
            if nothing:  # is to be done, nearly always: steps may be short, and each call counts
                self._step, self._loss = now, loss.detach() if isinstance(loss, torch.Tensor) else loss
            else:
                self._told(now, loss)
        finally:
            self._budget.end(began)

    def _told(self, now: int, loss: torch.Tensor | float | None) -> None:
        new = not self._begun
        if new:
            self._begin(now)
        if now < self._step:
            raise InputError(f"step {now} was told after step {self._step}, but steps only go forwards")
        if new:
            due = self._next_due(self._step)
            self._due = first_says(due) if self._sharded else due
        self._step = now
        if self._silent and not self._helps:
            return
        self._loss = loss.detach() if isinstance(loss, torch.Tensor) else loss
        measured = self._due <= now and self._measure_due(now)
        if self._waiting and self._waiting[0].ready and self._waiting[0].step < now and self._budget.allows():
            self._measure_waiting()
            measured = True
        if measured or new:
            self._writer.write(now, now=new)

    def _next_due(self, after: int) -> float:
        return self._writer.watched.schedule.next_due(after) or math.inf

    def _measure_due(self, now: int) -> bool:
        """Measure a due step, or copy it, or leave it due; whether it was measured."""
        if self._sharded:
            self._due = self._next_due(now)
            if first_says(self._budget.allows()):
                self._read_along() if self._helps else self._measure(now, self._loss)
                return not self._helps
            return False
        measured = not self._waiting and not self._beside and self._budget.allows()
        if measured:
            self._measure(now, self._loss)
        elif (copies := self._copier.take(now, self._loss, len(self._waiting))) is not None:
            self._waiting.append(copies)
        elif not self._waiting and self._budget.allows():
            self._measure(now, self._loss)
            measured = True
        else:
            return False
        self._due = self._next_due(now)
        return measured

    def _measure_waiting(self) -> None:
        copies = self._waiting[0]
        with copies.read():
            self._measure(copies.step, copies.loss)
        self._waiting.pop(0)

    def _read_along(self) -> None:
        """Take part in gathering all weights, which the first process measures."""
        with undisturbed():
            for layer in self._units:
                weights_of(layer)

    def tell(self, loss: float) -> None:
        """Tell the loss of the present step after the step."""
        self._loss, value = loss, as_float(loss)
        if self._waiting and self._waiting[-1].step == self._step:
            self._waiting[-1].loss = loss
        for k in range(len(self.rows) - 1, -1, -1):
            if self.rows[k].step != self._step:
                return
            self.rows[k] = replace(self.rows[k], loss=value)

    def close(self, *, measure: bool = True) -> None:
        """Measure the last step if that is wanted, write, and end. A resumed run that was told nothing stays."""
        if self._closed:
            return
        untold = self._resumed and not self._begun
        self._warn_of_forgotten_steps()
        if not self._begun and not untold:
            self._begin(self._step + 1)
        self._closed = True
        with ExitStack() as end:
            end.callback(self._release)
            if self._sharded and measure and first_says(self._unmeasured() and not untold) and self._helps:
                self._read_along()
            if self._silent or untold:
                return
            end.callback(self._writer.write, self._step, finished=True)
            while self._waiting and self._waiting[0].step < self._step and self._budget.allows():
                with self._budget.spending():
                    self._measure_waiting()
            if measure and self._unmeasured():
                self._measure(self._step, self._loss)

    def _unmeasured(self) -> bool:
        """Whether the last step is to be measured yet."""
        return not self._silent and self._writer.steps[-1] != self._step

    def _warn_of_forgotten_steps(self) -> None:
        if not self._begun and not self._silent and versions(self._parameters) != self._versions:
            warnings.warn(
                "the weights have changed, but no step was told: call watcher.step(loss) after optimizer.step()",
                stacklevel=3,
            )

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and not sys.is_finalizing():
            self._warn_of_forgotten_steps()

    def _release(self) -> None:
        self._units, self._loss, self._parameters = [], None, []
        self._waiting.clear()
        self._writer.release()
        if self._live is not None:
            self._live.stop()

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt) and not self._sharded
        self.close(measure=kind is None or interrupted)

    def _begin(self, now: int) -> None:
        """At the first step told it is known which process writes, and where a resumed training goes on."""
        if not self._silent and rank() != 0:  # torch.distributed was initialised after watch()
            self._silent = True
            self._writer.abandon()
        self._begun = self._silent
        resumed, schedule = self._resumed, self._writer.watched.schedule
        if resumed:
            self._step = min(self._step, max(now - 1, 0))
        if self._silent:
            return
        self._writer.begin(lambda step: not resumed or (step < now and schedule.next_due(step - 1) == step))
        self._begun = True
        if self._shown:
            from ..drawing._terminal import LiveTable

            self._live = LiveTable()
            self._show = guarded("the live table", self._live.show)
        if not resumed:
            self._tell(self.rows)

    def _measure(self, step: int, loss: torch.Tensor | float | None) -> None:
        value, watched = as_float(loss), self._writer.watched
        rows, kept, finite, pools = [], {}, True, threads()
        with self._budget.measuring(), undisturbed():
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
                with pools.limit(limits=1 if min(weights.shape) <= SMALL else None, user_api="blas"):
                    row = measure_units(layer.name, weights, layer.kind, threshold=watched.threshold, start=start)
                rows.append(WatchedRow(**vars(row), step=step, loss=value))
        self._writer.add(rows, kept, finite=finite)
        if self._begun:
            self._tell(rows)

    def _tell(self, rows: Sequence[WatchedRow]) -> None:
        """Tell loggers and terminal of the rows of one step."""
        for tell in self._loggers:
            tell(named(rows), rows[0].step)
        if self._live is not None:
            self._show(self.trajectory)
