"""A training step of the CNN paper's networks on a GPU, beside PyTorch: `python benchmarks/convolution.py`.

Both train on 500 random images that lie on the GPU, full batch, products in TF32. PyTorch's step is captured in a CUDA
graph, with fused Adam and benchmarked convolutions, and the faster of its two memory layouts counts. Ours is `train`,
as a user calls it. The two are timed in turn, PyTorch in a process of its own. The share of the GPU's rate counts the
multiplications and additions of convolutions and dense layers against a large TF32 matrix product in the same run.
"""

import json
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from condensation import GD, Adam, Arrays, At, ChannelPower, Conv, Experiment, Init, Loss, Normal, train

N, STEPS, REPEATS = 500, 1500, 3
CASES = {
    "Fig. 2": (Conv((3, 32, 32), (32,), 3, 10), GD(5e-6), Loss("softmax_mse", "sum")),
    "Fig. 3": (Conv((3, 32, 32), (32, 32, 32), 5, 10, (1024,)), Adam(2e-6), Loss("cross_entropy")),
    "Fig. 4": (Conv((3, 32, 32), (32,), 5, 10, (1024,)), Adam(5e-7), Loss("cross_entropy")),
}


def ours(case: str, data: Arrays) -> Callable[[], float]:
    """Seconds of a step of ours, without what comes before the first."""
    network, optimizer, loss = CASES[case]
    start = Init(Normal(1e-4), convolution=ChannelPower(2))
    experiment = Experiment(
        network, start, data, optimizer, STEPS, loss, save=At(()), record=At(()), dtype="tf32", kept_layers=("conv1",)
    )
    train(experiment.replace(steps=20), 1)
    return lambda: train(experiment, 1).seconds / STEPS


def theirs(case: str, data: Arrays, channels_last: bool) -> Callable[[], float]:
    """Seconds of a step of PyTorch's captured graph."""
    import torch
    from torch import nn

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    network, optimizer, loss = CASES[case]
    parts: list[nn.Module] = []
    before = network.image[0]
    for after in network.channels:
        parts += [nn.Conv2d(before, after, network.kernel), nn.Tanh()]
        before = after
    parts.append(nn.Flatten())
    inputs = before * network.sides()[-1][0] * network.sides()[-1][1]
    for width in network.hidden:
        parts += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    model = nn.Sequential(*parts, nn.Linear(inputs, network.outputs, bias=False)).cuda()
    x = torch.tensor(data.x, dtype=torch.float32).cuda()
    y = torch.tensor(data.y, dtype=torch.float32).cuda()
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    rate = optimizer.learning_rate
    descent: Any = (
        torch.optim.SGD(model.parameters(), rate, foreach=True)
        if isinstance(optimizer, GD)
        else torch.optim.Adam(model.parameters(), rate, fused=True, capturable=True)
    )

    def step() -> None:
        descent.zero_grad(set_to_none=False)
        outputs = model(x)
        if loss.name == "softmax_mse":
            value = ((outputs.softmax(1) - y) ** 2).sum() / 2
        else:
            value = nn.functional.cross_entropy(outputs, y)
        value.backward()
        descent.step()

    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(10):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def run() -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(STEPS):
            graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / STEPS

    return run


def operations(network: Conv) -> float:
    """Multiplications and additions of a step: forward, and backward to weights and (but for the images) to inputs."""
    ins, total = (network.image[0], *network.channels), 0.0
    for k, out in enumerate(network.channels):
        height, width = network.sides()[k + 1]
        kernel = math.prod(network.layers[k].weight[2:])
        total += 2 * N * height * width * out * ins[k] * kernel * (2 if k == 0 else 3)
    for layer in network.layers[len(network.channels) :]:
        total += 2 * N * layer.weight[0] * layer.weight[1] * 3
    return total


def peak() -> float:
    """Operations in a second of a large TF32 matrix product."""
    import torch

    a = torch.randn(8192, 8192, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    out = a @ a
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(20):
        torch.matmul(a, a, out=out)
    torch.cuda.synchronize()
    return 20 * 2 * 8192**3 / (time.perf_counter() - began)


def images() -> Arrays:
    """Random images and classes."""
    stream = np.random.default_rng(0)
    return Arrays(stream.uniform(-1, 1, (N, 3, 32, 32)), np.eye(10)[stream.integers(10, size=N)])


class PyTorch:
    """PyTorch in a process of its own that times a case's step whenever it is asked."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, __file__, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self) -> float:
        """What it says next."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self) -> None:
        """Let it go."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def answer(case: str, layout: str) -> None:
    """Be the process that times PyTorch."""
    run = peak if case == "peak" else theirs(case, images(), layout == "nhwc")
    for _ in sys.stdin:
        print(run(), flush=True)


def main() -> None:
    """Time all in turn and print microseconds, ratios and shares as JSON."""
    warnings.simplefilter("ignore")
    data, found = images(), {}
    product = PyTorch("peak", "")
    top = max(product() for _ in range(REPEATS))
    product.end()
    for case, (network, _, _) in CASES.items():
        mine = ours(case, data)
        rivals = {layout: PyTorch(case, layout) for layout in ("nchw", "nhwc")}
        rows = [(mine(), min(rival() for rival in rivals.values())) for _ in range(REPEATS)]
        for rival in rivals.values():
            rival.end()
        own, other = (statistics.median(column) for column in zip(*rows, strict=True))
        rate = operations(network) / own
        found[case] = {
            "ours (us)": round(own * 1e6, 1),
            "PyTorch (us)": round(other * 1e6, 1),
            "ratio": round(statistics.median(a / b for a, b in rows), 3),
            "TFLOP/s": round(rate / 1e12, 1),
            "share of the TF32 product's": round(rate / top, 3),
        }
    found["TF32 product (TFLOP/s)"] = round(top / 1e12)
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    answer(*sys.argv[1:]) if len(sys.argv) > 1 else main()
