"""The units of a set as vectors, the order in which they merge, and the plan that a grouping of them makes."""

from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ...measure import chance_cosine
from ...measure._lines import LEAST_COSINE
from ...measure._similarity import norms
from ...reduction._merge import merge_groups
from ...reduction._tree import Tree, groups_by_cosine, merging_tree, renumber
from .forms import Form, Forms, Reading
from .graph import ChannelSet
from .matrix import bias_of, groups_of, matrix_of, norm_factor
from .shrink import Combination, ShrinkPlan
from .trace import Trace

Labels = Int[np.ndarray, " units"]


class Merging:
    """A set whose units are to be merged, with the weights that a model has now.

    Attributes:
        coupled: the set.
        rule: by which its units merge; nothing where several stages decide, or where only copies merge.
        homogeneous: whether all its activations hand positive factors on.
        turned: vectors of each unit that must point the same way in all units that are merged.
        equal: vectors that must be equal.
        readings: what its readers see.
        first: the form whose rows are written anew where a rule says how.
        amounts: size of each unit's output weights.
    """

    def __init__(self, coupled: ChannelSet, model: nn.Module, trace: Trace, copies: bool = False) -> None:
        """Of ``copies`` all parameters are equal, whatever the rule."""
        self.coupled = coupled
        self.amounts = _amounts(coupled, model)
        self._modules = {name: model.get_submodule(name) for name in coupled.channels}
        self.rule, self.homogeneous, self.first = None, False, None
        self.turned: list[np.ndarray] = []
        if copies:
            self.equal = [_own(module)[coupled.channels[name]] for name, module in self._modules.items()]
            reading: Reading = np.ones(coupled.units), np.zeros(coupled.units)
            self.readings = dict.fromkeys(coupled.columns, reading)
            return
        forms = Forms(coupled, model, trace)
        self.rule, self.homogeneous = forms.rule, forms.homogeneous
        if self.rule is not None or not self.homogeneous:
            forms = Forms(coupled, model, trace, scaled=False)
        self.first, self.readings = forms.first, forms.readings
        if self.rule or self.homogeneous:
            self.turned, self.equal = forms.stages, forms.slopes
        else:
            self.equal = [*forms.stages, *forms.slopes]

    @cached_property
    def vectors(self) -> Float[np.ndarray, "units inputs"]:
        """Of each unit the vector whose direction is compared in a tree and whose norm is its weight."""
        if self.rule is not None:
            return self.turned[0]
        return _directions(self.turned, self.readings) if self.homogeneous else _lifted(self.equal)

    @property
    def blocks(self) -> list[Int[np.ndarray, " members"]]:
        """The units of each block."""
        return [np.flatnonzero(self.coupled.blocks == block) for block in range(int(self.coupled.blocks.max()) + 1)]

    @property
    def full(self) -> int:
        """Number of units of a block."""
        return len(self.blocks[0])

    @cached_property
    def trees(self) -> list[Tree]:
        """In which order the units of each block merge."""
        return [merging_tree(self.vectors[block], self.oriented) for block in self.blocks]

    @property
    def oriented(self) -> bool:
        """Whether directions are compared with their sign."""
        return self.rule is None or self.rule.oriented

    @property
    def costs(self) -> Float[np.ndarray, " merges"]:
        """What each merge costs, relative to the set's norm, all blocks together."""
        return np.mean([tree.relative_costs for tree in self.trees], axis=0)

    def cut(self, count: int) -> Labels:
        """The groups with so many left in each block."""
        return self._joined([tree.groups(count) for tree in self.trees])

    def within(self, threshold: float | None) -> Labels:
        """The groups by a cosine: by default 0.95, or more where chance alone would reach it."""
        inputs = self.vectors.shape[1]
        cosine = threshold or max(LEAST_COSINE, chance_cosine(inputs) if inputs > 1 else 0)
        groupings = [groups_by_cosine(self.likeness(block), cosine) for block in self.blocks]
        count = max(int(labels.max()) + 1 for labels in groupings)
        return self._joined([_split(labels, count) for labels in groupings])

    def exact(self, tolerance: float) -> Labels:
        """The groups of units that are one up to rounding: amplitudes are equal too where the activation wants that.

        A unit that nothing reads is left out, as -1; of a set of several blocks such units stay.
        """
        groupings = []
        for block in self.blocks:
            alike = self.likeness(block)
            if not self.homogeneous:
                long = norms(self.vectors[block])
                longer = np.maximum.outer(long, long)
                alike = np.where(np.abs(np.subtract.outer(long, long)) <= np.sqrt(2 * tolerance) * longer, alike, -1.0)
            groupings.append(groups_by_cosine(alike, 1 - tolerance))
        count = max(int(labels.max()) + 1 for labels in groupings)
        labels = self._joined([_split(labels, count) for labels in groupings])
        idle = self.amounts == 0
        if len(self.blocks) > 1 or idle.all() or not idle.any():
            return labels
        labels[~idle], labels[idle] = renumber(labels[~idle]), -1
        return labels

    def likeness(self, members: Int[np.ndarray, " members"]) -> Float[np.ndarray, "members members"]:
        """How alike units are: the least over all stages of the cosine, or of 1 - distance^2 / 2 for what is equal.

        The distance is relative to the longer of the two; of units of one norm both are the same number.
        """
        least = np.ones((len(members), len(members)))
        for rows, amplitudes in [*((rows, False) for rows in self.turned), *((rows, True) for rows in self.equal)]:
            long = norms(rows[members])
            products = rows[members] @ rows[members].T
            longer, both = np.maximum.outer(long, long), np.outer(long, long)
            if amplitudes:
                distance = np.maximum(long[:, None] ** 2 + long**2 - 2 * products, 0)
                alike = 1 - _ratio(distance, 2 * longer**2)
            else:
                alike = np.where(longer > 0, _ratio(products, both), 1.0)  # two zeros are alike
                alike = alike if self.oriented else np.abs(alike)
            least = np.minimum(least, np.clip(alike, -1, 1))
        return least

    def _joined(self, groupings: list[Int[np.ndarray, " members"]]) -> Labels:
        labels = np.zeros(self.coupled.units, int)
        for k, (block, groups) in enumerate(zip(self.blocks, groupings, strict=True)):
            labels[block] = groups + k * self.coupled.units
        return renumber(labels)

    def plan(self, labels: Labels) -> ShrinkPlan:
        """One new unit for each group; units of the label -1 are left out, for nothing reads what they do."""
        idle = labels < 0
        if not idle.any():
            return self._plan(labels)
        plan = self._plan(renumber(np.where(idle, len(labels) + np.arange(len(labels)), labels)))
        left = ~idle[plan.slots]
        combinations = {name: replace(own, combine=own.combine[:, left]) for name, own in plan.combinations.items()}
        rows, shifts = ({name: part[left] for name, part in parts.items()} for parts in (plan.rows, plan.shifts))
        return ShrinkPlan(self.coupled, plan.slots[left], plan.sources[left], combinations, rows, shifts)

    def _plan(self, labels: Labels) -> ShrinkPlan:
        _, slots = np.unique(labels, return_index=True)
        sources = self._sources(labels, len(slots))
        single = np.bincount(labels) == 1
        rows, shifts = {}, {}
        combine, constant = np.ones(self.coupled.units), np.zeros(self.coupled.units)
        if self.rule is not None and self.first is not None:
            merge = merge_groups(self.vectors, self.amounts, self.rule, labels)
            combine = np.where(single[labels], 1, merge.combine[np.arange(len(labels)), labels])
            constant = np.where(single[labels], 0, merge.constant)
            rows, shifts = self._written(self.first, merge.weights, sources, single)
        combinations = {}
        for name, (factor, own) in self.readings.items():
            there, shift = factor[sources][labels], own[sources][labels]
            ratio = np.where(single[labels], 1, _ratio(factor, there)) * combine
            matrix = np.zeros((len(labels), len(slots)))
            matrix[np.arange(len(labels)), labels] = ratio
            rest = factor * constant + own - ratio * shift
            small = np.abs(rest) <= 1e-12 * (np.abs(own) + np.abs(ratio * shift))
            combinations[name] = Combination(matrix, np.where(small, 0, rest))  # rounding asks for no bias
        return ShrinkPlan(self.coupled, slots, sources, combinations, rows, shifts)

    def _sources(self, labels: Labels, count: int) -> Int[np.ndarray, " new"]:
        """The unit of each group whose parameters stand for it: where factors differ, a large one."""
        score = norms(self.vectors)
        for factor, _ in self.readings.values():
            score = score * np.abs(factor)
        if self.first is not None:
            for factor in self.first.factors.values():
                score = np.where(factor == 0, 0, score)
        if self.rule is None and not self.homogeneous:
            mean = np.stack([self.vectors[labels == group].mean(axis=0) for group in range(count)])
            score = -norms(self.vectors - mean[labels])
        members = [np.flatnonzero(labels == group) for group in range(count)]
        return np.array([group[score[group].argmax()] for group in members])

    def _written(
        self, form: Form, wanted: Float[np.ndarray, "new inputs"], sources: np.ndarray, single: np.ndarray
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Rows (of batch norms their weights) and biases with which the folded rows are the wanted ones.

        Single units stay as they are. A row behind which batch norm stands keeps its norm, so that the statistics hold.
        """
        rows, shifts, start = {}, {}, 0
        names = [name for name, _ in form.parts]
        constant = form.constant[sources]
        for key, part in form.parts.items():
            name, factor = key[0], form.factors[key][sources]
            new = wanted[:, start : start + part.shape[1]]
            start += part.shape[1]
            if name in rows:  # its rows arrive in two ways
                continue
            keeps = single | (factor == 0)  # rows that are multiplied by zero are as good as any
            if key in form.normed and names.count(name) == 1:
                norm, owed = form.normed[key]
                gain = np.where(keeps, 1, _ratio(norms(new), norms(part[sources])))
                gain = np.where(gain > 0, gain, 1)
                rows[norm] = gain[:, None] * self._own_rows(norm)[sources]
                factor, constant = factor * gain, constant + (gain - 1) * owed[sources]
            new = new / np.where(factor == 0, 1, factor)[:, None]
            rows[name] = np.where(keeps[:, None], self._own_rows(name)[sources], new)
        if start < wanted.shape[1]:
            knob = min(form.knobs, key=lambda knob: (np.any(knob.factor[sources] == 0), knob.rank))
            factor = knob.factor[sources]
            change = np.where(single, 0, wanted[:, -1] - constant)
            before = bias_of(self._modules[knob.module])
            old = 0 if before is None else before[self.coupled.channels[knob.module][sources]]
            shifts[knob.module] = old + _ratio(change, factor)
        return rows, shifts

    def _own_rows(self, name: str) -> Float[np.ndarray, "units _"]:
        """The rows that a layer has for the set's units, or the weights of a batch norm."""
        return matrix_of(self._modules[name])[self.coupled.channels[name]].reshape(self.coupled.units, -1)

    @property
    def sizes(self) -> Float[np.ndarray, " units"]:
        """Output times input weight of each unit, by which pruning goes."""
        return self.amounts * norms(self.vectors)

    @property
    def pruning_costs(self) -> Float[np.ndarray, " units"]:
        """What each step of pruning costs, a unit of each block: its share of the squares of all sizes."""
        squares = np.sum([np.sort(self.sizes[block] ** 2) for block in self.blocks], axis=0)
        return squares[:-1] / max(float(squares.sum()), np.finfo(float).tiny)

    def largest(self, count: int) -> Int[np.ndarray, " new"]:
        """The units of largest output times input weight, so many in each block."""
        best = [block[np.argsort(-self.sizes[block], kind="stable")[:count]] for block in self.blocks]
        return np.sort(np.concatenate(best))

    def kept(self, kept: Int[np.ndarray, " new"]) -> ShrinkPlan:
        """Only some units, as they are."""
        combination = Combination(np.eye(self.coupled.units)[:, kept], np.zeros(self.coupled.units))
        return ShrinkPlan(self.coupled, kept, kept, dict.fromkeys(self.coupled.columns, combination))

    def pruned(self, count: int) -> ShrinkPlan:
        """Only the units of largest output times input weight, so many in each block."""
        return self.kept(self.largest(count))


def _directions(stages: list[np.ndarray], readings: dict[str, Reading]) -> Float[np.ndarray, "units inputs"]:
    """The directions of all stages side by side, with the amplitude that arrives."""
    arrives = np.mean([np.abs(factor) for factor, _ in readings.values()], axis=0) / np.sqrt(len(stages))
    amplitudes = [norms(rows) for rows in stages]
    return np.concatenate(
        [rows * (arrives / np.where(r > 0, r, 1))[:, None] for rows, r in zip(stages, amplitudes, strict=True)], axis=1
    )


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """One over the other, 0 where that is 0."""
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator != 0)


