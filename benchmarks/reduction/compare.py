"""Ours and all rivals at the same sizes: accuracy on the test images, without and with fine-tuning."""

import time
from copy import deepcopy
from dataclasses import asdict, dataclass

import torch
from chains import counts, links, operations, parameters, recalibrate
from rivals import RIVALS, make_rival
from torch import Tensor, nn
from training import accuracy, fine_tuned

from condensation.pytorch import reduce_model

OURS = {f"ours, {method.replace('_', ' with ')}": method for method in ("best", "merge", "merge_fit", "prune_fit")}


@dataclass(frozen=True)
class Row:
    """A method's network: how accurate it is, in percent, at which cost."""

    network: str
    seed: int
    removed: float
    method: str
    accuracy: float
    fine_tuned: float | None
    parameters: int
    operations: int
    seconds: float

    def told(self) -> dict[str, object]:
        """As JSON writes it."""
        return {key: round(value, 3) if isinstance(value, float) else value for key, value in asdict(self).items()}


@dataclass(frozen=True)
class Images:
    """Images for training, the few that a reduction sees, and those for testing; with their classes."""

    train: tuple[Tensor, Tensor]
    seen: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


def make_ours(name: str, network: nn.Module, removed: float, method: str, seen: tuple[Tensor, Tensor]) -> nn.Module:
    """Our reduction of the same layers to the same numbers of units."""
    chain = links(name, network)
    kept = counts(network, chain, removed)
    return reduce_model(network, seen, units=kept, layers=[*kept], method=method, progress=False).model


def compared(
    name: str,
    network: nn.Module,
    seed: int,
    removed: float,
    data: Images,
    tuned: tuple[str, ...] = (),
    rate: float = 0.02,
) -> list[Row]:
    """The rows of all methods. Batch norms are recalibrated alike, on the images that all of them see."""
    rows = []
    wanted = counts(network, links(name, network), removed)
    norms = any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    for method in ("", *OURS, *(rival for rival in RIVALS if norms or "BN" not in rival)):
        began = time.process_time()
        if not method:
            small = deepcopy(network)
        elif method in OURS:
            small = make_ours(name, network, removed, OURS[method], data.seen)
        else:
            small = make_rival(method, name, network, wanted, *data.seen)
        seconds = time.process_time() - began
        if method:
            recalibrate(small, data.seen[0])
        plain = accuracy(small, *data.test)
        size = parameters(small), operations(small, data.seen[0])
        after = accuracy(fine_tuned(small, seed, *data.train, rate), *data.test) if method in tuned else None
        row = Row(name, seed, removed if method else 0, method or "the network itself", plain, after, *size, seconds)
        print(row.told(), flush=True)
        rows.append(row)
    sizes = {row.operations for row in rows[1:]}
    assert len(sizes) == 1, f"operations differ: {sizes}"
    return rows


def table(rows: list[Row], tuned: bool = False) -> str:
    """Methods against shares removed, as Markdown: means over seeds, the least and the largest behind them."""
    shares = sorted({row.removed for row in rows if row.removed})
    methods = list(dict.fromkeys(row.method for row in rows if row.removed))
    lines = ["| method | " + " | ".join(f"{share:.0%} removed" for share in shares) + " |"]
    lines.append("|---" * (len(shares) + 1) + "|")
    for method in methods:
        cells = []
        for share in shares:
            values = [
                row.fine_tuned if tuned else row.accuracy
                for row in rows
                if (row.method, row.removed) == (method, share)
            ]
            cells.append(_cell([value for value in values if value is not None]))
        if any(cells):
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    mean = sum(values) / len(values)
    return f"{mean:.1f}" + (f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else "")


def some(x: Tensor, y: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """So many images, drawn by a seed."""
    chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:count]
    return x[chosen], y[chosen]
