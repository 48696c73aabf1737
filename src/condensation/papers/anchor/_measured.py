"""What is measured of a transformer at a saved step: its answers, and the directions of two of its layers."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...data import AnchorFunctions
from ...measure import find_lines
from ...runs import Trajectory
from ...seeds import Seed
from ._task import OWN, TRAINED, UNSEEN

TESTED = 1000  # sequences of each kind
COSINE = 0.7  # from which on two rows of W_Q are of one group
VALUES = 8  # singular values of the embedding that are kept


def answers(trajectory: Trajectory, step: int) -> dict[str, float]:
    """Shares of answers, groups of W_Q's rows in the first block, singular values of the tokens that are read."""
    (seed,), data = trajectory.seeds, trajectory.experiment.data
    assert isinstance(data, AnchorFunctions)
    model = trajectory.model(step, seed)
    query = find_lines(model.weights("query1"), threshold=COSINE)
    low, high = data.keys
    read = [*(anchor for anchor, _ in data.shifts), *range(low, high + 1)]
    values = np.linalg.svd(model.parameters["embedding.weight"][read].astype(float), compute_uv=False)[:VALUES]
    return shares(model, data, seed) | {
        "groups": float(query.count),
        "k_eff": query.k_eff,
        "chance": query.chance_k_eff,
        **{f"value{k}": float(value) for k, value in enumerate(values, 1)},
    }


def shares(model: Callable[[np.ndarray], np.ndarray], data: AnchorFunctions, seed: Seed) -> dict[str, float]:
    """Shares of answers to test sequences, all of whose keys stand where they never stood in training.

    ``reasoning`` is the share of sequences with the unseen pair that are answered by the sum of both shifts,
    ``symmetric`` by the shift of its mirror image; ``unseen`` the share of right answers on the trained pairs.
    """
    (x, composed), (others, right) = _tests(data, seed, (UNSEEN,)), _tests(data, seed, TRAINED)
    answer = model(np.concatenate([x, others])).argmax(axis=1)
    mirrored = composed - sum(dict(data.shifts)[anchor] for anchor in UNSEEN) + OWN
    return {
        "reasoning": float((answer[:TESTED] == composed).mean()),
        "symmetric": float((answer[:TESTED] == mirrored).mean()),
        "unseen": float((answer[TESTED:] == right).mean()),
    }


@lru_cache(maxsize=64)
def _tests(data: AnchorFunctions, seed: Seed, pairs: tuple[tuple[int, ...], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Test sequences with some pairs, and the token that is right."""
    x, y = replace(data, n=TESTED, only=pairs, places="held_out").draw(seed.held_out())
    return x, y.argmax(axis=1)
