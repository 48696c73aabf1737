"""Fewer channels in a real model: rows are rewritten, columns combined, and what nothing reads any more is cut away.

All sets are changed at once, in three rounds (a layer may end one set and begin the next): first the new rows of all
layers are written, then all columns are combined, then everything is cut.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from .graph import ChannelSet, is_depthwise, out_size
from .matrix import array, bias_of, groups_of, in_size, matrix_of, to_weight


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
        rows: new rows of the layers that make it, by layer.
        shifts: new biases of layers or batch norms.
        gains: new weights of batch norms.
        combinations: of each reader.
    """

    coupled: ChannelSet
    slots: Int[np.ndarray, " new"]
    sources: Int[np.ndarray, " new"]
    combinations: dict[str, Combination]
    rows: dict[str, Float[np.ndarray, "new _"]] = field(default_factory=dict)
    shifts: dict[str, Float[np.ndarray, " new"]] = field(default_factory=dict)
    gains: dict[str, Float[np.ndarray, " new"]] = field(default_factory=dict)


class _Tall:
    """The arrays of a module before it is cut."""

    def __init__(self, module: nn.Module) -> None:
        self.matrix = None if isinstance(module, _BatchNorm | nn.PReLU) else matrix_of(module)
        self.bias = bias_of(module)
        self.groups = groups_of(module)
        weight = module._parameters.get("weight")
        self.scale = None if weight is None or self.matrix is not None else array(weight)

    def wanted_bias(self) -> np.ndarray:
        """The bias, made where there is none."""
        if self.bias is None and self.matrix is not None:
            self.bias = np.zeros(len(self.matrix))
        assert self.bias is not None
        return self.bias


def shrink(model: nn.Module, plans: Sequence[ShrinkPlan]) -> nn.Module:
    """A copy of a model with fewer channels."""
    small = deepcopy(model)
    names = dict.fromkeys(name for plan in plans for name in (*plan.coupled.channels, *plan.coupled.columns))
    talls = {name: _Tall(small.get_submodule(name)) for name in names}
    for plan in plans:
        for name, rows in plan.rows.items():
            matrix = talls[name].matrix
            assert matrix is not None
            matrix[plan.coupled.channels[name][plan.sources]] = rows.reshape(len(rows), *matrix.shape[1:])
        for name, values in plan.shifts.items():
            talls[name].wanted_bias()[plan.coupled.channels[name][plan.sources]] = values
        for name, values in plan.gains.items():
            scale = talls[name].scale
            assert scale is not None
            scale[plan.coupled.channels[name][plan.sources]] = values
    for plan in plans:
        for name, combination in plan.combinations.items():
            _combine(talls[name], plan.coupled.columns[name], plan.sources, combination)
    for name in names:
        outs, ins = selections(plans, name, small.get_submodule(name))
        _cut(small.get_submodule(name), talls[name], outs, ins)
    return small


def _combine(tall: _Tall, columns: np.ndarray, sources: np.ndarray, combination: Combination) -> None:
    """Combine the columns of a set's units in the place of the sources', group by group."""
    matrix = tall.matrix
    assert matrix is not None
    outs, ins = len(matrix) // tall.groups, matrix.shape[1]
    for group in range(tall.groups):
        rows = slice(group * outs, (group + 1) * outs)
        inside = np.flatnonzero(columns[:, 0] // ins == group)
        new = np.flatnonzero(columns[sources, 0] // ins == group)
        old = matrix[rows][:, columns[inside] - group * ins]  # outputs x units x columns x entries
        merged = np.moveaxis(np.moveaxis(old, 1, 3) @ combination.combine[np.ix_(inside, new)], 3, 1)
        shift = old.sum(axis=(2, 3)) @ combination.constant[inside]
        matrix[rows, columns[sources[new]] - group * ins] = merged
        if np.any(shift):
            tall.wanted_bias()[rows] += shift


def selections(
    plans: Sequence[ShrinkPlan], name: str, module: nn.Module
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which outputs and inputs of a module are left, in their new order; nothing where all stay."""
    outs = [(plan.coupled.channels[name], plan) for plan in plans if name in plan.coupled.channels]
    ins = [(plan.coupled.columns[name], plan) for plan in plans if name in plan.coupled.columns]
    sizes = {"outs": out_size(module), "ins": in_size(module) if ins else 0}
    return tuple(_selection(sizes[axis], where) if where else None for axis, where in (("outs", outs), ("ins", ins)))  # pyright: ignore[reportReturnType]


def _selection(size: int, owned: list[tuple[np.ndarray, ShrinkPlan]]) -> np.ndarray:
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


def _cut(module: nn.Module, tall: _Tall, outs: np.ndarray | None, ins: np.ndarray | None) -> None:
    """Give a module its new arrays and sizes."""
    if isinstance(module, _BatchNorm | nn.PReLU):
        _cut_channels(module, tall, outs)
        return
    matrix = tall.matrix
    assert matrix is not None
    depthwise = is_depthwise(module)
    outs = np.arange(len(matrix)) if outs is None else outs
    if ins is not None and tall.groups > 1:
        size = matrix.shape[1]
        local = np.stack([ins[ins // size == group] % size for group in range(tall.groups)])
        matrix = matrix[outs[:, None], local[outs // (len(matrix) // tall.groups)]]
    else:
        matrix = matrix[outs] if ins is None else matrix[outs][:, ins]
    bias = None if tall.bias is None else tall.bias[outs]
    weight = module._parameters["weight"]
    assert weight is not None
    _put(module, "weight", to_weight(matrix, module), like=weight)
    if bias is not None:
        _put(module, "bias", bias, like=_or(module._parameters.get("bias"), weight))
    if isinstance(module, _ConvNd):
        module.out_channels = len(outs)
        module.in_channels = len(outs) if depthwise else matrix.shape[1] * tall.groups
        module.groups = len(outs) if depthwise else tall.groups
    elif isinstance(module, nn.Linear):
        module.out_features, module.in_features = matrix.shape[:2]


def _cut_channels(module: nn.Module, tall: _Tall, outs: np.ndarray | None) -> None:
    """Give a batch norm or PReLU, which holds a few numbers for each channel, its new arrays and size."""
    if outs is None:
        return
    weight = module._parameters.get("weight")
    if weight is not None and tall.scale is not None:
        _put(module, "weight", tall.scale[outs], like=weight)
        if tall.bias is not None:
            _put(module, "bias", tall.bias[outs], like=_or(module._parameters.get("bias"), weight))
    if isinstance(module, _BatchNorm):
        for name in ("running_mean", "running_var"):
            value = module._buffers[name]
            assert value is not None
            module._buffers[name] = value[torch.as_tensor(outs, device=value.device)].clone()
        module.num_features = len(outs)
    elif isinstance(module, nn.PReLU):
        module.num_parameters = len(outs)


def _or(value: nn.Parameter | None, other: nn.Parameter) -> nn.Parameter:
    return other if value is None else value


def _put(module: nn.Module, name: str, value: np.ndarray, like: nn.Parameter) -> None:
    data = torch.as_tensor(np.ascontiguousarray(value), dtype=like.dtype, device=like.device)
    setattr(module, name, nn.Parameter(data, requires_grad=like.requires_grad))
