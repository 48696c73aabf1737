"""The sets of a model that can be reduced, by the names of their layers, and how many units each is left with."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn

from ..._phrases import listed
from ...errors import InputError, check_whole, unknown_name
from ...reduction._search import LayerSizes
from .follow import with_moved_columns
from .given import channel_sets, not_finite
from .merging import Labels, Merging
from .probe import PlantedProbe
from .shrink import ShrinkPlan, shrink
from .trace import ModelInputs, mapped

Report = Callable[[str, float], None]
"""Is told what is being done, and what share of it is done."""


class ModelSets:
    """A model on the way to a smaller one.

    Attributes:
        given: the model.
        trace: what it computes.
        sets: those of its sets that can be reduced, in the order in which they run.
        skipped: layers that cannot, and why.
        report: is told what is being done.
    """

    def __init__(self, given: nn.Module, inputs: ModelInputs, layers: Sequence[str] | None, report: Report) -> None:
        self.given, self.report = given, report
        inputs = mapped(inputs, lambda value: value.detach().clone())
        report("following its channels", 0)
        sets, self.trace, self.skipped = channel_sets(given, inputs)
        self._names = {member: name for name, coupled in sets.items() for member in reversed(coupled.producers)}
        self._names |= {name: name for name in sets}
        layers = [layers] if isinstance(layers, str) else layers
        asked = None if layers is None else [self._bare(name) for name in layers]
        for name in asked or ():
            if name not in self._names and name not in self.skipped:
                raise unknown_name("layer", name, [*self._names, *self.skipped])
        chosen = None if asked is None else {self._names[name] for name in asked if name in self._names}
        trial = None
        self.sets: dict[str, Merging] = {}
        for place, (name, coupled) in enumerate(sets.items()):
            report("trying its layers", place / len(sets))
            problem = coupled.reason
            if not problem and chosen is not None and name not in chosen:
                problem = "it is not among the layers asked for"
            problem = problem or not_finite(coupled, given)
            if not problem:
                trial = trial or PlantedProbe(given, inputs)
                passed = trial.passed(coupled, self.trace)
                if isinstance(passed, str) and (other := with_moved_columns(coupled, given, inputs)) is not None:
                    passed = trial.passed(other, self.trace)
                if isinstance(passed, Merging):
                    self.sets[name] = passed
                else:
                    problem = passed
            if problem and coupled.declared:
                self.skipped[name] = problem
            elif problem:
                members = [member for member in coupled.producers if self._names[member] == name]
                runs = {member: self.trace.calls[member] for member in members}
                self.skipped |= {key: f"it runs {k} times" if k > 1 else problem for key, k in runs.items()}

    def _bare(self, name: str) -> str:
        """A layer's name, which may be given as that of its weight."""
        bare = name.removesuffix(".weight")
        return name if name in self._names or name in self.skipped else bare

    @property
    def full(self) -> LayerSizes:
        """Units of each set, for each of its blocks."""
        return {name: merging.full for name, merging in self.sets.items()}

    def after(self, ratio: float) -> LayerSizes:
        """The number of units that each set is left with when a share of them is left out, for each of its blocks."""
        return {name: max(1, count - round(ratio * count)) for name, count in self.full.items()}

    def left(self, units: int | Mapping[str, int]) -> LayerSizes:
        """The same, when a number is left in each set, or in each by name; a set of fewer stays as it is."""
        named = isinstance(units, Mapping)
        wanted = (
            {self._bare(name): count for name, count in units.items()} if named else dict.fromkeys(self.sets, units)
        )
        if isinstance(units, Mapping) and len(wanted) < len(units):
            raise InputError(f"each layer may stand once in units, not {listed(units)}")
        sizes = self.full
        for name, count in wanted.items():
            key = self._names.get(name)
            if key is None or key not in self.sets:
                why = f" ({self.skipped[name]})" if name in self.skipped else ""
                raise unknown_name(f"layer that can be reduced{why}", name, self.sets)
            check_whole(f"units of layer {name}" if named else "units", count)
            blocks = len(self.sets[key].blocks)
            count = min(int(count), self.sets[key].coupled.units)
            if named and count % blocks:
                raise InputError(f"{name} is cut into {blocks} groups of equal size: {count} units cannot be")
            sizes[key] = max(1, count // blocks)
        return sizes

    def shrunk(self, plans: Sequence[ShrinkPlan]) -> nn.Module:
        """The model by some plans; those that leave their set as it is are not carried out."""
        return shrink(self.given, self.changing(plans))

    @staticmethod
    def changing(plans: Sequence[ShrinkPlan]) -> list[ShrinkPlan]:
        """The plans that leave units out."""
        return [plan for plan in plans if len(plan.slots) < plan.coupled.units]

    def within(self, threshold: float | None) -> dict[str, Labels]:
        """The groups of each set by a cosine."""
        return {name: merging.within(threshold) for name, merging in self.sets.items()}

    def exact(self) -> dict[str, Labels]:
        """The groups of each set of units that are one up to rounding."""
        groups = {}
        for name, merging in self.sets.items():
            types = [
                value.dtype for key in merging.coupled.channels for value in self.given.get_submodule(key).parameters()
            ]
            rounding = max((torch.finfo(kind).eps for kind in types if kind.is_floating_point), default=0.0)
            groups[name] = merging.exact(max(4 * rounding**2, 1e-12))
        return groups

    def counts(self, groups: Mapping[str, Labels]) -> LayerSizes:
        """Number of groups of each set, for each of its blocks."""
        return {name: (int(labels.max()) + 1) // len(self.sets[name].blocks) for name, labels in groups.items()}
