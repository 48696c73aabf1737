"""Train an experiment for all its seeds: ``train(experiment, seeds=10)``.

The way from an experiment to its trajectory:

- ``_need.py``: what the training takes of memory, told by its shapes; more than there is is refused.
- ``_train.py``: each pair of experiment and seed becomes a ``Member`` (initial weights, data, hyperparameters); what
  all members share becomes the ``Program`` that is compiled, and the steps to record and save the ``RunPlan``.
- ``_program.py``: one step of training as a pure function of a ``TrainState``; ``_flow.py``: that of gradient flow.
- ``_engine.py``: deals the members to devices and threads.
- ``_work.py``: trains some members at once, chunk by chunk; ``_stepwise.py``: a network with convolutions.
- ``_chunks.py``: cuts the plan's steps into a ``Chunk`` for each call.
- ``_buffer.py``: the ``EnsembleBuffer`` into which each call's weights and curves are copied, a ``Record`` a network.
- ``_progress.py``: what a reporter is told (``Progress``).
- ``runs/_checkpoints.py``: with ``out``, records and states are kept as ``Checkpoint``s; ``runs/_store.py``: the files.
- ``runs/_trajectory.py``: ``collect`` makes the ``Trajectory`` of all seeds from their records.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..errors import InputError
from ..experiment import Experiment
from ..initialization import Given
from ..optimizers import Adam, GradientFlow, static_part, traced_hyperparameters
from ..runs import Record, Trajectory, in_initial_stage
from ..runs._checkpoints import RunCheckpoints
from ..runs._trajectory import collect
from ..seeds import Seed, as_seeds
from ._chunks import RunPlan
from ._engine import run
from ._need import require_room
from ._program import Program
from ._progress import Meter, PrintedProgress, Reporter
from ._work import Member

SHARED = (
    "dropout_penalty",
    "network",
    "loss",
    "dtype",
    "steps",
    "save",
    "record",
    "batch_size",
    "kept_layers",
)  # in an ensemble


class GradientBelowEps(UserWarning):
    """A parameter's gradient is smaller than Adam's eps, so that its steps shrink."""


class Diverged(UserWarning):
    """A seed's loss was no longer finite; it was stopped there."""


@overload
def train(
    experiment: Experiment,
    seeds: int | Iterable[int | Seed] = 1,
    *,
    out: str | Path | None = None,
    progress: bool | Reporter = False,
) -> Trajectory: ...
@overload
def train(
    experiment: Sequence[Experiment],
    seeds: int | Iterable[int | Seed] = 1,
    *,
    out: str | Path | None = None,
    progress: bool | Reporter = False,
) -> list[Trajectory]: ...
def train(
    experiment: Experiment | Sequence[Experiment],
    seeds: int | Iterable[int | Seed] = 1,
    *,
    out: str | Path | None = None,
    progress: bool | Reporter = False,
) -> Trajectory | list[Trajectory]:
    """Train one experiment, or several that differ only in traced values, for all seeds at once.

    Args:
        experiment: what to train. A sequence (see ``Experiment.vary``) is trained as one ensemble; its
            experiments may differ in the initialization, in the data's values and in traced hyperparameters.
        seeds: how many (0, 1, ...), or which; ``Seed(data=0, init=3)`` sets the two apart.
        out: a folder of runs. The run is kept there under the experiment's fingerprint: what is finished is not
            trained again, what was interrupted goes on where it was and ends with the same numbers.
        progress: True prints how far it is (ten lines in a log); a callable is told now and then (``Progress``).

    Returns:
        A trajectory, or a list of them for a sequence. A seed's numbers do not depend on what runs beside it.
    """
    several = not isinstance(experiment, Experiment)
    experiments = list(experiment) if several else [experiment]
    if isinstance(seeds, int):  # before so many are listed
        _check((own, max(1, seeds)) for own in experiments)
    chosen = as_seeds(seeds)
    if not isinstance(seeds, int):
        _check((own, len(chosen)) for own in experiments)
    pairs = [(own, seed) for own in experiments for seed in chosen]
    records = iter(_run(pairs, members_of(pairs), out, progress))
    trajectories = [collect(own, chosen, list(islice(records, len(chosen)))) for own in experiments]
    for trajectory in trajectories:
        _warn(trajectory)
    return trajectories if several else trajectories[0]


