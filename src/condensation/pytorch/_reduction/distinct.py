"""Which samples are given for the first time: a loader that starts again, or draws with replacement, gives some twice.

A sample that is fitted to must not judge, and what is seen twice tells of new samples no more than what is seen once.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

SKETCH = 64  # entries of each tensor of a sample: samples that are alike in these are compared in full


def distinct_samples(inputs: Any) -> list[int]:
    """The places of the samples of a batch that do not stand before.

    >>> distinct_samples(torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    [0, 1]
    """
    leaves = [leaf if leaf.ndim > 1 else leaf[:, None] for leaf in _tensors(inputs)]
    leaves = [leaf.flatten(1) for leaf in leaves]
    few = [leaf[:, :: max(1, leaf.shape[1] // SKETCH)] for leaf in leaves]
    sketches = [row.tobytes() for row in torch.cat([_raw(leaf) for leaf in few], 1).numpy()]
    counts = Counter(sketches)
    return _first([_digest([leaf[k] for leaf in leaves]) if counts[s] > 1 else s for k, s in enumerate(sketches)])


def distinct_batches(batches: Sequence[Any]) -> list[int]:
    """The places of the batches that do not stand before."""
    return _first([_digest(_tensors(batch)) for batch in batches])


def _first(keys: Sequence[bytes]) -> list[int]:
    seen: dict[bytes, int] = {}
    for place, key in enumerate(keys):
        seen.setdefault(key, place)
    return list(seen.values())


def _digest(values: Sequence[torch.Tensor]) -> bytes:
    digest = blake2b(repr([value.shape for value in values]).encode())
    for value in values:
        digest.update(_raw(value).numpy().tobytes())
    return digest.digest()


def _raw(value: torch.Tensor) -> torch.Tensor:
    """The bytes of each row."""
    value = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return (value if value.ndim else value[None]).view(torch.uint8)


def _tensors(inputs: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
