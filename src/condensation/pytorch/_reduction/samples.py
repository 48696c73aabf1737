"""Samples that a reduction is fitted to, chosen by and judged on: three parts that share none, the same in every call.

A part's inputs are batches as the model takes them. Samples are dealt out in a random order that never changes; what is
given again is left out. Batches that cannot be cut into samples (a tensor in them has another length) are dealt out
whole.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from ...errors import InputError
from .distinct import distinct_batches, distinct_samples
from .trace import ModelInputs, mapped

BATCH = 256
PORTIONS = 8  # a part of the samples of a large model comes in so many batches, whose activations stay in the caches
FEW = 50  # samples of a part; with fewer, its numbers are told to be rough
SEED = 0
Samples = Any  # (x, y), x, a mapping, or an iterable of batches; tensors or arrays
Pair = tuple[ModelInputs, Any]  # inputs and labels, which may be None


@dataclass(frozen=True)
class Part:
    """Some of the samples, in batches, and their labels; ``fresh`` are samples that nothing is fitted to."""

    batches: list[ModelInputs]
    labels: list[Any]
    fresh: bool = True

    @property
    def size(self) -> int:
        """Number of samples."""
        return sum(length(batch) or 1 for batch in self.batches)


@dataclass(frozen=True)
class Parts:
    """What is fitted to, what is chosen by, what is judged on, and what is to be said of their sizes."""

    fit: Part
    choose: Part
    judge: Part
    notes: tuple[str, ...]


class Source:
    """The data as it was given: its first batch, by which the model is looked at, and the rest when it is asked for."""

    def __init__(self, data: Samples, model: nn.Module) -> None:
        self.model = model
        self._rest = iter(_pairs(data, model))
        self.first = next(self._rest, None)
        if self.first is None:
            raise InputError("data holds no batch")
        size = length(self.first[0])
        if size == 0:
            raise InputError("data holds no sample")

    def example(self, samples: int = 2) -> ModelInputs:
        """The first samples, where batches can be cut."""
        assert self.first is not None
        inputs, size = self.first[0], length(self.first[0])
        return inputs if size is None else mapped(inputs, lambda value: value[: min(size, samples)])

    def parts(self, most: int) -> Parts:
        """The three parts, each of so many samples at most."""
        assert self.first is not None
        pairs, count = [], 0
        for pair in chain([self.first], self._rest):
            pairs.append(pair)
            count += length(pair[0]) or 1
            if count >= 24 * most:  # enough to draw from
                break
        joined = join(pairs)
        order, again = _dealt(pairs, joined)
        units = len(order)
        held = units // 5 if units >= 5 else int(units > 1)
        apart = held if units > 2 else 0
        judge, choose, fit = order[:held], order[held : held + apart], order[held + apart :]
        judge, choose = judge if held else fit, choose if apart else fit
        parts = []
        for places in (fit, choose, judge):
            if joined is None:
                part = Part([pairs[k][0] for k in places], [pairs[k][1] for k in places])
            else:
                part = _taken(joined, places[:most], most)
            parts.append(replace(part, fresh=places is not fit))
        return Parts(*parts, notes=(*_notes(parts, held, apart), *again))


def _dealt(pairs: list[Pair], joined: Pair | None) -> tuple[torch.Tensor, tuple[str, ...]]:
    """The places of the samples (or batches) that are not given again, in random order, and what is to be said."""
    if joined is None:
        own, every, kind = distinct_batches([_plain(x) for x, _ in pairs]), len(pairs), "batches"
    else:
        own, every, kind = distinct_samples(joined[0]), length(joined[0]) or 0, "samples"
    order = torch.randperm(len(own), generator=torch.Generator().manual_seed(SEED))
    notes = (f"{every - len(own)} of {every} {kind} were given before and are left out",)
    return torch.tensor(own)[order], notes if len(own) < every else ()


def length(inputs: ModelInputs) -> int | None:
    """Number of samples of a batch: the first axis of all its tensors; nothing where they differ."""
    sizes = {len(leaf) if leaf.ndim else -1 for leaf in tree_leaves(_plain(inputs)) if isinstance(leaf, torch.Tensor)}
    return sizes.pop() if len(sizes) == 1 and -1 not in sizes else None


def as_inputs(inputs: Any, model: nn.Module) -> ModelInputs:
    """Inputs with arrays as tensors, all on the model's device; numbers of an array in the model's precision."""
    first = next((value for value in model.parameters() if value.is_floating_point()), None)
    device = torch.device("cpu") if first is None else first.device

    def tensor(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = torch.as_tensor(value)
            value = value.to(first.dtype) if first is not None and value.is_floating_point() else value
        return value.detach().to(device) if isinstance(value, torch.Tensor) else value

    return _changed(inputs, tensor)


def _changed(value: Any, change: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _changed(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_changed(item, change) for item in value))
    if isinstance(value, tuple | list):
        return type(value)(_changed(item, change) for item in value)
    return change(value)


def _plain(value: Any) -> Any:
    """Nested mappings as dictionaries, which PyTorch knows."""
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _pairs(data: Samples, model: nn.Module) -> Iterator[Pair]:
    """Inputs and labels (or None), batch by batch."""
    kinds = (torch.Tensor, np.ndarray)
    if isinstance(data, kinds):
        data = (data, None)
    if isinstance(data, Mapping):
        data = [data]
    if _is_pair(data, kinds):
        x, y = as_inputs(data[0], model), data[1]
        y = _labels(y) if isinstance(y, np.ndarray | list) else y
        if isinstance(x, torch.Tensor) and x.ndim == 0:
            raise InputError("data is samples along the first axis of x, not one number")
        samples, labels = length(x), len(y) if isinstance(y, torch.Tensor) and y.ndim else f"a {type(y).__name__}"
        if y is not None and samples is not None and labels != samples:
            raise InputError(f"data is x and y of as many samples, not {samples} and {labels}")
        yield x, y
        return
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise InputError(f"data is (x, y), x alone, or an iterable of batches, not a {type(data).__name__}")
    for batch in data:
        if isinstance(batch, Mapping):
            yield as_inputs(batch, model), batch.get("labels")
        elif isinstance(batch, kinds):
            yield as_inputs(batch, model), None
        elif isinstance(batch, tuple | list) and len(batch) in (1, 2):
            y = batch[1] if len(batch) == 2 else None
            yield as_inputs(batch[0], model), _labels(y) if isinstance(y, np.ndarray) else y
        else:
            raise InputError(f"a batch of data is (x, y), x or a mapping, not a {type(batch).__name__}")


def _is_pair(data: Any, kinds: tuple[type, ...]) -> bool:
    """Whether data is x and y, not two batches of x: what stands in a list is, where no model takes the second, too."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        return False
    x, y = data
    if isinstance(data, tuple):
        return isinstance(x, kinds) or (isinstance(x, tuple | list | Mapping) and isinstance(y, kinds))
    return isinstance(x, kinds) and isinstance(y, kinds) and (x.ndim, x.dtype) != (y.ndim, y.dtype)


