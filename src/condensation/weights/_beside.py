"""Names in a checkpoint: their natural order, and which are of what stands beside weights (optimizers, schedulers)."""

import re

_BESIDE = re.compile(
    r"\b(?:optimi[sz]er|optim|scheduler|sched|scaler|rng|amp|random state|trainer state|training arg)s?\b"
    r"|\b(?:callbacks|loops)\b"
)


def no_weights(name: str) -> bool:
    """Whether a file or a key is called, in whole words, what stands beside weights in a checkpoint.

    >>> [name for name in ("optimizer_states", "optimized", "lr_scheduler", "upscaler", "rng0") if no_weights(name)]
    ['optimizer_states', 'lr_scheduler', 'rng0']
    """
    return bool(_BESIDE.search(re.sub(r"[\W\d_]+", " ", name.lower())))


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers by size, however long they are.

    >>> sorted(["a10", "a9"], key=natural)
    ['a9', 'a10']
    """
    parts = re.split(r"(\d+)", name)  # every other one is a number
    parts[1::2] = [part.lstrip("0") for part in parts[1::2]]
    return [(len(part) if k % 2 else 0, part) for k, part in enumerate(parts)]
