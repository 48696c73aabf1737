"""MNIST in plain PyTorch: from a small and an ordinary initialization, watched, reduced, compared with pruning."""

import time
from collections.abc import Callable
from copy import deepcopy
from itertools import count
from pathlib import Path

import numpy as np
import torch
import torch_pruning as tp
from matplotlib.figure import Figure
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from condensation import Geometric, Images, Seed
from condensation.drawing import look, save
from condensation.drawing._style import COLOURS, PAGE
from condensation.pytorch import Watcher, reduce_model, watch

START, PEAK = 1e-7, 1.2e-3  # dense: std of the small start's weights and biases, and Adam's largest learning rate
CONV_START, CONV_PEAK = 1e-3, 5e-3  # convolutional, where three small factors make a much smaller product
BATCH = 128
DECAY = 3e-4  # weight decay, as a term of the loss
GROWTH = 0.2  # share of the steps in which the rate grows; in these the network condenses
AGREEMENT = 0.985  # of predictions on test images before and after: the literature's for 58 units left of 400
ASKED = 0.985  # of predictions that stay the same on new images
SIZES = (20, 30, 40, 58, 80)  # for the picture

Data = tuple[Tensor, Tensor]
Rate = Callable[[float], float]


def images(name: str, n: int | None, split: str) -> Data:
    """Images with pixels in [0, 1] and their classes."""
    x, y = Images(name, n=n, split=split, scale="unit", target="index").draw(Seed(0, 0))
    return torch.tensor(x), torch.tensor(y[:, 0]).long()


def dense(shape: torch.Size, width: int) -> nn.Module:
    """Flattened images, one hidden layer of relu units, ten outputs."""
    return nn.Sequential(nn.Flatten(), nn.Linear(shape.numel(), width), nn.ReLU(), nn.Linear(width, 10))