def _labels(values: Any) -> torch.Tensor:
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y holds labels that are no numbers: {error}") from error


def join(pairs: list[Pair]) -> Pair | None:
    """All batches as one, where they can be cut into samples and are of one shape."""
    inputs = [_plain(x) for x, _ in pairs]
    if any(length(x) is None for x in inputs):
        return None
    shapes = [[(v.shape[1:], v.dtype) if isinstance(v, torch.Tensor) else v for v in tree_leaves(x)] for x in inputs]
    if any(shape != shapes[0] for shape in shapes):
        return None
    leaves = [[leaf for leaf in tree_leaves(x) if isinstance(leaf, torch.Tensor)] for x in inputs]
    whole = iter([torch.cat(list(parts)) for parts in zip(*leaves, strict=True)])
    labels = [y for _, y in pairs]
    cut = all(
        isinstance(y, torch.Tensor) and y.ndim and len(y) == length(x) for (_, y), x in zip(pairs, inputs, strict=True)
    )
    same = cut and len({(y.shape[1:], y.dtype) for y in labels}) == 1
    return mapped(inputs[0], lambda _: next(whole)), torch.cat([y.detach().cpu() for y in labels]) if same else None


def _taken(joined: Pair, places: torch.Tensor, most: int) -> Part:
    """Some samples, in batches."""
    inputs, labels = joined
    batches, own = [], []
    for some in places.split(min(BATCH, max(1, most // PORTIONS))):
        batches.append(mapped(inputs, lambda value, some=some: value[some.to(value.device)]))
        own.append(None if labels is None else labels[some])
    return Part(batches, own)


def _notes(parts: list[Part], held: int, apart: int) -> tuple[str, ...]:
    fit, choose, judge = (part.size for part in parts)
    if not held:
        return ("there is one sample (or one batch that cannot be cut): nothing is held out, and no number is honest",)
    if not apart:
        return ("two samples (or batches that cannot be cut): the choice is made on the one that is fitted to",)
    if min(choose, judge) < FEW:
        return (f"few samples: {fit} fitted to, {choose} chosen by, {judge} judged on, so the numbers are rough",)
    return ()
