"""Reduce a PyTorch model: the units of one line (of one orientation for relu) become one effective unit.

Dense and convolution layers of any ``nn.Module`` that autograd can follow, batch norm, residual connections,
concatenation, groups and depthwise convolutions included. What cannot be reduced is named with its reason.
"""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from ..._display import Shown, in_short
from ..._phrases import plural
from ..._serialization import coerce
from ...errors import InputError, check_whole, unknown_name
from ...reduction._search import LayerSizes, merging_order, smallest
from .._units import unwrapped
from .fit import fitted
from .graph import ChannelSet, build_graph
from .judge import Judge, Samples
from .merging import Labels, Merging
from .probe import PlantedProbe
from .shrink import ShrinkPlan, shrink
from .trace import ModelInputs, Trace, call, mapped, tensors


@dataclass(frozen=True, eq=False)
class ReducedModel(Shown):
    """A reduced model, and how well it does on the given data; None where that cannot be said.

    Attributes:
        model: the reduced model, an ordinary one of the same class, in the mode of the given one.
        sizes: units before and after, by the layer that makes them; layers whose channels a residual connection adds
            up are one, under the name of the first.
        groups: of each of these the new unit of each old unit.
        skipped: layers that were not reduced, and why.
        parameters: number of parameters before and after.
        relative_error: of the outputs, |y' - y| / |y - mean of y|; unlike the ``centred_error`` of
            ``condensation.reduce`` it also counts a constant that all samples share. Of several outputs the largest.
        agreement: share of samples whose largest output is the same; of several outputs the least.
        accuracy: share of right classes before and after; labels that are no class, such as -100, do not count. None
            for a language model, whose labels are the words it reads.
        pruned_error: relative error of magnitude pruning to the same sizes: the units of largest |a||w| are kept.
        pruned_agreement: its agreement.
    """

    model: nn.Module
    sizes: dict[str, tuple[int, int]]
    groups: dict[str, Int[np.ndarray, " units"]]
    skipped: dict[str, str]
    parameters: tuple[int, int]
    relative_error: float | None = None
    agreement: float | None = None
    accuracy: tuple[float, float] | None = None
    pruned_error: float | None = None
    pruned_agreement: float | None = None

    def _title(self) -> str:
        before, after = self.parameters
        return f"ReducedModel: a {type(self.model).__name__} of {after} parameters instead of {before}"

    def _facts(self) -> dict[str, str]:
        shares = ("agreement", "relative_error", "pruned_agreement", "pruned_error")
        told = {name.replace("_", " "): in_short(getattr(self, name)) for name in shares}
        sizes = {name: f"{before} units become {after}" for name, (before, after) in self.sizes.items()}
        return told | {"not reduced": plural(len(self.skipped), "layer") if self.skipped else ""} | sizes


def reduce_model(
    model: nn.Module,
    example_inputs: ModelInputs,
    *,
    threshold: float | None = None,
    units: int | Mapping[str, int] | None = None,
    error: float | None = None,
    agreement: float | None = None,
    layers: Sequence[str] | None = None,
    data: Samples = None,
    fit: bool = False,
) -> ReducedModel:
    """Merge the units of one line (of one orientation for relu) of a model's layers; the model itself stays as it is.

    Args:
        model: any model; it is run in evaluation mode. Its hooks, which must not change what it computes, run once
            and are left out of the result.
        example_inputs: with which it can be run: a tensor, a sequence of arguments, or a mapping of named ones.
        threshold: the cosine that decides which units are of one line: by default 0.95, or more where chance alone
            would reach it.
        units: instead, the number of units left in each layer, or in each by name.
        error: instead, the largest relative error on the data that is allowed; the smallest model within it is found.
        agreement: instead, the least share of samples whose largest output stays the same.
        layers: the layers to reduce, by name; all if not given.
        data: samples to judge and to fit on: (x, y), x alone, or an iterable of batches, such as a DataLoader.
        fit: fit what reads the merged units to the data by least squares, instead of the formula alone; it needs twice
            as many samples as new units, and holds a fifth of them back to choose its ridge.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> model[0].weight.data = torch.tensor([[1.0, 2], [2, 4], [0, 1]])
    >>> model[0].bias.data = torch.zeros(3)
    >>> reduced = reduce_model(model, torch.randn(4, 2))
    >>> reduced.sizes, reduced.groups["0"]
    ({'0': (3, 2)}, array([0, 0, 1]))
    """
    _check(model, data, fit, units, threshold=threshold, error=error, agreement=agreement)
    model = unwrapped(model)
    devices = sorted({value.device.index or 0 for value in model.parameters() if value.is_cuda})
    with torch.inference_mode(False), torch.random.fork_rng(devices=devices):
        given = _copy(model, example_inputs)
        work = _ModelReducer(given, example_inputs, layers)
        judge = None if data is None else Judge(given, data)
        batches = judge.batches if judge is not None and fit else None
        if batches is not None and not all(bool(torch.isfinite(x).all()) for x in tensors(batches)):
            raise InputError("the data holds NaN or Inf, and nothing can be fitted to that")
        if units is not None:
            groups = work.cut(work.checked(units))
        elif judge is not None and (error is not None or agreement is not None):
            groups = work.cut(work.smallest(judge, error, agreement, batches))
        else:
            groups = work.within(threshold)
        small = work.merged(groups, batches)
        counts = {name: int(labels.max()) + 1 for name, labels in groups.items()}
        quality = {} if judge is None else _quality(judge, small, work.pruned(counts))
    for name, module in small.named_modules():
        module.training = model.get_submodule(name).training
    sizes = {name: (len(labels), counts[name]) for name, labels in groups.items()}
    return ReducedModel(small, sizes, groups, work.skipped, (_count(model), _count(small)), **quality)


