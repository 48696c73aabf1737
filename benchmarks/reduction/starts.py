"""What condensation buys: the same network from a small and from an ordinary initialization, made as small as it goes.

Of each trained network the smallest reduction is taken (by bisection of the share that is removed) that loses at most
half a point of accuracy on 5000 training images which neither the training nor the reduction sees; its accuracy is told
on the test images.
"""

import json
from pathlib import Path

from chains import counts, links, parameters
from compare import make_ours, some
from networks import make
from rivals import prune_least_squares
from torch import Tensor, nn
from training import accuracy, images, train_plain

GAINS = {"lenet": (1.0, 0.1), "cnn": (1.0, 0.1)}  # times PyTorch's own initialization
SHARES = (0.0, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.97)
LOST = 0.5
EPOCHS = {"lenet": 15, "cnn": 8}


def starts(seeds: list[int], folder: Path) -> None:
    """Train, reduce and print a table."""
    file = folder / "starts.jsonl"
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for name, gains in GAINS.items():
        x, y = images("fashion-mnist", "train")
        test = images("fashion-mnist", "test")
        held, x, y = (x[:5000], y[:5000]), x[5000:], y[5000:]
        for seed in seeds:
            for gain in gains:
                if any((one["network"], one["seed"], one["gain"]) == (name, seed, gain) for one in done):
                    continue
                network = train_plain(make(name, seed, gain), seed, EPOCHS[name], x, y)
                found = smallest(name, network, some(x, y, 5000, seed), held, test)
                one = {"network": name, "seed": seed, "gain": gain, "accuracy": accuracy(network, *test)} | found
                print(one, flush=True)
                done.append(one)
                with file.open("a") as out:
                    out.write(json.dumps(one) + "\n")
    print(table(done))


def smallest(
    name: str, network: nn.Module, seen: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]
) -> dict[str, list[float]]:
    """By method, parameters and test accuracy of the smallest network that is good enough."""
    least = accuracy(network, *held) - LOST
    chain = links(name, network)
    found = {}
    for method in ("merge", "best", "l1 pruning, least squares"):
        best, low, high = network, 0, len(SHARES)  # the first share is good enough, one behind the last is not
        while high - low > 1:
            middle = (low + high) // 2
            if method in ("merge", "best"):
                small = make_ours(name, network, SHARES[middle], method, seen)
            else:
                small = prune_least_squares(network, chain, counts(network, chain, SHARES[middle]), seen[0])
            if accuracy(small, *held) < least:
                high = middle
            else:
                low, best = middle, small
        found[method] = [parameters(best), accuracy(best, *test)]
    return found


def table(done: list[dict]) -> str:
    """Means over seeds as Markdown."""
    lines = ["| network | weights times | accuracy | merging | best | l1 pruning, least squares |", "|---" * 6 + "|"]
    for name, gain in dict.fromkeys((one["network"], one["gain"]) for one in done):
        rows = [one for one in done if (one["network"], one["gain"]) == (name, gain)]
        cells = [f"{_mean([row['accuracy'] for row in rows]):.1f}"]
        for method in ("merge", "best", "l1 pruning, least squares"):
            sizes, after = zip(*(row[method] for row in rows), strict=True)
            least, most = (f"{round(pick(sizes)):,}" for pick in (min, max))
            cells.append(f"{round(_mean(sizes)):,} ({least} to {most}), {_mean(after):.1f}%")
        lines.append(f"| {name} | {gain:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean(values: list[float] | tuple[float, ...]) -> float:
    return sum(values) / len(values)
