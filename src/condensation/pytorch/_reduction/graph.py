"""Which channels of a model stand and fall together: its sets, found by Torch-Pruning's dependency graph.

A *set* is one kind of channel on its way through the model: the rows of the layers that make it (several where a
residual connection adds them up), the batch norms and depthwise convolutions it passes, the columns of the layers that
read it. After a flatten one channel owns many columns, after a concatenation they start elsewhere. A set that cannot
be reduced says why.
"""

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch_pruning
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.parametrize import ParametrizationList
from torch_pruning.ops import OPTYPE

from .channels import ChannelSet as ChannelSet
from .channels import Indices
from .declared import declared_sets
from .follow import Follower, equal_columns
from .matrix import out_size
from .trace import LAYERS, REFUSED, ModelInputs, Trace, call, is_own, random_inputs, steady, tensors, trace


def is_depthwise(module: nn.Module) -> bool:
    """Whether a convolution maps every channel to itself."""
    return isinstance(module, _ConvNd) and module.groups == module.in_channels == module.out_channels > 1


def build_graph(model: nn.Module, inputs: ModelInputs) -> tuple[dict[str, ChannelSet], Trace, dict[str, str]]:
    """The sets of a model, what it does between them, and the layers that are in no set, with the reason.

    The model is in evaluation mode, and all its parameters ask for gradients.
    """
    other = random_inputs(inputs, torch.Generator().manual_seed(0))
    traced = trace(model, inputs)
    with suppress(RuntimeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError):
        traced = steady(traced, trace(model, other))  # a model may ask more of its inputs than their shapes
    modules = dict(model.named_modules())
    layers = [name for name in traced.calls if isinstance(modules[name], LAYERS)]
    declared = declared_sets(model, inputs, traced)
    known = {member for coupled in declared.values() for member in coupled.channels}
    roots = [name for name in layers if not is_depthwise(modules[name]) and name not in known]
    sets: dict[str, ChannelSet] = {}
    owned: dict[str, set[int]] = {name: set() for name in modules}
    dependencies: Any = _dependencies(model, inputs) if roots else None
    untold = dependencies if isinstance(dependencies, str) else ""
    if untold:
        sets = _followed_sets(roots, model, inputs, traced, untold)
    for name in () if untold else roots:
        free = [k for k in range(out_size(modules[name])) if k not in owned[name]]
        if free and modules[name] in dependencies.module2node:  # pyright: ignore[reportAttributeAccessIssue]
            coupled = _channel_set(name, free, model, dependencies, traced)
            if known & set(coupled.producers):
                coupled = replace(coupled, producers=(name,), channels={name: coupled.channels[name]})
                coupled = replace(coupled, reason="its channels are combined with those of a recurrent layer or a head")
            sets[name] = coupled
            for member in coupled.producers:
                owned[member].update(coupled.channels[member].tolist())
    for name, coupled in declared.items():
        problem = coupled.reason or next(
            (p for key in coupled.channels if (p := _module_problem(modules[key], model))), ""
        )
        runs = max(traced.calls.get(key, 0) for key in coupled.channels)
        sets[name] = replace(coupled, reason=problem or (f"it runs {runs} times" if runs > 1 else ""))
    turn = {name: place for place, name in enumerate(traced.calls)}
    sets = dict(sorted(sets.items(), key=lambda item: min(turn.get(key, 0) for key in item[1].producers)))
    members = {member for coupled in sets.values() for member in coupled.channels}
    outside = {}
    for name, module in modules.items():
        if name not in members and isinstance(module, LAYERS):
            ran = "it makes no part of a set: nothing of the model's output depends on it by gradients"
            ran = "a depthwise convolution of the model's input" if is_depthwise(module) else ran
            ran = ran if name in traced.calls else "it did not run on the example inputs as a layer"
            outside[name] = ran if is_own(module) else f"{type(module).__name__} has a forward of its own"
        elif "quantized" in type(module).__module__:
            if not any(name.startswith(f"{other}.") for other in outside):
                outside[name] = f"it is quantised ({type(module).__name__})"
        elif (
            name not in members
            and not isinstance(module, (*LAYERS, ParametrizationList))
            and any(value is not None and value.ndim > 1 for value in module._parameters.values())
        ):
            outside[name] = f"{type(module).__name__} is no dense or convolution layer"
    return sets, traced, outside


class _Lost(Exception):
    """The channels behind a slice are not to be found."""


