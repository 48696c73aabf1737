"""Measuring listed units: one row a layer, the most condensed first."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .._files import Stored
from .._memory import fits, require
from ..errors import InputError
from ..measure import Row, Rows, measure_units, most_condensed_first
from ._files import ModelFile
from ._formats.opened import Opened
from ._formats.orders import told_by_names
from ._layout import Units
from ._names import NORM
from ._streaming import SAMPLE, Progress, Room, of_all_units, sampled

ADVICE = "it is left out; --memory lets it take more"
COPIES = 2  # of a layer's weights at least: as read, and less their mean
OFF = 1e-3  # of the median size of a norm's scales: a channel below is switched off
_SCALES = ("weight", "gamma", "scale")
JOBS = min(os.cpu_count() or 1, 8)  # layers at the same time: each holds some copies of its weights


def measure_listed(
    listed: Iterable[Units],
    *,
    threshold: float | None = None,
    with_null: bool = True,
    with_errors: bool = False,
    start: Callable[[Units], np.ndarray | None] = lambda units: None,
    jobs: int = 1,
    progress: Progress = lambda layer, done, total: None,
) -> list[Row]:
    """A row for each entry, in the given order; what has no units keeps its reason.

    A layer is read when its turn comes and forgotten after it. Of one with many units a sample is measured.

    Args:
        listed: units of a model or a checkpoint.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        with_null: also subtract the mean weight of the units, a direction that pretrained models share, measure what is
            left, and compare it with a null: units of the same norms with the entries of each input permuted among
            them; where the bias is known, lines are such as hold without it as well.
        with_errors: also give standard errors of k_eff and of the ranks, by a bootstrap over units.
        start: the initial weights, for the relative change.
        jobs: layers that are measured at the same time, each by one thread, as far as they fit into 1 GiB.
        progress: told after each layer.
    """
    listed = list(listed)
    room, lock, total, done = Room(), threading.Lock(), sum(units.units * units.inputs for units in listed), 0

    def row(units: Units) -> Row:
        if units.reason:
            return Row(units.name, reason=units.reason + switched_off(units))
        try:
            require(_bytes(units), f"measuring {units.units:,} units of {units.inputs:,} inputs", ADVICE)
            weights, first = units.weights(), start(units)
        except InputError as error:  # a broken part of a file
            return Row(units.name, units.kind, units.units, units.inputs, reason=str(error))
        options = {"threshold": threshold, "with_null": with_null, "with_errors": with_errors}
        options |= {"bias": units.bias, "quantised": units.quantised}
        chosen = sampled(len(weights))
        if chosen is None:
            return measure_units(units.name, weights, units.kind, start=first, **options)
        weights, first = weights[chosen], None if first is None else first[chosen]
        return of_all_units(
            measure_units(units.name, weights, units.kind, start=first, **options), weights, units.units
        )

    def in_turn(units: Units) -> Row:
        nonlocal done
        with room.hold(0 if units.reason else _bytes(units)):
            found = row(units)
        with lock:
            done += units.units * units.inputs
            progress(units.name, done, total)
        return found

    largest = sorted((_bytes(units) for units in listed if not units.reason), reverse=True)
    while jobs > 1 and not fits(sum(largest[:jobs])):
        jobs -= 1
    # threads of BLAS that wait for each other on a busy machine take ten times as long
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(in_turn, listed))


def switched_off(units: Units) -> str:
    """What is to be said of a norm's scales beside the reason why they are no units: which channels they switch off."""
    if units.reason != NORM or units.read is None or units.name.rpartition(".")[2] not in _SCALES:
        return ""
    try:
        scales = np.abs(np.asarray(units.read(), float)).reshape(-1)
    except InputError:
        return ""
    off = int((scales < OFF * np.median(scales)).sum()) if np.isfinite(scales).all() else 0
    return f"; {off} of {len(scales)} scales are zero or nearly so: these channels can be pruned" if off else ""


def _bytes(units: Units) -> int:
    """Bytes that are taken while a layer is measured: its weights, and copies of those that are measured."""
    return 4 * units.inputs * (units.units + (COPIES - 1) * min(units.units, SAMPLE))


def units_of_arrays(
    arrays: Mapping[str, np.ndarray],
    config: Mapping[str, Any] | None = None,
    *,
    heads: bool = True,
    view: str = "filter",
) -> list[Units]:
    """The units of a checkpoint's arrays, told by their names and shapes."""
    stored = {name: Stored(array.shape, str(array.dtype), lambda array=array: array) for name, array in arrays.items()}
    opened = told_by_names(Opened(stored))
    return ModelFile(Path(), opened.arrays, config or {}, told=opened.layouts).units(heads=heads, view=view)


def measure_arrays(
    arrays: Mapping[str, np.ndarray],
    config: Mapping[str, Any] | None = None,
    *,
    threshold: float | None = None,
    heads: bool = False,
    view: str = "filter",
) -> Rows:
    """Measure all arrays of a checkpoint, the most condensed first.

    >>> rows = measure_arrays({"b": np.ones(5), "a.weight": np.ones((20, 3)), "a.bias": np.ones(20)})
    >>> [(row.layer, row.lines, row.inputs, row.reason) for row in rows]
    [('a.weight', 1, 4, ''), ('b', 0, 0, 'a vector: one number a channel is no direction')]
    """
    listed = units_of_arrays(arrays, config, heads=heads, view=view)
    return most_condensed_first(measure_listed(listed, threshold=threshold, jobs=JOBS))
