"""Measures that go wrong for one cell and seed; workers find them by import."""

import os
import signal
import time

from condensation import Trajectory

RATE, SEED = 5e-3, 1  # of the first start


def _here(trajectory: Trajectory) -> bool:
    experiment = trajectory.experiment
    return (experiment.optimizer.learning_rate, experiment.init.hidden.std, trajectory.seeds[0].init) == (
        RATE,
        1e-4,
        SEED,
    )


def kills(trajectory: Trajectory, step: int) -> float:
    """Ends its process as the system does when memory is short."""
    if _here(trajectory):
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def raises(trajectory: Trajectory, step: int) -> float:
    if _here(trajectory):
        raise RuntimeError("no such thing here")
    return 1.0


def waits(trajectory: Trajectory, step: int) -> float:
    """Takes long enough for its process to be killed meanwhile."""
    time.sleep(0.1)
    return 1.0


def never(trajectory: Trajectory, step: int) -> float:
    raise RuntimeError("nothing is good enough")


def early(trajectory: Trajectory, step: int) -> float:
    """Cannot be taken at the start."""
    if step == 0:
        raise ValueError("too early")
    return float(step)