def _followed_sets(
    roots: list[str], model: nn.Module, inputs: ModelInputs, traced: Trace, problem: str
) -> dict[str, ChannelSet]:
    """The sets of a model that Torch-Pruning has no graph of: what reads each layer is found by moving its channels.

    Layers that are read in the same columns (those of a gated unit) make one set.
    """
    follower = Follower(model, inputs)
    sets: dict[str, ChannelSet] = {}
    for name in roots:
        count = out_size(model.get_submodule(name))
        own = {name: np.arange(count)}
        coupled = ChannelSet(name, (name,), own, {}, np.zeros(count, int))
        reason = _fate(name, model, traced)
        columns = reason or follower.columns({name: np.arange(count)[:, None]})
        if isinstance(columns, str) or any((where < 0).any() for where in columns.values()):
            reason = columns if isinstance(columns, str) else f"not all its channels are read ({problem})"
            sets[name] = replace(coupled, reason=reason)
            continue
        same = [other for other, known in sets.items() if equal_columns(known.columns, columns)]
        if same:
            known = sets[same[0]]
            both = replace(known, producers=(*known.producers, name), channels=known.channels | own)
            sets[same[0]] = replace(both, reason=_reason(both, model, traced))
            continue
        coupled = replace(coupled, columns=columns)
        blocks = _blocks(coupled, model)
        if isinstance(blocks, str):
            sets[name] = replace(coupled, reason=blocks)
        else:
            coupled = replace(coupled, blocks=blocks)
            sets[name] = replace(coupled, reason=_reason(coupled, model, traced))
    return sets


def _dependencies(model: nn.Module, inputs: ModelInputs) -> Any:
    """Torch-Pruning's graph, or why there is none.

    It is told to be quiet, and what the model itself warns of is heard elsewhere.

    Of three axes Torch-Pruning takes the last for the channels. A slice of a sequence of Conv1d then moves channels,
    and two that meet again move them on and on: a second index mapping of every slice ends that.
    """
    graph: Any = torch_pruning.DependencyGraph()
    with warnings.catch_warnings(action="ignore"):
        try:
            graph.build_dependency(
                model,
                inputs,
                forward_fn=call,
                output_transform=lambda answer: [tensor for tensor in tensors(answer) if tensor.grad_fn is not None],
                verbose=False,
            )
        except Exception as error:
            return f"Torch-Pruning has no graph of it: {type(error).__name__}: {error}"
    largest = max(out_size(module) for module in model.modules() if isinstance(module, LAYERS))

    def bounded(places: list[Any]) -> list[Any]:
        if any(not 0 <= place.idx < largest for place in places):
            raise _Lost
        return places

    for node in graph.module2node.values():
        if node.type == OPTYPE.SLICE:
            for dependency in (*node.dependencies, *(edge for before in node.inputs for edge in before.dependencies)):
                if node in (dependency.source, dependency.target):
                    dependency.index_mapping[1] = bounded
    return graph


def _channel_set(name: str, roots: list[int], model: nn.Module, dependencies: Any, traced: Trace) -> ChannelSet:
    """The set of some channels of a layer."""
    names = {module: key for key, module in model.named_modules()}
    root = model.get_submodule(name)
    if fate := _fate(name, model, traced):  # the dependency graph would follow the channels through whatever mixes them
        return ChannelSet(name, (name,), {name: np.array(roots)}, {}, np.zeros(len(roots), int), fate)
    prune = dependencies.get_pruner_of_module(root).prune_out_channels
    unit = {k: place for place, k in enumerate(roots)}
    outs: dict[str, dict[int, list[int]]] = {}
    ins: dict[str, dict[int, list[int]]] = {}
    reasons, items = [], []
    try:
        items = list(dependencies.get_pruning_group(root, prune, roots))
    except _Lost:
        reasons.append("a slice is not followed")
    for item in items:
        node, handler = item.dep.target, item.dep.handler
        common_slope = isinstance(node.module, nn.PReLU) and node.module.num_parameters == 1
        if node.type.name in REFUSED:
            reasons.append(REFUSED[node.type.name])
        elif isinstance(node.module, (*LAYERS, _BatchNorm, nn.PReLU)) and not common_slope:
            both = not _is_producer(node.module)
            makes = both or dependencies.is_out_channel_pruning_fn(handler)
            places = (outs if makes else ins).setdefault(names[node.module], {})
            if makes and max(item.idxs) >= out_size(node.module):
                reasons.append("its channels are combined with more or fewer of another layer")
            for where, of in zip(item.idxs, item.root_idxs, strict=True):
                if of not in unit:
                    reasons.append("its channels are rearranged in a way that is not followed")
                    break
                places.setdefault(unit[of], []).append(where)
    makers = [key for key in traced.calls if key in outs and _is_producer(model.get_submodule(key))]
    makers, outs = (makers, outs) if makers else ([name], {name: {place: [k] for k, place in unit.items()}})
    coupled = ChannelSet(name, tuple(makers), {}, {}, np.zeros(len(roots), int))
    for places in (outs, ins):
        for key, where in places.items():
            counts = {len(where.get(k, [])) for k in range(len(roots))}
            if counts != {1} and (places is outs or len(counts) > 1):
                reasons.append(f"its channels meet those of {key} in different numbers")
    if reasons:
        rows = {key: np.unique([k for where in outs[key].values() for k in where]) for key in makers}
        return replace(coupled, reason=reasons[0], channels=rows)
    channels, columns = (
        {key: np.array([sorted(where[k]) for k in range(len(roots))]) for key, where in places.items()}
        for places in (outs, ins)
    )
    coupled = replace(coupled, channels={key: value[:, 0] for key, value in channels.items()}, columns=columns)
    blocks = _blocks(coupled, model)
    reason = _reason(coupled, model, traced) or (blocks if isinstance(blocks, str) else "")
    return replace(coupled, reason=reason, blocks=coupled.blocks if isinstance(blocks, str) else blocks)


