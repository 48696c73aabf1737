"""Ours and all rivals at the same sizes: accuracy on the test images, without and with fine-tuning."""

import json
import time
import traceback
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from chains import counts, links, operations, parameters, recalibrate
from rivals import RIVALS, make_rival
from torch import Tensor, nn
from training import accuracy, fine_tuned

from condensation.pytorch import reduce_model

OURS = {f"ours, {method.replace('_', ' with ')}": method for method in ("best", "merge", "merge_fit", "prune_fit")}

ITSELF = "the network itself"


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
    done: Collection[str] = (),
) -> Iterator[Row]:
    """The rows of all methods, as they come; then those that are fine-tuned again, with what that gives.

    Batch norms are recalibrated alike, on the images that all of them see. A method that fails is told of and has no
    row; those that are ``done`` are left out.
    """
    wanted = counts(network, links(name, network), removed)
    norms = any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    made: dict[str, tuple[Row, nn.Module]] = {}
    for method in (ITSELF, *OURS, *(rival for rival in RIVALS if norms or "BN" not in rival)):
        if method in done:
            continue
        began = time.process_time()
        try:
            if method == ITSELF:
                small = deepcopy(network)
            elif method in OURS:
                small = make_ours(name, network, removed, OURS[method], data.seen)
            else:
                small = make_rival(method, name, network, wanted, *data.seen)
        except Exception:
            print(f"{name}, seed {seed}, {removed:.0%} removed, {method}: {traceback.format_exc()}", flush=True)
            continue
        seconds = time.process_time() - began
        if method != ITSELF:
            recalibrate(small, data.seen[0])
        size = parameters(small), operations(small, data.seen[0])
        plain = accuracy(small, *data.test)
        row = Row(name, seed, removed if method != ITSELF else 0.0, method, plain, None, *size, seconds)
        made[method] = row, small
        yield row
    sizes = {row.operations for row, _ in made.values() if row.removed}
    assert len(sizes) < 2, f"operations differ: {sizes}"
    for method in (method for method in tuned if method in made):
        row, small = made[method]
        yield replace(row, fine_tuned=accuracy(fine_tuned(small, seed, *data.train, rate), *data.test))


def read(file: Path) -> list[Row]:
    """The rows of a file of JSON lines: of each network and method the last one."""
    lines = file.read_text().splitlines() if file.exists() else []
    rows = [Row(**json.loads(line)) for line in lines]
    return [*{(row.network, row.seed, row.removed, row.method): row for row in rows}.values()]


def keep(row: Row, file: Path) -> Row:
    """The row, printed and written behind the others."""
    print(row.told(), flush=True)
    with file.open("a") as out:
        out.write(json.dumps(row.told()) + "\n")
    return row


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
            cells.append(cell([value for value in values if value is not None]))
        if any(cells):
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(values: list[float]) -> str:
    """A mean, with the least and the largest behind it."""
    if not values:
        return ""
    mean = sum(values) / len(values)
    return f"{mean:.1f}" + (f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else "")


def some(x: Tensor, y: Tensor, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """So many images, drawn by a seed."""
    chosen = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:count]
    return x[chosen], y[chosen]
