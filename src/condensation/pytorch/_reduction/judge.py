r"""How a reduced model does beside the given one, on samples: relative error, agreement, accuracy, and their bounds.

A model has one error on the samples at hand and another on new ones. The square of an error is $\rho = \sum e_i / \sum
s_i$, of changes $e_i$ and sizes $s_i$ of n samples. What it lacks beside that of new ones is bounded by a normal part
and by a tail, since a few samples often make most of the error: with 95% confidence at most three in n new ones are
worse than the worst one seen. They count as three more like it, or as three with the error $\epsilon$ that is allowed.

$$\rho + \frac{t \sqrt{n / (n - 1) \sum_i r_i^2} + 3 \max(r_i, \epsilon^2 \bar s)}{\sum_i s_i}, \quad r_i = e_i - \rho
s_i,$$

with Student's t of 95% and n - 1 degrees of freedom. Of a share it is the end of Wilson's interval. Two sets of samples
have each its bound, and the worse one counts: a model must have luck twice to seem better than it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import nn

from ...errors import InputError
from .samples import Part
from .trace import ModelInputs, call, mapped, tensors

Outputs = list[torch.Tensor]
SURE = 0.95  # of each bound, on one side
WITHIN = ("hidden_state", "attentions", "key_values", "cache", "mems", "router")  # names of what transformers also give
UNSEEN = 3  # of n new samples: with 95% confidence no more are worse than n others


@dataclass(frozen=True)
class Judgement:
    """How a reduced model does beside the given one; None where it cannot be said.

    ``most_error`` and ``least_agreement`` are what new samples will hardly go beyond; where these samples tell nothing
    of new ones, the error has no bound (infinity).
    """

    relative_error: float
    agreement: float | None
    accuracy: float | None
    most_error: float
    least_agreement: float | None

    def bounded(self, other: "Judgement") -> "Judgement":
        """The same with the worse bounds of this and of another judgement, on other samples."""
        shares = self.least_agreement, other.least_agreement
        least = None if shares[0] is None or shares[1] is None else min(shares[0], shares[1])
        return replace(self, most_error=max(self.most_error, other.most_error), least_agreement=least)


class Judge:
    """The batches of some samples, and what the given model says to them."""

    def __init__(self, model: nn.Module, part: Part, allowed: float) -> None:
        self.batches, self.fresh, self.allowed = part.batches, part.fresh, allowed
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
        pairs = list(zip(part.batches, part.labels, strict=True))
        self.labels = None if any(_is_next_word(*pair) for pair in pairs) else _classes(part.labels)
        self.axes = [_class_axis(output, self.labels) for output in self.outputs]
        if self.logits:  # no other output is one of classes
            self.axes[self.logits :] = [None] * (len(self.axes) - self.logits)
        shape = None if self.labels is None else self.labels.shape
        classified = [k for k, axis in enumerate(self.axes) if axis is not None]
        fits = (k for k in classified if self._predicted(self.outputs, k).shape == shape)
        self.labelled = next(fits, None)  # the output whose classes the labels are

    def answers(self, model: nn.Module) -> Outputs:
        """A model's outputs to all samples, first its logits where it has some; no scalars beside others.

        A model that draws random numbers draws the same ones in every call.
        """
        answered: list[Outputs] = []
        with torch.no_grad():
            for place, batch in enumerate(self.batches):
                torch.manual_seed(place)  # the caller keeps the state of the generators
                answer = call(model, batch)
                logits, others = _told(answer)
                every = [*logits, *others]
                if not every:
                    raise InputError(f"the model answers with a {type(answer).__name__} without a tensor of floats")
                every = [value for value in every if value.ndim > 0] or [value[None] for value in every]
                self.logits = len(logits)
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
        pairs = [(_flat(given), _flat(reduced)) for given, reduced in zip(self.outputs, outputs, strict=True)]
        errors = [errors_of(*pair, self.allowed) for pair in pairs]
        errors = [pair for pair in errors if not np.isnan(pair[0])] or errors
        shares = []
        for k, axis in enumerate(self.axes):
            if axis is not None:
                same = self._predicted(outputs, k) == self._predicted(self.outputs, k)
                shares.append((float(same.double().mean()), len(same)))
        finite = all(bool(torch.isfinite(value).all()) for value in (*outputs, *self.outputs))
        error, most = (max(values) for values in zip(*errors, strict=True)) if finite else (float("nan"),) * 2
        share = min(shares, default=None)
        least = None if share is None else least_share(*share)
        if not self.fresh:  # a model may be fitted to them as closely as one likes
            most, least = float("inf"), None
        return Judgement(error, None if share is None else share[0], self.accuracy(outputs), most, least)

    @property
    def finite(self) -> bool:
        """Whether the given model's outputs are numbers."""
        return all(bool(torch.isfinite(output).all()) for output in self.outputs)

    @property
    def constant(self) -> bool:
        """Whether the outputs tell no two samples apart."""
        flat = [_flat(output) for output in self.outputs]
        return not any(np.ptp(output, axis=0).any() if len(output) > 1 else output.any() for output in flat)

    @property
    def classifies(self) -> bool:
        """Whether there is a largest of several outputs."""
        return any(axis is not None for axis in self.axes)


