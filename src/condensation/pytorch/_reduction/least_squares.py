"""Least squares with a ridge that every fifth sample chooses, for the groups of a layer at once.

What is fitted is a change of the weights that a formula gave: where the formula is exact nothing is left to change. One
of the ridges is infinite, which leaves it as it is. The equations are sums over rows, and those of the fold and of the
rest add up to those of all. With fewer rows than columns they are solved for rows instead.
"""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)  # relative to the mean square of the columns
FOLDS = 5
EXACT = 1000  # columns up to which the equations are solved in float64
CHEAP = 2e8  # multiply-adds of a Gram matrix up to which its products are in float64, too
ENTRIES = 600_000  # of the rows that are summed at a time: they stay in the processor's cache

Matrices = Float[torch.Tensor, "groups rows columns"]
Outputs = Float[torch.Tensor, "groups rows outputs"]
Solution = tuple[torch.Tensor, torch.Tensor]  # weights (groups x columns x outputs) and bias (groups x outputs)


def change(x: Matrices, rest: Outputs, held: Bool[torch.Tensor, " rows"], constant: bool) -> Solution:
    """What is added to the weights and to the bias."""
    kind = torch.float64 if x.shape[2] <= EXACT and x.device.type != "mps" else torch.float32
    short = kind if x.shape[1] * x.shape[2] ** 2 <= CHEAP else x.dtype
    nothing = torch.zeros(x.shape[0], x.shape[2], rest.shape[2], dtype=kind, device=x.device)
    none = nothing, nothing.new_zeros(x.shape[0], rest.shape[2])
    train, test = (torch.nonzero(rows)[:, 0] for rows in (~held, held))
    if not len(train) or not len(test):
        return none
    middle = [part.mean(1, keepdim=True) * constant for part in (x, rest)]  # what is small is summed exactly

    def rows(places: torch.Tensor, of: torch.dtype = short) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:, places].to(of) - middle[0], rest[:, places].to(of) - middle[1]

    def summed(places: torch.Tensor) -> _Sums:
        first, *more = places.split(max(1, ENTRIES // x[:, 0].numel()))
        sums = _Sums.of(*rows(first), kind)
        for some in more:
            sums.add(_Sums.of(*rows(some), kind))
        return sums

    tall = x.shape[2] <= len(train)
    sums = summed(train) if tall else None
    seen = _by_rows(*rows(train, kind), constant) if sums is None else sums.equations(constant)
    held_x, held_rest = rows(test)
    losses = [float(held_rest.square().sum())]
    for ridge in RIDGES:
        weights, bias = seen.solve(ridge)
        lost = held_rest - held_x @ weights.to(short) - bias[:, None].to(short)
        losses.append(float(lost.square().sum()))
    best = min(range(len(losses)), key=lambda k: losses[k] if losses[k] == losses[k] else float("inf"))
    if best == 0:
        return none
    if sums is None:
        every = _by_rows(*rows(torch.arange(x.shape[1], device=x.device), kind), constant)
    else:
        sums.add(summed(test))
        every = sums.equations(constant)
    weights, bias = every.solve(RIDGES[best - 1])
    centre, target = (part.to(kind) for part in middle)
    return weights, bias + (target - centre @ weights)[:, 0]


@dataclass
class _Sums:
    """Over rows x and what is wanted of them, y: sums of ones, x, y, and of their products."""

    count: int
    x: torch.Tensor
    y: torch.Tensor
    gram: torch.Tensor
    cross: torch.Tensor

    @classmethod
    def of(cls, x: torch.Tensor, y: torch.Tensor, kind: torch.dtype) -> "_Sums":
        parts = x.sum(1, keepdim=True), y.sum(1, keepdim=True), _gram(x), x.mT @ y
        return cls(x.shape[1], *(part.to(kind) for part in parts))

    def add(self, other: "_Sums") -> None:
        """Take in the sums over other rows."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))

    def equations(self, constant: bool) -> "_Equations":
        """The normal equations, about the means where there is a constant."""
        mean, target = (part / self.count * constant for part in (self.x, self.y))
        gram, cross = self.gram - self.count * mean.mT @ mean, self.cross - self.count * mean.mT @ target
        return _Equations(gram, cross, mean, target, gram.shape[1])


def _gram(x: torch.Tensor) -> torch.Tensor:
    """x' x of each group; NumPy takes half the time, since it knows that this is symmetric."""
    if len(x) > 1 or x.device.type != "cpu":
        return x.mT @ x
    values = x[0].numpy()
    return torch.as_tensor(values.T @ values)[None]


def _by_rows(x: torch.Tensor, y: torch.Tensor, constant: bool) -> "_Equations":
    """The equations for a factor of each row: there are fewer rows than columns."""
    mean, target = (part.mean(1, keepdim=True) * constant for part in (x, y))
    x = x - mean
    return _Equations(x @ x.mT, y - target, mean, target, x.shape[2], x)


@dataclass(frozen=True)
class _Equations:
    gram: torch.Tensor
    cross: torch.Tensor
    mean: torch.Tensor
    target: torch.Tensor
    columns: int
    x: torch.Tensor | None = None  # where the unknowns are factors of its rows

    def solve(self, ridge: float) -> Solution:
        """Weights and bias; NaN where there are none."""
        size = self.gram.diagonal(dim1=1, dim2=2).sum(1) / self.columns
        added = (ridge * size).clamp_min(torch.finfo(size.dtype).tiny)[:, None, None]
        unit = torch.eye(self.gram.shape[1], dtype=size.dtype, device=size.device)
        factor, failed = torch.linalg.cholesky_ex(self.gram + added * unit)
        weights = torch.cholesky_solve(self.cross, factor)
        if bool(failed.any()):
            weights = torch.full_like(weights, float("nan"))
        weights = weights if self.x is None else self.x.mT @ weights
        return weights, (self.target - self.mean @ weights)[:, 0]
