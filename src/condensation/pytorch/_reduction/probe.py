"""A trial that each set must pass: units that its rule calls the same are planted in a copy of the model and merged.

Nothing of the output may change then. That checks by numbers what was read from the graph (which columns read which
channel, what stands between, by which rule units merge), as far as the planted units show it: factors of their own,
signs where lines are merged. It also shows that the model's own code runs with another number of channels. There are
two copies: the weights with a little noise on the example inputs, and with much noise on random ones; more of these
where the planted units have no effect.
"""

from collections.abc import Iterator
from copy import deepcopy

import jax.numpy as jnp
import numpy as np
import torch
from jaxtyping import Float
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ...activations import Function
from ...reduction._tree import renumber
from .forms import homogeneity
from .graph import ChannelSet
from .matrix import array, matrix_of, to_weight
from .merging import Labels, Merging
from .recall import Recall
from .shrink import borrowed, cut
from .trace import ModelInputs, Trace, activation, call, mapped, random_inputs, tensors

LITTLE, MUCH = 0.05, 1.0  # noise relative to a parameter's own size
SEED = 0
MOST = 8  # copies
ERRORS = (RuntimeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError, AttributeError)

Factors = Float[np.ndarray, " pairs"]


class Copy:
    """A noisy copy of a model in float64 (in its own precision where its code does not run in that), and inputs."""

    def __init__(self, model: nn.Module, inputs: ModelInputs, noise: float, random: torch.Generator) -> None:
        self.model = deepcopy(model).requires_grad_(False).to(torch.float64)
        self.inputs = mapped(inputs, lambda value: value.double() if value.is_floating_point() else value)
        self._recall = Recall()
        self._disturb(noise, random)
        try:
            self.before = self.run(self.model)
        except ERRORS:
            self.model, self.inputs = deepcopy(model).requires_grad_(False), inputs
            self._recall = Recall()
            self._disturb(noise, random)
            self.before = self.run(self.model)
        self.exact = self.before.dtype == torch.float64

    def _disturb(self, noise: float, random: torch.Generator) -> None:
        for value in (*self.model.parameters(), *self.model.buffers()):
            if value.is_floating_point():
                value.copy_(torch.nan_to_num(value, nan=1.0, posinf=1.0, neginf=1.0))
        for value in self.model.parameters():
            if value.is_floating_point() and type(value) is nn.Parameter:
                size = float(value.float().square().mean().sqrt()) or 1.0
                drawn = torch.randn(value.shape, generator=random, dtype=torch.float32).to(value.device, value.dtype)
                value += noise * size * drawn

    def run(self, model: nn.Module) -> torch.Tensor:
        """All outputs of a model in a row."""
        torch.manual_seed(SEED)  # the caller keeps the state of the generators
        with torch.no_grad(), self._recall.of(model):
            return torch.nan_to_num(torch.cat([tensor.flatten() for tensor in tensors(call(model, self.inputs))]))


class PlantedProbe:
    """Copies of a model in which units are planted."""

    def __init__(self, model: nn.Module, inputs: ModelInputs) -> None:
        self.model, self.inputs, self.random = model, inputs, torch.Generator().manual_seed(SEED)
        self.copies = [Copy(model, inputs, LITTLE, self.random)]
        self._draw()

    def _draw(self) -> None:
        try:
            self.copies.append(Copy(self.model, random_inputs(self.inputs, self.random), MUCH, self.random))
        except ERRORS:  # a model may ask more of its inputs than their shapes
            self.copies.append(Copy(self.model, self.inputs, LITTLE, self.random))

    def passed(self, coupled: ChannelSet, trace: Trace) -> Merging | str:
        """The merging of a set that passes: by its rule, or else of copies only; or why none does."""
        problem = ""
        for copies in (False, True):
            try:
                problem = self._problem(coupled, trace, copies)
                if not problem:
                    return Merging(coupled, self.model, trace, copies)
            except ERRORS as error:
                line = (str(error).strip().splitlines() or ["without a message"])[0]
                problem = f"the model does not run with fewer of its channels ({type(error).__name__}: {line})"
        return problem

    def _problem(self, coupled: ChannelSet, trace: Trace, copies: bool) -> str:
        effect = 0.0
        for place, copy in enumerate(self.copies, start=1):
            outcome = self._effect(copy, coupled, trace, copies)
            if isinstance(outcome, str):
                return outcome
            effect = max(effect, outcome)
            if effect == 0 and place == len(self.copies) < MOST:  # units that are asleep may wake up in another copy
                self._draw()
        return "" if effect > 0 else "it could not be tried: its units do nothing on inputs like the example's"

    def _effect(self, copy: Copy, coupled: ChannelSet, trace: Trace, copies: bool) -> float | str:
        """How much planted units change a copy's outputs; or what is wrong when they are merged.

        The first proposal that the rule accepts and that has an effect decides: those behind it are special cases of
        it, with factors of one.
        """
        labels, pairs = _pairs(coupled)
        effect = 0.0
        for factors in _proposals(coupled, Merging(coupled, copy.model, trace, copies), len(pairs)):
            with borrowed(copy.model, coupled.channels) as planted:
                _plant(planted, coupled, trace, pairs, *factors)
                merging = Merging(coupled, planted, trace, copies)
                alike = [merging.likeness(pair)[0, 1] for pair in pairs]
                if min(alike) < 1 - 1e-9:
                    continue  # the rule does not say that these are the same
                exact = copy.run(planted)
                cut(planted, [merging.plan(labels)])
                merged = copy.run(planted)
            if merged.shape != exact.shape:
                return "its channels are part of the model's output"
            changed = float((exact - copy.before).abs().max())
            effect = max(effect, changed)
            near, floor = (1e-7, 1e-12) if copy.exact else (1e-3, 1e-4)
            if float((merged - exact).abs().max()) > max(near * changed, floor * float(exact.abs().max())):
                return "merging equal channels of it changes the output: something else reads or mixes them"
            if effect > 0:
                break
        return effect


