r"""The effective network: the units of one line become one.

The error of a reduced network $\hat f$ on samples is *centred*, so that a constant does not hide it:
$|(\hat f - \overline{\hat f}) - (f - \overline f)| / |f - \overline f|$ over all samples and outputs. It stands beside
two others of the same size: the untrained network's own reduction, which must fail if it is training that condensed the
units, and magnitude pruning, which keeps the units of largest $|a_j| |w_j|$ and drops the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from .._serialization import coerce
from ..errors import InputError, check_whole, unknown_name
from ..measure import chance_cosine
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import norms
from ..networks import Model
from ._merge import Merge, layer_rule, merge_groups, mergeable, output_weights, replace_units, unit_weights, unrolled
from ._search import LayerSizes, merging_order, smallest
from ._tree import merging_tree


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced network, and how well it does.

    Attributes:
        model: the reduced network. A residual network becomes a concatenated one.
        groups: for each reduced layer the new unit of each old unit.
        centred_error: relative error of the output on the given samples, a constant that all samples share left out;
            None without samples, NaN where the output is constant on them.
        untrained_error: centred error of the untrained network reduced to the same sizes; None without one, or where
            its output is zero (an antisymmetric initialization).
        pruned_error: centred error of magnitude pruning to the same sizes.
    """

    model: Model
    groups: dict[str, Int[np.ndarray, " units"]]
    centred_error: float | None
    untrained_error: float | None
    pruned_error: float | None

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Units of each reduced layer, before and after."""
        return {name: (len(labels), int(labels.max()) + 1) for name, labels in self.groups.items()}


def reduce(
    model: Model,
    x: Float[np.ndarray, "samples ..."] | None = None,
    *,
    threshold: float | None = None,
    units: int | Mapping[str, int] | None = None,
    error: float | None = None,
    layers: Sequence[str] | None = None,
    untrained: Model | None = None,
) -> Reduction:
    """Merge the units of one line (of one orientation for relu) into one effective unit, layer by layer.

    Args:
        model: a network with its parameters, for instance ``trajectory.model(step, seed)``.
        x: samples on which the error is measured.
        threshold: the cosine that decides which units are of one line, as in ``find_lines``: by default 0.95, or more
            where chance alone would reach it.
        units: instead, the number of units that are left in each layer, or in each by name.
        error: instead, the largest centred error on ``x`` that is allowed. The smallest network within it is looked
            for along the order in which units are merged, by doubling and bisection of their total number, and then
            by taking single units away, layer by layer.
        layers: the layers to reduce; all hidden layers (of a ResNet: all dense ones) if not given.
        untrained: the network before training, for the control.

    >>> from condensation import Dense
    >>> weights = {"dense1.weight": np.array([[1.0, 2], [2, 4], [0, 1]]), "dense1.bias": np.zeros(3)}
    >>> model = Model(Dense((2, 3, 1), "relu"), weights | {"output.weight": np.array([[3.0, 1, 1]])})
    >>> reduced = reduce(model, np.random.default_rng(0).normal(size=(20, 2)))
    >>> reduced.groups["dense1"], reduced.centred_error < 1e-15
    (array([0, 0, 1]), True)
    """
    threshold, error = (
        coerce(float | None, value, name) for value, name in ((threshold, "threshold"), (error, "error"))
    )
    check_choice(threshold, units, error)
    if error is not None and x is None:
        raise InputError("an allowed error needs samples x on which it is measured")
    if x is not None and not np.isfinite(x).all():
        raise InputError("the samples x hold NaN or Inf")
    work = _Reducer(unrolled(model), layers)
    if units is not None:
        groups = work.cut(work.checked(units))
    elif error is not None and x is not None:
        groups = work.cut(_smallest(work, x, error))
    else:
        groups = work.within(threshold)
    reduced = work.merged(groups)
    if x is None:
        return Reduction(reduced, groups, None, None, None)
    sizes = {name: int(labels.max()) + 1 for name, labels in groups.items()}
    control = None
    if untrained is not None and not _is_rounding(untrained, x):
        before = _Reducer(unrolled(untrained), layers)
        control = centred_error(untrained(x), before.merged(before.cut(before.checked(sizes)))(x))
    outputs = model(x)
    pruned = centred_error(outputs, work.pruned(sizes)(x))
    return Reduction(reduced, groups, centred_error(outputs, reduced(x)), control, pruned)


def check_choice(threshold: float | None, units: Any, error: float | None) -> None:
    """Refuse more than one choice of what decides, and numbers that cannot."""
    if sum(choice is not None for choice in (threshold, units, error)) > 1:
        raise InputError("one of threshold, units and error decides, not several")
    if threshold is not None and not 0 < threshold <= 1:
        raise InputError(f"threshold is a cosine above 0 and at most 1, not {threshold!r}")
    if error is not None and not error >= 0:
        raise InputError(f"an allowed error is a number of at least 0, not {error!r}")


def _is_rounding(model: Model, x: np.ndarray) -> bool:
    """Whether the output is nothing but rounding: output weights of an antisymmetric initialization cancel."""
    name = "output.weight"
    together = Model(model.network, model.parameters | {name: np.abs(model.parameters[name])})
    return bool(np.abs(model(x)).max() < 1e3 * np.finfo(model(x).dtype).eps * np.abs(together(x)).max())


def centred_error(outputs: Float[np.ndarray, "samples outputs"], others: Float[np.ndarray, "samples outputs"]) -> float:
    """Relative distance of two outputs, each output's mean over the samples taken away first; NaN for a constant.

    >>> centred_error(np.array([[0.0], [1.0]]), np.array([[5.0], [6.0]]))
    0.0
    """
    first, second = (np.asarray(value, float) - np.mean(value, axis=0, dtype=float) for value in (outputs, others))
    size = np.linalg.norm(first)
    return float(np.linalg.norm(second - first) / size) if size > 0 else float("nan")


class _Reducer:
    """A model on the way to a smaller one: the trees of its layers, and what a cut of them makes."""

    def __init__(self, model: Model, layers: Sequence[str] | None) -> None:
        self.model = model
        for name, value in model.parameters.items():
            if not np.isfinite(value).all():
                raise InputError(f"the parameter {name} holds NaN or Inf")
        known = mergeable(model.network)
        for name in layers or ():
            if name not in known:
                raise unknown_name("layer that can be reduced", name, known)
        self.rules = {name: layer_rule(model.network, name) for name in (known if layers is None else layers)}
        self.weights = {name: unit_weights(model, model.layer(name)) for name in self.rules}
        self.amounts = {name: norms(output_weights(model, name).astype(float)) for name in self.rules}
        self.trees = {name: merging_tree(self.weights[name], rule.oriented) for name, rule in self.rules.items()}

    def checked(self, units: int | Mapping[str, int]) -> LayerSizes:
        """The number of units that each layer is left with."""
        wanted: LayerSizes = dict(units) if isinstance(units, Mapping) else dict.fromkeys(self.rules, units)
        for name, count in wanted.items():
            if name not in self.rules:
                raise unknown_name("layer that can be reduced", name, self.rules)
            check_whole(f"units of {name}", count)
            if count > len(self.weights[name]):
                raise InputError(f"{name} has {len(self.weights[name])} units and cannot be reduced to {count}")
        return {name: wanted.get(name, len(weights)) for name, weights in self.weights.items()}

    def cut(self, sizes: LayerSizes) -> dict[str, np.ndarray]:
        """The groups of each layer."""
        return {name: tree.groups(sizes[name]) for name, tree in self.trees.items()}

    def within(self, threshold: float | None) -> dict[str, np.ndarray]:
        """The groups of each layer by a cosine."""
        chance = {name: chance_cosine(weights.shape[1]) for name, weights in self.weights.items()}
        return {
            name: tree.groups_within(threshold or max(LEAST_COSINE, chance[name])) for name, tree in self.trees.items()
        }

    def merged(self, groups: dict[str, np.ndarray]) -> Model:
        """The model with each group as one unit."""
        return replace_units(self.model, self._merges(groups))

    def in_place(self, groups: dict[str, np.ndarray]) -> Model:
        """The function of ``merged`` with as many units as before, so that one compiled network computes many.

        The first unit of a group stands for it, nothing reads the others.
        """
        merges = self._merges(groups)
        for name, merge in merges.items():
            _, first = np.unique(groups[name], return_index=True)
            weights, combine = self.weights[name].copy(), np.zeros((len(groups[name]), len(groups[name])))
            weights[first], combine[:, first] = merge.weights, merge.combine
            merges[name] = Merge(weights, combine, merge.constant)
        return replace_units(self.model, merges)

    def _merges(self, groups: dict[str, np.ndarray]) -> dict[str, Merge]:
        return {
            name: merge_groups(self.weights[name], self.amounts[name], rule, groups[name])
            for name, rule in self.rules.items()
        }

    def pruned(self, sizes: LayerSizes) -> Model:
        """The model with only the units of largest output times input weight."""
        merges = {}
        for name, count in sizes.items():
            weights = self.weights[name]
            kept = np.sort(np.argsort(-self.amounts[name] * norms(weights), kind="stable")[:count])
            merges[name] = Merge(weights[kept], np.eye(len(weights))[:, kept], np.zeros(len(weights)))
        return replace_units(self.model, merges)


def _smallest(work: _Reducer, x: np.ndarray, allowed: float) -> LayerSizes:
    """Sizes of the smallest network within an error, along the merges of all layers by their relative cost."""
    exact = work.model(x)
    if not np.ptp(exact, axis=0).any():
        raise InputError("the network's output is constant on these samples: an error has nothing to be relative to")
    full = {name: len(weights) for name, weights in work.weights.items()}
    order = merging_order({name: tree.relative_costs for name, tree in work.trees.items()})
    return smallest(full, order, lambda sizes: centred_error(exact, work.in_place(work.cut(sizes))(x)) <= allowed)
