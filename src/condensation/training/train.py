"""Train an experiment for all its seeds: ``train(experiment, seeds=10)``."""

import time
import warnings
from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np

from ..errors import InputError
from ..experiment import Experiment
from ..seeds import Seed, as_seeds
from .engine import Member, Plan, Program, Record, run
from .optimizers import Adam, numbers_of, without_numbers
from .progress import Meter, Reporter, print_progress
from .trajectory import Trajectory


class GradientBelowEps(UserWarning):
    """A parameter's gradient is smaller than Adam's eps, so that its steps shrink."""


class Diverged(UserWarning):
    """A seed's loss was no longer finite; it was stopped there."""


@overload
def train(
    experiment: Experiment, seeds: int | Iterable[int | Seed] = 1, *, progress: bool | Reporter = False
) -> Trajectory: ...
@overload
def train(
    experiment: Sequence[Experiment], seeds: int | Iterable[int | Seed] = 1, *, progress: bool | Reporter = False
) -> list[Trajectory]: ...
def train(
    experiment: Experiment | Sequence[Experiment],
    seeds: int | Iterable[int | Seed] = 1,
    *,
    progress: bool | Reporter = False,
) -> Trajectory | list[Trajectory]:
    """Train one experiment, or several that differ only in numbers, for all seeds at once.

    Args:
        experiment: what to train. A sequence (see ``Experiment.vary``) is trained as one ensemble; its
            experiments may differ in the start, in the data's values and in the optimizer's numbers.
        seeds: how many (0, 1, ...), or which; ``Seed(data=0, start=3)`` sets the two apart.
        progress: True prints a line; a callable is told now and then (``Progress``).

    Returns:
        A trajectory, or a list of them for a sequence. A seed's numbers do not depend on what runs beside it.
    """
    several = not isinstance(experiment, Experiment)
    experiments = list(experiment) if several else [experiment]
    runs = as_seeds(seeds)
    program = _program_of(experiments)
    members = [_member(one, seed) for one in experiments for seed in runs]
    if len({(member.x.shape, member.y.shape) for member in members}) > 1:
        raise InputError("experiments that are trained together need data of one shape")
    first = experiments[0]
    saved = np.array(first.save.steps(first.steps))
    recorded = np.union1d(first.record.steps(first.steps), saved)
    reporter = (print_progress if progress else None) if isinstance(progress, bool) else progress
    meter = Meter((first.steps + 1) * len(members), reporter)
    began = time.perf_counter()
    records = run(program, members, Plan(recorded, saved, meter))
    seconds = time.perf_counter() - began
    groups = [records[k : k + len(runs)] for k in range(0, len(records), len(runs))]
    found = [
        _trajectory(one, runs, saved, recorded, group, seconds / len(groups))
        for one, group in zip(experiments, groups, strict=True)
    ]
    for trajectory in found:
        _warn(trajectory)
    return found if several else found[0]


def _program_of(experiments: list[Experiment]) -> Program:
    """The program that all experiments share; refused where they need different ones."""
    if not experiments:
        raise InputError("at least one experiment is needed, not an empty list")
    shared = [
        (Program(one.network, one.loss, without_numbers(one.optimizer), one.dtype), one.steps, one.save, one.record)
        for one in experiments
    ]
    for other in shared[1:]:
        if other != shared[0]:
            parts = ("network", "loss", "optimizer", "dtype", "steps", "save", "record")
            mine, theirs = (*shared[0][0], *shared[0][1:]), (*other[0], *other[1:])
            names = [part for part, a, b in zip(parts, mine, theirs, strict=True) if a != b]
            raise InputError(f"these experiments cannot be trained as one ensemble: they differ in {', '.join(names)}")
    return shared[0][0]


def _member(experiment: Experiment, seed: Seed) -> Member:
    x, y = experiment.data.draw(seed)
    network = experiment.network
    if (x.shape[1], y.shape[1]) != (network.inputs, network.outputs):
        raise InputError(
            f"the data has {x.shape[1]} inputs and {y.shape[1]} outputs, "
            f"the network {network.inputs} and {network.outputs}"
        )
    start = experiment.start.draw(network, seed.start_stream())
    return Member(start, x, y, numbers_of(experiment.optimizer))


def _trajectory(
    experiment: Experiment,
    seeds: tuple[Seed, ...],
    saved: np.ndarray,
    recorded: np.ndarray,
    records: list[Record],
    seconds: float,
) -> Trajectory:
    first = records[0]
    return Trajectory(
        experiment=experiment,
        seeds=seeds,
        saved=saved,
        recorded=recorded,
        parameters={name: np.stack([record.weights[name] for record in records]) for name in first.weights},
        loss=np.stack([record.loss for record in records]),
        gradient={name: np.stack([record.gradient[name] for record in records]) for name in first.gradient},
        diverged={s: r.diverged for s, r in zip(seeds, records, strict=True) if r.diverged is not None},
        seconds=seconds,
    )


def _warn(trajectory: Trajectory) -> None:
    """Say which seeds diverged, and where gradients fell below Adam's eps."""
    for seed, step in trajectory.diverged.items():
        warnings.warn(
            f"the loss of {seed} was not finite at step {step}: that seed was stopped, what was saved before is kept",
            Diverged,
            stacklevel=3,
        )
    optimizer = trajectory.experiment.optimizer
    if isinstance(optimizer, Adam):
        initial = trajectory.loss > 0.7 * trajectory.loss[:, :1]
        below = {name: initial & (sizes < optimizer.eps) for name, sizes in trajectory.gradient.items()}
        least = {name: trajectory.gradient[name][where].min() for name, where in below.items() if where.any()}
        if least:
            worst = sorted(least, key=least.__getitem__)[:3]
            named = [f"{name} ({least[name]:.1e} in {below[name].any(axis=1).sum()} seeds)" for name in worst]
            others = f" and {len(least) - 3} more" if len(least) > 3 else ""
            warnings.warn(
                f"in the initial stage the mean gradient is below Adam's eps {optimizer.eps:.0e} in {', '.join(named)}"
                f"{others}: there Adam's steps shrink with it; a smaller eps (with float64) avoids that",
                GradientBelowEps,
                stacklevel=3,
            )
