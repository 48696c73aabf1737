"""A trial that each set must pass: equal channels are planted in a copy of the model and merged; nothing may change.

It checks what was read from the graph (which columns read which channel, what stands between) by numbers, and that the
model's own code runs with another number of channels. Weights get some noise first, so that zeros hide nothing.
"""

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn

from ...reduction.tree import renumber
from .graph import ChannelSet
from .merging import Labels, Merging
from .shrink import shrink
from .trace import Inputs, Trace, call, tensors

NOISE = 0.05  # relative to a parameter's own size
SEED = 0


def mapped(value: Any, change: Any) -> Any:
    """Inputs with each floating-point tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return type(value)(mapped(item, change) for item in value) if isinstance(value, list | tuple) else value


class Trial:
    """A noisy copy of a model in float64 (in its own precision where its code does not run in that)."""

    def __init__(self, model: nn.Module, inputs: Inputs) -> None:
        self.random = torch.Generator().manual_seed(SEED)
        self.model, self.inputs = self._copy(model, inputs, torch.float64), self._varied(inputs, torch.float64)
        try:
            self._run(self.model)
        except (RuntimeError, TypeError, ValueError):
            self.model, self.inputs = self._copy(model, inputs, None), self._varied(inputs, None)
        self.before = self._run(self.model)
        self.exact = self.before.dtype == torch.float64

    def _copy(self, model: nn.Module, inputs: Inputs, dtype: torch.dtype | None) -> nn.Module:
        copy = deepcopy(model).requires_grad_(False)
        copy = copy if dtype is None else copy.to(dtype)
        for value in (*copy.parameters(), *copy.buffers()):
            if value.is_floating_point():
                value.copy_(torch.nan_to_num(value, nan=1.0, posinf=1.0, neginf=1.0))
        for value in copy.parameters():
            if value.is_floating_point() and type(value) is nn.Parameter:
                size = float(value.float().square().mean().sqrt()) or 1.0
                value += NOISE * size * self._noise(value)
        return copy

    def _noise(self, value: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(value.shape, generator=self.random, dtype=torch.float32)
        return noise.to(value.device, value.dtype)

    def _varied(self, inputs: Inputs, dtype: torch.dtype | None) -> Inputs:
        """The inputs; where all entries are equal, random ones."""

        def vary(value: torch.Tensor) -> torch.Tensor:
            value = value.detach() if dtype is None else value.detach().to(dtype)
            constant = value.numel() > 1 and bool((value == value.flatten()[0]).all())
            return self._noise(value) if constant else value

        return mapped(inputs, vary)

    def _run(self, model: nn.Module) -> torch.Tensor:
        torch.manual_seed(SEED)  # the caller keeps the state of the generators
        with torch.no_grad():
            return torch.nan_to_num(torch.cat([tensor.flatten() for tensor in tensors(call(model, self.inputs))]))

    def problem(self, one: ChannelSet, trace: Trace) -> str:
        """Why a set fails the trial, or nothing."""
        labels, pairs = self._pairs(one)
        planted = deepcopy(self.model)
        for name, where in one.channels.items():
            _copy_channels(planted.get_submodule(name), where[pairs[:, 0]], where[pairs[:, 1]])
        exact = self._run(planted)
        small = shrink(planted, [Merging.of(one, planted, trace).plan(labels)])
        try:
            merged = self._run(small)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            return f"the model does not run with fewer of its channels ({type(error).__name__}: {_line(error)})"
        if merged.shape != exact.shape:
            return "its channels are part of the model's output"
        effect = float((exact - self.before).abs().max())
        floor = float(exact.abs().max()) * (1e-10 if self.exact else 1e-4)
        if float((merged - exact).abs().max()) <= max(1e-4 * effect, floor):
            return ""
        return "merging equal channels of it changes the output: something else reads or mixes them"

    def _pairs(self, one: ChannelSet) -> tuple[Labels, np.ndarray]:
        """An odd number of random pairs in each block, so that no regular cut of the channels stays as it was."""
        rng = np.random.default_rng(SEED)
        labels, pairs = np.arange(one.units), []
        for block in range(int(one.blocks.max()) + 1):
            members = rng.permutation(np.flatnonzero(one.blocks == block))
            count = min(max(1, len(members) // 4) | 1, len(members) // 2)
            for pair in members[: 2 * count].reshape(-1, 2):
                labels[pair] = pair.min()
                pairs.append((pair[0], pair[1]))
        return renumber(labels), np.array(pairs)


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["without a message"])[0]


def _copy_channels(module: nn.Module, source: np.ndarray, target: np.ndarray) -> None:
    """Make some channels of a module equal to others."""
    transposed = bool(getattr(module, "transposed", False))
    groups = int(getattr(module, "groups", 1))
    for name, value in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
        if name == "weight" and transposed and groups != len(value):
            outs = value.shape[1]
            inputs = len(value) // groups
            for one, other in zip(source, target, strict=True):  # both in the same group
                rows = slice(one // outs * inputs, (one // outs + 1) * inputs)
                value.data[rows, other % outs] = value.data[rows, one % outs]
        elif value.ndim > 0:
            value.data[target] = value.data[source]
