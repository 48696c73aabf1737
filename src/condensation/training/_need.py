"""The memory that a training takes, told by its shapes before anything is drawn."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._device import cores, on_cpu
from .._memory import fits, free_memory, in_digits, in_words, require
from .._precision import storage
from ..data import Arrays, Data, Images, Text
from ..experiment import Experiment
from ..networks import Conv, Network
from ..networks._model import network_size
from ..saving import LISTED, SaveSchedule
from ._program import evaluated_at_once

TWICE = 2  # records, and the trajectory of all seeds that they become
PASSED = 2  # what a layer gives, and the gradient by it: measured, 2 for dense layers and 3 for convolutions
STATES = {
    "adam": 8,
    "adamw": 8,
    "gradient_flow": 12,
    "muon": 14,
}  # copies of the parameters while they are trained, as measured
DESCENT = 4  # the same of optimizers without moments
NETWORK = 4096  # bytes of a network's objects in Python
MANY = 2**14  # networks in a task at most: where they fit, all do
EVALUATED = 1000  # images that are evaluated at once

_CAUSES = {  # by the largest part: what takes it, and what would take less
    "saved": ("the weights at {saved} saved steps", "save fewer steps (save), keep fewer layers (kept_layers)"),
    "curves": ("the curves at {recorded} recorded steps", "record fewer steps (record)"),
    "samples": ("the samples", "draw fewer samples (n)"),
    "weights": ("the initial weights", "make the network smaller"),
    "working": ("a step's own arrays", "make the network smaller, take fewer samples or a batch_size"),
    "steps": ("the lists of the recorded steps", "save and record fewer steps (save, record)"),
}


class Need(NamedTuple):
    """Bytes that a network takes.

    Attributes:
        saved: its weights at the saved steps.
        curves: its curves at the recorded ones.
        samples: its own samples.
        weights: the initial ones.
        working: what it takes besides while it is trained: state and samples on the device, what layers pass on.
        steps: the lists of steps, which all networks share.
    """

    saved: int
    curves: int
    samples: int
    weights: int
    working: int
    steps: int

    @property
    def kept(self) -> int:
        """What is held until all networks are trained."""
        return self.saved + self.curves + self.samples + self.weights + NETWORK


def need_of(experiment: Experiment) -> Need:
    """What a network of an experiment takes."""
    given = [data for data in (experiment.data, experiment.test) if data is not None]
    about = experiment.network, experiment.dtype, experiment.optimizer.kind, experiment.kept_layers, on_cpu()
    steps = experiment.steps, experiment.save, experiment.record
    outputs = experiment.network.outputs
    samples = sum(_numbers(data, outputs) for data in given) + _patches(experiment)
    return _need(*about, *steps, _at_once(experiment), sum(_drawn(data, outputs) for data in given), samples)


@lru_cache(maxsize=256)  # the cells of a sweep share a few
def _need(
    network: Network, dtype: str, optimizer: str, kept: tuple[str, ...] | None, on_cpu: bool,
    last: int, save: SaveSchedule, record: SaveSchedule, at_once: int, drawn: int, samples: int,
) -> Need:  # fmt: skip
    number, size = np.dtype(storage(dtype)).itemsize, network_size(network)
    own = size if kept is None else sum(layer.size for layer in network.layers if layer.name in kept)
    saved = save.most(last)
    recorded = record.most(last) + saved
    curves = 5 + sum(len(layer.parameters) for layer in network.layers) + 2 * len(network.norms)
    passed_on = PASSED * network.passed_on * at_once if on_cpu else 0  # else it is the memory of the GPU
    working = number * (STATES.get(optimizer, DESCENT) * size + samples + passed_on)
    times = TWICE * number
    return Need(times * saved * own, times * recorded * curves, drawn, 8 * size, working, LISTED * recorded)


def _numbers(data: Data, outputs: int) -> int:
    return data.most_samples * (math.prod(data.input_shape) + outputs)


def _patches(experiment: Experiment) -> int:
    """Numbers in the patches that the first convolution layer reads where each step sees all samples."""
    network = experiment.network
    in_part = experiment.batch_size is not None or network.dropout or experiment.label_noise is not None
    if not isinstance(network, Conv) or in_part:
        return 0
    return network.patch_numbers(experiment.data.most_samples, np.dtype(storage(experiment.dtype)).itemsize)


def _drawn(data: Data, outputs: int) -> int:
    """Bytes of a seed's own samples; where all seeds see the same arrays, only of labels that become targets."""
    shared = isinstance(data, Arrays) or (isinstance(data, Images) and data.n is None)
    if shared:
        return 8 * data.most_samples * outputs if data.outputs != outputs else 0
    return _numbers(data, outputs) * (4 if isinstance(data, Images | Text) else 8)