def _is_producer(module: nn.Module) -> bool:
    return isinstance(module, LAYERS) and not is_depthwise(module)


def _reason(coupled: ChannelSet, model: nn.Module, traced: Trace) -> str:
    """Why a set cannot be reduced, or nothing."""
    for name in coupled.producers:
        if fate := _fate(name, model, traced):
            return fate
    if not coupled.columns:
        return "no layer reads it"
    if coupled.units == 1:
        return "it has one unit"
    for name in (*coupled.channels, *coupled.columns):
        module = model.get_submodule(name)
        runs = traced.calls.get(name, 0)
        problem = _module_problem(module, model) or (runs != 1 and f"it runs {runs} times")
        if problem:
            return problem if name == coupled.name else f"of {name} that belongs to it: {problem}"
    return ""


def _module_problem(module: nn.Module, model: nn.Module) -> str:
    weight = module._parameters.get("weight")
    if not is_own(module):
        return f"{type(module).__name__} has a forward of its own"
    if isinstance(module, _BatchNorm) and module.running_mean is None:
        return "batch norm without running statistics"
    if weight is None and not isinstance(module, _BatchNorm):
        return "its weight is computed from other parameters (parametrised)"
    if weight is not None and type(weight) is not nn.Parameter:
        return f"its weight is a {type(weight).__name__}"
    if isinstance(module, _ConvNd) and module.groups == module.out_channels > 1 and not is_depthwise(module):
        return "a convolution with one unit for each of its groups"
    for kind, own in module._parameters.items():
        shared = [name for name, value in model.named_parameters(remove_duplicate=False) if value is own]
        if own is not None and len(shared) > 1:
            return f"its {kind} is shared: {' and '.join(shared)}"
    return ""


def _fate(name: str, model: nn.Module, traced: Trace) -> str:
    """Why a layer's channels cannot be merged, seen from what they meet before the next layer; or nothing."""
    ahead: dict[int, list[int]] = {}
    for place, op in enumerate(traced.ops):
        for before in op.inputs:
            ahead.setdefault(before, []).append(place)
    stack = [k for k, op in enumerate(traced.ops) if op.kind == "module" and op.name == name]
    known, mixing, reads, ends = set(stack), "", False, False
    while stack:
        place = stack.pop()
        ends = ends or place in traced.outputs
        for after in ahead.get(place, []):
            op = traced.ops[after]
            if op.kind == "mix":
                mixing = op.name
            elif op.kind == "module" and _is_producer(model.get_submodule(op.name)):
                reads = True
            elif after not in known:
                known.add(after)
                stack.append(after)
    if mixing:
        alone = "InstanceNorm" in mixing
        return f"{mixing} takes its statistics from the sample" if alone else f"{mixing} mixes its channels"
    if ends:
        return "its channels are part of the model's output" if reads else "no layer reads it: it is the model's output"
    return "" if reads else "no layer reads it"


def _blocks(coupled: ChannelSet, model: nn.Module) -> Indices | str:
    """The block of each unit: its group in every grouped convolution that makes or reads it."""
    labels = [np.zeros(coupled.units, int)]
    for places, ins in ((coupled.channels, False), (coupled.columns, True)):
        for name, where in places.items():
            module = model.get_submodule(name)
            if isinstance(module, _ConvNd) and module.groups > 1 and not is_depthwise(module):
                size = (module.in_channels if ins else module.out_channels) // module.groups
                labels.append((where[:, 0] if ins else where) // size)
    _, blocks, counts = np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True, return_counts=True)
    if len(set(counts.tolist())) > 1:
        return "the groups of its convolutions cut its channels into parts of different size"
    if len(counts) > 1 and counts[0] == 1:
        return "each group of a grouped convolution holds one of its channels"
    return blocks.reshape(-1)
