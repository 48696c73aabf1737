"""All layers of a PyTorch model, measured in one call."""

from collections.abc import Sequence

from torch import nn

from ..measure import Rows, most_condensed_first
from ..weights import measure_listed
from ..weights._measure import JOBS
from ._selection import as_names, chosen


def measure_model(
    model: nn.Module,
    layers: Sequence[str] | None = None,
    *,
    threshold: float | None = None,
    heads: bool = False,
    view: str = "filter",
    with_null: bool = True,
) -> Rows:
    """Measure the layers of a model, the most condensed first.

    Args:
        model: any model, also inside DistributedDataParallel or compiled; it is only read.
        layers: those to measure, by name, with or without ``.weight``; all if not given.
        threshold: the cosine that decides; by default 0.95, or more where chance alone would reach it.
        heads: cut the projections of attention layers into their heads.
        view: the units of convolution layers: ``"filter"`` or ``"kernel"``.
        with_null: compare each layer with a null, its centred weights permuted among the units.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(5, 50), nn.ReLU(), nn.Linear(50, 2))
    >>> model[0].weight.data = torch.linspace(-1, 1, 50)[:, None] * torch.ones(5)
    >>> model[0].bias.data = torch.zeros(50)
    >>> rows = measure_model(model, "0")
    >>> rows
    1 layer
      0.weight  condensed on 1 line: k_eff 1 where chance leaves 11.7; reduce: up to 48 of 50 units can go, 28 ...
    >>> rows[0].lines, rows[0].units
    (1, 50)
    """
    measured, _ = chosen(model, as_names(layers), [], heads=heads, view=view)
    return most_condensed_first(measure_listed(measured, threshold=threshold, with_null=with_null, jobs=JOBS))
