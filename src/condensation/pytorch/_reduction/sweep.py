r"""One pass over a reduced model, front to back, that makes up for what was lost: layers refitted, norms recalibrated.

When the samples come to a layer, its weights are fitted by least squares: from what it sees now, after all layers
before it were reduced and refitted, to what the given layer gave. When they come to a batch norm, its statistics are
matched: with m, v the mean and variance of what the given norm saw on the same samples, and m', v' now, those of the
result are $\sigma' = \sigma \sqrt{v'/v}$ and $\mu' = m' - (m - \mu) \sigma'/\sigma$, so that what it gives has the
moments it had, and nothing changes where nothing was lost. Then the samples go on.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from . import rows
from .gpu import drawn_on_the_cpu
from .graph import is_depthwise
from .least_squares import FOLDS, change
from .matrix import array, bias_of, groups_of, matrix_of, out_size
from .observed import Moments, Observed
from .shrink import ShrinkPlan, left
from .trace import call

FURTHEST = 100.0  # a variance is changed by this factor at most
LOST = 1e-6  # a layer whose output is off by less, relatively, is left as it is


class _Enough(Exception):
    """The samples have come as far as they are needed."""


class _Stop:
    """A module at which the samples stop."""

    def see(self, batch: int, x: torch.Tensor) -> None:
        """Take in what the module sees of a batch."""
        raise NotImplementedError

    def change(self) -> None:
        """Change the module."""
        raise NotImplementedError


class _Layer(_Stop):
    def __init__(self, observed: Observed, name: str, module: nn.Module, plans: Sequence[ShrinkPlan]) -> None:
        self.observed, self.name, self.module, self.plans = observed, name, module, plans
        self.seen: list[torch.Tensor] = []

    def see(self, batch: int, x: torch.Tensor) -> None:
        self.seen.append(rows.seen(self.module, x, self.observed.places[self.name][batch]))

    def change(self) -> None:
        module, groups = self.module, groups_of(self.module)
        weight = cast(nn.Parameter, module.weight)
        bias = module._parameters.get("bias")
        seen = self.seen[0] if len(self.seen) == 1 else torch.cat(self.seen, 1)
        x = seen.to(torch.promote_types(weight.dtype, torch.float32))
        target = self._target().to(x.dtype)
        outs = weight.shape[0] // groups
        matrix = rows.matrix(module).to(x.dtype)
        now = x @ matrix.mT
        if bias is not None:
            now = now + bias.detach().reshape(groups, 1, outs).to(x.dtype)
        wanted = target.reshape(len(target), groups, outs).movedim(1, 0)
        rest = wanted - now
        if not bool(torch.isfinite(rest).all()) or float(rest.norm()) <= LOST * float(wanted.norm()):
            return
        sample = torch.cat(self.observed.samples[self.name]).to(x.device)
        constant = bias is not None or self.name in self.observed.normed
        added, shift = change(x, rest, sample % FOLDS == FOLDS - 1, constant)
        weight.data += rows.to_weight(added.mT, module).to(weight.dtype)
        if bias is not None:
            bias.data += shift.reshape(-1).to(bias.dtype)

    def _target(self) -> torch.Tensor:
        """What the given layer gave, for the outputs that are left; of merged ones, what their new rows make of it."""
        outputs = torch.cat(self.observed.outputs[self.name])
        given = self.observed.given.get_submodule(self.name)
        kept = left_channels(self.name, given, self.plans)
        target = outputs[:, torch.as_tensor(kept, device=outputs.device)].clone()
        place = {int(source): k for k, source in enumerate(kept)}
        for plan in self.plans:
            if self.name in plan.rows and self.name in plan.coupled.producers:
                own, own_bias = matrix_of(given).reshape(out_size(given), -1), bias_of(given)
                new_bias = None if self.module._parameters.get("bias") is None else array(cast(Any, self.module.bias))
                combine = next(iter(plan.combinations.values())).combine
                where = plan.coupled.channels[self.name]
                for k, source in enumerate(plan.sources):
                    members = where[np.flatnonzero(combine[:, k])]
                    if len(members) < 2:
                        continue
                    to = place[int(where[source])]
                    shares = np.linalg.lstsq(own[members].T, plan.rows[self.name][k].reshape(-1), rcond=1e-9)[0]
                    constant = 0.0 if new_bias is None else new_bias[to]
                    constant -= 0.0 if own_bias is None else float(shares @ own_bias[members])
                    weights = torch.as_tensor(shares, dtype=outputs.dtype, device=outputs.device)
                    target[:, to] = outputs[:, torch.as_tensor(members, device=outputs.device)] @ weights + constant
        return target


class _Norm(_Stop):
    def __init__(self, observed: Observed, name: str, module: nn.Module, plans: Sequence[ShrinkPlan]) -> None:
        self.module, self.moments, self.before = cast(_BatchNorm, module), Moments(), observed.moments[name]
        kept = left_channels(name, observed.given.get_submodule(name), plans)
        self.left = torch.as_tensor(kept, device=self.before.mean.device)

    def see(self, batch: int, x: torch.Tensor) -> None:
        self.moments.add(x)

    def change(self) -> None:
        norm, eps = self.module, self.module.eps
        mean, var = (cast(torch.Tensor, value) for value in (norm.running_mean, norm.running_var))
        there, spread = self.before.mean[self.left], self.before.var[self.left]
        alive = (spread > 0) & (self.moments.var > 0)
        ratio = torch.where(alive, self.moments.var / torch.where(alive, spread, 1), 1).clamp(1 / FURTHEST, FURTHEST)
        moved = self.moments.mean - (there - mean.double()) * ratio.sqrt()
        mean.copy_(torch.where(torch.isfinite(moved), moved, mean))
        wider = (var.double() + eps) * ratio - eps
        var.copy_(torch.where(torch.isfinite(wider), wider.clamp_min(0), var))


def sweep(observed: Observed, small: nn.Module, plans: Sequence[ShrinkPlan], refit: bool, recalibrate: bool) -> None:
    """Refit the layers of a model that plans were carried out on, and recalibrate its batch norms."""
    changed = {name for plan in plans for name in (*plan.coupled.channels, *plan.coupled.columns)}
    merges = any(plan.rows for plan in plans)
    stops: dict[str, _Stop] = {}
    for name in observed.order:
        if not stops and name not in changed:
            continue  # nothing before it was changed
        module = small.get_submodule(name)
        if refit and name in observed.places and not (merges and is_depthwise(module)):
            stops[name] = _Layer(observed, name, module, plans)
        elif recalibrate and name in observed.moments:
            stops[name] = _Norm(observed, name, module, plans)
    if not stops:
        return
    alone = len(observed.batches) == 1

    @drawn_on_the_cpu()
    def reach(stop: _Stop, batch: int, _: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        stop.see(batch, args[0] if args else named["input"])
        if not alone:
            raise _Enough
        stop.change()

    with torch.no_grad():
        for group in [list(stops)] if alone else [[name] for name in stops]:
            for batch, inputs in enumerate(observed.batches):
                with ExitStack() as hooks:
                    for name in group:
                        hook = partial(reach, stops[name], batch)
                        module = small.get_submodule(name)
                        hooks.enter_context(module.register_forward_pre_hook(hook, with_kwargs=True))
                    torch.manual_seed(batch)  # as when the given model was observed
                    with suppress(_Enough):
                        call(small, inputs)
            if not alone:
                stops[group[0]].change()


def left_channels(name: str, given: nn.Module, plans: Sequence[ShrinkPlan]) -> np.ndarray:
    """The channel of the given module that each channel of a reduced one was."""
    owned = [(plan.coupled.channels[name], plan) for plan in plans if name in plan.coupled.channels]
    return left(out_size(given), owned)
