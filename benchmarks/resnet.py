"""An epoch of the ResNet18-like network of FC Fig. 2 on a GPU, beside PyTorch: `python benchmarks/resnet.py`.

Both train on 50,000 random images that lie on the GPU, in batches of 128, with Adam, TF32 and cross-entropy. PyTorch's
network is channels-last with fused Adam and benchmarked convolutions, in eager mode. Random images take the same time
as real ones.
"""

import json
import sys
import time

import numpy as np

from condensation import Adam, Arrays, At, Experiment, FanOutPower, Glorot, Init, Loss, ResNet, train

N, BATCH, EPOCHS = 50_000, 128, 3


def ours(images: np.ndarray, labels: np.ndarray, activation: str = "tanh") -> list[float]:
    """Seconds of each epoch."""
    experiment = Experiment(
        ResNet((3, 32, 32), 10, activation=activation),
        Init(FanOutPower(1.5), convolution=Glorot()),
        Arrays(images, np.eye(10)[labels]),
        Adam(3e-8),
        EPOCHS * (N // BATCH),
        Loss("cross_entropy"),
        save=At(()),
        record=At(()),
        dtype="tf32",
        batch_size=BATCH,
        kept_layers=("dense1",),
    )
    seen: list[tuple[int, float]] = []
    train(experiment, 1, progress=lambda p: seen.append((p.done, time.perf_counter())))
    return _epochs(seen, N // BATCH)


def _epochs(seen: list[tuple[int, float]], steps: int) -> list[float]:
    """Seconds of each epoch, read off the times at which steps were reported."""
    done, times = (np.array(column, float) for column in zip(*seen, strict=True))
    return np.diff(np.interp(np.arange(0, done[-1] + 1, steps), done, times)).tolist()


def theirs(images: np.ndarray, labels: np.ndarray) -> list[float]:
    """Seconds of each epoch of PyTorch."""
    import torch
    from torch import nn

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.inner = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
                nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after),
            )  # fmt: skip
            same = stride == 1 and before == after
            self.skip = nn.Identity() if same else nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )  # fmt: skip

        def forward(self, h: torch.Tensor) -> torch.Tensor:
            return nn.functional.relu(self.inner(h) + self.skip(h), inplace=True)

    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    for before, after, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)):
        layers += [Block(before, after, stride), Block(after, after, 1)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1024), nn.Tanh()]
    layers += [nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 10, bias=False)]
    network = nn.Sequential(*layers).cuda().to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.Adam(network.parameters(), 3e-8, fused=True)
    x = torch.tensor(images, dtype=torch.float32).cuda().to(memory_format=torch.channels_last)
    y = torch.tensor(labels).cuda()
    seconds = []
    for _ in range(EPOCHS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for batch in torch.randperm(N, device="cuda")[: N // BATCH * BATCH].split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
            optimizer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds


def main() -> None:
    """Time both and print the epochs' seconds as JSON."""
    stream = np.random.default_rng(0)
    images, labels = stream.normal(size=(N, 3, 32, 32)).astype(np.float32), stream.integers(10, size=N)
    found = {"ours": ours(images, labels), "pytorch": theirs(images, labels)}
    found["ratio"] = [min(found["ours"][1:]) / min(found["pytorch"][1:])]
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
