"""Names in a checkpoint: their natural order, and which are of what stands beside weights (optimizers, schedulers)."""

import re

_BESIDE = re.compile(
    r"\b(?:optimi[sz]er|optim|scheduler|sched|scaler|rng|amp|random state|trainer state|training arg)s?\b"
    r"|\b(?:callbacks|loops)\b"
)

_STATE = re.compile(
    r"(^|[./])(optimi[sz]ers?|optim)(_states?)?[./]"
    r"|(^|[./])(exp_avg(_sq)?|max_exp_avg_sq|momentum_buffer|square_avg|grad_avg|acc_delta)([./]|$)"
)
OF_OPTIMIZER = "of an optimizer's state, which is no weight"


def is_state(name: str) -> bool:
    """Whether an array's name is that of an optimizer's state, in a file that has it among the weights.

    >>> [is_state(name) for name in ("optimizer.state.0.exp_avg", "exp_avg.fc.weight", "optimizer_net.fc.weight")]
    [True, True, False]
    """
    return bool(_STATE.search(name))


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
