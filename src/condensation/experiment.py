"""The experiment: a frozen value that fixes a training run except the seeds."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .data import Data
from .errors import InputError, check_whole, unknown_name
from .networks import Dense
from .starts import Start
from .training.losses import Loss
from .training.optimizers import Optimizer
from .training.schedule import Evenly, Schedule
from .values import fingerprint, replace_at, to_plain

FORMAT = 1
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Experiment:
    """Everything that fixes a training run except the seeds.

    Args:
        network: what is trained.
        start: the law of its first weights.
        data: what it is trained on; the whole of it in every step.
        optimizer: how it is trained.
        steps: how long.
        loss: what is minimised.
        save: at which steps the weights are kept.
        record: at which steps the loss and the gradient sizes are kept (the saved ones are added).
        dtype: ``"float64"`` or ``"float32"``; the user's JAX configuration is not touched.
    """

    network: Dense
    start: Start
    data: Data
    optimizer: Optimizer
    steps: int
    loss: Loss = Loss()
    save: Schedule = Evenly(101)
    record: Schedule = Evenly(1001)
    dtype: str = "float64"

    def __post_init__(self) -> None:
        check_whole("steps", self.steps)
        if self.dtype not in DTYPES:
            raise unknown_name("dtype", self.dtype, DTYPES)
        for schedule in (self.save, self.record):
            if not isinstance(schedule, Schedule):
                raise InputError(f"a schedule such as Every(10) is needed, not {schedule!r}")
            schedule.steps(self.steps)
        self.start.laws(self.network)

    def replace(self, **changes: Any) -> "Experiment":
        """A copy with some fields changed; a dotted path reaches inside: ``**{"optimizer.learning_rate": 1e-4}``."""
        plain = {path: value for path, value in changes.items() if "." not in path}
        names = [f.name for f in dataclasses.fields(self)]
        for path in plain:
            if path not in names:
                raise unknown_name("field of Experiment", path, names)
        changed = dataclasses.replace(self, **plain)
        for path in changes.keys() - plain.keys():
            changed = replace_at(changed, path, changes[path])
        return changed

    def vary(self, path: str, values: Iterable[Any]) -> list["Experiment"]:
        """One experiment for each value of the field at a dotted path, to be trained as one ensemble.

        ``train(experiment.vary("start.hidden.std", [1e-3, 1e-4]), seeds=10)``
        """
        return [self.replace(**{path: value}) for value in values]

    def to_plain(self) -> dict[str, Any]:
        """The experiment as dictionaries, lists, strings and numbers."""
        return {"format": FORMAT} | to_plain(self)

    def fingerprint(self) -> str:
        """SHA-256 of the experiment's canonical JSON: the one key under which its results are known."""
        return fingerprint(self)
