"""Samples on which a reduced model is judged: their batches, a model's outputs, agreement and accuracy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import InputError
from .trace import ModelInputs, call, mapped, tensors

BATCH = 256
Samples = Any  # (x, y), x, or an iterable of batches
Outputs = list[torch.Tensor]


@dataclass(frozen=True)
class Judgement:
    """How a reduced model does beside the given one; None where it cannot be said."""

    relative_error: float
    agreement: float | None
    accuracy: float | None


class Judge:
    """The batches of some samples, and what the given model says to them."""

    def __init__(self, model: nn.Module, data: Samples) -> None:
        device = next((value.device for value in model.parameters()), torch.device("cpu"))
        pairs = list(_batches(data))
        if not pairs:
            raise InputError("data holds no batch")
        self.batches: list[ModelInputs] = [mapped(x, lambda value: value.detach().to(device)) for x, _ in pairs]
        try:
            self.outputs = self.answers(model)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            shapes: list[tuple[int, ...]] = []
            mapped(self.batches[0], lambda value: shapes.append(tuple(value.shape)) or value)
            raise InputError(
                f"the model refuses a batch of data of shape {shapes}: {type(error).__name__}: {error}"
            ) from error
        self.labels = None if any(_is_next_word(*pair) for pair in pairs) else _classes([y for _, y in pairs])
        self.axes = [_class_axis(output, self.labels) for output in self.outputs]
        shape = None if self.labels is None else self.labels.shape
        classified = [k for k, axis in enumerate(self.axes) if axis is not None]
        fits = (k for k in classified if self._predicted(self.outputs, k).shape == shape)
        self.labelled = next(fits, None)  # the output whose classes the labels are

    def answers(self, model: nn.Module) -> Outputs:
        """A model's outputs to all samples: its logits where it has some, all others else; no scalars beside them."""
        answered: list[Outputs] = []
        with torch.no_grad():
            for batch in self.batches:
                answer = call(model, batch)
                named = answer.get("logits") if isinstance(answer, Mapping) else getattr(answer, "logits", None)
                every = tensors(answer if named is None else named)
                if not every:
                    raise InputError(f"the model answers with a {type(answer).__name__} without a tensor of floats")
                every = [value for value in every if value.ndim > 0] or [value[None] for value in every]
                answered.append([value.detach().cpu() for value in every])
        shapes = {tuple(tuple(value.shape[1:]) for value in outputs) for outputs in answered}
        if len(shapes) > 1:
            raise InputError(
                f"the outputs of two batches of data are of shapes {[list(shape) for shape in sorted(shapes)[:2]]} for "
                "each sample: give batches of one length"
            )
        return [torch.cat(parts) for parts in zip(*answered, strict=True)]

    def _predicted(self, outputs: Outputs, k: int) -> torch.Tensor:
        axis = self.axes[k]
        assert axis is not None
        return outputs[k].argmax(axis)

    def accuracy(self, outputs: Outputs) -> float | None:
        """Share of samples whose class is right; labels that are no class of the output, such as -100, do not count."""
        if self.labels is None or self.labelled is None:
            return None
        classes = outputs[self.labelled].shape[self.axes[self.labelled] or 0]
        counts = (self.labels >= 0) & (self.labels < classes)
        right = (self._predicted(outputs, self.labelled) == self.labels)[counts]
        return float(right.double().mean()) if len(right) else None

    def judge(self, model: nn.Module) -> Judgement:
        """Hold a reduced model against the given one: of several outputs the one that does worst counts."""
        outputs = self.answers(model)
        errors = [
            relative_error(_flat(given), _flat(reduced)) for given, reduced in zip(self.outputs, outputs, strict=True)
        ]
        errors = [value for value in errors if not np.isnan(value)] or errors
        shares = [
            float((self._predicted(outputs, k) == self._predicted(self.outputs, k)).double().mean())
            for k, axis in enumerate(self.axes)
            if axis is not None
        ]
        finite = all(bool(torch.isfinite(value).all()) for value in (*outputs, *self.outputs))
        error = max(errors) if finite else float("nan")
        return Judgement(error, min(shares) if shares else None, self.accuracy(outputs))

    @property
    def constant(self) -> bool:
        """Whether the outputs tell no two samples apart."""
        return not any(np.ptp(_flat(output), axis=0).any() for output in self.outputs)


