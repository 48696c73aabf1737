"""What can be chosen when a model is watched."""

from collections.abc import Iterable
from typing import Any, TypedDict

from ..errors import InputError, unknown_name
from ..saving import At, Every, Geometric, OpenSaveSchedule
from ._loggers import as_loggers

DEFAULT = Geometric(2)  # a measurement takes as long as a few steps: 2000 steps have nine of them
BUDGET = 0.03  # of the time of the steps


class Options(TypedDict, total=False):
    """What can be chosen when a model is watched, as ``watch`` describes it."""

    schedule: OpenSaveSchedule
    layers: Iterable[str] | None
    heads: bool
    view: str
    keep: Iterable[str]
    to: Any
    budget: float | None
    threshold: float | None
    live: bool
    resume: bool
    overwrite: bool


def check_options(options: Options) -> None:
    """Refuse, before there is a model, what no model could be watched with."""
    for name in options:
        if name not in Options.__annotations__:
            raise unknown_name("option of watch", name, Options.__annotations__)
    schedule, meanings = options.get("schedule", DEFAULT), {"budget": "a share of the time", "threshold": "a cosine"}
    if not isinstance(schedule, At | Every | Geometric):
        known = "Geometric(per_decade), Every(k) or At(steps), which need no last step"
        raise InputError(f"a schedule is {known}, not {schedule!r}")
    for name, meaning in meanings.items():
        value = options.get(name)
        if value is not None and not (isinstance(value, int | float) and 0 < value < 1):
            raise InputError(f"{name} is {meaning} between 0 and 1, not {value!r}")
    if options.get("resume") and options.get("overwrite"):
        raise InputError("resume goes on with the run in the folder, overwrite begins another one: choose one of them")
    as_loggers(options.get("to", ()))
