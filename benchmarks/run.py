"""Speed and memory, side by side in one run: writes RESULTS.md beside this file.

Each row is repeated with the two sides in turn; the ratio is the median over the repetitions, so that a machine that is
slow for a while slows both sides.
"""

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from floor import train_in_c
from rivals import Loop, batched_by_hand, conv_loop, plain_loop

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    ChannelPower,
    Conv,
    Dense,
    Evenly,
    Experiment,
    GradientFlow,
    Init,
    Loss,
    Model,
    Normal,
    reduce,
    sine_sum,
    train,
)
from condensation._versions import versions
from condensation.theory import KernelDynamics, extremal_directions, fates, stationary_directions
from condensation.training import GradientBelowEps

REPEATS = 5
SYNTHETIC = ("fc-fig1", "fc-fig3", "fc-fig4", "fc-fig5", "fc-fig6", "fc-prop1", "fc-degenerate", "fc-a5", "fc-a6")
FEW = Evenly(2)
TWO_LAYER = Experiment(
    Dense((5, 50, 1)),
    Init(Normal(0.005)),
    sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2),
    Adam(1e-3),
    5000,
    save=FEW,
    record=FEW,
)
SIX_LAYER = Experiment(
    Dense((3, *[18] * 5, 1), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True),
    Init(Normal(0.01)),
    sine_sum(4, 12, 1, dim=3, n=80, low=-4, high=2),
    Adam(4e-5, eps=1e-8),
    2000,
    save=FEW,
    record=FEW,
)


@dataclass
class Row:
    what: str
    ours: str
    theirs: str
    ratio: str
    asked: str
    floor: str


def ours(experiment: Experiment, seeds: int) -> float:
    began = time.perf_counter()
    train(experiment, seeds)
    return time.perf_counter() - began


@dataclass
class Comparison:
    """Medians over the repetitions, a step: seconds, and ratios of what was timed in turn."""

    ours: float
    eager: float
    compiled: float
    floor: float
    over_rival: float  # our time over that of PyTorch's faster one
    over_floor: float

    def rival(self, unit: str, scale: float, digits: int) -> str:
        """PyTorch's two times in words."""
        return f"{self.eager * scale:.{digits}f}, compiled {self.compiled * scale:.{digits}f} {unit}"


def compare(
    mine: Callable[[], float],
    rival: Loop,
    steps: int,
    floor: Callable[[], float] = lambda: 1.0,
    repeats: int = REPEATS,
) -> Comparison:
    """Times in turn: ours, PyTorch's (eager and compiled; so many of its steps), and the floor's."""
    compiled = rival.compiled()
    for warm in (mine, floor, lambda: compiled(2)):
        warm()
    rows = [(mine(), rival(steps), compiled(steps), floor()) for _ in range(repeats)]
    own, eager, fast, least = (statistics.median(column) for column in zip(*rows, strict=True))
    over_rival = statistics.median(row[0] / min(row[1:3]) for row in rows)
    over_floor = statistics.median(row[0] / row[3] for row in rows)
    return Comparison(own, eager, fast, least, over_rival, over_floor)


def single(name: str, experiment: Experiment, dtype: str, asked: float) -> Row:
    chosen = experiment.replace(dtype=dtype)
    steps = chosen.steps
    found = compare(
        lambda: ours(chosen, 1) / steps, plain_loop(chosen), 500, lambda: train_in_c(chosen, steps)[0] / steps
    )
    return Row(
        f"{name}, one network, {dtype}", f"{found.ours * 1e6:.1f} us/step", found.rival("us/step", 1e6, 0),
        f"{1 / found.over_rival:.1f}", f">= {asked:g}",
        f"{found.over_floor:.2f} x C loop ({found.floor * 1e6:.1f} us)",
    )  # fmt: skip


def ensemble(dtype: str, asked: float, networks: int = 1024) -> Row:
    chosen = TWO_LAYER.replace(dtype=dtype, steps=1000)
    found = compare(
        lambda: ours(chosen, networks) / chosen.steps,
        batched_by_hand(chosen, networks),
        20,
        lambda: train_in_c(chosen, 5000)[0] / 5000 * networks / 2,
    )
    return Row(
        f"5-50-1, ensemble of {networks}, {dtype}", f"{found.ours * 1e3:.2f} ms/step", found.rival("ms/step", 1e3, 1),
        f"{1 / found.over_rival:.1f}", f">= {asked:g}",
        f"{found.over_floor:.2f} x C loop on two cores ({found.floor * 1e3:.2f} ms)",
    )  # fmt: skip


