"""Fewer channels in a real model: rows are rewritten, columns combined, and what nothing reads any more is cut away.

All sets are changed at once, in three rounds (a layer may end one set and begin the next): first the new rows of all
layers are written, then all columns are combined, then everything is cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from .graph import ChannelSet, is_depthwise
from .matrix import bias_of, groups_of, in_size, matrix_of, out_size, to_weight


@dataclass(frozen=True)
class Combination:
    """C and d of h = C h' + d: what a reader's columns become."""

    combine: Float[np.ndarray, "units new"]
    constant: Float[np.ndarray, " units"]


@dataclass(frozen=True)
class ShrinkPlan:
    """What becomes of a set.

    Attributes:
        coupled: the set.
        slots: the unit whose place each new unit takes, in rising order.
        sources: the unit whose parameters it takes, where no others are given.
        combinations: of each reader.
        rows: new rows of the layers that make it and new weights of batch norms.
        shifts: new biases of layers or batch norms.
    """

    coupled: ChannelSet
    slots: Int[np.ndarray, " new"]
    sources: Int[np.ndarray, " new"]
    combinations: dict[str, Combination]
    rows: dict[str, Float[np.ndarray, "new _"]] = field(default_factory=dict)
    shifts: dict[str, Float[np.ndarray, " new"]] = field(default_factory=dict)


class _Arrays:
    """Weight and bias of a module before it is cut, as outputs x inputs x entries; a norm may have no weight."""

    def __init__(self, module: nn.Module) -> None:
        self.matrix = np.empty((0, 1, 1)) if module._parameters.get("weight") is None else matrix_of(module)
        self.bias = bias_of(module)
        self.groups = groups_of(module)

    def wanted_bias(self) -> np.ndarray:
        """The bias, made where there is none."""
        self.bias = np.zeros(len(self.matrix)) if self.bias is None else self.bias
        return self.bias


@contextmanager
def borrowed(model: nn.Module, own: Iterable[str]) -> Iterator[nn.Module]:
    """The model itself, in which some modules get parameters and buffers of their own and may be changed.

    Afterwards every module has again what it had: parameters, buffers, submodules, and whatever a run has set.
    """
    modules = list(model.modules())
    tables = ("_parameters", "_buffers", "_modules")
    before = [(vars(module).copy(), [vars(module)[table].copy() for table in tables]) for module in modules]
    try:
        for name in own:
            module = model.get_submodule(name)
            module._parameters.update(
                (key, nn.Parameter(value.detach().clone(), value.requires_grad))
                for key, value in module._parameters.items()
                if value is not None
            )
            module._buffers.update((key, value.clone()) for key, value in module._buffers.items() if value is not None)
        yield model
    finally:
        for module, (values, entries) in zip(modules, before, strict=True):
            vars(module).clear()
            vars(module).update(values)
            for table, held in zip(tables, entries, strict=True):
                vars(module)[table].clear()
                vars(module)[table].update(held)


def shrink(model: nn.Module, plans: Sequence[ShrinkPlan]) -> nn.Module:
    """A copy of a model with fewer channels."""
    small = deepcopy(model)
    cut(small, plans)
    return small


def cut(model: nn.Module, plans: Sequence[ShrinkPlan]) -> None:
    """Give a model fewer channels; every module that changes gets parameters of its own."""
    names = dict.fromkeys(name for plan in plans for name in (*plan.coupled.channels, *plan.coupled.columns))
    arrays = {name: _Arrays(model.get_submodule(name)) for name in names}
    for plan in plans:
        for name, rows in plan.rows.items():
            matrix = arrays[name].matrix
            matrix[plan.coupled.channels[name][plan.sources]] = rows.reshape(len(rows), *matrix.shape[1:])
        for name, values in plan.shifts.items():
            arrays[name].wanted_bias()[plan.coupled.channels[name][plan.sources]] = values
    for plan in plans:
        for name, combination in plan.combinations.items():
            _combine(arrays[name], plan.coupled.columns[name], plan.sources, combination)
    for name in names:
        module = model.get_submodule(name)
        outs = [(plan.coupled.channels[name], plan) for plan in plans if name in plan.coupled.channels]
        ins = [(plan.coupled.columns[name], plan) for plan in plans if name in plan.coupled.columns]
        left = _left(in_size(module), ins) if ins else None
        _cut(module, arrays[name], _left(out_size(module), outs), left)


def _combine(arrays: _Arrays, columns: np.ndarray, sources: np.ndarray, combination: Combination) -> None:
    """Combine the columns of a set's units in the place of the sources', group by group."""
    matrix = arrays.matrix
    outs, ins = len(matrix) // arrays.groups, matrix.shape[1]
    for group in range(arrays.groups):
        rows = slice(group * outs, (group + 1) * outs)
        inside = np.flatnonzero(columns[:, 0] // ins == group)
        new = np.flatnonzero(columns[sources, 0] // ins == group)
        combine = combination.combine[np.ix_(inside, new)]
        changed = (combine != (inside[:, None] == sources[new])).any(axis=0)  # the others are their sources alone
        combine, new = combine[:, changed], new[changed]
        read = combine.any(axis=1) | (combination.constant[inside] != 0)
        old = matrix[rows][:, columns[inside[read]] - group * ins]  # outputs x units x columns x entries
        merged = np.moveaxis(np.tensordot(old, combine[read], axes=(1, 0)), 3, 1)
        shift = old.sum(axis=(2, 3)) @ combination.constant[inside[read]]
        matrix[rows, columns[sources[new]] - group * ins] = merged
        if np.any(shift):
            arrays.wanted_bias()[rows] += shift


def _left(size: int, owned: Sequence[tuple[np.ndarray, ShrinkPlan]]) -> np.ndarray:
    """Which of a module's outputs or inputs are left, in their new order, where some belong to the units of plans."""
    sources, keep = np.arange(size), np.ones(size, bool)
    for where, plan in owned:
        keep[where] = False
        keep[where[plan.slots]] = True
        sources[where[plan.slots]] = where[plan.sources]
    return sources[keep]