def _at_once(experiment: Experiment) -> int:
    """Samples that go through the network together: a batch, or those that are evaluated."""
    whole = experiment.data.most_samples
    if experiment.batch_size is None:
        return whole
    evaluated = EVALUATED if _has_convolutions(experiment) else evaluated_at_once(experiment.network, whole)
    return max(experiment.batch_size, min(whole, evaluated))


def _has_convolutions(experiment: Experiment) -> bool:
    return any(layer.is_convolution for layer in experiment.network.layers)


def require_room(networks: Iterable[tuple[Experiment, int]]) -> None:
    """Refuse a training that takes more memory than there is, and warn of one that takes more than half of it.

    Args:
        networks: experiments, and how many networks of each are trained.
    """
    listed = list(networks)
    if not listed:
        return
    first = listed[0][0]
    places = 1 if _has_convolutions(first) or not on_cpu() else cores()
    needs = [(need_of(experiment), count) for experiment, count in listed]
    total = _total(needs, 1, places)
    if fits(2 * total):
        return
    count = sum(count for _, count in needs)
    parts = {part: sum(getattr(need, part) * count for need, count in needs) for part in _CAUSES}
    parts["steps"] = max(need.steps for need, _ in needs)
    parts["working"] = max(need.working for need, _ in needs) * min(places, count)
    largest = max(parts, key=parts.__getitem__)
    cause, advice = _CAUSES[largest]
    steps = {"saved": in_digits(first.save.most(first.steps)), "recorded": in_digits(first.record.most(first.steps))}
    most = f"{in_words(parts[largest])} of it for {cause.format(**steps)}"
    what = f"training {in_digits(count)} network{'s' * (count > 1)} ({most})"
    fewer = f", or train fewer at a time{_fitting(needs, places)}" if count > 1 else ""
    require(total, what, advice + fewer, warn=True)


def networks_that_fit(experiments: Iterable[Experiment], processes: int) -> int | None:
    """How many networks each of some processes of this machine can train at a time; None where that is not known.

    Refused where they cannot train one each.
    """
    needs = {need_of(experiment) for experiment in experiments}
    each = max(need.kept + need.working + need.steps for need in needs)
    advice = "fewer processes (n_jobs), or fewer saved steps, layers or samples would fit"
    require(processes * each, f"training {in_digits(processes)} networks at a time, {in_words(each)} each,", advice)
    free = None if fits(processes * each * MANY) else free_memory()
    kept = max(need.kept for need in needs)
    return free and max(1, 1 + (free.size // processes - each) // kept)


def _total(needs: Sequence[tuple[Need, int]], share: float, places: int) -> int:
    """Bytes that a share of the networks takes."""
    kept = sum(need.kept * count for need, count in needs)
    at_work = min(places, max(1, round(share * sum(count for _, count in needs))))
    return int(kept * share) + at_work * max(need.working for need, _ in needs) + max(need.steps for need, _ in needs)


def _fitting(needs: Sequence[tuple[Need, int]], places: int) -> str:
    """How many networks would fit, in words; nothing where none would, or where that is not known."""
    free, count = free_memory(), sum(count for _, count in needs)
    least, most = 0, count
    while free is not None and least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if _total(needs, middle / count, places) <= free.size else (least, middle - 1)
    return f" ({in_digits(least)} would fit)" if 0 < least < count else ""