def convolution(name: str, network: Conv, optimizer: Adam | GD, loss: Loss) -> Row:
    """A captioned network of the CNN paper on 500 images, a step against PyTorch's."""
    stream = np.random.default_rng(0)
    data = Arrays(stream.uniform(-1, 1, (500, 3, 32, 32)), np.eye(10)[stream.integers(10, size=500)])
    start = Init(Normal(1e-4), convolution=ChannelPower(2))
    steps = 8
    chosen = Experiment(network, start, data, optimizer, steps, loss, save=FEW, record=FEW, dtype="float32")
    found = compare(lambda: train(chosen, 1).seconds / (steps + 1), conv_loop(chosen), steps, repeats=3)
    return Row(
        name, f"{found.ours * 1e3:.0f} ms/step", found.rival("ms/step", 1e3, 0), f"{found.over_rival:.2f} of PyTorch",
        "<= 1", "",
    )  # fmt: skip


def snapshots() -> Row:
    """The cost of saving 100 snapshots in 10,000 steps, in memory and on disk."""
    plain = TWO_LAYER.replace(steps=10_000)
    saving = plain.replace(save=Evenly(101))
    for chosen in (plain, saving):
        ours(chosen, 1)
    rows = [(ours(plain, 1), ours(saving, 1), kept(saving)) for _ in range(2 * REPEATS)]
    memory = statistics.median(b / a - 1 for a, b, _ in rows)
    disk = statistics.median(c / a - 1 for a, _, c in rows)
    seconds = statistics.median(a for a, _, _ in rows)
    return Row(
        "saving 100 snapshots in 10,000 steps, 5-50-1", f"{memory:+.0%} (kept on disk: {disk:+.0%})", "", "", "<= +10%",
        f"of {seconds * 1e3:.0f} ms",
    )  # fmt: skip


def kept(experiment: Experiment) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        train(experiment, 1, out=folder)
        return time.perf_counter() - began


def flow() -> Row:
    chosen = TWO_LAYER.replace(optimizer=GradientFlow(0.05, stop_ratio=0.99), steps=400, save=FEW, record=Evenly(41))
    ours(chosen, 10)
    seconds = statistics.median(ours(chosen, 10) for _ in range(REPEATS))
    return Row("gradient flow of 10 tanh networks to L/L0 = .99", f"{seconds * 1e3:.0f} ms", "", "", "< 5 s", "")


LINES = """
import re, time, numpy as np
from condensation.measure import find_lines
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
stream = np.random.default_rng(0)
axes = stream.normal(size=(3, 1000))
labels = stream.integers(3, size=20_000)
weights = np.empty((20_000, 1000))
for k, label in enumerate(labels):
    weights[k] = stream.choice([-1.0, 1.0]) * axes[label] + 0.05 * stream.normal(size=1000)
find_lines(weights[:100])
began = time.perf_counter(); weights.sum(); once = time.perf_counter() - began
before = peak()
began = time.perf_counter(); found = find_lines(weights); seconds = time.perf_counter() - began
after = peak()
assert found.count == 3 and found.condensed
print(seconds, after - before, after, once)
"""


def lines() -> Row:
    runs = [run_python(LINES) for _ in range(3)]
    seconds, extra, peak, once = (statistics.median(column) for column in zip(*runs, strict=True))
    floor = f"{seconds / once:.0f} x one pass over them ({once * 1e3:.0f} ms); whole process {peak:.0f} MB"
    return Row(
        "lines of 20,000 x 1000 condensed weights (160 MB)", f"{seconds:.2f} s, {extra:.0f} MB more", "",
        "", "< 1 s, < 500 MB", floor,
    )  # fmt: skip


FETCH = """
import sys, time
from condensation.data._sources import fetch, load
began = time.perf_counter(); fetch(sys.argv[1]); fetched = time.perf_counter() - began
began = time.perf_counter(); load(sys.argv[1]); print(fetched, time.perf_counter() - began)
"""


