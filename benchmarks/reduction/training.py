"""Training of the networks that are made smaller: seeded, and resumed at the last whole epoch."""

import time
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from networks import make
from torch import Tensor, nn
from torch.nn import functional as F

from condensation import Images, Seed

RATES = {"resnet56": 0.4, "vgg16": 0.15, "mobilenetv2": 0.15}  # the highest of the one-cycle schedule


def images(name: str, split: str) -> tuple[Tensor, Tensor]:
    """All images of a split, standardised, and their classes."""
    x, y = Images(name, split=split, scale="standardised", target="index").draw(Seed(0, 0))
    return torch.tensor(np.asarray(x), dtype=torch.float32), torch.tensor(np.asarray(y)).long().ravel()


def crop_and_flip(x: Tensor, stream: torch.Generator, pad: int = 4) -> Tensor:
    """Each image shifted by up to ``pad`` pixels, and flipped or not."""
    n, _, height, width = x.shape
    device = x.device
    padded = F.pad(x, (pad,) * 4)
    top, left = (torch.randint(2 * pad + 1, (n, 1), generator=stream, device=device) for _ in range(2))
    rows, columns = top + torch.arange(height, device=device), left + torch.arange(width, device=device)
    flipped = torch.rand(n, 1, generator=stream, device=device) < 0.5
    columns = torch.where(flipped, columns.flip(1), columns)
    which = torch.arange(n, device=device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[which, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def accuracy(network: nn.Module, x: Tensor, y: Tensor, batch: int = 500) -> float:
    """Percent of images whose class is right."""
    network.eval()
    with torch.no_grad():
        right = sum(int((network(a).argmax(1) == b).sum()) for a, b in zip(x.split(batch), y.split(batch), strict=True))
    return 100 * right / len(y)


def train(
    name: str,
    seed: int,
    epochs: int,
    half: int,
    x: Tensor,
    y: Tensor,
    folder: Path,
    gain: float = 1.0,
    batch: int = 128,
) -> nn.Module:
    """A network trained on CIFAR-10 by SGD with momentum, a one-cycle schedule, crops and flips; kept in ``folder``.

    In the first ``half`` epochs images have half the resolution, which takes a quarter of the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{name}-gain{gain:g}-seed{seed}-{epochs}epochs-{half}half.pt"
    network = make(name, seed, gain)
    network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    steps = len(x) // batch
    optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATES[name], epochs * steps, pct_start=0.3)
    begun = 0
    if place.exists():
        stored = torch.load(place, weights_only=True)
        network.load_state_dict(stored["network"])
        optimizer.load_state_dict(stored["optimizer"])
        rate.load_state_dict(stored["rate"])
        begun = stored["epochs"]
    for epoch in range(begun, epochs):
        began, total = time.perf_counter(), 0.0
        network.train()
        stream = torch.Generator().manual_seed(1000 * seed + epoch)
        for chosen in torch.randperm(len(x), generator=stream)[: steps * batch].split(batch):
            seen = crop_and_flip(x[chosen], stream)
            total += step(network, optimizer, F.avg_pool2d(seen, 2) if epoch < half else seen, y[chosen])
            rate.step()
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "rate": rate.state_dict()}
        torch.save(state | {"epochs": epoch + 1}, place.with_suffix(".part"))
        place.with_suffix(".part").rename(place)
        seconds = time.perf_counter() - began
        print(f"{place.stem}: epoch {epoch + 1}, loss {total / steps:.3f}, {seconds:.0f} s", flush=True)
    return network.to(memory_format=torch.contiguous_format).eval()  # pyright: ignore[reportCallIssue]


def step(network: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> float:
    """One step on a batch, with the products in bfloat16 (not of depthwise filters, which it slows); gives its loss."""
    optimizer.zero_grad(set_to_none=True)
    depthwise = any(isinstance(layer, nn.Conv2d) and layer.groups > 1 for layer in network.modules())
    with torch.autocast(x.device.type, torch.bfloat16, enabled=not depthwise):
        loss = F.cross_entropy(network(x.contiguous(memory_format=torch.channels_last)), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def train_plain(
    network: nn.Module, seed: int, epochs: int, x: Tensor, y: Tensor, rate: float = 0.1, batch: int = 128
) -> nn.Module:
    """A network trained by SGD with momentum and a one-cycle schedule, on images as they are."""
    steps = len(x) // batch
    optimizer = torch.optim.SGD(network.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, epochs * steps, pct_start=0.3)
    stream = torch.Generator().manual_seed(seed)
    network.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(x), generator=stream)[: steps * batch].split(batch):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(network(x[chosen]), y[chosen]).backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def fine_tuned(network: nn.Module, seed: int, x: Tensor, y: Tensor, rate: float = 0.02, batch: int = 128) -> nn.Module:
    """A copy trained for one more epoch with crops and flips, its rate falling from ``rate`` to zero."""
    network = deepcopy(network).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    steps = len(x) // batch
    optimizer = torch.optim.SGD(network.parameters(), rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    stream = torch.Generator(x.device).manual_seed(seed)
    network.train()
    for chosen in torch.randperm(len(x), generator=stream, device=x.device)[: steps * batch].split(batch):
        step(network, optimizer, crop_and_flip(x[chosen], stream), y[chosen])
        schedule.step()
    return network.to(memory_format=torch.contiguous_format).eval()  # pyright: ignore[reportCallIssue]