def _pairs(coupled: ChannelSet) -> tuple[Labels, np.ndarray]:
    """An odd number of random pairs in each block, so that no regular cut of the channels stays as it was."""
    rng = np.random.default_rng(SEED)
    labels, pairs = np.arange(coupled.units), []
    for block in range(int(coupled.blocks.max()) + 1):
        members = rng.permutation(np.flatnonzero(coupled.blocks == block))
        count = min(max(1, len(members) // 4) | 1, len(members) // 2)
        for pair in members[: 2 * count].reshape(-1, 2):
            labels[pair] = pair.min()
            pairs.append((pair[0], pair[1]))
    return renumber(labels), np.array(pairs)


def _proposals(coupled: ChannelSet, merging: Merging, count: int) -> Iterator[tuple[Factors, dict[str, Factors]]]:
    """Factors of the planted units' rows, and of what each norm and depthwise convolution does: many, few, none."""
    rng = np.random.default_rng(SEED)
    ones = np.ones(count)
    lines = merging.rule is not None and not merging.rule.oriented
    rows = rng.uniform(0.5, 2, count) if merging.homogeneous else ones
    rows = rows * np.where(np.arange(count) % 2 == 0, -1, 1) if lines else rows
    own = {name: ones if name in coupled.producers else rng.uniform(0.5, 2, count) for name in coupled.channels}
    plain = dict.fromkeys(own, ones)
    for factors in (rows, ones) if np.any(rows != 1) else (ones,):
        if len(coupled.producers) < len(own):
            yield factors, own
        yield factors, plain


def _plant(
    model: nn.Module, coupled: ChannelSet, trace: Trace, pairs: np.ndarray, rows: Factors, own: dict[str, Factors]
) -> None:
    """Make a unit of each pair a multiple of the other, in all modules that the set passes."""
    arriving: dict[int, Factors] = {}
    given = {name: np.ones(len(pairs)) for name in coupled.channels}
    for place, op in enumerate(trace.ops):  # what is before a place comes before it
        before = next((arriving[k] for k in op.inputs if k in arriving), None)
        if op.kind == "module" and op.name in coupled.producers:
            arriving[place] = rows
        elif op.kind == "module" and before is not None and op.name in coupled.channels:
            given[op.name] = before
            scales = not isinstance(model.get_submodule(op.name), nn.PReLU)
            arriving[place] = before * own[op.name] if scales else before
        elif before is not None and (op.kind != "module" or isinstance(model.get_submodule(op.name), nn.PReLU)):
            arriving[place] = before if op.kind != "activation" else _activated(before, activation(op.name, op.numbers))
    for name, where in coupled.channels.items():
        module, source, target = model.get_submodule(name), where[pairs[:, 0]], where[pairs[:, 1]]
        factors = {"weight": own[name], "bias": given[name] * own[name]}
        if name in coupled.producers:
            factors = {"weight": rows, "bias": rows}
        elif isinstance(module, nn.PReLU):
            factors = {}
        elif isinstance(module, _BatchNorm):
            factors["running_mean"] = given[name]
        _copy_channels(module, source, target, factors)


def _activated(factor: Factors, function: Function) -> Factors:
    """What an activation makes of factors of its input."""
    there, back = (float(function(jnp.asarray(z))) for z in (1.0, -1.0))
    return np.abs(factor) ** homogeneity(function) * np.where((factor < 0) & (abs(there + back) < 1e-6), -1, 1)


def _copy_channels(module: nn.Module, source: np.ndarray, target: np.ndarray, factors: dict[str, Factors]) -> None:
    """Make some channels of a module multiples of others."""
    for name, value in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        if value.ndim > 0:
            rows = matrix_of(module) if name == "weight" else array(value)[:, None, None]
            rows[target] = rows[source] * factors.get(name, np.ones(len(source)))[:, None, None]
            value.data.copy_(torch.as_tensor(to_weight(rows, module) if name == "weight" else rows[:, 0, 0]))
