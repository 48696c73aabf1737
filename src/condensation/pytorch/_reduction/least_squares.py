"""Least squares with a ridge that every fifth sample chooses, for the groups of a layer at once.

What is fitted is a change of the weights that a formula gave: where the formula is exact nothing is left to change. One
of the ridges is infinite, which leaves it as it is. With fewer rows than columns the equations are solved for rows.
"""

import torch
from jaxtyping import Bool, Float

RIDGES = (1e-6, 1e-4, 1e-2, 1.0)  # relative to the mean square of the columns
FOLDS = 5
EXACT = 1000  # columns up to which the equations are summed in float64

Matrices = Float[torch.Tensor, "groups rows columns"]


def change(
    x: Matrices, rest: Float[torch.Tensor, "groups rows outputs"], held: Bool[torch.Tensor, " rows"], constant: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """What is added to the weights (groups x columns x outputs) and to the bias (groups x outputs)."""
    kind = torch.float64 if x.shape[2] <= EXACT and x.device.type != "mps" else torch.float32
    x, rest = x.to(kind), rest.to(kind)
    nothing = torch.zeros(x.shape[0], x.shape[2], rest.shape[2], dtype=kind, device=x.device)
    none = nothing, nothing.new_zeros(x.shape[0], rest.shape[2])
    if not bool(held.any()) or bool(held.all()):
        return none
    train, test = _Equations(x[:, ~held], rest[:, ~held], constant), (x[:, held], rest[:, held])
    losses = [float(test[1].square().sum())]
    for ridge in RIDGES:
        weights, bias = train.solve(ridge)
        losses.append(float((test[1] - test[0] @ weights - bias[:, None]).square().sum()))
    best = min(range(len(losses)), key=lambda k: losses[k] if losses[k] == losses[k] else float("inf"))
    return none if best == 0 else _Equations(x, rest, constant).solve(RIDGES[best - 1])


class _Equations:
    """The normal equations, about the means where there is a constant."""

    def __init__(self, x: torch.Tensor, rest: torch.Tensor, constant: bool) -> None:
        self.mean, self.target = x.mean(1, keepdim=True), rest.mean(1, keepdim=True)
        if not constant:
            self.mean, self.target = torch.zeros_like(self.mean), torch.zeros_like(self.target)
        self.x, self.rest = x - self.mean, rest - self.target
        self.wide = x.shape[2] > x.shape[1]
        self.gram = self.x @ self.x.mT if self.wide else self.x.mT @ self.x
        self.size = self.x.square().sum((1, 2)) / x.shape[2]

    def solve(self, ridge: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights and bias."""
        tiny = torch.finfo(self.gram.dtype).tiny
        added = (ridge * self.size).clamp_min(tiny)[:, None, None] * torch.eye(
            self.gram.shape[1], dtype=self.gram.dtype, device=self.gram.device
        )
        factor, failed = torch.linalg.cholesky_ex(self.gram + added)
        if bool(failed.any()):
            weights = torch.full_like(self.x.mT @ self.rest, float("nan"))
        elif self.wide:
            weights = self.x.mT @ torch.cholesky_solve(self.rest, factor)
        else:
            weights = torch.cholesky_solve(self.x.mT @ self.rest, factor)
        return weights, (self.target - self.mean @ weights)[:, 0]
