"""Where the numbers of a watched training are told besides its own rows: the logger that a user has anyway."""

import inspect
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import InputError
from ..runs import WatchedRow
from ..runs._watched import QUANTITIES

Tell = Callable[[dict[str, float], int], Any]


def as_loggers(to: Any) -> list[Tell]:
    """What tells each of some loggers, guarded; one alone need not stand in a list."""
    loggers = to if isinstance(to, list | tuple) else (to,)
    return [guarded(f"the logger {_name(logger)}", _as_logger(logger)) for logger in loggers]


def guarded(name: str, tell: Callable[..., Any]) -> Callable[..., None]:
    """A call that stops no training: what it raises is told as a warning, once."""
    warned = False

    def call(*arguments: Any) -> None:
        nonlocal warned
        try:
            tell(*arguments)
        except Exception as error:  # of a network, a disk, a user's function: anything
            if not warned:
                warned = True
                warnings.warn(f"{name} failed: {error!r}; the training goes on", stacklevel=2)

    return call


def named(rows: Iterable[WatchedRow]) -> dict[str, float]:
    """The measured numbers of rows by the names that loggers give them: ``condensation/LAYER/k_eff``."""
    return {
        f"condensation/{row.layer}/{name}": value
        for row in rows
        for name in QUANTITIES
        if not row.reason and not math.isnan(value := float(getattr(row, name)))
    }


def _as_logger(logger: Any) -> Tell:
    if callable(getattr(logger, "add_scalar", None)):  # TensorBoard's SummaryWriter

        def scalars(numbers: dict[str, float], step: int) -> None:
            for name, value in numbers.items():
                logger.add_scalar(name, value, step)

        return scalars
    if callable(getattr(logger, "log_metrics", None)):  # Lightning's loggers
        return logger.log_metrics
    log = getattr(logger, "log", None)
    if callable(log):  # Weights & Biases and its like
        return (lambda numbers, step: log(numbers, step=step)) if _has_step(log) else log
    if callable(logger):
        return logger
    raise InputError(
        "to must be a SummaryWriter, an object with log or log_metrics, or a function of numbers and step, "
        f"not {logger!r}"
    )


def _name(logger: Any) -> str:
    return logger.__qualname__ if inspect.isroutine(logger) else type(logger).__qualname__


def _has_step(log: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(log).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return True
    return any(parameter.name == "step" or parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
