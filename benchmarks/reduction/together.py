"""Training of one network from several seeds at once on a GPU: each step is a CUDA graph, each seed has its stream."""

import math
import time
from collections.abc import Callable

import torch
from networks import make
from torch import Tensor, nn
from torch.nn import functional as F
from training import crop_and_flip

RATES = {"resnet56": 0.4, "vgg16": 0.2, "mobilenetv2": 0.2}  # the highest
MOMENTUM, DECAY, BATCH = 0.9, 5e-4, 256
WARM = 0.15  # of the schedule


class Training:
    """SGD with Nesterov's momentum, a linear warm-up and a cosine, crops and flips, products in bfloat16 on a GPU."""

    def __init__(self, name: str, seed: int, x: Tensor, y: Tensor, gain: float = 1.0) -> None:
        self.seed, self.highest, self.images, self.classes = seed, RATES[name], x, y
        network = make(name, seed, gain).to(x.device).train()
        self.network = network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.parameters = [value for value in self.network.parameters() if value.requires_grad]
        self.velocity = [torch.zeros_like(value) for value in self.parameters]
        self.kind = torch.bfloat16 if x.is_cuda else torch.float32  # few CPUs are fast in the former
        self.x = x[:BATCH].to(self.kind).contiguous(memory_format=torch.channels_last)
        self.y, self.rate = y[:BATCH].clone(), torch.zeros((), device=x.device)
        self.loss = torch.zeros((), device=x.device)
        self.stream = torch.cuda.Stream() if x.is_cuda else None
        self.graph = self._captured() if x.is_cuda else None

    def _step(self) -> None:
        with torch.autocast("cuda", torch.bfloat16, enabled=self.x.is_cuda, cache_enabled=False):
            loss = F.cross_entropy(self.network(self.x).float(), self.y)
        gradients = list(torch.autograd.grad(loss, self.parameters))
        with torch.no_grad():
            torch._foreach_add_(gradients, self.parameters, alpha=DECAY)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_mul_(self.velocity, MOMENTUM)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_add_(self.velocity, gradients)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_add_(gradients, self.velocity, alpha=MOMENTUM)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_mul_(gradients, self.rate)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_sub_(self.parameters, gradients)  # pyright: ignore[reportPrivateImportUsage]
            self.loss += loss.detach()

    def _captured(self) -> torch.cuda.CUDAGraph:
        """A step as a graph; the steps that warm up for it, at a rate of zero, leave everything as it was."""
        before = {key: value.clone() for key, value in self.network.state_dict().items()}
        graph = torch.cuda.CUDAGraph()
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self._step()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph, stream=self.stream):
                self._step()
            self.network.load_state_dict(before)
            torch._foreach_zero_([*self.velocity, self.loss])  # pyright: ignore[reportPrivateImportUsage]
        torch.cuda.synchronize()
        return graph

    def begin(self, epoch: int) -> None:
        """Crop, flip and shuffle the images of an epoch."""
        with torch.cuda.stream(self.stream):
            stream = torch.Generator(self.images.device).manual_seed(1000 * self.seed + epoch)
            order = torch.randperm(len(self.images), generator=stream, device=self.images.device)
            self.seen = crop_and_flip(self.images[order].to(self.kind), stream)
            self.told = self.classes[order]
            self.loss.zero_()

    def step(self, k: int, done: float) -> None:
        """The k-th step of an epoch, at this share of the whole training."""
        high = self.highest
        rate = high * done / WARM if done < WARM else high * (1 + math.cos(math.pi * (done - WARM) / (1 - WARM))) / 2
        with torch.cuda.stream(self.stream):
            self.x.copy_(self.seen[k * BATCH : (k + 1) * BATCH])
            self.y.copy_(self.told[k * BATCH : (k + 1) * BATCH])
            self.rate.fill_(rate)
            if self.graph is None:
                self._step()
            else:
                self.graph.replay()


def train_together(
    name: str, seeds: list[int], x: Tensor, y: Tensor, epochs: Callable[[float], int], gain: float = 1.0
) -> tuple[list[nn.Module], int]:
    """Networks of all seeds, and how many epochs they were trained for, by the seconds that one takes."""
    trainings = [Training(name, seed, x, y, gain) for seed in seeds]
    steps = len(x) // BATCH

    def wait() -> float:
        if x.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    for training in trainings:
        training.begin(0)
    few, began = min(10, steps) if x.is_cuda else 1, wait()
    for k in range(2 * few):  # at a rate of zero; the first half warms up
        began = wait() if k == few else began
        for training in trainings:
            training.step(k % few, 0.0)
    count = epochs((wait() - began) / few * steps)
    for training in trainings:
        torch._foreach_zero_(training.velocity)  # pyright: ignore[reportPrivateImportUsage]
    wait()
    for epoch in range(count):
        began = wait()
        for training in trainings:
            training.begin(epoch)
        for k in range(steps):
            for training in trainings:
                training.step(k, (epoch + k / steps) / count)
        seconds = wait() - began
        losses = ", ".join(f"{float(training.loss) / steps:.3f}" for training in trainings)
        print(f"{name}: epoch {epoch + 1} of {count}, loss {losses}, {seconds:.2f} s", flush=True)
    plain = torch.contiguous_format
    return [one.network.to(memory_format=plain).eval() for one in trainings], count  # pyright: ignore[reportCallIssue]