def convolutional(shape: torch.Size, channels: int) -> nn.Module:
    """Two convolution layers and a dense one."""
    first, pooled = nn.Conv2d(shape[0], channels, 3, padding=1), channels * (shape[1] // 4) * (shape[2] // 4)
    second = nn.Conv2d(channels, channels, 3, padding=1)
    pairs = (nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(first, *pairs, second, *deepcopy(pairs), nn.Flatten(), nn.Linear(pooled, 10))


def make_small(model: nn.Module, std: float) -> nn.Module:
    """The model with all weights and biases drawn anew."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model


def growing(start: float, peak: float) -> Rate:
    """A rate that grows from far below the smallest weights, so that they turn before they grow, then falls to zero."""

    def rate(share: float) -> float:
        if share < GROWTH:
            return peak * (start / 10 / peak) ** (1 - share / GROWTH)
        return peak / 2 * (1 + np.cos(np.pi * (share - GROWTH) / (1 - GROWTH)))

    return rate


def falling(share: float) -> float:
    """The learning rate of an epoch of fine-tuning, falling to zero."""
    return PEAK * (1 - share)


def fit(model: nn.Module, data: Data, epochs: int, rate: Rate, watcher: Watcher | None = None) -> None:
    """An ordinary loop; the watcher sees each step."""
    x, y = data
    steps, step = epochs * -(-len(x) // BATCH), 0
    optimizer = torch.optim.Adam(model.parameters(), weight_decay=DECAY, eps=1e-12)  # gradients are small, too
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(BATCH):
            for group in optimizer.param_groups:
                group["lr"] = rate(step / steps)
            loss = cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if watcher is not None:
                watcher.step(loss)


@torch.no_grad()
def predictions(model: nn.Module, data: Data) -> Tensor:
    """The class that the model chooses for each image."""
    return torch.cat([model(x).argmax(1) for x in data[0].split(1000)])


def share(first: Tensor, second: Tensor) -> float:
    """How often two lists of classes are the same."""
    return float((first == second).double().mean())


def prune(model: nn.Module, example: Tensor, units: int) -> nn.Module:
    """The same hidden layer cut by Torch-Pruning: units of the smallest weights go."""
    small = deepcopy(model)
    hidden, output = (layer for layer in small.modules() if isinstance(layer, nn.Linear))
    importance = tp.importance.MagnitudeImportance(p=2)
    ratio = max(0.0, 1 - (units + 0.5) / hidden.out_features)  # it rounds down what is left
    tp.pruner.BasePruner(small, example, importance, pruning_ratio=ratio, ignored_layers=[output]).step()
    return small


def reduce_dense(
    model: nn.Module, train: Data, test: Data, samples: int, asked: float = ASKED
) -> tuple[nn.Module, dict[str, float]]:
    """Reduce a dense network by training images; the numbers tell how it does beside what pruning makes of it.

    The test images only judge.
    """
    x, before = (train[0][:samples], train[1][:samples]), predictions(model, test)
    reduced = reduce_model(model, x, agreement=asked)
    (units, left), *_ = reduced.sizes.values()
    pruned = prune(model, test[0][:1], left)
    numbers: dict[str, float] = {"accuracy": share(before, test[1]), "units": left}
    print(f"  accuracy {share(before, test[1]):.4f}; {units} units reduced to {left}, parameters {reduced.parameters}")
    for name, small in (("merged", reduced.model), ("pruned", pruned)):
        now = predictions(small, test)
        tuned = deepcopy(small)
        fit(tuned, train, 1, falling)
        then = predictions(tuned, test)
        numbers |= {f"{name}, agreement": share(before, now), f"{name}, accuracy": share(now, test[1])}
        numbers |= {f"{name} and tuned, agreement": share(before, then)}
        numbers |= {f"{name} and tuned, accuracy": share(then, test[1])}
        print(
            f"  {name}: agreement {share(before, now):.4f}, accuracy {share(now, test[1]):.4f}; after an epoch more "
            f"{share(before, then):.4f}, {share(then, test[1]):.4f}"
        )
    return reduced.model, numbers


def curve(model: nn.Module, train: Data, test: Data, samples: int, width: int) -> dict[str, list[float]]:
    """Agreement on the test images against the number of units left."""
    x, before = (train[0][:samples], train[1][:samples]), predictions(model, test)
    shares: dict[str, list[float]] = {"merged": [], "best": [], "pruned": []}
    for units in (size for size in SIZES if size < width):
        shares["merged"].append(
            share(before, predictions(reduce_model(model, inputs=test[0][:1], units=units).model, test))
        )
        fitted = reduce_model(model, x, units=units).model
        shares["best"].append(share(before, predictions(fitted, test)))
        shares["pruned"].append(share(before, predictions(prune(model, test[0][:1], units), test)))
    return shares


def fresh(folder: Path) -> Path:
    """This folder, or where it is there already the first of folder-2, folder-3, ... that is not."""
    names = (folder if k == 1 else folder.with_name(f"{folder.name}-{k}") for k in count(1))
    return next(name for name in names if not name.exists())


def draw(watchers: dict[str, Watcher], curves: dict[str, dict[str, list[float]]], file: Path) -> None:
    """Lines and k_eff against the step; agreement against the number of units left."""
    with look():
        figure = Figure(figsize=(PAGE, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2)
        for (name, watcher), colour in zip(watchers.items(), COLOURS, strict=False):
            layer = watcher.rows[0].layer
            for quantity, style in (("k_eff", "-"), ("lines", ":")):
                steps, values = watcher.history(layer, quantity)
                if not values.any():
                    continue  # no lines at any step
                label = f"{name}, " + ("$k_{eff}$" if quantity == "k_eff" else "lines")
                left.plot(steps, np.where(values > 0, values, np.nan), style, color=colour, label=label)
        left.set(xscale="symlog", yscale="log", xlabel="step", ylabel="number", title="hidden layer in training")
        for (name, kinds), colour in zip(curves.items(), COLOURS, strict=False):
            for (kind, values), style in zip(kinds.items(), ("--", "-", ":"), strict=True):
                changed = 1 - np.array(values)
                right.plot(SIZES[: len(values)], changed, style, color=colour, marker=".", label=f"{name}, {kind}")
        right.axhline(1 - AGREEMENT, color=COLOURS[-1], linewidth=0.6)
        right.set(yscale="log", xlabel="units left", ylabel="changed predictions", title="reduced, on test images")
        left.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2))
        right.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=2)
    save(figure, file)


def main(
    folder: str | Path = "mnist",
    *,
    name: str = "mnist",
    seed: int = 0,
    epochs: int = 12,
    width: int = 400,
    channels: int = 24,
    conv_images: int = 15_000,
    conv_epochs: int = 6,
    samples: int = 10_000,
    conv_samples: int = 3_000,
    asked: float = ASKED,
) -> dict[str, dict[str, float]]:
    """Train, watch, reduce and draw; given back are the numbers of the dense networks by their start.

    Args:
        folder: where watched runs, the reduced models and the picture go; where it is there already, one beside it.
        name: the set of images.
        seed: of the starts and of the order of images.
        epochs: of the dense networks, on all images.
        width: their hidden units.
        channels: of both convolution layers.
        conv_images: training images of the convolutional network.
        conv_epochs: its epochs.
        samples: training images on which the dense networks are reduced.
        conv_samples: training images on which the convolutional one is.
        asked: share of predictions that stay the same, at least, on new images.
    """
    folder, began = fresh(Path(folder)), time.perf_counter()
    train, test = images(name, None, "train"), images(name, None, "test")
    watchers, curves, numbers = {}, {}, {}
    for kind in ("small start", "ordinary start"):
        torch.manual_seed(seed)
        model = dense(train[0].shape[1:], width)
        model = make_small(model, START) if kind == "small start" else model
        print(f"{kind}: {train[0][0].numel()}-{width}-10")
        run = folder / kind.replace(" ", "-")
        with watch(model, run, layers=["1.weight"], schedule=Geometric(10)) as watchers[kind]:
            fit(model, train, epochs, growing(START, PEAK), watchers[kind])
        least = min(watchers[kind].rows, key=lambda row: row.k_eff)
        print(f"  most condensed at step {least.step}: {least.lines} lines, cover {least.cover:.2f}, ", end="")
        print(f"k_eff {least.k_eff:.1f}; at the end {watchers[kind].rows[-1].k_eff:.1f}")
        small, numbers[kind] = reduce_dense(model, train, test, samples, asked)
        save_file(small.state_dict(), run.with_suffix(".safetensors"))
        curves[kind] = curve(model, train, test, samples, width)
    draw(watchers, curves, folder / "mnist.png")

    torch.manual_seed(seed)
    model = make_small(convolutional(train[0].shape[1:], channels), CONV_START)
    part = train[0][:conv_images], train[1][:conv_images]
    with watch(model, folder / "convolutional", schedule=Geometric(10)) as watcher:
        fit(model, part, conv_epochs, growing(CONV_START, CONV_PEAK), watcher)
    before = predictions(model, test)
    some = part[0][:conv_samples], part[1][:conv_samples]
    reduced = reduce_model(model, some, agreement=asked)
    now = predictions(reduced.model, test)
    fit(reduced.model, part, 1, falling)
    then = predictions(reduced.model, test)
    print(f"convolutional, small start: sizes {reduced.sizes}, parameters {reduced.parameters}")
    print(f"  accuracy {share(before, test[1]):.4f}, reduced {share(now, test[1]):.4f}, after an epoch more ", end="")
    print(f"{share(then, test[1]):.4f}; agreement {share(before, now):.4f}, {share(before, then):.4f}")
    save_file(reduced.model.state_dict(), folder / "convolutional.safetensors")
    print(f"{folder}/ holds the watched runs, the reduced models and mnist.png ({time.perf_counter() - began:.0f} s)")
    return numbers


if __name__ == "__main__":
    main()
