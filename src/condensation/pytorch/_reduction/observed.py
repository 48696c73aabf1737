"""What the given model does on the samples that are fitted to, seen in one pass: what is made of it has to match."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.utils._pytree import tree_leaves

from . import rows
from .elimination import Elimination, Reader, eliminate
from .gpu import drawn_on_the_cpu, fits
from .graph import _module_problem
from .matrix import groups_of, in_size, matrix_of
from .merging import Merging
from .samples import join, length
from .sets import ModelSets
from .trace import LAYERS, ModelInputs, call, mapped

SHARE = 8  # of the free memory, one part in so many may hold the largest activation of all samples


class Moments:
    """Mean and variance of each channel, over samples and positions, batch by batch."""

    def __init__(self) -> None:
        self.count, self.mean, self.var = 0, torch.zeros(()), torch.zeros(())

    def add(self, x: torch.Tensor) -> None:
        """Take in a batch; channels are the second axis."""
        x = x.detach().float()
        axes = [k for k in range(x.ndim) if k != 1]
        mean = x.mean(axes, keepdim=True)
        var = (x - mean).square_().mean(axes).double()
        mean = mean.flatten().double()
        count = x.numel() // x.shape[1]
        total, before = self.count + count, self.count / (self.count + count)
        shift = mean - self.mean
        self.var = before * self.var + (1 - before) * var + before * (1 - before) * shift**2
        self.mean, self.count = self.mean + (1 - before) * shift, total


class _Gram:
    """The sums of products of what a reader sees of a set's units."""

    def __init__(self, merging: Merging, name: str, module: nn.Module, constant: bool) -> None:
        self.name, self.module, self.constant = name, module, constant
        self.columns = merging.coupled.columns[name]
        units = merging.coupled.units
        self.squares, self.sum, self.rows = np.zeros((units, units)), np.zeros(units), 0
        self.group = self.columns[:, 0] // (in_size(module) // groups_of(module))

    def add(self, x: torch.Tensor, batch: int, batches: int) -> None:
        """Take in what the reader sees of a batch; positions of an image and of a flattened one are samples."""
        if isinstance(self.module, _ConvNd):
            x = (x if x.ndim == len(self.module.kernel_size) + 2 else x[None]).movedim(1, -1)
        flat = x.reshape(-1, x.shape[-1])
        places = rows.drawn(self.name, batch, batches, len(flat), len(self.columns))
        some = flat[places.to(x.device)][:, torch.as_tensor(self.columns, device=x.device)]
        some = some.movedim(2, 1).reshape(-1, some.shape[1]).double()
        self.squares += (some.T @ some).cpu().numpy()
        self.sum += some.sum(0).cpu().numpy()
        self.rows += len(some)

    @property
    def mean(self) -> np.ndarray:
        """The mean of each unit, where a constant is taken in; 0 else."""
        return self.sum / max(self.rows, 1) if self.constant else np.zeros(len(self.sum))

    def reader(self) -> Reader:
        """What is needed to eliminate units."""
        same = (self.group[:, None] == self.group) & (self.group >= 0)
        matrix, groups = matrix_of(self.module), groups_of(self.module)
        outs, ins = len(matrix) // groups, matrix.shape[1]
        cut = matrix.reshape(groups, outs, ins, -1)
        own = cut[self.group[:, None], :, self.columns % ins].reshape(len(self.columns), -1)
        gram = self.squares - self.rows * np.outer(self.mean, self.mean)
        return Reader(gram * same, own @ own.T * same, self.rows)


