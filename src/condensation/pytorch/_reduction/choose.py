"""Which method, and how far: the best of all by samples of their own, to given sizes or the smallest within a goal.

At given sizes the method of the largest agreement is the best where samples are labelled with classes (where much is
left out, errors of a similar size change more or fewer of them), else that of the least error.

The smallest model is looked for along each method's order of removals, where it is guessed to be. The first method
sets a number of parameters; one that does not meet the goal with as few is not followed further. A goal must be met by
the bounds for new samples (``judge``), on the samples that choose and again on those that judge: among many models some
seem better on the first than they are. Where no model meets it, copies are merged, which needs no samples; that it
changed nothing is seen on these, for a model may have asked at which place a unit stands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan

import torch
from torch import nn

from ...errors import InputError
from ...reduction._search import LayerSizes
from .cost import count_parameters
from .guess import Search
from .judge import Judge, Judgement
from .merging import Labels
from .methods import Methods
from .sets import Report

STEPS = 128  # removals are looked for to within one part in so many of all
CLOSE = 0.95  # a large model that takes such a share of the error that is allowed need not be smaller


@dataclass(frozen=True)
class Goal:
    """What a model must meet: a largest relative error, or a least agreement."""

    error: float | None = None
    agreement: float | None = None

    def check(self, judge: Judge) -> None:
        """Refuse a goal that cannot be measured."""
        if self.error is not None and judge.constant:
            raise InputError("the model's output is constant on the data: an error has nothing to be relative to")
        if self.agreement is not None and not judge.classifies:
            raise InputError("agreement compares the largest of several outputs, and this model has one: use error")

    def excess(self, judgement: Judgement) -> float:
        """What it will have of error on new samples, as a multiple of what is allowed: at most 1 meets the goal.

        Agreement is met (0) or not (infinity): its steps tell little of how far it is.
        """
        if self.error is not None:
            met = judgement.most_error <= self.error
            return judgement.most_error / self.error if self.error > 0 else 0.0 if met else inf
        least = judgement.least_agreement
        return 0.0 if least is not None and self.agreement is not None and least >= self.agreement else inf


@dataclass(frozen=True)
class Candidate:
    """What a method made of some sizes; ``exact`` if it is the given model, or only copies were merged."""

    method: str
    sizes: LayerSizes
    model: nn.Module
    judgement: Judgement
    groups: Mapping[str, Labels] | None = None
    exact: bool = False
    second: Judgement | None = None  # on the samples that judge, if it was asked for

    def badness(self, labelled: bool) -> tuple[float, float]:
        """Its relative error; where samples have classes, first the share of samples whose class is another."""
        error, agreement = self.judgement.relative_error, self.judgement.agreement
        return 0.0 if agreement is None or not labelled else 1 - agreement, inf if isnan(error) else error


class Chooser:
    """Makes models by several methods, chooses by one judge, and asks another whether a goal is met."""

    def __init__(
        self, methods: Methods, judge: Judge, second: Judge, names: Sequence[str], report: Report, large: bool
    ) -> None:
        self.methods, self.judge, self.second, self.names, self.report = methods, judge, second, names, report
        self.large = large

    def at(self, sizes: LayerSizes, groups: Mapping[str, Labels] | None = None) -> tuple[Candidate, list[Candidate]]:
        """The best of all methods at some sizes, and all of them."""
        every = []
        for k, name in enumerate(self.names):
            self.report(name.replace("_", " with "), k / len(self.names))
            every.append(self._made(name, sizes, groups))
        return min(every, key=lambda candidate: candidate.badness(self.judge.labelled is not None)), every

    def smallest(self, goal: Goal) -> tuple[Candidate, list[Candidate]]:
        """The smallest model of all methods that meets a goal, and what became of each method."""
        goal.check(self.judge)
        best, every = None, []
        for name in self.names:
            found, failed = self._along(name, goal, best)
            every.append(found or failed)
            if found is not None and (best is None or _smaller(found, best)):
                best = found
        if best is None:
            best = self._exact(goal)
            every = [candidate or best for candidate in every]
        return best, [candidate for candidate in every if candidate is not None]

    def _along(self, name: str, goal: Goal, best: Candidate | None) -> tuple[Candidate | None, Candidate | None]:
        """The smallest model of a method that meets a goal; and the last one that did not."""
        order, costs = self.methods.order(name)
        full = self.methods.work.full
        found = failed = None
        first = goal.error**2 if name == "prune_fit" and goal.error is not None else None  # costs are such squares
        close = CLOSE if self.large else 1.0
        search = Search(costs, max(1, len(order) // STEPS), first, close)

        def sizes(removed: int) -> LayerSizes:
            done = order[:removed]
            return {key: count - done.count(key) for key, count in full.items()}

        if best is not None:  # is it any good with as few parameters?
            few = self.methods.parameters(best.sizes)
            removed = _first(len(order), lambda removed: self.methods.parameters(sizes(removed)) <= few)
            if removed is None:
                return None, None
        elif search.done:
            return None, None
        else:
            removed = search.next()
        while True:
            tried, excess = self._held(goal, self._made(name, sizes(removed)))
            search.tried(removed, excess)
            found, failed = (tried, failed) if search.low == removed else (found, tried)
            if search.done or (best is not None and found is None):
                return found, failed
            self.report(name.replace("_", " with "), 1 - (search.high - search.low) / (len(order) + 1))
            removed = search.next()

    def _exact(self, goal: Goal) -> Candidate:
        """The model whose copies are merged, if they may be, and if what they gave is given still; or the given one."""
        work = self.methods.work
        if any(name.startswith("merge") for name in self.names):
            groups = work.exact()
            merged = self._made("merge", work.counts(groups), groups)
            second = self.second.judge(merged.model)
            allowed = goal.error or max(torch.finfo(values.dtype).eps for values in self.judge.outputs) ** 0.5
            if not any(judged.relative_error > allowed for judged in (merged.judgement, second)):
                return replace(merged, exact=True, second=second)
        return self._made(self.names[0], work.full)

    def _held(self, goal: Goal, candidate: Candidate) -> tuple[Candidate, float]:
        """A model beside a goal: by the samples that choose, and where it meets it, by those that judge, too."""
        excess = goal.excess(candidate.judgement)
        if not excess <= 1:
            return candidate, excess
        second = self.second.judge(candidate.model)
        other = goal.excess(second)
        return replace(candidate, second=second), excess if other <= excess else other

    def _made(self, name: str, sizes: LayerSizes, groups: Mapping[str, Labels] | None = None) -> Candidate:
        model = self.methods.made(name, sizes, groups)
        same = sizes == self.methods.work.full
        return Candidate(name, sizes, model, self.judge.judge(model), groups, exact=same)


def _smaller(one: Candidate, other: Candidate) -> bool:
    first, second = count_parameters(one.model), count_parameters(other.model)
    return first < second or (first == second and one.badness(False) < other.badness(False))


def _first(most: int, holds: Callable[[int], bool]) -> int | None:
    """The least whole number up to ``most`` from which on something holds, if there is one."""
    if not holds(most):
        return None
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