def relative_error(outputs: np.ndarray, others: np.ndarray) -> float:
    r"""The distance of two models' outputs, $|y' - y| / |y - \bar y|$, with the mean of the given model's alone.

    A constant that is wrong so counts. NaN for a constant that stays; any change of one is infinite.

    >>> relative_error(np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]))
    2.0
    """
    distance = float(np.linalg.norm(others - outputs))
    size = float(np.linalg.norm(outputs - outputs.mean(axis=0)))
    if size > 0:
        return distance / size
    return float("nan") if distance <= 1e-6 * np.linalg.norm(outputs) else float("inf")


def _flat(outputs: torch.Tensor) -> np.ndarray:
    return outputs.double().reshape(len(outputs), -1).numpy()


def _classes(labels: list[Any]) -> torch.Tensor | None:
    """The labels of all batches, where they are whole numbers."""
    whole = all(isinstance(y, torch.Tensor) and not (y.is_floating_point() or y.is_complex()) for y in labels)
    same = whole and len({y.shape[1:] for y in labels}) == 1 and labels[0].ndim > 0
    return torch.cat([y.detach().cpu() for y in labels]) if same else None


def _is_next_word(x: ModelInputs, y: Any) -> bool:
    """Whether the labels are the words that the model reads: those of a language model, which it shifts itself."""
    words = x.get("input_ids") if isinstance(x, Mapping) else None
    if not isinstance(words, torch.Tensor) or not isinstance(y, torch.Tensor) or words.shape != y.shape:
        return False
    return bool(((words == y) | (y < 0)).all())


def _class_axis(outputs: torch.Tensor, labels: torch.Tensor | None) -> int | None:
    """The axis of the classes: second, or last where labels or three axes say so; nothing for a single output."""
    if outputs.ndim < 2:
        return None
    axis = -1 if outputs.ndim == 3 else 1
    if labels is not None and labels.ndim == outputs.ndim - 1:
        shapes = {place: tuple(np.delete(outputs.shape, place)) for place in (1, -1)}
        axis = next((place for place, shape in shapes.items() if shape == tuple(labels.shape)), axis)
    return axis if outputs.shape[axis] > 1 else None


def _batches(data: Samples) -> Iterable[tuple[ModelInputs, Any]]:
    """Inputs and labels (or None), batch by batch."""
    if isinstance(data, torch.Tensor):
        data = (data, None)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], torch.Tensor):
        x, y = data
        y = torch.as_tensor(y) if isinstance(y, np.ndarray | list) else y
        if y is not None and (not isinstance(y, torch.Tensor) or y.ndim == 0 or len(y) != len(x)):
            count = len(y) if isinstance(y, torch.Tensor) and y.ndim else f"a {type(y).__name__}"
            raise InputError(f"data is x and y of as many samples, not {len(x)} and {count}")
        for start in range(0, len(x), BATCH):
            yield x[start : start + BATCH], None if y is None else y[start : start + BATCH]
        return
    if isinstance(data, str | Mapping) or not isinstance(data, Iterable):
        raise InputError(f"data is (x, y), x alone, or an iterable of batches, not a {type(data).__name__}")
    for batch in data:
        if isinstance(batch, Mapping):
            yield batch, batch.get("labels")
        elif isinstance(batch, torch.Tensor):
            yield batch, None
        elif isinstance(batch, tuple | list) and len(batch) in (1, 2):
            y = batch[1] if len(batch) == 2 else None
            yield batch[0], torch.as_tensor(y) if isinstance(y, np.ndarray) else y
        else:
            raise InputError(f"a batch of data is (x, y), x or a mapping, not a {type(batch).__name__}")
