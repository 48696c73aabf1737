"""A training of someone else's network that was watched: what stands in its run folder, without the framework.

The folder is that of any run, with one seed. ``run.json`` holds a ``Watched`` in place of an experiment; the seed's
file holds the curves ``loss`` and ``QUANTITY/LAYER`` at the measured steps, which stand beside them as the curve
``step``, and the weights of the layers that were to be kept. ``initial.safetensors`` holds the initial weights.
"""

from __future__ import annotations

import json
import os
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import map_tensors
from .._seals import check_seal
from .._serialization import FORMAT, check_format, coerce_fields, fingerprint, from_plain, to_plain, without_none
from .._writing import stream_tensors, sync_folder
from ..errors import InputError
from ..measure import Row
from ..measure._table import NAN
from ..saving import OpenSaveSchedule

QUANTITIES = ("lines", "orientations", "cover", "k_eff", "effective_rank", "change", "condensed")
_STORED = (*QUANTITIES, "chance_k_eff", "stable_rank", "zeros")
_TYPES: dict[str, Callable[[float], Any]] = {"lines": int, "orientations": int, "condensed": bool, "zeros": int}


@dataclass(frozen=True)
class WatchedLayer:
    """A layer of units: its name, what a unit is, and how many units and inputs (bias included) it has."""

    name: str
    kind: str
    units: int
    inputs: int

    def __post_init__(self) -> None:
        coerce_fields(self)

    @classmethod
    def __from_plain__(cls, plain: dict[str, Any], place: str, folder: Path) -> WatchedLayer:
        try:
            return cls(**plain)
        except TypeError:
            raise InputError(f"{place} needs name, kind, units and inputs, not {', '.join(plain)}") from None

    def __str__(self) -> str:
        return f"{self.name} ({self.units} x {self.inputs})"


