"""A reduced model with its numbers before and after: shown as one table, saved to a file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import nn

from ..._display import Shown, short_list, short_number
from ..._phrases import plural
from .loading import write_reduced


@dataclass(frozen=True)
class Tried(Shown):
    """What one method makes of the model; the error and the agreement are those on the samples that chose."""

    error: float
    agreement: float | None
    parameters: int
    operations: int | None


@dataclass(frozen=True, eq=False)
class ReducedModel(Shown):
    """A reduced model, and how well it does on samples that nothing was fitted to or chosen by.

    Pairs are before and after. What cannot be said is None: without data there is no error.

    Attributes:
        model: the reduced model, an ordinary one of the same class, in the mode of the given one. Modules in whose code
            a view has a size as a number that is smaller now are of a class derived from theirs, of the same name.
        method: how it was made: "merge", "merge_fit", "prune" or "prune_fit".
        sizes: units, by the layer that makes them; layers whose channels a residual connection adds up are one, under
            the name of the first.
        groups: of each of these the new unit of each old unit, where units were merged; -1 where one was left out.
        skipped: layers that were not reduced, and why.
        parameters: number of parameters.
        operations: multiply-adds of one sample, in matrix products, convolutions and attention.
        seconds: of one batch on this machine, the least of a few runs.
        relative_error: of the outputs, |y' - y| / |y - mean of y|; unlike the ``centred_error`` of
            ``condensation.reduce`` it also counts a constant that all samples share. Of several outputs the largest.
        most_error: what the error on new samples of the same kind is at most, with 95% confidence; None where the
            samples tell nothing of new ones.
        agreement: share of samples whose largest output is the same; of several outputs the least.
        least_agreement: what it is at least on new samples, in the same way.
        accuracy: share of right classes; labels that are no class, such as -100, do not count. None for a language
            model, whose labels are the words it reads.
        tried: of each method what it made, on the samples that chose among them.
        notes: what is to be known of the numbers.
    """

    model: nn.Module
    method: str
    sizes: dict[str, tuple[int, int]]
    groups: dict[str, Int[np.ndarray, " units"]]
    skipped: dict[str, str]
    parameters: tuple[int, int]
    operations: tuple[int, int] | None = None
    seconds: tuple[float, float] | None = None
    relative_error: float | None = None
    most_error: float | None = None
    agreement: float | None = None
    least_agreement: float | None = None
    accuracy: tuple[float, float] | None = None
    tried: dict[str, Tried] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def _title(self) -> str:
        before, after = self.parameters
        return f"ReducedModel: a {type(self.model).__name__} of {after} parameters instead of {before} ({self.method})"

    def _facts(self) -> dict[str, str]:
        rows: dict[str, Any] = {"": ("before", "after", "change", "new samples")}
        rows["units"] = tuple(sum(column) for column in zip(*self.sizes.values(), strict=True)) or None
        rows |= {"parameters": self.parameters, "operations": self.operations, "seconds": self.seconds}
        most, least = _bound("<=", self.most_error), _bound(">=", self.least_agreement)
        rows["error"] = None if self.relative_error is None else (0, self.relative_error, most)
        rows["agreement"] = None if self.agreement is None else (1, self.agreement, least)
        rows["accuracy"] = self.accuracy
        facts = {name: _row(values) for name, values in rows.items() if values is not None}
        changed = [f"{name} {after}/{before}" for name, (before, after) in self.sizes.items() if after < before]
        left = [f"{plural(len(self.skipped), 'layer')} not reduced"] if self.skipped else []
        facts["layers"] = "; ".join([*left, *([short_list(changed, 4)] if changed else [])])
        return {name: fact for name, fact in facts.items() if fact} | {"note": "; ".join(self.notes)}

    def save(self, path: str | Path) -> None:
        """Write the reduced model's tensors as safetensors, with what was done in the metadata.

        ``load_reduced(model, path)`` cuts a fresh model of the class to these shapes and loads them.
        """
        about = {
            "method": self.method,
            "sizes": self.sizes,
            "relative_error": self.relative_error,
            "most_error": self.most_error,
            "agreement": self.agreement,
            "least_agreement": self.least_agreement,
        }
        write_reduced(self.model, path, about)


def _bound(sign: str, value: float | None) -> str:
    return "" if value is None else f"{sign} {short_number(value)}"


def _row(values: tuple[Any, ...]) -> str:
    """Before, after, the change as a share, and what holds on new samples."""
    if isinstance(values[0], str):
        return "".join(f"{value:>14}" for value in values)
    before, after, *bound = values
    texts = [f"{value:,}" if isinstance(value, int) else short_number(value) for value in (before, after)]
    share = f"{after / before - 1:+.1%}" if before and after != before else ""
    return "".join(f"{text:>14}" for text in (*texts, share, *bound)).rstrip()
