"""The four ways to fewer units, each from sizes to a model: merging and pruning, by formula or fitted to data."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from torch import nn

from ...reduction._search import LayerSizes, merging_order
from .elimination import regression
from .matrix import in_size, out_size
from .merging import Labels
from .observed import Observed
from .sets import ModelSets
from .shrink import Combination, ShrinkPlan, shrink
from .sweep import sweep

METHODS = ("prune_fit", "merge_fit", "merge", "prune")


class Methods:
    """Makes models of some sizes by a method, where samples were observed: refitted, recalibrated."""

    def __init__(self, work: ModelSets, observed: Observed | None, recalibrate: bool = True) -> None:
        self.work, self.observed, self.recalibrate = work, observed, recalibrate

    def made(self, method: str, sizes: LayerSizes, groups: Mapping[str, Labels] | None = None) -> nn.Module:
        """The model by a method; units are merged by groups where some are given."""
        plans = self.work.changing(self._plans(method, sizes, groups))
        small = shrink(self.work.given, plans)
        if self.observed is not None and plans:
            sweep(self.observed, small, plans, method.endswith("_fit"), self.recalibrate)
        return small

    def groups(self, sizes: LayerSizes) -> dict[str, Labels]:
        """Which units are merged at some sizes."""
        return {name: merging.cut(sizes[name]) for name, merging in self.work.sets.items()}

    def _plans(self, method: str, sizes: LayerSizes, groups: Mapping[str, Labels] | None) -> list[ShrinkPlan]:
        sets = self.work.sets.items()
        if method == "prune":
            return [merging.pruned(sizes[name]) for name, merging in sets]
        if method == "prune_fit":
            return [self._eliminated(name, sizes[name]) for name in self.work.sets]
        labels = self.groups(sizes) if groups is None else groups
        return [merging.plan(labels[name]) for name, merging in sets]

    def _eliminated(self, name: str, count: int) -> ShrinkPlan:
        """The units that backward elimination leaves, and what readers make of them."""
        observed = self.observed
        assert observed is not None
        kept = observed.eliminations[name].kept(count)
        plan = self.work.sets[name].kept(kept)
        combinations = dict(plan.combinations)
        for key in combinations:
            if (name, key) in observed.readers:
                combine = regression(observed.readers[name, key], kept)
                mean = observed.mean(name, key)
                absorbed = self.work.given.get_submodule(key)._parameters.get("bias") is not None
                constant = mean - combine @ mean[kept] if absorbed else np.zeros(len(mean))
                combinations[key] = Combination(combine, constant)
        return replace(plan, combinations=combinations)

    def order(self, method: str) -> tuple[list[str], Float[np.ndarray, " removals"]]:
        """The set of each unit that is left out, the least cost a parameter first, and the costs."""
        full = self.work.full
        total = self.parameters(full)
        costs, shares = {}, {}
        for name, merging in self.work.sets.items():
            if method == "prune_fit" and self.observed is not None:
                own = self.observed.eliminations[name].costs[:-1]
            else:
                own = merging.pruning_costs if method == "prune" else merging.costs
            costs[name] = iter(own)
            shares[name] = own / max(total - self.parameters(full | {name: full[name] - 1}), 1.0)
        order = merging_order(shares)
        return order, np.array([next(costs[name]) for name in order])

    def parameters(self, sizes: LayerSizes) -> float:
        """About how many parameters the reducible layers have at some sizes, by the shares that are left."""
        rows: dict[str, float] = {}
        columns: dict[str, float] = {}
        for name, merging in self.work.sets.items():
            gone = 1 - sizes[name] / merging.full
            for shares, places in ((rows, merging.coupled.channels), (columns, merging.coupled.columns)):
                for key, where in places.items():
                    module = self.work.given.get_submodule(key)
                    size = out_size(module) if shares is rows else in_size(module)
                    shares[key] = shares.get(key, 1) - gone * np.sum(where >= 0) / size
        total = 0.0
        for key in {*rows, *columns}:
            for value in self.work.given.get_submodule(key).parameters(recurse=False):
                share = rows.get(key, 1) * (columns.get(key, 1) if value.ndim > 1 else 1)
                total += share * value.numel()
        return total
