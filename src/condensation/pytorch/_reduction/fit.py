r"""Readers fitted to data: C and d of $h \approx C \hat h + d$ by least squares on what the readers really see.

Set after set, front to back: $\hat h$ are the features of the model reduced so far, h those of the given one, so that
a later set makes up for the errors of earlier ones. The correction of the formula's C and d is fitted: where the
formula is exact nothing is left to correct. The ridge is that of a few which does best on every fifth sample when
fitted to the others; one of them is infinite, which leaves the formula as it is. (At the border of a padded image d is
not right.)
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from ...errors import InputError
from .matrix import groups_of, in_size
from .shrink import Combination, ShrinkPlan, new_columns, shrink
from .trace import ModelInputs, call

RIDGES = (1e-6, 1e-4, 1e-2, 1.0, np.inf)  # relative to the mean square of the features
FOLDS = 5


def fitted(model: nn.Module, plans: Sequence[ShrinkPlan], batches: Sequence[ModelInputs]) -> list[ShrinkPlan]:
    """The plans with combinations fitted on the inputs' batches; plans are in the order in which the layers run."""
    plans = list(plans)
    for k, plan in enumerate(plans):
        if len(plan.slots) == plan.coupled.units:
            continue
        small = shrink(model, plans)
        sums = {name: _Sums(plan, plans, name, model.get_submodule(name)) for name in plan.combinations}
        for batch in batches:
            old, new = _features(model, [*sums], batch), _features(small, [*sums], batch)
            for name, equations in sums.items():
                equations.add(old[name], new[name])
        plans[k] = replace(plan, combinations={name: equations.solve() for name, equations in sums.items()})
    return plans


def _features(model: nn.Module, readers: Sequence[str], batch: ModelInputs) -> dict[str, torch.Tensor]:
    """What each reader sees."""
    seen: dict[str, torch.Tensor] = {}

    def keep(name: str, _: nn.Module, args: tuple[torch.Tensor, ...], named: dict[str, torch.Tensor]) -> None:
        seen[name] = (args[0] if args else named["input"]).detach()

    with torch.no_grad(), ExitStack() as hooks:
        for name in readers:
            hook = model.get_submodule(name).register_forward_pre_hook(partial(keep, name), with_kwargs=True)
            hooks.enter_context(hook)
        call(model, batch)
    return seen


class _Sums:
    """The normal equations of one reader, group by group of its convolution."""

    def __init__(self, plan: ShrinkPlan, plans: Sequence[ShrinkPlan], name: str, module: nn.Module) -> None:
        self.name, self.combination = name, plan.combinations[name]
        self.columns = plan.coupled.columns[name]
        self.left = new_columns(plans, plan, name, module)
        self.dense = isinstance(module, nn.Linear)
        self.rank = 2 if self.dense else module.weight.ndim  # pyright: ignore[reportAttributeAccessIssue]
        units, new = self.combination.combine.shape
        self.squares, self.products = np.zeros((2, new + 1, new + 1)), np.zeros((2, new + 1, units))
        self.samples = self.rows = 0
        self.group_of_old = self.columns[:, 0] // (in_size(module) // groups_of(module))
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
        positions = len(there) // len(old) if len(there) % len(old) == 0 else 1
        sample = self.samples + torch.arange(len(there), device=there.device) // positions
        held = sample % FOLDS == FOLDS - 1
        for k, chosen in enumerate((~held, held)):
            self.squares[k] += (there[chosen].T @ there[chosen]).cpu().numpy()
            self.products[k] += (there[chosen].T @ rest[chosen]).cpu().numpy()
        self.samples, self.rows = int(sample[-1]) + 1, self.rows + len(there)

    def solve(self) -> Combination:
        """The formula's combination with its correction."""
        new = self.combination.combine.shape[1]
        if self.rows < 2 * new:
            raise InputError(
                f"a fit of what {self.name} reads from {new} units needs at least {2 * new} samples (positions of an "
                f"image count), and the data holds {self.rows}"
            )
        changes = [self._change(self.squares[0], self.products[0], ridge) for ridge in RIDGES]
        losses = [np.sum(w * (self.squares[1] @ w - 2 * self.products[1])) for w in changes]
        change = self._change(self.squares.sum(0), self.products.sum(0), RIDGES[int(np.argmin(losses))])
        return Combination(self.combination.combine + change[:new].T, self.combination.constant + change[new])

    def _change(self, all_squares: np.ndarray, products: np.ndarray, ridge: float) -> Float[np.ndarray, "inputs units"]:
        """What is added to C and d, as one matrix, fitted with a ridge; each unit is fitted by those of its group."""
        new = len(all_squares) - 1
        change = np.zeros(products.shape)
        if np.isinf(ridge):
            return change
        ridge *= max(float(np.trace(all_squares[:new, :new])) / new, np.finfo(float).tiny)
        for group in np.unique(self.group_of_old):
            olds, news = np.flatnonzero(self.group_of_old == group), np.flatnonzero(self.group_of_new == group)
            used = np.concatenate([news, [new]])
            squares = all_squares[np.ix_(used, used)] + ridge * np.eye(len(used))
            change[np.ix_(used, olds)] = np.linalg.solve(squares, products[np.ix_(used, olds)])
        return change
