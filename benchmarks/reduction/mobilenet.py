"""MobileNetV2 on CIFAR-10, trained from small weights, from 2.24 to 0.26 million parameters."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from chains import operations, parameters, recalibrate
from compare import ITSELF, OURS, Images, Row, cell, keep, read, some
from torch import nn
from training import accuracy, fine_tuned, images, train

from condensation.pytorch import reduce_model

GOAL = 0.26e6
GAIN = 0.1  # times PyTorch's own initialization


def mobilenet(seeds: list[int], epochs: int, half: int, count: int, folder: Path) -> None:
    """Train, reduce all coupled channels to the goal by one share of each layer, tune for an epoch, print."""
    kept, test = images("cifar10", "train"), images("cifar10", "test")
    file = folder / "mobilenetv2.jsonl"
    for seed in seeds:
        network = train("mobilenetv2", seed, epochs, half, *kept, folder, gain=GAIN)
        for row in rows(network, seed, Images(kept, some(*kept, count, seed), test)):
            keep(row, file)
    print(sizes(read(file)))


def rows(network: nn.Module, seed: int, data: Images) -> Iterator[Row]:
    """The rows of all methods, as they come; then again with what an epoch of fine-tuning gives."""
    yield _row(network, seed, ITSELF, 0.0, data)
    made: list[tuple[Row, nn.Module]] = []
    began = time.process_time()
    share = _share(network, data.seen)
    for name in ("ours, best", "ours, merge", "Torch-Pruning, l2"):
        if name in OURS:
            small = reduce_model(network, data.seen, ratio=share, method=OURS[name], progress=False).model
        else:
            small = _theirs(network, data.seen[0])
        seconds = time.process_time() - began
        recalibrate(small, data.seen[0])
        made.append((_row(small, seed, name, seconds, data), small))
        yield made[-1][0]
        began = time.process_time()
    for row, small in made:
        yield replace(row, fine_tuned=accuracy(fine_tuned(small, seed, *data.train, 0.05), *data.test))


def _row(network: nn.Module, seed: int, method: str, seconds: float, data: Images) -> Row:
    size = parameters(network), operations(network, data.seen[0])
    return Row("mobilenetv2", seed, 0.0, method, accuracy(network, *data.test), None, *size, seconds)


def sizes(rows: list[Row]) -> str:
    """Accuracy at the goal, without and with fine-tuning, as Markdown: means over seeds, least and largest."""
    lines = ["| method | parameters | multiply-adds | no fine-tuning | one epoch |", "|---|---|---|---|---|"]
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        tuned = [row.fine_tuned for row in own if row.fine_tuned is not None]
        size, work = (
            round(sum(values) / len(own)) for values in ([r.parameters for r in own], [r.operations for r in own])
        )
        lines.append(f"| {method} | {size:,} | {work:,} | {cell([row.accuracy for row in own])} | {cell(tuned)} |")
    return "\n".join(lines)


def _share(network: nn.Module, seen: tuple[torch.Tensor, torch.Tensor]) -> float:
    """The share of units to leave out of each layer that leads to the goal, by bisection."""
    low, high = 0.4, 0.9
    few = (seen[0][:300], seen[1][:300])
    for _ in range(7):
        share = (low + high) / 2
        small = reduce_model(network, few, ratio=share, method="prune", progress=False)
        low, high = (share, high) if small.parameters[1] > GOAL else (low, share)
    return high


def _theirs(network: nn.Module, x: torch.Tensor) -> nn.Module:
    """Torch-Pruning's group magnitude with one share of all layers but the last, to the goal."""
    from copy import deepcopy

    import torch_pruning as tp

    low, high = 0.4, 0.9
    found = network
    for _ in range(7):
        share, small = (low + high) / 2, deepcopy(network)
        last: list[nn.Module] = [layer for layer in small.modules() if isinstance(layer, nn.Linear)]
        importance = tp.importance.GroupMagnitudeImportance()
        tp.pruner.BasePruner(small, x[:1], importance, pruning_ratio=share, ignored_layers=last).step()
        if parameters(small) > GOAL:
            low = share
        else:
            high, found = share, small
    return found