def train_pairs(
    pairs: Sequence[tuple[Experiment, Seed]], *, out: str | Path | None = None, progress: bool | Reporter = False
) -> list[Trajectory]:
    """Train any pairs of experiment and seed, in as few ensembles as can be; a trajectory of one seed for each."""
    experiments = {id(experiment): experiment for experiment, _ in pairs}
    counts = Counter(id(experiment) for experiment, _ in pairs)
    _check((experiment, counts[key]) for key, experiment in experiments.items())
    members = members_of(pairs)
    numbers: dict[Any, int] = {}
    number = {key: numbers.setdefault(ensemble_key(one), len(numbers)) for key, one in experiments.items()}
    groups: dict[Any, list[int]] = {}
    classes = _classes(members)
    for k, ((experiment, _), member) in enumerate(zip(pairs, members, strict=True)):
        groups.setdefault((number[id(experiment)], _shapes(member), classes[id(member.y)]), []).append(k)
    records: dict[int, Record] = {}
    for group in groups.values():
        own = _run([pairs[k] for k in group], [members[k] for k in group], out, progress)
        records |= zip(group, own, strict=True)
    return [collect(experiment, (seed,), [records[k]]) for k, (experiment, seed) in enumerate(pairs)]


def _check(networks: Iterable[tuple[Experiment, int]]) -> None:
    """Refuse, before anything is drawn, data that do not fit and networks that take more memory than there is."""
    listed = list(networks)
    for experiment, _ in listed:
        experiment.check_data()
    require_room(listed)


def ensemble_key(experiment: Experiment) -> Any:
    """What experiments that are trained as one ensemble share, but for the shape of their data."""
    optimizer = static_part(experiment.optimizer)
    without = experiment.test is None, experiment.label_noise is None
    return optimizer, *without, *(getattr(experiment, part) for part in SHARED)


def _run(
    pairs: Sequence[tuple[Experiment, Seed]],
    members: list[Member],
    out: str | Path | None,
    progress: bool | Reporter,
) -> list[Record]:
    """What each pair leaves, trained as one ensemble."""
    experiments = list({id(experiment): experiment for experiment, _ in pairs}.values())
    program = program_of(experiments, members)
    first = experiments[0]
    recorded, saved = np.array(first.recorded_steps()), np.array(first.saved_steps())
    checkpoints = RunCheckpoints(out, pairs) if out is not None else None
    reporter = (PrintedProgress() if progress else None) if isinstance(progress, bool) else progress
    meter = Meter(first.steps * len(members), reporter)
    try:
        records = run(program, members, RunPlan(recorded, saved, meter, checkpoints))
    except BaseException:
        if checkpoints is not None:
            checkpoints.flush()
        raise
    if checkpoints is not None:
        checkpoints.close()
    return records


def program_of(experiments: list[Experiment], members: list[Member]) -> Program:
    """The program that all experiments share; refused where they need different ones."""
    if not experiments:
        raise InputError("at least one experiment is needed, not an empty list")
    first = experiments[0]
    if isinstance(first.optimizer, GradientFlow):  # its libraries take half a second to import, and none while tracing
        from . import _flow  # noqa: F401
    for part in ("optimizer", *SHARED):
        shared = [getattr(experiment, part) for experiment in experiments]
        if part == "optimizer":
            shared = [static_part(optimizer) for optimizer in shared]
        for value in shared:
            if value != shared[0]:
                raise InputError(
                    f"these experiments cannot be trained as one ensemble: their {part} is {shared[0]} and {value}"
                )
    if len({experiment.label_noise is None for experiment in experiments}) > 1:
        raise InputError(
            "experiments that are trained together must all have label_noise, or none of them: 0 is a noise that adds "
            "nothing"
        )
    shapes = {_shapes(member) for member in members}
    if len(shapes) > 1:
        raise InputError(f"experiments that are trained together need data of one shape, not {sorted(shapes)}")
    size, n = first.batch_size, len(members[0].x)
    if size is not None and size > n:
        raise InputError(f"a batch of {size} samples is asked for, but there are only {n}")
    if any(member.test and _are_classes(member.test[1]) != _are_classes(member.y) for member in members):
        raise InputError("data and test must both have classes as targets (one 1 and zeros in a row), or neither")
    classes = {*_classes(members).values()}
    if len(classes) > 1:
        raise InputError("experiments that are trained together must all have classes as targets, or none of them")
    return Program(
        first.network,
        first.loss,
        static_part(first.optimizer),
        first.dtype,
        kept=tuple(name for name in members[0].init if first.keeps(name)),
        batch_size=size,
        classes=classes.pop(),
        tested=first.test is not None,
        noisy=first.label_noise is not None,
        penalty=first.dropout_penalty,
    )