def images(name: str, asked: str) -> Row:
    """Fetching a set of images into an empty cache, and loading it from there."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONDENSATION_CACHE"] = folder
        fetched, loaded = run_python(FETCH, name)
    return Row(f"first fetch of {name}", f"{fetched:.1f} s", "", "", asked, f"loaded again in {loaded * 1e3:.1f} ms")


def reduction() -> Row:
    """A layer of 1024 neurons on 10 lines, 784 inputs, reduced to 10 with its errors on 1000 samples."""
    stream = np.random.default_rng(0)
    lines = stream.normal(size=(10, 785))[stream.integers(10, size=1024)]
    rows = 0.01 * stream.normal(size=(1024, 1)) * lines + 1e-4 * stream.normal(size=(1024, 785))
    parts = {"dense1.weight": rows[:, :-1], "dense1.bias": rows[:, -1], "output.weight": stream.normal(size=(10, 1024))}
    model, x = Model(Dense((784, 1024, 10)), parts), stream.normal(size=(1000, 784))
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        assert reduce(model, x, units=10).sizes == {"dense1": (1024, 10)}
        seconds.append(time.perf_counter() - began)
    return Row("reduction of a layer of 1024 units", f"{statistics.median(seconds):.2f} s", "", "", "< 1 s", "")


def theory() -> list[Row]:
    """Stationary directions with and without a certificate, those of relu, and the fates of 1000 neurons."""
    rows = []
    for dim, n, asked in ((6, 80, "< 1 s"), (20, 200, "< 10 s")):
        stream = np.random.default_rng(0)
        x, r = stream.normal(size=(n, dim)), stream.normal(size=n)
        seconds = statistics.median(timed(lambda: stationary_directions(x, r, 3)) for _ in range(REPEATS))  # noqa: B023
        found = stationary_directions(x, r, 3)
        kind = "all, certified" if found.certified else "attracting, not certified"
        rows.append(Row(f"directions, p = 3, D = {dim}, n = {n}: {kind}", f"{seconds:.2f} s", "", "", asked, ""))
    stream = np.random.default_rng(0)
    x, r, w = stream.normal(size=(80, 6)), stream.normal(size=80), 1e-3 * stream.normal(size=(1000, 6))
    a = 1e-3 * stream.normal(size=1000)
    for activation in ("tanh", "x_tanh", "x2_tanh"):
        fates(w, a, x, r, activation)
        seconds = statistics.median(timed(lambda: fates(w, a, x, r, activation)) for _ in range(3))  # noqa: B023
        rows.append(Row(f"fates of 1000 neurons, {activation}", f"{seconds:.2f} s", "", "", "< 1 s", ""))
    inputs, targets = np.c_[stream.normal(size=(400, 5)), np.ones(400)], stream.normal(size=(400, 3))
    for outputs in (1, 3):
        seconds = statistics.median(
            timed(lambda: extremal_directions(inputs, targets[:, :outputs], starts=1000))  # noqa: B023
            for _ in range(3)
        )
        what = f"directions of relu, D = 6, n = 400, outputs: {outputs}, 1000 starts"
        rows.append(Row(what, f"{seconds:.2f} s", "", "", "< 1 s", ""))
    lines = extremal_directions(inputs, targets[:, 0], starts=1000)
    seconds = timed(lambda: fates(w, a, inputs, targets[:, 0], "relu", directions=lines))
    rows.append(Row("fates of 1000 neurons, relu, n = 400", f"{seconds:.2f} s", "", "", "< 1 s", ""))
    return rows


def spectrum() -> Row:
    """Z, its gap and v1 for 500 images of CIFAR-10's size."""
    stream = np.random.default_rng(0)
    x, y = stream.uniform(-1, 1, (500, 3, 32, 32)), np.eye(10)[stream.integers(10, size=500)]

    def find() -> object:
        found = KernelDynamics.of(x, y, 3, Loss("softmax_mse"))
        return found.v1, found.gap

    find()
    seconds = statistics.median(timed(find) for _ in range(REPEATS))
    return Row("v1 and gap of Z, 500 images of 3 x 32 x 32, ten outputs", f"{seconds:.2f} s", "", "", "< 1 s", "")