def _quality(judge: Judge, small: nn.Module, pruned: nn.Module) -> dict[str, Any]:
    """What a reduced model and a pruned one of the same size do on the data, by the names of ``ReducedModel``."""
    merged, kept, accuracy = judge.judge(small), judge.judge(pruned), judge.accuracy(judge.outputs)
    return {
        "relative_error": merged.relative_error,
        "agreement": merged.agreement,
        "accuracy": None if accuracy is None or merged.accuracy is None else (accuracy, merged.accuracy),
        "pruned_error": kept.relative_error,
        "pruned_agreement": kept.agreement,
    }


def _check(model: nn.Module, data: Samples, fit: bool, units: Any, **numbers: float | None) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a torch.nn.Module, not a {type(model).__name__}")
    for name, value in numbers.items():
        coerce(float | None, value, name)
    if sum(choice is not None for choice in (*numbers.values(), units)) > 1:
        raise InputError("one of threshold, units, error and agreement decides, not several")
    for name in ("threshold", "agreement"):
        value = numbers[name]
        if value is not None and not 0 < value <= 1:
            raise InputError(f"{name} is a number above 0 and at most 1, not {value!r}")
    if (error := numbers["error"]) is not None and not error >= 0:
        raise InputError(f"an allowed error is a number of at least 0, not {error!r}")
    for name in ("error", "agreement", "fit"):
        if data is None and (fit if name == "fit" else numbers[name] is not None):
            raise InputError(f"{name} is measured on samples: pass data=(x, y), x, or an iterable of batches")
    if any(value.is_meta for value in (*model.parameters(), *model.buffers())):
        raise InputError("the model is on the meta device, where weights have no values: load them first")


def _copy(model: nn.Module, inputs: ModelInputs) -> nn.Module:
    """The model in evaluation mode without gradients and without hooks, which must not change its answer."""
    try:
        copy = deepcopy(model).eval()
    except Exception as problem:
        raise InputError(
            f"this {type(model).__name__} cannot be copied (copy.deepcopy: {type(problem).__name__}: {problem}), "
            "which keeps the given model as it is"
        ) from problem
    for value in copy.parameters():
        value.grad = None
    hooked = [(hooks, key) for module in copy.modules() for hooks in _hooks(module) for key in hooks]
    if hooked:
        before = _answer(copy, inputs)
        for hooks, key in hooked:
            del hooks[key]
        after = _answer(copy, inputs)
        shapes = [[value.shape for value in values] for values in (before, after)]
        if shapes[0] != shapes[1] or not all(map(partial(torch.allclose, equal_nan=True), before, after)):
            raise InputError(
                "forward hooks change what this model computes, and a reduced model has none: write it into its forward"
            )
    return copy


def _hooks(module: nn.Module) -> list[dict[int, Any]]:
    """The hooks of a module, those of PyTorch's own weight norm and its like left out."""
    every = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    own = "torch.nn."
    return [hooks for hooks in every if not any(type(hook).__module__.startswith(own) for hook in hooks.values())]


def _answer(model: nn.Module, inputs: ModelInputs) -> list[torch.Tensor]:
    torch.manual_seed(0)
    with torch.no_grad():
        return tensors(_run(model, inputs))


def _run(model: nn.Module, inputs: ModelInputs) -> Any:
    try:
        return call(model, inputs)
    except Exception as problem:
        raise InputError(
            f"the model cannot be run on the example inputs: {type(problem).__name__}: {problem}"
        ) from problem