def _shapes(member: Member) -> tuple[tuple[int, ...], ...]:
    return tuple(part.shape for part in (member.x, member.y, *(member.test or ())))


def _classes(members: Sequence[Member]) -> dict[int, bool]:
    """Whether targets are classes, by the id of the array, which many members may share."""
    return {key: _are_classes(y) for key, y in {id(member.y): member.y for member in members}.items()}


def _are_classes(y: np.ndarray) -> bool:
    """Whether each row is one 1 and zeros."""
    return y.shape[1] > 1 and bool(((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all())


def members_of(pairs: Iterable[tuple[Experiment, Seed]]) -> list[Member]:
    """The networks of pairs; what several of them draw from the same parts and seed is drawn once."""
    drawn = _Drawn()
    return [drawn.member(experiment, seed) for experiment, seed in pairs]


def member_of(experiment: Experiment, seed: Seed) -> Member:
    """One network of an experiment, its data and its initial weights drawn."""
    return _Drawn().member(experiment, seed)


class _Drawn:
    """What was drawn, by the parts that it was drawn from; these are kept, so that an id stays its own."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], tuple[Any, tuple[Any, ...]]] = {}

    def member(self, own: Experiment, seed: Seed) -> Member:
        """One network of an experiment."""
        fit = own.network, own.loss
        x, y = self._once(lambda: _samples(own, seed), seed, own.data, *fit)
        other, test = seed.held_out(), own.test
        held = None if test is None else self._once(lambda: _samples(own, seed, held_out=True), other, test, *fit)
        drawn_by = seed if isinstance(own.init, Given) else seed.init
        init = self._once(lambda: own.init.draw(own.network, seed.init_stream(), seed), drawn_by, own.init, own.network)
        key = self._once(seed.training_key, seed.init)
        return Member(init, x, y, held, traced_hyperparameters(own.optimizer), key, own.label_noise)

    def _once(self, draw: Callable[[], Any], seed: Any, *parts: Any) -> Any:
        key = seed, *map(id, parts)
        if key not in self._made:
            self._made[key] = draw(), parts
        return self._made[key][0]


def _samples(experiment: Experiment, seed: Seed, held_out: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Samples and targets that fit the network and the loss."""
    x, y = experiment.samples(seed, held_out)
    network = experiment.network
    if (x.shape[1:], y.shape[1]) != (network.input_shape, network.outputs):
        raise InputError(
            f"the data has samples of shape {x.shape[1:]} and {y.shape[1]} outputs, "
            f"the network {network.input_shape} and {network.outputs}"
        )
    if experiment.loss.of_classes and not (y.shape[1] > 1 and (y >= 0).all() and np.allclose(y.sum(axis=1), 1)):
        raise InputError(
            f"the loss {experiment.loss.name} needs targets that are shares of at least two classes, each row adding "
            "up to 1, or one label a sample, 0 to K-1"
        )
    return x, y


def _warn(trajectory: Trajectory) -> None:
    """Say which seeds diverged, and where gradients fell below Adam's eps."""
    flow = isinstance(trajectory.experiment.optimizer, GradientFlow)
    reason = ", or the flow needed more integration steps than most_steps since the last record" if flow else ""
    for seed, step in trajectory.diverged.items():
        warnings.warn(
            f"the loss of {seed} was not finite at step {step}{reason}: that seed was stopped, what was saved is kept",
            Diverged,
            stacklevel=3,
        )
    optimizer = trajectory.experiment.optimizer
    if isinstance(optimizer, Adam):
        initial = in_initial_stage(trajectory.loss)
        underflows = trajectory.experiment.dtype != "float64"  # else no eps moves a weight whose gradient is zero
        below = {
            name: initial & (sizes < optimizer.eps) & (underflows | (sizes > 0))
            for name, sizes in trajectory.gradient.items()
        }
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