@dataclass(frozen=True)
class Watched:
    """What was watched, where an experiment stands otherwise.

    Attributes:
        model: name of its class.
        layers: the measured ones.
        schedule: the steps at which they are measured, besides the last.
        keep: names of the layers whose weights are kept at these steps.
        threshold: the cosine that decides, if it was given.
        torch: PyTorch's version; the others stand in run.json.
    """

    model: str
    layers: tuple[WatchedLayer, ...]
    schedule: OpenSaveSchedule
    keep: tuple[str, ...] = ()
    threshold: float | None = None
    torch: str = ""

    def __post_init__(self) -> None:
        coerce_fields(self)

    def to_plain(self) -> dict[str, Any]:
        """The value as dictionaries, lists, strings and numbers."""
        return {"format": FORMAT} | to_plain(self)

    @classmethod
    def from_plain(cls, plain: Any) -> Watched:
        """The value that plain data stands for."""
        if not isinstance(plain, dict):
            raise InputError(f"a watched run is a table of fields, not {type(plain).__name__}")
        check_format("watched run", plain.get("format"))
        return from_plain(cls, without_none({name: value for name, value in plain.items() if name != "format"}))

    def fingerprint(self) -> str:
        """SHA-256 of the value."""
        return fingerprint(self)

    def to_plain_at(self, place_of: Any) -> dict[str, Any]:
        """The same: it has no arrays that were kept somewhere."""
        return self.to_plain()

    def arrays(self) -> dict[str, Any]:
        """None: the data are the user's."""
        return {}

    def differs(self, other: Watched) -> str:
        """How another model or another way of watching it differs from this one; empty if they can share a run."""
        for name in ("model", "schedule", "keep", "threshold"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                return f"its {name} is {mine!r}, not {theirs!r}"
        for mine, theirs in zip(self.layers, other.layers, strict=False):
            if mine != theirs:
                return f"it has the layer {mine} where this model has {theirs}"
        if len(self.layers) != len(other.layers):
            return f"it has {len(self.layers)} layers, this model {len(other.layers)}"
        return ""


@dataclass(frozen=True, kw_only=True)
class WatchedRow(Row):
    """The measures of a layer at one step.

    Attributes:
        step: the number of optimizer steps that were done.
        loss: as it was told with that step, NaN if it was not.
    """

    step: int = 0
    loss: float = NAN


def to_curves(rows: Sequence[WatchedRow]) -> dict[str, np.ndarray]:
    """Rows as curves over the measured steps; what was not measured is NaN."""
    steps = list(dict.fromkeys(row.step for row in rows))
    place = {step: k for k, step in enumerate(steps)}
    curves = {"step": np.array(steps, float), "loss": np.full(len(steps), NAN)}
    for row in rows:
        k = place[row.step]
        curves["loss"][k] = row.loss
        for name in _STORED:
            curve = curves.setdefault(f"{name}/{row.layer}", np.full(len(steps), NAN))
            if not row.reason:
                curve[k] = getattr(row, name)
    return curves


def to_rows(
    layers: Sequence[WatchedLayer], curves: Mapping[str, np.ndarray], reasons: Mapping[tuple[int, str], str]
) -> list[WatchedRow]:
    """The rows that were written as curves, step after step."""
    rows = []
    for k, step in enumerate(curves["step"].astype(int).tolist()):
        for layer in layers:
            measures: dict[str, Any] = {"step": step, "loss": float(curves["loss"][k])}
            reason = reasons.get((step, layer.name), "")
            for name in () if reason else _STORED:
                if f"{name}/{layer.name}" in curves:  # a run of an earlier version has fewer
                    measures[name] = _TYPES.get(name, float)(curves[f"{name}/{layer.name}"][k])
            rows.append(WatchedRow(layer.name, layer.kind, layer.units, layer.inputs, reason=reason, **measures))
    return rows


def pack_reasons(rows: Iterable[WatchedRow]) -> np.ndarray:
    """The reasons of rows that could not be measured, as bytes of JSON."""
    reasons = [[row.step, row.layer, row.reason] for row in rows if row.reason]
    return np.frombuffer(json.dumps(reasons).encode(), np.uint8)


def unpack_reasons(packed: np.ndarray) -> dict[tuple[int, str], str]:
    """The reasons, by step and layer."""
    return {(step, layer): reason for step, layer, reason in json.loads(packed.tobytes())}


def compact(array: np.ndarray) -> np.ndarray:
    """The array in half precision where that holds its numbers exactly, as it does those of a model of half precision.

    >>> tenth = np.array([0.1], np.float32)
    >>> compact(tenth).dtype.name, compact(tenth.astype(np.float16).astype(np.float32)).dtype.name
    ('float32', 'float16')
    """
    import ml_dtypes

    if array.dtype != np.float32:
        return array
    for small in (ml_dtypes.bfloat16, np.float16):
        for part in (array.reshape(-1)[:1000], array):  # the first ones tell it of most arrays
            with np.errstate(over="ignore"):
                half = part.astype(small)
            if not np.array_equal(half.astype(np.float32), part, equal_nan=True):
                break
        else:
            return half
    return array


class InitialWeights:
    """The initial weights on disk: written and read one layer at a time, never held whole.

    It has a name of its own until ``publish`` says that this process is the one that writes the run, and goes with the
    process if that ends before.
    """

    def __init__(self, folder: Path) -> None:
        self.path = self.final = folder / "initial.safetensors"
        self._checked = False
        self.drop: Callable[[], None] = lambda: None

    def write(self, layers: Sequence[WatchedLayer], weights: Iterator[np.ndarray]) -> None:
        """Write the weights of all layers, which come one after the other, in the smallest type that holds them."""
        self.path = self.final.with_name(f".{self.final.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
        self.drop = weakref.finalize(self, _remove, self.path, os.getpid())  # called, or when the process ends
        try:
            with self.path.open("w+b") as file:
                names = [layer.name for layer in layers]
                stream_tensors(file, names, zip(names, map(compact, weights), strict=True))
                os.fsync(file.fileno())
            self._checked = True
        except OSError as error:
            self.drop()
            raise InputError(f"{self.final} cannot be written: {error.strerror}") from error

    def publish(self) -> None:
        """Give the file its name."""
        if self.path != self.final:
            try:
                self.path.replace(self.final)
                sync_folder(self.final.parent)
            except OSError as error:
                raise InputError(f"{self.final} cannot be written: {error.strerror}") from error
            self.path = self.final

    def read(self, layer: str) -> np.ndarray:
        """The weights of one layer."""
        try:
            if not self._checked:
                check_seal(self.path)
                self._checked = True
            return map_tensors(self.path)[1][layer].read()
        except (InputError, KeyError, OSError) as error:
            raise InputError(f"the weights at the start cannot be read from {self.path}: {error}") from error


def _remove(path: Path, process: int) -> None:
    """Remove a file that has no name yet, if it is there; a forked process leaves it to the one that wrote it."""
    if os.getpid() == process:
        path.unlink(missing_ok=True)
