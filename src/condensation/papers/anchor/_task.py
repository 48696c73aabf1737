"""The task and its transformer: two anchors behind a key, one of their sixteen pairs never seen."""

from dataclasses import dataclass

from ...data import AnchorFunctions
from ...experiment import Experiment
from ...initialization import FanInPower, Init
from ...losses import Loss
from ...networks import Attention
from ...optimizers import AdamW
from ...saving import At
from ...schedules import Cosine, Product, Warmup

SHIFTS = ((1, 5), (2, 1), (3, -2), (4, -8))
GIVEN, UNSEEN = (3, 4), (4, 3)  # the pair with a shift of its own, and its mirror image
OWN = -6  # the shift of the pair that has one; composed it would be -10
PAIRS = tuple((a, b) for a, _ in SHIFTS for b, _ in SHIFTS)
TRAINED = tuple(pair for pair in PAIRS if pair != UNSEEN)


@dataclass(frozen=True)
class Size:
    """How large the task, the transformer and the training are."""

    keys: tuple[int, int]
    length: int
    vocabulary: int
    sequences: int
    width: int
    head_width: int
    feed_forward: int
    batch: int
    rate: float
    warm_up: int
    cosine: int
    steps: int
    saved: tuple[int, ...]
    dtype: str


SIZES = {
    "paper": Size(
        (20, 99), 9, 201, 759_375, 400, 200, 1200, 2048, 2.5e-4, warm_up=3700, cosine=77_700, steps=12_000,
        saved=(250, 500, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 10_000), dtype="tf32",
    ),
    "quick": Size(
        (20, 43), 5, 56, 5000, 32, 16, 64, 128, 5e-3, warm_up=100, cosine=2000, steps=1000,
        saved=(50, 100, 150, 200, 250, 300, 400, 600), dtype="float32",
    ),
}  # fmt: skip


def transformer(scale: str, depth: int = 2, gamma: float = 0.5) -> Experiment:
    """The training of one cell: every weight begins with a std of its number of inputs to the power -gamma."""
    size, law = SIZES[scale], FanInPower(gamma)
    return Experiment(
        Attention(
            size.length, size.width, size.vocabulary, vocabulary=size.vocabulary, positions=True, depth=depth,
            head_width=size.head_width, causal=True, feed_forward=size.feed_forward, residual=True, norm="post",
            activation="relu",
        ),
        Init(law),
        AnchorFunctions(
            size.sequences, size.vocabulary, size.length, SHIFTS, size.keys, count=2, side="before",
            own_shifts=((*GIVEN, OWN),), only=TRAINED, places="trained",
        ),
        AdamW(size.rate, weight_decay=0.01, schedule=Product((Warmup(size.warm_up), Cosine(size.cosine)))),
        size.steps, loss=Loss("cross_entropy"), save=At(size.saved), record=At(size.saved), dtype=size.dtype,
        batch_size=size.batch,
    )  # fmt: skip
