"""What training is compared with: PyTorch, as its users write it."""

import time
from collections.abc import Callable

import numpy as np
import torch

from condensation import GD, Adam, Conv, Dense, Experiment, Seed

FUNCTIONS = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "softplus": torch.nn.functional.softplus,
    "x_tanh": lambda z: z * torch.tanh(z), "x2_tanh": lambda z: z * z * torch.tanh(z),
}  # fmt: skip


class Network(torch.nn.Module):
    """A dense network, one layer after the other."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        network = experiment.network
        assert isinstance(network, Dense)
        self.activations, self.residual = [FUNCTIONS[str(name)] for name in network.activations], network.residual
        dtype = getattr(torch, experiment.dtype)
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(shape.weight[1], shape.weight[0], bias=shape.has_bias, dtype=dtype)
            for shape in network.layers
        )
        for parameter in self.parameters():
            torch.nn.init.normal_(parameter, std=0.005)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        for k, activation in enumerate(self.activations):
            new = activation(self.layers[k](h))
            h = new + h if self.residual and k else new
        return self.layers[-1](h)


class ConvNetwork(torch.nn.Module):
    """Convolutions with tanh, dense hidden layers with relu, an output layer."""

    def __init__(self, network: Conv) -> None:
        super().__init__()
        ins = (network.image[0], *network.channels)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv2d(ins[k], ins[k + 1], network.layers[k].weight[-1]) for k in range(len(network.channels))
        )
        dense = [layer.weight for layer in network.layers if not layer.is_convolution]
        self.dense = torch.nn.ModuleList(torch.nn.Linear(into, out) for out, into in dense)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        for layer in self.convolutions:
            h = torch.tanh(layer(h))
        h = h.flatten(1)
        for layer in self.dense[:-1]:
            h = torch.relu(layer(h))
        return self.dense[-1](h)


class Loop:
    """A PyTorch training loop that can be timed again and again, eager or compiled by inductor.

    Compiled are the loss, with what autograd makes of it, and the optimizer's step.
    """

    def __init__(self, loss: Callable[[], torch.Tensor], optimizer: torch.optim.Optimizer, threads: int) -> None:
        self.loss, self.move, self.optimizer, self.threads = loss, optimizer.step, optimizer, threads

    def compiled(self) -> "Loop":
        """The same, compiled."""
        made = Loop(torch.compile(self.loss), self.optimizer, self.threads)
        made.move = torch.compile(self.optimizer.step)
        return made

    def __call__(self, steps: int, before: int = 1) -> float:
        """Seconds of a step, after some that are not timed."""
        torch.set_num_threads(self.threads)
        self._run(before)
        began = time.perf_counter()
        self._run(steps)
        return (time.perf_counter() - began) / steps

    def _run(self, count: int) -> None:
        for _ in range(count):
            self.optimizer.zero_grad()
            self.loss().backward()
            self.move()


def conv_loop(experiment: Experiment) -> Loop:
    """A plain loop over a convolutional network on two threads."""
    assert isinstance(experiment.network, Conv) and isinstance(experiment.optimizer, Adam | GD)
    network = ConvNetwork(experiment.network)
    x, y = (torch.tensor(v, dtype=torch.float32) for v in experiment.data.draw(Seed(0, 0)))
    make = torch.optim.Adam if isinstance(experiment.optimizer, Adam) else torch.optim.SGD

    def loss() -> torch.Tensor:
        f = network(x)
        if experiment.loss.name == "cross_entropy":
            return torch.nn.functional.cross_entropy(f, y)
        return ((f.softmax(1) - y) ** 2).sum() / 2

    return Loop(loss, make(network.parameters(), experiment.optimizer.learning_rate), 2)


def plain_loop(experiment: Experiment) -> Loop:
    """A plain loop over ``nn.Module`` and ``torch.optim.Adam`` on one thread."""
    assert isinstance(experiment.optimizer, Adam)
    network = Network(experiment)
    x, y = (torch.tensor(v, dtype=getattr(torch, experiment.dtype)) for v in experiment.data.draw(Seed(0, 0)))
    loss = lambda: torch.nn.functional.mse_loss(network(x), y) / 2  # noqa: E731
    return Loop(loss, torch.optim.Adam(network.parameters(), experiment.optimizer.learning_rate), 1)


def batched_by_hand(experiment: Experiment, networks: int) -> Loop:
    """An ensemble of two-layer tanh networks batched by hand, autograd, fused Adam, two threads."""
    assert isinstance(experiment.optimizer, Adam) and isinstance(experiment.network, Dense)
    dtype = getattr(torch, experiment.dtype)
    inputs, (width,) = experiment.network.inputs, experiment.network.hidden
    pairs = [experiment.data.draw(Seed(k, k)) for k in range(networks)]
    x, y = (torch.tensor(np.stack(part), dtype=dtype) for part in zip(*pairs, strict=True))
    shapes = ((networks, inputs, width), (networks, 1, width), (networks, width, 1))
    w, b, a = ((torch.randn(shape, dtype=dtype) * 0.005).requires_grad_() for shape in shapes)
    optimizer = torch.optim.Adam([w, b, a], experiment.optimizer.learning_rate, fused=True)
    loss = lambda: ((torch.baddbmm(b, x, w).tanh() @ a - y) ** 2).mean(dim=(1, 2)).sum() / 2  # noqa: E731
    return Loop(loss, optimizer, 2)