def new_columns(
    plans: Sequence[ShrinkPlan], plan: ShrinkPlan, name: str, module: nn.Module
) -> Int[np.ndarray, "new columns"]:
    """The columns of a plan's new units in a reader after the cut; the module is the reader before it."""
    keep = np.ones(in_size(module), bool)
    for other in plans:
        if name in other.coupled.columns:
            keep[other.coupled.columns[name]] = False
            keep[other.coupled.columns[name][other.slots]] = True
    return (np.cumsum(keep) - 1)[plan.coupled.columns[name][plan.slots]]


def _cut(module: nn.Module, arrays: _Arrays, outs: np.ndarray, ins: np.ndarray | None) -> None:
    """Give a module its new arrays and sizes."""
    weight, matrix, groups = module._parameters.get("weight"), arrays.matrix, arrays.groups
    if ins is not None and groups > 1:
        size = matrix.shape[1]
        local = np.stack([ins[ins // size == group] % size for group in range(groups)])
        matrix = matrix[outs[:, None], local[outs // (len(matrix) // groups)]]
    elif weight is not None:
        matrix = matrix[outs] if ins is None else matrix[outs][:, ins]
    if weight is not None:
        _put(module, "weight", to_weight(matrix, module))
        if arrays.bias is not None:
            _put(module, "bias", arrays.bias[outs])
    if isinstance(module, _BatchNorm):
        for name in ("running_mean", "running_var"):
            value = cast(torch.Tensor, module._buffers[name])
            module._buffers[name] = value[torch.as_tensor(outs, device=value.device)].clone()
        module.num_features = len(outs)
    elif isinstance(module, nn.PReLU):
        module.num_parameters = len(outs)
    elif isinstance(module, nn.Linear):
        module.out_features, module.in_features = matrix.shape[:2]
    elif isinstance(module, _ConvNd):
        module.groups = len(outs) if is_depthwise(module) else groups
        module.out_channels, module.in_channels = len(outs), matrix.shape[1] * module.groups


def _put(module: nn.Module, name: str, value: np.ndarray) -> None:
    """Give a module a new parameter, of the type and on the device of the old one (of the weight if there was none)."""
    old = module._parameters.get(name)
    like = cast(nn.Parameter, module.weight) if old is None else old
    data = torch.as_tensor(np.ascontiguousarray(value), dtype=like.dtype, device=like.device)
    setattr(module, name, nn.Parameter(data, requires_grad=like.requires_grad))