class Observed:
    """The given model on samples.

    Attributes:
        batches: the samples, in one batch where there is memory for that.
        layers: those that can be refitted, in the order in which they run, with their outputs at some places.
        moments: of what each batch norm sees.
    """

    def __init__(self, work: ModelSets, batches: Sequence[ModelInputs]) -> None:
        self.work, self.given = work, work.given
        once = [name for name, runs in work.trace.calls.items() if runs == 1]
        modules = {name: self.given.get_submodule(name) for name in once}
        self.order = once
        self.layers = [name for name in once if self._can_be_refitted(modules[name])]
        self.moments = {
            name: Moments()
            for name, module in modules.items()
            if isinstance(module, _BatchNorm) and module.running_mean is not None
        }
        self.normed = _normed(work)
        self._grams = {
            (name, key): _Gram(merging, key, modules[key], self.takes_constant(key))
            for name, merging in work.sets.items()
            for key in merging.coupled.columns
            if isinstance(modules.get(key), LAYERS)
        }
        self.places: dict[str, list[torch.Tensor]] = {name: [] for name in self.layers}
        self.samples: dict[str, list[torch.Tensor]] = {name: [] for name in self.layers}
        self.outputs: dict[str, list[torch.Tensor]] = {name: [] for name in self.layers}
        self._largest = 0
        self.batches = self._together(list(batches))
        readers: dict[str, list[_Gram]] = {}
        for (_, key), gram in self._grams.items():
            readers.setdefault(key, []).append(gram)
        with torch.no_grad():
            for k, batch in enumerate(self.batches):
                work.report("watching its layers", k / len(self.batches))
                with ExitStack() as hooks:
                    for name, module in modules.items():
                        look = partial(self._look, name, k, length(batch) or 1, readers.get(name, []))
                        hooks.enter_context(module.register_forward_hook(look, with_kwargs=True))
                    torch.manual_seed(k)  # what a model draws is the same in the sweep
                    call(self.given, batch)

    def _can_be_refitted(self, module: nn.Module) -> bool:
        dense = type(module).__name__ == "Linear" or (isinstance(module, _ConvNd) and not module.transposed)
        return dense and isinstance(module, LAYERS) and not _module_problem(module, self.given)

    def takes_constant(self, name: str) -> bool:
        """Whether a constant that a layer is given anew is taken in: by its bias, or by batch norm behind it."""
        return self.given.get_submodule(name)._parameters.get("bias") is not None or name in self.normed

    def _together(self, batches: list[ModelInputs]) -> list[ModelInputs]:
        """All batches as one, if there is memory for the largest activation of all."""
        if len(batches) == 1 or any(length(batch) is None for batch in batches):
            return batches

        def look(_: nn.Module, __: Any, output: Any) -> None:
            sizes = [leaf.nbytes for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
            self._largest = max(self._largest, *sizes, 0)

        with torch.no_grad(), ExitStack() as hooks:
            for name in self.order:
                hooks.enter_context(self.given.get_submodule(name).register_forward_hook(look))
            call(self.given, mapped(batches[0], lambda value: value[:1]))
        samples = sum(length(batch) or 0 for batch in batches)
        first = next(leaf for leaf in tree_leaves(batches[0]) if isinstance(leaf, torch.Tensor))
        if not fits(SHARE * samples * self._largest, first.device):
            return batches
        whole = join([(batch, None) for batch in batches])  # nothing of batches of several lengths
        return batches if whole is None else [whole[0]]

    @drawn_on_the_cpu()
    def _look(
        self, name: str, batch: int, samples: int, grams: list[_Gram], module: nn.Module, args: Any, named: Any, y: Any
    ) -> None:
        x = args[0] if args else named.get("input")
        if name in self.moments:
            self.moments[name].add(x)
        for gram in grams:
            gram.add(x, batch, len(self.batches))
        if name in self.places:
            entries = rows.entries_of(module, y)
            columns, groups = rows.columns_of(module), groups_of(module)
            places = rows.drawn(name, batch, len(self.batches), entries, columns, groups)
            self.places[name].append(places)
            self.samples[name].append(places // max(1, entries // samples))
            self.outputs[name].append(rows.given(module, y, places).clone())

    @cached_property
    def readers(self) -> dict[tuple[str, str], Reader]:
        """By set and layer."""
        return {key: gram.reader() for key, gram in self._grams.items()}

    def mean(self, name: str, reader: str) -> np.ndarray:
        """The mean of each unit of a set as a reader sees it, where it takes in a constant; 0 else."""
        return self._grams[name, reader].mean

    @cached_property
    def eliminations(self) -> dict[str, Elimination]:
        """Of each set the order in which its units go; by their size where no reader was seen."""
        found = {}
        for k, (name, merging) in enumerate(self.work.sets.items()):
            self.work.report("ordering its units", k / len(self.work.sets))
            own = [reader for (key, _), reader in self.readers.items() if key == name]
            found[name] = eliminate(own, merging.blocks) if own else _by_size(merging)
        return found


def _by_size(merging: Merging) -> Elimination:
    order = [block[np.argsort(merging.sizes[block], kind="stable")] for block in merging.blocks]
    costs = np.append(merging.pruning_costs, np.inf)
    return Elimination(np.stack(order, axis=1), costs)


def _normed(work: ModelSets) -> set[str]:
    """The layers right behind which batch norm stands, and nothing else."""
    ops, behind = work.trace.ops, {}
    for op in ops:
        for before in op.inputs:
            behind.setdefault(before, []).append(op)
    found = set()
    for place, op in enumerate(ops):
        after = behind.get(place, [])
        if op.kind == "module" and len(after) == 1 and after[0].kind == "module" and place not in work.trace.outputs:
            module = work.given.get_submodule(after[0].name)
            if isinstance(module, _BatchNorm) and cast(Any, module).running_mean is not None:
                found.add(op.name)
    return found
