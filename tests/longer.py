"""Trainings of each kind that take some seconds, and one as a process of its own: python longer.py NAME OUT SEEDS.

It writes where it is many times a second, and says when it moves.
"""

import sys
import warnings

import numpy as np

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    Conv,
    Dense,
    Every,
    Experiment,
    GradientFlow,
    Init,
    Loss,
    Normal,
    ResNet,
    sine_sum,
    train,
)
from condensation.training import Progress
from condensation.training import _chunks as chunks
from condensation.training import _work as work

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
BASE = Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), DATA, Adam(1e-3), 300, save=Every(50))
stream = np.random.default_rng(0)
IMAGES = Arrays(stream.normal(size=(32, 1, 10, 10)), np.eye(3)[stream.integers(3, size=32)])
CONV = Conv((1, 10, 10), channels=(4,), kernel=3, outputs=3, hidden=(16,))
LONG = {
    "adam": BASE.replace(steps=100_000, save=Every(25_000)),
    "gd": BASE.replace(optimizer=GD(1e-3), steps=100_000, save=Every(25_000)),
    "batches": BASE.replace(batch_size=16, steps=100_000, save=Every(25_000), **{"network.dropout": 0.2}),
    "flow": BASE.replace(optimizer=GradientFlow(0.05), steps=5000, save=Every(1000)),
    "conv": Experiment(CONV, Init(Normal(0.1)), IMAGES, Adam(1e-3), 5000, Loss("cross_entropy"), save=Every(1000)),
    "resnet": Experiment(
        ResNet((1, 10, 10), 3, (16,), channels=(4, 8), depth=1, stem="small"), Init(Normal(0.1)), IMAGES, Adam(1e-3),
        800, Loss("cross_entropy"), save=Every(200), record=Every(200), batch_size=8, test=IMAGES,
    ),
}  # fmt: skip


def same(one, other) -> None:
    assert one.experiment == other.experiment
    assert one.seeds == other.seeds
    assert one.diverged == other.diverged
    for ours, theirs in ((one.parameters, other.parameters), (one.curves, other.curves)):
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def main(name: str, out: str, seeds: str = "2") -> None:
    """Train, and say when it moves and when it is done."""
    warnings.simplefilter("ignore")
    work.KEEP_SECONDS = 0.05
    chunks.SECONDS_PER_CALL = 0.02
    moving = iter(["moving"])

    def tell(_: Progress) -> None:
        for word in moving:
            print(word, flush=True)

    train(LONG[name], int(seeds), out=out, progress=tell)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