def _own(module: nn.Module) -> Float[np.ndarray, "channels _"]:
    """All numbers of each channel of a module."""
    if isinstance(module, _BatchNorm):
        return np.stack(norm_factor(module), axis=1)
    matrix, bias = matrix_of(module), bias_of(module)
    rows = matrix.reshape(len(matrix), -1)
    return rows if bias is None else np.concatenate([rows, bias[:, None]], axis=1)


def _lifted(stages: list[np.ndarray]) -> Float[np.ndarray, "units inputs"]:
    """Vectors that point the same way only if the rows are equal: with a further input of the size of the mean row."""
    parts = []
    for rows in stages:
        size = norms(rows).mean()
        parts += [rows / (size if size > 0 else 1), np.ones((len(rows), 1))]
    return np.concatenate(parts, axis=1)


def _amounts(coupled: ChannelSet, model: nn.Module) -> Float[np.ndarray, " units"]:
    """Norm of the columns of each unit over all readers."""
    squares = np.zeros(coupled.units)
    for name, columns in coupled.columns.items():
        module = model.get_submodule(name)
        matrix, groups = matrix_of(module), groups_of(module)
        grouped = matrix.reshape(groups, len(matrix) // groups, *matrix.shape[1:])
        size = np.einsum("goie,goie->gi", grouped, grouped).reshape(-1)
        squares += size[columns].sum(axis=1)
    return np.sqrt(squares)


def _split(labels: Labels, count: int) -> Labels:
    """Groups split until there are so many: the last member of the largest group becomes one of its own."""
    labels = labels.copy()
    while int(labels.max()) + 1 < count:
        largest = np.bincount(labels).argmax()
        labels[np.flatnonzero(labels == largest)[-1]] = labels.max() + 1
    return renumber(labels)
