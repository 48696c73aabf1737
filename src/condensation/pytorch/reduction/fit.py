r"""Readers fitted to data: C and d of $h \approx C \hat h + d$ by least squares on what the readers really see.

Set after set, front to back: $\hat h$ are the features of the model reduced so far, h those of the given one, so that
a later set makes up for the errors of earlier ones. The correction of the formula's C and d is fitted, with a small
ridge: where the formula is exact nothing is left to correct. (At the border of a padded image d is not right.)
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from .matrix import groups_of
from .shrink import Combination, Plan, new_columns, shrink
from .trace import Inputs, call

RIDGE = 1e-6  # relative to the mean square of the features


def fitted(model: nn.Module, plans: Sequence[Plan], batches: Sequence[Inputs]) -> list[Plan]:
    """The plans with combinations fitted on the inputs' batches; plans are in the order in which the layers run."""
    plans = list(plans)
    for k, plan in enumerate(plans):
        if len(plan.slots) == plan.one.units:
            continue
        small = shrink(model, plans)
        plans[k] = replace(plan, combinations=_fit(model, small, plans, plan, batches))
    return plans


def _fit(
    model: nn.Module, small: nn.Module, plans: Sequence[Plan], plan: Plan, batches: Sequence[Inputs]
) -> dict[str, Combination]:
    """The combinations of all readers of one set."""
    readers = list(plan.combinations)
    sums = {name: _Sums(plan, plans, name, model.get_submodule(name)) for name in readers}
    with torch.no_grad():
        for batch in batches:
            old, new = _features(model, readers, batch), _features(small, readers, batch)
            for name in readers:
                sums[name].add(old[name], new[name])
    return {name: sums[name].solve() for name in readers}


def _features(model: nn.Module, readers: Sequence[str], batch: Inputs) -> dict[str, torch.Tensor]:
    """What each reader sees."""
    seen: dict[str, torch.Tensor] = {}

    def keep(name: str):
        def hook(_: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
            seen[name] = args[0].detach()

        return hook

    hooks = [model.get_submodule(name).register_forward_pre_hook(keep(name)) for name in readers]
    try:
        call(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


class _Sums:
    """The normal equations of one reader, group by group of its convolution."""

    def __init__(self, plan: Plan, plans: Sequence[Plan], name: str, module: nn.Module) -> None:
        self.combination = plan.combinations[name]
        self.columns = plan.one.columns[name]
        self.left = new_columns(plans, plan, name, module)
        self.dense = isinstance(module, nn.Linear)
        self.rank = 2 if self.dense else module.weight.ndim  # pyright: ignore[reportAttributeAccessIssue]
        units, new = self.combination.combine.shape
        self.squares, self.products = np.zeros((new + 1, new + 1)), np.zeros((new + 1, units))
        groups = groups_of(module)
        inputs = int(module.in_features if isinstance(module, nn.Linear) else module.in_channels)  # pyright: ignore
        self.group_of_old = self.columns[:, 0] // (inputs // groups)
        self.group_of_new = self.group_of_old[plan.slots]

    def _samples(self, features: torch.Tensor, columns: np.ndarray) -> torch.Tensor:
        """Features as samples x units; positions of an image and of a flattened one are samples."""
        if not self.dense:
            batched = features if features.ndim == self.rank else features[None]
            features = batched.movedim(1, -1)
        flat = features.reshape(-1, features.shape[-1])[:, torch.as_tensor(columns, device=features.device)]
        return flat.movedim(2, 1).reshape(-1, flat.shape[1]).double()

    def add(self, old: torch.Tensor, new: torch.Tensor) -> None:
        """Take in what the reader sees of a batch, before and after."""
        wanted, there = self._samples(old, self.columns), self._samples(new, self.left)
        combine = torch.as_tensor(self.combination.combine, device=there.device)
        rest = wanted - there @ combine.T - torch.as_tensor(self.combination.constant, device=there.device)
        there = torch.cat([there, torch.ones(len(there), 1, dtype=there.dtype, device=there.device)], dim=1)
        self.squares += (there.T @ there).cpu().numpy()
        self.products += (there.T @ rest).cpu().numpy()

    def solve(self) -> Combination:
        """The formula's combination with its correction."""
        new = self.combination.combine.shape[1]
        combine, constant = self.combination.combine.copy(), self.combination.constant.copy()
        ridge = RIDGE * max(float(np.trace(self.squares[:new, :new])) / new, np.finfo(float).tiny)
        for group in np.unique(self.group_of_old):
            olds, news = np.flatnonzero(self.group_of_old == group), np.flatnonzero(self.group_of_new == group)
            used = np.concatenate([news, [new]])
            squares = self.squares[np.ix_(used, used)] + ridge * np.eye(len(used))
            change = np.linalg.solve(squares, self.products[np.ix_(used, olds)])
            combine[np.ix_(olds, news)] += change[: len(news)].T
            constant[olds] += change[-1]
        return Combination(combine, constant)
