"""MobileNetV2 on CIFAR-10, trained from small weights, from 2.24 to 0.26 million parameters."""

import json
from pathlib import Path

import torch
from chains import operations, parameters, recalibrate
from compare import some
from torch import nn
from training import accuracy, fine_tuned, images, train

from condensation.pytorch import reduce_model

GOAL = 0.26e6
GAIN = 0.1  # times PyTorch's own initialization


def mobilenet(seeds: list[int], epochs: int, half: int, count: int, folder: Path) -> None:
    """Train, reduce all coupled channels to the goal by one share of each layer, tune for an epoch, print."""
    kept, test = images("cifar10", "train"), images("cifar10", "test")
    for seed in seeds:
        network = train("mobilenetv2", seed, epochs, half, *kept, folder, gain=GAIN)
        seen = some(*kept, count, seed)
        share = _share(network, seen)
        made = {method: reduce_model(network, seen, ratio=share, method=method, progress=False) for method in METHODS}
        nets = {"ours, " + key.replace("_", " with "): found.model for key, found in made.items()}
        nets["Torch-Pruning, l2"] = _theirs(network, seen[0])
        print(
            f"seed {seed}: {accuracy(network, *test):.2f}%, share {share:.3f}, best is {made['best'].method}",
            flush=True,
        )
        for method, small in nets.items():
            recalibrate(small, seen[0])
            row = {"network": "mobilenetv2", "seed": seed, "method": method, "accuracy": accuracy(small, *test)}
            row |= {"parameters": parameters(small), "operations": operations(small, seen[0])}
            if method != "ours, merge":
                row["fine_tuned"] = accuracy(fine_tuned(small, seed, *kept, 0.05), *test)
            print(row, flush=True)
            with (folder / "mobilenetv2.jsonl").open("a") as out:
                out.write(json.dumps(row) + "\n")


METHODS = ("merge", "best")


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
