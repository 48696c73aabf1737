"""What the networks of one batch leave: one array for all of them, so that a chunk is written down at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..runs import Record
from ._chunks import Chunk, RunPlan


class EnsembleBuffer:
    """Records of some networks, each a view into arrays that have the networks first."""

    def __init__(self, weights: dict[str, np.ndarray], curves: dict[str, np.ndarray]) -> None:
        self.weights, self.curves = weights, curves
        own = lambda whole, k: {name: values[k] for name, values in whole.items()}  # noqa: E731
        self.records = [Record(own(weights, k), own(curves, k)) for k in range(len(curves["loss"]))]
        self.going = np.ones(len(self.records), bool)  # those whose loss is finite

    @classmethod
    def empty(
        cls, count: int, shapes: dict[str, tuple[int, ...]], names: list[str], plan: RunPlan, dtype: str
    ) -> "EnsembleBuffer":
        """Nothing written yet: ``shapes`` are those of the values that are saved, ``names`` those of the curves."""
        full = lambda *shape: np.full((count, *shape), np.nan, dtype)  # noqa: E731
        weights = {name: full(len(plan.saved), *shape) for name, shape in shapes.items()}
        return cls(weights, {name: full(len(plan.recorded)) for name in names})

    @classmethod
    def resumed(cls, records: Sequence[Record]) -> "EnsembleBuffer":
        """What was written before."""
        join = lambda parts: {name: np.stack([part[name] for part in parts]) for name in parts[0]}  # noqa: E731
        buffer = cls(join([record.weights for record in records]), join([record.curves for record in records]))
        for own, record in zip(buffer.records, records, strict=True):
            own.diverged, own.seconds = record.diverged, record.seconds
        buffer.going = np.array([record.diverged is None for record in records])
        return buffer

    def write(self, chunk: Chunk, weights: dict[str, Any], curves: dict[str, Any], plan: RunPlan) -> None:
        """Copy weights at the chunk's saved steps and curves at its recorded ones, up to a loss that is not finite.

        Both have networks first, perhaps more of them than are here: a batch is padded.
        """
        count = len(self.records)
        alive = np.logical_and.accumulate(np.isfinite(curves["loss"][:count]), axis=1) & self.going[:, None]
        whole = bool(alive.all())
        for name, values in curves.items():
            self.curves[name][:, _span(chunk.indices)] = (
                values[:count] if whole else np.where(alive, values[:count], np.nan)
            )
        saved = chunk.slots >= 0
        for name, values in weights.items():
            there = alive[:, saved].reshape(count, -1, *[1] * (values.ndim - 2))
            kept = values[:count] if whole else np.where(there, values[:count], np.nan)
            self.weights[name][:, _span(chunk.slots[saved])] = kept
        ended = self.going & ~alive.all(axis=1)
        for k in np.flatnonzero(ended):
            self.records[k].diverged = int(plan.recorded[chunk.indices[alive[k].sum()]])
        self.going &= ~ended


def _span(numbers: np.ndarray) -> slice:
    """Numbers that follow one another, as a slice: far faster than the list of them."""
    return slice(numbers[0], numbers[-1] + 1) if len(numbers) else slice(0)
