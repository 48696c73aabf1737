"""The four ways to fewer units, each from sizes to a model: merging and pruning, by formula or fitted to data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from ...reduction._search import LayerSizes, merging_order
from .fit import fitted
from .matrix import in_size, out_size
from .merging import Labels
from .sets import ModelSets
from .shrink import ShrinkPlan
from .trace import ModelInputs

METHODS = ("prune_fit", "merge_fit", "merge", "prune")


@dataclass
class Methods:
    """Makes models of some sizes by a method; ``batches`` are the samples that are fitted to."""

    work: ModelSets
    batches: Sequence[ModelInputs] | None
    recalibrate: bool = True

    def made(self, method: str, sizes: LayerSizes, groups: Mapping[str, Labels] | None = None) -> nn.Module:
        """The model by a method; units are merged by groups where some are given."""
        plans = self._plans(method, sizes, groups)
        if method.endswith("_fit") and self.batches is not None:
            plans = fitted(self.work.given, plans, self.batches)
        return self.work.shrunk(plans)

    def groups(self, sizes: LayerSizes) -> dict[str, Labels]:
        """Which units are merged at some sizes."""
        return {name: merging.cut(sizes[name]) for name, merging in self.work.sets.items()}

    def _plans(self, method: str, sizes: LayerSizes, groups: Mapping[str, Labels] | None) -> list[ShrinkPlan]:
        if method.startswith("prune"):
            return [merging.pruned(sizes[name]) for name, merging in self.work.sets.items()]
        labels = self.groups(sizes) if groups is None else groups
        return [merging.plan(labels[name]) for name, merging in self.work.sets.items()]

    def order(self, method: str) -> list[str]:
        """The set of each unit that is left out, one after the other, all sets together."""
        costs = {}
        for name, merging in self.work.sets.items():
            costs[name] = merging.pruning_costs if method.startswith("prune") else merging.costs
        return merging_order(costs)

    def parameters(self, sizes: LayerSizes) -> float:
        """About how many parameters the reducible layers have at some sizes: each matrix by its share of rows, columns."""
        rows: dict[str, float] = {}
        columns: dict[str, float] = {}
        for name, merging in self.work.sets.items():
            gone = 1 - sizes[name] / merging.full
            for shares, places in ((rows, merging.coupled.channels), (columns, merging.coupled.columns)):
                for key, where in places.items():
                    module = self.work.given.get_submodule(key)
                    size = out_size(module) if shares is rows else in_size(module)
                    shares[key] = shares.get(key, 1) - gone * where.size / size
        total = 0.0
        for key in {*rows, *columns}:
            for value in self.work.given.get_submodule(key).parameters(recurse=False):
                share = rows.get(key, 1) * (columns.get(key, 1) if value.ndim > 1 else 1)
                total += share * value.numel()
        return total
