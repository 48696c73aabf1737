"""Samples on which a reduced model is judged: their batches, a model's outputs, agreement and accuracy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import InputError
from ...reduction.reduce import centred_error
from .trace import Inputs, call, tensors

BATCH = 256
Data = Any  # (x, y), x, or an iterable of batches


@dataclass(frozen=True)
class Judgement:
    """How a reduced model does beside the given one; None where it cannot be said."""

    error: float
    agreement: float | None
    accuracy: float | None


class Judge:
    """The batches of some samples, and what the given model says to them."""

    def __init__(self, model: nn.Module, data: Data) -> None:
        self.device = next((value.device for value in model.parameters()), torch.device("cpu"))
        pairs = list(_batches(data))
        if not pairs:
            raise InputError("data holds no batch")
        self.batches: list[Inputs] = [_moved(x, self.device) for x, _ in pairs]
        labels = [y for _, y in pairs]
        classes = all(isinstance(y, torch.Tensor) and not (y.is_floating_point() or y.is_complex()) for y in labels)
        try:
            self.outputs = self.answers(model)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            shapes = [tuple(value.shape) for value in _all_tensors(self.batches[0])]
            raise InputError(
                f"the model refuses a batch of data of shape {shapes}: {type(error).__name__}: {error}"
            ) from error
        self.labels = torch.cat([y.detach().cpu() for y in labels]) if classes else None
        self.axis = _class_axis(self.outputs, self.labels)
        if self.labels is not None and (self.axis is None or self._predicted(self.outputs).shape != self.labels.shape):
            self.labels = None  # no classes of these outputs

    def answers(self, model: nn.Module) -> torch.Tensor:
        """A model's outputs to all samples; of several, its logits or the first."""
        found = []
        with torch.no_grad():
            for batch in self.batches:
                answer = call(model, batch)
                answer = getattr(answer, "logits", answer)
                every = tensors(answer)
                if not every:
                    raise InputError(f"the model answers with a {type(answer).__name__} without a tensor of floats")
                found.append(every[0].detach().cpu())
        return torch.cat([value[None] if value.ndim == 0 else value for value in found])

    def _predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        assert self.axis is not None
        return outputs.argmax(self.axis)

    def accuracy(self, outputs: torch.Tensor) -> float | None:
        """Share of samples whose class is right."""
        if self.labels is None:
            return None
        return float((self._predicted(outputs) == self.labels).double().mean())

    def judge(self, model: nn.Module) -> Judgement:
        """Hold a reduced model against the given one."""
        outputs = self.answers(model)
        same = None
        if self.axis is not None:
            same = float((self._predicted(outputs) == self._predicted(self.outputs)).double().mean())
        return Judgement(centred_error(_flat(self.outputs), _flat(outputs)), same, self.accuracy(outputs))

    @property
    def constant(self) -> bool:
        """Whether the outputs tell no two samples apart."""
        return not np.ptp(_flat(self.outputs), axis=0).any()


def _flat(outputs: torch.Tensor) -> np.ndarray:
    return outputs.double().reshape(len(outputs), -1).numpy()


def _class_axis(outputs: torch.Tensor, labels: torch.Tensor | None) -> int | None:
    """The axis of the classes: second, or last where labels or three axes say so; nothing for a single output."""
    if outputs.ndim < 2:
        return None
    axis = -1 if outputs.ndim == 3 else 1
    if labels is not None and labels.ndim == outputs.ndim - 1:
        shapes = {place: tuple(np.delete(outputs.shape, place)) for place in (1, -1)}
        axis = next((place for place, shape in shapes.items() if shape == tuple(labels.shape)), axis)
    return axis if outputs.shape[axis] > 1 else None


def _batches(data: Data) -> Iterable[tuple[Inputs, Any]]:
    """Inputs and labels (or None), batch by batch."""
    if isinstance(data, torch.Tensor):
        data = (data, None)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], torch.Tensor):
        x, y = data
        if y is not None and (not isinstance(y, torch.Tensor) or len(y) != len(x)):
            raise InputError(f"data is x and y of as many samples, not {len(x)} and {_size(y)}")
        for start in range(0, len(x), BATCH):
            yield x[start : start + BATCH], None if y is None else y[start : start + BATCH]
        return
    if isinstance(data, str | Mapping) or not isinstance(data, Iterable):
        raise InputError(f"data is (x, y), x alone, or an iterable of batches, not a {type(data).__name__}")
    for batch in data:
        if isinstance(batch, tuple | list) and len(batch) == 2:
            yield batch[0], batch[1]
        elif isinstance(batch, Mapping):
            yield batch, batch.get("labels")
        elif isinstance(batch, torch.Tensor):
            yield batch, None
        elif isinstance(batch, tuple | list) and len(batch) == 1:
            yield batch[0], None
        else:
            raise InputError(f"a batch of data is (x, y), x or a mapping, not a {type(batch).__name__}")


def _size(value: Any) -> str:
    return str(len(value)) if hasattr(value, "__len__") else f"a {type(value).__name__}"


def _all_tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else []
    return [tensor for item in items for tensor in _all_tensors(item)]


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(device)
    if isinstance(value, Mapping):
        return {key: _moved(item, device) for key, item in value.items()}
    return type(value)(_moved(item, device) for item in value) if isinstance(value, list | tuple) else value
