"""Reduce a PyTorch model: the best of merging and pruning, by formula or fitted to data, judged on held-out samples.

Dense and convolution layers of any ``nn.Module`` that autograd can follow, batch norm, residual connections,
concatenation, groups and depthwise convolutions included. What cannot be reduced is named with its reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ..._serialization import coerce
from ...errors import InputError, unknown_name
from .attention import layer_by_layer
from .choose import Candidate, Chooser, Goal
from .cost import Cost, cost, count_parameters, operations, seconds
from .flexible import drop_unneeded, make_flexible
from .given import checked_model, mixes_samples, own_copy
from .gpu import drawn_on_the_cpu, exact_products
from .judge import Judge
from .layout import by_pixels, plain
from .merging import Labels
from .methods import METHODS, Methods
from .observed import Observed
from .opening import closed, drop_values, opened, same_answers
from .progress import reporting
from .result import ReducedModel, Tried
from .samples import Parts, Samples, Source, as_inputs
from .sets import ModelSets, Report
from .trace import ModelInputs, tensors

ERROR = 0.02  # the relative error that is allowed where nothing else is said
WORK = 3e10  # multiply-adds that one look at the samples of a part may take
MIXED = (
    "what the model answers to a sample depends on the others in its batch: samples stand along the first axis, and "
    "the numbers are those of such batches"
)
LEAST, MOST = 256, 20_000  # samples of a part: at most so many are taken, of a large model no fewer than the first


def reduce_model(
    model: nn.Module,
    data: Samples = None,
    *,
    error: float | None = None,
    agreement: float | None = None,
    ratio: float | None = None,
    units: int | Mapping[str, int] | None = None,
    threshold: float | None = None,
    method: str = "best",
    layers: Sequence[str] | None = None,
    inputs: ModelInputs | None = None,
    recalibrate: bool = True,
    progress: bool | Report | None = None,
) -> ReducedModel:
    """Make a model smaller: the best of merging and pruning on held-out samples; the model itself stays as it is.

    One of ``error``, ``agreement``, ``ratio``, ``units`` and ``threshold`` decides how far; with data and none of
    them, an error of 0.02. Without data only what is exact is merged: copies, multiples where the activation is
    homogeneous, and units that nothing reads.

    Args:
        model: any model; it is run in evaluation mode. Its hooks, which must not change what it computes, run once
            and are left out of the result.
        data: samples: (x, y), x alone, a mapping, or an iterable of batches, such as a DataLoader; tensors or arrays.
            The x of a model that takes several is a tuple or a mapping of them. Three fifths of the samples are fitted
            to, a fifth chooses, a fifth judges.
        error: the largest relative error that is allowed on new samples of the same kind; the smallest model is found
            that keeps within it with 95% confidence. So with few samples less is left out.
        agreement: instead, the least share of new samples whose largest output stays the same, likewise.
        ratio: instead, the share of the units of each layer that is left out.
        units: instead, the number of units left in each layer, or in each by name; a layer of fewer stays as it is.
        threshold: instead, units are merged from this cosine on; other methods are tried at the same sizes.
        method: "best" of the others, "merge" (units of one line become one), "merge_fit" (and what reads them is
            fitted to data by least squares), "prune" (units of smallest input times output weight are left out),
            "prune_fit" (backward elimination: those without which the others, refitted, do best).
        layers: the layers to reduce, by name; all if not given.
        inputs: with which the model can be run, where there is no data or the model wants more than a sample: a
            tensor, a sequence of arguments, or a mapping of named ones.
        recalibrate: match the statistics of batch norms behind what was changed.
        progress: True shows how far it is, False does not, None does on a terminal; a callable is told.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> model[0].weight.data = torch.tensor([[1.0, 2], [2, 4], [0, 1]])
    >>> model[0].bias.data = torch.zeros(3)
    >>> reduced = reduce_model(model, inputs=torch.randn(4, 2))
    >>> reduced.sizes, reduced.groups["0"]
    ({'0': (3, 2)}, array([0, 0, 1]))
    """
    model = checked_model(model)
    goals = {"error": error, "agreement": agreement, "ratio": ratio, "threshold": threshold}
    _check(data, inputs, method, units, goals)
    devices = sorted({value.device.index or 0 for value in model.parameters() if value.is_cuda})
    alone = torch.random.fork_rng(devices=devices)
    with reporting(progress) as report, torch.inference_mode(False), alone, drawn_on_the_cpu(), exact_products():
        source = None if data is None else Source(data, model)
        example = as_inputs(inputs, model) if inputs is not None else source.example() if source is not None else None
        assert example is not None
        with layer_by_layer():
            plain = own_copy(model, example)
            make_flexible(plain, example)
            given, unopened = opened(plain, example)
            counted = None if given is plain else operations(given, example)
            drop_values(given)
            work = ModelSets(given, example, layers, report)
            work.skipped |= {name: reason for name, reason in unopened.items() if name not in work.sets}
            if source is None:
                result = _without_data(work, units, threshold, recalibrate, example)
            else:
                decided = {name: value for name, value in goals.items() if value is not None}
                if units is None and not decided:
                    decided = {"error": ERROR}
                parts = by_pixels(given, source.parts(_most(given, example)))
                result = _with_data(work, parts, decided, units, method, recalibrate, report)
        if given is not plain:
            result = _closed(result, plain, counted, example)
        drop_unneeded(result.model, example)
    modes = {name: module.training for name, module in model.named_modules()}
    for name, module in result.model.named_modules():
        module.training = modes.get(name, modes.get(name.rpartition(".")[0], model.training))
    return result


def _closed(result: ReducedModel, plain: nn.Module, counted: int | None, example: ModelInputs) -> ReducedModel:
    """The result with its modules as they were, and what they take; operations were counted while they were open."""
    small = closed(result.model, plain)
    after = result.operations[1] if result.operations else None
    return replace(
        result,
        model=small,
        parameters=(count_parameters(plain), count_parameters(small)),
        operations=None if counted is None or after is None else (counted, after),
        seconds=(seconds(plain, example), seconds(small, example)),
    )


def _with_data(
    work: ModelSets,
    parts: Parts,
    decided: dict[str, float],
    units: int | Mapping[str, int] | None,
    method: str,
    recalibrate: bool,
    report: Report,
) -> ReducedModel:
    allowed = decided.get("error") or ERROR
    judge, choosing = (Judge(work.given, part, allowed) for part in (parts.judge, parts.choose))
    for batches in (parts.fit.batches, parts.choose.batches, parts.judge.batches):
        if not all(bool(torch.isfinite(x).all()) for x in tensors(batches)):
            raise InputError("the data holds NaN or Inf, and nothing can be fitted to that or held against it")
    if not judge.finite or not choosing.finite:
        raise InputError("the model's outputs on the data hold NaN or Inf: nothing can be held against them")
    methods = Methods(work, Observed(work, parts.fit.batches), recalibrate)
    example = plain(parts.judge.batches[0])
    large = _most(work.given, example) <= LEAST
    chooser = Chooser(methods, choosing, judge, METHODS if method == "best" else (method,), report, large)
    groups = work.within(decided["threshold"]) if "threshold" in decided else None
    if units is not None:
        best, every = chooser.at(work.left(units))
    elif "ratio" in decided:
        best, every = chooser.at(work.after(decided["ratio"]))
    elif groups is not None:
        best, every = chooser.at(work.counts(groups), groups)
    else:
        best, every = chooser.smallest(Goal(decided.get("error"), decided.get("agreement")))
    groups = methods.groups(best.sizes) if best.groups is None else best.groups
    tried = {one.method: _tried(one, example) for one in every}
    final = (best.second or judge.judge(best.model)).bounded(best.judgement)
    accuracy = judge.accuracy(judge.outputs)
    if best.exact:  # on any samples
        final = replace(final, most_error=final.relative_error, least_agreement=final.agreement)
    return _result(
        work,
        best.model,
        best.method,
        best.sizes,
        groups if best.method.startswith("merge") else {},
        (cost(work.given, example), cost(best.model, example)),
        relative_error=final.relative_error,
        most_error=final.most_error if final.most_error < float("inf") else None,
        agreement=final.agreement,
        least_agreement=final.least_agreement,
        accuracy=None if accuracy is None or final.accuracy is None else (accuracy, final.accuracy),
        tried=tried,
        notes=(*parts.notes, *((MIXED,) if mixes_samples(work.given, example) else ())),
    )


def _without_data(
    work: ModelSets,
    units: int | Mapping[str, int] | None,
    threshold: float | None,
    recalibrate: bool,
    example: ModelInputs,
) -> ReducedModel:
    methods = Methods(work, None, recalibrate)
    if units is not None:
        groups = methods.groups(work.left(units))
    else:
        groups = work.within(threshold) if threshold is not None else work.exact()
    sizes = work.counts(groups)
    model = methods.made("merge", sizes, groups)
    note = "without data its error is not known: pass data=(x, y), x or batches"
    if units is None and threshold is None:
        note = "exact up to rounding"
        if not same_answers(work.given, model, example):
            groups, sizes, model = {}, work.full, methods.made("prune", work.full)
            note = "it stays as it is, for merging its copies would change what it answers"
    costs = cost(work.given, example), cost(model, example)
    return _result(work, model, "merge", sizes, groups, costs, notes=(note,))


def _result(
    work: ModelSets,
    model: nn.Module,
    method: str,
    sizes: Mapping[str, int],
    groups: Mapping[str, Labels],
    costs: tuple[Cost, Cost],
    notes: tuple[str, ...],
    **judged: Any,
) -> ReducedModel:
    before, after = costs
    blocks = {name: len(merging.blocks) for name, merging in work.sets.items()}
    counts = {name: (merging.coupled.units, sizes[name] * blocks[name]) for name, merging in work.sets.items()}
    counted = before.operations is not None and after.operations is not None
    return ReducedModel(
        model,
        method,
        counts,
        dict(groups),
        work.skipped,
        (before.parameters, after.parameters),
        (before.operations, after.operations) if counted else None,  # pyright: ignore[reportArgumentType]
        (before.seconds, after.seconds),
        notes=notes if work.sets else (*notes, "no layer can be reduced: skipped says why"),
        **judged,
    )


def _tried(candidate: Candidate, example: ModelInputs) -> Tried:
    judgement, model = candidate.judgement, candidate.model
    counted = operations(model, example)
    parameters = sum(value.numel() for value in model.parameters())
    return Tried(judgement.relative_error, judgement.agreement, parameters, counted)


def _most(model: nn.Module, example: ModelInputs) -> int:
    """How many samples are fitted to, chosen by and judged on at most, each: fewer of a large model."""
    count = operations(model, example) or 1
    return int(min(max(WORK / count, LEAST), MOST))


def _check(data: Samples, inputs: Any, method: str, units: Any, goals: Mapping[str, float | None]) -> None:
    for name, value in goals.items():
        coerce(float | None, value, name)
    if sum(choice is not None for choice in (*goals.values(), units)) > 1:
        raise InputError("one of error, agreement, ratio, units and threshold decides, not several")
    for name in ("threshold", "agreement"):
        value = goals[name]
        if value is not None and not 0 < value <= 1:
            raise InputError(f"{name} is a number above 0 and at most 1, not {value!r}")
    if (error := goals["error"]) is not None and not 0 <= error < float("inf"):
        raise InputError(f"an allowed error is a number of at least 0, not {error!r}")
    if (ratio := goals["ratio"]) is not None and not 0 <= ratio < 1:
        raise InputError(f"ratio is the share of units that is left out, at least 0 and below 1, not {ratio!r}")
    if method not in ("best", *METHODS):
        raise unknown_name("method", method, ("best", *METHODS))
    if data is None:
        for name in ("error", "agreement", "ratio"):
            if goals[name] is not None:
                raise InputError(f"{name} is measured on samples: pass data=(x, y), x, or an iterable of batches")
        if method not in ("best", "merge"):
            raise InputError(f"method {method!r} needs samples: pass data=(x, y), x, or an iterable of batches")
        if inputs is None:
            raise InputError(
                "the model has to be run to be followed: pass data=(x, y), x or batches, by which it is also judged, "
                "or inputs= with which it runs; then only what is exact is merged"
            )