class _ModelReducer:
    """A model on the way to a smaller one: its sets that can be reduced, and what a grouping of them makes."""

    def __init__(self, given: nn.Module, inputs: ModelInputs, layers: Sequence[str] | None) -> None:
        self.given = given
        inputs = mapped(inputs, lambda value: value.detach().clone())
        sets, trace, self.skipped = _graph(given, inputs)
        self.names = {member: name for name, coupled in sets.items() for member in reversed(coupled.producers)}
        self.names |= {name: name for name in sets}
        for name in layers or ():
            if name not in self.names and name not in self.skipped:
                raise unknown_name("layer", name, [*self.names, *self.skipped])
        chosen = None if layers is None else {self.names[name] for name in layers if name in self.names}
        trial = None
        self.sets: dict[str, Merging] = {}
        for name, coupled in sets.items():
            problem = coupled.reason
            if not problem and chosen is not None and name not in chosen:
                problem = "it is not among the layers asked for"
            problem = problem or _not_finite(coupled, given)
            if not problem:
                trial = trial or PlantedProbe(given, inputs)
                passed = trial.passed(coupled, trace)
                if isinstance(passed, Merging):
                    self.sets[name] = passed
                else:
                    problem = passed
            if problem:
                members = [member for member in coupled.producers if self.names[member] == name]
                runs = {member: trace.calls[member] for member in members}
                self.skipped |= {key: f"it runs {k} times" if k > 1 else problem for key, k in runs.items()}

    def checked(self, units: int | Mapping[str, int]) -> LayerSizes:
        """The number of units that each set is left with, for each of its blocks."""
        wanted = dict(units) if isinstance(units, Mapping) else dict.fromkeys(self.sets, units)
        sizes = {name: merging.full for name, merging in self.sets.items()}
        for name, count in wanted.items():
            key = self.names.get(name)
            if key is None or key not in self.sets:
                why = f" ({self.skipped[name]})" if name in self.skipped else ""
                raise unknown_name(f"layer that can be reduced{why}", name, self.sets)
            check_whole(f"units of {name}", count)
            merging, blocks = self.sets[key], len(self.sets[key].blocks)
            if count > merging.coupled.units:
                raise InputError(f"{name} has {merging.coupled.units} units and cannot be reduced to {count}")
            if count % blocks:
                raise InputError(f"{name} is cut into {blocks} groups of equal size: {count} units cannot be")
            sizes[key] = count // blocks
        return sizes

    def cut(self, sizes: LayerSizes) -> dict[str, Labels]:
        """The groups of each set."""
        return {name: merging.cut(sizes[name]) for name, merging in self.sets.items()}

    def within(self, threshold: float | None) -> dict[str, Labels]:
        """The groups of each set by a cosine."""
        return {name: merging.within(threshold) for name, merging in self.sets.items()}

    def merged(self, groups: Mapping[str, Labels], batches: Sequence[ModelInputs] | None) -> nn.Module:
        """The model with each group as one unit; readers fitted where there are batches."""
        plans = [merging.plan(groups[name]) for name, merging in self.sets.items()]
        return self._shrunk(plans if batches is None else fitted(self.given, plans, batches))

    def pruned(self, counts: Mapping[str, int]) -> nn.Module:
        """The model with only the units of largest output times input weight."""
        sets = self.sets.items()
        return self._shrunk([merging.pruned(counts[name] // len(merging.blocks)) for name, merging in sets])

    def _shrunk(self, plans: Sequence[ShrinkPlan]) -> nn.Module:
        return shrink(self.given, [plan for plan in plans if len(plan.slots) < plan.coupled.units])

    def smallest(
        self, judge: Judge, error: float | None, agreement: float | None, batches: Sequence[ModelInputs] | None
    ) -> LayerSizes:
        """Sizes of the smallest model that is good enough."""
        if not all(bool(torch.isfinite(output).all()) for output in judge.outputs):
            raise InputError("the model's outputs on the data hold NaN or Inf: nothing can be held against them")
        if error is not None and judge.constant:
            raise InputError("the model's output is constant on the data: an error has nothing to be relative to")
        if agreement is not None and not any(axis is not None for axis in judge.axes):
            raise InputError("agreement compares the largest of several outputs, and this model has one: use error")

        def fits(sizes: LayerSizes) -> bool:
            judgement = judge.judge(self.merged(self.cut(sizes), batches))
            if error is not None:
                return judgement.relative_error <= error
            return judgement.agreement is not None and agreement is not None and judgement.agreement >= agreement

        full = {name: merging.full for name, merging in self.sets.items()}
        return smallest(full, merging_order({name: merging.costs for name, merging in self.sets.items()}), fits)


def _graph(given: nn.Module, inputs: ModelInputs) -> tuple[dict[str, ChannelSet], Trace, dict[str, str]]:
    """The sets of a model, traced on a copy all of whose parameters ask for gradients."""
    traced = deepcopy(given)
    for value in traced.parameters():
        if value.is_floating_point() or value.is_complex():
            value.requires_grad_(True)
    with torch.enable_grad():
        answer = _run(traced, inputs)
        if not any(tensor.requires_grad for tensor in tensors(answer)):
            raise InputError(
                "the model cannot be traced: autograd sees no way from its layers to its output (is there a "
                "torch.no_grad, a detach, or an output that is no tensor?)"
            )
        with warnings.catch_warnings(action="ignore"):  # the model has just been heard once
            return build_graph(traced, inputs)


def _not_finite(coupled: ChannelSet, model: nn.Module) -> str:
    for name in (*coupled.channels, *coupled.columns):
        module = model.get_submodule(name)
        for value in (*module._parameters.values(), *module._buffers.values()):
            if value is not None and not bool(torch.isfinite(value).all()):
                holder = "it" if name == coupled.name else f"{name}, which belongs to it,"
                return f"{holder} holds NaN or Inf"
    return ""


def _count(model: nn.Module) -> int:
    return sum(value.numel() for value in model.parameters())