def _told(answer: Any) -> tuple[Outputs, Outputs]:
    """The logits of an answer that names some, and its other outputs: what is within the model is none beside them."""
    if hasattr(answer, "_asdict"):
        answer = answer._asdict()
    elif not isinstance(answer, Mapping) and hasattr(answer, "logits"):
        answer = {"logits": answer.logits} | getattr(answer, "__dict__", {})
    if not isinstance(answer, Mapping) or answer.get("logits") is None:
        return [], tensors(answer)
    others = {key: value for key, value in answer.items() if key != "logits" and not any(w in key for w in WITHIN)}
    return tensors(answer["logits"]), tensors(others)


def relative_error(outputs: np.ndarray, others: np.ndarray) -> float:
    r"""The distance of two models' outputs, $|y' - y| / |y - \bar y|$, with the mean of the given model's alone.

    A constant that is wrong so counts. NaN for a constant that stays; any change of one is infinite.

    >>> relative_error(np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]))
    2.0
    """
    return errors_of(outputs, others, 0.0)[0]


def errors_of(outputs: np.ndarray, others: np.ndarray, allowed: float) -> tuple[float, float]:
    """The relative error, and what it will hardly go beyond on new samples; of a single sample relative to |y|."""
    wrong = np.square(others - outputs).sum(axis=1)
    size = np.square(outputs - (outputs.mean(axis=0) if len(outputs) > 1 else 0)).sum(axis=1)
    if size.sum() > 0:
        ratio = float(wrong.sum() / size.sum())
        lacking = _lacking(wrong - ratio * size, allowed**2 * float(size.mean()))
        return ratio**0.5, (ratio + lacking / float(size.sum())) ** 0.5
    stays = wrong.sum() ** 0.5 <= 1e-6 * np.linalg.norm(outputs)
    return (float("nan"), float("nan")) if stays else (float("inf"), float("inf"))


def _lacking(rest: np.ndarray, unseen: float) -> float:
    """What a sum of changes may lack beside that of new samples: of what its parts are above their expectation."""
    count = len(rest)
    if count == 1:
        return float("inf")
    spread = float(np.linalg.norm(rest)) * (count / (count - 1)) ** 0.5
    return float(special.stdtrit(count - 1, SURE)) * spread + UNSEEN * max(float(rest.max()), unseen)


def least_share(share: float, count: int) -> float:
    """The lower end of Wilson's interval of a share.

    >>> round(least_share(1.0, 100), 3)
    0.974
    """
    z = float(special.ndtri(SURE)) ** 2 / count
    return (share + z / 2 - (z * (share * (1 - share) + z / 4)) ** 0.5) / (1 + z)


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
    return bool(((words.cpu() == y.cpu()) | (y.cpu() < 0)).all())


def _class_axis(outputs: torch.Tensor, labels: torch.Tensor | None) -> int | None:
    """The axis of the classes: second, or last where labels or three axes say so; nothing for a single output."""
    if outputs.ndim < 2:
        return None
    axis = -1 if outputs.ndim == 3 else 1
    if labels is not None and labels.ndim == outputs.ndim - 1:
        shapes = {place: tuple(np.delete(outputs.shape, place)) for place in (1, -1)}
        axis = next((place for place, shape in shapes.items() if shape == tuple(labels.shape)), axis)
    return axis if outputs.shape[axis] > 1 else None
