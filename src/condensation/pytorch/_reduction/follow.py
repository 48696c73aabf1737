"""Which columns of which layers read the units of a set: found by moving the units and seeing whose input moves.

Every layer answers what it answered before, whatever it is given, so that a unit that is moved is seen by its next
readers alone. All units are found at once: in the k-th pair of runs those move whose number has a one (a zero) as its
k-th binary digit. A column that moves in both runs of a pair reads several units: they are mixed on the way.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import nn

from .channels import ChannelSet
from .matrix import in_size
from .trace import LAYERS, ModelInputs, call, tensors

SEED = 0
Columns = dict[str, Int[np.ndarray, "units _"]]


class Follower:
    """A model that was run once on inputs, all of whose layers answer the same from now on."""

    def __init__(self, model: nn.Module, inputs: ModelInputs) -> None:
        self.model, self.inputs = model, inputs
        self._layers = {name: part for name, part in model.named_modules() if isinstance(part, LAYERS)}
        self._given: dict[str, list[torch.Tensor]] = {}
        self._answers: dict[str, list[torch.Tensor]] = {}
        with ExitStack() as hooks:
            for name, layer in self._layers.items():
                hooks.enter_context(layer.register_forward_hook(partial(self._keep, name)))
            self._outputs = self._run()

    def _run(self) -> list[torch.Tensor]:
        torch.manual_seed(SEED)
        with torch.no_grad():
            return [tensor.clone() for tensor in tensors(call(self.model, self.inputs))]

    def _keep(self, name: str, _: nn.Module, args: tuple[Any, ...], answer: torch.Tensor) -> None:
        self._given.setdefault(name, []).append(args[0].detach().clone())
        self._answers.setdefault(name, []).append(answer.detach().clone())

    def columns(self, sources: Mapping[str, Int[np.ndarray, "units _"]]) -> Columns | str:
        """The columns of each unit in each layer that reads some (-1 of units that it does not read); or a reason.

        Args:
            sources: of each module that makes the units, which of its channels belong to each.
        """
        units = len(next(iter(sources.values())))
        digits = max(1, int(units - 1).bit_length())
        moved = {name: np.zeros((2, digits, in_size(layer)), bool) for name, layer in self._layers.items()}
        found: Columns | str = ""
        for sign in (1, -1):  # a norm may turn what is moved up, so that relu lets nothing through
            for digit, value in product(range(digits), (0, 1)):
                chosen = (np.arange(units) >> digit) & 1 == value
                for name, columns in (self._moved(sources, chosen, sign) if chosen.any() else {}).items():
                    if not name:
                        return "its channels are part of the model's output"
                    moved[name][value, digit] |= columns
            found = _read(moved, units)
            if not isinstance(found, str) and all((where >= 0).all() for where in found.values()):
                break
        return found

    def _moved(
        self, sources: Mapping[str, np.ndarray], chosen: Bool[np.ndarray, " units"], sign: int
    ) -> dict[str, Any]:
        """Of each layer that sees a change when some units move, which columns do; the outputs are the layer ''."""
        seen: dict[str, np.ndarray] = {}
        with self._frozen(sources, chosen, sign, seen):
            outputs = self._run()
        same = len(outputs) == len(self._outputs) and all(map(_equal, outputs, self._outputs))
        return seen if same else seen | {"": True}

    @contextmanager
    def _frozen(
        self, sources: Mapping[str, np.ndarray], chosen: np.ndarray, sign: int, seen: dict[str, Any]
    ) -> Iterator[None]:
        random = torch.Generator().manual_seed(SEED)
        turns: dict[str, int] = {}

        def answer(name: str, layer: nn.Module, args: tuple[Any, ...], made: torch.Tensor) -> torch.Tensor:
            turn = turns[name] = turns.get(name, -1) + 1
            if name in self._layers:
                given, made = self._given[name][turn], self._answers[name][turn].clone()
                change = (args[0] != given) & ~(args[0].isnan() & given.isnan())
                if bool(change.any()):
                    axis = change.ndim - 1 if isinstance(layer, nn.Linear) else 1
                    columns = change.movedim(axis, -1).reshape(-1, change.shape[axis]).any(dim=0).cpu().numpy()
                    seen[name] = seen.get(name, False) | columns
            if name in sources:
                axis = 1 if name in self._layers and not isinstance(layer, nn.Linear) else made.ndim - 1
                places = torch.as_tensor(sources[name][chosen].reshape(-1), device=made.device)
                parts = made.index_select(axis, places)
                size = sign * float(parts.abs().max()) or 1.0  # all become positive, so that relu lets them through
                moved = 1 + torch.rand(parts.shape, generator=random).to(made.device, made.dtype)
                made = made.clone().index_copy_(axis, places, parts + size * moved)
            return made

        with ExitStack() as hooks:
            for name in dict.fromkeys([*self._layers, *sources]):
                module = self.model.get_submodule(name)
                hooks.enter_context(module.register_forward_hook(partial(answer, name)))
            yield


def _read(moved: Mapping[str, Bool[np.ndarray, "2 digits columns"]], units: int) -> Columns | str:
    """The columns of each unit, where it is known which of them move as a digit of its number is zero or one."""
    found: Columns = {}
    for name, (zeros, ones) in moved.items():
        reads = (zeros | ones).any(axis=0)
        if not reads.any():
            continue
        if (zeros & ones)[:, reads].any() or not (zeros | ones)[:, reads].all():
            return f"its channels are mixed before {name} reads them"
        code = (ones * (1 << np.arange(len(ones)))[:, None]).sum(axis=0)
        each = [np.flatnonzero(reads & (code == unit)) for unit in range(units)]
        counts = {len(columns) for columns in each if len(columns)}
        if len(counts) > 1 or code[reads].max() >= units:
            return f"its channels meet those of {name} in different numbers"
        absent = np.full(counts.pop(), -1)
        found[name] = np.stack([columns if len(columns) else absent for columns in each])
    return found or "no layer reads it"


def with_moved_columns(coupled: ChannelSet, model: nn.Module, inputs: ModelInputs) -> ChannelSet | None:
    """A set that is flattened, with the columns that its units are seen in; or nothing, where that tells nothing new.

    Torch-Pruning knows but one order of the entries; where axes are turned or joined before, there are others.
    """
    if coupled.declared or all(where.shape[1] == 1 for where in coupled.columns.values()):
        return None
    makes = {name: where for name, where in coupled.channels.items() if isinstance(model.get_submodule(name), LAYERS)}
    found = Follower(model, inputs).columns({name: where[:, None] for name, where in makes.items()})
    if isinstance(found, str):
        return None
    columns, known = {name: where for name, where in found.items() if name not in makes}, coupled.columns
    if columns.keys() != known.keys() or any((where < 0).any() for where in columns.values()):
        return None
    return None if equal_columns(columns, known) else replace(coupled, columns=columns)


def equal_columns(one: Columns, other: Columns) -> bool:
    """Whether the same layers read the same units in the same columns."""
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(torch.equal(one.nan_to_num(), other.nan_to_num()))
