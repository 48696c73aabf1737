"""Learning-rate back-off: where the loss rises, training begins again from the same weights with half the rate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._precision import storage
from ..errors import InputError, check_whole
from ..experiment import Experiment
from ..optimizers import GradientFlow, traced_hyperparameters
from ..runs import Trajectory
from ..saving import stretched
from ..seeds import Seed
from ._progress import Reporter
from ._train import train_pairs

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}  # share of the loss that may be rounding


class StillRising(UserWarning):
    """A network's loss still rises after all back-offs of the learning rate."""


def train_with_backoff(
    pairs: Sequence[tuple[Experiment, Seed]],
    *,
    backoffs: int = 10,
    out: str | Path | None = None,
    progress: bool | Reporter = False,
) -> list[Trajectory]:
    """Train pairs of experiment and seed as ``train_pairs`` does, each with a learning rate that is small enough.

    A network whose loss is larger at a recorded step than at the one before, or not finite, is trained again from the
    same weights with half the learning rate, together with all others of that kind; the others are done. Training
    takes the same *time*: half the rate, twice the steps, and schedules that name the same moments (what Adam and Muon
    remember counts steps, so it becomes shorter). Not counted is what rounding can do: rises of a loss by 1e-9 of it
    in float64, by 1e-5 in float32, or by 16 units of rounding of the network's first loss.

    The cost doubles with each back-off; gradient flow, which chooses its own steps, is the better answer where it fits.

    Args:
        pairs: what to train.
        backoffs: how often the learning rate may be halved; a network that rises even then is returned as it is, with
            the warning ``StillRising``.
        out: a folder of runs, the ones that rose among them.
        progress: as for ``train``, anew for each round of networks.

    Returns:
        For each pair a trajectory of one seed, whose ``experiment`` has the learning rate and the steps that it was
        trained with.
    """
    check_whole("backoffs", backoffs, least=0)
    for experiment in {id(experiment): experiment for experiment, _ in pairs}.values():
        _check(experiment, backoffs)
    pairs, trajectories = list(pairs), {}
    left = list(range(len(pairs)))
    for done in range(backoffs + 1):
        trajectories |= zip(left, train_pairs([pairs[k] for k in left], out=out, progress=progress), strict=True)
        left = [k for k in left if rises(trajectories[k])]
        if not left or done == backoffs:
            break
        halves = {id(pairs[k][0]): with_half_rate(pairs[k][0]) for k in left}
        for k in left:
            pairs[k] = halves[id(pairs[k][0])], pairs[k][1]
    for k in left:
        experiment, seed = pairs[k]
        rate = traced_hyperparameters(experiment.optimizer)["learning_rate"]
        warnings.warn(
            f"the loss of {seed} still rises with the learning rate {rate:.3g}, halved {backoffs} times: a "
            "smaller rate to begin with, more back-offs (backoffs=...) or gradient flow may help",
            StillRising,
            stacklevel=2,
        )
    return [trajectories[k] for k in range(len(pairs))]


def rises(trajectory: Trajectory) -> bool:
    """Whether the loss of any seed rises between two recorded steps by more than rounding, or is not finite."""
    loss = trajectory.loss.astype(float)
    dtype = storage(trajectory.experiment.dtype)
    rounding = TOLERANCE[dtype] * loss[:, :-1] + 16 * float(np.finfo(dtype).eps) * loss[:, :1]
    return not bool(np.isfinite(loss).all() and (loss[:, 1:] <= loss[:, :-1] + rounding).all())


def with_half_rate(experiment: Experiment) -> Experiment:
    """The experiment with half the learning rate and twice the steps, recorded and saved at the same times."""
    optimizer = experiment.optimizer
    assert not isinstance(optimizer, GradientFlow)
    changes = {
        "optimizer.learning_rate": optimizer.learning_rate / 2,
        "optimizer.schedule": optimizer.schedule.stretched(2),
        "steps": 2 * experiment.steps,
        "save": stretched(experiment.save, 2, experiment.steps),
        "record": stretched(experiment.record, 2, experiment.steps),
    }
    return experiment.replace(**changes)


def _check(experiment: Experiment, backoffs: int) -> None:
    """Refuse what has no rate to halve, or a loss that rises for other reasons than the rate."""
    optimizer = experiment.optimizer
    if isinstance(optimizer, GradientFlow):
        raise InputError("gradient flow has no learning rate to halve: its steps are chosen by their error; use train")
    if experiment.batch_size is not None or experiment.network.dropout:
        what = "dropout" if experiment.batch_size is None else f"batch_size={experiment.batch_size}"
        raise InputError(f"with {what} the loss rises by chance, whatever the learning rate: train on all samples")
    if experiment.network.norms:
        raise InputError("with batch norm the recorded loss is not what is descended, so that it may rise: use train")
    if decay := getattr(optimizer, "weight_decay", 0):
        raise InputError(f"with weight_decay={decay} the loss is not what is descended: use weight_decay=0")
    if experiment.dtype == "tf32":
        raise InputError("products in tf32 are rounded to 10 bits, by which the loss may rise: use float32 or float64")
    if experiment.steps * 2**backoffs >= 2**31:
        fits = int(np.log2((2**31 - 1) / experiment.steps))
        raise InputError(
            f"{experiment.steps} steps cannot be doubled {backoffs} times, to below 2^31: use backoffs={fits}"
        )
