"""The units of a set as vectors, the order in which they merge, and the plan that a grouping of them makes."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from torch import nn

from ...measure.chance import chance_cosine
from ...measure.lines import LEAST_COSINE
from ...measure.similarity import norms
from ...reduction.merge import Rule, merge_groups
from ...reduction.tree import Tree, merging_tree, renumber
from .forms import Form, Forms
from .graph import ChannelSet
from .matrix import bias_of, groups_of, matrix_of
from .shrink import Combination, Plan
from .trace import Trace

Labels = Int[np.ndarray, " units"]


@dataclass(frozen=True)
class Merging:
    """A set whose units are to be merged.

    Attributes:
        one: the set.
        forms: what its channels are made of.
        rule: by which its units merge; nothing where several stages decide.
        vectors: of each unit, whose directions are compared and whose norm is its weight.
        amounts: size of each unit's output weights.
        raw: rows of the layers that make it, before batch norm.
        biases: of the modules that can move a constant.
    """

    one: ChannelSet
    forms: Forms
    rule: Rule | None
    vectors: Float[np.ndarray, "units inputs"]
    amounts: Float[np.ndarray, " units"]
    raw: dict[str, Float[np.ndarray, "units _"]] = field(repr=False)
    biases: dict[str, Float[np.ndarray, " _"]] = field(repr=False)

    @classmethod
    def of(cls, one: ChannelSet, model: nn.Module, trace: Trace) -> "Merging":
        """The units of a set with the weights that a model has now."""
        forms = Forms(one, model, trace)
        rule = forms.rule
        if rule is not None or not forms.homogeneous:
            forms = Forms(one, model, trace, scaled=False)
        if rule is not None:
            vectors = forms.stages[0]
        elif forms.homogeneous:
            vectors = _directions(forms)
        else:
            vectors = _lifted(forms.stages)
        names = [knob.module for knob in forms.first.knobs] if forms.first else []
        biases = {name: bias_of(model.get_submodule(name)) for name in names}
        known = {name: value for name, value in biases.items() if value is not None}
        raw = {name: matrix_of(model.get_submodule(name))[one.channels[name]] for name in one.producers}
        raw = {name: rows.reshape(one.units, -1) for name, rows in raw.items()}
        return cls(one, forms, rule, vectors, _amounts(one, model), raw, known)

    @property
    def blocks(self) -> list[Int[np.ndarray, " members"]]:
        """The units of each block."""
        return [np.flatnonzero(self.one.blocks == block) for block in range(int(self.one.blocks.max()) + 1)]

    @property
    def full(self) -> int:
        """Number of units of a block."""
        return len(self.blocks[0])

    @cached_property
    def trees(self) -> list[Tree]:
        """In which order the units of each block merge."""
        oriented = self.rule is None or self.rule.oriented
        return [merging_tree(self.vectors[block], oriented) for block in self.blocks]

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
        found = [tree.groups_within(cosine) for tree in self.trees]
        count = max(int(labels.max()) + 1 for labels in found)
        return self._joined([_split(labels, count) for labels in found])

    def _joined(self, found: list[Int[np.ndarray, " members"]]) -> Labels:
        labels = np.zeros(self.one.units, int)
        for k, (block, groups) in enumerate(zip(self.blocks, found, strict=True)):
            labels[block] = groups + k * self.one.units
        return renumber(labels)

    def plan(self, labels: Labels) -> Plan:
        """One new unit for each group."""
        _, slots = np.unique(labels, return_index=True)
        sources = self._sources(labels, len(slots))
        single = np.bincount(labels) == 1
        rows, shifts = {}, {}
        combine, constant = np.ones(self.one.units), np.zeros(self.one.units)
        if self.rule is not None and self.forms.first is not None:
            merge = merge_groups(self.vectors, self.amounts, self.rule, labels)
            combine = np.where(single[labels], 1, merge.combine[np.arange(len(labels)), labels])
            constant = np.where(single[labels], 0, merge.constant)
            rows, shifts = self._written(self.forms.first, merge.weights, sources, single)
        combinations = {}
        for name, reading in self.forms.readings.items():
            there, shift = reading.factor[sources][labels], reading.constant[sources][labels]
            ratio = np.divide(reading.factor, there, out=np.zeros(len(labels)), where=there != 0)
            ratio = np.where(single[labels], 1, ratio) * combine
            matrix = np.zeros((len(labels), len(slots)))
            matrix[np.arange(len(labels)), labels] = ratio
            rest = reading.factor * constant + reading.constant - ratio * shift
            small = np.abs(rest) <= 1e-12 * (np.abs(reading.constant) + np.abs(ratio * shift))
            combinations[name] = Combination(matrix, np.where(small, 0, rest))  # rounding asks for no bias
        return Plan(self.one, slots, sources, combinations, rows, shifts)

    def _sources(self, labels: Labels, count: int) -> Int[np.ndarray, " new"]:
        """The unit of each group whose parameters stand for it: where factors differ, a large one."""
        score = norms(self.vectors)
        for reading in self.forms.readings.values():
            score = score * np.abs(reading.factor)
        if self.forms.first is not None:
            for factor in self.forms.first.factors.values():
                score = np.where(factor == 0, 0, score)
        if self.rule is None and not self.forms.homogeneous:
            mean = np.stack([self.vectors[labels == group].mean(axis=0) for group in range(count)])
            score = -norms(self.vectors - mean[labels])
        members = [np.flatnonzero(labels == group) for group in range(count)]
        return np.array([group[score[group].argmax()] for group in members])

    def _written(
        self, form: Form, wanted: Float[np.ndarray, "new inputs"], sources: np.ndarray, single: np.ndarray
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Rows and biases with which the folded rows are the wanted ones; single units stay as they are."""
        rows, shifts, start = {}, {}, 0
        for name, part in form.parts.items():
            factor = form.factors[name][sources]
            new = wanted[:, start : start + part.shape[1]]
            start += part.shape[1]
            keeps = single | (factor == 0)  # rows that are multiplied by zero are as good as any
            new = new / np.where(factor == 0, 1, factor)[:, None]
            rows[name] = np.where(keeps[:, None], self.raw[name][sources], new)
        if start < wanted.shape[1]:
            knob = min(form.knobs, key=lambda knob: (np.any(knob.factor[sources] == 0), knob.rank))
            factor = knob.factor[sources]
            change = np.where(single, 0, wanted[:, -1] - form.constant[sources])
            before = self.biases.get(knob.module)
            old = 0 if before is None else before[self.one.channels[knob.module][sources]]
            shifts[knob.module] = old + np.divide(change, factor, out=np.zeros(len(factor)), where=factor != 0)
        return rows, shifts

    def pruned(self, count: int) -> Plan:
        """Only the units of largest output times input weight, so many in each block."""
        size = self.amounts * norms(self.vectors)
        best = [block[np.argsort(-size[block], kind="stable")[:count]] for block in self.blocks]
        kept = np.sort(np.concatenate(best))
        combine = np.zeros((self.one.units, len(kept)))
        combine[kept, np.arange(len(kept))] = 1
        combination = Combination(combine, np.zeros(self.one.units))
        return Plan(self.one, kept, kept, dict.fromkeys(self.one.columns, combination))


def _directions(forms: Forms) -> Float[np.ndarray, "units inputs"]:
    """The directions of all stages side by side, with the amplitude that arrives."""
    parts = [rows / np.where(norms(rows) > 0, norms(rows), 1)[:, None] for rows in forms.stages]
    arrives = np.mean([np.abs(reading.factor) for reading in forms.readings.values()], axis=0)
    return np.concatenate(parts, axis=1) / np.sqrt(len(parts)) * arrives[:, None]


def _lifted(stages: list[np.ndarray]) -> Float[np.ndarray, "units inputs"]:
    """Vectors that point the same way only if the rows are equal: with a further input of the size of the mean row."""
    parts = []
    for rows in stages:
        size = norms(rows).mean()
        parts += [rows / (size if size > 0 else 1), np.ones((len(rows), 1))]
    return np.concatenate(parts, axis=1)


def _amounts(one: ChannelSet, model: nn.Module) -> Float[np.ndarray, " units"]:
    """Norm of the columns of each unit over all readers."""
    squares = np.zeros(one.units)
    for name, columns in one.columns.items():
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