def reproduction() -> list[Row]:
    """All figures at the quick scale from a cold start, compilation included: the synthetic ones, then all."""
    rows = []
    for what, names, asked in (
        ("synthetic FC figures", SYNTHETIC, "< 90 s"),
        ("figures of both papers, quick scale", (), "< 600 s"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "condensation", "reproduce", *names, "--out", folder]
            seconds = timed(lambda: subprocess.run(command, capture_output=True, check=True))  # noqa: B023
        rows.append(Row(f"reproduce all {what}", f"{seconds:.0f} s", "", "", asked, ""))
    return rows


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def importing() -> Row:
    code = "import time; t = time.perf_counter(); import condensation; print(time.perf_counter() - t)"
    whole = code.replace("import condensation;", "from condensation import Experiment, train, find_lines;")
    light = statistics.median(run_python(code)[0] for _ in range(REPEATS))
    heavy = statistics.median(run_python(whole)[0] for _ in range(REPEATS))
    return Row(
        "import condensation", f"{light:.2f} s", "", "", "< 1.5 s", f"with JAX and training loaded: {heavy:.2f} s"
    )


def run_python(code: str, *arguments: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return [float(part) for part in done.stdout.split()]


def check_floor() -> None:
    """The C loop must train the same network, or it is no floor."""
    for experiment in (TWO_LAYER, SIX_LAYER):
        short = experiment.replace(steps=100)
        _, theirs = train_in_c(short, 100)
        mine = train(short, 1).parameters_at(100, 0)
        for name, value in theirs.items():
            np.testing.assert_allclose(mine[name], value, atol=1e-7, err_msg=name)


def main() -> None:
    warnings.simplefilter("ignore", GradientBelowEps)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))  # the same two cores for both sides
    cross_entropy = Loss("cross_entropy")
    check_floor()
    rows = [
        single("5-50-1", TWO_LAYER, "float32", 20),
        single("5-50-1", TWO_LAYER, "float64", 15),
        single("six layers, residual", SIX_LAYER, "float32", 7),
        single("six layers, residual", SIX_LAYER, "float64", 7),
        ensemble("float32", 4),
        ensemble("float64", 4),
        lines(),
        importing(),
        convolution("CNN Fig. 2", Conv((3, 32, 32), (32,), 3, 10), GD(5e-6), Loss("softmax_mse", "sum")),
        convolution("CNN Fig. 4", Conv((3, 32, 32), (32,), 5, 10, (1024,)), Adam(5e-7), cross_entropy),
        convolution("CNN Fig. 3", Conv((3, 32, 32), (32, 32, 32), 5, 10, (1024,)), Adam(2e-6), cross_entropy),
        snapshots(),
        flow(),
        reduction(),
        *theory(),
        spectrum(),
        *reproduction(),
        images("mnist", "< 10 s, loaded < 0.1 s"),
        images("cifar10", "< 60 s, loaded < 0.1 s"),
    ]
    header = ("case", "ours", "PyTorch", "ratio", "asked", "floor")
    table = [header, ("---",) * len(header), *((r.what, r.ours, r.theirs, r.ratio, r.asked, r.floor) for r in rows)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in table)
    stack = ", ".join(f"{name} {version}" for name, version in versions().items())
    page = f"""# Speed and memory

Written by `make bench`. Full-batch Adam, n = 80, after compilation; our side draws data and start and makes the
trajectory, too. PyTorch: `nn.Module` and `torch.optim.Adam` in a plain loop on one thread; the ensemble is batched by
hand with autograd and fused Adam on two threads; each eager, and with the loss and the optimizer's step compiled
(`torch.compile`, inductor), and the ratio is to the faster one. The floor is the same training in C (`floor.c`, gcc
-Ofast -march=native), checked to end with the same weights. The convolutional networks are those of the CNN paper's
captions on 500 images of 3 x 32 x 32, full batch, float32, both sides on two cores.

{text}

What was measured on a GPU stands in [GPU.md](GPU.md).

Machine: {platform.machine()}, two cores for both sides. {stack}.
"""
    Path(__file__).with_name("RESULTS.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
